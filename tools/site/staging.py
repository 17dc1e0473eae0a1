"""Copies the repository's pages into the folder that Sphinx reads, and turns their links.

A link to a page becomes a link to that page of the site. A link to another file becomes one to a page that shows the
file; a folder is its README, or a list. The order of the pages in the site is `NAVIGATION`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

NAVIGATION: Mapping[str, tuple[str, ...]] = {
    "Tutorial": ("tutorial",),
    "How-to": (
        "pytest-only",
        "testing",
        "operations",
        "recovery",
        "salvage",
        "migrate",
        "jepsen",
        "what-if",
        "ui",
        "weblab",
        "pipeline",
        "examples/orders",
        "examples/suites",
        "examples/ci",
        "examples/connect",
        "examples/monitoring",
        "examples/pipelines",
        "contributing",
        "release",
    ),
    "Reference": (
        "commands/index",
        "properties",
        "metrics",
        "testing-reference",
        "api/testing",
        "api/client",
        "api/spark",
        "faults",
        "clients",
        "interop",
        "mixed",
        "spark",
        "lab",
        "scenarios",
        "history",
        "simulator",
        "kip966",
        "rules",
        "mutations",
        "field",
        "simulator-report",
        "benchmark",
        "glossary",
        "gaps",
        "security",
        "authorization",
        "changelog",
    ),
    "Explanation": (
        "last-replica-standing",
        "stories",
        "comparison",
        "architecture",
        "replication",
        "quorum",
        "groups",
        "share-groups",
        "transactions",
        "compaction",
        "model-checker",
        "proof",
        "decisions/index",
    ),
}
"""Captions, and pages by their names in the site. Others come last, as "More", and fail a test."""

GENERATED = ("commands/index", "properties", "api/testing", "api/client", "api/spark", "decisions/index")
ROOT_PAGES = ("GAPS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LAB_MARK = "<!-- the browser lab -->"
"""Where a page has this comment, the site shows the lab, if it is built."""

_FROM_A_FILE = (
    'if (location.protocol === "file:") { '
    'const note = document.createElement("p"); '
    'note.textContent = "The lab runs only from a web server, because browsers load no modules from files. In the '
    "folder of this site: python3 -m http.server --bind 127.0.0.1, then http://127.0.0.1:8000/ is this site with the "
    'lab."; '
    "document.currentScript.previousElementSibling.replaceWith(note); }"
)
"""In place of an empty frame, on a page that was opened as a file."""

_FENCED = re.compile(r"(^(?P<fence>```+|~~~+).*?^(?P=fence)[^\n]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".sh": "bash"}


def stage(root: Path, target: Path, lab: str | None) -> None:
    """Fill the empty folder `target`. `lab` is the address of the browser lab in the site."""
    Staging(root, target, lab).run()


def pages_of(root: Path) -> dict[PurePosixPath, str]:
    """Files of the repository that are pages, and their names in the site."""
    pages = {PurePosixPath(name): PurePosixPath(name).stem.lower() for name in ROOT_PAGES}
    pages[PurePosixPath("README.md")] = "index"
    for path in sorted((root / "docs").rglob("*.md")):
        name = path.relative_to(root / "docs")
        if name.parts[0] != "plans":
            pages[PurePosixPath("docs", *name.parts)] = name.with_suffix("").as_posix()
    for path in sorted((root / "examples").glob("*/README.md")):
        pages[PurePosixPath("examples", path.parent.name, "README.md")] = f"examples/{path.parent.name}"
    return pages


class Staging:
    """One run: the pages, and the files that are shown because a page links to them."""

    def __init__(self, root: Path, target: Path, lab: str | None) -> None:
        self._root, self._target, self._lab = root, target, lab
        self._pages = pages_of(root)
        self._shown: set[PurePosixPath] = set()

    def run(self) -> None:
        shutil.copytree(self._root / "docs" / "pictures", self._target / "pictures")
        for path, name in self._pages.items():
            if name != "index":
                self._write(name, self._turned(path, name, self._with_lab((self._root / path).read_text())))
        self._write("decisions/index", self._decisions())
        self._write("index", self._index())

    def _write(self, name: str, text: str) -> None:
        file = self._target / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def _with_lab(self, text: str) -> str:
        if self._lab is None:
            return text
        frame = (
            "```{raw} html\n"
            f'<p><a href="{self._lab}">The lab in your browser</a> runs the node code of these pages.</p>\n'
            f'<iframe src="{self._lab}" title="The lab in your browser" loading="lazy" '
            'style="width: 100%; height: 42rem; border: 1px solid var(--color-background-border)"></iframe>\n'
            f"<script>{_FROM_A_FILE}</script>\n"
            "```"
        )
        return text.replace(LAB_MARK, frame)

    def _turned(self, path: PurePosixPath, name: str, text: str) -> str:
        """The page's text with each relative link turned; code blocks stay as they are."""
        parts = _FENCED.split(text)
        # split() gives text, block, fence, text, block, fence, ...
        prose = [_LINK.sub(lambda match: f"]({self._target_of(match[1], path, name)})", each) for each in parts[::3]]
        blocks = [*parts[1::3], ""]
        return "".join(each for pair in zip(prose, blocks, strict=True) for each in pair)

    def _target_of(self, link: str, path: PurePosixPath, name: str) -> str:
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            return link
        file, _, anchor = link.partition("#")
        found = PurePosixPath(os.path.normpath(path.parent / file))
        goal = self._site_path(found)
        return os.path.relpath(goal, PurePosixPath(name).parent) + (f"#{anchor}" if anchor else "")

    def _site_path(self, path: PurePosixPath) -> str:
        if path.parts[:2] == ("docs", "pictures"):
            return path.relative_to("docs").as_posix()
        if path == PurePosixPath("docs/decisions"):
            return "decisions/index.md"
        if (self._root / path).is_dir() and (path / "README.md") in self._pages:
            path = path / "README.md"
        if path in self._pages:
            return f"{self._pages[path]}.md"
        return f"{self._show(path)}.md"

    def _show(self, path: PurePosixPath) -> str:
        """A page that has the file in it, or the list of a folder's files; its name."""
        name = f"source/{path}"
        if path in self._shown:
            return name
        self._shown.add(path)
        file = self._root / path
        if file.is_dir():
            files = sorted(each for each in file.iterdir() if each.is_file())
            rows = "".join(f"* [{each.name}]({file.name}/{each.name}.md)\n" for each in files)
            for each in files:
                self._show(path / each.name)
            self._write(name, f"---\norphan: true\n---\n# {path}\n\n{rows}")
        elif file.suffix == ".md":
            self._write(name, f"---\norphan: true\n---\n{self._turned(path, name, file.read_text())}")
        else:
            text = file.read_text()
            fence = "`" * max(4, *(len(run) + 1 for run in re.findall("`+", text)), 4)
            block = f"{fence}{_LANGUAGES.get(file.suffix, 'text')}\n{text}\n{fence}\n"
            self._write(name, f"---\norphan: true\n---\n# {path}\n\n{block}")
        return name

    def _decisions(self) -> str:
        names = sorted(name for name in self._pages.values() if name.startswith("decisions/"))
        return "# Decisions\n\n" + _toctree(None, [name.partition("/")[2] for name in names])

    def _index(self) -> str:
        """The README up to its list of pages, and the navigation."""
        readme = (self._root / "README.md").read_text()
        text = self._turned(PurePosixPath("README.md"), "index", readme.partition("\n## Reading on")[0])
        there = {*self._pages.values(), *GENERATED} - {"index"}
        trees = [_toctree(title, [name for name in names if name in there]) for title, names in NAVIGATION.items()]
        listed = {name for names in NAVIGATION.values() for name in names}
        if more := sorted(name for name in there - listed if not name.startswith("decisions/")):
            trees.append(_toctree("More", more))
        return "\n\n".join([text, *trees])


def _toctree(caption: str | None, names: list[str]) -> str:
    options = ":hidden:\n:maxdepth: 1\n" + f":caption: {caption}\n" if caption else ":maxdepth: 1\n"
    return f"```{{toctree}}\n{options}\n" + "\n".join(names) + "\n```\n"

"""Every relative link and every file name in the pages points to something that is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tanist"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "requirements").glob("*.md"),
        *(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "plans"),
        *(ROOT / "examples").rglob("*.md"),
    ]
)

_CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?)\s*#*$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"[\w./*-]+\.(?:py|md|yaml|yml|toml|lock|in|txt|sh|mjs|svg)(?:::\w+)?")
_FOLDERS = ("src", "tests", "docs", "bench", "tools", "examples", "requirements", ".ci", ".github")

NOT_OURS = {
    "orders.txt": "a reader's, in an example",
    "shipped.txt": "the same",
    "picture.svg": "an operator's",
    "kafka-leader-election.sh": "Apache Kafka's",
}
"""Names that look like files of the repository, and whose they are."""
COMING: tuple[str, ...] = ()
"""Pages name these before they are there."""


def prose_of(text: str) -> str:
    return _CODE_BLOCK.sub("", text)


def anchor_of(heading: str) -> str:
    """As GitHub makes it: no punctuation, small letters, a hyphen for each space."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Of headings: the site knows no others, so that an anchor in HTML is a dead link there."""
    text = prose_of(page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in _HEADING.findall(text):
        anchor, number = anchor_of(heading), 0
        while (f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return frozenset(found)


def broken_links(page: Path, text: str) -> Iterator[str]:
    for target in _LINK.findall(prose_of(text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists():
            yield f"{target}: there is no such file"
        elif anchor and anchor not in anchors_of(path):
            yield f"{target}: {path.name} has no such heading"


@cache
def names_of_files() -> frozenset[str]:
    folders = (SOURCE, *(ROOT / folder for folder in _FOLDERS))
    below = (path for folder in folders if folder.is_dir() for path in folder.rglob("*"))
    return frozenset(path.name for path in (*ROOT.iterdir(), *below) if "__pycache__" not in path.parts)


def is_there(name: str, page: Path) -> bool:
    """From the root or beside the page, or the end of a path in the packages, the tests or the bench."""
    if name.partition("/")[0] in _FOLDERS and any(ROOT.glob(name)):
        return True
    if "/" not in name and "*" not in name:
        return name in names_of_files()
    below = (SOURCE, ROOT / "tests", ROOT / "bench")
    return any(page.parent.glob(name)) or any(any(folder.rglob(name)) for folder in below)


def missing_files(page: Path, text: str) -> Iterator[str]:
    for code in _CODE.findall(prose_of(text)):
        name = code.split("::")[0].rstrip("/")
        in_a_folder = code.partition("/")[0] in _FOLDERS and re.fullmatch(r"[\w./*-]+", name)
        if (in_a_folder or _FILE.fullmatch(code)) and name not in (*NOT_OURS, *COMING) and not is_there(name, page):
            yield code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_files_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [*broken_links(page, text), *missing_files(page, text)] == []


def test_no_exception_is_left_over() -> None:
    everything = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in NOT_OURS if f"`{name}`" not in everything] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[a](README.md)", 0),
        ("[a](NO-SUCH.md)", 1),
        ("[a](README.md#what-it-does)", 0),
        ("[a](README.md#nowhere)", 1),
        ("[a](#here)", 1),
        ("[a](https://example.org/x.md)", 0),
        ("```\n[a](NO-SUCH.md) `docs/no-such.md`\n```", 0),
        ("`docs/architecture.md` `log/log.py` `log.py` `tests/*/conftest.py`", 0),
        ("`docs/no-such.md`", 1),
        ("`log/no_such.py`", 1),
        ("`no_such.py`", 1),
        ("`tests/no_such/`", 1),
        ("`kafka-dump-log` `a.b` `/data/log.py/x`", 0),
    ],
)
def test_what_is_wrong_is_seen(text: str, wrong: int) -> None:
    page = ROOT / "README.md"
    assert len([*broken_links(page, text), *missing_files(page, text)]) == wrong


def test_anchors_are_githubs() -> None:
    assert anchor_of("The key of `GetReplicaLogInfo`, and why") == "the-key-of-getreplicaloginfo-and-why"
    assert anchor_of("A — b") == "a--b"

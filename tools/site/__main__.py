"""`make site`: python -m tools.site [--out FOLDER] [--lab FOLDER]

Needs what `requirements/site.lock` has and no network. Ends with 1 if Sphinx warns or a link is dead.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from sphinx.cmd.build import build_main

from tools.site import api, commands, links, properties, staging

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "site"

_FOR_KEYBOARDS = (
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ("<pre>", '<pre tabindex="0">'),
)
"""What the theme leaves out: levels of headings, and keyboards' way into what scrolls sideways."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=BUILD / "html")
    parser.add_argument("--lab", type=Path, default=ROOT / "build" / "weblab", help="the browser lab, if it is built")
    given = parser.parse_args()
    began = time.monotonic()
    source = BUILD / "source"
    for folder in (source, given.out):
        shutil.rmtree(folder, ignore_errors=True)
    has_lab = (given.lab / "index.html").exists()
    staging.stage(ROOT, source, lab="lab/index.html" if has_lab else None)
    commands.write(source / "commands")
    properties.write(source / "properties.md")
    api.write(ROOT / "src", source / "api")
    options = ["-b", "html", "-q", "-W", "--keep-going", "-d", BUILD / "doctrees", "-c", Path(__file__).parent]
    if failed := build_main([*map(str, options), str(source), str(given.out)]):
        return failed
    for page in given.out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for old, new in _FOR_KEYBOARDS:
            text = text.replace(old, new)
        page.write_text(text, encoding="utf-8")
    if has_lab:
        shutil.copytree(given.lab, given.out / "lab")
    found = links.check(given.out)
    (BUILD / "external-links.txt").write_text("".join(f"{link}\n" for link in found.external))
    for each in found.dead:
        print(f"dead link: {each}", file=sys.stderr)
    lab = "with the browser lab" if has_lab else "without the browser lab (make weblab builds it)"
    print(
        f"{given.out.relative_to(ROOT) if given.out.is_relative_to(ROOT) else given.out}: {found.pages} pages, {lab}; "
        f"{found.internal} internal links, {len(found.dead)} dead; {len(found.external)} external ones in "
        f"{(BUILD / 'external-links.txt').relative_to(ROOT)}, not fetched; {time.monotonic() - began:.0f} s"
    )
    return 1 if found.dead else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Dead links of a folder of HTML: files and anchors that are not there. External links are listed, not fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ATTRIBUTES = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src", "source": "src"}
_LOADED = ("link", "img", "script", "iframe", "source")
_NO_LINKS = ("canonical",)


@dataclass
class Found:
    """All links of the site."""

    pages: int = 0
    internal: int = 0
    dead: list[str] = field(default_factory=list)
    external: list[str] = field(default_factory=list)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.update(value for name in ("id", "name") if (value := given.get(name)))
        link = given.get(_ATTRIBUTES.get(tag, ""))
        if link is not None and given.get("rel") not in _NO_LINKS:
            self.links.append((tag, link))


def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def check(folder: Path, without: tuple[str, ...] = ("lab",)) -> Found:
    """Every link of every page. Pages below `without` may be linked to, and are not looked at."""
    files = [file for file in sorted(folder.rglob("*.html")) if file.relative_to(folder).parts[0] not in without]
    pages = {file.resolve(): _read(file) for file in files}
    found = Found(pages=len(pages))
    external: set[str] = set()
    for file, page in pages.items():
        name = file.relative_to(folder.resolve())
        for tag, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if tag in _LOADED and parts.scheme != "data":
                    found.dead.append(f"{name} loads {link} from another host")
                elif parts.scheme in ("http", "https"):
                    external.add(link)
                continue
            found.internal += 1
            goal = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if goal.is_dir():
                goal = goal / "index.html"
            if not goal.is_relative_to(folder.resolve()) or not goal.exists():
                found.dead.append(f"{name}: {link}: there is no such file")
            elif parts.fragment and goal in pages and unquote(parts.fragment) not in pages[goal].anchors:
                found.dead.append(f"{name}: {link}: there is no such anchor")
    found.external = sorted(external)
    return found

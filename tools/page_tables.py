"""Tables of pages in docs/ that are made from the code. Each stands between `<!-- name: begin -->` and its end."""

from __future__ import annotations

from collections.abc import Iterable


def with_table(page: str, name: str, lines: Iterable[str]) -> str:
    """The page with one table made anew. `ValueError`: the page has no place for it."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"there is no table between {begin} and {end}")
    return "\n".join([before + begin, *lines, end + after])

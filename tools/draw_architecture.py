"""Draw docs/pictures/architecture.svg: the packages of src/tanist, and which imports which.

    python tools/draw_architecture.py            write the picture
    python tools/draw_architecture.py --check    exit code 1 if the picture that is there is another one

All of it comes from the imports (grimp), imports for types included. A package stands below all that import it. Arrows
point from importer to imported; an arrow that follows from two others is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
PACKAGE = "tanist"
LEAVES = ("installed", "invariants", "text")
"""Helpers that every package may use: arrows to them would say nothing."""

WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 880, 62, 16, 40, 16
STYLE = (
    ":root{color-scheme:light dark;--paper:#ffffff;--ink:#1a1a1a;--quiet:#555555;--box:#eef3f8;--rule:#8fadc8;"
    "--way:#7a828a}"
    "@media (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e6e6e6;--quiet:#a3a9b0;--box:#1e2730;"
    "--rule:#4d6880;--way:#8a929a}}"
    "svg{background:var(--paper);font-family:system-ui,sans-serif}"
    ".box{fill:var(--box);stroke:var(--rule)}.name{fill:var(--ink);font-size:15px;font-weight:600}"
    ".parts{fill:var(--quiet);font-size:11px}.way{stroke:var(--way);fill:none;stroke-width:1.2}"
)


def imports() -> tuple[dict[str, set[str]], dict[str, list[str]]]:
    """Package -> packages that it imports; package -> its subpackages."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    children = sorted(graph.find_children(PACKAGE))
    parts: dict[str, list[str]] = {}
    for child in children:
        name = child.removeprefix(f"{PACKAGE}.")
        inner = [each for each in graph.find_children(child) if graph.find_children(each)]
        parts[name] = sorted(each.rpartition(".")[2] for each in inner)
        if graph.find_children(child):
            graph.squash_module(child)
    below = {
        name: {
            each.removeprefix(f"{PACKAGE}.")
            for each in graph.find_modules_directly_imported_by(f"{PACKAGE}.{name}")
            if each.removeprefix(f"{PACKAGE}.") in parts
        }
        - {name, *LEAVES}
        for name in parts
        if name not in LEAVES
    }
    return below, {name: part for name, part in parts.items() if name not in LEAVES}


def layers(below: Mapping[str, set[str]]) -> list[list[str]]:
    """Highest first: each package one layer below the lowest that imports it."""
    depth: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in depth:
            depth[name] = max((of(each) + 1 for each in below if name in below[each]), default=0)
        return depth[name]

    for name in below:
        of(name)
    return [sorted(name for name in depth if depth[name] == level) for level in range(max(depth.values()) + 1)]


def without_shortcuts(below: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The same order by the fewest arrows (its transitive reduction)."""

    def reach(name: str) -> set[str]:
        return set().union(*({each} | reach(each) for each in below[name])) if below[name] else set()

    return {
        name: {one for one in targets if not any(one in reach(other) for other in targets)}
        for name, targets in below.items()
    }


def wrapped(names: list[str], width: int) -> list[str]:
    """Names in at most two lines of about so many characters."""
    lines = [""]
    for name in names:
        longer = f"{lines[-1]}, {name}" if lines[-1] else name
        if len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines[-1] += ","
            lines.append(name)
    return lines[:2] if lines[0] else []


def drawing() -> str:
    below, parts = imports()
    rows = layers(below)
    height = 2 * MARGIN + len(rows) * BOX_HEIGHT + (len(rows) - 1) * GAP_Y
    where: dict[str, tuple[float, float, float]] = {}
    out: list[str] = []
    for number, row in enumerate(rows):
        width = min(300.0, (WIDTH - 2 * MARGIN - (len(row) - 1) * GAP_X) / len(row))
        left = (WIDTH - len(row) * width - (len(row) - 1) * GAP_X) / 2
        top = MARGIN + number * (BOX_HEIGHT + GAP_Y)
        for name in row:
            where[name] = (left, top, width)
            left += width + GAP_X
    for name, targets in without_shortcuts(below).items():
        x, y, width = where[name]
        for target in sorted(targets):
            to_x, to_y, to_width = where[target]
            start, end = x + width / 2, to_x + to_width / 2
            spread = max(-to_width / 3, min(to_width / 3, (start - end) * 0.2))
            leave = max(-width / 3, min(width / 3, (end - start) * 0.2))
            from_y = y + BOX_HEIGHT
            out.append(
                f'<path class="way" marker-end="url(#tip)" d="M{start + leave:.0f} {from_y:.0f} '
                f"C{start + leave:.0f} {from_y + GAP_Y * 0.7:.0f} {end + spread:.0f} {to_y - GAP_Y * 0.7:.0f} "
                f'{end + spread:.0f} {to_y - 3:.0f}"/>'
            )
    for name, (x, y, width) in where.items():
        middle = x + width / 2
        out.append(f'<rect class="box" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX_HEIGHT}" rx="6"/>')
        out.append(text("name", middle, y + 22, name))
        out += (
            text("parts", middle, y + 39 + 14 * number, line)
            for number, line in enumerate(wrapped(parts[name], int(width / 6)))
        )
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    title = "The packages of tanist: arrows point to what a package imports"
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        '<path d="M0 0L8 4L0 8z" fill="var(--way)"/></marker></defs>',
    ]
    return "\n".join([*head, *out, "</svg>"]) + "\n"


def text(style: str, x: float, y: float, words: str) -> str:
    return f'<text class="{style}" text-anchor="middle" x="{x:.0f}" y="{y:.0f}">{escape(words)}</text>'


def main() -> int:
    drawn = drawing()
    if "--check" in sys.argv[1:]:
        if PICTURE.read_text() != drawn:
            print(f"{PICTURE.relative_to(ROOT)} is not what the imports say; run: python tools/draw_architecture.py")
            return 1
        return 0
    PICTURE.write_text(drawn)
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

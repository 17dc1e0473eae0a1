"""Charts as SVG: bars, lines, points and time bands, placed across in shares of the width that there is.

Owns the marks and where they go; they mean nothing here. `kind` is a class of chart.css, which has the colours for
light and dark. Shares become per cent, so that a chart takes any width and its text keeps its size. Distances down are
in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from tanist.lab.pages import templates

Point = tuple[float, float]

CROSS, DOT, TRIANGLE = "m-2.5-2.5l5 5m-5 0l5-5", "h0", "m-4 3l4-7l4 7z"
"""Forms of points, as parts of a path. A dot is a stroke of no length, which round caps make visible."""
_STEPS = (1, 2, 5, 10)
EVEN = (1, 2, 4, 6, 8, 10)
"""Whose halves and quarters are short numbers."""
_LEAST = 0.003
"""A bar is seen however small its part is."""
_FINE = 1000
"""The units of a line in each direction; it is stretched to the space that there is."""


@dataclass(frozen=True, slots=True)
class Row:
    """A part of a figure, with its name and notes: beside it, or above it where it is narrow."""

    name: str
    strip: Markup
    notes: Sequence[str] = ()


# -- numbers


def share(value: float, first: float, last: float) -> float:
    """Where a value is between two others, from 0 to 1."""
    return min(max((value - first) / (last - first), 0.0), 1.0) if last > first else 0.0


def round_up(value: float, steps: Sequence[float] = _STEPS) -> float:
    """To one of the steps times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next((power * step for step in steps if power * step >= value), power * steps[-1])


def joined(spans: Iterable[tuple[int, int]], gap: int = 0) -> list[tuple[int, int]]:
    """Spans that overlap, or are no further apart than this, as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + gap:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def spaced(places: Sequence[float], narrow: float, wide: float, *, first: Collection[int] = ()) -> dict[int, str]:
    """Which of these labels fit, by number: "" everywhere, "wide" only where it is wide.

    Those of `first` are placed before the others.
    """
    kept: dict[int, str] = {}
    for apart, kind in ((narrow, ""), (wide, "wide")):
        for index in sorted(range(len(places)), key=lambda index: (index not in first, index)):
            if index not in kept and all(abs(places[index] - places[other]) >= apart for other in kept):
                kept[index] = kind
    return kept


def number(value: float) -> str:
    """A number with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def per_cent(part: float) -> str:
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"


# -- marks


def element(name: str, content: str = "", /, **attributes: str | float) -> Markup:
    """`class_` is class, `text_anchor` is text-anchor. An empty attribute is left out; text is escaped."""
    made = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value if isinstance(value, str) else number(value))
        for key, value in attributes.items()
        if value != ""
    )
    return Markup("<{0}{1}>{2}</{0}>" if content else "<{0}{1}/>").format(name, made, content)


def bar(first: float, end: float, y: float, height: float, kind: str, **more: str | float) -> Markup:
    width = max(end - first, _LEAST)
    x = per_cent(min(first, 1 - width))
    return element("rect", x=x, y=y, width=per_cent(width), height=height, class_=kind, **more)


def upright(x: float, top: float, bottom: float, kind: str) -> Markup:
    return element("line", x1=per_cent(x), y1=top, x2=per_cent(x), y2=bottom, class_=kind)


def across(y: float, kind: str, first: float = 0.0, end: float = 1.0) -> Markup:
    return element("line", x1=per_cent(first), y1=y, x2=per_cent(end), y2=y, class_=kind)


def label(
    x: float, y: float, text: str, kind: str = "", *, anchor: str = "", edge: float = 0.05, **more: str | float
) -> Markup:
    """Text about a place; without an anchor, it stays within the chart near its ends."""
    anchor = anchor or ("start" if x < edge else "end" if x > 1 - edge else "middle")
    return element("text", text, x=per_cent(x), y=y, text_anchor=anchor, class_=kind, **more)


def line(points: Iterable[Point], top: float, height: float, kind: str) -> Markup:
    """From point to point: the shares across, and up from the bottom."""
    drawn = " ".join(f"{number(_FINE * x)},{number(_FINE * (1 - up))}" for x, up in points)
    return element(
        "svg", element("polyline", points=drawn, class_=kind), y=top, height=height, width="100%",
        viewBox=f"0 0 {_FINE} {_FINE}", preserveAspectRatio="none",
    )  # fmt: skip


def stepped(values: Sequence[Point]) -> list[Point]:
    """The points of a line that keeps each value until the next."""
    kept = [(x, before) for (_, before), (x, _) in pairwise(values)]
    return [*values[:1], *(point for pair in zip(kept, values[1:], strict=True) for point in pair)]


def points(places: Iterable[Point], form: str, kind: str) -> Markup:
    """Many equal points as one path, in pixels. Those in one spot of some pixels are drawn once by `thinned`."""
    return element("path", d="".join(f"M{number(x)} {number(y)}{form}" for x, y in places), class_=kind)


def thinned(places: Iterable[Point], grid: float) -> list[Point]:
    """One point for each spot of the grid, in its middle, so that a drawing does not grow with the number of points."""
    spots = {(round(x / grid), round(y / grid)) for x, y in places}
    return [(x * grid, y * grid) for x, y in sorted(spots)]


def strip(height: float, marks: Iterable[Markup], **place: str | float) -> Markup:
    """A chart as wide as the page allows, or, in a document, a part of it at a place."""
    return element("svg", Markup("").join(marks), **place, height=height)


def document(width: float, height: float, title: str, marks: Iterable[Markup]) -> str:
    """A file of its own, of a fixed size and with its own style."""
    size = {"width": number(width), "height": number(height)}
    return templates.render("lab/pages/picture.svg", title=title, marks=Markup("\n").join(marks), **size)

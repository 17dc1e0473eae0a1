"""Lines over time as an SVG: one panel below the other, each with its own scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from tanist.lab.pages import chart

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _GAP = 840, 110, 60, 20, 30, 34
_COLOURS = ("", "second", "third", "fourth")


@dataclass(frozen=True, slots=True)
class Line:
    """Points (seconds, value); None where there is none."""

    name: str
    points: Sequence[tuple[float, float | None]]


def picture(panels: Sequence[tuple[str, Sequence[Line]]]) -> str:
    """The whole picture."""
    place = {"x": _LEFT, "width": _WIDTH - _LEFT - _RIGHT}
    drawn = [
        chart.strip(_HEIGHT, _panel(*panel), y=_TOP + number * (_HEIGHT + _GAP), **place)
        for number, panel in enumerate(panels)
    ]
    return chart.document(_WIDTH, _TOP + len(panels) * (_HEIGHT + _GAP), "; ".join(title for title, _ in panels), drawn)


def _panel(title: str, lines: Sequence[Line]) -> Iterator[Markup]:
    values = [value for line in lines for _, value in line.points if value is not None]
    last_s = max((at_s for line in lines for at_s, _ in line.points), default=1.0) or 1.0
    highest = max(values, default=1.0) or 1.0
    yield chart.label(0, -6, title, "strong")
    yield chart.upright(0, 0, _HEIGHT, "axis")
    yield chart.across(_HEIGHT, "axis")
    yield chart.label(0, 8, f"{highest:.4g}", anchor="end", dx=-6)
    yield chart.label(0, _HEIGHT, "0", anchor="end", dx=-6)
    yield chart.label(1, _HEIGHT + 13, f"{last_s / 60:.0f} min")
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        yield chart.label(1, -6, line.name, f"name {colour}", dx=-70 * (len(lines) - 1 - number))
        for known, points in groupby(line.points, key=lambda point: point[1] is not None):
            if known:
                shares = [(at_s / last_s, (value or 0.0) / highest) for at_s, value in points]
                yield chart.line(shares, 0, _HEIGHT, f"way {colour}")

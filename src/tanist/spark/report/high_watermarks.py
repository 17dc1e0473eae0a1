"""How far each partition had come by when, as clients knew it, and who led meanwhile.

Owns one chart a partition. The greatest offset that was acknowledged or polled is a lower bound of the high watermark,
and all that a history knows of it; where the line goes down, the high watermark went back. Leaders are shown if the
history's clock is that of the day: other clocks begin anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tanist.client.topic_partition import TopicPartition
from tanist.lab.jepsen import svg
from tanist.spark.jobs.audit.clients import HighWatermarkPoint
from tanist.spark.jobs.audit.metadata import Change
from tanist.spark.jobs.audit.result import AuditResult
from tanist.spark.report import page

_TOP: Final = 36.0
"""Of the chart; above it are the names of leaders, which no line reaches."""
_HEIGHT: Final = 120.0
_NS: Final = 1_000_000_000
_LABELS_APART: Final = (0.2, 0.09)
_FINE: Final = 1000
"""The line's own units in each direction; it is stretched to the space that there is."""


def chart(result: AuditResult, place: TopicPartition) -> str | None:
    """None if the history has no times."""
    points = [each for each in result.high_watermarks if (each.topic, each.partition) == place]
    if len(points) < 2:
        return None
    changes = _in_time(result.metadata.changes.get(place, ()), points)
    first_ns = min([points[0].at_ns, *(change.wall_ms * 1_000_000 for change in changes)])
    span_ns = max(points[-1].at_ns - first_ns, 1)
    most = max(point.offset for point in points) + 1

    def x(at_ns: int) -> float:
        return min(max((at_ns - first_ns) / span_ns, 0.0), 1.0)

    drawn = [*_leaders(changes, x), _way(points, x, most)]
    bottom = _TOP + _HEIGHT
    drawn.append(svg.element("line", x1=0, y1=bottom, x2="100%", y2=bottom, class_="axis"))
    seconds = span_ns / _NS
    for part in range(5):
        kind = "wide" if part in (1, 3) else ""
        drawn.append(page.label(part / 4, bottom + 16, f"{seconds * part / 4:.1f} s", kind=kind))
    name = f'<b>offset</b> <span class="quiet">from 0 at the bottom to {most:,} at the top</span>'
    title = f"The high watermark of {place[0]}-{place[1]} in time"
    return page.figure(title, [page.row(name, page.strip(bottom + 22, drawn))])


def _way(points: Sequence[HighWatermarkPoint], x: Callable[[int], float], most: int) -> str:
    """A step for each moment: between two of them nothing is known."""

    def y(offset: int) -> float:
        return _FINE * (1 - offset / most)

    line = []
    for before, after in zip([None, *points], points):
        at = _FINE * x(after.at_ns)
        if before is not None:
            line.append((at, y(before.offset + 1)))
        line.append((at, y(after.offset + 1)))
    return svg.element(
        "svg", svg.polyline(line, class_="way"), y=_TOP, height=_HEIGHT, width="100%",
        viewBox=f"0 0 {_FINE} {_FINE}", preserveAspectRatio="none",
    )  # fmt: skip


def _in_time(changes: Sequence[Change], points: Sequence[HighWatermarkPoint]) -> list[Change]:
    """Changes of leader during the history, if its clock can be compared with the controllers'."""
    first_ms, last_ms = points[0].at_ns // 1_000_000, points[-1].at_ns // 1_000_000
    found = []
    epoch = None
    for change in changes:
        if change.leader_epoch != epoch and first_ms - 60_000 <= change.wall_ms <= last_ms:
            found.append(change)
        epoch = change.leader_epoch
    return found


def _leaders(changes: Sequence[Change], x: Callable[[int], float]) -> Iterable[str]:
    places = [x(change.wall_ms * 1_000_000) for change in changes]
    for change, place in zip(changes, places, strict=True):
        yield page.upright(place, _TOP, _TOP + _HEIGHT, "unclean" if change.unclean else "election")
    unclean = {number for number, change in enumerate(changes) if change.unclean}
    for number, kind in page.spaced(places, *_LABELS_APART, first=unclean).items():
        change = changes[number]
        who = f"{change.leader} leads" if change.leader >= 0 else "no leader"
        yield page.label(places[number], 12, who, kind=kind, edge=0.1)
        yield page.label(places[number], 27, f"epoch {change.leader_epoch}", kind=kind, edge=0.1)

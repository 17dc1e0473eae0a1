"""How far each partition had come by when, as clients were told it, and who led meanwhile.

Owns one chart a partition. The greatest offset that was acknowledged or polled is a lower bound of the high watermark,
and all that a history knows of it; where the line goes down, the high watermark went back. Leaders are shown if the
history's clock is that of the day: other clocks begin anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tanist.lab.jepsen import svg
from tanist.spark.jobs.audit import AuditResult, HighWatermarkPoint
from tanist.spark.jobs.audit_logs import Place
from tanist.spark.jobs.audit_metadata import Change
from tanist.spark.report.rails import STYLE, WIDTH

_LEFT, _RIGHT = 128.0, 24.0
_PLOT = WIDTH - _LEFT - _RIGHT
_TOP, _HEIGHT, _FOOT = 46.0, 130.0, 40.0
_LINE, _UNCLEAN = "#0072B2", "#D00000"
_NS = 1_000_000_000
_LABEL_APART = 64.0


def chart(result: AuditResult, place: Place) -> str | None:
    """As SVG; None if the history has no times."""
    points = [each for each in result.high_watermarks if (each.topic, each.partition) == place]
    if len(points) < 2:
        return None
    changes = _in_time(result.metadata.changes.get(place, ()), points)
    first_ns = min([points[0].at_ns, *(change.wall_ms * 1_000_000 for change in changes)])
    span_ns = max(points[-1].at_ns - first_ns, 1)
    most = max(point.offset for point in points) + 1

    def x(at_ns: int) -> float:
        return _LEFT + _PLOT * min(max((at_ns - first_ns) / span_ns, 0.0), 1.0)

    def y(offset: int) -> float:
        return _TOP + _HEIGHT * (1 - offset / most)

    drawn = [*_axes(most, span_ns)]
    drawn += _leaders(changes, x)
    # A step for each moment: between two of them nothing is known.
    line = []
    for before, after in zip([None, *points], points):
        if before is not None:
            line.append((x(after.at_ns), y(before.offset + 1)))
        line.append((x(after.at_ns), y(after.offset + 1)))
    drawn.append(svg.polyline(line, fill="none", stroke=_LINE, stroke_width=2))
    return svg.document(WIDTH, _TOP + _HEIGHT + _FOOT, STYLE, drawn, f"The high watermark of {place[0]}-{place[1]}")


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


def _axes(most: int, span_ns: int) -> Iterable[str]:
    bottom = _TOP + _HEIGHT
    yield svg.line(_LEFT, bottom, WIDTH - _RIGHT, bottom, class_="axis")
    yield svg.text(_LEFT - 12, _TOP + 8, f"{most:,}", text_anchor="end", class_="small")
    yield svg.text(_LEFT - 12, bottom, "0", text_anchor="end", class_="small")
    yield svg.text(_LEFT - 12, _TOP + _HEIGHT / 2, "at least", text_anchor="end", class_="small")
    seconds = span_ns / _NS
    for part in range(5):
        x = _LEFT + _PLOT * part / 4
        anchor = "end" if part == 4 else "middle"
        yield svg.text(x, bottom + 16, f"{seconds * part / 4:.1f} s", text_anchor=anchor, class_="small")


def _leaders(changes: Sequence[Change], x: Callable[[int], float]) -> Iterable[str]:
    last_label = 0.0
    for change in changes:
        at = x(change.wall_ms * 1_000_000)
        colour = _UNCLEAN if change.unclean else "#999"
        yield svg.line(at, _TOP - 6, at, _TOP + _HEIGHT, stroke=colour, stroke_dasharray="4 3")
        if at - last_label >= _LABEL_APART:
            last_label = at
            who = f"{change.leader} leads" if change.leader >= 0 else "no leader"
            yield svg.text(at, 18, who, text_anchor="middle", class_="small")
            yield svg.text(at, 32, f"epoch {change.leader_epoch}", text_anchor="middle", class_="small")

"""How far each partition had come by when, as clients knew it, and who led meanwhile.

Owns one chart a partition. The greatest offset that was acknowledged or polled is a lower bound of the high watermark,
and all that a history knows of it; where the line goes down, the high watermark went back. Leaders are shown if the
history's clock is that of the day: other clocks begin anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from markupsafe import Markup

from tanist.client.topic_partition import TopicPartition
from tanist.lab.pages import chart
from tanist.spark.jobs.audit.metadata import Change
from tanist.spark.jobs.audit.result import AuditResult, HighWatermarkPoint

_TOP: Final = 36.0
"""Of the chart; above it are the names of leaders, which no line reaches."""
_HEIGHT: Final = 120.0
_NS: Final = 1_000_000_000
_LABELS_APART: Final = (0.2, 0.09)


def row(result: AuditResult, place: TopicPartition) -> chart.Row | None:
    """None if the history has no times."""
    points = [each for each in result.high_watermarks if (each.topic, each.partition) == place]
    if len(points) < 2:
        return None
    changes = _in_time(result.metadata.changes.get(place, ()), points)
    first_ns = min([points[0].at_ns, *(change.wall_ms * 1_000_000 for change in changes)])
    last_ns = max(points[-1].at_ns, first_ns + 1)
    most = max(point.offset for point in points) + 1
    x = partial(chart.share, first=first_ns, last=last_ns)
    # A step for each moment: between two of them nothing is known.
    known = [(x(point.at_ns), (point.offset + 1) / most) for point in points]
    bottom = _TOP + _HEIGHT
    drawn = [
        *_leaders(changes, x),
        chart.line(chart.stepped(known), _TOP, _HEIGHT, "way"),
        chart.across(bottom, "axis"),
    ]
    for part in range(5):
        kind = "wide" if part in (1, 3) else ""
        drawn.append(chart.label(part / 4, bottom + 16, f"{(last_ns - first_ns) / _NS * part / 4:.1f} s", kind))
    return chart.Row("offset", chart.strip(bottom + 22, drawn), [f"from 0 at the bottom to {most:,} at the top"])


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


def _leaders(changes: Sequence[Change], x: Callable[[float], float]) -> Iterable[Markup]:
    places = [x(change.wall_ms * 1_000_000) for change in changes]
    for change, place in zip(changes, places, strict=True):
        yield chart.upright(place, _TOP, _TOP + _HEIGHT, "unclean" if change.unclean else "election")
    unclean = {number for number, change in enumerate(changes) if change.unclean}
    for number, kind in chart.spaced(places, *_LABELS_APART, first=unclean).items():
        change = changes[number]
        who = f"{change.leader} leads" if change.leader >= 0 else "no leader"
        yield chart.label(places[number], 12, who, kind, edge=0.1)
        yield chart.label(places[number], 27, f"epoch {change.leader_epoch}", kind, edge=0.1)

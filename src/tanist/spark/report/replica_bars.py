"""Replicas as bars on an axis of offsets: the records that each holds, lacks, holds differently, has cut off and saved.

Owns the layout of one partition's picture, and the meanings of its marks. Marks differ in form and position as well as
in colour. Names stand beside the bars, so that no line crosses them. A picture has a bounded number of marks,
however many findings there are: marks that fall on the same pixels are drawn once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.lab.pages import chart
from tanist.log.salvage.manifest import Manifest
from tanist.spark.jobs.audit.findings import Finding
from tanist.spark.jobs.audit.result import AuditResult
from tanist.text import counted

_BAR: Final = 20.0
_ROW: Final = 34.0
"""A bar, and below it what was saved."""
_STEPS: Final = 1000
"""How many places a picture has."""
_TICKS: Final = 6
_NOTES_MAX: Final = 3
_LABEL_SHARE: Final = (0.16, 0.09)
"""How much of a bar an epoch's label needs where it is narrow, and where it is wide."""

MARKS: Final = {
    "lost": "acknowledged with acks=all, and lost",
    "missing": "missing below the high watermark",
    "divergent": "differs from other replicas",
    "damaged": "damaged in this replica's file",
    "saved": "cut off by this replica, and saved",
    "held a": "held by the replica",
    "held b": "held, of another leader epoch",
    "high-watermark": "high watermark",
    "unclean": "elected uncleanly",
    "election": "another leader",
    "way": "as far as clients knew",
}
"""By the class of the mark, in the order of the legend."""
_WRONG: Final = {Anomaly.MISSING: "missing", Anomaly.DIVERGENT: "divergent", Anomaly.DAMAGED: "damaged"}


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets [first, last) that a picture shows."""

    first: int
    last: int

    def x(self, offset: float) -> float:
        """Where, from 0 to 1."""
        return chart.share(offset, self.first, self.last)

    def shows(self, first: int, last: int) -> bool:
        """Whether something of [first, last) is to be seen."""
        return first < self.last and last > self.first


def whole(result: AuditResult, place: TopicPartition) -> Window:
    """From the first offset that somebody has, has saved or was promised, to the last."""
    epoch_ranges = [held for held in result.epoch_ranges if (held.topic, held.partition) == place]
    start = result.facts[place].start
    ends = [
        start + 1,
        *(held.last_offset + 1 for held in epoch_ranges),
        *(entry.to_offset for entry in saved_of(result, place)),
        *(last + 1 for _, last in _spans(result.findings, place, Anomaly.LOST_WRITE)),
    ]
    return Window(min((held.first_offset for held in epoch_ranges), default=start), max(ends))


def closer(result: AuditResult, place: TopicPartition, seen: Window) -> Window | None:
    """Around what is wrong, if that is a small part of the whole."""
    spans = _spans(result.findings, place, *Anomaly)
    if not spans:
        return None
    first, last = min(span[0] for span in spans), max(span[1] for span in spans) + 1
    margin = max(10, (last - first) // 4)
    found = Window(max(seen.first, first - margin), min(seen.last, last + margin))
    return found if found.last - found.first < 0.5 * (seen.last - seen.first) else None


def saved_of(result: AuditResult, place: TopicPartition) -> list[Manifest]:
    return [each for each in result.known.salvage if (each.topic, each.partition) == place]


def rows(result: AuditResult, place: TopicPartition, window: Window) -> list[chart.Row]:
    """The bars of one partition."""
    facts = result.facts[place]
    replicas = sorted({*facts.replicas, *(each.broker_id for each in saved_of(result, place))})
    ticks = _ticks(window)
    mark = facts.high_watermark if window.first <= facts.high_watermark <= window.last else None
    drawn = []
    if mark is not None:
        where = window.x(mark)
        text = chart.label(where, 12, f"high watermark {mark:,}", edge=0.2)
        drawn.append(chart.Row("", chart.strip(22, [text, chart.upright(where, 16, 22, "high-watermark")])))
    lost = _spans(result.findings, place, Anomaly.LOST_WRITE)
    if any(window.shows(first, last + 1) for first, last in lost):
        bar = [*_uprights(window, ticks, mark, _BAR), *_marks(window, lost, "lost")]
        drawn.append(chart.Row("acknowledged, and lost", chart.strip(_BAR, bar)))
    for replica in replicas:
        bar = [*_uprights(window, ticks, None, _ROW), *_replica_bar(result, place, replica, window, mark)]
        drawn.append(chart.Row(f"replica {replica}", chart.strip(_ROW, bar), _notes(result, place, replica, window)))
    drawn.append(chart.Row("", chart.strip(20, _axis(window, ticks)), ["offset"]))
    return drawn


def _notes(result: AuditResult, place: TopicPartition, replica: int, window: Window) -> list[str]:
    notes = ["the log that leads"] if replica == result.facts[place].reference else []
    for entry in _saved_by(result, place, replica, window):
        saved = counted(entry.to_offset - entry.from_offset, "offset", separator=",")
        notes.append(f"{saved} saved: {entry.why.value}")
    if len(notes) > _NOTES_MAX:
        notes = [*notes[: _NOTES_MAX - 1], f"and {len(notes) - _NOTES_MAX + 1} more like these"]
    return notes


def _saved_by(result: AuditResult, place: TopicPartition, replica: int, window: Window) -> Iterator[Manifest]:
    for entry in saved_of(result, place):
        if entry.broker_id == replica and window.shows(entry.from_offset, entry.to_offset):
            yield entry


def _replica_bar(
    result: AuditResult, place: TopicPartition, replica: int, window: Window, mark: int | None
) -> Iterable[Markup]:
    labels = []
    for held in result.epoch_ranges:
        if (held.topic, held.partition, held.replica) != (*place, replica):
            continue
        if not window.shows(held.first_offset, held.last_offset + 1):
            continue
        left, right = window.x(held.first_offset), window.x(held.last_offset + 1)
        shade = "ab"[held.epoch % 2]
        yield chart.bar(left, right, 0, _BAR, f"held {shade}")
        if right - left > _LABEL_SHARE[1]:
            kind = f"on {shade} halo" + ("" if right - left > _LABEL_SHARE[0] else " wide")
            labels.append(chart.label((left + right) / 2, 14.5, f"epoch {held.epoch}", kind, anchor="middle"))
    mine = [each for each in result.findings if replica in each.replicas]
    for wrong, kind in _WRONG.items():
        yield from _marks(window, _spans(mine, place, wrong), kind)
    for entry in _saved_by(result, place, replica, window):
        yield chart.bar(window.x(entry.from_offset), window.x(entry.to_offset), _BAR + 3, 9, "saved")
    if mark is not None:
        yield chart.upright(window.x(mark), 0, _ROW, "high-watermark")
    # Last, and with a rim in the bar's colour: the line of the high watermark does not go through them.
    yield from labels


def _ticks(window: Window) -> list[int]:
    step = int(chart.round_up(max(1, (window.last - window.first) // _TICKS)))
    first = -(-window.first // step) * step
    return list(range(first, window.last + 1, step))


def _axis(window: Window, ticks: Sequence[int]) -> Iterable[Markup]:
    yield chart.across(1, "axis")
    places = [window.x(offset) for offset in ticks]
    for number, kind in chart.spaced(places, 0.24, 0.11).items():
        yield chart.label(places[number], 15, f"{ticks[number]:,}", kind)


def _uprights(window: Window, ticks: Sequence[int], mark: int | None, bottom: float) -> Iterable[Markup]:
    for offset in ticks:
        yield chart.upright(window.x(offset), 0, bottom, "grid")
    if mark is not None:
        yield chart.upright(window.x(mark), 0, bottom, "high-watermark")


def _spans(findings: Sequence[Finding], place: TopicPartition, *kinds: Anomaly) -> list[tuple[int, int]]:
    return [
        (each.first_offset, each.last_offset or each.first_offset)
        for each in findings
        if (each.topic, each.partition) == place and each.kind in kinds and each.first_offset is not None
    ]


def _marks(window: Window, spans: Sequence[tuple[int, int]], kind: str) -> Iterable[Markup]:
    """Spans that would touch on the picture are one."""
    for first, last in chart.joined(spans, gap=max(1, round((window.last - window.first) / _STEPS))):
        if window.shows(first, last + 1):
            yield chart.bar(window.x(first), window.x(last + 1), 0, _BAR, kind)

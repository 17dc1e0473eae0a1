"""Replicas as bars on an axis of offsets: the records that each holds, lacks, holds differently, has cut off and saved.

Owns the layout of one partition's picture, and the legend of the marks that occur. Marks differ in form and position as
well as in colour. Names stand beside the bars, so that no line crosses them. A picture has a bounded number of marks,
however many findings there are: marks that fall on the same pixels are drawn once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.lab.jepsen import svg
from tanist.log.salvage.manifest import Manifest
from tanist.spark.jobs.audit.findings import Finding
from tanist.spark.jobs.audit.result import AuditResult
from tanist.spark.report import page
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

_MARKS: Final = {
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
_LINES: Final = ("high-watermark", "unclean", "election", "way")


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets [first, last) that a picture shows."""

    first: int
    last: int

    def x(self, offset: float) -> float:
        """Where, from 0 to 1."""
        inside = min(max(offset, self.first), self.last)
        return (inside - self.first) / max(self.last - self.first, 1)

    def shows(self, first: int, last: int) -> bool:
        """Whether something of [first, last) is to be seen."""
        return first < self.last and last > self.first


def whole(result: AuditResult, place: TopicPartition) -> Window:
    """From the first offset that somebody has, has saved or was promised, to the last."""
    epoch_ranges = [held for held in result.epoch_ranges if (held.topic, held.partition) == place]
    entries, lost = saved_of(result, place), _spans(result.findings, place, Anomaly.LOST_WRITE)
    start = result.facts[place].start
    firsts = [held.first_offset for held in epoch_ranges] or [start]
    ends = [
        start + 1,
        *(held.last_offset + 1 for held in epoch_ranges),
        *(entry.to_offset for entry in entries),
    ]
    return Window(min(firsts), max([*ends, *(last + 1 for _, last in lost)]))


def closer(result: AuditResult, place: TopicPartition, seen: Window) -> Window | None:
    """Around what is wrong, if that is a small part of the whole."""
    spans = [
        (each.first_offset, each.last_offset or each.first_offset)
        for each in result.findings
        if (each.topic, each.partition) == place and each.first_offset is not None
    ]
    if not spans:
        return None
    first, last = min(span[0] for span in spans), max(span[1] for span in spans) + 1
    margin = max(10, (last - first) // 4)
    found = Window(max(seen.first, first - margin), min(seen.last, last + margin))
    return found if found.last - found.first < 0.5 * (seen.last - seen.first) else None


def saved_of(result: AuditResult, place: TopicPartition) -> list[Manifest]:
    return [each for each in result.known.salvage if (each.topic, each.partition) == place]


def picture(result: AuditResult, place: TopicPartition, window: Window, title: str) -> str:
    """The bars of one partition."""
    facts = result.facts[place]
    replicas = sorted({*facts.replicas, *(each.broker_id for each in saved_of(result, place))})
    ticks = _ticks(window)
    mark = facts.high_watermark if window.first <= facts.high_watermark <= window.last else None
    rows = []
    if mark is not None:
        where = window.x(mark)
        text = page.label(where, 12, f"high watermark {mark:,}", edge=0.2)
        rows.append(page.row("", page.strip(22, [text, page.upright(where, 16, 22, "high-watermark")])))
    lost = _spans(result.findings, place, Anomaly.LOST_WRITE)
    if any(window.shows(first, last + 1) for first, last in lost):
        bar = [*_uprights(window, ticks, mark, _BAR), *_marks(window, lost, 0, "lost")]
        rows.append(page.row("<b>acknowledged, and lost</b>", page.strip(_BAR, bar)))
    for replica in replicas:
        drawn = [*_uprights(window, ticks, None, _ROW), *_replica_bar(result, place, replica, window, mark)]
        rows.append(page.row(_name(result, place, replica, window), page.strip(_ROW, drawn)))
    rows.append(page.row('<span class="quiet">offset</span>', page.strip(20, _axis(window, ticks))))
    return page.figure(title, rows)


def legend(drawn: str) -> str:
    """The meaning of the marks in these pictures, and of no others."""
    found = {kind for kind in _MARKS if re.search(f'class="{kind}"', drawn)}
    return f'<ul class="legend">{"".join(_entry(kind) for kind in _MARKS if kind in found)}</ul>' if found else ""


def _entry(kind: str) -> str:
    if kind in _LINES:
        level = {"y1": 1, "x1": 12, "y2": 13, "x2": 12} if kind != "way" else {"y1": 7, "x1": 0, "y2": 7, "x2": 24}
        drawn = svg.element("line", class_=kind, **level)
    else:
        drawn = svg.rectangle(1, 4 if kind == "saved" else 1, 22, 7 if kind == "saved" else 12, class_=kind)
    return f'<li data-mark="{kind}">{svg.element("svg", drawn, height=14)}{escape(_MARKS[kind])}</li>'


def _name(result: AuditResult, place: TopicPartition, replica: int, window: Window) -> str:
    notes = ["the log that leads"] if replica == result.facts[place].reference else []
    for entry in saved_of(result, place):
        if entry.broker_id == replica and window.shows(entry.from_offset, entry.to_offset):
            saved = counted(entry.to_offset - entry.from_offset, "offset", separator=",")
            notes.append(f"{saved} saved: {entry.why.value}")
    if len(notes) > _NOTES_MAX:
        notes = [*notes[: _NOTES_MAX - 1], f"and {len(notes) - _NOTES_MAX + 1} more like these"]
    return f"<b>replica {replica}</b>" + "".join(f' <span class="quiet">{escape(note)}</span>' for note in notes)


def _replica_bar(
    result: AuditResult, place: TopicPartition, replica: int, window: Window, mark: int | None
) -> Iterable[str]:
    labels = []
    for held in result.epoch_ranges:
        if (held.topic, held.partition, held.replica) != (*place, replica):
            continue
        if not window.shows(held.first_offset, held.last_offset + 1):
            continue
        left, right = window.x(held.first_offset), window.x(held.last_offset + 1)
        shade = "ab"[held.epoch % 2]
        yield page.mark(left, right, 0, _BAR, f"held {shade}")
        if right - left > _LABEL_SHARE[1]:
            kind = f"on {shade} halo" + ("" if right - left > _LABEL_SHARE[0] else " wide")
            where = page.per_cent((left + right) / 2)
            text = f"epoch {held.epoch}"
            labels.append(svg.element("text", text, x=where, y=14.5, text_anchor="middle", class_=kind))
    mine = [each for each in result.findings if replica in each.replicas]
    yield from _marks(window, _spans(mine, place, Anomaly.MISSING), 0, "missing")
    yield from _marks(window, _spans(mine, place, Anomaly.DIVERGENT), 0, "divergent")
    yield from _marks(window, _spans(mine, place, Anomaly.DAMAGED), 0, "damaged")
    for entry in saved_of(result, place):
        if entry.broker_id == replica and window.shows(entry.from_offset, entry.to_offset):
            yield page.mark(window.x(entry.from_offset), window.x(entry.to_offset), _BAR + 3, 9, "saved")
    if mark is not None:
        yield page.upright(window.x(mark), 0, _ROW, "high-watermark")
    # Last, and with a rim in the bar's colour: the line of the high watermark does not go through them.
    yield from labels


def _ticks(window: Window) -> list[int]:
    step = _step(window.last - window.first)
    first = -(-window.first // step) * step
    return list(range(first, window.last + 1, step))


def _axis(window: Window, ticks: Sequence[int]) -> Iterable[str]:
    yield svg.element("line", x1=0, y1=1, x2="100%", y2=1, class_="axis")
    places = [window.x(offset) for offset in ticks]
    for number, kind in page.spaced(places, 0.24, 0.11).items():
        yield page.label(places[number], 15, f"{ticks[number]:,}", kind=kind)


def _uprights(window: Window, ticks: Sequence[int], mark: int | None, bottom: float) -> Iterable[str]:
    for offset in ticks:
        yield page.upright(window.x(offset), 0, bottom, "grid")
    if mark is not None:
        yield page.upright(window.x(mark), 0, bottom, "high-watermark")


def _step(span: int) -> int:
    """1, 2 or 5 times a power of ten."""
    wanted = max(1, span // _TICKS)
    power: int = 10 ** (len(str(wanted)) - 1)
    return next(step * power for step in (1, 2, 5, 10) if step * power >= wanted)


def _spans(findings: Sequence[Finding], place: TopicPartition, kind: Anomaly) -> list[tuple[int, int]]:
    return [
        (each.first_offset, each.last_offset or each.first_offset)
        for each in findings
        if (each.topic, each.partition) == place and each.kind is kind and each.first_offset is not None
    ]


def _marks(window: Window, spans: Sequence[tuple[int, int]], y: float, kind: str) -> Iterable[str]:
    for first, last in _joined(window, spans):
        if window.shows(first, last + 1):
            yield page.mark(window.x(first), window.x(last + 1), y, _BAR, kind)


def _joined(window: Window, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that would touch on the picture are one."""
    pixel = max(1, round((window.last - window.first) / _STEPS))
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + pixel:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined

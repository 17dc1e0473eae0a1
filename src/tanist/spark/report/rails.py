"""Replicas as rails on an axis of offsets: what each holds, lacks, holds differently, and has cut off and saved.

Owns the layout of one partition's picture. What is wrong differs in form and place as well as in colour. A picture has
a bounded number of marks, however much is wrong: what falls on the same pixels is drawn once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tanist.lab.jepsen import svg
from tanist.log.salvage_manifest import Manifest
from tanist.spark.jobs.audit import AuditResult
from tanist.spark.jobs.audit_logs import Place
from tanist.spark.jobs.findings import Finding, Kind

WIDTH = 1120.0
_LEFT, _RIGHT = 128.0, 24.0
_PLOT = WIDTH - _LEFT - _RIGHT
_HEAD, _FOOT = 30.0, 42.0
_ROW, _BAR, _SAVED = 54.0, 20.0, 9.0
_LEAST_MARK = 2.0
_LABEL_WIDTH = 64.0
_TICKS = 6

HELD = ("#7F9DB9", "#A9BFD3")
SAVED, LOST, DIVERGENT, MISSING = "#1B8A5A", "#D00000", "#E69F00", "#D00000"
STYLE = (
    "text{font:13px system-ui,'Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;fill:#1a1a1a}"
    ".small{font-size:11.5px;fill:#555}.on{font-size:11.5px;fill:#fff}.grid{stroke:#ececec}.axis{stroke:#999}"
    ".strong{font-weight:600}"
)


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets [first, last) that a picture shows."""

    first: int
    last: int

    def x(self, offset: float) -> float:
        inside = min(max(offset, self.first), self.last)
        return _LEFT + _PLOT * (inside - self.first) / max(self.last - self.first, 1)

    def shows(self, first: int, last: int) -> bool:
        """Whether something of [first, last) is to be seen."""
        return first < self.last and last > self.first


def whole(result: AuditResult, place: Place) -> Window:
    """From the first offset that somebody has, or has saved, to the last."""
    rails = [rail for rail in result.rails if (rail.topic, rail.partition) == place]
    ends = [rail.last_offset + 1 for rail in rails]
    ends += [entry.to_offset for entry in saved_of(result, place)]
    ends += [last + 1 for _, last in _spans(result.findings, place, Kind.LOST)]
    return Window(min(rail.first_offset for rail in rails), max(ends))


def closer(result: AuditResult, place: Place, seen: Window) -> Window | None:
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


def saved_of(result: AuditResult, place: Place) -> list[Manifest]:
    return [each for each in result.known.salvage if (each.topic, each.partition) == place]


def picture(result: AuditResult, place: Place, window: Window, title: str) -> str:
    """The rails of one partition, as SVG."""
    facts = result.facts[place]
    replicas = sorted({*facts.replicas, *(each.broker_id for each in saved_of(result, place))})
    lost = _spans(result.findings, place, Kind.LOST)
    top = _HEAD + (_ROW if lost else 0.0)
    height = top + _ROW * len(replicas) + _FOOT
    drawn = [*_axis(window, height - _FOOT)]
    if lost:
        drawn += [
            svg.text(_LEFT - 12, _HEAD + 12, "acknowledged,", text_anchor="end", class_="strong"),
            svg.text(_LEFT - 12, _HEAD + 28, "and lost", text_anchor="end", class_="strong"),
        ]
        drawn += _marks(window, lost, _HEAD + 5, _BAR, LOST)
    for number, replica in enumerate(replicas):
        drawn += _rail(result, place, replica, window, top + number * _ROW)
    drawn += _high_watermark(window, facts.high_watermark, height - _FOOT)
    return svg.document(WIDTH, height, STYLE, drawn, title)


def legend() -> str:
    """What the marks mean."""
    entries = (
        (HELD[0], "held; each shade is a leader epoch", "fill"),
        (MISSING, "missing below the high watermark", "outline"),
        (DIVERGENT, "differs from other replicas", "fill"),
        (SAVED, "cut off by this replica, and saved", "fill"),
        (LOST, "acknowledged with acks=all, and in no log", "fill"),
    )
    drawn = []
    for number, (colour, what, form) in enumerate(entries):
        x, y = 4 + (WIDTH / 3) * (number % 3), 6 + 24 * (number // 3)
        style = {"fill": colour} if form == "fill" else {"fill": "#fff", "stroke": colour, "stroke_dasharray": "3 2"}
        drawn.append(svg.rectangle(x, y, 22, 12, **style))
        drawn.append(svg.text(x + 30, y + 10, what))
    return svg.document(WIDTH, 54, STYLE, drawn, "What the marks mean")


def _axis(window: Window, bottom: float) -> Iterable[str]:
    span = window.last - window.first
    step = _step(span)
    first = -(-window.first // step) * step
    ticks = list(range(first, window.last + 1, step))
    for offset in ticks:
        x = window.x(offset)
        yield svg.line(x, _HEAD - 4, x, bottom, class_="grid")
        yield svg.text(x, bottom + 16, f"{offset:,}", text_anchor="middle", class_="small")
    yield svg.line(_LEFT, bottom, WIDTH - _RIGHT, bottom, class_="axis")
    yield svg.text(WIDTH - _RIGHT, bottom + 34, "offset", text_anchor="end", class_="small")


def _step(span: int) -> int:
    """1, 2 or 5 times a power of ten."""
    wanted = max(1, span // _TICKS)
    power: int = 10 ** (len(str(wanted)) - 1)
    return next(step * power for step in (1, 2, 5, 10) if step * power >= wanted)


def _rail(result: AuditResult, place: Place, replica: int, window: Window, y: float) -> Iterable[str]:
    facts = result.facts[place]
    role = "the log that leads" if replica == facts.reference else ""
    yield svg.text(_LEFT - 12, y + 16, f"replica {replica}", text_anchor="end", class_="strong")
    if role:
        yield svg.text(_LEFT - 12, y + 31, role, text_anchor="end", class_="small")
    mine = [rail for rail in result.rails if (rail.topic, rail.partition, rail.replica) == (*place, replica)]
    for rail in mine:
        if not window.shows(rail.first_offset, rail.last_offset + 1):
            continue
        left, right = window.x(rail.first_offset), window.x(rail.last_offset + 1)
        yield svg.rectangle(left, y, max(right - left, _LEAST_MARK), _BAR, fill=HELD[rail.epoch % len(HELD)])
        if right - left > _LABEL_WIDTH:
            yield svg.text((left + right) / 2, y + 14.5, f"epoch {rail.epoch}", text_anchor="middle", class_="on")
    absent = [
        (each.first_offset, each.last_offset or each.first_offset)
        for each in result.findings
        if (each.topic, each.partition) == place
        and each.kind is Kind.MISSING
        and replica in each.replicas
        and each.first_offset is not None
    ]
    for first, last in _joined(window, absent):
        if window.shows(first, last + 1):
            left, right = window.x(first), window.x(last + 1)
            yield svg.rectangle(
                left, y, max(right - left, _LEAST_MARK), _BAR, fill="#fff", stroke=MISSING, stroke_dasharray="3 2"
            )
    differing = _spans([each for each in result.findings if replica in each.replicas], place, Kind.DIVERGENT)
    yield from _marks(window, differing, y, _BAR, DIVERGENT)
    for entry in saved_of(result, place):
        if entry.broker_id == replica and window.shows(entry.from_offset, entry.to_offset):
            left, right = window.x(entry.from_offset), window.x(entry.to_offset)
            yield svg.rectangle(left, y + _BAR + 3, max(right - left, _LEAST_MARK), _SAVED, fill=SAVED)
            told = f"{entry.to_offset - entry.from_offset:,} offsets saved: {entry.why.value}"
            # Below the mark, from the end of it that has room.
            if left < (_LEFT + WIDTH) / 2:
                yield svg.text(left, y + _BAR + 24, told, class_="small")
            else:
                yield svg.text(right, y + _BAR + 24, told, text_anchor="end", class_="small")


def _high_watermark(window: Window, offset: int, bottom: float) -> Iterable[str]:
    if not window.first <= offset <= window.last:
        return
    x = window.x(offset)
    yield svg.line(x, 16, x, bottom, stroke="#333", stroke_dasharray="5 3")
    anchor = "end" if x > WIDTH / 2 else "start"
    shift = -5 if anchor == "end" else 5
    yield svg.text(x + shift, 22, f"high watermark {offset:,}", text_anchor=anchor, class_="small")


def _spans(findings: Sequence[Finding], place: Place, kind: Kind) -> list[tuple[int, int]]:
    return [
        (each.first_offset, each.last_offset or each.first_offset)
        for each in findings
        if (each.topic, each.partition) == place and each.kind is kind and each.first_offset is not None
    ]


def _marks(window: Window, spans: Sequence[tuple[int, int]], y: float, height: float, colour: str) -> Iterable[str]:
    for first, last in _joined(window, spans):
        if window.shows(first, last + 1):
            left, right = window.x(first), window.x(last + 1)
            yield svg.rectangle(left, y, max(right - left, _LEAST_MARK), height, fill=colour)


def _joined(window: Window, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that would touch on the picture are one."""
    pixel = max(1, round((window.last - window.first) / _PLOT))
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + pixel:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined

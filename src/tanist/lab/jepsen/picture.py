"""The picture of a run: every write by its start and its latency, the throughput, and each node's faults.

Owns the layout. Acknowledged, unknown and lost writes differ in form and place as well as in colour; the
colours are Okabe and Ito's, which colour-blind people can distinguish. A run of any length gives a file of bounded
size, because points on the same spot are drawn once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from tanist.lab.pages import chart

if TYPE_CHECKING:
    from tanist.lab.jepsen.nemesis import Mark
    from tanist.lab.jepsen.outcome import Sent
    from tanist.lab.jepsen.run import JepsenResult

_WIDTH = 1200.0
_LEFT, _RIGHT = 84.0, 24.0
_PLOT = _WIDTH - _LEFT - _RIGHT
_HEAD = 96.0
_LATENCY_HEIGHT, _RATE_HEIGHT, _LANE_HEIGHT = 300.0, 130.0, 24.0
_GAP = 40.0
_FOOT = 44.0

_NS = 1_000_000_000
_FASTEST_MS, _SLOWEST_MS = 0.2, 30_000.0
_DECADES = ((1.0, "1 ms"), (10.0, "10 ms"), (100.0, "100 ms"), (1000.0, "1 s"), (10_000.0, "10 s"))
_STEPS_S = (5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200)
_TICKS_MAX = 12
_LETTER = 6.6

WRITES = {
    "write": ("acknowledged", chart.DOT, 2.0),
    "no-answer": ("no answer, or refused", chart.TRIANGLE, 6.0),
    "gone": ("acknowledged and lost", chart.CROSS, 3.0),
}
"""By the class of the mark: the meaning, the form, and how near to each other two of them are drawn as one."""


class _Time:
    """The horizontal axis."""

    def __init__(self, began_ns: int, ended_ns: int) -> None:
        self.began_ns = began_ns
        self.seconds = max(1.0, (ended_ns - began_ns) / _NS)

    def x(self, at_ns: int) -> float:
        return chart.share((at_ns - self.began_ns) / _NS, 0.0, self.seconds)

    def ticks(self) -> Iterator[tuple[float, str]]:
        step_s = next((step for step in _STEPS_S if self.seconds / step <= _TICKS_MAX), _STEPS_S[-1])
        for second in range(0, math.floor(self.seconds) + 1, step_s):
            minutes, seconds = divmod(second, 60)
            yield second / self.seconds, f"{minutes}:{seconds:02}"


def draw(result: JepsenResult, title: str) -> str:
    """The SVG document."""
    time = _Time(result.began_ns, result.ended_ns)
    nodes = sorted({mark.node_id for mark in result.marks})
    rates_top = _LATENCY_HEIGHT + _GAP
    lanes_top = rates_top + _RATE_HEIGHT + _GAP
    bottom = lanes_top + max(1, len(nodes)) * _LANE_HEIGHT
    plot = [
        *_shades(result.marks, time, rates_top + _RATE_HEIGHT),
        chart.strip(_LATENCY_HEIGHT, _latencies(result, time)),
        chart.strip(_RATE_HEIGHT, _rates(result, time), y=rates_top),
        chart.strip(bottom - lanes_top, _lanes(result.marks, nodes, time), y=lanes_top),
        chart.across(bottom, "axis"),
        chart.label(0.5, bottom + 37, "time (min:s)"),
    ]
    for x, text in time.ticks():
        plot += [chart.upright(x, bottom, bottom + 5, "axis"), chart.label(x, bottom + 19, text, anchor="middle")]
    head = [
        chart.label(0, 30, title, "strong title"),
        chart.label(0, 52, _subtitle(result)),
        chart.strip(_HEAD, _legend(result)),
    ]
    parts = [
        chart.strip(_HEAD, head, x=_LEFT, width=_PLOT),
        chart.strip(bottom + _FOOT, plot, x=_LEFT, y=_HEAD, width=_PLOT),
    ]
    return chart.document(_WIDTH, _HEAD + bottom + _FOOT, title, parts)


def _subtitle(result: JepsenResult) -> str:
    numbers = result.outcome.as_json()
    text = (
        f"{numbers['total']:,} writes, {numbers['acknowledged']:,} acknowledged, {numbers['lost']:,} of these lost, "
        f"{numbers['unexpected']:,} unexpected"
    )
    if numbers["lost_in_salvage"]:
        text += f"; {numbers['lost_in_salvage']:,} of the lost are in the salvage"
    client = "confluent-kafka" if result.settings.client == "confluent" else "tanist's client"
    return f"{text}. acks=all, idempotent, {client}; seed {result.settings.seed}"


def _legend(result: JepsenResult) -> Iterator[Markup]:
    x, y = 5.0, 76.0
    for kind, (meaning, form, _) in WRITES.items():
        yield chart.points([(x, y - 4)], form, f"{kind} sample")
        yield chart.label(0, y, meaning, dx=x + 10)
        x += 34 + _LETTER * len(meaning)
    for what in dict.fromkeys(mark.what for mark in result.marks):
        yield chart.element("rect", x=x - 5, y=y - 10, width=12.0, height=12.0, class_=_class(what))
        yield chart.label(0, y, what, dx=x + 13)
        x += 38 + _LETTER * len(what)


def _class(what: str) -> str:
    return what.replace(" ", "-")


def _shades(marks: Sequence[Mark], time: _Time, height: float) -> Iterator[Markup]:
    """Behind the charts, one shade for all faults."""
    for began_ns, ended_ns in chart.joined((mark.began_ns, mark.ended_ns) for mark in marks):
        yield chart.bar(time.x(began_ns), time.x(ended_ns), 0, height, "shade")


def _scale(y: float, text: str) -> Iterator[Markup]:
    """A line of the grid with its label to the left of the chart."""
    yield chart.across(y, "grid")
    yield chart.label(0, y + 4, text, anchor="end", dx=-8.0)


def _frame(title: str, height: float) -> Iterator[Markup]:
    """The axes of a chart, and its title beside them."""
    turned = f"translate({18 - _LEFT:.0f} {height / 2:.0f}) rotate(-90)"
    yield chart.element("text", title, text_anchor="middle", transform=turned)
    yield chart.upright(0, 0, height, "axis")
    yield chart.across(height, "axis")


def _latencies(result: JepsenResult, time: _Time) -> Iterator[Markup]:
    def y(latency_ms: float) -> float:
        bounded = max(latency_ms, _FASTEST_MS)
        return _LATENCY_HEIGHT * (1 - chart.share(*map(math.log10, (bounded, _FASTEST_MS, _SLOWEST_MS))))

    for latency_ms, text in _DECADES:
        yield from _scale(y(latency_ms), text)
    lost = {(sent.partition, sent.value) for sent in result.outcome.lost}

    def kind(key: tuple[str, str], sent: Sent) -> str:
        return "no-answer" if sent.outcome != "ok" else "gone" if key in lost else "write"

    places: dict[str, list[chart.Point]] = {each: [] for each in WRITES}
    for key, sent in result.outcome.sends.items():
        ended_ns = sent.ended_ns or max(sent.invoked_ns, result.ended_ns)
        spot = _PLOT * time.x(sent.invoked_ns), y((ended_ns - sent.invoked_ns) / 1e6)
        places[kind(key, sent)].append(spot)
    for each, (_, form, grid) in WRITES.items():
        yield chart.points(chart.thinned(places[each], grid), form, each)
    yield from _frame("latency of writes (log)", _LATENCY_HEIGHT)


def _rates(result: JepsenResult, time: _Time) -> Iterator[Markup]:
    slots = min(300, max(1, math.ceil(time.seconds)))
    slot_s = time.seconds / slots

    def rates(sends: Iterable[Sent]) -> list[float]:
        counts = Counter(int((sent.ended_ns - time.began_ns) / _NS / slot_s) for sent in sends)
        return [counts[slot] / slot_s for slot in range(slots)]

    acknowledged = rates(sent for sent in result.outcome.sends.values() if sent.outcome == "ok")
    lost = rates(result.outcome.lost)
    highest = chart.round_up(max([1.0, *acknowledged]), chart.EVEN)
    for part in (0.0, 0.5, 1.0):
        text = f"{highest * part:,.0f}" if highest >= 2 else f"{highest * part:.1f}"
        yield from _scale(_RATE_HEIGHT * (1 - part), text)
    for kind, values in (("area", acknowledged), ("area bad", lost)):
        if any(values) or kind == "area":
            heights = [(slot / slots, rate / highest) for slot, rate in enumerate([*values, values[-1]])]
            yield chart.line([(0.0, 0.0), *chart.stepped(heights), (1.0, 0.0)], 0, _RATE_HEIGHT, kind)
    yield from _frame("writes/s", _RATE_HEIGHT)


def _lanes(marks: Sequence[Mark], nodes: Sequence[int], time: _Time) -> Iterator[Markup]:
    if not nodes:
        yield chart.label(0.5, 16, "no faults")
    for row, node_id in enumerate(nodes):
        y = row * _LANE_HEIGHT
        yield from _scale(y + _LANE_HEIGHT / 2, f"node {node_id}")
        for mark in marks:
            if mark.node_id != node_id:
                continue
            x, end = time.x(mark.began_ns), time.x(mark.ended_ns)
            yield chart.bar(x, end, y + 3, _LANE_HEIGHT - 6, _class(mark.what), rx=2.0)
            if _PLOT * (end - x) > 8.0 * len(mark.what) + 4:
                yield chart.label((x + end) / 2, y + 16, mark.what, "on band", anchor="middle")

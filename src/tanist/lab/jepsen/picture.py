"""The picture of a run: every write by its start and its latency, the throughput, and each node's faults.

Owns the layout and the marks. Acknowledged, unknown and lost writes differ in form and place as well as in colour; the
colours are Okabe and Ito's, which colour-blind people can distinguish. A run of any length gives a file of bounded
size, because points on the same spot are drawn once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tanist.lab.jepsen import svg

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
_GRID = 2.0
"""Points nearer to each other than this are drawn as one."""

_NS = 1_000_000_000
_FASTEST_MS, _SLOWEST_MS = 0.2, 30_000.0
_DECADES = ((1.0, "1 ms"), (10.0, "10 ms"), (100.0, "100 ms"), (1000.0, "1 s"), (10_000.0, "10 s"))
_STEPS_S = (5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200)
_TICKS_MAX = 12

OK, UNKNOWN, LOST = "#0072B2", "#E69F00", "#D00000"
_BANDS = {"down": "#555555", "paused": "#CC79A7", "cut off": "#009E73", "slow": "#56B4E9", "bad disk": "#8C510A"}
_STYLE = (
    "text{font:13px system-ui,'Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;fill:#1a1a1a}"
    ".title{font-size:18px;font-weight:600}.small{font-size:12px;fill:#444}.grid{stroke:#e3e3e3}.axis{stroke:#777}"
    ".on{fill:#fff;font-size:11px;font-weight:600}"
)


class _Time:
    """The horizontal axis."""

    def __init__(self, began_ns: int, ended_ns: int) -> None:
        self.began_ns = began_ns
        self.seconds = max(1.0, (ended_ns - began_ns) / _NS)

    def x(self, at_ns: int) -> float:
        return self.at(min(max((at_ns - self.began_ns) / _NS, 0.0), self.seconds))

    def at(self, second: float) -> float:
        return _LEFT + _PLOT * second / self.seconds

    def ticks(self) -> Iterator[tuple[float, str]]:
        step_s = next((step for step in _STEPS_S if self.seconds / step <= _TICKS_MAX), _STEPS_S[-1])
        for second in range(0, math.floor(self.seconds) + 1, step_s):
            minutes, seconds = divmod(second, 60)
            yield self.at(second), f"{minutes}:{seconds:02}"


def draw(result: JepsenResult, title: str) -> str:
    """The SVG document."""
    time = _Time(result.began_ns, result.ended_ns)
    nodes = sorted({mark.node_id for mark in result.marks})
    latency_top = _HEAD
    rate_top = latency_top + _LATENCY_HEIGHT + _GAP
    lanes_top = rate_top + _RATE_HEIGHT + _GAP
    bottom = lanes_top + max(1, len(nodes)) * _LANE_HEIGHT
    parts = [
        svg.rectangle(0, 0, _WIDTH, bottom + _FOOT, fill="#fff"),
        svg.text(_LEFT, 30, title, class_="title"),
        svg.text(_LEFT, 52, _subtitle(result), class_="small"),
        *_legend(result),
        *_bands(result.marks, time, latency_top, rate_top + _RATE_HEIGHT),
        *_latencies(result, time, latency_top),
        *_rates(result, time, rate_top),
        *_lanes(result.marks, nodes, time, lanes_top),
    ]
    for x, label in time.ticks():
        parts.append(svg.line(x, bottom, x, bottom + 5, class_="axis"))
        parts.append(svg.text(x, bottom + 19, label, class_="small", text_anchor="middle"))
    parts.append(svg.line(_LEFT, bottom, _LEFT + _PLOT, bottom, class_="axis"))
    parts.append(svg.text(_LEFT + _PLOT / 2, bottom + 37, "time (min:s)", class_="small", text_anchor="middle"))
    return svg.document(_WIDTH, bottom + _FOOT, _STYLE, parts, title)


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


def _legend(result: JepsenResult) -> Iterator[str]:
    x, y = _LEFT, 76.0
    kinds = dict.fromkeys(mark.what for mark in result.marks)
    at = x + 5
    for label, drawn in (
        ("acknowledged", _spot),
        ("no answer, or refused", _triangle),
        ("acknowledged and lost", _cross),
    ):
        yield drawn(at, y - 4)
        yield svg.text(at + 10, y, label, class_="small")
        at += 34 + 6.6 * len(label)
    x = at - 5
    for what in kinds:
        yield svg.rectangle(x, y - 10, 12, 12, fill=_BANDS[what], opacity="0.8")
        yield svg.text(x + 18, y, what, class_="small")
        x += 38 + 6.6 * len(what)


def _spot(x: float, y: float) -> str:
    return svg.element("circle", cx=x, cy=y, r=3.5, fill=OK)


def _cross(x: float, y: float) -> str:
    return svg.crosses([(x, y)], 4, stroke=LOST, stroke_width="2", fill="none")


def _triangle(x: float, y: float) -> str:
    return svg.element("path", d=f"M{svg.number(x - 4)} {svg.number(y + 3)}l4 -7l4 7z", fill=UNKNOWN)


def _bands(marks: Sequence[Mark], time: _Time, top: float, bottom: float) -> Iterator[str]:
    """Over the charts, one shade for all faults."""
    for began_ns, ended_ns in _united([(mark.began_ns, mark.ended_ns) for mark in marks]):
        x = time.x(began_ns)
        width = max(1.0, time.x(ended_ns) - x)
        yield svg.rectangle(x, top, width, bottom - top, fill="#000", opacity="0.055")


def _united(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap as one."""
    found: list[tuple[int, int]] = []
    for began, ended in sorted(spans):
        if found and began <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], ended))
        else:
            found.append((began, ended))
    return found


# -- latency


def _latency_y(top: float) -> Callable[[float], float]:
    span = math.log10(_SLOWEST_MS / _FASTEST_MS)

    def y(latency_ms: float) -> float:
        bounded = min(max(latency_ms, _FASTEST_MS), _SLOWEST_MS)
        return top + _LATENCY_HEIGHT * (1 - math.log10(bounded / _FASTEST_MS) / span)

    return y


def _latencies(result: JepsenResult, time: _Time, top: float) -> Iterator[str]:
    y = _latency_y(top)
    for latency_ms, label in _DECADES:
        yield svg.line(_LEFT, y(latency_ms), _LEFT + _PLOT, y(latency_ms), class_="grid")
        yield svg.text(_LEFT - 8, y(latency_ms) + 4, label, class_="small", text_anchor="end")
    yield _axis_title("latency of writes (log)", top + _LATENCY_HEIGHT / 2)
    lost = {(sent.partition, sent.value) for sent in result.outcome.lost}

    def spot(sent: Sent) -> tuple[float, float]:
        ended_ns = sent.ended_ns or max(sent.invoked_ns, result.ended_ns)
        return time.x(sent.invoked_ns), y((ended_ns - sent.invoked_ns) / 1e6)

    sends = result.outcome.sends
    sound = _thinned(spot(sent) for key, sent in sends.items() if sent.outcome == "ok" and key not in lost)
    yield svg.dots(sound, stroke=OK, stroke_width="2.2", stroke_linecap="round", opacity="0.55")
    for x, at in _thinned((spot(sent) for sent in sends.values() if sent.outcome != "ok"), 6.0):
        yield _triangle(x, at)
    gone = _thinned((spot(sends[key]) for key in lost), 3.0)
    yield svg.crosses(gone, 2.5, stroke=LOST, stroke_width="1.4", fill="none")
    yield svg.line(_LEFT, top, _LEFT, top + _LATENCY_HEIGHT, class_="axis")
    yield svg.line(_LEFT, top + _LATENCY_HEIGHT, _LEFT + _PLOT, top + _LATENCY_HEIGHT, class_="axis")


def _thinned(points: Iterable[tuple[float, float]], grid: float = _GRID) -> list[tuple[float, float]]:
    """One point for each spot of the grid, in its middle, so the drawing does not grow with the run."""
    spots = {(round(x / grid), round(y / grid)) for x, y in points}
    return [(x * grid, y * grid) for x, y in sorted(spots)]


def _axis_title(content: str, middle: float) -> str:
    turned = f"rotate(-90 18 {svg.number(middle)})"
    return svg.text(18, middle, content, class_="small", text_anchor="middle", transform=turned)


# -- throughput


def _rates(result: JepsenResult, time: _Time, top: float) -> Iterator[str]:
    slots = min(300, max(1, math.ceil(time.seconds)))
    slot_s = time.seconds / slots

    def counted(times: Iterable[tuple[int, int]]) -> list[float]:
        counts: Counter[int] = Counter()
        for at_ns, count in times:
            slot = int((at_ns - time.began_ns) / _NS / slot_s)
            if 0 <= slot < slots:
                counts[slot] += count
        return [counts[slot] / slot_s for slot in range(slots)]

    sends = result.outcome.sends.values()
    acknowledged = counted((sent.ended_ns, 1) for sent in sends if sent.outcome == "ok")
    lost = counted((sent.ended_ns, 1) for sent in result.outcome.lost)
    highest = _round_up(max([1.0, *acknowledged]))

    def y(rate: float) -> float:
        return top + _RATE_HEIGHT * (1 - rate / highest)

    for share in (0.0, 0.5, 1.0):
        yield svg.line(_LEFT, y(highest * share), _LEFT + _PLOT, y(highest * share), class_="grid")
        label = f"{highest * share:,.0f}" if highest >= 2 else f"{highest * share:.1f}"
        yield svg.text(_LEFT - 8, y(highest * share) + 4, label, class_="small", text_anchor="end")
    yield _axis_title("writes/s", top + _RATE_HEIGHT / 2)
    yield _area(acknowledged, time, slot_s, y, OK, "0.22")
    if any(lost):
        yield _area(lost, time, slot_s, y, LOST, "0.55")
    yield svg.line(_LEFT, top, _LEFT, top + _RATE_HEIGHT, class_="axis")
    yield svg.line(_LEFT, top + _RATE_HEIGHT, _LEFT + _PLOT, top + _RATE_HEIGHT, class_="axis")


def _area(
    rates: Sequence[float], time: _Time, slot_s: float, y: Callable[[float], float], colour: str, opacity: str
) -> str:
    outline = [(time.at(slot * slot_s), y(0.0)) for slot in (0,)]
    for slot, rate in enumerate(rates):
        outline += [(time.at(slot * slot_s), y(rate)), (time.at((slot + 1) * slot_s), y(rate))]
    outline.append((time.at(len(rates) * slot_s), y(0.0)))
    return svg.polyline(outline, fill=colour, fill_opacity=opacity, stroke=colour, stroke_width="1")


def _round_up(value: float) -> float:
    """To 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= value)


# -- nodes


def _lanes(marks: Sequence[Mark], nodes: Sequence[int], time: _Time, top: float) -> Iterator[str]:
    if not nodes:
        yield svg.text(_LEFT + _PLOT / 2, top + 16, "no faults", class_="small", text_anchor="middle")
    for row, node_id in enumerate(nodes):
        y = top + row * _LANE_HEIGHT
        yield svg.text(_LEFT - 8, y + 16, f"node {node_id}", class_="small", text_anchor="end")
        yield svg.line(_LEFT, y + _LANE_HEIGHT / 2, _LEFT + _PLOT, y + _LANE_HEIGHT / 2, class_="grid")
        for mark in marks:
            if mark.node_id != node_id:
                continue
            x = time.x(mark.began_ns)
            width = max(2.0, time.x(mark.ended_ns) - x)
            yield svg.rectangle(x, y + 3, width, _LANE_HEIGHT - 6, rx="2", fill=_BANDS[mark.what], opacity="0.9")
            if width > 8.0 * len(mark.what) + 4:
                yield svg.text(x + width / 2, y + 16, mark.what, class_="on", text_anchor="middle")

"""The durability job's report: how likely each setting loses records, or is unavailable, with intervals.

Owns one chart of two panels on one scale, so that a length means the same in both, and a table. No script, and nothing
from elsewhere. The chart is a file of its own for the docs, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from tanist.lab.jepsen import svg
from tanist.spark.jobs.durability import OUTAGE_MS, DurabilityResult, Estimate, Row
from tanist.spark.report import page as html
from tanist.text import counted

_PANELS: Final = (
    (0.01, 0.47, "runs that lost acknowledged records", "loss"),
    (0.53, 0.99, "runs with an outage", "outage"),
)
_TOP, _ROW, _FOOT = 30.0, 42.0, 26.0
_PICTURE_PX: Final = 880


def write_page(path: Path, result: DurabilityResult, replays: Iterable[Path] = ()) -> None:
    path.write_text(page(result, replays), encoding="utf-8")


def page(result: DurabilityResult, replays: Iterable[Path] = ()) -> str:
    return html.page("Durability", _body(result, list(replays)))


def _body(result: DurabilityResult, replays: list[Path]) -> Iterable[str]:
    fault_profile = result.fault_profile
    low_ms, high_ms = fault_profile.pause_ms
    seeds, settings = counted(len(result.seeds), "seed", separator=","), counted(len(result.rows), "setting")
    yield "<h1>What survives</h1>"
    yield (
        f'<p class="quiet">{seeds} of the simulator in each of {settings}: a '
        f"cluster of whole nodes, {fault_profile.load_ms / 1000:g} s of load with acks=all, a fault every "
        f"{low_ms / 1000:g} to {high_ms / 1000:g} s ({escape(', '.join(fault_profile.kinds))}), up to "
        f"{counted(fault_profile.down_max, 'broker')} down at once. "
        "Every setting meets the same seeds. The probabilities are of such a run: they tell settings apart, and "
        "forecast nothing.</p>"
    )
    for setting in result.unjudged:
        yield f'<p class="bad">{escape(str(setting))}: no record was acknowledged, so none could be lost.</p>'
    yield chart(result.rows)
    yield html.table(
        ("Setting", "#Runs", "Lost records", "#Records lost", "#Acknowledged", "Unavailable", "#Time unavailable"),
        [
            (
                escape(str(row.setting)),
                f"{row.loss.runs:,}",
                escape(str(row.loss)),
                f"{row.lost:,}",
                f"{row.acknowledged:,}",
                escape(str(row.outage)),
                f"{100 * row.outage_share:.1f} %",
            )
            for row in result.rows
        ],
    )
    yield (
        '<p class="quiet">In brackets: Wilson\'s interval at 95 %. An outage: a partition acknowledged nothing for '
        f"{OUTAGE_MS / 1000:g} s or more.</p>"
    )
    for row in result.rows:
        if row.losing_seeds:
            seeds = ", ".join(map(str, row.losing_seeds))
            yield f"<p>{escape(str(row.setting))} lost records with the seeds {seeds}.</p>"
        for seed, violation in row.violations.items():
            yield f'<p class="bad">{escape(str(row.setting))}, seed {seed}: {escape(violation)}</p>'
    if replays:
        replay = ", ".join(f"<code>tanist lab replay {escape(str(each))}</code>" for each in replays)
        yield f"<p>To see how: {replay}</p>"


def chart(rows: Sequence[Row], *, alone: bool = False) -> str:
    """Two panels of intervals on one scale. `alone`: a file of its own, of a fixed size and with its own style."""
    height = _TOP + _ROW * len(rows) + _FOOT
    most = _scale(max(each.interval[1] for row in rows for each in (row.loss, row.outage)))
    drawn: list[str] = []
    for left, right, title, kind in _PANELS:
        drawn.append(_text(left, 14, title, "strong", "start"))
        for part in range(5):
            share = left + (right - left) * part / 4
            # Between the names of the settings, not through them.
            for number in range(len(rows)):
                y = _TOP + number * _ROW
                drawn.append(html.upright(share, y + 18, y + _ROW - 2, "grid"))
            label = "wide" if part in (1, 3) else ""
            anchor = ("start", "middle", "middle", "middle", "end")[part]
            drawn.append(_text(share, height - 8, f"{100 * most * part / 4:g} %", label, anchor))
        for number, row in enumerate(rows):
            y = _TOP + number * _ROW
            drawn.append(_text(left, y + 12, str(row.setting), "", "start"))
            estimate = row.loss if kind == "loss" else row.outage
            drawn += _bar(left, right, y + 29, estimate, most, kind)
    title = "How likely each setting loses records or is unavailable"
    if alone:
        style = f"{html.COLOURS}{html.MARKS}"
        paper = svg.element("rect", width="100%", height="100%", fill="var(--paper)")
        return svg.document(_PICTURE_PX, height, style, [paper, *drawn], title)
    return html.figure(title, [html.strip(height, drawn)])


def _text(share: float, y: float, content: str, kind: str, anchor: str) -> str:
    more = {"class_": kind} if kind else {}
    return svg.element("text", escape(content), x=html.per_cent(share), y=y, text_anchor=anchor, **more)


def _bar(left: float, right: float, y: float, estimate: Estimate, most: float, kind: str) -> Iterable[str]:
    def x(share: float) -> str:
        return html.per_cent(left + (right - left) * share / most)

    low, high = map(x, estimate.interval)
    yield svg.element("line", x1=low, y1=y, x2=high, y2=y, stroke_width=3, class_=kind)
    for end in (low, high):
        yield svg.element("line", x1=end, y1=y - 5, x2=end, y2=y + 5, stroke_width=2, class_=kind)
    yield svg.element("circle", cx=x(estimate.share), cy=y, r=5.0, class_=kind)


def _scale(most: float) -> float:
    """The end of the axes: a round number of per cent that divides by four."""
    steps = (0.004, 0.008, 0.02, 0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 0.8)
    return next((step for step in steps if step >= most), 1.0)

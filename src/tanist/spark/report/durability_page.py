"""The durability job's report: how likely each setting loses records, or is unavailable, with intervals.

Owns one chart of two columns and a table. No script, and nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from tanist.lab.jepsen import svg
from tanist.spark.jobs.durability import OUTAGE_MS, DurabilityResult, Estimate, Row
from tanist.spark.report.audit_page import STYLE, table
from tanist.spark.report.rails import STYLE as SVG_STYLE

_WIDTH, _LEFT, _GAP, _RIGHT = 1120.0, 210.0, 70.0, 30.0
_PLOT = (_WIDTH - _LEFT - _GAP - _RIGHT) / 2
_TOP, _ROW, _FOOT = 46.0, 30.0, 36.0
_LOSS, _OUTAGE = "#D00000", "#E69F00"


def write_page(path: Path, result: DurabilityResult, replays: Iterable[Path] = ()) -> None:
    path.write_text(page(result, replays), encoding="utf-8")


def page(result: DurabilityResult, replays: Iterable[Path] = ()) -> str:
    body = "\n".join(_body(result, list(replays)))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f"<title>Durability</title>\n<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _body(result: DurabilityResult, replays: list[Path]) -> Iterable[str]:
    weather = result.weather
    low_ms, high_ms = weather.pause_ms
    yield "<h1>What survives</h1>"
    yield (
        f'<p class="quiet">{len(result.seeds):,} seeds of the simulator in each of {len(result.rows)} settings: a '
        f"cluster of whole nodes, {weather.load_ms / 1000:g} s of load with acks=all, a fault every {low_ms / 1000:g} "
        f"to {high_ms / 1000:g} s ({escape(', '.join(weather.kinds))}), up to {weather.down_max} brokers down at once. "
        "Every setting meets the same seeds. The probabilities are of such a run: they tell settings apart, and "
        "forecast nothing.</p>"
    )
    yield chart(result.rows)
    yield table(
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
        f'<p class="quiet">In brackets: Wilson\'s interval at 95 %. Unavailable: a partition acknowledged nothing for '
        f"{OUTAGE_MS / 1000:g} s or more.</p>"
    )
    for row in result.rows:
        if row.losing_seeds:
            seeds = ", ".join(map(str, row.losing_seeds))
            yield f"<p>{escape(str(row.setting))} lost records with the seeds {seeds}.</p>"
        for seed, violation in row.violations.items():
            yield f'<p class="bad">{escape(str(row.setting))}, seed {seed}: {escape(violation)}</p>'
    if replays:
        yield "<p>To see how: " + ", ".join(f"<code>tanist lab replay {escape(str(each))}</code>" for each in replays)


def chart(rows: list[Row]) -> str:
    """Two columns of intervals: losing acknowledged records, being unavailable."""
    height = _TOP + _ROW * len(rows) + _FOOT
    drawn: list[str] = []
    second = _LEFT + _PLOT + _GAP
    for left, title, estimates, colour in (
        (_LEFT, "lost acknowledged records", [row.loss for row in rows], _LOSS),
        (second, "was unavailable", [row.outage for row in rows], _OUTAGE),
    ):
        most = _scale(max(estimate.interval[1] for estimate in estimates))
        drawn.append(svg.text(left, 18, f"Runs in which the cluster {title}", class_="strong"))
        for part in range(5):
            x = left + _PLOT * part / 4
            drawn.append(svg.line(x, _TOP - 8, x, height - _FOOT, class_="grid"))
            drawn.append(
                svg.text(x, height - _FOOT + 18, f"{100 * most * part / 4:g} %", text_anchor="middle", class_="small")
            )
        for number, estimate in enumerate(estimates):
            drawn += _bar(left, _TOP + number * _ROW + _ROW / 2, estimate, most, colour)
    for number, row in enumerate(rows):
        drawn.append(svg.text(_LEFT - 14, _TOP + number * _ROW + _ROW / 2 + 4, str(row.setting), text_anchor="end"))
    return svg.document(_WIDTH, height, SVG_STYLE, drawn, "How likely each setting loses records or is unavailable")


def _bar(left: float, y: float, estimate: Estimate, most: float, colour: str) -> Iterable[str]:
    low, high = (left + _PLOT * each / most for each in estimate.interval)
    yield svg.line(low, y, high, y, stroke=colour, stroke_width=3)
    for end in (low, high):
        yield svg.line(end, y - 5, end, y + 5, stroke=colour, stroke_width=2)
    yield svg.element("circle", cx=left + _PLOT * estimate.share / most, cy=y, r=5.0, fill=colour)


def _scale(most: float) -> float:
    """The end of an axis: a round number of per cent that divides by four."""
    steps = (0.004, 0.008, 0.02, 0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 0.8)
    return next((step for step in steps if step >= most), 1.0)

"""The durability job's report: how likely each setting loses records, or is unavailable, with intervals.

Owns the chart: two panels on one scale, so that a length means the same in both. It is a file of its own for the docs,
too. durability.html has the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from markupsafe import Markup

from tanist.lab.pages import chart as marks
from tanist.lab.pages import templates
from tanist.spark.jobs.durability import OUTAGE_MS, DurabilityResult, Estimate, Row

TITLE: Final = "How likely each setting loses records or is unavailable"
_PANELS: Final = (
    (0.01, 0.47, "runs that lost records", "loss"),
    (0.53, 0.99, "runs with an outage", "outage"),
)
_TOP, _ROW, _FOOT = 30.0, 42.0, 26.0
_PICTURE_PX: Final = 880


def write_page(path: Path, result: DurabilityResult, replays: Iterable[Path] = ()) -> None:
    path.write_text(page(result, replays), encoding="utf-8")


def page(result: DurabilityResult, replays: Iterable[Path] = ()) -> str:
    rows = [
        (
            str(row.setting), row.loss.runs, str(row.loss), row.lost, row.acknowledged, str(row.outage),
            f"{100 * row.outage_share:.1f} %",
        )
        for row in result.rows
    ]  # fmt: skip
    return templates.render(
        "spark/report/durability.html",
        title="Durability",
        chart_title=TITLE,
        chart=marks.strip(_height(result.rows), _drawn(result.rows)),
        result=result,
        rows=rows,
        replays=list(replays),
        outage_s=OUTAGE_MS / 1000,
    )


def picture(rows: Sequence[Row]) -> str:
    """The chart as a file of its own."""
    return marks.document(_PICTURE_PX, _height(rows), TITLE, _drawn(rows))


def _height(rows: Sequence[Row]) -> float:
    return _TOP + _ROW * len(rows) + _FOOT


def _drawn(rows: Sequence[Row]) -> Iterable[Markup]:
    # The end of the axes: a share that divides by four.
    most = min(
        1.0, marks.round_up(max(each.interval[1] for row in rows for each in (row.loss, row.outage)), marks.EVEN)
    )
    for left, right, title, kind in _PANELS:
        yield marks.label(left, 14, title, "strong", anchor="start")
        for part in range(5):
            x = left + (right - left) * part / 4
            # Between the names of the settings, not through them.
            for number in range(len(rows)):
                y = _TOP + number * _ROW
                yield marks.upright(x, y + 18, y + _ROW - 2, "grid")
            anchor = ("start", "middle", "middle", "middle", "end")[part]
            text = f"{100 * most * part / 4:g} %"
            yield marks.label(x, _height(rows) - 8, text, "wide" if part in (1, 3) else "", anchor=anchor)
        for number, row in enumerate(rows):
            y = _TOP + number * _ROW
            yield marks.label(left, y + 12, str(row.setting), anchor="start")
            estimate = row.loss if kind == "loss" else row.outage
            yield from _interval(left, (right - left) / most, y + 29, estimate, kind)


def _interval(left: float, scale: float, y: float, estimate: Estimate, kind: str) -> Iterable[Markup]:
    low, high = (left + scale * each for each in estimate.interval)
    yield marks.across(y, f"{kind} interval", low, high)
    for end in (low, high):
        yield marks.upright(end, y - 5, y + 5, f"{kind} end")
    x = marks.per_cent(left + scale * estimate.share)
    yield marks.element("circle", cx=x, cy=y, r=5.0, class_=kind)

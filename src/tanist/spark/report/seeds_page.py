"""The report of a table of seeds: the growth of coverage, what has never happened, violations, cost, and the settings.

Owns the charts. That of the settings has two panels on one scale, so that a length means the same in both; it is a file
of its own for the docs, too. seeds.html has the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log10
from pathlib import Path
from typing import Final

from markupsafe import Markup

from tanist.lab.pages import chart as marks
from tanist.lab.pages import templates
from tanist.lab.simulation.properties import meaning
from tanist.spark.jobs.seeds.job import OUTAGE_MS
from tanist.spark.jobs.seeds.lots import SETTINGS
from tanist.spark.jobs.seeds.summary import Estimate, Summary
from tanist.spark.jobs.seeds.table import SeedTable
from tanist.text import counted

TITLE: Final = "How likely each setting loses records or is unavailable"
_PANELS: Final = (
    (0.01, 0.47, "runs that lost records", "loss"),
    (0.53, 0.99, "runs with an outage", "outage"),
)
_TOP, _ROW, _FOOT = 30.0, 42.0, 26.0
_GROWTH = 110.0
_PICTURE_PX: Final = 880


def write_page(path: Path, table: SeedTable, found: Sequence[Summary]) -> None:
    path.write_text(page(table, found), encoding="utf-8")


def page(table: SeedTable, found: Sequence[Summary]) -> str:
    settings = [each for each in found if each.lot.kind == SETTINGS]
    kinds = [each for each in found if each.lot.kind != SETTINGS]
    return templates.render(
        "spark/report/seeds.html",
        title="Seeds",
        code=table.code,
        seeds=sum(each.seeds for each in found),
        violating=sum(each.violating for each in found),
        costs=[_cost(each) for each in found],
        violations=[
            (each.property_id, each.seeds, summary.lot.name, str(each.first_seed), meaning(each.property_id), each.text)
            for summary in found
            for each in summary.violations
        ],
        growth=[_grown(each) for each in kinds],
        never=[(each.lot.name, list(each.never.items())) for each in kinds if each.never],
        settings=settings,
        profiles=list(dict.fromkeys(each.lot.profile for each in settings)),
        scenarios=[path for each in found for path in each.scenarios(table)],
        chart_title=TITLE,
        chart=marks.strip(_height(settings), _drawn(settings)) if settings else "",
        rows=[
            (
                each.lot.name, each.seeds, str(each.loss), each.lost, each.acknowledged, str(each.outage),
                f"{100 * each.outage_share:.1f} %",
            )
            for each in settings
        ],
        outage_s=OUTAGE_MS / 1000,
    )  # fmt: skip


def _cost(each: Summary) -> tuple[object, ...]:
    return (
        each.lot.name, each.seeds, each.violating, each.events, f"{each.events_per_s:,.0f}",
        f"{each.virtual_ms / 3_600_000:,.2f}", f"{each.core_hours:.2f}",
    )  # fmt: skip


def _grown(summary: Summary) -> marks.Row:
    """Over the logarithm of the seeds, for most situations are reached by the first hundred."""
    most = max(log10(summary.seeds), 1.0)
    places = marks.stepped([(log10(seeds) / most, reached / summary.expected) for seeds, reached in summary.growth])
    powers = range(int(most) + 1)

    def drawn() -> Iterable[Markup]:
        for power in powers:
            x = power / most
            yield marks.upright(x, 4, _GROWTH, "grid")
            yield marks.label(x, _GROWTH + 18, f"{10**power:,}")
        yield marks.across(4, "grid")
        yield marks.label(0, 18, f"{summary.expected:,}")
        yield marks.across(_GROWTH, "axis")
        yield marks.line(places, 4, _GROWTH - 4, "way")

    notes = (
        f"{summary.situations:,} of {counted(summary.expected, 'situation')}",
        counted(summary.seeds, "seed", separator=","),
    )
    return marks.Row(summary.lot.name, marks.strip(_GROWTH + _FOOT, drawn()), notes)


def picture(settings: Sequence[Summary]) -> str:
    """The chart of the settings as a file of its own."""
    return marks.document(_PICTURE_PX, _height(settings), TITLE, _drawn(settings))


def _height(settings: Sequence[Summary]) -> float:
    return _TOP + _ROW * len(settings) + _FOOT


def _drawn(settings: Sequence[Summary]) -> Iterable[Markup]:
    # The end of the axes: a share that divides by four.
    widest = max(each.interval[1] for row in settings for each in (row.loss, row.outage))
    most = min(1.0, marks.round_up(widest, marks.EVEN))
    for left, right, title, kind in _PANELS:
        yield marks.label(left, 14, title, "strong", anchor="start")
        for part in range(5):
            x = left + (right - left) * part / 4
            # Between the names of the settings, not through them.
            for number in range(len(settings)):
                y = _TOP + number * _ROW
                yield marks.upright(x, y + 18, y + _ROW - 2, "grid")
            anchor = ("start", "middle", "middle", "middle", "end")[part]
            text = f"{100 * most * part / 4:g} %"
            yield marks.label(x, _height(settings) - 8, text, "wide" if part in (1, 3) else "", anchor=anchor)
        for number, row in enumerate(settings):
            y = _TOP + number * _ROW
            yield marks.label(left, y + 12, row.lot.name, anchor="start")
            estimate = row.loss if kind == "loss" else row.outage
            yield from _interval(left, (right - left) / most, y + 29, estimate, kind)


def _interval(left: float, scale: float, y: float, estimate: Estimate, kind: str) -> Iterable[Markup]:
    low, high = (left + scale * each for each in estimate.interval)
    yield marks.across(y, f"{kind} interval", low, high)
    for end in (low, high):
        yield marks.upright(end, y - 5, y + 5, f"{kind} end")
    x = marks.per_cent(left + scale * estimate.share)
    yield marks.element("circle", cx=x, cy=y, r=5.0, class_=kind)

"""`tanist lab report`: fresh seeds, what they reached, and the rules that were broken, as a page."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tanist import __version__, installed
from tanist.cli.lab.run import draw
from tanist.cli.options import json_option
from tanist.cli.output.lines import say
from tanist.cli.output.progress import Progress, announce
from tanist.cli.output.tables import print_json
from tanist.text import counted

if TYPE_CHECKING:
    from tanist.lab.mutations.examination import Row
    from tanist.lab.report.facts import Facts, Played
    from tanist.lab.simulation.running import Terms

EXIT_FAILED = 1
_SECONDS_EACH = 0.7
_MUTATION_SECONDS = 3.0
_MUTATION_SEEDS = range(1, 101)
_GROUPS_OF = 4
"""One seed of groups for so many of clusters."""


@click.command("report")
@click.option("--draw", "count", type=click.IntRange(min=1), default=200, show_default=True, metavar="N", help="Seeds.")
@click.option("--mutants/--no-mutants", default=True, help="Break each rule, too.  [default: break them]")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [one a core]")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="tanist-lab-report",
    show_default=True,
    help="The folder for report.md, report.html and report.svg.",
)
@json_option
@click.pass_context
def report_command(ctx: click.Context, count: int, mutants: bool, jobs: int | None, out: Path, as_json: bool) -> None:
    """Play fresh seeds, break each rule, and write a report.

    Plays N fresh seeds of clusters, and a quarter as many with consumer groups. Then it breaks the rules of the
    protocol one by one, as `tanist lab mutants --by simulator` does. The report has the violations, the faults by
    kind, the situations that no seed reached, and the broken rules that were not noticed. The exit
    code is 1 if a seed violates a property or a broken rule is not noticed.
    """
    from tanist.lab.report import pages
    from tanist.lab.report.facts import Facts
    from tanist.lab.simulation.properties import MEANINGS
    from tanist.lab.simulation.running import Terms

    jobs, commit = jobs or os.cpu_count() or 1, installed.commit()
    played = [
        _played("clusters", "", count, Terms(), jobs),
        _played("consumer groups", " --groups", max(1, count // _GROUPS_OF), Terms.of(groups=True), jobs),
    ]
    rows = _mutants(jobs) if mutants else []
    facts = Facts(__version__, commit, f"{datetime.now(UTC):%Y-%m-%d}", played, MEANINGS, rows)
    out.mkdir(parents=True, exist_ok=True)
    seeds = sum(each.totals.seeds for each in played)
    title = f"Faults in {counted(seeds, 'seed', separator=',')}, by kind"
    (out / "report.svg").write_text(pages.picture(facts.faults(), title))
    (out / "report.md").write_text(pages.markdown(facts, "report.svg"))
    (out / "report.html").write_text(pages.html(facts))
    missed = [row.name for row in rows if row.missed]
    if as_json:
        print_json(_as_json(facts, out))
    else:
        for each in played:
            totals = each.totals
            say(
                f"{each.title}: {counted(totals.seeds, 'seed', separator=',')}, "
                f"{counted(len(totals.failed), 'violation')}, {totals.virtual_hours:.2f} virtual hours, "
                f"{counted(totals.faults, 'fault', separator=',')}"
            )
        if rows:
            noticed = sum(row.simulated is not None for row in rows)
            click.echo(f"broken rules: {noticed} of {len(rows)} noticed, {len(missed)} missed")
        for line in facts.violations:
            say(line)
        say(f"the report is in {out}: report.html, report.md, report.svg")
    if missed or facts.violations:
        ctx.exit(EXIT_FAILED)


def _played(title: str, option: str, count: int, terms: Terms, jobs: int) -> Played:
    from tanist.lab.report.facts import Played
    from tanist.lab.simulation.running import Totals, outcomes

    seeds, totals, began_s = draw(count).numbers, Totals(), time.monotonic()
    announce(f"{counted(count, 'seed', separator=',')} of {title}", count * _SECONDS_EACH / jobs)
    with Progress() as show:
        for outcome in outcomes(seeds, terms, jobs, lambda: True):
            totals.add(outcome)
            show(f"{totals.seeds:,} of {counted(count, 'seed', separator=',')}")
    return Played(title, option, seeds, terms, totals, time.monotonic() - began_s)


def _mutants(jobs: int) -> list[Row]:
    from tanist.lab.mutations.catalogue import MUTANTS
    from tanist.lab.mutations.examination import SIMULATOR, examine_all

    rows: list[Row] = []
    announce(f"{counted(len(MUTANTS), 'rule')} to break", len(MUTANTS) * _MUTATION_SECONDS / jobs)
    with Progress() as show:
        for row in examine_all(list(MUTANTS), (SIMULATOR,), _MUTATION_SEEDS, deadline_s=None, jobs=jobs):
            rows.append(row)
            show(f"{len(rows)} of {counted(len(MUTANTS), 'rule')}")
    return rows


def _as_json(facts: Facts, out: Path) -> dict[str, object]:
    return {
        "version": facts.version,
        "commit": facts.commit,
        "report": str(out / "report.html"),
        "played": [
            {
                "title": each.title,
                "command": each.command,
                "seeds": each.totals.seeds,
                "violations": len(each.totals.failed),
                "virtual_hours": round(each.totals.virtual_hours, 3),
                "faults": each.totals.faults,
                "situations": dict(sorted(each.totals.situations.items())),
            }
            for each in facts.played
        ],
        "faults": {kind: count for kind, _, count in facts.faults()},
        "mutations": {row.name: not row.missed for row in facts.mutations},
    }

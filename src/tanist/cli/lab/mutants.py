"""`tanist lab mutants`: break the rules of the protocol one by one, and see what notices."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tanist.cli.lab.run import parsed
from tanist.cli.options import json_option
from tanist.cli.output.lines import say
from tanist.cli.output.progress import Progress, announce
from tanist.cli.output.tables import print_json
from tanist.text import counted

if TYPE_CHECKING:
    from tanist.lab.mutations.examination import Row

EXIT_FAILED = 1

_SEEDS = "1..100"
_SECONDS_EACH = 3.0
"""The seconds that one rule takes the simulator, or the model checker, on one core."""


@click.command("mutants")
@click.argument("names", nargs=-1, metavar="[A1 A38 G4 ...]")
@click.option(
    "--by",
    type=click.Choice(("simulator", "model", "both")),
    default="both",
    show_default=True,
    help="What must notice.",
)
@click.option(
    "--seeds",
    type=parsed,
    default=_SEEDS,
    show_default=True,
    metavar="A..B",
    help="The simulator's seeds, both ends included; stop at the first that catches the mutation.",
)
@click.option("--minutes", type=click.FloatRange(min=0), metavar="M", help="Begin no mutation after M minutes.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes to use. [one a core]")
@click.option(
    "--write",
    "page",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PAGE",
    help="Update the rows in the table of a Markdown page; other rows stay.",
)
@json_option
@click.pass_context
def mutants_command(
    ctx: click.Context,
    names: tuple[str, ...],
    by: str,
    seeds: range,
    minutes: float | None,
    jobs: int | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Break each rule of the protocol, and check that the lab notices.

    For one mutation (a broken rule) at a time, the simulator plays its seeds and the model checker searches. The
    mutation replaces the rule's code in this process, during its run only. It is caught when a run violates a property
    that the same run without the mutation does not. docs/mutations.md lists the mutations by number; without a number,
    all are tried. In a pipe the output is a list in Markdown. The exit code is 0 when each was caught or is known to
    change nothing, 1 when one was not, 2 for a wrong command line.
    """
    from tanist.lab.mutations import table
    from tanist.lab.mutations.catalogue import MUTANTS
    from tanist.lab.mutations.examination import WAYS, examine_all, is_modelled

    by_name = {name.lower(): name for name in MUTANTS}
    unknown = [name for name in names if name.lower() not in by_name]
    if unknown:
        raise click.UsageError(f"no such mutation: {', '.join(unknown)}; there are {', '.join(MUTANTS)}", ctx)
    wanted = list(dict.fromkeys(by_name[name.lower()] for name in names)) or list(MUTANTS)
    if by == "model":
        if names and not any(is_modelled(name) for name in wanted):
            raise click.UsageError(f"the model checker does not cover {', '.join(wanted)}", ctx)
        wanted = [name for name in wanted if is_modelled(name)]
    began_s = time.monotonic()
    deadline_s = None if minutes is None else began_s + minutes * 60
    jobs = min(jobs or os.cpu_count() or 1, len(wanted))
    if page is not None:
        _rewrite(ctx, page, [])  # a page without a table is found out now, not after the work
    rows: list[Row] = []
    terminal = sys.stdout.isatty()
    ways = WAYS if by == "both" else (by,)
    expected_s = len(wanted) * len(ways) * _SECONDS_EACH / jobs
    announce(f"{counted(len(wanted), 'rule')} to break", min(expected_s, 60 * minutes) if minutes else expected_s)
    with Progress() as show:
        for row in examine_all(wanted, ways, seeds, deadline_s=deadline_s, jobs=jobs):
            rows.append(row)
            show.clear()
            if not as_json and terminal:
                say(table.sentence(row), hang=6)
            elif not as_json:
                click.echo(table.line(table.cells(row)))
            if page is not None:
                _rewrite(ctx, page, [row])
            show(f"{len(rows)} of {counted(len(wanted), 'rule')}")
    late = [row.name for row in rows if not row.asked]
    if as_json:
        print_json({"mutations": [row.as_json() for row in rows], "not_examined": late})
    else:
        say(table.summary(rows, time.monotonic() - began_s))
        if late:
            say(f"no time was left for {', '.join(late)}")
    if late or any(row.missed for row in rows):
        ctx.exit(EXIT_FAILED)


def _rewrite(ctx: click.Context, page: Path, rows: Sequence[Row]) -> None:
    from tanist.lab.mutations import table

    try:
        page.write_text(table.rewritten(page.read_text(), rows))
    except table.NoTable as error:
        raise click.UsageError(f"{page}: {error}", ctx) from error

"""`tanist what-if`: which settings survive how many unclean shutdowns, by trying every schedule up to a bound."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tanist.cli.options import json_option
from tanist.cli.output.lines import say
from tanist.cli.output.progress import Progress, announce
from tanist.cli.output.tables import print_json
from tanist.text import counted

if TYPE_CHECKING:
    from tanist.lab.what_if import Cell, Table

_DEFAULT_OUT = Path("tanist-what-if")
_STATES_PER_S = 7000
"""Of one core."""


@click.command("what-if")
@click.option("--rf", type=int, default=3, show_default=True, metavar="N", help="Replicas, 1 to 5.")
@click.option("--min-isr", type=int, default=2, show_default=True, metavar="N", help="min.insync.replicas.")
@click.option(
    "--strategy",
    type=click.Choice(["none", "balanced", "aggressive"], case_sensitive=False),
    default="balanced",
    show_default=True,
    help="unclean.recovery.strategy of your topic.",
)
@click.option(
    "--unclean", type=int, default=3, show_default=True, metavar="N", help="Up to N unclean shutdowns, 0 to 3."
)
@click.option("--depth", type=int, metavar="N", help="Schedules of up to N events.")
@click.option("--states", type=int, default=16_000, show_default=True, metavar="N", help="Up to N states a cell.")
@click.option("--races", is_flag=True, help="Delay metadata and answers, too: many more schedules, each much shorter.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=_DEFAULT_OUT,
    show_default=True,
    metavar="DIR",
    help="A folder for schedules that lose records, for `tanist lab replay`.",
)
@json_option
def what_if_command(
    rf: int,
    min_isr: int,
    strategy: str,
    unclean: int,
    depth: int | None,
    states: int,
    races: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Compute what unclean shutdowns may lose, for any settings.

    Tries every schedule of writes, fencings, clean and unclean shutdowns and restarts, up to a bound, on the real
    controller and replicas. It compares acks=1, acks=all without Eligible Leader Replicas, and acks=all with them and
    each strategy of unclean recovery. An unclean shutdown loses unsynced records, as a power loss does.
    """
    from tanist.lab.what_if import Question, QuestionError, answer, report
    from tanist.lab.what_if.question import STRATEGIES

    try:
        question = Question(rf, min_isr, STRATEGIES[strategy.lower()], unclean, depth, states, races)
    except QuestionError as error:
        raise click.UsageError(str(error)) from error
    began = time.perf_counter()
    cells = 5 * (question.unclean + 1)
    announce(f"{counted(cells, 'cell')} of up to {states:,} states", cells * states / _STATES_PER_S, at_most=True)
    done = 0
    with Progress() as show:

        def tell(cell: Cell) -> None:
            nonlocal done
            done += 1
            show(f"{done} of {counted(cells, 'cell')}: {cell.name}")

        table = answer(question, tell)
    seconds = time.perf_counter() - began
    written = _write(table, out)
    if as_json:
        print_json(report.as_json(table, written, seconds))
    else:
        for line in report.lines(table, written, seconds):
            say(line, hang=0)


def _write(table: Table, out: Path) -> dict[str, str]:
    """A file for each cell that loses; the paths by the names of the cells."""
    written = {}
    try:
        for cell in table.cells:
            if cell.scenario is not None:
                out.mkdir(parents=True, exist_ok=True)
                file = out / f"rf{table.question.replication_factor}-min{table.question.min_isr}-{cell.name}.json"
                file.write_text(json.dumps(cell.scenario, indent=2) + "\n")
                written[cell.name] = str(file)
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written ({error.strerror}): name another with --out") from error
    return written

"""`tanist lab run`: seeds of the simulator by the thousand, and what a failure is made into."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tanist.cli.options import json_option
from tanist.cli.output import print_json
from tanist.words import counted

if TYPE_CHECKING:
    from tanist.lab.simulation.failure import Failure
    from tanist.lab.simulation.plan import Plan
    from tanist.lab.simulation.running import Terms, Totals
    from tanist.sim.chaos import Outcome

EXIT_FAILED = 1

_FOLDER = "tanist-lab-failures"
_SEEDS = range(1, 101)
_SEEDS_OF_MINUTES = range(1, 1_000_001)
"""Without `--seeds`: as many as there is time for."""
_COMPLETE_FROM = 1_000
"""In so many seeds every situation must have been reached."""
_LINE_EVERY_S = 10.0
"""Between two lines on the progress, where there is no terminal to draw a bar on."""


def _seeds(value: str) -> range:
    """The type of `7`, or `1..200` with both ends."""
    first, dots, last = value.partition("..")
    try:
        seeds = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a seed nor a range A..B") from None
    if not seeds:
        raise click.BadParameter(f"{value} is empty")
    return seeds


def _names(value: str) -> frozenset[str]:
    """The type of names with commas between them."""
    return frozenset(name.strip() for name in value.split(",") if name.strip())


@click.command("run")
@click.option("--seeds", type=_seeds, metavar="A..B", help="Which to play, both ends included.  [1..100]")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), metavar="M", help="Begin no seed after these.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [one a core]")
@click.option(
    "--faults", type=_names, default="", metavar="NAMES", help="Only these kinds of faults: kill,power for example."
)
@click.option(
    "--without", type=_names, default="", metavar="NAMES", help="None of these kinds of faults and operations."
)
@click.option("--keep-going", is_flag=True, help="Do not stop at the first violation.")
@click.option("--mutate", metavar="RULE", help="Break a rule first, A2 for example: does it show?")
@click.option(
    "--shrink",
    "shrink_seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to make a failure smaller; 0: not at all.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=_FOLDER,
    show_default=True,
    help="Where failures are kept, a file each.",
)
@json_option
@click.pass_context
def run_command(
    ctx: click.Context,
    seeds: range | None,
    minutes: float | None,
    jobs: int | None,
    faults: frozenset[str],
    without: frozenset[str],
    keep_going: bool,
    mutate: str | None,
    shrink_seconds: float,
    out: Path,
    as_json: bool,
) -> None:
    """Play seeds of the simulator, and judge them.

    Each plays a whole cluster in virtual time, with faults, operators and clients.
    A seed draws everything: the cluster, its load, what goes wrong and when. Safety is judged after every turn of every
    node, liveness when the faults are over. The same seed gives the same bytes on every machine. `--faults` limits the
    draw: a seed's own kinds, if it has drawn any of those that are named, and otherwise all that are named.

    A failure is made small (as few faults and as little of a cluster as still break the same property), kept in a file
    for `tanist lab replay`, and told with its last moments. The exit code is 0 when all properties hold, 1 when one
    does not, 2 for what cannot be played.
    """
    from tanist.lab.simulation import failure
    from tanist.lab.simulation.breaking import rules
    from tanist.lab.simulation.plan import Restriction
    from tanist.lab.simulation.running import Terms
    from tanist.lab.simulation.shrinking import Limits

    try:
        restriction = Restriction(faults, without)
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from error
    if mutate is not None and mutate not in rules():
        raise click.BadParameter(f"{mutate!r} is none of {', '.join(rules())}", ctx, param_hint="--mutate")
    terms = Terms(restriction, mutate)
    if seeds is None:
        seeds = _SEEDS if minutes is None else _SEEDS_OF_MINUTES
    began_s = time.monotonic()
    deadline_s = None if minutes is None else began_s + 60 * minutes
    totals = _played(seeds, terms, jobs or os.cpu_count() or 1, deadline_s, keep_going, as_json)
    took_s = time.monotonic() - began_s
    failures: list[Failure] = []
    for outcome in sorted(totals.failed, key=lambda each: each.seed):
        # One of each kind is made small: others of the same property most likely are the same failure.
        first = outcome.violation is not None and all(
            outcome.violation.property_id != known.violation.property_id for known in failures
        )
        shrinks = first and shrink_seconds > 0 and not terms.scripted
        limits = Limits(seconds=shrink_seconds) if shrinks else None
        with _shrinking(outcome, as_json or limits is None) as progress:
            failures.append(failure.examine(outcome, terms, out, limits, time.monotonic, progress))
        if not as_json:
            for line in failure.lines(failures[-1]):
                click.echo(line)
            click.echo()
    if as_json:
        print_json(_as_json(seeds, totals, failures, took_s))
    else:
        for line in _summary(seeds, totals, took_s):
            click.echo(line)
    if failures:
        ctx.exit(EXIT_FAILED)


def _played(seeds: range, terms: Terms, jobs: int, deadline_s: float | None, keep_going: bool, quiet: bool) -> Totals:
    """All that there is time for, or all that have begun when the first fails.

    Those before it have, so the lowest seed that fails is always among them.
    """
    from tanist.lab.simulation.running import Totals, outcomes

    totals = Totals()

    def go_on() -> bool:
        in_time = deadline_s is None or time.monotonic() < deadline_s
        return in_time and (keep_going or not totals.failed)

    with _progress(len(seeds), totals, quiet) as advance:
        for outcome in outcomes(seeds, terms, jobs, go_on):
            totals.add(outcome)
            advance()
    return totals


@contextmanager
def _progress(count: int, totals: Totals, quiet: bool) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, else a line now and then; on stderr, because it is no result."""
    began_s = time.monotonic()

    def so_far() -> str:
        rate = totals.events / max(time.monotonic() - began_s, 1e-9)
        violations = counted(len(totals.failed), "violation") if totals.failed else "no violation"
        return f"{violations}, {rate:,.0f} events/s"

    if quiet:
        yield lambda: None
    elif sys.stderr.isatty():
        with click.progressbar(length=count, label="seeds", show_pos=True, file=sys.stderr) as bar:

            def advance() -> None:
                bar.label = f"seeds ({so_far()})"
                bar.update(1)

            yield advance
    else:
        next_s = began_s + _LINE_EVERY_S

        def tell() -> None:
            nonlocal next_s
            if time.monotonic() >= next_s:
                next_s += _LINE_EVERY_S
                click.echo(f"{totals.seeds} of {count} seeds, {so_far()}", err=True)

        yield tell


@contextmanager
def _shrinking(outcome: Outcome, quiet: bool) -> Iterator[Callable[[int, Plan], None]]:
    """Says how small it has become: on one line of a terminal, else when it begins."""
    if quiet:
        yield lambda tries, plan: None
        return
    terminal = sys.stderr.isatty()
    text = f"seed {outcome.seed} violates {outcome.violation and outcome.violation.property_id}: making it smaller"
    click.echo(text, nl=not terminal, err=True)

    def show(tries: int, plan: Plan) -> None:
        if terminal:
            click.echo(f"\r{text}: {plan.length} faults and operations after {tries} tries   ", nl=False, err=True)

    yield show
    if terminal:
        click.echo(err=True)


def _summary(seeds: range, totals: Totals, took_s: float) -> Iterator[str]:
    from tanist.lab.simulation.running import never_reached

    if totals.situations:
        yield "    COUNT  SITUATION"
        for name, count in sorted(totals.situations.items()):
            if count:
                yield f"{count:9,}  {name}"
    if totals.seeds >= _COMPLETE_FROM and never_reached(totals):
        yield f"never reached: {', '.join(never_reached(totals))}"
    failed = sorted(outcome.seed for outcome in totals.failed)
    violations = "no violation"
    if failed:
        violations = f"{counted(len(failed), 'violation')} (seed {', '.join(map(str, failed))})"
    yield (
        f"{totals.seeds:,} of {counted(len(seeds), 'seed', separator=',')}: {violations}; {totals.events:,} events "
        f"({totals.events / max(took_s, 1e-9):,.0f}/s), {totals.virtual_hours:,.2f} virtual hours, "
        f"{totals.faults:,} faults, {totals.acknowledged:,} records acknowledged, {totals.given_up:,} given up by "
        "unclean elections"
    )


def _as_json(seeds: range, totals: Totals, failures: list[Failure], took_s: float) -> dict[str, Any]:
    from tanist.lab.simulation import failure
    from tanist.lab.simulation.running import never_reached

    return {
        "first_seed": seeds.start,
        "last_seed": seeds.stop - 1,
        "seeds": totals.seeds,
        "violations": [failure.as_json(each) for each in failures],
        "events": totals.events,
        "events_per_second": round(totals.events / max(took_s, 1e-9)),
        "virtual_hours": round(totals.virtual_hours, 3),
        "faults": totals.faults,
        "acknowledged": totals.acknowledged,
        "given_up": totals.given_up,
        "situations": dict(sorted(totals.situations.items())),
        "never_reached": never_reached(totals),
        "seconds": round(took_s, 3),
    }

"""`tanist lab run`: seeds of the simulator by the thousand, and what a failure is made into.

Owns which seeds a lab command plays, too: a range, or a draw from the system's entropy. A seed that somebody has seen
play is a test; only a fresh one is evidence. A draw is a range from a random start, so that two numbers name it and
anybody can play it again.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tanist.cli.lab.workload_options import of_runs
from tanist.cli.options import json_option
from tanist.cli.output.lines import columns, say
from tanist.cli.output.progress import Progress, announce
from tanist.cli.output.tables import print_json, print_table
from tanist.text import counted

if TYPE_CHECKING:
    from tanist.lab.simulation.failure import Failure
    from tanist.lab.simulation.guided import Guide
    from tanist.lab.simulation.running import Terms, Totals
    from tanist.sim.run.chaos_run import Plan, SeedResult

EXIT_FAILED = 1

_DRAWN_BITS = 40
"""Of a draw's first seed: enough that no two draws meet, and short enough to copy by hand."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of a run."""

    numbers: range
    drawn: bool = False
    """From the system's entropy."""

    def __str__(self) -> str:
        first, last = self.numbers.start, self.numbers.stop - 1
        return str(first) if first == last else f"{first}..{last}"


def parsed(value: str) -> range:
    """The type of `7`, or `1..200` with both ends."""
    first, dots, last = value.partition("..")
    try:
        seeds = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a seed nor a range A..B") from None
    if not seeds:
        raise click.BadParameter(f"{value} is empty")
    return seeds


def draw(count: int) -> Seeds:
    """So many fresh seeds."""
    first = secrets.randbits(_DRAWN_BITS)
    return Seeds(range(first, first + count), drawn=True)


_FOLDER = "tanist-lab-failures"
_SEEDS = Seeds(range(1, 101))
_SEEDS_OF_MINUTES = Seeds(range(1, 1_000_001))
"""Without `--seeds`: as many as there is time for."""
_COMPLETE_FROM = 1_000
"""In so many seeds every situation must have been reached."""
_EXAMPLES = 5
"""So many seeds are looked for that reach a situation."""
_SECONDS_EACH = 0.7
"""Of one core."""


def _names(value: str) -> frozenset[str]:
    """The type of names with commas between them."""
    return frozenset(name.strip() for name in value.split(",") if name.strip())


@click.command("run")
@click.option("--seeds", type=parsed, metavar="A..B", help="Which to play, both ends included.  [1..100]")
@click.option(
    "--draw",
    "draw_count",
    type=click.IntRange(min=1),
    metavar="N",
    help="N fresh seeds from the system's entropy; not with --seeds.",
)
@of_runs
@click.option("--voters", is_flag=True, help="Add and remove controllers in every seed, and not only in some.")
@click.option(
    "--trimming",
    is_flag=True,
    help="Delete records, by retention and DeleteRecords, in every seed, and not only in some.",
)
@click.option(
    "--secured",
    is_flag=True,
    help="Authenticate everybody and change access control in every seed, and not only in some.",
)
@click.option(
    "--exceptions", is_flag=True, help="Raise exceptions in the nodes' own code in every seed, and not only in some."
)
@click.option(
    "--minutes", type=click.FloatRange(min=0, min_open=True), metavar="M", help="Begin no seed after M minutes."
)
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [one a core]")
@click.option(
    "--faults", type=_names, default="", metavar="NAMES", help="Only these kinds of faults: kill,power for example."
)
@click.option(
    "--without", type=_names, default="", metavar="NAMES", help="None of these kinds of faults and operations."
)
@click.option("--keep-going", is_flag=True, help="Do not stop at the first violation.")
@click.option("--guided", is_flag=True, help="Keep plans that reach new states, and go on from there.")
@click.option(
    "--corpus",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="With --guided: begin with the plans of this folder, and keep others there.",
)
@click.option("--mutate", metavar="RULE", help="Break a rule first, for example A2.")
@click.option("--trace", is_flag=True, help="Print every event (one seed only).")
@click.option("--digests", is_flag=True, help="Print each seed's digest: the same on every platform.")
@click.option("--situation", metavar="NAME", help="Find the first 5 seeds that reach this situation.")
@click.option(
    "--situations", "list_situations", is_flag=True, help="List the situations that were reached, with counts."
)
@click.option(
    "--shrink",
    "shrink_seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Shrink a failure for so long; 0: do not shrink.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=_FOLDER,
    show_default=True,
    help="Where to keep failures, one file for each.",
)
@json_option
@click.pass_context
def run_command(
    ctx: click.Context,
    /,
    seeds: range | None,
    draw_count: int | None,
    voters: bool,
    trimming: bool,
    secured: bool,
    exceptions: bool,
    minutes: float | None,
    jobs: int | None,
    faults: frozenset[str],
    without: frozenset[str],
    keep_going: bool,
    guided: bool,
    corpus: Path | None,
    mutate: str | None,
    trace: bool,
    digests: bool,
    situation: str | None,
    list_situations: bool,
    shrink_seconds: float,
    out: Path,
    as_json: bool,
    **workloads: bool,
) -> None:
    """Play seeds of the simulator, and check all properties.

    Each seed is one simulated cluster in virtual time. The seed decides everything: the nodes, the clients' load, the
    operators' commands, the faults and their times. Safety is checked after every step of every node, liveness when
    the faults are over. The same seed gives the same bytes on every machine. `--draw N` plays N random seeds; the first
    line names them, so that `--seeds` can play them again. With `--faults` a seed keeps those of its own kinds that are
    named; if it has none of them, it gets all that are named.

    With `--guided` the states that partitions are in are recorded. Plans that reach new ones are kept, and edited: such
    a run returns to the state, and goes on with other faults. The first seed and the corpus decide everything.

    A failure is shrunk to the fewest faults and the smallest cluster that still break the same property, and kept in a
    file for `tanist lab replay`. The command prints its last events. The exit code is 0 when all properties hold, 1
    when one does not, 2 when the seeds cannot be played.
    """
    from tanist.lab.simulation import failure
    from tanist.lab.simulation.breaking import rules
    from tanist.lab.simulation.guided import Guide
    from tanist.lab.simulation.running import Terms
    from tanist.lab.simulation.shrinking import Limits
    from tanist.sim.run.drawing import Restriction

    try:
        restriction = Restriction(faults, without)
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from error
    if mutate is not None and mutate not in rules():
        raise click.BadParameter(f"{mutate!r} is not one of {', '.join(rules())}", ctx, param_hint="--mutate")
    try:
        terms = Terms.of(
            **workloads,
            restriction=restriction,
            mutation=mutate,
            voters=voters,
            trimming=trimming,
            secured=secured,
            exceptions=exceptions,
        )
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from error
    if corpus is not None and not guided:
        raise click.UsageError("--corpus is for --guided", ctx)
    if guided and (trace or situation is not None):
        raise click.UsageError("--trace and --situation play plain seeds, without --guided", ctx)
    chosen = _chosen(ctx, seeds, draw_count, minutes)
    if chosen.drawn and not as_json:
        click.echo(f"drawn: seeds {chosen}")
    if trace:
        ctx.exit(_trace(ctx, chosen, terms))
    if situation is not None:
        ctx.exit(_search_seeds(ctx, situation, chosen, terms, jobs or os.cpu_count() or 1))
    began_s = time.monotonic()
    deadline_s = None if minutes is None else began_s + 60 * minutes
    guide = Guide(chosen.numbers.start, terms.drawn, folder=corpus) if guided else None
    totals = _played(chosen.numbers, terms, jobs or os.cpu_count() or 1, deadline_s, keep_going, guide)
    took_s = time.monotonic() - began_s
    failures: list[Failure] = []
    for outcome in sorted(totals.failed, key=lambda each: each.seed):
        # One of each kind is made small: others of the same property most likely are the same failure.
        first = outcome.violation is not None and all(
            outcome.violation.property_id != known.violation.property_id for known in failures
        )
        shrinks = first and shrink_seconds > 0 and (guided or not terms.scripted)
        limits = Limits(seconds=shrink_seconds) if shrinks else None
        with _shrinking(outcome, as_json or limits is None) as progress:
            failures.append(failure.examine(outcome, terms, out, limits, time.monotonic, progress))
        if not as_json:
            for line in failure.lines(failures[-1], columns()):
                click.echo(line)
            click.echo()
    if as_json:
        print_json(_as_json(chosen, terms, totals, failures, took_s, guide, digests=digests))
    else:
        if digests:
            for seed, digest in sorted(totals.digests.items()):
                click.echo(f"{seed} {digest}")
        if list_situations:
            print_table(
                ("COUNT", "SITUATION"),
                [(f"{count:,}", name) for name, count in sorted(totals.situations.items()) if count],
            )
        for line in _summary(chosen, terms, totals, took_s):
            say(line)
        if guide is not None:
            say(str(guide))
    if failures:
        ctx.exit(EXIT_FAILED)


def _chosen(ctx: click.Context, seeds: range | None, draw_count: int | None, minutes: float | None) -> Seeds:
    if seeds is not None and draw_count is not None:
        raise click.UsageError("--seeds names the seeds and --draw draws them: give one of the two", ctx)
    if draw_count is not None:
        return draw(draw_count)
    if seeds is not None:
        return Seeds(seeds)
    return _SEEDS if minutes is None else _SEEDS_OF_MINUTES


def _trace(ctx: click.Context, seeds: Seeds, terms: Terms) -> int:
    """One seed with all that the world notes; its plan comes first."""
    from tanist.lab.simulation.breaking import broken
    from tanist.lab.simulation.failure import events

    if len(seeds.numbers) > 1:
        raise click.UsageError(f"--trace takes one seed, and {seeds} are {len(seeds.numbers)}", ctx)
    seed = seeds.numbers.start
    plan = terms.plan(seed)
    with broken(terms.mutation):
        run = terms.begin(seed)
        click.echo(f"seed {seed}: {run.config}")
        for line in () if plan is None else events(plan):
            click.echo(f"  {line}")
        run.world.trace = lambda now_us, who, level, message: click.echo(
            f"{now_us / 1e6:11.6f} {who:9} {level:5} {message}"
        )
        outcome = run.run()
    violation = "no violation" if outcome.violation is None else f"VIOLATION {outcome.violation}"
    if outcome.violation is not None and outcome.violation.traceback:
        click.echo(outcome.violation.traceback.rstrip())
    click.echo(f"seed {seed}: {violation}; {outcome.events:,} events, digest {outcome.digest}")
    return 0 if outcome.violation is None else EXIT_FAILED


def _search_seeds(ctx: click.Context, name: str, seeds: Seeds, terms: Terms, jobs: int) -> int:
    """Seeds as they come: with several processes, not always those with the lowest numbers."""
    from tanist.lab.simulation.running import outcomes

    if name not in terms.expected:
        near = [each for each in sorted(terms.expected) if name.lower() in each.lower()]
        meant = (
            f"; do you mean {', '.join(map(repr, near))}?" if near else "; `--situations` lists those that seeds reach"
        )
        raise click.BadParameter(f"no situation is called {name!r}{meant}", ctx, param_hint="--situation")
    click.echo(f"{name}: {terms.expected[name]}")
    played, found = 0, list[int]()
    for outcome in outcomes(seeds.numbers, terms, jobs, lambda: len(found) < _EXAMPLES):
        played += 1
        if outcome.counts[name] and len(found) < _EXAMPLES:
            found.append(outcome.seed)
            click.echo(f"  seed {outcome.seed}: {outcome.counts[name]}x")
    click.echo(f"{len(found)} of {played} seeds")
    return 0 if found else EXIT_FAILED


def _played(
    seeds: range, terms: Terms, jobs: int, deadline_s: float | None, keep_going: bool, guide: Guide | None
) -> Totals:
    """All that there is time for, or all that have begun when the first fails.

    Those before it have, so the lowest seed that fails is always among them.
    """
    from tanist.lab.simulation import guided
    from tanist.lab.simulation.running import Totals, outcomes

    totals = Totals()

    def go_on() -> bool:
        in_time = deadline_s is None or time.monotonic() < deadline_s
        return in_time and (keep_going or not totals.failed)

    began_s = time.monotonic()
    expected_s = len(seeds) * _SECONDS_EACH / jobs
    if deadline_s is not None:
        expected_s = min(expected_s, deadline_s - began_s)
    what = "as many seeds as there is time for" if seeds == _SEEDS_OF_MINUTES.numbers else _seeds(len(seeds))
    announce(f"{what} in {counted(jobs, 'process')}", expected_s)
    with Progress() as show:
        played = (
            outcomes(seeds, terms, jobs, go_on) if guide is None else guided.outcomes(guide, seeds, terms, jobs, go_on)
        )
        for outcome in played:
            totals.add(outcome)
            if outcome.violation is not None and keep_going:
                show.line(f"seed {outcome.seed} violates {outcome.violation.property_id}")
            rate = totals.events / max(time.monotonic() - began_s, 1e-9)
            violations = counted(len(totals.failed), "violation") if totals.failed else "no violation"
            show(f"{_of(totals.seeds, seeds)}, {violations}, {rate:,.0f} events/s")
    return totals


def _seeds(number: int) -> str:
    return counted(number, "seed", separator=",")


def _of(played: int, seeds: range) -> str:
    """So many of them, if there is a number that were asked for."""
    return _seeds(played) if seeds == _SEEDS_OF_MINUTES.numbers else f"{played:,} of {_seeds(len(seeds))}"


@contextmanager
def _shrinking(outcome: SeedResult, quiet: bool) -> Iterator[Callable[[int, Plan], None]]:
    """Says how small it has become: on one line of a terminal, else when it begins."""
    if quiet:
        yield lambda tries, plan: None
        return
    terminal = sys.stderr.isatty()
    text = f"seed {outcome.seed} violates {outcome.violation and outcome.violation.property_id}: shrinking it"
    click.echo(text, nl=not terminal, err=True)

    def show(tries: int, plan: Plan) -> None:
        if terminal:
            click.echo(f"\r{text}: {plan.length} faults and operations after {tries} tries   ", nl=False, err=True)

    yield show
    if terminal:
        click.echo(err=True)


def _summary(seeds: Seeds, terms: Terms, totals: Totals, took_s: float) -> Iterator[str]:
    from tanist.lab.simulation.running import never_reached

    if totals.seeds >= _COMPLETE_FROM and never_reached(totals, terms):
        yield f"never reached: {', '.join(never_reached(totals, terms))}"
    failed = sorted(outcome.seed for outcome in totals.failed)
    violations = "no violation" if totals.seeds else "nothing is known, for no seed was played"
    if failed:
        violations = f"{counted(len(failed), 'violation')} (seed {', '.join(map(str, failed))})"
    reached = sum(1 for count in totals.situations.values() if count)
    yield (
        f"{_of(totals.seeds, seeds.numbers)}: {violations}; {totals.events:,} events "
        f"({totals.events / max(took_s, 1e-9):,.0f}/s), {totals.virtual_hours:,.2f} virtual hours, "
        f"{totals.faults:,} faults, {totals.acknowledged:,} records acknowledged, {totals.given_up:,} given up by "
        f"unclean elections; {counted(reached, 'situation')} reached (`--situations` lists them)"
    )


def _as_json(
    seeds: Seeds,
    terms: Terms,
    totals: Totals,
    failures: list[Failure],
    took_s: float,
    guide: Guide | None,
    *,
    digests: bool,
) -> dict[str, Any]:
    from tanist.lab.simulation import failure
    from tanist.lab.simulation.running import OPTIONS, never_reached

    return {
        "first_seed": seeds.numbers.start,
        "last_seed": seeds.numbers.stop - 1,
        "drawn": seeds.drawn,
        **{option: terms.workload == workload for option, workload in OPTIONS.items()},
        "voters": terms.voters,
        "trimming": terms.trimming,
        "secured": terms.secured,
        "exceptions": terms.exceptions,
        "seeds": totals.seeds,
        "violations": [failure.as_json(each) for each in failures],
        "events": totals.events,
        "events_per_second": round(totals.events / max(took_s, 1e-9)),
        "virtual_hours": round(totals.virtual_hours, 3),
        "faults": totals.faults,
        "acknowledged": totals.acknowledged,
        "given_up": totals.given_up,
        "situations": dict(sorted(totals.situations.items())),
        "never_reached": never_reached(totals, terms),
        **({} if guide is None else {"states": len(guide.states), "curve": [each._asdict() for each in guide.curve]}),
        **({"digests": {str(seed): digest for seed, digest in sorted(totals.digests.items())}} if digests else {}),
        "seconds": round(took_s, 3),
    }

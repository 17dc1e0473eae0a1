"""`tanist lab replay`: a run as a sequence diagram, from a seed of the simulator or from a scenario file."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tanist.cli.lab.workload_options import of_seeds
from tanist.cli.options import json_option
from tanist.cli.output.lines import columns, say
from tanist.cli.output.tables import print_json
from tanist.text import counted

if TYPE_CHECKING:
    from tanist.lab.replay.moments import Moment
    from tanist.lab.replay.selection import Shown
    from tanist.lab.simulation.running import Terms
    from tanist.lab.simulation.scenario import Scenario
    from tanist.sim.run.chaos_run import ChaosRun

EXIT_BROKEN = 1

_WIDTH_MIN = 60


@dataclass(frozen=True, slots=True)
class _Story:
    """The story to show, of a seed, a scenario or a trace."""

    introduction: tuple[str, ...]
    moments: tuple[Moment, ...]
    partition: str | None
    """The one that failed."""
    ending: str


@click.command("replay")
@click.argument("what", metavar="SEED|FILE")
@click.option("--step", is_flag=True, help="Wait for Enter after each moment; q ends it.")
@click.option("--lanes", metavar="NAMES", help="Only these lanes, for example 1,2,client.")
@click.option("--partition", metavar="TOPIC-N", help="Only this partition.  [the one that failed]")
@click.option("--from", "since_s", type=float, metavar="S", help="Begin at this virtual second (or step).")
@click.option("--to", "until_s", type=float, metavar="S", help="End at this one.")
@click.option("--all", "everything", is_flag=True, help="Show every event.")
@click.option(
    "--mutate", metavar="RULE", help="Break a rule first, for example A2 (with a SEED; a FILE names its own)."
)
@of_seeds
@click.option("--voters", is_flag=True, help="SEED is of `tanist lab run --voters` (a FILE needs no option).")
@click.option("--trimming", is_flag=True, help="SEED is of `tanist lab run --trimming` (a FILE needs no option).")
@click.option("--secured", is_flag=True, help="SEED is of `tanist lab run --secured` (a FILE needs no option).")
@click.option(
    "--width",
    type=click.IntRange(min=_WIDTH_MIN),
    metavar="N",
    help="Columns.  [the terminal's, up to 100; in a pipe 100]",
)
@json_option
@click.pass_context
def replay_command(
    ctx: click.Context,
    /,
    what: str,
    step: bool,
    lanes: str | None,
    partition: str | None,
    since_s: float | None,
    until_s: float | None,
    everything: bool,
    mutate: str | None,
    voters: bool,
    trimming: bool,
    secured: bool,
    width: int | None,
    as_json: bool,
    **workloads: bool,
) -> None:
    """Play a seed or a scenario, and draw a sequence diagram.

    A scenario FILE is a kept failure. Each node has a lane, and all clients share one; time runs down; an arrow is a
    message at its arrival. A run that fails shows the partition that failed, with the rules that applied (KIP-966;
    "fact N" of docs/rules.md). A run that does not shows its elections and faults. The same seed gives the same text
    everywhere. The exit code is 0 when nothing broke, 1 when a property did not hold, 2 when there is nothing to play.
    """
    from tanist.lab.replay.diagram import drawn
    from tanist.lab.replay.moments import Weight
    from tanist.lab.replay.selection import Choice, choose, lanes_of

    width = width or max(columns(), _WIDTH_MIN)
    if as_json and step:
        raise click.UsageError("--step and --json do not go together", ctx)
    workload = {
        **workloads,
        "voters": voters,
        "trimming": trimming,
        "secured": secured,
    }
    story = _story(ctx, what, mutate, width, **workload)
    broken = any(moment.broken for moment in story.moments)
    partitions = {moment.about for moment in story.moments if moment.about is not None}
    if partition is not None and partition not in partitions:
        raise click.BadParameter(
            f"{partition!r} is not one of {', '.join(sorted(partitions))}", ctx, param_hint="--partition"
        )
    about = partition if partition is not None else None if everything else story.partition
    choice = Choice(
        least=Weight.DETAIL if everything else Weight.PART if broken or partition is not None else Weight.TURN,
        partition=about,
        lanes=_lanes(ctx, lanes, lanes_of(story.moments)),
        since_s=since_s,
        until_s=until_s,
        whole=everything,
    )
    shown = list(choose(story.moments, choice))
    if as_json:
        print_json(
            {
                "introduction": story.introduction,
                "moments": [_moment_json(each.moment) for each in shown],
                "ending": story.ending,
                "broken": broken,
            }
        )
        ctx.exit(EXIT_BROKEN if broken else 0)
    for line in story.introduction:
        # (What is indented has been broken into lines already.)
        for row in [line] if line.startswith(" ") else textwrap.wrap(line, width, break_on_hyphens=False):
            click.echo(row)
    if story.introduction:
        click.echo()
    if step:
        ended = not _stepped(shown, lanes_of(each.moment for each in shown), width, about)
    else:
        ended = False
        for row in drawn(shown, lanes_of(each.moment for each in shown), width, about):
            click.echo(row)
    if not ended:
        click.echo()
        say(story.ending)
    if broken:
        ctx.exit(EXIT_BROKEN)


def _moment_json(moment: Moment) -> dict[str, Any]:
    return asdict(moment) | {"weight": moment.weight.name.lower()}


def _story(ctx: click.Context, what: str, mutate: str | None, width: int, **workload: Any) -> _Story:
    """Whatever it is that is to be played."""
    from tanist.lab.simulation.breaking import rules

    if mutate is not None and mutate not in rules():
        raise click.BadParameter(f"{mutate!r} is not one of {', '.join(rules())}", ctx, param_hint="--mutate")
    if what.lstrip("-").isdigit():
        from tanist.lab.simulation.running import Terms

        try:
            terms = Terms.of(mutation=mutate, **workload)
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from error
        return _of_seed(int(what), terms, width - 2)
    if mutate is not None:
        raise click.UsageError("--mutate is for a seed; a scenario file says which rule is broken", ctx)
    path = Path(what)
    if not path.is_file():
        raise click.UsageError(f"{what!r} is neither a seed nor a file", ctx)
    from tanist.lab.simulation import scenario

    try:
        document = scenario.load(path)
        if document["player"] == scenario.MODEL:
            return _modelled(document)
        return _of_scenario(scenario.from_document(document), width - 2)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error), ctx) from error


def _of_seed(seed: int, terms: Terms, width: int) -> _Story:
    from tanist.lab.simulation.breaking import broken, rules
    from tanist.lab.simulation.failure import events

    mutation = terms.mutation
    plan = terms.plan(seed)
    introduction = [f"seed {seed}"]
    if mutation is not None:
        introduction[0] += f", with the rule {mutation} broken: {rules()[mutation]}"
    introduction += ["  directed, by a script"] if plan is None else [f"  {each}" for each in events(plan, width)]
    with broken(mutation):
        return _played(introduction, terms.begin(seed))


def _of_scenario(scenario: Scenario, width: int) -> _Story:
    from tanist.lab.simulation.breaking import broken, rules
    from tanist.lab.simulation.failure import events
    from tanist.lab.simulation.scenario import ScenarioError

    mutation = scenario.mutation
    introduction = [scenario.title]
    if mutation is not None:
        if mutation not in rules():
            raise ScenarioError(f"the scenario breaks the rule {mutation!r}, which this version does not know")
        introduction.append(f"The rule {mutation} is broken for it: {rules()[mutation]}.")
    introduction += scenario.notes
    introduction += [f"  {each}" for each in events(scenario.plan, width)]
    with broken(mutation):
        return _played(introduction, scenario.plan.begin())


def _played(introduction: Sequence[str], run: ChaosRun) -> _Story:
    from tanist.lab.simulation import play
    from tanist.lab.simulation.properties import breach

    played = play(run)
    outcome = played.outcome
    found = outcome.violation
    ending = "Nothing broke."
    if found is not None:
        ending = f"In the end {breach(found.property_id)}, at {found.now_us / 1e6:.3f} s of virtual time."
    ending += (
        f" {counted(outcome.events, 'event', separator=',')}, {counted(outcome.faults, 'fault')}, "
        f"{outcome.acknowledged:,} of {counted(outcome.sends, 'record', separator=',')} "
        f"acknowledged; digest {outcome.digest[:16]}"
    )
    return _Story(tuple(introduction), played.moments, played.partition, ending)


def _modelled(document: dict[str, Any]) -> _Story:
    from tanist.lab import model_scenario as scenario

    moments = tuple(scenario.moments(document))
    title = str(document.get("title", ""))
    if moments and moments[0].text == title:
        moments = moments[1:]  # it is said above the diagram
    broken = any(moment.broken for moment in moments)
    property_id = document.get("property")
    if property_id == scenario.LOSS:
        return _Story((title,), moments, None, "In the end acknowledged records are lost.")
    ending = f"In the end {property_id or 'a property'} does not hold." if broken else "Nothing broke."
    return _Story((title,), moments, None, ending)


def _lanes(ctx: click.Context, wanted: str | None, lanes: Sequence[str]) -> frozenset[str]:
    """The lanes that are meant: by name, or by number."""
    found: set[str] = set()
    for name in [] if wanted is None else [each.strip() for each in wanted.split(",")]:
        meant = [lane for lane in lanes if name and (lane == name or lane.rpartition(" ")[2] == name)]
        if not meant:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(lanes)}", ctx, param_hint="--lanes")
        found.update(meant)
    return frozenset(found)


def _stepped(shown: Iterable[Shown], lanes: Sequence[str], width: int, about: str | None) -> bool:
    """Moment by moment. Whether the end was reached."""
    from tanist.lab.replay.diagram import Diagram

    diagram = Diagram(lanes, width, about)
    if sys.stdin.isatty():
        click.echo("Enter: continue; q: quit.", err=True)
    for row in diagram.heading():
        click.echo(row)
    for each in shown:
        for row in diagram.draw(each):
            click.echo(row)
        if _is_enough():
            return False
    return True


def _is_enough() -> bool:
    """Waits for a key on a terminal, else for a line. Whether that says to end; no more input does, too."""
    if sys.stdin.isatty():
        return click.getchar() in ("q", "Q", "\x04")
    line = sys.stdin.readline()
    return not line or line.strip().lower() == "q"

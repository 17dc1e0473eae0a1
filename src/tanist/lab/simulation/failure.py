"""A failure for people: shrunk, kept in a file, and reported.

Owns the text of the report: the property and its meaning, the rest of the plan and its reasons, the last moments of the
failed partition. The report alone should tell its reader which property broke, and how.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tanist.faults import FAULTS
from tanist.lab.replay.diagram import WIDTH, drawn
from tanist.lab.replay.selection import Choice, choose, lanes_of
from tanist.lab.simulation.breaking import broken, rules
from tanist.lab.simulation.player import Played, play
from tanist.lab.simulation.properties import breach, meaning
from tanist.lab.simulation.running import Terms
from tanist.lab.simulation.scenario import Scenario, save
from tanist.lab.simulation.shrinking import Limits, Progress, Shrunk, shrink
from tanist.sim.checkers.violation import Violation
from tanist.sim.faults.schedule import Fault
from tanist.sim.run.chaos_run import Plan, SeedResult
from tanist.sim.run.drawing import OPERATORS
from tanist.sim.workload.operations import Operation

_LAST_MOMENTS = 24
_OF_NO_NODE = ("crash-leader", "crash-controller", "quorum")
"""Faults that choose their victims when they strike."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed seed, and its shrunk plan."""

    seed: int
    violation: Violation
    terms: Terms
    original: Plan | None
    """None: it is directed, and follows a script."""
    shrunk: Shrunk | None
    """None: it was not shrunk."""
    scenario: Scenario | None
    file: Path | None

    @property
    def replay(self) -> str:
        """The arguments with which `tanist lab replay` shows it."""
        return str(self.file) if self.file is not None else f"{self.seed} --mutate {self.terms.mutation}"


def examine(
    outcome: SeedResult,
    terms: Terms,
    folder: Path,
    limits: Limits | None,
    now_s: Callable[[], float],
    progress: Progress | None = None,
) -> Failure:
    """Shrink the plan of a failed seed (with limits), and keep it in a file of the folder."""
    violation = outcome.violation
    if violation is None:
        raise ValueError(f"seed {outcome.seed} has not failed")
    plan = outcome.plan or terms.plan(outcome.seed)
    if plan is None:
        return Failure(outcome.seed, violation, terms, None, None, None, None)
    shrunk = None
    if limits is not None:
        with broken(terms.mutation):
            shrunk = shrink(plan, violation, now_s, limits, progress)
    smallest = plan if shrunk is None else shrunk.plan
    least = violation if shrunk is None else shrunk.violation
    scenario = Scenario(
        smallest,
        title=f"{breach(least.property_id)} (seed {plan.seed}). What has to hold: {meaning(least.property_id)}",
        property_id=least.property_id,
        mutation=terms.mutation,
        violation=f"at {least.now_us / 1e6:.6f} s: {least.message}",
        notes=tuple(_kept(plan, shrunk)),
    )
    file = folder / f"{outcome.seed}.json"
    save(scenario, file)
    return Failure(outcome.seed, violation, terms, plan, shrunk, scenario, file)


def lines(failure: Failure, width: int = WIDTH) -> Iterator[str]:
    """The report. It has the last moments if the plan was shrunk or written by hand."""
    property_id, mutation = failure.violation.property_id, failure.terms.mutation
    yield f"seed {failure.seed}: {breach(property_id)}"
    if meaning(property_id):
        yield from _wrapped(f"What has to hold: {meaning(property_id)}.", width)
    if mutation is not None:
        yield from _wrapped(f"The rule {mutation} is broken for it: {rules()[mutation]}.", width)
    least = failure.violation if failure.shrunk is None else failure.shrunk.violation
    text = f"Violated at {least.now_us / 1e6:.3f} s of virtual time: {least.message}"
    yield from _wrapped(text, width)
    yield ""
    if failure.shrunk is not None:
        for note in _kept(failure.original, failure.shrunk):
            yield from _wrapped(note, width)
        yield from (f"    {each}" for each in events(failure.shrunk.plan, width - 4))
        yield ""
    if failure.shrunk is not None or failure.scenario is None:
        with broken(mutation):
            plan = None if failure.shrunk is None else failure.shrunk.plan
            played = play(failure.terms.begin(failure.seed) if plan is None else plan.begin())
        yield f"  The last moments{'' if played.partition is None else f' of {played.partition}'}:"
        yield ""
        yield from (f"  {row}".rstrip() for row in timeline(played, width - 2))
        yield ""
    kept = "" if failure.file is None else f"Kept in {failure.file}. "
    yield f"  {kept}All of it, moment by moment:"
    yield f"    tanist lab replay {failure.replay}"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def timeline(played: Played, width: int = WIDTH) -> Iterator[str]:
    """The last moments of a run that failed."""
    last = list(choose(played.moments, Choice(partition=played.partition)))[-_LAST_MOMENTS:]
    named = {lane for each in last for lane in (each.moment.lane, each.moment.to)}
    lanes = [lane for lane in played.lanes if lane in named]
    return drawn(last, lanes or lanes_of(played.moments), width, about=played.partition)


def as_json(failure: Failure) -> dict[str, Any]:
    violation, shrunk, original = failure.violation, failure.shrunk, failure.original
    return {
        "seed": failure.seed,
        "property": violation.property_id,
        "meaning": meaning(violation.property_id),
        "violation": violation.message,
        "virtual_ms": violation.now_us / 1000,
        "scenario": None if failure.file is None else str(failure.file),
        "replay": f"tanist lab replay {failure.replay}",
        "shrunk": None
        if shrunk is None or original is None
        else {
            "from": original.length,
            "to": shrunk.plan.length,
            "tries": shrunk.tries,
            "complete": shrunk.complete,
            "kept": list(_kept(original, shrunk)),
        },
    }


def events(plan: Plan, width: int = WIDTH) -> Iterator[str]:
    """The faults and operations of a plan, with their times."""
    if not plan.length:
        yield "Nothing goes wrong and nobody does anything: the load is enough."
    both: list[Fault | Operation] = sorted((*plan.faults, *plan.operations), key=lambda each: each.at_us)
    for each in both:
        at = f"{each.at_us / 1e6:8.3f} s of load  "
        if isinstance(each, Fault):
            whose = "" if each.kind in _OF_NO_NODE else f" of node {each.host}"
            text = f"{each.kind}{whose}, {each.duration_us // 1000} ms. {FAULTS[each.kind].does}"
        else:
            text = f"an operator, {each.kind}: {OPERATORS[each.kind]}"
        indent = " " * len(at)
        yield from textwrap.wrap(text, width, initial_indent=at, subsequent_indent=indent, break_on_hyphens=False)


def _kept(plan: Plan | None, shrunk: Shrunk | None) -> Iterator[str]:
    """The parts of the plan that are left, and the reasons."""
    if plan is None:
        return
    if shrunk is None:
        yield f"all of the seed's {plan.length} faults and operations: nobody has tried to leave any out"
        return
    least = shrunk.plan
    if shrunk.complete:
        why = "without any one of them it does not break" if least.length else "it breaks without any of them"
    else:
        why = "there was no time to try more"
    yield f"Kept after {shrunk.tries} tries: {least.length} of {plan.length} faults and operations; {why}."
    changes = [
        f"{name} {now} of {before}"
        for name, before, now in (
            ("nodes", len(plan.config.roles), len(least.config.roles)),
            ("partitions", _partitions(plan), _partitions(least)),
            ("producers", _producers(plan), _producers(least)),
        )
        if before != now
    ]
    if changes:
        yield f"Of the cluster and its clients: {', '.join(changes)}."


def _partitions(plan: Plan) -> int:
    return sum(topic.partitions for topic in plan.config.topics)


def _producers(plan: Plan) -> int:
    return len(plan.config.topics) * (plan.config.producers + plan.config.careless_producers)

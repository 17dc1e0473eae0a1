"""`python -m tests.sim.mutations`: break one rule after the other, and see what notices it.

    python -m tests.sim.mutations                 all of them
    python -m tests.sim.mutations A1 A38          some
    python -m tests.sim.mutations --seeds 1..300  with more patience (default 1..100)
    python -m tests.sim.mutations --write         and put the table into docs/simulator.md

A mutation is caught when a seed that the real rules survive violates a property. The first such seed is told, with the
property and how many events it took. Ends with 1 if a mutation was not caught that is not known to change nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.sim.chaos import Outcome, Run

sys.path.insert(0, str(Path(__file__).parent))
from sim_mutants import MUTANTS, Mutation

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"
BEGIN, END = "<!-- mutations: begin -->", "<!-- mutations: end -->"


@dataclass(frozen=True)
class Finding:
    """How a mutation showed."""

    property_id: str
    seed: int
    events: int
    message: str


def play(mutation: Mutation, seed: int) -> Outcome:
    """One seed, with the rule broken."""
    with pytest.MonkeyPatch.context() as patch:
        mutation.apply(patch)
        return Run(seed, mutation.profile(seed)).run()


def hunt(mutation: Mutation, seeds: Iterable[int]) -> Finding | None:
    """The first seed that shows the mutation, and survives without it."""
    for seed in seeds:
        outcome = play(mutation, seed)
        if outcome.violation is None:
            continue
        healthy = Run(seed, mutation.profile(seed)).run().violation
        if healthy is not None:
            raise AssertionError(f"seed {seed} fails without the mutation: {healthy}")
        return Finding(outcome.violation.property_id, seed, outcome.events, str(outcome.violation))
    return None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.mutations")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MUTANTS)}")
    parser.add_argument("--seeds", default="1..100", help="A..B, with both ends")
    parser.add_argument("--write", action="store_true", help="put the table into docs/simulator.md")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in MUTANTS]
    if unknown:
        parser.error(f"no such mutation: {', '.join(unknown)}")
    first, last = options.seeds.split("..")
    found: dict[str, Finding | None] = {}
    for name in options.names or MUTANTS:
        began_s = time.monotonic()
        finding = found[name] = hunt(MUTANTS[name], range(int(first), int(last) + 1))
        told = (
            "NOT CAUGHT" if finding is None else f"{finding.property_id}, seed {finding.seed}, {finding.events} events"
        )
        print(f"{name:10} {MUTANTS[name].broken}: {told} ({time.monotonic() - began_s:.0f} s)", flush=True)
        if finding is not None:
            print(f"           {finding.message[:200]}", flush=True)
    if options.write:
        _write(found)
    missed = [name for name, finding in found.items() if finding is None and not MUTANTS[name].equivalent]
    return 1 if missed else 0


def _write(found: dict[str, Finding | None]) -> None:
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{chr(10).join(_table(found))}\n{END}{after}")


def _table(found: dict[str, Finding | None]) -> Iterator[str]:
    yield "| # | What is so instead | Caught by | Seed | Events |"
    yield "|---|---|---|---|---|"
    for name, finding in found.items():
        mutation = MUTANTS[name]
        if finding is None:
            yield f"| {name} | {mutation.broken} | {mutation.equivalent or 'not caught'} | | |"
        else:
            yield f"| {name} | {mutation.broken} | {finding.property_id} | {finding.seed} | {finding.events} |"


if __name__ == "__main__":
    sys.exit(main())

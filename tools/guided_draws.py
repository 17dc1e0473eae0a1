"""Guided draws beside plain ones: the states that both reach, and the runs that both need to find a broken rule.

python -m tools.guided_draws --runs 200                                  # the curve of states
python -m tools.guided_draws --runs 100 --tries 5 --mutate A29,A40       # runs to the first violation

Both play small clusters: three nodes, one partition, a producer, eight seconds of faults; everything else is drawn as
by any seed, so a run costs a fifth of a usual one. A plain draw is a guided one that edits no plan.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tanist.lab.simulation.guided import Guide, outcomes
from tanist.lab.simulation.running import Terms
from tanist.sim.run.chaos_run import Plan
from tanist.sim.run.config import BY_NODE, ChaosConfig
from tanist.sim.run.drawing import config_of
from tanist.sim.world.world import COMBINED

_NODES = (1, 2, 3)
_WAYS = ("guided", "plain")
_APART = 1_000_000
"""Between the first seeds of two tries."""
_POINTS = 8


def small(seed: int) -> ChaosConfig:
    """What the seed draws, on a small cluster with few clients."""
    drawn = config_of(seed)
    conditions: dict[str, Any] = {
        name: {node_id: value for node_id, value in getattr(drawn, name).items() if node_id in _NODES}
        for name in BY_NODE
    }
    return replace(
        drawn,
        roles=dict.fromkeys(_NODES, COMBINED),
        topics=(replace(drawn.topics[0], partitions=1, replication_factor=len(_NODES)),),
        plain=tuple(node_id for node_id in drawn.plain if node_id in _NODES),
        voters=(),
        voter_operations=(),
        producers=1,
        observers=min(1, drawn.observers),
        late_consumers=0,
        pause_ms=max(150, drawn.pause_ms),
        inquirers=False,
        secured=False,
        access_operations=(),
        left_out=0,
        fault_time_ms=8_000,
        **conditions,
    )


def guide(first: int, way: str) -> Guide:
    return Guide(first, lambda seed: Plan.drawn(seed, small(seed)), plain=way == "plain")


def curves(first: int, runs: int) -> Iterator[str]:
    """A row for each number of events: the states of both."""
    guides = {way: guide(first, way) for way in _WAYS}
    for each in guides.values():
        for outcome in outcomes(each, range(first, first + runs), Terms(), 1, lambda: True):
            if outcome.violation is not None:
                yield f"seed {outcome.seed}: {outcome.violation}"
    most = min(each.curve[-1].events for each in guides.values())
    yield f"| Events | {' | '.join(f'{way}: runs | states' for way in guides)} |"
    yield f"|---:|{'---:|---:|' * len(guides)}"
    for number in range(1, _POINTS + 1):
        events = most * number // _POINTS
        cells = []
        for each in guides.values():
            at = bisect_right(each.curve, events, key=lambda point: point.events)
            cells.append(f"{at} | {each.curve[at - 1].states if at else 0:,}")
        yield f"| {events:,} | {' | '.join(cells)} |"


def found(rule: str, first: int, most: int, way: str) -> tuple[int, int] | None:
    """The runs and the events up to the first violation with this rule broken."""
    guiding, terms = guide(first, way), Terms(mutation=rule)
    for outcome in outcomes(guiding, range(first, first + most), terms, 1, lambda: True):
        if outcome.violation is not None:
            return guiding.curve[-1].runs, guiding.curve[-1].events
    return None


def rows(rules: list[str], first: int, runs: int, tries: int) -> Iterator[str]:
    """A row for each rule and way, as soon as it is known."""
    yield "| Rule | Draw | Runs of each try | Median of runs | Median of events |"
    yield "|---|---|---|---:|---:|"
    for rule in rules:
        for way in _WAYS:
            results = [found(rule, first + _APART * number, runs, way) for number in range(tries)]
            listed = ", ".join(f"> {runs}" if each is None else str(each[0]) for each in results)
            medians = [
                statistics.median_high(each[place] if each is not None else 10**12 for each in results)
                for place in (0, 1)
            ]
            cells = " | ".join("not found" if each >= 10**12 else f"{each:,}" for each in medians)
            yield f"| {rule} | {way} | {listed} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="of each draw; of a broken rule, at most")
    parser.add_argument("--mutate", default="", help="rules to break, with commas between them")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--first", type=int, default=None, help="first seed; else from the system's entropy")
    given = parser.parse_args()
    first = secrets.randbits(40) if given.first is None else given.first
    print(f"first seed {first}", flush=True)
    rules = [rule for rule in given.mutate.split(",") if rule]
    lines = rows(rules, first, given.runs, given.tries) if rules else curves(first, given.runs)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()

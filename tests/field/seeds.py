"""The seeds of the simulator by which the planted bugs are found, as data: `seeds.json`, and the runs that it names.

Owns what a kind of runs is here. `python -m tools.field_seeds` searches and writes the file; `test_seeds.py` plays it
again. The runs are those of the mutations (`tanist.lab.mutations`), and so is what counts as found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tanist.lab.mutations import situations
from tanist.lab.mutations.catalogue import MUTANTS
from tanist.lab.mutations.simulator import Mutation, drawn
from tanist.sim.run.config import TRANSACTIONS, ChaosConfig
from tanist.sim.run.drawing import config_of
from tanist.sim.run.profiles import compacted_topics
from tanist.sim.world.clock import stream
from tests.field import situations as planted
from tests.field.catalogue import Bug

FILE = Path(__file__).with_name("seeds.json")


def _compacting(seed: int) -> ChaosConfig:
    return compacted_topics(config_of(seed), stream(seed, "extras"))


def _snapshots(seed: int) -> ChaosConfig:
    """Nodes start from snapshots of the metadata."""
    config = config_of(seed)
    return replace(
        config,
        kinds=("crash-controller", "crash", "stop"),
        properties={**config.properties, "metadata.log.max.record.bytes.between.snapshots": "2000"},
    )


_SITUATIONS: Mapping[str, situations.Situation] = {
    "plain": config_of,
    "busy configs": situations.busy_configs,
    "calm transactions": planted.calm_transactions,
    "cleaned offsets": planted.cleaned_offsets,
    "compacting": _compacting,
    "failing directories": planted.failing_directories,
    "first phase": planted.first_phase,
    "last epochs": planted.at_the_last_epochs,
    "lost logs": situations.lost_logs,
    "new logs": planted.new_logs,
    "late followers": planted.late_followers,
    "recovering": situations.recovering("Aggressive"),
    "snapshots": _snapshots,
    "transactions": lambda seed: config_of(seed, TRANSACTIONS),
    "trimming": situations.trimming,
    "two directories": situations.as_drawn(directories=2),
    "voters": situations.changing_voters,
    "votes": situations.contested_votes,
}
KINDS = (*_SITUATIONS, *MUTANTS)
"""The kinds of runs by name. That of a mutation is its runs, with whatever bug is planted."""


@dataclass(frozen=True, slots=True)
class Search:
    """Seeds from 1 on were tried with a bug planted, up to the first that shows it."""

    kind: str
    tried: int
    property_id: str = ""
    """What that seed violates; empty if none of them did."""


def mutation_of(bug: Bug, kind: str) -> Mutation:
    """The bug, planted in runs of a kind. Where the kind is a mutation that is this bug, it is planted as that."""
    if kind in bug.mutations:
        return MUTANTS[kind]
    if bug.planted is None:
        raise ValueError(f"{bug.test} plants nothing")
    if kind in _SITUATIONS:
        return drawn(bug.went_wrong, bug.planted, _SITUATIONS[kind])
    return replace(MUTANTS[kind], rule=bug.went_wrong, patches=bug.planted)


def searches() -> dict[str, tuple[Search, ...]]:
    """By test, in the order in which they were made; the last of a test is the one that found something, if any did."""
    stored = json.loads(FILE.read_text())
    return {test: tuple(Search(**each) for each in made) for test, made in stored.items()}


def write(made: Mapping[str, tuple[Search, ...]]) -> None:
    document = {test: [asdict(each) for each in made[test]] for test in sorted(made)}
    FILE.write_text(json.dumps(document, indent=1) + "\n")

"""The schedule of faults: episodes, drawn from a seed before anything runs.

Owns the kinds of episodes and the draw. It knows no cluster: nodes are drawn as an order, so "the leader" is found when
the episode begins. The same seed, tests, nodes and abilities give the same episodes.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tanist.faults import FAULTS

MIXED = "mixed"

_WAYS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "last-replica": {"cut": ("crash", "partition"), "pause": ("crash", "pause"), "crash": ("crash",)},
    "last-standing": {"cut": ("power-loss", "partition"), "pause": ("power-loss", "pause"), "crash": ("power-loss",)},
    "crash": {"one": ("crash",), "two": ("crash",)},
    "power-loss": {"one": ("power-loss",)},
    "pause": {"one": ("pause",)},
    "partition": {"network": ("partition",), "nodes": ("partition",), "one-way": ("partition-one-way",)},
    "slow": {"nodes": ("slow",), "clients": ("slow",)},
    "disk": {"full": ("disk-full",), "slow": ("disk-slow",), "failed": ("disk-failed",)},
}
"""Kind -> its variants, and the faults that each needs."""

INJECTED = frozenset(fault for ways in _WAYS.values() for needed in ways.values() for fault in needed)
KINDS = tuple(_WAYS)
TESTS = (*KINDS, MIXED)

_PLAYS = {
    "last-replica": "Isolate a leader with its clients, and kill it (Jepsen 2013).",
    "last-standing": "Let the last of the ISR lose power and return (KIP-966).",
    "disk": "Give a node a bad disk.",
}
MEANINGS = {kind: _PLAYS.get(kind) or FAULTS[kind].does for kind in KINDS}

_SHORTEST_S, _LONGEST_S = 6.0, 12.0
"""Sessions of the cluster are 3 s: by then a silent node is fenced, and other nodes lead."""
_CALM_S = 3.0


class NotPossible(ValueError):
    """A test that this cluster does not allow."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode of faults."""

    number: int
    kind: str
    how: str
    nodes: tuple[int, ...]
    """The order of nodes, where the leader does not matter."""
    partition: int
    """The partition whose leader is taken, where it does."""
    calm_s: float
    """Time before it begins, with all replicas in sync."""
    lasts_s: float

    def __str__(self) -> str:
        return f"{self.number:2}. {self.kind} ({self.how}), {self.lasts_s:.0f} s"


def possible(abilities: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Kind -> its possible variants."""
    found = {
        kind: tuple(how for how, needed in ways.items() if set(needed) <= set(abilities))
        for kind, ways in _WAYS.items()
    }
    return {kind: ways for kind, ways in found.items() if ways}


def draw(
    seed: int, tests: Sequence[str], node_ids: Sequence[int], partitions: int, abilities: Collection[str]
) -> Iterator[Episode]:
    """Endless episodes. Every kind comes once before any comes again; `mixed` has all possible kinds.

    Raises `NotPossible` at the first step for a test that needs more than the cluster supports.
    """
    ways = possible(abilities)
    kinds = list(dict.fromkeys(kind for test in tests for kind in (ways if test == MIXED else (test,))))
    for kind in kinds:
        if kind not in ways:
            raise NotPossible(f"{kind} cannot be done to this cluster: it takes {_needed(kind)}")
    if not kinds:
        raise NotPossible("nothing can be done to this cluster")
    rng = random.Random(f"jepsen/{seed}")
    number = 0
    while True:
        # The first round goes from Jepsen's own test to the harder ones; later ones are shuffled.
        for kind in kinds if number == 0 else rng.sample(kinds, len(kinds)):
            number += 1
            yield Episode(
                number,
                kind,
                rng.choice(ways[kind]),
                tuple(rng.sample(list(node_ids), len(node_ids))),
                rng.randrange(partitions),
                round(_CALM_S * (1 + rng.random()), 1),
                round(rng.uniform(_SHORTEST_S, _LONGEST_S), 1),
            )


def _needed(kind: str) -> str:
    return " or ".join(dict.fromkeys(" and ".join(needed) for needed in _WAYS[kind].values()))

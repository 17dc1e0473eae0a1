"""The faults of a run, as a list that is drawn before the run begins.

The list has its own random stream, and nothing in it depends on the cluster's behaviour. So a run can be played again
without some of its faults, and the others happen at the same times.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tanist.faults import Where, names_of
from tanist.sim.world.scheduler import MICROSECONDS

KINDS: Final = names_of(Where.SEEDS | Where.SOME_SEEDS)
"""The kinds that seeds draw. `tanist.faults` says what each does; the nemesis ends it after its duration."""

DURATIONS_US: Final = (50_000, 400_000, 1_500_000, 4_000_000)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `detail` is a random number in [0, 1) for the choices of its kind."""

    at_us: int
    kind: str
    host: int
    other: int
    duration_us: int
    detail: float

    def __str__(self) -> str:
        return f"{self.kind} of node {self.host} (other: {self.other}) for {self.duration_us // MICROSECONDS} ms"


def draw_faults(
    rng: random.Random, kinds: Sequence[str], hosts: list[int], time_us: int, pause_us: tuple[int, int]
) -> list[Fault]:
    """A list of faults of these kinds, in order of time, over `time_us`."""
    faults: list[Fault] = []
    at_us = 0
    while True:
        at_us += rng.randint(*pause_us)
        if at_us >= time_us:
            return faults
        faults.append(draw_fault(rng, kinds, hosts, at_us))


def draw_fault(rng: random.Random, kinds: Sequence[str], hosts: list[int], at_us: int) -> Fault:
    """One of these kinds, of any two of the hosts."""
    host, other = rng.sample(hosts, 2)
    return Fault(at_us, rng.choice(kinds), host, other, rng.choice(DURATIONS_US), rng.random())

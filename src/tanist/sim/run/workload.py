"""The workload of a run: its clients, what must come of their work, and the situations that many seeds must reach.

Owns the two sides of it: what a run gives (`Run`), and what it asks for (`Workload`). `records`, `groups` and
`transactions` are the workloads; the cluster, the faults, the operators and the checks of logs are those of any run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from tanist.sim.checkers.checkers import Checkers
from tanist.sim.checkers.liveness import LivenessPhase
from tanist.sim.faults.nemesis import Nemesis
from tanist.sim.run.config import ChaosConfig
from tanist.sim.workload.history import History
from tanist.sim.workload.operations import Admin, Operation
from tanist.sim.world.world import World


class Run(Protocol):
    """The parts of a run that its workload uses (`chaos_run.ChaosRun`)."""

    seed: int
    config: ChaosConfig
    world: World
    history: History
    checkers: Checkers
    nemesis: Nemesis
    admin: Admin
    operations: list[Operation]

    def begin_faults(self) -> None:
        """From now on faults happen and operators work."""


class Workload(Protocol):
    """Made before the cluster starts."""

    expected: ClassVar[Mapping[str, str]]
    """Situation -> its meaning: a large range of seeds must reach each of them."""

    def play(self, liveness: LivenessPhase) -> None:
        """Work while faults happen, then see everything through. The cluster is ready, and has the topics."""

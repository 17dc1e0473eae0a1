"""The plan of a run of the simulator: a seed, a configuration, and timed faults and operations.

A seed draws a plan. A plan can then be cut down without drawing again: its remaining faults and operations happen as
before, because each purpose has its own random stream (`sim.world.clock.stream`). Shrinking makes plans smaller, and a
scenario file holds one. It must never depend on anything but its own fields.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tanist.sim.faults.schedule import KINDS, RARE_KINDS, Fault
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import ChaosConfig
from tanist.sim.run.drawing import config_of, faults_of, operations_of
from tanist.sim.workload.operations import (
    OPERATIONS,
    RARE_OPERATIONS,
    THROTTLE_OPERATIONS,
    TRIM_OPERATIONS,
    VOTER_OPERATIONS,
    Operation,
)

FAULTS = {**KINDS, **RARE_KINDS}
"""Every kind of fault, and its meaning."""
OPERATORS = {**OPERATIONS, **RARE_OPERATIONS, **VOTER_OPERATIONS, **THROTTLE_OPERATIONS, **TRIM_OPERATIONS}
"""Every kind of operation, and its meaning."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """A restriction of the kinds that a seed may draw.

    With `only`, a seed draws from those of its own kinds that are named here or, if there are none, from all that are
    named. Kinds of faults or operations in `without` are not drawn.
    """

    only: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        unknown = sorted(self.only - FAULTS.keys())
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: the faults are {', '.join(FAULTS)}")
        unknown = sorted(self.without - FAULTS.keys() - OPERATORS.keys())
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)}: the faults are {', '.join(FAULTS)}; the operations {', '.join(OPERATORS)}"
            )

    def applied(self, config: ChaosConfig) -> ChaosConfig:
        kinds = config.kinds
        if self.only:
            own = tuple(kind for kind in kinds if kind in self.only)
            kinds = own or tuple(kind for kind in FAULTS if kind in self.only)
        return replace(
            config,
            kinds=tuple(kind for kind in kinds if kind not in self.without),
            raise_pause_ms=(0, 0) if self.only or "raise" in self.without else config.raise_pause_ms,
            operations=tuple(kind for kind in config.operations if kind not in self.without),
            throttle_operations=tuple(kind for kind in config.throttle_operations if kind not in self.without),
            voter_operations=tuple(kind for kind in config.voter_operations if kind not in self.without),
            trim_operations=tuple(kind for kind in config.trim_operations if kind not in self.without),
        )


NO_RESTRICTION = Restriction()


@dataclass(frozen=True, slots=True)
class Plan:
    """One run, before it begins."""

    seed: int
    config: ChaosConfig
    faults: tuple[Fault, ...]
    operations: tuple[Operation, ...]

    @classmethod
    def drawn(cls, seed: int, config: ChaosConfig | None = None) -> Plan:
        """The faults and operations that a seed draws for its own configuration, or for another one."""
        config = config or config_of(seed)
        return cls(seed, config, tuple(faults_of(seed, config)), tuple(operations_of(seed, config)))

    def begin(self) -> ChaosRun:
        """The run, ready to be played."""
        return ChaosRun(self.seed, self.config, faults=list(self.faults), operations=list(self.operations))

    @property
    def length(self) -> int:
        """Number of faults and operations."""
        return len(self.faults) + len(self.operations)

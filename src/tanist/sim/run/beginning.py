"""The run of a configuration, by its kind: with producers and consumers, consumer groups, or transactions."""

from __future__ import annotations

from tanist.sim.faults.schedule import Fault
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.group_profiles import GroupConfig
from tanist.sim.run.group_run import GroupRun
from tanist.sim.run.profiles import ChaosConfig
from tanist.sim.run.transaction_profiles import TransactionConfig
from tanist.sim.run.transaction_run import TransactionRun
from tanist.sim.workload.operations import Operation


def begin(
    seed: int,
    config: ChaosConfig,
    *,
    faults: list[Fault] | None = None,
    operations: list[Operation] | None = None,
) -> ChaosRun:
    """The run of a seed, ready to be played."""
    if isinstance(config, GroupConfig):
        return GroupRun(seed, config, faults=faults, operations=operations)
    if isinstance(config, TransactionConfig):
        return TransactionRun(seed, config, faults=faults, operations=operations)
    return ChaosRun(seed, config, faults=faults, operations=operations)

"""The faults and operations that a seed draws for a configuration.

Each purpose has a random stream of its own (`sim.world.clock.stream`), so that leaving some out later moves no other.
"""

from __future__ import annotations

from tanist.sim.faults.schedule import Fault, draw_faults
from tanist.sim.run.additions import raised_exceptions
from tanist.sim.run.profiles import ChaosConfig
from tanist.sim.workload.operations import Operation, draw_operations
from tanist.sim.world.clock import stream


def faults_of(seed: int, config: ChaosConfig) -> list[Fault]:
    """In order of time; none if the configuration has no kinds."""
    if not config.kinds:
        return []
    hosts, time_us = list(config.roles), config.fault_time_ms * 1000
    faults = draw_faults(stream(seed, "faults"), config.kinds, hosts, time_us, _in_us(config.fault_pause_ms))
    return sorted(faults + raised_exceptions(seed, hosts, time_us), key=lambda each: each.at_us)


def operations_of(seed: int, config: ChaosConfig) -> list[Operation]:
    """In order of time."""
    time_us, pause_us = config.fault_time_ms * 1000, _in_us(config.operation_pause_ms)
    operations = draw_operations(stream(seed, "operations"), config.operations, time_us, pause_us)
    pause_us = _in_us(config.voter_pause_ms)
    operations += draw_operations(stream(seed, "voter operations"), config.voter_operations, time_us, pause_us)
    pause_us = _in_us(config.throttle_pause_ms)
    operations += draw_operations(stream(seed, "throttle operations"), config.throttle_operations, time_us, pause_us)
    pause_us = _in_us(config.trim_pause_ms)
    operations += draw_operations(stream(seed, "trim operations"), config.trim_operations, time_us, pause_us)
    return sorted(operations, key=lambda each: each.at_us)


def _in_us(pause_ms: tuple[int, int]) -> tuple[int, int]:
    low_ms, high_ms = pause_ms
    return low_ms * 1000, high_ms * 1000

"""The configuration that a seed draws for a workload, and the faults and operations that it draws for a configuration.

Owns which kinds of operations there are, and how a seed may be restricted to some of them.

Each purpose has a random stream of its own (`sim.world.clock.stream`), so that leaving some out later moves no other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tanist.sim.faults.schedule import KINDS, Fault, draw_faults
from tanist.sim.run import group_profiles, profiles, share_profiles, streams_profiles, transaction_profiles
from tanist.sim.run.additions import (
    changing_voters,
    has_changing_voters,
    has_subjects,
    has_trimming,
    quotas,
    raise_pause_ms,
    secured_by,
    with_conditions,
    with_torn_links,
)
from tanist.sim.run.config import GROUPS, RECORDS, SHARES, STREAMS, TRANSACTIONS, ChaosConfig
from tanist.sim.workload.operations import (
    ACCESS_OPERATIONS,
    MOVE_OPERATIONS,
    OPERATIONS,
    QUOTA_OPERATIONS,
    RARE_OPERATIONS,
    SHARE_OPERATIONS,
    THROTTLE_OPERATIONS,
    TRIM_OPERATIONS,
    VOTER_OPERATIONS,
    Operation,
    draw_operations,
)
from tanist.sim.world.clock import stream

OPERATORS = {
    **OPERATIONS,
    **RARE_OPERATIONS,
    **VOTER_OPERATIONS,
    **THROTTLE_OPERATIONS,
    **MOVE_OPERATIONS,
    **TRIM_OPERATIONS,
    **SHARE_OPERATIONS,
    **ACCESS_OPERATIONS,
    **QUOTA_OPERATIONS,
}
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
        unknown = sorted(self.only.difference(KINDS))
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: the faults are {', '.join(KINDS)}")
        unknown = sorted(self.without.difference(KINDS, OPERATORS))
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)}: the faults are {', '.join(KINDS)}; the operations {', '.join(OPERATORS)}"
            )

    def applied(self, config: ChaosConfig) -> ChaosConfig:
        kinds = config.kinds
        if self.only:
            own = tuple(kind for kind in kinds if kind in self.only)
            kinds = own or tuple(kind for kind in KINDS if kind in self.only)
        return replace(
            config,
            kinds=tuple(kind for kind in kinds if kind not in self.without),
            raise_pause_ms=(0, 0) if self.only or "raise" in self.without else config.raise_pause_ms,
            operations=tuple(kind for kind in config.operations if kind not in self.without),
            throttle_operations=tuple(kind for kind in config.throttle_operations if kind not in self.without),
            move_operations=tuple(kind for kind in config.move_operations if kind not in self.without),
            voter_operations=tuple(kind for kind in config.voter_operations if kind not in self.without),
            trim_operations=tuple(kind for kind in config.trim_operations if kind not in self.without),
            share_operations=tuple(kind for kind in config.share_operations if kind not in self.without),
            access_operations=tuple(kind for kind in config.access_operations if kind not in self.without),
            quota_operations=tuple(kind for kind in config.quota_operations if kind not in self.without),
        )


NO_RESTRICTION = Restriction()


def config_of(
    seed: int,
    workload: str = RECORDS,
    *,
    voters: bool = False,
    trims: bool = False,
    secured: bool = False,
    exceptions: bool = False,
) -> ChaosConfig:
    """The configuration of a seed.

    `voters`: with voters that change, `trims`: with retention and DeleteRecords, `secured`: with subjects and access
    control, and some with quotas, `exceptions`: with exceptions in the nodes' own code, whether the seed draws them or
    not.
    `ValueError` if there are no such runs.
    """
    if workload == GROUPS:
        if trims:
            raise ValueError("the topics of groups hold no records, so there is nothing to trim")
        config = group_profiles.drawn(seed)
    elif workload == SHARES:
        config = share_profiles.drawn(seed, trims=trims)
    elif workload == STREAMS:
        if trims:
            raise ValueError("the topics of Streams groups hold no records, so there is nothing to trim")
        config = streams_profiles.drawn(seed)
    elif workload == TRANSACTIONS:
        config = transaction_profiles.with_trimming(seed) if trims else transaction_profiles.drawn(seed)
    else:
        config = profiles.drawn(seed, trims=trims or has_trimming(seed))
        voters = voters or has_changing_voters(seed)
        secured = secured or has_subjects(seed)
    if voters:
        config = replace(config, **changing_voters(seed, config))
    config = with_torn_links(seed, with_conditions(seed, config))
    if exceptions:
        config = replace(config, raise_pause_ms=raise_pause_ms(seed, config, always=True))
    return replace(config, **secured_by(seed, config), **quotas(seed)) if secured else config


def faults_of(seed: int, config: ChaosConfig) -> list[Fault]:
    """In order of time; none if the configuration has no kinds."""
    if not config.kinds:
        return []
    hosts, time_us = list(config.roles), config.fault_time_ms * 1000
    faults = draw_faults(stream(seed, "faults"), config.kinds, hosts, time_us, _in_us(config.fault_pause_ms))
    if any(config.raise_pause_ms):
        pause_us = _in_us(config.raise_pause_ms)
        faults += draw_faults(stream(seed, "exceptions"), ("raise",), hosts, time_us, pause_us)
    return sorted(faults, key=lambda each: each.at_us)


def operations_of(seed: int, config: ChaosConfig) -> list[Operation]:
    """In order of time."""
    operations: list[Operation] = []
    for purpose, kinds, pause_ms in (
        ("operations", config.operations, config.operation_pause_ms),
        ("voter operations", config.voter_operations, config.voter_pause_ms),
        ("throttle operations", config.throttle_operations, config.throttle_pause_ms),
        ("move operations", config.move_operations, config.move_pause_ms),
        ("trim operations", config.trim_operations, config.trim_pause_ms),
        ("share operations", config.share_operations, config.share_pause_ms),
        ("access operations", config.access_operations, config.access_pause_ms),
        ("quota operations", config.quota_operations, config.quota_pause_ms),
    ):
        operations += draw_operations(stream(seed, purpose), kinds, config.fault_time_ms * 1000, _in_us(pause_ms))
    return sorted(operations, key=lambda each: each.at_us)


def _in_us(pause_ms: tuple[int, int]) -> tuple[int, int]:
    low_ms, high_ms = pause_ms
    return low_ms * 1000, high_ms * 1000

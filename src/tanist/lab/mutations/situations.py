"""Situations: random runs with more of one kind of faults, in which a broken rule shows soon.

A situation is only a configuration of the simulator: it makes a moment likelier, and never forces it (`directed` does).
The unbroken rules survive all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tanist.sim.run.additions import OLD_EVENTS_MS, directory_moves
from tanist.sim.run.config import ChaosConfig
from tanist.sim.run.drawing import config_of
from tanist.sim.workload.operations import ACCESS_OPERATIONS, QUOTA_OPERATIONS, Topic
from tanist.sim.world.world import COMBINED

Situation = Callable[[int], ChaosConfig]
"""The configuration of a seed."""
Changed = Callable[[ChaosConfig], ChaosConfig]

LEAVING = ("stop", "partition", "crash-leader", "crash", "power-loss", "blackout", "pause")


def as_drawn(**changes: Any) -> Situation:
    """The seed's own configuration, with these changes."""
    return lambda seed: replace(config_of(seed), **changes)


def of_workload(workload: str, changed: Changed | None = None, **settings: Any) -> Situation:
    """The seed's own configuration with this workload, perhaps changed, and with these settings of the workload."""

    def situation(seed: int) -> ChaosConfig:
        drawn = config_of(seed, workload)
        return (drawn if changed is None else changed(drawn)).with_settings(**settings)

    return situation


def recovering(strategy: str, **changes: Any) -> Situation:
    """Three brokers that leave again and again, with the recovery manager on."""

    def situation(seed: int) -> ChaosConfig:
        drawn = config_of(seed)
        return replace(
            drawn,
            roles=dict.fromkeys((1, 2, 3), COMBINED),
            plain=tuple(node_id for node_id in drawn.plain if node_id <= 3),
            topics=(Topic("events", 3, 3, (("unclean.recovery.strategy", strategy),)),),
            min_insync_replicas=2,
            down_max=3,
            operations=(),
            properties={
                **drawn.properties,
                "unclean.recovery.manager.enabled": "true",
                "tanist.unclean.recovery.grace.ms": "5000",
                "broker.session.timeout.ms": "1500",
                "broker.heartbeat.interval.ms": "300",
                "replica.lag.time.max.ms": "1000",
            },
            **{"fault_pause_ms": (50, 800), "kinds": LEAVING, **changes},
        )

    return situation


def old_events(seed: int) -> ChaosConfig:
    """Producers of a backfill, whose answers are lost."""
    drawn = config_of(seed)
    return replace(
        drawn, event_age_ms=OLD_EVENTS_MS, kinds=("reset", "partition", "crash-leader"), fault_pause_ms=(50, 800)
    )


def changing_voters(seed: int) -> ChaosConfig:
    """Controllers are added and removed all the time, while the active ones die and commits take long."""
    drawn = config_of(seed, voters=True)
    return replace(
        drawn,
        kinds=("crash-controller", "disk-slow", "pause", "partition"),
        fault_pause_ms=(50, 800),
        voter_pause_ms=(2, 60),
        latency_us=(500, 5_000),
    )


def trimming(seed: int) -> ChaosConfig:
    """Records go, by retention and DeleteRecords."""
    return config_of(seed, trims=True)


def moving(seed: int) -> ChaosConfig:
    """Replicas move between log directories all the time, while leaders change and logs diverge."""
    drawn = replace(config_of(seed), directories=2, careless_producers=2, kinds=("crash-leader", "partition", "pause"))
    return replace(drawn, **directory_moves(seed, drawn, records=100) | {"move_pause_ms": (20, 200)})


def contested_votes(_seed: int) -> ChaosConfig:
    """Five controllers far from each other, so that several stand in the same epoch."""
    roles = {**dict.fromkeys((1, 2, 3), "broker"), **dict.fromkeys((11, 12, 13, 14, 15), "controller")}
    return ChaosConfig(
        roles=roles,
        topics=(Topic("events", 1, 3),),
        latency_us=(2_000, 30_000),
        kinds=("crash-controller", "crash", "partition"),
        fault_pause_ms=(50, 800),
        down_max=2,
    )


def torn_links(seed: int) -> ChaosConfig:
    """Leaders change while answers are half sent, and cut what they have begun to send."""
    drawn = config_of(seed)
    return replace(
        drawn,
        topics=tuple(replace(topic, replication_factor=3) for topic in drawn.topics),
        window_bytes=(1, 400, 1_500)[seed % 3],
        value_bytes=64,
        stall_ms=1_500,
        careless_producers=3,
        pause_ms=10,
        kinds=("pause", "slow", "partition-one-way"),
        fault_pause_ms=(30, 300),
        operations=("preferred", "preferred", "reassign"),
        operation_pause_ms=(20, 100),
    )


def secured(seed: int) -> ChaosConfig:
    """Access changes all the time, and nodes start from snapshots, while leaders and controllers fail."""
    drawn = config_of(seed, secured=True)
    return replace(
        drawn,
        topics=(Topic("events", 1, 3),),
        producers=1,
        careless_producers=0,
        observers=0,
        left_out=0,
        pause_ms=150,
        fault_time_ms=8_000,
        kinds=("crash-controller", "crash-leader", "stop", "partition"),
        fault_pause_ms=(200, 1_500),
        operations=(),
        throttle_operations=(),
        access_operations=(*ACCESS_OPERATIONS, "allow", "allow", "revoke", "deny"),
        access_pause_ms=(10, 150),
        properties={**drawn.properties, "metadata.log.max.record.bytes.between.snapshots": "2000"},
    )


def metered(seed: int) -> ChaosConfig:
    """Quotas change, and clients exceed them, while leaders and controllers fail."""
    drawn = secured(seed)
    return replace(
        drawn,
        access_operations=(),
        quotas=True,
        quota_operations=(*QUOTA_OPERATIONS, "set_quota", "set_quota"),
        quota_pause_ms=(50, 600),
        large_write_bytes=0,
        raise_pause_ms=(0, 0),
        fault_pause_ms=(400, 3_000),
    )


large_writes = as_drawn(large_write_bytes=1)
lost_logs = as_drawn(kinds=("lost-log", "stop", "crash"), fault_pause_ms=(50, 800))
restarted_and_asked = as_drawn(inquirers=True, kinds=("crash", "stop", "crash-mid-turn"), fault_pause_ms=(50, 800))
busy_configs = as_drawn(operations=("min_isr", "cluster_min_isr"), operation_pause_ms=(50, 300))
one_replica_too_few = as_drawn(topics=(Topic("events", 1, 2, (("min.insync.replicas", "3"),)),))

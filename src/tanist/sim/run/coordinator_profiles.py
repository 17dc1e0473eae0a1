"""What the profiles of groups and of transactions have in common: a cluster whose coordinators move.

Each function draws from the stream of its profile, in the order in which the profile calls it: seeds depend on that.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final, TypeVar

from tanist.faults import in_drawing_order
from tanist.sim.run.config import ChaosConfig, GroupPlan
from tanist.sim.workload.streams_settings import StreamsPlan
from tanist.sim.world.world import COMBINED

P = TypeVar("P", GroupPlan, StreamsPlan)

_LOSING_SHARE: Final = 0.2
_KINDS = (
    "crash",
    "crash-leader",
    "crash-mid-turn",
    "stop",
    "power-loss",
    "pause",
    "partition",
    "partition-one-way",
    "slow",
    "reset",
    "crash-controller",
)
_LEAVING_KINDS = ("crash-mid-turn", "crash", "stop")
_RARE_KINDS = ("partition-clients", "flap", "lossy", "blackout", "disk-slow", "rolling")
"""Their order counts: seeds draw from it."""


def roles(rng: random.Random) -> dict[int, str]:
    """Three nodes, in some runs with a broker beside them."""
    drawn = dict.fromkeys((1, 2, 3), COMBINED)
    if rng.random() < 0.2:
        drawn[4] = "broker"
    return drawn


def kinds(rng: random.Random) -> tuple[str, ...]:
    """The kinds of faults. Leaders always fall, and with them coordinators."""
    drawn = rng.sample(_KINDS, rng.randint(3, 7)) + rng.sample(_RARE_KINDS, rng.randint(0, 2))
    return in_drawing_order({*drawn, "crash-leader"})


def circumstances(rng: random.Random) -> dict[str, Any]:
    """Changes of a configuration: how often there are faults, and what there is beside them."""
    return {
        "fault_pause_ms": (100, rng.choice((1_500, 3_000))),
        "operations": rng.choice(((), ("preferred",), ("preferred", "reassign"))),
        "latency_us": rng.choice(((50, 300), (50, 300), (500, 5_000))),
        "down_max": rng.choice((1, 1, 2)),
    }


def with_static(rng: random.Random, plans: tuple[P, ...]) -> tuple[P, ...]:
    """A third of the groups has static members."""
    return tuple(replace(plan, is_static=rng.random() < 0.3) for plan in plans)


def properties(rng: random.Random) -> dict[str, str]:
    """Of all nodes."""
    return {
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "replica.lag.time.max.ms": str(rng.choice((1_000, 3_000))),
        "unclean.recovery.manager.enabled": "true" if rng.random() < 0.7 else "false",
        "tanist.unclean.recovery.grace.ms": str(rng.choice((100, 1_000))),
    }


def has_losses(rng: random.Random) -> bool:
    """Whether a seed is one with losses."""
    return rng.random() < _LOSING_SHARE


def losing(rng: random.Random, config: ChaosConfig) -> ChaosConfig:
    """The same, with unclean elections that take records away, mostly of the workload's topics."""
    careless = (("flush.messages", "9223372036854775807"), ("min.insync.replicas", "1"))
    return replace(
        config,
        topics=tuple(replace(topic, configs=(*topic.configs, *careless)) for topic in config.topics),
        kinds=in_drawing_order(
            {"power-loss", "blackout", "crash-leader", rng.choice(_LEAVING_KINDS), rng.choice(config.kinds)}
        ),
        fault_pause_ms=(300, 2_000),
        down_max=3,
        may_lose=True,
        properties={
            **config.properties,
            "unclean.recovery.manager.enabled": "true",
            "unclean.recovery.strategy": "Aggressive",
            "log.flush.interval.messages": "1",
        },
    )

"""The profile of a run with consumer groups, drawn from its seed.

It is separate from `profiles`, so that the seeds of the others draw the same with it and without. Topics hold no
records: the run tests coordinators, and to them an offset is a number. See `groups`.
"""

from __future__ import annotations

import random
from dataclasses import replace

from tanist.sim.run import coordinator_profiles
from tanist.sim.run.additions import clocks_off, has_inquirers
from tanist.sim.run.config import (
    CHURN,
    CLASSIC,
    CONSUMER,
    GROUPS,
    MIXED,
    MOVING,
    ChaosConfig,
    GroupPlan,
    GroupSettings,
)
from tanist.sim.workload.operations import Topic
from tanist.sim.world.clock import stream


def drawn(seed: int) -> ChaosConfig:
    """What a seed draws for groups."""
    rng = stream(seed, "groups")
    roles = coordinator_profiles.roles(rng)
    topics = (Topic("events", rng.randint(2, 5), 3), Topic("orders", rng.randint(1, 3), 3))
    kinds = coordinator_profiles.kinds(rng)
    session_ms = rng.choice((1_500, 3_000, 6_000))
    return ChaosConfig(
        workload=GROUPS,
        roles=roles,
        topics=topics,
        fault_time_ms=14_000,
        kinds=kinds,
        **coordinator_profiles.circumstances(rng),
        skews_ms=clocks_off(roles, rng.choice((0, 5_000))),
        groups=GroupSettings(
            plans=coordinator_profiles.with_static(stream(seed, "groups/static"), _with_moves(_plans(rng), seed)),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rng.choice((1_500, 4_000)),
            commit_pause_ms=rng.choice((40, 150, 400)),
            churn=tuple(sorted(rng.sample(CHURN, rng.randint(1, len(CHURN))))),
            churn_pause_ms=(300, rng.choice((1_500, 5_000))),
            grows=rng.random() < 0.6,
            all_return=rng.random() < 0.6,
        ),
        inquirers=has_inquirers(seed),
        properties={
            **coordinator_profiles.properties(rng),
            "offsets.topic.num.partitions": str(rng.randint(1, 3)),
            "offsets.commit.timeout.ms": str(rng.choice((1_000, 5_000))),
            "group.initial.rebalance.delay.ms": str(rng.choice((0, 300))),
            "group.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": str(session_ms),
            "group.consumer.heartbeat.interval.ms": str(session_ms // 6),
            "log.flush.interval.messages": rng.choice(("1", "9223372036854775807")),
        },
    )


def _plans(rng: random.Random) -> tuple[GroupPlan, ...]:
    plans: list[GroupPlan] = []
    for n in range(rng.randint(2, 3)):
        protocol = rng.choice((CLASSIC, CONSUMER, CONSUMER, MIXED) if n else (CLASSIC, CONSUMER))
        topics = rng.choice((("events",), ("events", "orders")))
        plans.append(GroupPlan(f"g{n}", protocol, rng.randint(2, 4), topics))
    return tuple(plans)


def _with_moves(plans: tuple[GroupPlan, ...], seed: int) -> tuple[GroupPlan, ...]:
    """In half of the runs one group moves between the protocols."""
    rng = stream(seed, "groups/moves")
    if rng.random() < 0.5:
        return plans
    moving = rng.randrange(len(plans))
    return tuple(
        replace(plan, protocol=MOVING, members=rng.randint(1, 2)) if n == moving else plan
        for n, plan in enumerate(plans)
    )

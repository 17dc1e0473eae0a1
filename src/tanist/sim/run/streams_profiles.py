"""The profiles of a run with Streams groups, drawn from its seed. See `streams`."""

from __future__ import annotations

import random
from dataclasses import replace

from tanist.sim.run import coordinator_profiles
from tanist.sim.run.additions import clocks_off, has_inquirers
from tanist.sim.run.config import CHURN, STREAMS, ChaosConfig
from tanist.sim.workload.operations import Topic
from tanist.sim.workload.streams_settings import SHAPES, StreamsPlan, StreamsSettings
from tanist.sim.world.clock import stream


def drawn(seed: int) -> ChaosConfig:
    """What a seed draws for Streams groups."""
    config = _without_losses(seed)
    return _losing(seed, config) if coordinator_profiles.has_losses(stream(seed, "streams/losses")) else config


def _without_losses(seed: int) -> ChaosConfig:
    rng = stream(seed, "streams")
    roles = coordinator_profiles.roles(rng)
    topics = (Topic("events", rng.randint(1, 4), 3), Topic("orders", rng.randint(1, 3), 3))[: rng.randint(1, 2)]
    kinds = coordinator_profiles.kinds(rng)
    session_ms = rng.choice((1_500, 3_000, 6_000))
    standby_replicas = rng.choice((0, 1, 1, 2))
    return ChaosConfig(
        workload=STREAMS,
        roles=roles,
        topics=topics,
        fault_time_ms=14_000,
        kinds=kinds,
        **coordinator_profiles.circumstances(rng),
        skews_ms=clocks_off(roles, rng.choice((0, 5_000))),
        streams=StreamsSettings(
            plans=coordinator_profiles.with_static(
                stream(seed, "streams/static"), _plans(rng, tuple(topic.name for topic in topics))
            ),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rng.choice((1_500, 4_000)),
            standby_replicas=standby_replicas,
            closing_ms=rng.choice((1, 100, 800)),
            slow_share=rng.choice((0.0, 0.05, 0.2)),
            commit_pause_ms=rng.choice((40, 150, 400)),
            describe_pause_ms=rng.choice((50, 300)),
            churn=tuple(sorted(rng.sample(CHURN, rng.randint(0, len(CHURN))))),
            churn_pause_ms=(300, rng.choice((1_500, 5_000))),
            all_return=rng.random() < 0.7,
        ),
        inquirers=has_inquirers(seed),
        properties={
            **coordinator_profiles.properties(rng),
            "offsets.topic.num.partitions": str(rng.randint(1, 2)),
            "offsets.commit.timeout.ms": str(rng.choice((1_000, 5_000))),
            "group.streams.min.session.timeout.ms": "1000",
            "group.streams.session.timeout.ms": str(session_ms),
            "group.streams.min.heartbeat.interval.ms": "100",
            "group.streams.heartbeat.interval.ms": str(session_ms // 6),
            "group.streams.initial.rebalance.delay.ms": str(rng.choice((0, 300, 1_000))),
            "group.streams.assignment.interval.ms": str(rng.choice((0, 200, 1_000))),
            "group.streams.num.standby.replicas": str(standby_replicas),
            "log.flush.interval.messages": rng.choice(("1", "9223372036854775807")),
        },
    )


def _plans(rng: random.Random, topics: tuple[str, ...]) -> tuple[StreamsPlan, ...]:
    plans: list[StreamsPlan] = []
    for n in range(rng.randint(1, 2)):
        read = topics[: rng.randint(1, len(topics))]
        shapes = [shape for shape in SHAPES if shape != "join" or len(read) > 1]
        versions = tuple(rng.sample(shapes, rng.choice((1, 1, 2, 3))))
        plans.append(StreamsPlan(f"a{n}", rng.randint(1, 3), rng.randint(1, 2), read, versions))
    return tuple(plans)


def _losing(seed: int, config: ChaosConfig) -> ChaosConfig:
    """The same, with unclean elections that take records away, of the groups as well."""
    rng = stream(seed, "streams/losing")
    losing = coordinator_profiles.losing(rng, config)
    properties = {**losing.properties, "log.flush.interval.messages": rng.choice(("1", "9223372036854775807"))}
    return replace(losing, properties=properties)

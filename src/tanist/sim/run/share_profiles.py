"""The profiles of a run with share groups, drawn from its seed. See `shares`."""

from __future__ import annotations

import random
from dataclasses import replace

from tanist.sim.run import coordinator_profiles
from tanist.sim.run.additions import clocks_off, has_inquirers, has_trimming, trimming
from tanist.sim.run.config import CHURN, SHARES, ChaosConfig
from tanist.sim.workload.operations import SHARE_OPERATIONS, Topic
from tanist.sim.workload.share_settings import SharePlan, ShareSettings
from tanist.sim.world.clock import stream

_TRANSACTIONS_SHARE = 0.3
_OPERATIONS_SHARE = 0.3
_DEAD_LETTERS_SHARE = 0.4


def drawn(seed: int, *, trims: bool = False) -> ChaosConfig:
    """What a seed draws for share groups. `trims`: with retention and DeleteRecords, whether it draws them or not; not
    in runs with losses."""
    config = _without_losses(seed)
    for addition in (_with_transactions, _with_changed_offsets, _with_dead_letters):
        config = addition(seed, config)
    if trims or has_trimming(seed):
        return replace(config, **trimming(seed, config))
    return _losing(seed, config) if coordinator_profiles.has_losses(stream(seed, "shares/losses")) else config


def _with_transactions(seed: int, config: ChaosConfig) -> ChaosConfig:
    """The same, for a share of the seeds with transactions on the topics, and groups that read what is committed."""
    rng = stream(seed, "shares/transactions")
    if rng.random() >= _TRANSACTIONS_SHARE:
        return config
    plans = tuple(replace(plan, read_committed=rng.random() < 0.7) for plan in config.shares.plans)
    return replace(
        config.with_settings(plans=plans, applications=rng.randint(1, 2), abort_share=rng.choice((0.2, 0.6))),
        properties={
            **config.properties,
            "transaction.state.log.num.partitions": str(rng.randint(1, 2)),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        },
    )


def _with_changed_offsets(seed: int, config: ChaosConfig) -> ChaosConfig:
    """The same, for a share of the seeds with an operator who changes the offsets of groups."""
    rng = stream(seed, "shares/changed offsets")
    if rng.random() >= _OPERATIONS_SHARE:
        return config
    return replace(
        config,
        share_operations=tuple(rng.sample(sorted(SHARE_OPERATIONS), rng.randint(1, len(SHARE_OPERATIONS)))),
        share_pause_ms=(500, rng.choice((3_000, 6_000))),
    )


def _with_dead_letters(seed: int, config: ChaosConfig) -> ChaosConfig:
    """The same, for a share of the seeds with topics for what nobody could process."""
    rng = stream(seed, "shares/dead letters")
    if rng.random() >= _DEAD_LETTERS_SHARE:
        return config
    return replace(
        config.with_settings(plans=tuple(replace(plan, dead_letters=True) for plan in config.shares.plans)),
        properties={
            **config.properties,
            "errors.deadletterqueue.auto.create.topics.enable": "true",
            "default.replication.factor": "3",
            "num.partitions": str(rng.randint(1, 2)),
        },
    )


def _without_losses(seed: int) -> ChaosConfig:
    rng = stream(seed, "shares")
    roles = coordinator_profiles.roles(rng)
    topics = (Topic("events", rng.randint(1, 3), 3), Topic("orders", 1, 3))[: rng.randint(1, 2)]
    kinds = coordinator_profiles.kinds(rng)
    lock_ms = rng.choice((1_000, 1_000, 3_000))
    delivery_limit = rng.choice((2, 3, 5))
    session_ms = rng.choice((1_500, 3_000, 6_000))
    plans = _plans(rng, tuple(topic.name for topic in topics))
    return ChaosConfig(
        workload=SHARES,
        roles=roles,
        topics=topics,
        fault_time_ms=12_000,
        kinds=kinds,
        **coordinator_profiles.circumstances(rng),
        skews_ms=clocks_off(roles, rng.choice((0, 5_000))),
        producers=rng.randint(1, 2),
        pause_ms=rng.choice((30, 80, 250)),
        shares=ShareSettings(
            plans=plans,
            lock_ms=lock_ms,
            delivery_limit=delivery_limit,
            work_ms=rng.choice((10, 100, lock_ms // 2)),
            records_max=rng.choice((1, 5, 20, 200)),
            exact=rng.random() < 0.3,
            explicit_share=rng.choice((0.0, 0.5, 1.0)),
            release_share=rng.choice((0.0, 0.1, 0.4)),
            reject_share=rng.choice((0.0, 0.05, 0.2)),
            renew_share=rng.choice((0.0, 0.1)),
            late_share=rng.choice((0.0, 0.05, 0.2)),
            silent_share=rng.choice((0.0, 0.05, 0.3)),
            churn=tuple(sorted(rng.sample(CHURN, rng.randint(0, len(CHURN))))),
            churn_pause_ms=(300, rng.choice((1_500, 5_000))),
        ),
        inquirers=has_inquirers(seed),
        properties={
            **coordinator_profiles.properties(rng),
            "offsets.topic.num.partitions": str(rng.randint(1, 2)),
            "share.coordinator.state.topic.num.partitions": str(rng.randint(1, 3)),
            "share.coordinator.snapshot.update.records.per.snapshot": str(rng.choice((0, 3, 50, 500))),
            "share.coordinator.write.timeout.ms": str(rng.choice((1_000, 5_000))),
            "group.share.min.record.lock.duration.ms": "1000",
            "group.share.record.lock.duration.ms": str(lock_ms),
            "group.share.delivery.count.limit": str(delivery_limit),
            "group.share.min.session.timeout.ms": "1000",
            "group.share.session.timeout.ms": str(session_ms),
            "group.share.min.heartbeat.interval.ms": "100",
            "group.share.heartbeat.interval.ms": str(session_ms // 6),
            "group.share.min.partition.max.record.locks": "100",
            "group.share.partition.max.record.locks": str(rng.choice((100, 2_000))),
            "group.share.initialize.retry.interval.ms": str(rng.choice((500, 3_000))),
            **_sessions(rng, sum(plan.members for plan in plans)),
            "log.flush.interval.messages": rng.choice(("1", "9223372036854775807")),
        },
    )


def _plans(rng: random.Random, topics: tuple[str, ...]) -> tuple[SharePlan, ...]:
    return tuple(
        SharePlan(f"s{n}", rng.randint(1, 3), topics[: rng.randint(1, len(topics))], from_latest=rng.random() < 0.3)
        for n in range(rng.randint(1, 2))
    )


def _sessions(rng: random.Random, members: int) -> dict[str, str]:
    """In half of the runs one session for each member: the session of one that is gone without a word counts until its
    connection is found to be idle."""
    if rng.random() < 0.5:
        return {}
    return {"group.share.max.share.sessions": str(members), "connections.max.idle.ms": "10000"}


def _losing(seed: int, config: ChaosConfig) -> ChaosConfig:
    """The same, with unclean elections that take records away, mostly of the topics, sometimes states."""
    rng = stream(seed, "shares/losing")
    losing = coordinator_profiles.losing(rng, config)
    return replace(
        losing,
        properties={
            **losing.properties,
            "log.flush.interval.messages": rng.choice(("1", "1", "9223372036854775807")),
            "share.coordinator.state.topic.min.isr": rng.choice(("1", "2")),
        },
    )

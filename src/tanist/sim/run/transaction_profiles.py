"""The profiles of a run with transactions, drawn from its seed. See `transactions`."""

from __future__ import annotations

from dataclasses import replace

from tanist.sim.run import coordinator_profiles
from tanist.sim.run.additions import clocks_off, has_inquirers, last_epochs, trimming
from tanist.sim.run.config import (
    BOTH,
    BUMPING,
    CLASSIC,
    CONSUMER,
    OLD,
    TRANSACTIONS,
    ChaosConfig,
    TransactionSettings,
)
from tanist.sim.workload.operations import Topic
from tanist.sim.world.clock import stream

_MEMBERS_SHARE = 0.3


def drawn(seed: int) -> ChaosConfig:
    """What a seed draws for transactions."""
    config = _with_members(seed, _without_losses(seed))
    return _losing(seed, config) if coordinator_profiles.has_losses(stream(seed, "transactions/losses")) else config


def losing_records(seed: int) -> ChaosConfig:
    """The same with losses, whether the seed draws them or not."""
    return _losing(seed, _without_losses(seed))


def with_trimming(seed: int) -> ChaosConfig:
    """The same with retention and DeleteRecords of the applications' topic, and without losses."""
    config = _without_losses(seed)
    return _with_members(seed, replace(config, **trimming(seed, config)))


def of_a_group(seed: int) -> ChaosConfig:
    """The same with members of groups, whether the seed draws them or not, and without losses."""
    return _in_groups(_without_losses(seed), (CLASSIC, CONSUMER)[seed % 2])


def _without_losses(seed: int) -> ChaosConfig:
    rng = stream(seed, "transactions")
    roles = coordinator_profiles.roles(rng)
    kinds = coordinator_profiles.kinds(rng)
    return ChaosConfig(
        workload=TRANSACTIONS,
        roles=roles,
        topics=(Topic("output", rng.randint(2, 4), 3),),
        fault_time_ms=12_000,
        kinds=kinds,
        **coordinator_profiles.circumstances(rng),
        skews_ms=clocks_off(roles, rng.choice((0, 0, 2_000))),
        transactions=TransactionSettings(
            applications=rng.randint(1, 3),
            instances=rng.randint(1, 3),
            clients=rng.choice((OLD, BUMPING, BUMPING, BOTH)),
            client_pause_ms=rng.choice((5, 60, 200)),
            transaction_timeout_ms=rng.choice((1_000, 3_000, 20_000)),
            abort_share=rng.choice((0.0, 0.25, 0.5)),
            abandons=rng.random() < 0.3,
            freezes=rng.random() < 0.7,
        ),
        inquirers=has_inquirers(seed),
        properties={
            **coordinator_profiles.properties(rng),
            "offsets.topic.num.partitions": str(rng.randint(1, 2)),
            "transaction.state.log.num.partitions": str(rng.randint(1, 2)),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(rng.choice((200, 1_000))),
            "log.flush.interval.messages": rng.choice(("1", "9223372036854775807")),
            "log.segment.bytes": str(rng.choice((1_048_576, 1_073_741_824))),
            **last_epochs(seed),
        },
    )


def _with_members(seed: int, config: ChaosConfig) -> ChaosConfig:
    """The same, for a share of the seeds with members of groups."""
    rng = stream(seed, "transactions/members")
    return _in_groups(config, rng.choice((CLASSIC, CONSUMER))) if rng.random() < _MEMBERS_SHARE else config


def _in_groups(config: ChaosConfig, protocol: str) -> ChaosConfig:
    """The same with instances that are members of a group (KIP-447)."""
    settings = replace(config.transactions, members=protocol, instances=max(2, config.transactions.instances))
    return replace(
        config,
        transactions=settings,
        properties={
            **config.properties,
            "group.min.session.timeout.ms": "500",
            "group.initial.rebalance.delay.ms": "100",
            "group.consumer.min.session.timeout.ms": "500",
            "group.consumer.session.timeout.ms": "1500",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": "200",
        },
    )


def _losing(seed: int, config: ChaosConfig) -> ChaosConfig:
    """The same, with unclean elections that take records and markers away, mostly of the applications' topic."""
    return coordinator_profiles.losing(stream(seed, "transactions/losing"), config)

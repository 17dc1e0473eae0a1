"""The profile of a run with transactions, drawn from its seed. See `transaction_run`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tanist.sim.run.additions import has_inquirers, trimming
from tanist.sim.run.profiles import COORDINATOR_KINDS, RARE_COORDINATOR_KINDS, ChaosConfig
from tanist.sim.workload.membership import CLASSIC, CONSUMER
from tanist.sim.workload.operations import Topic
from tanist.sim.world.clock import stream
from tanist.sim.world.world import COMBINED

_LEAVING_KINDS = ("crash", "kill", "stop")
_LOSING_SHARE = 0.2
_MEMBERS_SHARE = 0.3

OLD, BUMPING, BOTH = "old", "bumping", "both"


@dataclass(frozen=True)
class TransactionConfig(ChaosConfig):
    """The configuration of a run with transactions. Times in virtual milliseconds."""

    applications: int = 2
    """Transactional ids."""
    instances: int = 2
    """Clients of each transactional id; all but one are zombies."""
    members: str = ""
    """Protocol of the group whose members the instances are, each with an id of its own; "": they share an id."""
    clients: str = BUMPING
    client_pause_ms: int = 60
    transaction_timeout_ms: int = 3_000
    abort_share: float = 0.25
    abandons: bool = False
    """The first application is gone in the end, perhaps in the middle of a transaction."""
    freezes: bool = True
    """Clients are paused, and go on as zombies."""
    freeze_pause_ms: tuple[int, int] = (300, 3_000)
    frozen_ms: tuple[int, int] = (50, 5_000)

    @classmethod
    def drawn(cls, seed: int) -> TransactionConfig:
        """The configuration of a seed."""
        config = cls._without_losses(seed)._with_members(seed)
        return config.losing(seed) if stream(seed, "transactions/losses").random() < _LOSING_SHARE else config

    @classmethod
    def losing_records(cls, seed: int) -> TransactionConfig:
        """The same with losses, whether the seed draws them or not."""
        return cls._without_losses(seed).losing(seed)

    @classmethod
    def drawn_with_trimming(cls, seed: int) -> TransactionConfig:
        """The same with retention and DeleteRecords of the applications' topic, and without losses."""
        config = cls._without_losses(seed)
        return replace(config, **trimming(seed, config.topics, config.properties))._with_members(seed)

    @classmethod
    def of_a_group(cls, seed: int) -> TransactionConfig:
        """The same with members of groups, whether the seed draws them or not, and without losses."""
        return cls._without_losses(seed).in_groups((CLASSIC, CONSUMER)[seed % 2])

    @classmethod
    def _without_losses(cls, seed: int) -> TransactionConfig:
        rng = stream(seed, "transactions")
        roles = dict.fromkeys((1, 2, 3), COMBINED)
        if rng.random() < 0.2:
            roles[4] = "broker"
        kinds = rng.sample(COORDINATOR_KINDS, rng.randint(3, 7)) + rng.sample(RARE_COORDINATOR_KINDS, rng.randint(0, 2))
        return cls(
            roles=roles,
            topics=(Topic("output", rng.randint(2, 4), 3),),
            fault_time_ms=12_000,
            kinds=tuple(sorted({*kinds, "leader"})),
            fault_pause_ms=(100, rng.choice((1_500, 3_000))),
            operations=rng.choice(((), ("preferred",), ("preferred", "reassign"))),
            latency_us=rng.choice(((50, 300), (50, 300), (500, 5_000))),
            down_max=rng.choice((1, 1, 2)),
            skew_ms_max=rng.choice((0, 0, 2_000)),
            applications=rng.randint(1, 3),
            instances=rng.randint(1, 3),
            clients=rng.choice((OLD, BUMPING, BUMPING, BOTH)),
            client_pause_ms=rng.choice((5, 60, 200)),
            transaction_timeout_ms=rng.choice((1_000, 3_000, 20_000)),
            abort_share=rng.choice((0.0, 0.25, 0.5)),
            abandons=rng.random() < 0.3,
            freezes=rng.random() < 0.7,
            inquirers=has_inquirers(seed),
            properties={
                "broker.session.timeout.ms": "3000",
                "broker.heartbeat.interval.ms": "500",
                "replica.lag.time.max.ms": str(rng.choice((1_000, 3_000))),
                "unclean.recovery.manager.enabled": "true" if rng.random() < 0.7 else "false",
                "tanist.unclean.recovery.grace.ms": str(rng.choice((100, 1_000))),
                "offsets.topic.num.partitions": str(rng.randint(1, 2)),
                "transaction.state.log.num.partitions": str(rng.randint(1, 2)),
                "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(rng.choice((200, 1_000))),
                "log.flush.interval.messages": rng.choice(("1", "9223372036854775807")),
                "log.segment.bytes": str(rng.choice((1_048_576, 1_073_741_824))),
            },
        )

    def _with_members(self, seed: int) -> TransactionConfig:
        """The same, for a share of the seeds with members of groups."""
        rng = stream(seed, "transactions/members")
        return self.in_groups(rng.choice((CLASSIC, CONSUMER))) if rng.random() < _MEMBERS_SHARE else self

    def in_groups(self, protocol: str) -> TransactionConfig:
        """The same with instances that are members of a group (KIP-447)."""
        return replace(
            self,
            members=protocol,
            instances=max(2, self.instances),
            properties={
                **self.properties,
                "group.min.session.timeout.ms": "500",
                "group.initial.rebalance.delay.ms": "100",
                "group.consumer.min.session.timeout.ms": "500",
                "group.consumer.session.timeout.ms": "1500",
                "group.consumer.min.heartbeat.interval.ms": "100",
                "group.consumer.heartbeat.interval.ms": "200",
            },
        )

    def losing(self, seed: int) -> TransactionConfig:
        """The same, with unclean elections that take records and markers away, mostly of the applications' topic."""
        rng = stream(seed, "transactions/losing")
        careless = (("flush.messages", "9223372036854775807"), ("min.insync.replicas", "1"))
        return replace(
            self,
            topics=tuple(replace(topic, configs=(*topic.configs, *careless)) for topic in self.topics),
            kinds=tuple(sorted({"power", "blackout", "leader", rng.choice(_LEAVING_KINDS), rng.choice(self.kinds)})),
            fault_pause_ms=(300, 2_000),
            down_max=3,
            may_lose=True,
            properties={
                **self.properties,
                "unclean.recovery.manager.enabled": "true",
                "unclean.recovery.strategy": "Aggressive",
                "log.flush.interval.messages": "1",
            },
        )

"""The configuration of a run: the cluster, its clients, its links, and what its faults and operators may be.

Owns what a run depends on beside its seed, its faults and its operations: nothing is drawn behind it. A seed draws one
(`drawing.config_of`), a scenario file keeps one, and shrinking takes away what is not needed. The streams of clients
and of the network are the seed's: they are what happens, and not what is configured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tanist.faults import Where, names_of
from tanist.sim.metered import METERED_TOPIC
from tanist.sim.secured import TOPICS as SUBJECTS_TOPICS
from tanist.sim.workload.operations import Topic
from tanist.sim.workload.share_settings import SharePlan, ShareSettings
from tanist.sim.workload.streams_settings import StreamsPlan, StreamsSettings
from tanist.sim.world.link_conditions import WINDOW_BYTES
from tanist.sim.world.world import COMBINED, PRIVATE_REQUESTS

RECORDS, GROUPS, TRANSACTIONS, SHARES, STREAMS = "records", "groups", "transactions", "shares", "streams"
"""The clients of a run: producers and consumers, members of consumer groups, exactly-once applications, members of
share groups, or processes of Streams applications."""

TOPIC = "events"
METERED_TOPICS = (Topic(METERED_TOPIC, 1, 3),)
SUBJECT_TOPICS = tuple(Topic(name, 1, 3) for name in SUBJECTS_TOPICS)
"""Of secured runs, beside those of the workload."""
TURN_RECORDS_MAX = "tanist.metadata.turn.records.max"

CLASSIC, CONSUMER, MIXED, MOVING = "classic", "consumer", "mixed", "moving"
"""The protocol of a group's members: of each, of every second one, or of all that are there at the time."""
MOVES = ("rolling", "empty", "abrupt")
CHURN = ("leave", "die", "pause")

OLD, BUMPING, BOTH = "old", "bumping", "both"
"""Transactional clients that keep their epoch from one transaction to the next, or get another one (KIP-890)."""

DEFAULT_KINDS = tuple(kind for kind in names_of(Where.SEEDS) if kind != "log-dir-failed")


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group of a run."""

    group: str
    protocol: str
    members: int
    """Of a group that moves between the protocols: of each of them."""
    topics: tuple[str, ...]
    is_static: bool = False
    """Its members of the consumer protocol have instance ids, and leave for a while."""


@dataclass(frozen=True)
class GroupSettings:
    """The settings of a run with groups. Times in virtual milliseconds."""

    plans: tuple[GroupPlan, ...] = (GroupPlan("g0", CLASSIC, 3, (TOPIC,)),)
    session_timeout_ms: int = 3_000
    rebalance_timeout_ms: int = 4_000
    commit_pause_ms: int = 120
    watch_pause_ms: int = 150
    churn: tuple[str, ...] = CHURN
    churn_pause_ms: tuple[int, int] = (400, 4_000)
    away_ms: tuple[int, int] = (50, 6_000)
    """Range of the time that a member stays away or is paused; it includes the session timeout."""
    moves: tuple[str, ...] = MOVES
    """How a group goes over to the other protocol: member by member, with nobody between, or after all have died."""
    move_pause_ms: tuple[int, int] = (800, 3_000)
    all_return: bool = True
    """In the end all members return; else only the present ones stay, at least one of each group."""
    grows: bool = True
    """Topics get partitions while groups read them."""


@dataclass(frozen=True)
class TransactionSettings:
    """The settings of a run with transactions. Times in virtual milliseconds."""

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


SETTINGS: Mapping[
    str, type[GroupSettings] | type[TransactionSettings] | type[ShareSettings] | type[StreamsSettings]
] = {
    GROUPS: GroupSettings,
    TRANSACTIONS: TransactionSettings,
    SHARES: ShareSettings,
    STREAMS: StreamsSettings,
}
"""The workloads that have settings of their own, each in the field of its name."""

BY_NODE = ("slices", "skews_ms", "receive_bytes")
"""The fields that have a number for some of the nodes."""


@dataclass(frozen=True)
class ChaosConfig:
    """The configuration of a run. Times in virtual milliseconds."""

    workload: str = RECORDS
    groups: GroupSettings = GroupSettings()
    """Of a run with groups."""
    transactions: TransactionSettings = TransactionSettings()
    """Of a run with transactions."""
    shares: ShareSettings = field(default_factory=ShareSettings)
    """Of a run with share groups."""
    streams: StreamsSettings = field(default_factory=StreamsSettings)
    """Of a run with Streams groups."""

    # The cluster.
    roles: Mapping[int, str] = field(default_factory=lambda: dict.fromkeys((1, 2, 3), COMBINED))
    """Node -> broker, controller, or both."""
    plain: tuple[int, ...] = ()
    """Brokers that have Kafka's requests only: they are asked for the ends of their logs as Apache's are."""
    slices: Mapping[int, int] = field(default_factory=dict)
    """Node -> `tanist.metadata.turn.records.max`: it needs many turns for what is many partitions' work elsewhere."""
    skews_ms: Mapping[int, int] = field(default_factory=dict)
    """Node -> the difference of its time of day from the true one, from the beginning."""
    directories: int = 1
    """Log directories of each node."""
    topics: tuple[Topic, ...] = (Topic(TOPIC, 2, 3),)
    min_insync_replicas: int = 2
    """Of the cluster, at first."""
    voters: tuple[int, ...] = ()
    """The first voters of a dynamic quorum (kraft.version 1). Without any all controllers vote, for good."""
    large_write_bytes: int = 0
    """From how many bytes on a produce request is large, whose records are written off the loop. 0: none is."""
    properties: Mapping[str, str] = field(default_factory=dict)

    # The links.
    latency_us: tuple[int, int] = (50, 300)
    window_bytes: int = WINDOW_BYTES
    """The window of each connection: in a small one the rest of an answer waits at the sender."""
    receive_bytes: Mapping[int, int] = field(default_factory=dict)
    """Node -> the receive buffers of those that read from it, which take its answers piece by piece, until the faults
    are over."""
    stall_ms: int = 0
    """What is half sent stays so for up to that long when a log of its sender is truncated, rolled, compacted or
    deleted, until the faults are over."""

    raise_pause_ms: tuple[int, int] = (0, 0)
    """Between two exceptions that the run plants in nodes (`sim.planted`), beside the faults of `kinds`; 0: none."""

    # Producers and consumers of records.
    producers: int = 2
    """Of each topic, with idempotence and acks=all."""
    careless_producers: int = 0
    """With acks=1: their records may be lost, and make logs diverge."""
    event_age_ms: int = 0
    """The timestamps of their records are so old."""
    value_bytes: int = 0
    """The length of each value; 0: any. Where batches are of one length, those of two histories begin at the same
    positions."""
    observers: int = 1
    late_consumers: int = 0
    """Of each topic: they start at half time, and read everything from the start, again and again."""
    pause_ms: int = 60

    # Faults, operators, and the end.
    fault_time_ms: int = 12_000
    settle_time_ms: int = 60_000
    kinds: tuple[str, ...] = DEFAULT_KINDS
    fault_pause_ms: tuple[int, int] = (100, 2_500)
    down_max: int = 1
    left_out: int = 0
    """Number of brokers that stay down for a while after the faults. Of a run with records."""
    may_lose: bool = False
    """Faults may exceed the promise of the protocol; lost records must be reported."""
    operations: tuple[str, ...] = ()
    operation_pause_ms: tuple[int, int] = (500, 4_000)
    voter_operations: tuple[str, ...] = ()
    voter_pause_ms: tuple[int, int] = (500, 4_000)
    throttle_operations: tuple[str, ...] = ()
    throttle_pause_ms: tuple[int, int] = (500, 4_000)
    throttle_bytes: int = 0
    """The rate of throttled replicas, in a second."""
    move_operations: tuple[str, ...] = ()
    """Of an operator who moves replicas between log directories."""
    move_pause_ms: tuple[int, int] = (500, 4_000)
    move_bytes: int = 0
    """The rate of a move that is slow, in a second."""
    trim_operations: tuple[str, ...] = ()
    """Of an operator who deletes records."""
    trim_pause_ms: tuple[int, int] = (500, 4_000)
    inquirers: bool = False
    """Each broker is asked all the time what there is."""
    secured: bool = False
    """Everybody authenticates, and subjects do what access control entries allow (`sim.secured`)."""
    share_operations: tuple[str, ...] = ()
    """Of an operator who changes the offsets of share groups."""
    share_pause_ms: tuple[int, int] = (1_000, 5_000)
    access_operations: tuple[str, ...] = ()
    """Of an operator who changes entries, users and tokens, of a secured run."""
    access_pause_ms: tuple[int, int] = (500, 4_000)
    quotas: bool = False
    """Clients have quotas (`sim.metered`). Of a secured run."""
    quota_operations: tuple[str, ...] = ()
    """Of an operator who changes them."""
    quota_pause_ms: tuple[int, int] = (500, 4_000)

    @property
    def plans(self) -> tuple[GroupPlan | SharePlan | StreamsPlan, ...]:
        """The groups of its workload, if it has any."""
        match self.workload:
            case "groups":
                return self.groups.plans
            case "shares":
                return self.shares.plans
            case "streams":
                return self.streams.plans
        return ()

    @property
    def trims(self) -> bool:
        """Whether records go, by an operator or by retention."""
        kept = ("retention.bytes", "retention.ms")
        return bool(self.trim_operations) or any(name in kept for topic in self.topics for name, _ in topic.configs)

    @property
    def all_operations(self) -> tuple[str, ...]:
        """Kinds, of all operators."""
        return (
            *self.operations,
            *self.voter_operations,
            *self.throttle_operations,
            *self.move_operations,
            *self.trim_operations,
            *self.share_operations,
            *self.access_operations,
            *self.quota_operations,
        )

    @property
    def own_properties(self) -> dict[int, dict[str, str]]:
        """Node -> the properties that the others do not have."""
        own: dict[int, dict[str, str]] = {node_id: {} for node_id in self.roles}
        for node_id in own.keys() & set(self.plain):
            own[node_id][PRIVATE_REQUESTS] = "false"
        for node_id in own.keys() & self.slices.keys():
            own[node_id][TURN_RECORDS_MAX] = str(self.slices[node_id])
        return own

    @property
    def nodes_with_conditions(self) -> set[int]:
        """The nodes that are not as any other."""
        return {*self.plain, *(node_id for name in BY_NODE for node_id in getattr(self, name))}

    def without_conditions_of(self, node_id: int) -> ChaosConfig:
        """The same with that node as any other."""
        others: dict[str, Any] = {
            name: {each: value for each, value in getattr(self, name).items() if each != node_id} for name in BY_NODE
        }
        return replace(self, plain=tuple(each for each in self.plain if each != node_id), **others)

    def with_settings(self, **changes: Any) -> ChaosConfig:
        """The same with changes of its workload's own settings (`groups` and so on)."""
        return replace(self, **{self.workload: replace(getattr(self, self.workload), **changes)})

    def calm(self) -> ChaosConfig:
        """The same without faults, operators, churn and zombies."""
        return replace(
            self,
            kinds=(),
            operations=(),
            share_operations=(),
            access_operations=(),
            quota_operations=(),
            may_lose=False,
            groups=replace(self.groups, churn=(), moves=(), grows=False),
            transactions=replace(self.transactions, freezes=False),
            shares=replace(self.shares, churn=()),
            streams=replace(self.streams, churn=(), slow_share=0.0),
        )

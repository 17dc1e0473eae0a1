"""The form in which the view gets a cluster: one for every source.

Owns the values, their JSON, and the difference of two samples. A sample is a flat map from a key to a value; a value is
replaced as a whole. So a difference is the keys that are set and those that are gone, a history is a list of
differences, and any source can be played back. Nothing here names a file, a process or a socket. None in a value means:
this source does not say.

Keys: `cluster`; `p/TOPIC/N` (a partition); `r/TOPIC/N` (the positions of its replicas, of watched partitions only);
`t/TOPIC/N` (a watched partition's traffic); `b/ID` (a broker's traffic); `e/OFFSET` (a change in the metadata log;
`e/OFFSET/...` where a record makes several); `groups`; `salvage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, lru_cache
from sys import intern
from typing import Any, Literal, TypeAlias

from tanist.runtime.client.replica_positions import ReplicaPositions

Json: TypeAlias = Any
Sample: TypeAlias = Mapping[str, Json]

Danger: TypeAlias = Literal[
    "offline", "recovering", "under-min-isr", "at-min-isr", "under-replicated", "unclean", "healthy"
]
"""The worst first. `unclean`: its leader epoch began with an unclean election."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """A broker, a controller, or both."""

    id: int
    roles: tuple[str, ...]
    state: str
    """running, starting, fenced, unreachable, paused, stopped, crashed or unknown."""
    why: str | None = None
    fenced: bool | None = None
    """As the metadata has it."""
    since_ms: int | None = None
    """Since when it is dead, by the wall clock."""


@dataclass(frozen=True, slots=True)
class FaultState:
    """A fault in force."""

    kind: str
    nodes: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster as a whole."""

    source: Literal["cluster", "bootstrap", "simulator"]
    cluster_id: str | None = None
    controller: int | None = None
    quorum_epoch: int | None = None
    nodes: tuple[NodeState, ...] = ()
    faults: tuple[FaultState, ...] = ()
    problem: str | None = None
    """Why the sample is old or not whole."""
    absent: tuple[str, ...] = ()
    """What this source cannot show, a sentence each."""
    actions: tuple[str, ...] = ()
    """The faults that can be asked for here."""
    options: str = ""
    """What commands need to mean this cluster: ` --data DIR`."""


@dataclass(frozen=True, slots=True)
class OfPartition:
    """Something of one partition."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class PartitionView(OfPartition):
    """A partition as the metadata has it, and what that means."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    danger: Danger
    why: str
    min_isr: int
    """Configured, but no more than there are replicas."""
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    partition_epoch: int | None = None
    recovering: bool | None = None
    last_unclean_epoch: int = -1
    strategy: str | None = None
    internal: bool = False


@dataclass(frozen=True, slots=True)
class Stretch:
    """Acknowledged records that stand on the same number of logs."""

    start: int
    end: int
    copies: int
    synced: int
    """Of the copies, those that are synced to disk."""
    live: int
    """Of the copies, those on live brokers."""


@dataclass(frozen=True, slots=True)
class IfDies:
    """What the death of one broker would mean to a partition."""

    broker: int
    leader: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    only_here: int
    """Acknowledged records that no other replica has."""
    destroyed: int
    """Of those, the ones that a power loss takes: not synced to this disk."""
    only_dead: int
    """Acknowledged records that other replicas have, and none of a broker that runs."""
    missing: int
    """Acknowledged records that the next leader does not have."""
    text: str


@dataclass(frozen=True, slots=True)
class PartitionPositions(OfPartition):
    """A watched partition's replicas, and what follows from where they stand."""

    replicas: tuple[ReplicaPositions, ...]
    acknowledged: int | None = None
    """Records below are acknowledged to producers with acks=all: the high watermark."""
    stretches: tuple[Stretch, ...] = ()
    if_dies: tuple[IfDies, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionTraffic(OfPartition):
    """What a partition's leader appends a second. Consumed bytes are counted by broker only."""

    records_in: float
    bytes_in: float
    records_out: float | None = None
    """As groups commit them, all groups together."""


@dataclass(frozen=True, slots=True)
class BrokerTraffic:
    """A broker's records and bytes a second: of producers and consumers, and of replication."""

    broker: int
    records_in: float
    bytes_in: float
    bytes_out: float
    replication_in: float
    replication_out: float


@dataclass(frozen=True, slots=True)
class MetadataEvent:
    """A change in the metadata log."""

    offset: int
    at_ms: int
    record: str
    text: str
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    why: str | None = None
    weight: int = 1
    """0: of little interest; 2: a turning point."""
    worse: bool | None = None
    """Something is worse off than before; False: it is better off."""
    after: PartitionView | None = None


@dataclass(frozen=True, slots=True)
class GroupPartition(OfPartition):
    """A group's committed offset, and the end of the log if it is known."""

    committed: int
    end: int | None = None


@dataclass(frozen=True, slots=True)
class GroupState:
    group: str
    kind: str
    state: str
    lag: int | None
    partitions: tuple[GroupPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class SalvageState:
    """Records that were cut from one replica's log and saved."""

    id: str
    topic: str
    partition: int
    broker: int
    start: int
    end: int
    why: str
    at_ms: int
    leader_epoch: int
    epochs: tuple[tuple[int, int], ...] = ()


def plain(value: Any) -> Json:
    """A value as JSON has it; fields that are None are left out. Not to be changed: equal parts are one object."""
    kind: Any = type(value)
    if kind is int or kind is bool or value is None or kind is float:
        return value
    if kind is str:
        return intern(value)  # ten thousand partitions have a few topics, and a few sentences
    if kind is tuple or kind is list:
        return _plain_ids(value) if kind is tuple and all(type(each) is int for each in value) else [*map(plain, value)]
    if is_dataclass(value):
        return {name: plain(found) for name in _names(kind) if (found := getattr(value, name)) is not None}
    return value


@lru_cache(4096)
def _plain_ids(value: tuple[int, ...]) -> list[int]:
    """Replicas, ISR, ELR: the same few lists again and again."""
    return list(value)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def danger_of(
    *, leader: int, leader_epoch: int, isr: int, replicas: int, min_isr: int, recovering: bool, last_unclean_epoch: int
) -> Danger:
    """The worst that can be said of a partition; `isr` and `replicas` are numbers."""
    if leader < 0:
        return "offline"
    if recovering:
        return "recovering"
    if isr < min_isr:
        return "under-min-isr"
    if isr < replicas:
        return "at-min-isr" if isr == min_isr else "under-replicated"
    return "unclean" if last_unclean_epoch == leader_epoch else "healthy"


@dataclass(frozen=True, slots=True)
class Difference:
    """From one sample to the next."""

    at_ms: int
    set: Mapping[str, Json] = field(default_factory=dict)
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.gone)


def difference(before: Sample, after: Sample, at_ms: int) -> Difference:
    """The keys whose values have changed; a value that is the same object is not compared."""
    missing = object()
    changed = {
        key: value
        for key, value in after.items()
        if (found := before.get(key, missing)) is not value and found != value
    }
    return Difference(at_ms, changed, tuple(key for key in before if key not in after))

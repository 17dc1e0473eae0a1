"""Events of the world: what faults, operators and checkers do and see, as typed values.

Faults and operators emit them and know no checker; checkers emit what is committed and lost. `World.emit` passes them
to all watchers, and `event_text` renders them. What a node itself decides and sees are `tanist.events`.

Names: a node is `node_id`; a host of the network (a node or a client) is its name; `partition_name` is as "events-0".
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from tanist.controller.image.partition_state import PartitionState
from tanist.events import event
from tanist.quorum.voters import VoterSet
from tanist.wire.ids import TopicIdPartition

Links = tuple[tuple[str, str], ...]
"""(from host, to host)"""
TopicPartition = tuple[str, int]


class Place(NamedTuple):
    """A partition, or one of its replicas."""

    partition: str
    """As "events-0"."""
    node_id: int | None = None

    def __str__(self) -> str:
        return self.partition if self.node_id is None else f"{self.partition} on node {self.node_id}"


class Event(event.Event):
    """What has happened in the world, outside of its nodes' programs: none of the kinds that nodes emit."""

    kinds: ClassVar[dict[str, type[event.Event]]] = {}


class NodeEvent(Event):
    """Something has happened to a node, its machine or its disks."""

    node_id: int


# -- processes and machines


class LifeBegan(NodeEvent):
    """A process of the node is started."""

    life: int
    """Its number, from 1."""


class GaveUp(NodeEvent):
    """The node has ended itself."""

    reason: str


class CannotStart(NodeEvent):
    """The process has ended before it was a node."""

    reason: str


class DiedMidTurn(NodeEvent):
    """SIGKILL in the middle of a turn."""


class Killed(NodeEvent):
    """SIGKILL between two turns: the process is gone, the page cache is not."""


class PowerLost(NodeEvent):
    """The machine has lost its power and all unsynced data."""


class StopRequested(NodeEvent):
    """SIGTERM: a controlled shutdown begins."""


class Stopped(NodeEvent):
    """And is done."""


class ExceptionPlanted(NodeEvent):
    """The run raises an exception in one of its next calls of that place (`sim.planted`)."""

    place: str


class PlantedRaised(NodeEvent):
    """It was raised some time ago, in the process that still runs."""

    place: str
    reported: bool
    """Whether the node has said that it met it."""


class Frozen(NodeEvent):
    """SIGSTOP, or a long pause of its machine."""


class Thawed(NodeEvent):
    """It goes on."""


class ClockSkewed(NodeEvent):
    """Its time of day jumps."""

    skew_ms: int


class Healed(NodeEvent):
    """A user takes all faults of the node away."""


class ClientAway(Event):
    """A client is frozen, dies, or leaves its group, for a time."""

    client: str
    how: str
    away_ms: int


# -- disks


class SyncsSlowed(NodeEvent):
    """The syncs of its disk take long."""


class DiskFailed(NodeEvent):
    """Every access to its disk fails."""


class DiskMended(NodeEvent):
    """And does not any more."""


class DiskFilled(NodeEvent):
    """The disk of these log directories is full: the ends of their logs are unknown until they are read
    again."""

    paths: tuple[str, ...]


class DiskFreed(NodeEvent):
    """It has space again."""


class DirectoryFailed(NodeEvent):
    """A log directory fails: the ends of its logs are unknown until they are read again."""

    path: str


class DirectoryMended(NodeEvent):
    """And does not any more."""

    path: str


class DiskReplaced(NodeEvent):
    """An empty disk is in the place of a log directory, while the node is down."""

    path: str


class MetadataDiskReplaced(NodeEvent):
    """The disk of the metadata log is gone: an empty one, with another directory id, is in its place."""


class BitRotted(NodeEvent):
    """A synced batch of a replica's log is not what was written."""

    partition: TopicIdPartition
    path: str
    offset: int
    """Of the byte, in the file."""


class LogRestored(NodeEvent):
    """A rotten log was restored from a copy."""

    partition: TopicIdPartition


class LogRemoved(NodeEvent):
    """A log is gone, while its node was down: an operator has removed it, or its disk is a new one."""

    partition: TopicIdPartition


class FolderRemoved(NodeEvent):
    """An operator has removed the folder of a log."""

    path: str


# -- links


class LinksFailed(Event):
    """Links of these hosts fail, in one of the ways of `faults.links`."""

    kind: str
    hosts: tuple[str, ...]
    others: tuple[str, ...] = ()
    """At the other ends, where they are named."""
    number: int = 0
    """Of the links, where they are not."""


class LinksMended(Event):
    """The hosts are connected again."""

    hosts: tuple[str, ...]


class LinksSteady(Event):
    """The links of a host to another one do not flap any more."""

    host: str
    other: str


class BytesLate(Event):
    """What is sent over these links from now on is that long under way."""

    late_ms: int
    links: Links


class NearEndsReset(Event):
    """The near ends of these links get a reset, and the far ends do not."""

    links: Links


# -- operators


class RestartOfAllBegan(NodeEvent):
    """An operator restarts all nodes one by one, this one first."""


class ReassignmentRequested(Event):
    """An operator wants a partition on these replicas; None: its reassignment is cancelled."""

    partition_name: str
    replicas: tuple[int, ...] | None
    throttle_bytes: int | None = None
    """In a second."""


class DirectoryRequested(NodeEvent):
    """An operator wants a replica in this log directory of the node."""

    partition_name: str
    path: str
    rate_bytes: int | None = None
    """In a second."""


class ThrottlesRemoved(Event):
    """An operator takes the rates of throttled replicas away."""


class ConfigRequested(Event):
    """An operator asks for another value of a configuration; None: that of the cluster."""

    topic: str
    """Empty: of the cluster."""
    key: str
    value: str | None


class ElrVersionRequested(Event):
    """An operator asks for a level of `eligible.leader.replicas.version`. At 0 the protocol survives no loss of a page
    cache any more."""

    level: int


class PreferredLeadersRequested(Event):
    """An operator asks for preferred leaders."""


class UncleanElectionRequested(Event):
    """An operator asks for a leader that may lack committed records."""

    partition: TopicIdPartition
    partition_name: str
    election_type: int
    desired: int | None


class UnregistrationRequested(Event):
    """An operator asks for a broker's registration to be removed."""

    broker_id: int


class DeletionRequested(Event):
    """An operator asks the leader of a partition to delete the records below an offset (-1: the high watermark)."""

    number: int
    """Of the request, in this run."""
    partition: TopicIdPartition
    partition_name: str
    offset: int


class DeletionAnswered(Event):
    """And gets an answer."""

    number: int
    broker_id: int
    error: int
    low_watermark: int


class VoterRequested(Event):
    """An operator asks for a node to be added to the voters of the quorum, or removed."""

    node_id: int
    adds: bool


class AccessRequested(Event):
    """An operator asks for a change of access: entries, users or tokens."""

    what: str


class QuotaRequested(Event):
    """An operator asks for a change of quotas."""

    what: str


class GroupMoved(Event):
    """A group goes over to the other protocol."""

    group: str
    protocol: str
    how: str


class TopologyChanged(Event):
    """Processes of an application get another topology."""

    group: str
    how: str


class PartitionsRequested(Event):
    """An operator asks for more partitions of a topic."""

    topic: str
    count: int


# -- what is committed, received and lost


class PartitionStateCommitted(Event):
    """The first node has applied a committed record that changes a partition."""

    partition: TopicIdPartition
    partition_name: str
    before: PartitionState | None
    after: PartitionState


class ElrSwitched(Event):
    """Eligible leader replicas are on, or off, from this record on."""

    on: bool


class VotersCommitted(Event):
    """Another set of voters of the quorum is committed."""

    voters: VoterSet


class RecordsLost(Event):
    """An unclean election has given committed records up."""

    partition_name: str
    lost: int
    committed: int
    leader: int


class MemberAssigned(Event):
    """A member of a group has received an assignment."""

    client: str
    group: str
    epoch: int
    partitions: tuple[TopicPartition, ...]


class MemberRevoked(Event):
    """A member of a group gives partitions up."""

    client: str
    group: str
    partitions: tuple[TopicPartition, ...]


class PropertyViolated(Event):
    """A checker has ended the run."""

    text: str

"""Events from outside the nodes: faults and operators emit them, checkers receive them.

Faults and operators know no checker. An event says what was done, at the moment when it is done; checkers decide what
it means for the promises of the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.wire.ids import TopicIdPartition


@dataclass(frozen=True, slots=True)
class BitRotted:
    """A synced batch of a replica's log is not what was written."""

    node_id: int
    partition: TopicIdPartition


@dataclass(frozen=True, slots=True)
class LogRestored:
    """A rotten log was restored from a copy."""

    node_id: int
    partition: TopicIdPartition


@dataclass(frozen=True, slots=True)
class LogRemoved:
    """A log is gone, while its node was down: an operator has removed it, or its disk is a new one."""

    node_id: int
    partition: TopicIdPartition


@dataclass(frozen=True, slots=True)
class DirectoryFailed:
    """A log directory fails: the ends of its logs are unknown until they are read again."""

    node_id: int
    path: str


@dataclass(frozen=True, slots=True)
class UncleanElectionRequested:
    """An operator asks for a leader that may lack committed records."""

    partition: TopicIdPartition


@dataclass(frozen=True, slots=True)
class UnregistrationRequested:
    """An operator asks for a broker's registration to be removed."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class ElrDowngradeRequested:
    """An operator asks for `eligible.leader.replicas.version` 0: the protocol survives no loss of a page cache any
    more."""


@dataclass(frozen=True, slots=True)
class MetadataDiskReplaced:
    """The disk of a node's metadata log is gone: an empty one, with another directory id, is in its place."""

    node_id: int


@dataclass(frozen=True, slots=True)
class DeletionRequested:
    """An operator asks the leader of a partition to delete the records below an offset (-1: the high watermark)."""

    number: int
    """Of the request, in this run."""
    partition: TopicIdPartition
    offset: int


@dataclass(frozen=True, slots=True)
class DeletionAnswered:
    """And gets an answer."""

    number: int
    broker_id: int
    error: int
    low_watermark: int


Event = (
    BitRotted
    | LogRestored
    | LogRemoved
    | DirectoryFailed
    | UncleanElectionRequested
    | UnregistrationRequested
    | ElrDowngradeRequested
    | MetadataDiskReplaced
    | DeletionRequested
    | DeletionAnswered
)

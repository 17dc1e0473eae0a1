"""The effects of a coordinator's shard: answers to send, and records to append to its partition.

A ticket is an opaque value that the caller passes with a request, to find the client again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import UUID

from tanist.wire.coordinator_records import CoordinatorKey, CoordinatorValue
from tanist.wire.errors import ErrorCode

NEVER_MS: Final = 1 << 62
"""No deadline, by the monotonic clock."""

GroupRecord: TypeAlias = tuple[CoordinatorKey, CoordinatorValue | None]
"""A key and a value; no value is a tombstone. The appender fills in its times of day."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Send this response (or, of a request for several groups, this group's part of it)."""

    ticket: object
    response: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAppend:
    """Something for the log of the shard's partition."""

    producer: tuple[int, int] | None = None
    """The producer id and epoch of the transaction that the records belong to; None if they count once committed."""


@dataclass(frozen=True, slots=True)
class MarkerAppend(LogAppend):
    """Append the marker that ends a transaction in this partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    ticket: object
    """Gets the error code, 0 when the marker is committed."""


@dataclass(frozen=True, slots=True)
class Append(LogAppend):
    """Append these records, in one batch. Once they are committed: `GroupShard.apply`; then, or on failure: `written`.

    An append that was reported as failed may be committed all the same, and is applied then.
    """

    group_id: str
    records: tuple[GroupRecord, ...]
    """Those of groups were applied when they were decided; offsets are, once they are committed."""
    purpose: Purpose
    undo: tuple[GroupRecord, ...] = ()
    """The records that undo the decision if the log refuses it."""
    before: Any = None
    """The group of the classic protocol that the decision has ended or changed, if there was one."""


@dataclass(frozen=True, slots=True)
class InitializeShareState:
    """Have the state of share partitions made, each from its start offset; then `ShareGroups.state_initialized`."""

    group_id: str
    state_epoch: int
    partitions: Mapping[UUID, Mapping[int, int]]
    """Start offsets, by topic id and partition."""
    ticket: object = None
    response: Any = None
    """The answer to who has asked for it; None: it was a heartbeat, which is answered."""


@dataclass(frozen=True, slots=True)
class FindShareState:
    """See whether the state of share partitions is still there; then `ShareGroups.state_missed`, of those without."""

    group_id: str
    partitions: Mapping[UUID, Iterable[int]]


@dataclass(frozen=True, slots=True)
class DeleteShareState:
    """Have the state of share partitions deleted; then `ShareGroups.state_deleted`."""

    group_id: str
    partitions: Mapping[UUID, Iterable[int]]
    ticket: object
    refused: tuple[Any, ...] = ()
    """Of the answer: topics that have none."""
    whole_group: bool = False
    """The group itself goes afterwards."""


Effect: TypeAlias = Answer | Append | MarkerAppend | InitializeShareState | FindShareState | DeleteShareState


@dataclass(frozen=True, slots=True)
class AssignmentStored:
    """The leader's assignment for this generation: when it is stored, members get their assignments."""

    generation_id: int
    number: int
    """If a leader assigned twice, the later assignment counts."""


@dataclass(frozen=True, slots=True)
class StaticMemberStored:
    """A static member came back under a new member id."""

    ticket: object
    response: Any


@dataclass(frozen=True, slots=True)
class GroupEmptied:
    """The last member has left. No client waits for it."""


@dataclass(frozen=True, slots=True)
class OffsetsStored:
    """A commit. `response` is the answer if it succeeds."""

    ticket: object
    response: Any


@dataclass(frozen=True, slots=True)
class OffsetsDeleted:
    """Offsets were removed by an operator.

    `response` is the answer if it succeeds. If their topic was deleted there is no client, and both are None.
    """

    ticket: object
    response: Any


@dataclass(frozen=True, slots=True)
class GroupDeleted:
    """A group was removed by an operator."""

    ticket: object


@dataclass(frozen=True, slots=True)
class ConsumerGroupChanged:
    """A decision of a consumer group (KIP-848), a share group (KIP-932) or a Streams group (KIP-1071).

    Without records it waits for earlier appends. A ticket of None: there is no client.
    """

    ticket: object
    response: Any
    refusal: Callable[[int], Any] | None
    """The response with this error."""
    then: tuple[Any, ...] = ()
    """Effects once it is committed; where there are any and no response, one of them answers."""


Purpose: TypeAlias = (
    AssignmentStored
    | StaticMemberStored
    | GroupEmptied
    | OffsetsStored
    | OffsetsDeleted
    | GroupDeleted
    | ConsumerGroupChanged
)


_NOT_NOW = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_NOT_HERE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR})
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE})


class Refused(Exception):
    """A refusal of the request with this error; nothing has changed."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


def group_error(append_error: int, *, too_large: int = ErrorCode.UNKNOWN_SERVER_ERROR) -> int:
    """The error for a member when the log refused a record: it retries, here or elsewhere, or gives up."""
    if append_error in _NOT_NOW:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if append_error in _NOT_HERE:
        return ErrorCode.NOT_COORDINATOR
    if append_error in _TOO_LARGE:
        return too_large
    return append_error

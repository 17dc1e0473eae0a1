"""What a group wants done: answers to be sent, and records to be appended to its partition of `__consumer_offsets`.

A ticket is whatever the caller gave along with a request, so that it finds the client again; it is not looked at here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tanist.wire.errors import ErrorCode
from tanist.wire.group_record import GroupRecordKey, GroupRecordValue

GroupRecord: TypeAlias = tuple[GroupRecordKey, GroupRecordValue | None]
"""A key and a value; no value is a tombstone. Times of day in it are for whoever appends it to fill in."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Send this response (or, of a request for several groups, this group's part of it)."""

    ticket: object
    response: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Append these records, in one batch. Once they are committed: `Shard.apply`; then, or on failure: `Shard.written`.

    An append that was reported as failed may be committed all the same, and is applied then.
    """

    group_id: str
    records: tuple[GroupRecord, ...]
    purpose: Purpose


Effect: TypeAlias = Answer | Append


@dataclass(frozen=True, slots=True)
class AssignmentStored:
    """The leader's assignment for this generation: when it is stored, members are told of theirs."""

    generation_id: int
    number: int
    """Of a leader that assigned twice, the later one counts."""


@dataclass(frozen=True, slots=True)
class StaticMemberStored:
    """A static member came back under a new member id."""

    ticket: object
    response: Any


@dataclass(frozen=True, slots=True)
class GroupEmptied:
    """The last member is gone. Nobody waits for it."""


@dataclass(frozen=True, slots=True)
class OffsetsStored:
    """A commit. `response` is what to answer if it succeeds."""

    ticket: object
    response: Any


@dataclass(frozen=True, slots=True)
class OffsetsDeleted:
    """Offsets were removed by an operator. `response` is what to answer if it succeeds.

    Or their topic was deleted: then nobody is to be answered, and both are None.
    """

    ticket: object
    response: Any


@dataclass(frozen=True, slots=True)
class GroupDeleted:
    """A group was removed by an operator."""

    ticket: object


@dataclass(frozen=True, slots=True)
class ConsumerGroupChanged:
    """A consumer group (KIP-848) has decided something, and is ahead of the log by it.

    With no records it waits for what was appended before. A ticket of None: nobody asked.
    """

    ticket: object
    response: Any
    refusal: Callable[[int], Any] | None
    """The answer that says this error."""
    group: object
    undo: tuple[GroupRecord, ...]
    """What makes the group what it was, should the log refuse the records."""
    before: tuple[Any, ...]
    """The group of the classic protocol that it was until then, if it was one."""


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


def group_error(append_error: int, *, too_large: int = ErrorCode.UNKNOWN_SERVER_ERROR) -> int:
    """What a member is told when the log refused a record: it asks again, here or elsewhere, or gives up."""
    if append_error in _NOT_NOW:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if append_error in _NOT_HERE:
        return ErrorCode.NOT_COORDINATOR
    if append_error in _TOO_LARGE:
        return too_large
    return append_error

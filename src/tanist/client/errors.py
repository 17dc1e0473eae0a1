"""The meaning of each error to a client: one table, by API and error code.

Owns nothing but the table. Drivers do what a meaning says: they wait, look somebody up again, or give up. An error that
the table does not have is final.

No answer (a broken connection, a timeout) means `FIND`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.schema import Response


class Meaning(Enum):
    """What a client does after an answer."""

    DONE = "the request was carried out"
    WAIT = "send the same request to the same broker again, a little later"
    FIND = "look up again who leads, or coordinates, and send the same request there"
    RESET_POSITION = "the log does not have the offset: continue elsewhere in it"
    NEW_SEQUENCE = "the producer's sequence is lost: continue with a new producer id or epoch"
    ABORT = "the transaction can only be aborted"
    FENCED = "another producer has the transactional id"
    JOIN = "the group has gone on without this member: join again"
    REBALANCE = "the group is changing, and this member is in it"
    FINAL = "the same request gets the same error"

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self in _RETRIABLE


_RETRIABLE: Final = frozenset({Meaning.WAIT, Meaning.FIND})

_OF_ALL: Final[Mapping[int, Meaning]] = {
    ErrorCode.NONE: Meaning.DONE,
    ErrorCode.OFFSET_OUT_OF_RANGE: Meaning.RESET_POSITION,
    ErrorCode.CORRUPT_MESSAGE: Meaning.FIND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Meaning.FIND,
    ErrorCode.LEADER_NOT_AVAILABLE: Meaning.FIND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Meaning.FIND,
    ErrorCode.REQUEST_TIMED_OUT: Meaning.FIND,
    ErrorCode.REPLICA_NOT_AVAILABLE: Meaning.FIND,
    ErrorCode.NETWORK_EXCEPTION: Meaning.FIND,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Meaning.FIND,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Meaning.FIND,
    ErrorCode.NOT_COORDINATOR: Meaning.FIND,
    ErrorCode.NOT_ENOUGH_REPLICAS: Meaning.FIND,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Meaning.FIND,
    ErrorCode.NOT_CONTROLLER: Meaning.FIND,
    ErrorCode.KAFKA_STORAGE_ERROR: Meaning.FIND,
    ErrorCode.LISTENER_NOT_FOUND: Meaning.FIND,
    ErrorCode.FENCED_LEADER_EPOCH: Meaning.FIND,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Meaning.FIND,
    ErrorCode.UNKNOWN_TOPIC_ID: Meaning.FIND,
    ErrorCode.INCONSISTENT_TOPIC_ID: Meaning.FIND,
    ErrorCode.OFFSET_NOT_AVAILABLE: Meaning.WAIT,
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: Meaning.WAIT,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: Meaning.WAIT,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: Meaning.WAIT,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: Meaning.WAIT,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: Meaning.WAIT,
    ErrorCode.ELECTION_NOT_NEEDED: Meaning.WAIT,
    ErrorCode.CONCURRENT_TRANSACTIONS: Meaning.WAIT,
    ErrorCode.UNSTABLE_OFFSET_COMMIT: Meaning.WAIT,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: Meaning.WAIT,
    ErrorCode.SHARE_SESSION_NOT_FOUND: Meaning.WAIT,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH: Meaning.WAIT,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: Meaning.WAIT,
    ErrorCode.REQUEST_LIMIT_REACHED: Meaning.WAIT,
    # The static member of before has died, and its session has not ended yet.
    ErrorCode.UNRELEASED_INSTANCE_ID: Meaning.WAIT,
    ErrorCode.INVALID_PRODUCER_EPOCH: Meaning.FENCED,
    ErrorCode.PRODUCER_FENCED: Meaning.FENCED,
    ErrorCode.TRANSACTION_ABORTABLE: Meaning.ABORT,
    ErrorCode.UNKNOWN_MEMBER_ID: Meaning.JOIN,
    ErrorCode.FENCED_MEMBER_EPOCH: Meaning.JOIN,
    ErrorCode.ILLEGAL_GENERATION: Meaning.JOIN,
    ErrorCode.STALE_MEMBER_EPOCH: Meaning.REBALANCE,
    ErrorCode.REBALANCE_IN_PROGRESS: Meaning.REBALANCE,
}

_NOT_KNOWN_YET: Final[Mapping[int, Meaning]] = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Meaning.WAIT}
"""A coordinator does not know of a partition that was made a moment ago."""
_OF_API: Final[Mapping[int, Mapping[int, Meaning]]] = {
    ApiKey.PRODUCE: {
        # The log has the batch: an earlier request has written it, and its answer was lost.
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Meaning.DONE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Meaning.NEW_SEQUENCE,
        ErrorCode.UNKNOWN_PRODUCER_ID: Meaning.NEW_SEQUENCE,
    },
    # The group was deleted, or its log has lost it.
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {ErrorCode.GROUP_ID_NOT_FOUND: Meaning.JOIN},
    ApiKey.SHARE_GROUP_HEARTBEAT: {ErrorCode.GROUP_ID_NOT_FOUND: Meaning.JOIN},
    ApiKey.STREAMS_GROUP_HEARTBEAT: {ErrorCode.GROUP_ID_NOT_FOUND: Meaning.JOIN},
    # The answer has the id of the member to be.
    ApiKey.JOIN_GROUP: {ErrorCode.MEMBER_ID_REQUIRED: Meaning.JOIN},
    ApiKey.OFFSET_COMMIT: _NOT_KNOWN_YET,
    ApiKey.ADD_PARTITIONS_TO_TXN: _NOT_KNOWN_YET,
    ApiKey.TXN_OFFSET_COMMIT: {
        **_NOT_KNOWN_YET,
        # The group has given the partition to another member, or is about to (KIP-447).
        ErrorCode.UNKNOWN_MEMBER_ID: Meaning.ABORT,
        ErrorCode.FENCED_MEMBER_EPOCH: Meaning.ABORT,
        ErrorCode.ILLEGAL_GENERATION: Meaning.ABORT,
        ErrorCode.STALE_MEMBER_EPOCH: Meaning.ABORT,
        ErrorCode.REBALANCE_IN_PROGRESS: Meaning.ABORT,
    },
}
"""Where an error means something else than elsewhere."""


def meaning_of(code: int, api_key: int | None = None) -> Meaning:
    """The meaning of an error code, in an answer of this API."""
    general = _OF_ALL.get(code, Meaning.FINAL)
    return general if api_key is None else _OF_API.get(api_key, {}).get(code, general)


def meaning_in(answer: Response | None) -> Meaning:
    """The meaning of an answer; None is no answer."""
    return Meaning.FIND if answer is None else meaning_of(error_in(answer), answer.API_KEY)


def error_in(answer: Response) -> int:
    """The first error in an answer, wherever its API and version have it; 0 if there is none."""
    return refusal_in(answer)[0]


def refusal_in(answer: Response) -> tuple[int, str | None]:
    """The first error in an answer, and the broker's message."""
    for part in _parts_of(answer):
        code: int = part.error_code if hasattr(part, "error_code") else part.partition_error_code
        if code:
            return code, getattr(part, "error_message", None) or None
    return 0, None


def _parts_of(answer: Any) -> Iterator[Any]:
    """The structs of an answer that have an error code."""
    match answer.API_KEY:
        case ApiKey.PRODUCE:
            yield from (each for topic in answer.responses for each in topic.partition_responses)
        case ApiKey.FETCH:
            yield answer
            yield from _partitions(answer.responses)
        case (
            ApiKey.LIST_OFFSETS
            | ApiKey.OFFSET_COMMIT
            | ApiKey.TXN_OFFSET_COMMIT
            | ApiKey.OFFSET_FOR_LEADER_EPOCH
            | ApiKey.DESCRIBE_PRODUCERS
        ):
            yield from _partitions(answer.topics)
        case ApiKey.OFFSET_FETCH:
            for group in answer.groups or (answer,):
                yield group
                yield from _partitions(group.topics)
        case (
            ApiKey.DESCRIBE_GROUPS
            | ApiKey.CONSUMER_GROUP_DESCRIBE
            | ApiKey.SHARE_GROUP_DESCRIBE
            | ApiKey.STREAMS_GROUP_DESCRIBE
            | ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
        ):
            yield from answer.groups
        case ApiKey.DELETE_GROUPS:
            yield from answer.results
        case ApiKey.FIND_COORDINATOR:
            yield from answer.coordinators or (answer,)
        case ApiKey.ADD_PARTITIONS_TO_TXN:
            yield from (each for topic in answer.results_by_topic_v3_and_below for each in topic.results_by_partition)
        case ApiKey.WRITE_TXN_MARKERS:
            yield from _partitions(topic for marker in answer.markers for topic in marker.topics)
        case _:
            yield answer


def _partitions(topics: Iterable[Any]) -> Iterator[Any]:
    return (each for topic in topics for each in topic.partitions)

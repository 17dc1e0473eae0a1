"""Differences between the two nodes' answers that are meant, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tanist.replica.reads import MAX_TIMESTAMP
from tanist.wire.acls import AclOperation, PatternType, ResourceType
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.list_offsets_request import ListOffsetsRequest
from tanist.wire.messages.list_transactions_request import ListTransactionsRequest
from tanist.wire.messages.offset_commit_request import OffsetCommitRequest
from tanist.wire.messages.produce_request import ProduceRequest
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tanist.wire.schema import Request
from tests.interop.apache import VERSION
from tests.interop.requests.batches import Batch

CLOSED = "the connection was closed"
_OF_PARTS = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
_ACLS = (ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS, ApiKey.DELETE_ACLS)

Explains = Callable[[Request, int, Any, Any], bool]
"""Whether it explains this request of this version with these answers, Apache Kafka's and ours."""


def _batches(request: Request) -> Iterator[Batch]:
    topics = request.topic_data if isinstance(request, ProduceRequest) else ()
    parts: list[Any] = [part.records for topic in topics for part in topic.partition_data]
    yield from (each for each in parts if isinstance(each, Batch))


def _unreadable(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    return any(each.damage == "compression" for each in _batches(request))


def _of_nobody(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    return any(each.transactional and each.producer_id == -1 for each in _batches(request))


def _acks_of_a_transaction(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    return isinstance(request, ProduceRequest) and request.transactional_id is not None and request.acks != -1


def _fails(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """The same answer, but for a refusal by ours where Apache Kafka says UNKNOWN_SERVER_ERROR."""
    return _without_errors(apache) == _without_errors(tanist) and all(
        their == our or (their == ErrorCode.UNKNOWN_SERVER_ERROR and our > 0)
        for their, our in zip(errors(apache), errors(tanist), strict=True)
    )


def _strange_entries(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """Ours refuses each entry or filter that has a value of no meaning, and no others."""
    refused = [code for code in errors(tanist) if code]
    return (
        request.API_KEY in _ACLS
        and bool(refused)
        and set(refused) == {ErrorCode.INVALID_REQUEST}
        and (
            apache == CLOSED or set(errors(apache)) == {ErrorCode.UNKNOWN_SERVER_ERROR} or _has_strange_filter(request)
        )
    )


def _has_strange_filter(request: Request) -> bool:
    """With a number that none of Apache Kafka's enums has: to it, that finds nothing."""
    filters = request.filters if isinstance(request, DeleteAclsRequest) else (request,)
    return any(
        each.resource_type_filter > max(ResourceType)
        or each.pattern_type_filter > max(PatternType)
        or each.operation > max(AclOperation)
        for each in filters
        if isinstance(each, DescribeAclsRequest | DeleteAclsFilter)
    )


def _not_begun(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    if not isinstance(request, ListTransactionsRequest) or request.duration_filter < 0:
        return False
    theirs, ours = (each.get("transaction_states") for each in (apache, tanist))
    return bool([each for each in theirs if each["transaction_state"] != "Empty"] == ours)


def _more_properties(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """All that Apache Kafka says of a new topic, and more properties."""
    return request.API_KEY == ApiKey.CREATE_TOPICS and all(
        {**ours, "configs": [each for each in ours["configs"] if each in theirs["configs"]]} == theirs
        for theirs, ours in zip(*(each.get("topics") for each in (apache, tanist)), strict=True)
        if theirs != ours and theirs["configs"]
    )


def _fails_of_all(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """Ours answers for each partition, where Apache Kafka fails for one that is not there."""
    return request.API_KEY in _OF_PARTS and errors(apache) == [ErrorCode.UNKNOWN_SERVER_ERROR]


def _streams_without_topic(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """A member has an endpoint, and a source topic is gone: ours tells of the topic."""
    if not isinstance(request, StreamsGroupHeartbeatRequest) or errors(apache) != [ErrorCode.UNKNOWN_SERVER_ERROR]:
        return False
    return errors(tanist) == [0] and [status["status_code"] for status in tanist.get("status") or ()] == [1]


def _shared_out_otherwise(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """Only which member of a share group or Streams group has which partition or task differs."""
    if request.API_KEY in (ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE):
        theirs, ours = (_without(_without(each, "_tasks"), "_by_user_endpoint") for each in (apache, tanist))
        return bool(theirs == ours and _silent(apache) == _silent(tanist))
    of_groups = request.API_KEY in (ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE)
    return of_groups and _without(apache, "assignment") == _without(tanist, "assignment")


def _silent(answer: Any) -> bool:
    """Whether a heartbeat's answer says nothing of tasks."""
    return bool(answer.get("active_tasks", ()) is None)


def _deleted_latest(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """Of a partition whose latest time was asked for ours has a later record, or none."""
    if not isinstance(request, ListOffsetsRequest):
        return False
    wanted = {part.timestamp for topic in request.topics for part in topic.partitions}
    theirs, ours = ([part for topic in each["topics"] for part in topic["partitions"]] for each in (apache, tanist))
    differ = [(one, other) for one, other in zip(theirs, ours, strict=True) if one != other]
    return MAX_TIMESTAMP in wanted and all(
        one["error_code"] == other["error_code"] == 0 and (other["offset"] < 0 or other["offset"] > one["offset"] >= 0)
        for one, other in differ
    )


def _being_read(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """Only partitions differ that have no state to read: while Apache Kafka asks for it, it says nothing."""
    if request.API_KEY != ApiKey.SHARE_FETCH or CLOSED in (apache, tanist):
        return False

    def without_failed(answer: Any) -> list[Any]:
        parts = [(topic["topic_id"], part) for topic in answer["responses"] for part in topic["partitions"]]
        return [each for each in parts if each[1]["error_code"] != ErrorCode.UNKNOWN_SERVER_ERROR]

    same = without_failed(apache) == without_failed(tanist)
    return same and bool(apache.get("error_code") == tanist.get("error_code"))


def _begins_at_0(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """Only partitions differ that Apache Kafka 4.4 begins at offset 0, and ours not yet."""
    if request.API_KEY != ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
        return False
    sides = [
        [part for group in answer["groups"] for topic in group["topics"] for part in topic["partitions"]]
        for answer in (apache, tanist)
    ]
    differ = [(one, other) for one, other in zip(*sides, strict=False) if one != other]
    return len(sides[0]) == len(sides[1]) and all(
        (one["start_offset"], other["start_offset"]) == (0, -1) for one, other in differ
    )


def _of_all_sequences(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """A commit to the group without a name, which another sequence may have made."""
    codes = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND}
    return (
        isinstance(request, OffsetCommitRequest)
        and not request.group_id
        and _without_errors(apache) == _without_errors(tanist)
        and all(
            their == our or {their, our} <= codes for their, our in zip(errors(apache), errors(tanist), strict=True)
        )
    )


def _repeated(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """Only ours says again what tasks a member has, as that has said others (docs/groups.md)."""
    if not isinstance(request, StreamsGroupHeartbeatRequest) or request.active_tasks is None:
        return False
    names = ("active_tasks", "standby_tasks", "warmup_tasks")
    silent = dict.fromkeys(names)
    return not any(errors(apache)) and {**tanist, **silent} == apache


def _of_4_4(request: Request, version: int, apache: Any, tanist: Any) -> bool:
    """A heartbeat with what Streams groups of 4.3 have not."""
    return (
        VERSION.startswith("4.3.")
        and isinstance(request, StreamsGroupHeartbeatRequest)
        and errors(apache) == [ErrorCode.INVALID_REQUEST]
        and (request.instance_id, request.task_offsets, request.task_end_offsets) != (None, None, None)
    )


KNOWN: Mapping[str, Explains] = {
    "Apache Kafka does not answer": lambda request, version, apache, tanist: apache == "timed out",
    "Apache Kafka fails with an exception, ours refuses": _fails,
    "Wrong entries and filters of ACLs are refused; Apache Kafka closes the connection, or fails all": _strange_entries,
    "To Apache Kafka a transaction that has not begun is older than any duration": _not_begun,
    "Topics have properties of 4.4 and of ours": _more_properties,
    "Streams groups have static members, and hear of offsets, as in 4.4": _of_4_4,
    "Apache Kafka fails with an exception for all that was asked": _fails_of_all,
    "A Streams group with endpoints lacks a source topic: Apache Kafka fails with an exception": _streams_without_topic,
    "A share partition without a state: while Apache Kafka asks for it, it says nothing": _being_read,
    "A member of a Streams group that says other tasks than it has hears of them again": _repeated,
    "Apache Kafka shares out partitions and tasks in the order of a hash": _shared_out_otherwise,
    "Apache Kafka 4.4 begins a new share partition of a known topic at offset 0 (GAPS.md)": _begins_at_0,
    "The group without a name is of all sequences": _of_all_sequences,
    "The record with the latest time is deleted: Apache Kafka still names it": _deleted_latest,
    "Records are not decoded when they are appended (GAPS.md)": _unreadable,
    "A transaction needs acks=all": _acks_of_a_transaction,
    "A batch of a transaction has a producer": _of_nobody,
}


def errors(answer: Any) -> list[int]:
    """All error codes in an answer, in its order."""
    if isinstance(answer, dict):
        return [
            each
            for name, value in answer.items()
            for each in ([value] if name.endswith("error_code") else errors(value))
        ]
    return [each for item in answer for each in errors(item)] if isinstance(answer, list) else []


def _without_errors(answer: Any) -> Any:
    return _without(answer, "error_code")


def _without(answer: Any, end: str) -> Any:
    """An answer without the fields whose names end so."""
    if isinstance(answer, dict):
        return {name: _without(value, end) for name, value in answer.items() if not name.endswith(end)}
    return [_without(each, end) for each in answer] if isinstance(answer, list) else answer


def parts_ways(request: Request, apache: Any, tanist: Any) -> str | None:
    """Why the two have other logs or groups from now on, though the answers are the same or the difference is meant."""
    theirs, ours = errors(apache), errors(tanist)
    if request.API_KEY in (ApiKey.PRODUCE, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS):
        done = [[not each for each in side] for side in (theirs, ours)]
        same = done[0] == done[1] or not (any(done[0]) or any(done[1]))
        return None if same else f"{ApiKey(request.API_KEY).name}: one has done what the other has refused"
    if request.API_KEY == ApiKey.STREAMS_GROUP_HEARTBEAT and bool(any(theirs)) != bool(any(ours)):
        return "STREAMS_GROUP_HEARTBEAT: a member of 4.4"
    both_answer = isinstance(apache, dict) and isinstance(tanist, dict)
    if both_answer and apache != tanist and _begins_at_0(request, 0, apache, tanist):
        return "Apache Kafka 4.4 begins a new share partition of a known topic at offset 0"
    if request.API_KEY in _OF_PARTS and theirs == [ErrorCode.UNKNOWN_SERVER_ERROR] != ours:
        return "Apache Kafka has failed"
    if request.API_KEY == ApiKey.ALTER_SHARE_GROUP_OFFSETS and len(theirs) > 1 and not theirs[0] and all(theirs[1:]):
        return "in Apache Kafka an alteration makes a group, too, if nothing is altered"
    nothing = request.API_KEY in (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT) and all(theirs)
    if nothing and ErrorCode.OFFSET_METADATA_TOO_LARGE in theirs:
        return "in Apache Kafka a commit makes a group, too, if nothing of it is stored"
    return None

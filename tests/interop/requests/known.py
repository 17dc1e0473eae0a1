"""Differences between the two nodes' answers that are meant, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tanist.wire.acls import AclOperation, PatternType, ResourceType
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from tanist.wire.messages.describe_acls_request import DescribeAclsRequest
from tanist.wire.messages.list_transactions_request import ListTransactionsRequest
from tanist.wire.messages.produce_request import ProduceRequest
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tanist.wire.schema import Request
from tests.interop.apache import VERSION
from tests.interop.requests.batches import Batch

CLOSED = "the connection was closed"
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
    if isinstance(answer, dict):
        return {name: _without_errors(value) for name, value in answer.items() if not name.endswith("error_code")}
    return [_without_errors(each) for each in answer] if isinstance(answer, list) else answer


def parts_ways(request: Request, apache: Any, tanist: Any) -> str | None:
    """Why the two have other logs or groups from now on, though the answers are the same or the difference is meant."""
    theirs, ours = errors(apache), errors(tanist)
    if request.API_KEY in (ApiKey.PRODUCE, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS):
        done = [[not each for each in side] for side in (theirs, ours)]
        same = done[0] == done[1] or not (any(done[0]) or any(done[1]))
        return None if same else f"{ApiKey(request.API_KEY).name}: one has done what the other has refused"
    if request.API_KEY == ApiKey.STREAMS_GROUP_HEARTBEAT and bool(any(theirs)) != bool(any(ours)):
        return "STREAMS_GROUP_HEARTBEAT: a member of 4.4"
    nothing = request.API_KEY in (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT) and all(theirs)
    if nothing and ErrorCode.OFFSET_METADATA_TOO_LARGE in theirs:
        return "in Apache Kafka a commit makes a group, too, if nothing of it is stored"
    return None

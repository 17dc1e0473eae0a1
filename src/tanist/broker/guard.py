"""The checks that stand before a handler: what a whole request needs (`security.requirements`), and its refusal.

A handler of a node without an authorizer has none of this before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tanist.broker.network.call import Call, Handler
from tanist.controller.refusals import NOT_CONTROLLER
from tanist.security.controller_requirements import CONTROLLER_ROWS
from tanist.security.requirements import BROKER_ROWS, Row
from tanist.wire.apis import ApiKey, response_class
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from tanist.wire.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from tanist.wire.messages.alter_partition_response import AlterPartitionResponse
from tanist.wire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from tanist.wire.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from tanist.wire.messages.describe_log_dirs_response import DescribeLogDirsResponse
from tanist.wire.messages.describe_quorum_response import DescribeQuorumResponse
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.offset_delete_response import OffsetDeleteResponse
from tanist.wire.messages.share_acknowledge_response import ShareAcknowledgeResponse
from tanist.wire.messages.share_fetch_response import ShareFetchResponse
from tanist.wire.schema import Request, Response

MESSAGES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.NOT_CONTROLLER: NOT_CONTROLLER,
}
"""Apache Kafka's words for these errors."""

_FETCH_BY_ID_VERSION: Final = 13
_ALONE: Final[dict[int, Callable[[int, str], Response]]] = {
    ApiKey.DESCRIBE_LOG_DIRS: lambda code, _: DescribeLogDirsResponse(error_code=code),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda code, message: DescribeClientQuotasResponse(
        error_code=code, error_message=message, entries=None
    ),
    ApiKey.DESCRIBE_QUORUM: lambda code, message: DescribeQuorumResponse(error_code=code, error_message=message),
    ApiKey.OFFSET_DELETE: lambda code, _: OffsetDeleteResponse(error_code=code),
    ApiKey.ALTER_PARTITION: lambda code, _: AlterPartitionResponse(error_code=code),
    ApiKey.SHARE_FETCH: lambda code, message: ShareFetchResponse(error_code=code, error_message=message),
    ApiKey.SHARE_ACKNOWLEDGE: lambda code, message: ShareAcknowledgeResponse(error_code=code, error_message=message),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda code, message: AlterPartitionReassignmentsResponse(
        error_code=code, error_message=message
    ),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: lambda code, _: AssignReplicasToDirsResponse(error_code=code),
}
"""Responses whose error for the whole request stands alone."""


def rows_before(api_key: int, *, controller: bool) -> tuple[Row, ...]:
    """The checks of a whole request, by its API and its listener."""
    rows = CONTROLLER_ROWS if controller else BROKER_ROWS
    return tuple(row for row in rows if row.api == api_key and row.names is not None)


def guarded(handler: Handler, rows: tuple[Row, ...]) -> Handler:
    """The handler, of requests whose clients may do what the rows need; the others are answered with the first error.

    Each name is asked for, so that the operator hears of all that lack. A controller that does not know the entries yet
    is not the one to ask.
    """

    def check_and_handle(request: Any, call: Call) -> None:
        for row in rows:
            names = () if row.names is None else row.names(request, call.version)
            denied = [name for name in names if not call.may(row, name)]
            if denied:
                code = row.code if call.session.access.loaded else ErrorCode.NOT_CONTROLLER
                call.reply(denied_response(request, call.version, code))
                return
        handler(request, call)

    return check_and_handle


def denied_response(request: Request, version: int, code: ErrorCode) -> Response:
    """The response to a request that is denied as a whole."""
    message = MESSAGES[code]
    alone = _ALONE.get(request.API_KEY)
    if alone is not None:
        return alone(int(code), message)
    if request.API_KEY == ApiKey.ADD_PARTITIONS_TO_TXN and code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return AddPartitionsToTxnResponse(error_code=code)
    if request.API_KEY == ApiKey.FETCH and version >= _FETCH_BY_ID_VERSION:
        return FetchResponse(error_code=code)
    answer = error_response(request, version, code, message)
    if isinstance(answer, FetchResponse):
        answer.error_code = int(code)
    return response_class(request.API_KEY)() if answer is None else answer

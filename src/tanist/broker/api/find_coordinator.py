"""FindCoordinator (key 10). There are no groups and no transactions yet, and the answer says so.

For groups it is COORDINATOR_NOT_AVAILABLE, with a message: consumers that were assigned their partitions by hand ask
for a coordinator all the same (librdkafka does) and must not stumble over the answer. A transactional producer cannot
do without one, so it is refused for good instead of being kept waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.connection import Call
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

if TYPE_CHECKING:
    from tanist.broker.node import Node

_TRANSACTION = 1
_KINDS = {0: "consumer groups", 1: "transactions", 2: "share groups"}


def handle(node: Node, request: FindCoordinatorRequest, call: Call) -> None:
    """Refuse, with a reason that a client shows its user."""
    del node
    kind = _KINDS.get(request.key_type, f"coordinators of type {request.key_type}")
    message = f"tanist has no {kind} yet; assign partitions to consumers by hand"
    error = ErrorCode.INVALID_REQUEST if request.key_type == _TRANSACTION else ErrorCode.COORDINATOR_NOT_AVAILABLE
    keys = request.coordinator_keys if call.version >= 4 else (request.key,)
    call.reply(
        FindCoordinatorResponse(
            error_code=error,
            error_message=message,
            node_id=-1,
            port=-1,
            coordinators=tuple(
                Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=message) for key in keys
            ),
        )
    )

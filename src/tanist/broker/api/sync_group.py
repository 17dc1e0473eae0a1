"""SyncGroup (key 14), versions 0-5. The answer waits until the leader's assignment is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.network.client_connection import Call
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.sync_group_request import SyncGroupRequest
from tanist.wire.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from tanist.broker.node import Node

_NAMES_PROTOCOL_VERSION = 5


def handle(node: Node, request: SyncGroupRequest, call: Call) -> None:
    """Tell a member its assignment, once there is one."""
    coordinator = node.coordinator()
    found = coordinator.find(request.group_id)
    if call.version >= _NAMES_PROTOCOL_VERSION and None in (request.protocol_type, request.protocol_name):
        found = int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if isinstance(found, int):
        call.reply(SyncGroupResponse(error_code=found))
        return
    call.wait()
    coordinator.carry_out(found, found.shard.sync(request, call.reply, node.clock.now_ms()))

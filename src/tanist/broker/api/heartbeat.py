"""Heartbeat (key 12), versions 0-4: a member says that it lives, and hears whether to join again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.network.client_connection import Call
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.heartbeat_response import HeartbeatResponse

if TYPE_CHECKING:
    from tanist.broker.node import Node


def handle(node: Node, request: HeartbeatRequest, call: Call) -> None:
    """While a group is being loaded its members are not to be alarmed (as Kafka)."""
    coordinator = node.coordinator()
    found = coordinator.find(request.group_id)
    if isinstance(found, int):
        loading = found == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        call.reply(HeartbeatResponse(error_code=ErrorCode.NONE if loading else found))
        return
    call.wait()
    coordinator.carry_out(found, found.shard.heartbeat(request, call.reply, node.clock.now_ms()))

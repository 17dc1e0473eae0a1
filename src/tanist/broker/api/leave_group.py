"""LeaveGroup (key 13), versions 0-5: one member goes, or since version 3 several at once (KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.network.client_connection import Call
from tanist.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tanist.wire.messages.leave_group_response import LeaveGroupResponse

if TYPE_CHECKING:
    from tanist.broker.node import Node

_SEVERAL_VERSION = 3


def handle(node: Node, request: LeaveGroupRequest, call: Call) -> None:
    """Let members go; the others rebalance."""
    coordinator = node.coordinator()
    found = coordinator.find(request.group_id)
    if isinstance(found, int):
        call.reply(LeaveGroupResponse(error_code=found))
        return
    several = call.version >= _SEVERAL_VERSION

    def reply(response: LeaveGroupResponse) -> None:
        if not several:
            response.error_code = response.error_code or response.members[0].error_code
        call.reply(response)

    members = request.members if several else (MemberIdentity(member_id=request.member_id),)
    coordinator.carry_out(found, found.shard.leave(request.group_id, members, reply, node.clock.now_ms()))

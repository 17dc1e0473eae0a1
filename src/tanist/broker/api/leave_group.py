"""LeaveGroup (key 13), versions 0-5: one member goes, or since version 3 several at once (KIP-345)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call, Handler
from tanist.broker.turn import Turn
from tanist.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tanist.wire.messages.leave_group_response import LeaveGroupResponse

_SEVERAL_VERSION = 3


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """The handler of LeaveGroup."""

    turn: Turn
    groups: Groups

    def handle(self, request: LeaveGroupRequest, call: Call) -> None:
        """Let members go; the others rebalance."""
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id)
        if isinstance(found, int):
            call.reply(LeaveGroupResponse(error_code=found))
            return
        several = call.version >= _SEVERAL_VERSION

        def reply(response: LeaveGroupResponse) -> None:
            if not several and response.members:
                response.error_code = response.error_code or response.members[0].error_code
            call.reply(response)

        members = request.members if several else (MemberIdentity(member_id=request.member_id),)
        decide = partial(found.shard.leave, request.group_id, members, reply, self.turn.time_ms())
        coordinator.carry_out(found, decide, call.refuse)


def build(components: NodeComponents) -> Handler:
    return LeaveGroup(components.turn, components.groups).handle

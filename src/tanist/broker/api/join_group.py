"""JoinGroup (key 11), versions 0-9. The answer waits until the group's next generation begins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.assembly import new_uuid
from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call, Handler
from tanist.broker.turn import Turn
from tanist.wire.messages.join_group_request import JoinGroupRequest
from tanist.wire.messages.join_group_response import JoinGroupResponse

_NULL_PROTOCOL_VERSION = 7


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """The handler of JoinGroup."""

    context: NodeContext
    turn: Turn
    groups: Groups

    def handle(self, request: JoinGroupRequest, call: Call) -> None:
        """Let a member join, or join again."""
        coordinator = self.groups.coordinator()

        def reply(response: JoinGroupResponse) -> None:
            if response.protocol_name is None and call.version < _NULL_PROTOCOL_VERSION:
                response.protocol_name = ""
            call.reply(response)

        found = coordinator.find(request.group_id)
        if isinstance(found, int):
            reply(JoinGroupResponse(error_code=found, protocol_name=None, member_id=request.member_id))
            return
        static = request.group_instance_id is not None
        stem = request.group_instance_id if static else call.header.client_id
        context = coordinator.join_context(
            call, call.later(reply), f"{stem or ''}-{new_uuid(self.context.random)}", static=static
        )
        decide = partial(found.shard.join, request, context, self.turn.time_ms())
        coordinator.carry_out(found, decide, call.refuse)


def build(components: NodeComponents) -> Handler:
    return JoinGroup(components.context, components.turn, components.groups).handle

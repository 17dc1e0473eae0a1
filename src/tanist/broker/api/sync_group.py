"""SyncGroup (key 14), versions 0-5. The answer waits until the leader's assignment is stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call, Handler
from tanist.broker.turn import Turn
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.sync_group_request import SyncGroupRequest
from tanist.wire.messages.sync_group_response import SyncGroupResponse

_NAMES_PROTOCOL_VERSION = 5


@dataclass(frozen=True, slots=True)
class SyncGroup:
    """The handler of SyncGroup."""

    turn: Turn
    groups: Groups

    def handle(self, request: SyncGroupRequest, call: Call) -> None:
        """Give a member its assignment, once there is one."""
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id)
        if call.version >= _NAMES_PROTOCOL_VERSION and None in (request.protocol_type, request.protocol_name):
            found = int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if isinstance(found, int):
            call.reply(SyncGroupResponse(error_code=found))
            return
        decide = partial(found.shard.sync, request, call.later(call.reply), self.turn.time_ms())
        coordinator.carry_out(found, decide, call.refuse)


def build(components: NodeComponents) -> Handler:
    return SyncGroup(components.turn, components.groups).handle

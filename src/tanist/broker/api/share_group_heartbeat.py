"""ShareGroupHeartbeat (key 76), version 1: how members of a share group join, go on, leave (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.share.delivery import is_member_id
from tanist.broker.turn import Turn
from tanist.controller.features import SHARE_VERSION
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse


@dataclass(frozen=True, slots=True)
class ShareGroupHeartbeat:
    """The handler of ShareGroupHeartbeat."""

    metadata: MetadataView
    turn: Turn
    groups: Groups

    def handle(self, request: ShareGroupHeartbeatRequest, call: Call) -> None:
        """The answer waits until what it says is committed. Share groups are there from share.version 1 on."""
        if self.metadata.image.features.get(SHARE_VERSION, 0) < 1:
            call.reply(ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
            return
        if not is_member_id(request.member_id):
            message = "Invalid member id in the request."
            call.reply(ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=message))
            return
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id)
        if isinstance(found, int):
            call.reply(ShareGroupHeartbeatResponse(error_code=found))
            return
        decide = partial(found.shard.share_heartbeat, request, call.client, call.later(call.reply), self.turn.time_ms())
        coordinator.carry_out(found, decide, call.refuse)


def build(components: NodeComponents) -> Handler:
    return ShareGroupHeartbeat(components.metadata, components.turn, components.groups).handle

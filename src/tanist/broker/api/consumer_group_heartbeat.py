"""ConsumerGroupHeartbeat (key 68), versions 0-1: how members of the consumer protocol join, go on, leave (KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.assembly import new_uuid
from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.turn import Turn
from tanist.controller.features import GROUP_VERSION
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import id_text
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

_OWN_IDS_VERSION = 1
"""From here on members make their own ids (KIP-1082)."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeat:
    """The handler of ConsumerGroupHeartbeat."""

    context: NodeContext
    metadata: MetadataView
    turn: Turn
    groups: Groups

    def handle(self, request: ConsumerGroupHeartbeatRequest, call: Call) -> None:
        """The answer waits until what it says is committed. The protocol is there from group.version 1 on."""
        if self.metadata.image.features.get(GROUP_VERSION, 0) < 1:
            call.reply(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
            return
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id)
        if isinstance(found, int):
            call.reply(ConsumerGroupHeartbeatResponse(error_code=found))
            return
        if not request.member_id and request.member_epoch == 0 and call.version < _OWN_IDS_VERSION:
            request.member_id = id_text(new_uuid(self.context.random))
        decide = partial(
            found.shard.consumer_heartbeat,
            request,
            call.client,
            call.later(call.reply),
            self.turn.time_ms(),
            partial(call.session.access.may, call.session, rows.CONSUMER_GROUP_REGEX),
        )
        coordinator.carry_out(found, decide, call.refuse)


def build(components: NodeComponents) -> Handler:
    return ConsumerGroupHeartbeat(components.context, components.metadata, components.turn, components.groups).handle

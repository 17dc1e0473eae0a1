"""Heartbeat (key 12), versions 0-4: a member says that it lives, and hears whether to join again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call, Handler
from tanist.broker.turn import Turn
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.heartbeat_response import HeartbeatResponse


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The handler of Heartbeat."""

    turn: Turn
    groups: Groups

    def handle(self, request: HeartbeatRequest, call: Call) -> None:
        """While a group is being loaded its members are not to be alarmed (as Kafka)."""
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id)
        if isinstance(found, int):
            loading = found == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            call.reply(HeartbeatResponse(error_code=ErrorCode.NONE if loading else found))
            return
        decide = partial(found.shard.heartbeat, request, call.later(call.reply), self.turn.time_ms())
        coordinator.carry_out(found, decide, call.refuse)


def build(components: NodeComponents) -> Handler:
    return Heartbeat(components.turn, components.groups).handle

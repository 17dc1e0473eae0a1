"""OffsetDelete (key 47), version 0: single offsets of a group, of topics that it does not read any more (KIP-496)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tanist.broker.network.client_connection import Call
from tanist.wire.messages.offset_delete_request import OffsetDeleteRequest
from tanist.wire.messages.offset_delete_response import OffsetDeleteResponse

if TYPE_CHECKING:
    from tanist.broker.node import Node


def handle(node: Node, request: OffsetDeleteRequest, call: Call) -> None:
    """Delete what may be deleted; the answer waits until that is stored."""
    coordinator = node.coordinator()
    found = coordinator.find(request.group_id)
    if isinstance(found, int):
        call.reply(OffsetDeleteResponse(error_code=found))
        return
    call.wait()
    coordinator.carry_out(found, found.shard.delete_offsets(request, call.reply))

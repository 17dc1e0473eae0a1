"""OffsetDelete (key 47), version 0: single offsets of a group, of topics that it does not read any more (KIP-496)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.network.call import Call, Handler
from tanist.security import requirements as rows
from tanist.wire.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from tanist.wire.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """The handler of OffsetDelete."""

    groups: Groups

    def handle(self, request: OffsetDeleteRequest, call: Call) -> None:
        """Delete what may be deleted; the answer waits until that is stored."""
        denied = [topic for topic in request.topics if not call.may(rows.OFFSET_DELETE_TOPIC, topic.name)]
        request.topics = tuple(topic for topic in request.topics if topic not in denied)
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id)
        if isinstance(found, int):
            call.reply(OffsetDeleteResponse(error_code=found))
            return

        def reply(response: OffsetDeleteResponse) -> None:
            if not response.error_code:
                response.topics = (*response.topics, *map(_denied, denied))
            call.reply(response)

        decide = partial(found.shard.delete_offsets, request, call.later(reply))
        coordinator.carry_out(found, decide, call.refuse)


def _denied(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index, error_code=rows.OFFSET_DELETE_TOPIC.code
            )
            for each in topic.partitions
        ),
    )


def build(components: NodeComponents) -> Handler:
    return OffsetDelete(components.groups).handle

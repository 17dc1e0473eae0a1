"""OffsetCommit (key 8), versions 2-10. Topics go by name, and since version 10 by id."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.groups.committed_topics import sort_topics
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.turn import Turn
from tanist.security import requirements as rows
from tanist.wire.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestTopic
from tanist.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_EXACT_VERSION = 9
_IDS_VERSION = 10


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """The handler of OffsetCommit."""

    turn: Turn
    metadata: MetadataView
    groups: Groups

    def handle(self, request: OffsetCommitRequest, call: Call) -> None:
        """Commit what can be committed; the answer waits until it is."""
        may = partial(call.may, rows.OFFSET_COMMIT_TOPIC)
        by_id, denied = call.version >= _IDS_VERSION, rows.OFFSET_COMMIT_TOPIC.code
        known, others = sort_topics(request.topics, self.metadata.image, may, denied, by_id=by_id)
        refused = [_refused(topic, error) for topic, error in others]
        request.topics = known
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id)
        if isinstance(found, int):
            call.reply(OffsetCommitResponse(topics=(*(_refused(topic, found) for topic in known), *refused)))
            return

        def reply(response: OffsetCommitResponse) -> None:
            response.topics = (*response.topics, *refused)
            call.reply(response)

        exact = call.version >= _EXACT_VERSION
        decide = partial(found.shard.commit, request, call.later(reply), self.turn.time_ms(), exact=exact)
        coordinator.carry_out(found, decide, call.refuse)


def build(components: NodeComponents) -> Handler:
    return OffsetCommit(components.turn, components.metadata, components.groups).handle


def _refused(topic: OffsetCommitRequestTopic, error: int) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ),
    )

"""StreamsGroupHeartbeat (key 88), versions 0-1: how members of a Streams group join, go on, leave (KIP-1071).

Internal topics that are missing are made on the way, if the client may create them; the answer does not wait for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from tanist.broker.components import NodeComponents
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.application_topics import ApplicationTopics
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.turn import Turn
from tanist.controller.features import STREAMS_VERSION
from tanist.controller.topic_names import name_error
from tanist.coordinator.streams.topology import StatusCode, named_topics
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import INTERNAL_TOPICS
from tanist.wire.messages.create_topics_request import CreatableTopic
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Topology
from tanist.wire.messages.streams_group_heartbeat_response import Status, StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from tanist.coordinator.streams.group import Beaten

_NAMED_AT_MOST: Final = 3
_WITH_TAGS: Final = 1
"""The first version whose members know what missing tags are."""


@dataclass(frozen=True, slots=True)
class StreamsGroupHeartbeat:
    """The handler of StreamsGroupHeartbeat."""

    metadata: MetadataView
    turn: Turn
    groups: Groups
    topics: ApplicationTopics

    def handle(self, request: StreamsGroupHeartbeatRequest, call: Call) -> None:
        """The answer waits until what it says is committed. Streams groups are there from streams.version 1 on."""
        if self.metadata.image.features.get(STREAMS_VERSION, 0) < 1:
            call.reply(StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
            return
        refused = None if request.topology is None else _refused(request.topology, call)
        if refused is not None:
            call.reply(refused)
            return
        coordinator = self.groups.coordinator()
        found = coordinator.find(request.group_id)
        if isinstance(found, int):
            call.reply(StreamsGroupHeartbeatResponse(error_code=found))
            return
        ticket = call.later(partial(self._answer, call))
        decide = partial(found.shard.streams_heartbeat, request, call.client, ticket, self.turn.time_ms())
        coordinator.carry_out(found, decide, call.refuse)

    def _answer(self, call: Call, beaten: Beaten) -> None:
        response = beaten.response
        if call.version < _WITH_TAGS:
            status = response.status or ()
            response.status = tuple(each for each in status if each.status_code != StatusCode.MISSING_CLIENT_TAGS)
        if beaten.missing and not response.error_code:
            detail = self._create(beaten.missing, response.heartbeat_interval_ms, call)
            if detail:
                response.status = _with_detail(response.status or (), detail)
        call.reply(response)

    def _create(self, missing: Sequence[CreatableTopic], heartbeat_interval_ms: int, call: Call) -> str:
        """Have internal topics made. Why some will not be, in words."""
        names = [topic.name for topic in missing]
        denied = [name for name in names if not call.may(rows.STREAMS_GROUP_HEARTBEAT_CREATE, name)]
        if denied:
            return f"Unauthorized to CREATE on topics {', '.join(denied)}."
        self.topics.create(missing, 2 * heartbeat_interval_ms)
        failures = self.topics.failures(names)
        if not failures:
            return ""
        more = len(failures) - _NAMED_AT_MOST
        return f"Creation failed: {', '.join(failures[:_NAMED_AT_MOST])}{f' and {more} more' if more > 0 else ''}."


def build(components: NodeComponents) -> Handler:
    topics = ApplicationTopics(components.context, components.controller_channel)
    return StreamsGroupHeartbeat(components.metadata, components.turn, components.groups, topics).handle


def _refused(topology: Topology, call: Call) -> StreamsGroupHeartbeatResponse | None:
    """The answer to a topology whose topics cannot be, or are not the client's to hear of."""
    names = dict.fromkeys(named_topics(topology.subtopologies))
    kept = [name for name in names if name in INTERNAL_TOPICS]
    invalid = [name for name in names if name_error(name) is not None]
    message = None
    if kept:
        message = f"Use of Kafka internal topics {','.join(kept)} in a Kafka Streams topology is prohibited."
    elif invalid:
        message = f"Topic names {','.join(invalid)} are not valid topic names."
    if message is not None:
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.STREAMS_INVALID_TOPOLOGY, error_message=message)
    if not all(call.may(rows.STREAMS_GROUP_HEARTBEAT_TOPIC, name) for name in names):
        return StreamsGroupHeartbeatResponse(error_code=rows.STREAMS_GROUP_HEARTBEAT_TOPIC.code)
    return None


def _with_detail(status: Sequence[Status], detail: str) -> tuple[Status, ...]:
    """With more to say of the internal topics that are missing."""
    return tuple(
        Status(status_code=each.status_code, status_detail=f"{each.status_detail}; {detail}")
        if each.status_code == StatusCode.MISSING_INTERNAL_TOPICS
        else each
        for each in status
    )

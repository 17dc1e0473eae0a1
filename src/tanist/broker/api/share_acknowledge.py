"""ShareAcknowledge (key 79), versions 1-2: a member's word on records that it has (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.share.delivery import Deliveries, Errors, is_member_id
from tanist.broker.share.service import Shares
from tanist.broker.share.sessions import FINAL_EPOCH, SessionRefused, ShareSession
from tanist.controller.features import SHARE_VERSION
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.share_acknowledge_request import ShareAcknowledgeRequest
from tanist.wire.messages.share_acknowledge_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)


@dataclass(frozen=True, slots=True)
class ShareAcknowledge:
    """The handler of ShareAcknowledge."""

    metadata: MetadataView
    shares: Shares

    def handle(self, request: ShareAcknowledgeRequest, call: Call) -> None:
        """The answer waits until the acknowledgements are stored."""
        if self.metadata.image.features.get(SHARE_VERSION, 0) < 1:
            call.reply(ShareAcknowledgeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
            return
        if request.group_id is None or not is_member_id(request.member_id):
            call.reply(ShareAcknowledgeResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        deliveries = self.shares.deliveries()
        who = (request.group_id, request.member_id or "")
        try:
            session = deliveries.sessions.acknowledging(who, request.share_session_epoch)
        except SessionRefused as refused:
            call.reply(ShareAcknowledgeResponse(error_code=refused.error))
            return
        then = call.later(partial(self._reply, request, session, deliveries, call))
        may = partial(call.may, rows.SHARE_ACKNOWLEDGE_TOPIC)
        deliveries.acknowledge(
            who, request.topics, (may, rows.SHARE_ACKNOWLEDGE_TOPIC.code), then, renews=request.is_renew_ack
        )

    def _reply(
        self,
        request: ShareAcknowledgeRequest,
        session: ShareSession,
        deliveries: Deliveries,
        call: Call,
        errors: Errors,
    ) -> None:
        if request.share_session_epoch == FINAL_EPOCH:
            deliveries.sessions.end(session)
        leaders, endpoints = deliveries.hints(errors, call.connection.listener)
        topics: dict[object, ShareAcknowledgeTopicResponse] = {}
        for place, error in errors.items():
            topic = topics.setdefault(place[0], ShareAcknowledgeTopicResponse(topic_id=place[0]))
            part = PartitionData(partition_index=place[1], error_code=error)
            if place in leaders:
                leader_id, leader_epoch = leaders[place]
                part.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
            topic.partitions = (*topic.partitions, part)
        call.reply(
            ShareAcknowledgeResponse(
                acquisition_lock_timeout_ms=deliveries.lock_ms(session.group_id),
                responses=tuple(topics.values()),
                node_endpoints=tuple(
                    NodeEndpoint(node_id=each.id, host=each.host, port=each.port, rack=each.rack)
                    for each in endpoints
                ),
            )
        )


def build(components: NodeComponents) -> Handler:
    return ShareAcknowledge(components.metadata, components.shares).handle

"""ShareAcknowledge (key 79), versions 1-2: a member's word on records that it has (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.share.delivery import AnswerKinds, Deliveries, Errors, is_member_id
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

_KINDS = AnswerKinds(ShareAcknowledgeResponse, ShareAcknowledgeTopicResponse, LeaderIdAndEpoch, NodeEndpoint)


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
            deliveries.tell_refused(who, refused.error)
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
        parts = {place: PartitionData(partition_index=place[1], error_code=error) for place, error in errors.items()}
        call.reply(deliveries.answer(_KINDS, session.group_id, parts, errors, call.connection.listener))


def build(components: NodeComponents) -> Handler:
    return ShareAcknowledge(components.metadata, components.shares).handle

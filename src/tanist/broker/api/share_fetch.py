"""ShareFetch (key 78), versions 1-2: a member's word on what it has, and more records for it (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.share.delivery import AnswerKinds, Deliveries, Errors, is_member_id
from tanist.broker.share.fetching import Ask, Delivered, ShareFetching
from tanist.broker.share.service import Shares
from tanist.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, SessionRefused, ShareSession
from tanist.controller.features import SHARE_VERSION
from tanist.coordinator.share.portions import Wanted
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.share_fetch_request import ShareFetchRequest
from tanist.wire.messages.share_fetch_response import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)

_RENEW_VERSION = 2
_KINDS = AnswerKinds(ShareFetchResponse, ShareFetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint)
_EXACT = 1
"""The acquire mode in which a member gets not a record more than it asks for."""


@dataclass(frozen=True, slots=True)
class ShareFetch:
    """The handler of ShareFetch."""

    metadata: MetadataView
    shares: Shares

    def handle(self, request: ShareFetchRequest, call: Call) -> None:
        """The answer waits for records, and until the acknowledgements are stored."""
        refused = self._refusal(request)
        if refused is not None:
            call.reply(refused)
            return
        deliveries = self.shares.deliveries()
        group_id, member_id, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
        acknowledges = any(part.acknowledgement_batches for topic in request.topics for part in topic.partitions)
        asked = [(topic.topic_id, part.partition_index) for topic in request.topics for part in topic.partitions]
        forgotten = [(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions]
        try:
            session = deliveries.sessions.fetching(
                (group_id, member_id), epoch, asked, forgotten, acknowledges=acknowledges
            )
        except SessionRefused as error:
            deliveries.tell_refused((group_id, member_id), error.error)
            self._refuse(error.error, request, deliveries, call)
            return
        if epoch == INITIAL_EPOCH:
            deliveries.follow(session, call)
        answer = _Answer(deliveries, session, request, call)
        may = partial(call.may, rows.SHARE_FETCH_TOPIC)
        if acknowledges:
            deliveries.acknowledge(
                (group_id, member_id),
                request.topics,
                (may, rows.SHARE_FETCH_TOPIC.code),
                call.later(answer.acknowledged),
                renews=request.is_renew_ack,
            )
        else:
            answer.acknowledged({})
        if epoch == FINAL_EPOCH or request.is_renew_ack:
            answer.delivered({})
        else:
            self._fetch(request, session, may, call, answer)

    def _fetch(
        self,
        request: ShareFetchRequest,
        session: ShareSession,
        may: Callable[[str], bool],
        call: Call,
        answer: _Answer,
    ) -> None:
        places = list(session.places)
        turn = request.share_session_epoch % len(places) if places else 0
        denied: dict[Place, Delivered] = {}
        for place in places:
            topic = self.metadata.image.topics.get(place[0])
            if topic is None:
                denied[place] = Delivered(ErrorCode.UNKNOWN_TOPIC_ID)
            elif not may(topic.name):
                denied[place] = Delivered(rows.SHARE_FETCH_TOPIC.code)
            elif place[1] not in topic.partitions:
                denied[place] = Delivered(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        answer.denied = denied
        if not request.max_records or not request.max_bytes:
            answer.delivered({})  # and it begins no share partition
            return
        ask = Ask(
            session.group_id,
            Wanted(session.member_id, request.max_records, request.batch_size, request.share_acquire_mode == _EXACT),
            request.min_bytes,
            request.max_bytes,
            [place for place in (*places[turn:], *places[:turn]) if place not in denied],
        )
        deliveries = self.shares.deliveries()
        fetching = ShareFetching(
            deliveries, ask, call.later(answer.delivered), lambda: call.connection.closed, failed=bool(denied)
        )
        fetching.begin(request.max_wait_ms)

    def _refusal(self, request: ShareFetchRequest) -> ShareFetchResponse | None:
        if self.metadata.image.features.get(SHARE_VERSION, 0) < 1:
            return ShareFetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        message = None
        if request.group_id is None:
            message = "Invalid group id in the request."
        elif not is_member_id(request.member_id):
            message = "Invalid member id in the request."
        elif request.is_renew_ack:
            limits = ("max_bytes", "min_bytes", "max_records", "max_wait_ms")
            wrong = [name for name in limits if getattr(request, name) != 0]
            if wrong:
                message = f"{', '.join(wrong)} must be 0 if is_renew_ack is true."
        if message is None:
            return None
        return ShareFetchResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=message)

    def _refuse(self, error: ErrorCode, request: ShareFetchRequest, deliveries: Deliveries, call: Call) -> None:
        refused = ShareFetchResponse(error_code=error)
        if error is not ErrorCode.SHARE_SESSION_LIMIT_REACHED or request.max_wait_ms <= 0:
            call.reply(refused)
            return
        # Not at once: the client would ask again at once.
        deliveries.purgatory.add(deliveries.turn.time_ms() + request.max_wait_ms, _Later(call, refused))


class _Later:
    """An answer that waits for its time."""

    def __init__(self, call: Call, response: ShareFetchResponse) -> None:
        self.done = False
        self._reply = call.later(partial(call.reply, response), self)

    def expire(self) -> None:
        self.done = True
        self._reply()


class _Answer:
    """The answer, which has two parts."""

    def __init__(self, deliveries: Deliveries, session: ShareSession, request: ShareFetchRequest, call: Call) -> None:
        self._deliveries = deliveries
        self._session = session
        self._request = request
        self._call = call
        self._errors: Errors | None = None
        self._delivered: dict[Place, Delivered] | None = None
        self.denied: dict[Place, Delivered] = {}

    def acknowledged(self, errors: Errors) -> None:
        """The acknowledgements are stored, as far as they could be."""
        self._errors = errors
        self._reply_if_whole()

    def delivered(self, delivered: dict[Place, Delivered]) -> None:
        """There are records, or the time is up."""
        self._delivered = delivered
        self._reply_if_whole()

    def _reply_if_whole(self) -> None:
        errors, delivered = self._errors, self._delivered
        if errors is None or delivered is None:
            return
        answers = {**delivered, **self.denied}
        whole = self._request.share_session_epoch == INITIAL_EPOCH
        owed = self._session.owed
        shown = {
            place: each for place, each in answers.items() if whole or each.error or each.acquired or place in owed
        }
        if not whole:
            self._session.answered({place: each.error for place, each in shown.items()})
        shown.update((place, answers.get(place) or Delivered()) for place in errors)
        parts = {
            place: PartitionData(
                partition_index=place[1],
                error_code=each.error,
                acknowledge_error_code=errors.get(place, 0),
                records=each.records,
                acquired_records=tuple(
                    AcquiredRecords(
                        first_offset=piece.first, last_offset=piece.last, delivery_count=piece.delivery_count
                    )
                    for piece in each.acquired
                ),
            )
            for place, each in shown.items()
        }
        if self._request.share_session_epoch == FINAL_EPOCH:
            self._deliveries.sessions.end(self._session)
        found = {place: each.error or errors.get(place, 0) for place, each in shown.items()}
        listener = self._call.connection.listener
        self._call.reply(self._deliveries.answer(_KINDS, self._session.group_id, parts, found, listener))


def build(components: NodeComponents) -> Handler:
    return ShareFetch(components.metadata, components.shares).handle

"""The follower's pull: one long-polled Fetch for all partitions that follow a leader (rules 109-117).

The fetcher carries requests and answers; what an answer means for a partition (append, truncate, high watermark, ask
for the leader's offsets, wait) is decided by `replica.follower`. The next fetch goes out after the turn's writes,
because a fetch offset is an acknowledgement: the leader counts what lies below it as replicated.

A request looks at the partitions that have changed since the last (`_due`), and names those of which the leader does
not know (`fetcher_session`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Protocol

from tanist.broker.context import NodeContext
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.network.channel import Channel, FrameLender
from tanist.broker.replication.fetcher_session import Asked, FetcherSession, Key
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.quotas import PAUSE_MS, Quota
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.events.replication import FetchResponseMalformed
from tanist.replica.effects import AskOffsets
from tanist.replica.follower import FollowerState
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.fetch import FetchCall, FetchedPartition, FetchTarget, encode_fetch_request, parse_fetch_response
from tanist.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tanist.wire.messages.list_offsets_response import ListOffsetsResponse
from tanist.wire.schema import ZERO_UUID

_FETCH_VERSION = 18
_LIST_OFFSETS_VERSION = 7
_EARLIEST = -2
_LATEST = -1
_BACKOFF_MIN_MS = 10
_OUT_OF_STEP = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class FetcherTurn(Protocol):
    """The end of the turn, as fetchers use it (`turn.Turn`)."""

    large_bytes: int
    """A frame of so many bytes or more is one to `lend`."""

    def lend(self, lender: FrameLender) -> None:
        """A large frame of this connection may be appended."""

    def mark_lent(self, hosted: HostedPartition, size: int) -> None:
        """So many bytes that are queued for the partition lie in a lender's frame."""

    def mark_dirty(self, hosted: HostedPartition) -> None:
        """The partition has queued appends."""

    def after_writes(self, callback: Callable[[], None]) -> None:
        """Run `callback` once this turn's appends are written."""

    def beside_large(self, callback: Callable[[], None]) -> None:
        """Run `callback` while large appends of this turn, and only these, are still being written."""


class Fetcher:
    """Pulls from one leader."""

    def __init__(
        self,
        context: NodeContext,
        lifecycle: Lifecycle,
        effects: ReplicaEffects,
        turn: FetcherTurn,
        quota: Quota,
        leader_id: int,
        host: str,
        port: int,
    ) -> None:
        self._context = context
        self._quota = quota
        self._lifecycle = lifecycle
        self._effects = effects
        self._turn = turn
        self.leader_id = leader_id
        self.host = host
        self.port = port
        self._partitions: dict[Key, HostedPartition] = {}
        self._due: dict[Key, None] = {}
        """The next request looks at them: their position may have changed, or they are not fetched for now."""
        self._rests_until_ms: dict[Key, int] = {}
        self._resting: list[tuple[int, Key]] = []
        """A heap of them by time. Looked at no sooner, unless something happens: they may be thousands."""
        self._wakes_ms: int | None = None
        self._session = FetcherSession()
        self._connect_backoff_ms = _BACKOFF_MIN_MS
        self._not_before_ms = 0
        self._newest_request = 0
        self._answered_request = 0
        self._changed = False
        self._scheduled = False
        self._closed = False
        self._channel = Channel(
            context.clock,
            context.network,
            host,
            port,
            client_id=f"broker-{context.node_id}-fetcher",
            max_frame_bytes=context.config.replica_fetch_response_max_bytes * 2 + (64 << 20),
            login=context.logins.to_brokers,
            tls=context.config.tls.to_brokers,
        )

    @property
    def partitions(self) -> list[HostedPartition]:
        """Those that it fetches."""
        return list(self._partitions.values())

    @property
    def requests_under_way(self) -> int:
        return self._channel.requests_under_way

    def add(self, hosted: HostedPartition) -> None:
        """Start (or go on) fetching a partition; its follower state says from where."""
        key = (hosted.topic_id, hosted.index)
        self._partitions[key] = hosted
        self._due[key] = None
        self._changed = True
        self._schedule()

    def remove(self, hosted: HostedPartition) -> None:
        key = (hosted.topic_id, hosted.index)
        self._partitions.pop(key, None)
        self._due[key] = None

    def moved(self, hosted: HostedPartition) -> None:
        """The partition's position has changed by itself: the next request, whenever it is due, is to say so."""
        self._due[(hosted.topic_id, hosted.index)] = None

    def close(self) -> None:
        self._closed = True
        self._partitions.clear()
        self._channel.close()

    # -- asking

    def _schedule(self) -> None:
        if not self._scheduled and not self._closed:
            self._scheduled = True
            self._turn.after_writes(self._send)

    def _send(self) -> None:
        self._scheduled = False
        waiting_for_answer = self._newest_request != self._answered_request
        if self._closed or not self._partitions or (waiting_for_answer and not self._changed):
            return
        now_ms = self._context.clock.now_ms()
        if now_ms < self._not_before_ms:
            self._context.clock.call_at(self._not_before_ms, self._schedule)
            return
        session = self._session
        if waiting_for_answer and session.unanswered:
            if not session.declined:
                return  # the answer to a full request comes at once
            session = self._begin_anew(declined=True)
        self._changed = False
        if not session.begins and not self._update_session(session, self._due, now_ms, waiting=waiting_for_answer):
            session = self._begin_anew()
        if session.begins:
            self._update_session(session, dict.fromkeys((*self._partitions, *self._due)), now_ms, waiting=False)
        # A full request is answered at once, unless the leader has declined a session: then it waits for records.
        at_once = session.begins and not session.declined
        self._request(session, 0 if at_once else self._context.config.replica_fetch_wait_max_ms)

    def _send_beside_large(self) -> None:
        """Acknowledge the small appends of an answer while the large ones are being written.

        Those partitions are not in the session meanwhile, and the leader answers at once: the next request, which
        has them again, follows as soon as the write has ended.
        """
        session = self._session
        if (
            self._closed
            or not session.id
            or self._newest_request != self._answered_request
            or len(session.asked) <= self._count_written_late()
        ):
            return
        self._update_session(session, self._due, self._context.clock.now_ms(), waiting=False)
        self._request(session, 0)

    def _count_written_late(self) -> int:
        """Partitions of the last answer whose records are being written. It has made them due."""
        due = (self._partitions.get(key) for key in self._due)
        return sum(1 for hosted in due if hosted is not None and hosted.log.writes_late)

    def _request(self, session: FetcherSession, max_wait_ms: int) -> None:
        """Send the session's next request, if it has partitions."""
        if not session.asked:
            self._begin_anew()
            return
        config = self._context.config
        session_id, session_epoch, topics, forgotten = session.request()
        call = FetchCall(
            replica_id=self._context.node_id,
            replica_epoch=self._lifecycle.broker_epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            isolation_level=0,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=list(topics),
            forgotten=list(forgotten),
            rack_id="",
            cluster_id=None,
        )
        self._newest_request += 1
        number = self._newest_request
        self._channel.call_raw(
            lambda correlation_id: encode_fetch_request(
                _FETCH_VERSION, correlation_id, f"broker-{self._context.node_id}-fetcher", call
            ),
            config.replica_socket_timeout_ms,
            lambda frame: self._handle_response(number, session, frame),
        )

    def _update_session(self, session: FetcherSession, due: dict[Key, None], now_ms: int, *, waiting: bool) -> bool:
        """Let the session know of the partitions that are due. False if it must be given up.

        What the leader has of a partition cannot change while a request is under way (`waiting`): the answer to that
        would speak of the old position.

        A disk that fails meanwhile takes other partitions offline: these are due again, and stay so.
        """
        node_id, max_bytes = self._context.node_id, self._context.config.replica_fetch_max_bytes
        throttling = self._quota.active
        if throttling:
            throttling = self._quota.exceeded
            due = dict.fromkeys((*self._partitions, *due))
        resting, rests_until_ms = self._resting, self._rests_until_ms
        while resting and resting[0][0] <= now_ms:
            until_ms, key = heappop(resting)
            if rests_until_ms.get(key) == until_ms:
                del rests_until_ms[key]
                due[key] = None
        left: dict[Key, None] = {}
        self._due = {}
        for key in due:
            hosted = self._partitions.get(key)
            follower = None if hosted is None else hosted.follower
            if hosted is None or follower is None or hosted.stale:
                if waiting and key in session.asked:
                    left[key] = None
                else:
                    session.forget(key)
                continue
            if hosted.log.writes_late:
                again_ms = now_ms  # to ask for what follows would acknowledge what is not written yet
            elif throttling and self._quota.holds_for(hosted, node_id):
                again_ms = now_ms + PAUSE_MS
            elif not follower.may_fetch(now_ms):
                again_ms = follower.retry_at_ms
            else:
                try:
                    hosted.log.write_pending()  # what is asked for acknowledges all before it
                    position = follower.fetch_position()
                except Exception as error:
                    hosted.failed_by(error)
                    continue
                target = FetchTarget(
                    hosted.index,
                    position.current_leader_epoch,
                    position.offset,
                    position.last_fetched_epoch,
                    position.log_start_offset,
                    max_bytes,
                    ZERO_UUID,
                    follower.high_watermark,
                )
                asked = Asked(follower, position, target)
                if waiting and session.replaces(key, asked):
                    self._due |= due
                    return False
                session.ask(key, asked)
                continue
            if again_ms > now_ms and rests_until_ms.get(key) != again_ms:
                rests_until_ms[key] = again_ms
                heappush(resting, (again_ms, key))
            if not waiting:
                session.forget(key)
            if again_ms <= now_ms or key in session.asked:
                left[key] = None
        self._due |= left
        if resting and (self._wakes_ms is None or resting[0][0] < self._wakes_ms):
            self._wakes_ms = resting[0][0]
            self._context.clock.call_at(self._wakes_ms, self._wake_rested)
        return True

    def _begin_anew(self, *, declined: bool = False) -> FetcherSession:
        """Give the session up: the next request is a full one."""
        self._session = FetcherSession(self._session.id or self._session.before, declined=declined)
        return self._session

    def wake(self, hosted: HostedPartition) -> None:
        """A partition that was not to be fetched may be so now."""
        self._due[(hosted.topic_id, hosted.index)] = None
        self._wake()

    def _wake_rested(self) -> None:
        self._wakes_ms = None
        self._wake()

    def _wake(self) -> None:
        self._changed = True
        self._schedule()

    # -- hearing

    def _handle_response(self, number: int, session: FetcherSession, frame: memoryview | None) -> None:
        self._answered_request = max(self._answered_request, number)
        if self._closed:
            return
        now_ms = self._context.clock.now_ms()
        if frame is None:
            self._give_up(session)
            self._not_before_ms = now_ms + self._connect_backoff_ms
            self._connect_backoff_ms = min(self._connect_backoff_ms * 2, self._context.config.replica_fetch_backoff_ms)
            self._schedule()
            return
        self._connect_backoff_ms = _BACKOFF_MIN_MS
        try:
            reply = parse_fetch_response(frame, _FETCH_VERSION)
        except WireError as error:
            self._context.events.emit(FetchResponseMalformed(self.leader_id, str(error)))
            self._give_up(session)
            self._not_before_ms = now_ms + self._context.config.replica_fetch_backoff_ms
            self._schedule()
            return
        if reply.error:
            self._give_up(session)
            if reply.error not in _OUT_OF_STEP:
                self._not_before_ms = now_ms + self._context.config.replica_fetch_backoff_ms
            self._schedule()
            return
        if not session.handle_response(reply.session_id):
            self._give_up(session, declined=not reply.session_id)
        if len(frame) >= self._turn.large_bytes and (lender := self._channel.lender) is not None:
            self._turn.lend(lender)
            self._turn.beside_large(self._send_beside_large)
        due = self._due
        for topic, answers in reply.topics:
            for answer in answers:
                key = (topic, answer.partition)
                asked = session.asked.get(key)  # type: ignore[arg-type]  # v13+ answers carry topic ids
                if asked is None:
                    continue  # not to be fetched any more
                due[key] = None  # type: ignore[index]
                hosted = self._partitions.get(key)  # type: ignore[arg-type]
                if hosted is None or not self._is_awaited(hosted, asked):
                    # The role or the log has changed while the answer was under way. The leader takes it for heard.
                    self._give_up(session)
                    continue
                self._take(hosted, asked, answer, now_ms)
        self._schedule()

    def _is_awaited(self, hosted: HostedPartition, asked: Asked) -> bool:
        """Whether an answer to this counts: the role is the same, and the log ends where it did."""
        return hosted.follower is asked.follower and asked.follower.awaits(asked.position)

    def _give_up(self, session: FetcherSession, *, declined: bool = False) -> None:
        if session is self._session:
            self._begin_anew(declined=declined)

    def _take(self, hosted: HostedPartition, asked: Asked, answer: FetchedPartition, now_ms: int) -> None:
        if not answer.error:
            hosted.leader_high_watermark = answer.high_watermark
        follower = asked.follower
        try:
            effects = follower.fetched(answer, asked.position, now_ms)
        except Exception as error:  # also damage that is met while cutting
            hosted.failed_by(error)
            return
        if answer.records:
            if self._quota.active and self._quota.holds_for(hosted, self._context.node_id):
                self._quota.record(len(answer.records))  # type: ignore[arg-type]  # a memoryview
                # The rate is shared: what has got records is asked for last, or it would leave the others nothing.
                key = (hosted.topic_id, hosted.index)
                self._partitions[key] = self._partitions.pop(key, hosted)
            self._turn.mark_dirty(hosted)
            if queued := hosted.log.pending_bytes:
                self._turn.mark_lent(hosted, queued)
            self._context.metrics.replication_bytes_in += len(answer.records)  # type: ignore[arg-type]  # a memoryview
        for effect in effects:
            if isinstance(effect, AskOffsets):
                self._ask_offsets(hosted, follower, effect.current_leader_epoch)
        self._effects.apply(hosted, effects)

    def _ask_offsets(self, hosted: HostedPartition, follower: FollowerState, leader_epoch: int) -> None:
        """Rule 116: out of range; where does the leader's log start and end?"""
        answers: dict[int, int] = {}

        def ask(timestamp: int) -> None:
            request = ListOffsetsRequest(
                replica_id=self._context.node_id,
                topics=(
                    ListOffsetsTopic(
                        name=hosted.topic,
                        partitions=(
                            ListOffsetsPartition(
                                partition_index=hosted.index,
                                current_leader_epoch=leader_epoch,
                                timestamp=timestamp,
                            ),
                        ),
                    ),
                ),
            )
            timeout_ms = self._context.config.replica_socket_timeout_ms
            self._channel.call(request, _LIST_OFFSETS_VERSION, timeout_ms, lambda r: heard(timestamp, r))

        def heard(timestamp: int, response: ListOffsetsResponse | None) -> None:
            if hosted.follower is not follower or self._closed:
                return
            now_ms = self._context.clock.now_ms()
            answered = None
            for topic in response.topics if response is not None else ():
                for partition in topic.partitions:
                    answered = None if partition.error_code else partition.offset
            if answered is None:
                decide = partial(follower.offsets_failed, leader_epoch, now_ms)
            else:
                answers[timestamp] = answered
                if len(answers) < 2:
                    return
                earliest, latest = answers[_EARLIEST], answers[_LATEST]
                decide = partial(follower.handle_offsets_response, earliest, latest, leader_epoch, now_ms)
            if self._effects.carry_out(hosted, decide):
                self.wake(hosted)

        ask(_EARLIEST)
        ask(_LATEST)

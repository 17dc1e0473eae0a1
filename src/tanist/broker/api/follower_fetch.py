"""Fetch of a follower in a session (KIP-227): only partitions with something new are looked at, and only news is sent.

`fetch` takes the requests and gives those in a session to this. Which partitions have something new is the session's
(`replication.follower_sessions`), and how one is read is `fetch_reads`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Slot
from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.replication.fetch_reads import PartitionReads
from tanist.broker.replication.fetch_sessions import INITIAL_EPOCH, Topic
from tanist.broker.replication.follower_sessions import FollowedPartition, FollowerSession
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.ports import Chunk
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.fetch import FetchCall, FetchedPartition, encode_fetch_response
from tanist.wire.produce import NodeEndpoint

NEWS_MS: Final = 5
"""How long a follower that waits for records may be left without the news of a higher high watermark."""
LEADER_HINT_VERSION: Final = 16  # KIP-951

Answers: TypeAlias = list[tuple[Topic, list[FetchedPartition]]]
LeaderHints: TypeAlias = Callable[[ClientConnection, Answers], tuple[NodeEndpoint, ...]]


class FollowerWait:
    """A request of a session that waits for news or its deadline."""

    __slots__ = ("_fetch", "_news_scheduled", "_session", "_slot", "call", "connection", "correlation_id", "done",
                 "version")  # fmt: skip

    def __init__(
        self,
        fetch: FollowerFetch,
        connection: ClientConnection,
        session: FollowerSession,
        call: FetchCall,
        version: int,
        correlation_id: int,
    ) -> None:
        self._fetch = fetch
        self.connection = connection
        self._session = session
        self.call = call
        self.version = version
        self.correlation_id = correlation_id
        self._slot: Slot = connection.reserve(self)
        self._news_scheduled = False
        self.done = False

    def try_complete(self, followed: FollowedPartition, hosted: HostedPartition) -> None:
        """Something happened to one of the partitions: answer if there is enough by now, or the role changed."""
        try:
            target, leader = followed.target, hosted.leader
            if leader is None or hosted.leader_epoch != target.current_leader_epoch != -1:
                self.expire()
            elif hosted.log.log_end_offset > target.fetch_offset:
                if self._fetch.throttled(hosted, self.call.replica_id):
                    return
                if self.call.min_bytes <= 1 or self._fetch.has_enough(self._session, self.call):
                    self.expire()
            elif not self._news_scheduled and 0 <= target.high_watermark < leader.high_watermark:
                # Not at once: under load the next records bring the news, and an answer for it alone costs as much.
                self._news_scheduled = True
                self._fetch.expire_soon(self)
        except Exception as error:
            self._failed(error)

    def expire(self) -> None:
        """Answer with what there is."""
        if self.done:
            return
        self.done = True
        self._session.wait = None
        if self.connection.fetch_wait is self:
            self.connection.fetch_wait = None
        if not self.connection.closed:
            try:
                chunks = self._fetch.answer(self, self._session)
            except Exception as error:
                self._failed(error)
                return
            self.connection.complete(self._slot, chunks)

    def _failed(self, error: Exception) -> None:
        """Nothing but reading has been done: the request is refused, and its session is over."""
        self.done = True
        self._session.wait = None
        self.connection.end_follower_session()
        refusal = partial(refused_fetch, self.call, self.version, self.correlation_id)
        self.connection.refuse_waiting(ApiKey.FETCH, error, self._slot, refusal)


def refused_fetch(
    call: FetchCall, version: int, correlation_id: int, error: int = int(ErrorCode.UNKNOWN_SERVER_ERROR)
) -> list[Chunk]:
    """The error for each partition of the request; without a session, which ends it for the client."""
    topics = [
        (topic, [FetchedPartition(target.partition, error) for target in targets]) for topic, targets in call.topics
    ]
    return encode_fetch_response(version, correlation_id, topics, error=0 if topics else error)


def _is_full(call: FetchCall) -> bool:
    """Whether it begins a session: then each partition has an answer, with news or without."""
    return call.session_epoch == INITIAL_EPOCH


_Read: TypeAlias = list[tuple[FollowedPartition, FetchedPartition]]


class FollowerFetch:
    """The handler of such requests."""

    __slots__ = ("_absent_error", "_by_topic", "_is_to_come", "_leader_hints", "_metrics", "_purgatory", "_reads",
                 "_sessions", "_turn", "throttled")  # fmt: skip

    def __init__(self, components: NodeComponents, reads: PartitionReads, leader_hints: LeaderHints) -> None:
        self._turn = components.turn
        self._by_topic = components.replicas.by_topic
        self._absent_error = components.replicas.absent_error
        self._is_to_come = components.replicas.is_to_come
        self._reads = reads
        self.throttled = reads.throttled
        self._sessions = components.follower_sessions
        self._purgatory = components.purgatory
        self._metrics = components.context.metrics
        self._leader_hints = leader_hints

    def handle(self, connection: ClientConnection, call: FetchCall, version: int, correlation_id: int) -> bool:
        """Answer the request, now or later. False, and the session that was is over, if it is to have none."""
        if connection.fetch_wait is not None:
            # A follower asks anew because its set of partitions has changed: let the one it waits for go first.
            connection.fetch_wait.expire()
        session = self._sessions.resolve(call, connection, self._turn.time_ms())
        if session is None:
            return False
        if isinstance(session, int):
            connection.respond(encode_fetch_response(version, correlation_id, [], error=session))
            return True
        self._metrics.fetch_requests += 1
        read, size_bytes, at_once = self._read(session, call, arriving=True)
        if (
            at_once
            or size_bytes >= call.min_bytes
            or call.max_wait_ms <= 0
            or not session.partitions
            or (size_bytes and self.has_enough(session, call))
        ):
            self._metrics.replication_bytes_out += size_bytes
            connection.respond(self._encode(connection, session, call, version, correlation_id, read))
            self._deactivate_caught_up(read)
            return True
        self._deactivate_caught_up(read)
        wait = FollowerWait(self, connection, session, call, version, correlation_id)
        session.wait = connection.fetch_wait = wait
        self._purgatory.add(self._turn.time_ms() + call.max_wait_ms, wait)
        return True

    def _deactivate_caught_up(self, read: _Read) -> None:
        for followed, result in read:
            followed.deactivate_if_caught_up(result)

    def _read(self, session: FollowerSession, call: FetchCall, *, arriving: bool) -> tuple[_Read, int, bool]:
        """Read the active partitions; (results, bytes of records in them, whether they must be sent at once).

        `arriving`: the request is new. A held one that is answered now says nothing new about its follower (rule 13).
        """
        by_topic = self._by_topic
        now_ms = self._turn.time_ms()
        left = call.max_bytes
        total = 0
        at_once = False
        whole = _is_full(call)
        read: _Read = []
        for followed in tuple(session.active):
            target = followed.target
            hosted_parts = by_topic.get(followed.topic)
            hosted = None if hosted_parts is None else hosted_parts.get(target.partition)
            if followed.hosted is not hosted:
                followed.watch(hosted)
            if hosted is None:
                if not whole and self._is_to_come(followed.topic, target.partition):
                    # No error, after which the follower would rest: the session hears of the log when it is made.
                    del session.active[followed]
                    continue
                error = self._absent_error(followed.topic, target.partition)
                result = FetchedPartition(target.partition, error, -1, -1, -1, None)
            else:
                result = self._reads.for_follower(hosted, call, target, left, total == 0, arriving, now_ms)
            read.append((followed, result))
            records = result.records
            if records is not None:
                size_bytes: int = records.length  # type: ignore[union-attr]  # logs give FileRanges
                total += size_bytes
                left = left - size_bytes if left > size_bytes else 0
            if result.error or result.diverging_epoch is not None:
                at_once = True
        return read, total, at_once

    def _encode(
        self,
        connection: ClientConnection,
        session: FollowerSession,
        call: FetchCall,
        version: int,
        correlation_id: int,
        read: _Read,
    ) -> list[Chunk]:
        """The answer: what the follower does not know, or all that was read. It must be sent."""
        whole = _is_full(call)
        by_topic: dict[Topic, list[FetchedPartition]] = {}
        failed = 0
        for followed, result in read:
            if whole or followed.has_news(result):
                followed.report(result)
                if result.records is not None:
                    session.read_last(followed)
                failed += bool(result.error)
                by_topic.setdefault(followed.topic, []).append(result)
        answers = list(by_topic.items())
        endpoints: tuple[NodeEndpoint, ...] = ()
        if failed:
            self._metrics.failed_fetches += failed
            if version >= LEADER_HINT_VERSION:
                endpoints = self._leader_hints(connection, answers)
        return encode_fetch_response(version, correlation_id, answers, session_id=session.id, node_endpoints=endpoints)

    def answer(self, wait: FollowerWait, session: FollowerSession) -> list[Chunk]:
        """Read for a request that has waited, and encode what there is."""
        read, size_bytes, _ = self._read(session, wait.call, arriving=False)
        self._metrics.replication_bytes_out += size_bytes
        return self._encode(wait.connection, session, wait.call, wait.version, wait.correlation_id, read)

    def has_enough(self, session: FollowerSession, call: FetchCall) -> bool:
        """Whether its partitions have enough for an answer."""
        partitions = (
            (followed.hosted, followed.target, followed.hosted.log.log_end_offset)
            for followed in session.active
            if followed.hosted is not None
        )
        return self._reads.has_enough(call, partitions)

    def expire_soon(self, wait: FollowerWait) -> None:
        """A follower is to have the news of a higher high watermark, even without records."""
        self._purgatory.add(self._turn.time_ms() + NEWS_MS, wait)

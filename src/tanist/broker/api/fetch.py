"""Fetch (key 1), versions 4-18, on broker listeners: consumers and followers; the fast path out.

Record data is never touched: a read gives a range of a segment file, which the network sends from the page cache. A
fetch that has too little to say waits on the partitions it asked for and in the purgatory; an append or a new high
watermark looks at the waiters once, at the end of the turn. What counts is what the reader may have: a follower up to
the log's end, a consumer up to the high watermark, or to the last stable offset if it reads what is committed. Sessions
(KIP-227) are `fetch_sessions`. A tool that may follow (`LOCAL_READER`) reads to the log's end as well.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from tanist.broker.access import topic_access
from tanist.broker.api.follower_fetch import LEADER_HINT_VERSION, NEWS_MS, Answers, FollowerFetch, refused_fetch
from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Slot
from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.network.client_throttles import ClientThrottles, Fetcher
from tanist.broker.replication.fetch_reads import PartitionReads
from tanist.broker.replication.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchSession
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.log.log import OffsetOutOfRange
from tanist.ports import Chunk, FileRange
from tanist.replica.reads import AS_REPLICA, LOCAL_READER, READ_UNCOMMITTED, consumer_fetch_bounds, consumer_read
from tanist.security import requirements as rows
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.fetch import (
    END_OF_PLAN,
    REST_OF_PLAN,
    FetchCall,
    FetchedPartition,
    FetchPlan,
    FetchTarget,
    encode_fetch_response,
    encode_fetched,
    parse_fetch,
    plan_fetch,
)
from tanist.wire.produce import NodeEndpoint

_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)

_Targets: TypeAlias = "dict[HostedPartition, FetchTarget]"


def _upper_offset(call: FetchCall, hosted: HostedPartition, target: FetchTarget) -> int | None:
    """Up to where the client may read; None if it is to hear that the role is another one."""
    if hosted.leader_epoch != target.current_leader_epoch != -1:
        return None
    log = hosted.log
    if call.replica_id >= 0:
        return None if hosted.leader is None else log.log_end_offset
    if hosted.leader is None and hosted.follower is None:
        return None
    if call.isolation_level == AS_REPLICA:
        return log.log_end_offset
    high_watermark = hosted.replica.high_watermark
    return consumer_fetch_bounds(call.isolation_level, high_watermark, log.last_stable_offset(high_watermark))


def _has_enough(call: FetchCall, targets: _Targets, reads: PartitionReads) -> bool:
    partitions = ((hosted, target, _upper_offset(call, hosted, target)) for hosted, target in targets.items())
    return reads.has_enough(call, partitions)


class FetchWait:
    """A fetch that waits for data or its deadline."""

    __slots__ = (
        "_news_scheduled",
        "call",
        "connection",
        "correlation_id",
        "counted",
        "done",
        "fetch",
        "session",
        "slot",
        "targets",
        "version",
    )

    def __init__(
        self,
        fetch: Fetch,
        connection: ClientConnection,
        call: FetchCall,
        version: int,
        correlation_id: int,
        targets: _Targets,
        session: FetchSession | None,
        counted: Fetcher | None,
    ) -> None:
        self.fetch = fetch
        self.connection = connection
        self.call = call
        self.version = version
        self.correlation_id = correlation_id
        self.targets = targets
        self.session = session
        self.counted = counted
        self.slot: Slot = connection.reserve(self)
        self.done = False
        self._news_scheduled = False

    def try_complete(self, changed: HostedPartition) -> None:
        """Something happened to one of the partitions: answer if there is enough by now, or the role changed."""
        if self.done:
            return
        try:
            target = self.targets[changed]
            upper_offset = _upper_offset(self.call, changed, target)
            if upper_offset is None:
                self.expire()
            elif upper_offset > target.fetch_offset:
                # Only what has changed can have brought the rest of what is asked for: mostly nothing else is read.
                reads = self.fetch.reads
                if reads.throttled(changed, self.call.replica_id):
                    return
                if self.call.min_bytes <= 1 or _has_enough(self.call, self.targets, reads):
                    self.expire()
            elif (
                self.call.replica_id >= 0 and not self._news_scheduled and self._high_watermark_is_news(changed, target)
            ):
                self._news_scheduled = True
                self.fetch.expire_soon(self)
        except Exception as error:
            self._failed(error)

    def _high_watermark_is_news(self, hosted: HostedPartition, target: FetchTarget) -> bool:
        """A follower that sends its high watermark (v18, KIP-1166) is answered soon when the leader's is higher.

        Not at once: under load the next records bring the news, and an answer for it alone costs as much as they do.
        """
        leader = hosted.leader
        return leader is not None and 0 <= target.high_watermark < leader.high_watermark

    def expire(self) -> None:
        """Answer with what there is."""
        if self.done:
            return
        self.done = True
        connection = self.connection
        if connection.fetch_wait is self:
            connection.fetch_wait = None
        if not connection.closed:
            try:
                chunks = self.fetch.answer(self)
            except Exception as error:
                self._failed(error)
                return
            connection.complete(self.slot, chunks)

    def _failed(self, error: Exception) -> None:
        """Nothing but reading has been done: the request is refused, and its session is over."""
        self.done = True
        refusal = partial(refused_fetch, self.call, self.version, self.correlation_id)
        self.connection.end_follower_session()
        self.connection.refuse_waiting(ApiKey.FETCH, error, self.slot, refusal)


class Fetch:
    """The handler of a broker's listeners. Its collaborators are attributes, one step away."""

    __slots__ = ("_absent_error", "_access", "_by_topic", "_followers", "_metadata", "_metrics", "_purgatory",
                 "_sessions", "_throttles", "_turn", "reads")  # fmt: skip

    def __init__(self, components: NodeComponents) -> None:
        self._turn = components.turn
        self._by_topic = components.replicas.by_topic
        self._absent_error = components.replicas.absent_error
        self._access = topic_access(components.access, components.metadata)
        self.reads = PartitionReads(
            components.effects, components.quotas.leader, rack_aware=components.context.config.rack_aware_reads
        )
        self._followers = FollowerFetch(components, self.reads, self._leader_hints)
        self._sessions = components.fetch_sessions
        self._purgatory = components.purgatory
        self._metadata = components.metadata
        self._metrics = components.context.metrics
        self._throttles: ClientThrottles | None = None
        """While clients have quotas for what they fetch: then no request is answered as planned."""
        components.client_throttles.on_change(self._quotas_changed)

    def _quotas_changed(self, throttles: ClientThrottles) -> None:
        self._throttles = throttles.for_fetch

    def handle(
        self, connection: ClientConnection, frame: memoryview, offset: int, version: int, correlation_id: int
    ) -> None:
        """Take a Fetch request."""
        throttles = self._throttles
        plan = connection.fetch_plan if throttles is None else None
        if (
            plan is not None
            and plan.version == version
            and frame[offset : offset + plan.length].tobytes() == plan.prefix
        ):
            fetch_offset, last_fetched_epoch, _, max_bytes, end = REST_OF_PLAN(frame, offset + plan.length)
            if end == END_OF_PLAN and self._respond_as_planned(
                connection, plan, fetch_offset, last_fetched_epoch, max_bytes, correlation_id
            ):
                return
        began_ns = 0 if throttles is None else throttles.now_ns()
        call = parse_fetch(frame, offset, version)
        session: FetchSession | None = None
        counted: Fetcher | None = None
        in_session = call.session_epoch != FINAL_EPOCH or call.session_id
        is_follower, is_tool = call.replica_id >= 0, call.replica_id == LOCAL_READER
        if (is_follower or is_tool) and not connection.session.access.may(connection.session, rows.FETCH_FOLLOWER):
            connection.end_follower_session()
            connection.respond(refused_fetch(call, version, correlation_id, int(rows.FETCH_FOLLOWER.code)))
            return
        if is_follower:
            if in_session and self._followers.handle(connection, call, version, correlation_id):
                return
        else:
            call.isolation_level = AS_REPLICA if is_tool else max(call.isolation_level, READ_UNCOMMITTED)
            if throttles is None:
                connection.fetch_plan = plan_fetch(frame, offset, version, call)
            else:
                counted = throttles.fetcher(connection, frame, call)
            if in_session:
                found = self._sessions.resolve(call, self._turn.time_ms())
                if isinstance(found, int):
                    connection.respond(encode_fetch_response(version, correlation_id, [], error=found))
                    return
                session = found
        if connection.fetch_wait is not None:
            # A follower asks anew because its set of partitions has changed: let the one it waits for go first.
            connection.fetch_wait.expire()
        self._metrics.fetch_requests += 1
        max_wait_ms = call.max_wait_ms
        answers, size_bytes, at_once = self._read(connection, call, version, True)
        if counted is not None:
            counted.spent_ns = counted.throttles.now_ns() - began_ns
        if not (
            at_once or size_bytes >= call.min_bytes or max_wait_ms <= 0 or not any(parts for _, parts in call.topics)
        ):
            lookup = self._by_topic
            targets = {lookup[topic][target.partition]: target for topic, parts in call.topics for target in parts}
            if not (size_bytes and _has_enough(call, targets, self.reads)):
                wait = FetchWait(self, connection, call, version, correlation_id, targets, session, counted)
                for hosted in targets:
                    hosted.wait_for_data(wait)
                if call.replica_id >= 0:
                    connection.fetch_wait = wait
                self._purgatory.add(self._turn.time_ms() + max_wait_ms, wait)
                return
        if counted is not None:
            throttled = self._throttled(connection, call, version, correlation_id, session, answers, counted)
            if throttled is not None:
                connection.respond(throttled)
                return
        self._count(call, size_bytes)
        connection.respond(self._encode(connection, call, version, correlation_id, session, answers, at_once))

    def _respond_as_planned(
        self,
        connection: ClientConnection,
        plan: FetchPlan,
        fetch_offset: int,
        last_fetched_epoch: int,
        max_bytes: int,
        correlation_id: int,
    ) -> bool:
        """Answer a consumer that has enough to read in the one partition that it asks for, which is led here.

        False for whatever is not as usual: nothing has happened then.
        """
        hosted_parts = self._by_topic.get(plan.topic)
        hosted = None if hosted_parts is None else hosted_parts.get(plan.index)
        leader = None if hosted is None else hosted.leader
        if hosted is None or leader is None or hosted.stale:
            return False
        if self._access is not None and not self._access.allows(connection.session, rows.FETCH_TOPIC, hosted.topic):
            return False
        log = hosted.log
        high_watermark = leader.high_watermark
        stable_offset = log.last_stable_offset(high_watermark)
        error, diverging, upper_offset = consumer_read(
            hosted.replica,
            fetch_offset,
            plan.current_leader_epoch,
            last_fetched_epoch,
            READ_UNCOMMITTED,
            stable_offset,
            False,
        )
        if error or diverging is not None:
            return False
        try:
            piece = log.read(fetch_offset, max_bytes if max_bytes < plan.max_bytes else plan.max_bytes, upper_offset)
        except (OffsetOutOfRange, OSError):
            return False
        if piece is None:
            return False
        records = piece.chunk
        if records.length < plan.min_bytes and plan.max_wait_ms > 0:
            return False
        metrics = self._metrics
        metrics.fetch_requests += 1
        metrics.bytes_out += records.length
        connection.respond(
            encode_fetched(
                plan.version,
                correlation_id,
                plan.topic,
                plan.index,
                high_watermark,
                stable_offset,
                log.log_start_offset,
                records,
            )
        )
        return True

    def _read(
        self, connection: ClientConnection, call: FetchCall, version: int, arriving: bool
    ) -> tuple[Answers, int, bool]:
        """Read; give (what there is, bytes of records in it, must be sent at once: an error, divergence or hint).

        `arriving`: the request is new. A held one that is answered now says nothing new about its follower (rule 13).
        """
        lookup = self._by_topic
        reads = self.reads
        now_ms = self._turn.time_ms()
        left = call.max_bytes
        total = 0
        at_once = False
        replica_id = call.replica_id
        answers: Answers = []
        for topic, parts in call.topics:
            hosted_parts = lookup.get(topic)
            results: list[FetchedPartition] = []
            answers.append((topic, results))
            if (
                self._access is not None
                and replica_id < 0
                and not self._access.may(connection.session, rows.FETCH_TOPIC, topic)
            ):
                results += (FetchedPartition(target.partition, int(rows.FETCH_TOPIC.code)) for target in parts)
                at_once = True
                continue
            for target in parts:
                hosted = None if hosted_parts is None else hosted_parts.get(target.partition)
                if hosted is None:
                    result = FetchedPartition(
                        target.partition, self._absent_error(topic, target.partition), -1, -1, -1, None
                    )
                elif replica_id >= 0:
                    result = reads.for_follower(hosted, call, target, left, total == 0, arriving, now_ms)
                else:
                    result = reads.for_consumer(hosted, call, target, left, total == 0, version, now_ms)
                results.append(result)
                records = result.records
                if records is not None:
                    size_bytes: int = records.length  # type: ignore[union-attr]  # logs give FileRanges
                    total += size_bytes
                    left = left - size_bytes if left > size_bytes else 0
                if result.error or result.diverging_epoch is not None or result.preferred_read_replica >= 0:
                    at_once = True
        return answers, total, at_once

    def _count(self, call: FetchCall, size_bytes: int) -> None:
        if call.replica_id < 0:
            self._metrics.bytes_out += size_bytes
        else:
            self._metrics.replication_bytes_out += size_bytes

    def _encode(
        self,
        connection: ClientConnection,
        call: FetchCall,
        version: int,
        correlation_id: int,
        session: FetchSession | None,
        answers: Answers,
        unusual: bool,
    ) -> list[Chunk]:
        """The answer; a session leaves out what its client knows. An encoded answer must be sent."""
        endpoints: tuple[NodeEndpoint, ...] = ()
        if unusual:
            self._metrics.failed_fetches += sum(1 for _, results in answers for result in results if result.error)
            if version >= LEADER_HINT_VERSION:
                endpoints = self._leader_hints(connection, answers)
        if session is None:
            return encode_fetch_response(version, correlation_id, answers, node_endpoints=endpoints)
        news = session.news(answers, whole=call.session_epoch == INITIAL_EPOCH)
        return encode_fetch_response(version, correlation_id, news, session_id=session.id, node_endpoints=endpoints)

    def _leader_hints(self, connection: ClientConnection, answers: Answers) -> tuple[NodeEndpoint, ...]:
        leaders: set[int] = set()
        for topic, parts in answers:
            for position, result in enumerate(parts):
                if result.error in (_NOT_LEADER, ErrorCode.FENCED_LEADER_EPOCH):
                    leader = self._metadata.current_leader(topic, result.partition)
                    if leader is not None:
                        parts[position] = result._replace(current_leader=leader)
                        leaders.add(leader[0])
        return self._metadata.endpoints_of(leaders, connection.listener) if leaders else ()

    def _throttled(
        self,
        connection: ClientConnection,
        call: FetchCall,
        version: int,
        correlation_id: int,
        session: FetchSession | None,
        answers: Answers,
        counted: Fetcher,
    ) -> list[Chunk] | None:
        """Count the answer. If it exceeds a quota: an empty one instead, which says how long its client has to wait."""
        if session is not None:
            answers = session.news(answers, whole=call.session_epoch == INITIAL_EPOCH, answered=False)
        chunks = encode_fetch_response(version, correlation_id, answers)
        size_bytes = sum(chunk.length if isinstance(chunk, FileRange) else len(chunk) for chunk in chunks)
        # As Apache Kafka counts: the body and four bytes more. The frame has eight, nine in flexible versions.
        throttle_ms = counted.throttles.fetched(connection, counted, size_bytes - (5 if version > 11 else 4))
        if not throttle_ms:
            return None
        session_id = 0
        if session is not None and call.session_epoch == INITIAL_EPOCH:
            self._sessions.end(session)  # its client has not heard of it
        elif session is not None:
            session_id = session.id
        return encode_fetch_response(version, correlation_id, [], session_id=session_id, throttle_time_ms=throttle_ms)

    def answer(self, wait: FetchWait) -> list[Chunk]:
        """Read for a request that has waited, and encode what there is."""
        connection, call, version, correlation_id = wait.connection, wait.call, wait.version, wait.correlation_id
        counted = wait.counted
        began_ns = 0 if counted is None else counted.throttles.now_ns()
        answers, size_bytes, unusual = self._read(connection, call, version, False)
        if counted is not None:
            counted.spent_ns += counted.throttles.now_ns() - began_ns
            throttled = self._throttled(connection, call, version, correlation_id, wait.session, answers, counted)
            if throttled is not None:
                return throttled
        self._count(call, size_bytes)
        return self._encode(connection, call, version, correlation_id, wait.session, answers, unusual)

    def expire_soon(self, wait: FetchWait) -> None:
        """A follower is to have the news of a higher high watermark, even without records."""
        self._purgatory.add(self._turn.time_ms() + NEWS_MS, wait)

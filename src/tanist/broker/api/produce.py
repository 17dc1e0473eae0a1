"""Produce (key 0), versions 3-13: the fast path in.

A request is parsed to positions in the frame, each batch is validated and queued on its log where it lies
(`Log.append_as_leader`), and the answer is made at once for acks 0 and 1; the bytes are written, and the answers
sent, at the end of the turn, in that order. With acks=all the answer waits on the partition until the high watermark
covers it (rules 118-120). No batch is copied or decoded here, and nothing is allocated per record.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from tanist.broker.access import topic_access
from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Slot
from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.network.client_throttles import ClientThrottles
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.log.append import UNPLACED
from tanist.ports import Chunk
from tanist.replica.effects import HighWatermarkAdvanced
from tanist.security import requirements as rows
from tanist.wire.apis import ApiKey
from tanist.wire.batch import ATTRIBUTES_AT
from tanist.wire.errors import ErrorCode
from tanist.wire.produce import (
    NodeEndpoint,
    ProduceCall,
    ProduceResult,
    encode_appended,
    encode_produce_response,
    first_batch_bytes,
    is_one_batch,
    parse_produce,
    parse_single_produce,
)

_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
_LEADER_HINT_VERSION = 10  # KIP-951
_ATTRIBUTES_END = ATTRIBUTES_AT + 1
"""Where the low byte of a batch's attributes lies."""
_TRANSACTIONAL = 0x10
_ACKS = (-1, 0, 1)
_ADMIN_CLIENT = "__admin_client"
"""The client id by which Apache Kafka, too, lets a client write to internal topics."""


class ProduceWait:
    """An acks=all produce that waits for the high watermark of one or more partitions."""

    __slots__ = (
        "connection",
        "correlation_id",
        "done",
        "large_bytes",
        "missing",
        "produce",
        "results",
        "slot",
        "throttle_ms",
        "version",
        "where",
    )

    def __init__(
        self,
        produce: Produce,
        connection: ClientConnection,
        version: int,
        correlation_id: int,
        results: list[tuple[str | UUID, list[ProduceResult]]],
    ) -> None:
        self.produce = produce
        self.connection = connection
        self.version = version
        self.correlation_id = correlation_id
        self.results = results
        self.slot: Slot = connection.reserve(self)
        self.large_bytes = 0
        # Where the answer of each waiting partition goes: (its topic's results, position); None when settled.
        self.where: list[tuple[list[ProduceResult], int] | None] = []
        self.missing = 0
        self.throttle_ms = 0
        self.done = False

    def add(self, hosted: HostedPartition, required_offset: int, results: list[ProduceResult]) -> None:
        """Wait for `hosted`'s high watermark to reach `required_offset`, for the result last added to `results`."""
        hosted.wait_for_high_watermark(required_offset, self, len(self.where))
        self.where.append((results, len(results) - 1))
        self.missing += 1

    def count_large(self, size: int) -> None:
        """The request is a large one, of so many bytes."""
        self.large_bytes = size
        self.connection.add_unreplicated(size)

    def complete(self, ticket: int, error: int) -> None:
        """One partition's wait is over, with `error` or 0."""
        place = self.where[ticket]
        if self.done or place is None:
            return
        self.where[ticket] = None
        self.missing -= 1
        try:
            if error:
                results, position = place
                results[position] = results[position]._replace(error=error, base_offset=-1)
            if self.missing == 0:
                self._answer()
        except Exception as unexpected:
            self.done = True
            self.connection.refuse_waiting(ApiKey.PRODUCE, unexpected, self.slot, self._refusal)

    def expire(self) -> None:
        """`timeout.ms` is over: what has not been acknowledged by now may or may not be committed later."""
        self.produce.metrics.expired_produces += 1
        for ticket, place in enumerate(self.where):
            if place is not None:
                self.complete(ticket, ErrorCode.REQUEST_TIMED_OUT)

    def _answer(self) -> None:
        self.done = True
        if self.large_bytes:
            self.connection.replicated(self.large_bytes)
        if self.connection.closed:
            return
        frame = self.produce.answer(self.connection, self.version, self.correlation_id, self.results, self.throttle_ms)
        self.connection.complete(self.slot, [frame])

    def _refusal(self) -> list[Chunk]:
        """What is appended may be committed all the same: the client cannot know."""
        unknown = int(ErrorCode.UNKNOWN_SERVER_ERROR)
        refused = [
            (topic, [each._replace(error=unknown, base_offset=-1) for each in parts]) for topic, parts in self.results
        ]
        return [encode_produce_response(self.version, self.correlation_id, refused)]


class Produce:
    """The handler of a broker's listeners. Its collaborators are attributes, one step away."""

    __slots__ = (
        "_absent_error",
        "_access",
        "_apply",
        "_by_topic",
        "_large_bytes",
        "_leader_has_appended",
        "_metadata",
        "_purgatory",
        "_throttles",
        "_transactions",
        "_turn",
        "_verifies",
        "metrics",
    )

    def __init__(self, components: NodeComponents) -> None:
        self._turn = components.turn
        self._large_bytes = components.turn.large_bytes
        self._by_topic = components.replicas.by_topic
        self._absent_error = components.replicas.absent_error
        self._access = topic_access(components.access, components.metadata)
        self._leader_has_appended = components.effects.leader_has_appended
        self._apply = components.effects.apply
        self._purgatory = components.purgatory
        self._metadata = components.metadata
        self.metrics = components.context.metrics
        self._transactions = components.transactions
        self._verifies = components.context.config.transaction_partition_verification_enable
        components.client_throttles.on_change(self._quotas_changed)

    def _quotas_changed(self, throttles: ClientThrottles) -> None:
        """While clients have quotas for what they produce, no request goes straight through."""
        self._throttles = throttles.for_produce

    def answer(
        self,
        connection: ClientConnection,
        version: int,
        correlation_id: int,
        results: list[tuple[str | UUID, list[ProduceResult]]],
        throttle_ms: int = 0,
    ) -> bytes:
        """Encode a response; from v10 on, refusals for lack of leadership name the leader (KIP-951)."""
        endpoints: tuple[NodeEndpoint, ...] = ()
        if version >= _LEADER_HINT_VERSION:
            leaders: set[int] = set()
            for topic, parts in results:
                for position, result in enumerate(parts):
                    if result.error == _NOT_LEADER or result.error == ErrorCode.FENCED_LEADER_EPOCH:
                        leader = self._metadata.current_leader(topic, result.partition)
                        if leader is not None:
                            parts[position] = result._replace(current_leader=leader)
                            leaders.add(leader[0])
            if leaders:
                endpoints = self._metadata.endpoints_of(leaders, connection.listener)
        return encode_produce_response(
            version, correlation_id, results, throttle_time_ms=throttle_ms, node_endpoints=endpoints
        )

    def handle(
        self, connection: ClientConnection, frame: memoryview, offset: int, version: int, correlation_id: int
    ) -> None:
        """Take a Produce request; `frame` stays valid until the end of this turn, a large one until it is written.

        Nearly all requests are one plain batch for a partition that is led here. Such a batch goes straight through,
        which takes 4 us of interpreter where the general way takes 7; for anything else the general way begins anew.
        """
        large = len(frame) >= self._large_bytes
        if large:
            self._turn.lend(connection)
        single = parse_single_produce(frame, offset, version) if self._throttles is None else None
        if single is not None:
            acks, timeout_ms, topic, index, start, end = single
            hosted_parts = self._by_topic.get(topic)
            hosted = None if hosted_parts is None else hosted_parts.get(index)
            leader = None if hosted is None else hosted.leader
            if (
                hosted is not None
                and leader is not None
                and not hosted.is_internal
                and not leader.check_before_append(acks)
                and (self._access is None or self._access.allows(connection.session, rows.PRODUCE_TOPIC, hosted.topic))
            ):
                turn = self._turn
                log = hosted.log
                if not hosted.dirty:  # if it is, the turn has begun
                    turn.mark_dirty(hosted)  # first: once it is queued, it must be written before the frame goes
                first_offset = log.append_plain(frame[start:end], hosted.leader_epoch, turn.now_ms, turn.wall_ms)
                if first_offset >= 0:
                    metrics = self.metrics
                    metrics.produce_requests += 1
                    metrics.bytes_in += end - start
                    if large:
                        turn.mark_lent(hosted, end - start)
                        turn.mark_grown(hosted)  # nothing is committed before it is written
                    if acks == -1:
                        if not large:
                            # `leader_has_appended` without a call in between: mostly nothing is to be carried out.
                            try:
                                effects = leader.appended(turn.now_ms)
                            except Exception as unexpected:
                                hosted.failed_by(unexpected)
                            else:
                                if effects and (hosted.ack_waiters or type(effects[0]) is not HighWatermarkAdvanced):
                                    self._apply(hosted, effects)
                        required_offset = log.log_end_offset
                        done, error = leader.acks_status(required_offset)
                        if error or not done:
                            results = [
                                ProduceResult(index, error, -1 if error else first_offset, -1, log.log_start_offset)
                            ]
                            if done:
                                metrics.failed_produces += 1
                                connection.respond_one(
                                    self.answer(connection, version, correlation_id, [(topic, results)])
                                )
                                return
                            wait = ProduceWait(self, connection, version, correlation_id, [(topic, results)])
                            wait.add(hosted, required_offset, results)
                            if large:
                                wait.count_large(len(frame))
                            self._purgatory.add(turn.now_ms + timeout_ms, wait)
                            return
                    elif not hosted.grown:
                        turn.mark_grown(hosted)
                    if acks:
                        connection.respond_one(
                            encode_appended(version, correlation_id, topic, index, first_offset, log.log_start_offset)
                        )
                    return
        self._handle_any(connection, frame, offset, version, correlation_id)

    def _handle_any(
        self, connection: ClientConnection, frame: memoryview, offset: int, version: int, correlation_id: int
    ) -> None:
        """A request of any shape and with any fault."""
        call = parse_produce(frame, offset, version)
        session = connection.session
        row = rows.PRODUCE_TRANSACTION
        if _has_transactions(frame, call) and (
            call.transactional_id is None or not session.access.may(session, row, call.transactional_id)
        ):
            self._refuse_all(connection, frame, version, correlation_id, call, row.code)
            return
        if call.transactional_id is not None and call.acks != -1:
            refusal = ErrorCode.INVALID_REQUIRED_ACKS
            self._refuse_all(connection, frame, version, correlation_id, call, refusal)
            return
        if call.transactional_id is None:
            self._append(connection, frame, version, correlation_id, call, {})
            return
        from tanist.broker.api.produce_transactional import MixedProducers, TransactionalProduce, led

        def may_write(topic: str | UUID) -> bool:
            return self._access is None or self._access.may(session, rows.PRODUCE_TOPIC, topic)

        def append(held: memoryview, verified: Mapping[tuple[str, int], int]) -> None:
            self._append(connection, held, version, correlation_id, call, verified)

        try:
            TransactionalProduce(self._transactions, verifies=self._verifies).verify(
                connection, frame, version, call.transactional_id, led(self._by_topic, may_write, frame, call), append
            )
        except MixedProducers:
            refusal = ErrorCode.INVALID_PRODUCER_ID_MAPPING
            self._refuse_all(connection, frame, version, correlation_id, call, refusal)

    def _append(
        self,
        connection: ClientConnection,
        frame: memoryview,
        version: int,
        correlation_id: int,
        call: ProduceCall,
        verified: Mapping[tuple[str, int], int],
    ) -> None:
        """Append all batches. `verified`: the error of each partition whose coordinator was asked, 0 if it agrees."""
        acks = call.acks
        turn = self._turn
        throttles = self._throttles
        began_ns = 0 if throttles is None else throttles.now_ns()
        if not turn.begun:
            turn.begin()
        now_ms, wall_ms = turn.now_ms, turn.wall_ms
        large = len(frame) >= self._large_bytes
        wait: ProduceWait | None = None
        failed = False
        taken_bytes = 0
        answers: list[tuple[str | UUID, list[ProduceResult]]] = []
        lookup = self._by_topic
        for topic, parts in call.topics:
            hosted_parts = lookup.get(topic)
            results: list[ProduceResult] = []
            answers.append((topic, results))
            if self._access is not None and not self._access.may(connection.session, rows.PRODUCE_TOPIC, topic):
                denied = rows.PRODUCE_TOPIC.code
                results += (ProduceResult(index, denied, -1, -1, -1) for index, _, _ in parts)
                failed = True
                continue
            for index, start, end in parts:
                hosted = None if hosted_parts is None else hosted_parts.get(index)
                if hosted is None:
                    results.append(ProduceResult(index, self._absent_error(topic, index), -1, -1, -1))
                    failed = True
                    continue
                leader = hosted.leader
                if leader is None:
                    results.append(ProduceResult(index, _STORAGE_ERROR if hosted.stale else _NOT_LEADER, -1, -1, -1))
                    failed = True
                    continue
                if hosted.is_internal and connection.client_id != _ADMIN_CLIENT:
                    why = f"{hosted.topic} is the cluster's own"
                    results.append(ProduceResult(index, ErrorCode.INVALID_TOPIC_EXCEPTION, -1, -1, -1, (), why))
                    failed = True
                    continue
                if start < 0:
                    results.append(ProduceResult(index, ErrorCode.INVALID_RECORD, -1, -1, -1, (), "no records"))
                    failed = True
                    continue
                error, log_start_offset = int(ErrorCode.NONE), -1
                one_batch = is_one_batch(frame, start, end)  # the log says what else it is
                if one_batch:
                    error = leader.check_before_append(acks) if acks in _ACKS else ErrorCode.INVALID_REQUIRED_ACKS
                if one_batch and not error and frame[start + _ATTRIBUTES_END] & _TRANSACTIONAL:
                    from tanist.broker.api.produce_transactional import transaction_error

                    error = transaction_error(hosted, frame[start:end], verified, wall_ms)
                    if not verified.get((hosted.topic, index)) and error not in UNPLACED:
                        log_start_offset = hosted.log.log_start_offset
                if error:
                    results.append(ProduceResult(index, error, -1, -1, log_start_offset))
                    failed = True
                    continue
                log = hosted.log
                # First: once it is queued, it must be written before the frame goes; of a duplicate, the first may be
                # being written.
                turn.mark_dirty(hosted)
                appended = log.append_as_leader(frame[start:end], hosted.leader_epoch, now_ms, wall_ms)
                if appended.error:
                    results.append(
                        ProduceResult(
                            index,
                            appended.error,
                            -1,
                            -1,
                            log.log_start_offset if one_batch and appended.error not in UNPLACED else -1,
                            appended.record_errors,
                            appended.message,
                        )
                    )
                    failed = True
                    hosted.append_refused()
                    continue
                results.append(
                    ProduceResult(index, 0, appended.first_offset, appended.append_time_ms, log.log_start_offset)
                )
                taken_bytes += end - start
                if not appended.duplicate:
                    if large:
                        turn.mark_lent(hosted, end - start)
                        turn.mark_grown(hosted)
                    else:
                        self._leader_has_appended(hosted, leader, now_ms)
                if acks == -1:
                    required_offset = appended.last_offset + 1
                    if leader.high_watermark >= required_offset:
                        status = leader.acks_status(required_offset)
                        if status.error:
                            results[-1] = results[-1]._replace(error=status.error, base_offset=-1)
                            failed = True
                    else:
                        if wait is None:
                            wait = ProduceWait(self, connection, version, correlation_id, answers)
                        wait.add(hosted, required_offset, results)
        metrics = self.metrics
        metrics.produce_requests += 1
        metrics.bytes_in += taken_bytes
        if failed:
            metrics.failed_produces += sum(1 for _, results in answers for result in results if result.error)
        throttle_ms = 0 if throttles is None else throttles.produced(connection, frame, acks, began_ns)
        if wait is not None:
            wait.throttle_ms = throttle_ms
            if large:
                wait.count_large(len(frame))
            self._purgatory.add(now_ms + call.timeout_ms, wait)
        elif acks == 0:
            # No answer is expected. On a failure the connection closes, and the client refreshes its metadata.
            if failed:
                connection.close()
        elif failed and version >= _LEADER_HINT_VERSION:
            connection.respond_one(self.answer(connection, version, correlation_id, answers, throttle_ms))
        else:
            whole = encode_produce_response(version, correlation_id, answers, throttle_time_ms=throttle_ms)
            connection.respond_one(whole)

    def _refuse_all(
        self,
        connection: ClientConnection,
        frame: memoryview,
        version: int,
        correlation_id: int,
        call: ProduceCall,
        error: int,
    ) -> None:
        self.metrics.produce_requests += 1
        self.metrics.failed_produces += sum(len(parts) for _, parts in call.topics)
        if call.acks == 0:
            connection.close()
            return
        throttle_ms = self._throttles.produced(connection, frame, call.acks) if self._throttles else 0
        refused: list[tuple[str | UUID, list[ProduceResult]]] = [
            (topic, [ProduceResult(index, error, -1, -1, -1) for index, _, _ in parts]) for topic, parts in call.topics
        ]
        connection.respond_one(self.answer(connection, version, correlation_id, refused, throttle_ms))


def _has_transactions(frame: memoryview, call: ProduceCall) -> bool:
    """Whether any batch is transactional."""
    return any(
        frame[start + _ATTRIBUTES_END] & _TRANSACTIONAL
        for _, parts in call.topics
        for _, start, end in parts
        if first_batch_bytes(frame, start, end)
    )

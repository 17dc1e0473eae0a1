"""Markers of transactions, written to the partitions that this broker leads.

Owns the append and the wait for the high watermark, for WriteTxnMarkers of other coordinators and for the one here. A
marker for `__consumer_offsets` goes through the group coordinator, which then knows that pending offsets count. With
`transaction.version` 2 a marker has a newer epoch than the batches that it ends (KIP-890, KIP-1228); a repeated one is
acknowledged and not written again. A transaction that has lost its marker is ended, and reported, before a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.groups.service import Groups
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.coordinator.effects import MarkerAppend
from tanist.coordinator.transactions.hanging import Ending, OpenTransaction, aborted, is_of_a_later_one
from tanist.coordinator.transactions.state import EPOCH_BUMP_VERSION, TopicIndex
from tanist.events.coordination import HangingMarkerRefused, HangingTransactionEnded
from tanist.wire.control import encode_marker_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC

MARKER_TIMEOUT_MS: Final = 30_000
"""Kafka's default of `request.timeout.ms`: a marker that is not committed by then is asked for again."""

OnMarkers = Callable[[dict[TopicIndex, int]], None]
"""Gets the error of each partition, 0 if its marker is committed."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of one producer's transaction."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int


def open_transaction(hosted: HostedPartition, producer_id: int) -> OpenTransaction | None:
    """The transaction that a producer has open in a partition; None if it has none."""
    entry = hosted.log.producers.entries.get(producer_id)
    if entry is None or entry.transaction_first_offset < 0:
        return None
    first_offset = entry.transaction_first_offset
    return OpenTransaction(
        (hosted.topic, hosted.index),
        hosted.leader_epoch,
        producer_id,
        entry.epoch,
        first_offset,
        max(entry.last_offset, first_offset),
    )


class _Request:
    """Markers for several partitions, until each has an answer."""

    __slots__ = ("errors", "left", "on_markers")

    def __init__(self, partitions: Iterable[TopicIndex], on_markers: OnMarkers) -> None:
        self.left = set(partitions)
        self.errors: dict[TopicIndex, int] = {}
        self.on_markers = on_markers

    def answer(self, partition: TopicIndex, error: int) -> None:
        if partition in self.left:
            self.left.discard(partition)
            self.errors[partition] = int(error)
            if not self.left:
                self.on_markers(self.errors)


class _MarkerWait:
    """One marker that waits for the high watermark. An `AckWaiter`, and in the purgatory."""

    __slots__ = ("_partition", "_request", "done")

    def __init__(self, request: _Request, partition: TopicIndex) -> None:
        self.done = False
        self._request = request
        self._partition = partition

    def complete(self, ticket: int, error: int) -> None:
        if not self.done:
            self.done = True
            # With too few replicas after the append it is committed all the same.
            self._request.answer(self._partition, 0 if error == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND else error)

    def expire(self) -> None:
        self.complete(0, ErrorCode.REQUEST_TIMED_OUT)


class MarkerWrites:
    """The writer."""

    def __init__(self, components: CoordinatorComponents, groups: Groups) -> None:
        self._context = components.context
        self._replicas = components.replicas
        self._effects = components.effects
        self._purgatory = components.purgatory
        self._turn = components.turn
        self._groups = groups

    def write(self, marker: Marker, partitions: Iterable[TopicIndex], on_markers: OnMarkers) -> None:
        """Write the marker to these partitions; `on_markers` is called once, when all have an answer."""
        partitions = list(partitions)
        request = _Request(partitions, on_markers)
        if not partitions:
            on_markers({})
        for partition in partitions:
            self._write_to(marker, partition, request)

    def _write_to(self, marker: Marker, partition: TopicIndex, request: _Request) -> None:
        topic, index = partition
        hosted = self._replicas.get(topic, index)
        if hosted is None:
            request.answer(partition, self._replicas.absent_error(topic, index))
            return
        leader = hosted.leader
        if leader is None:
            request.answer(
                partition, ErrorCode.KAFKA_STORAGE_ERROR if hosted.stale else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
            return
        answer = self._answer_without_writing(hosted, marker)
        if answer is not None:
            request.answer(partition, answer)
            return
        self._end_earlier(hosted, marker)
        if topic == OFFSETS_TOPIC:
            append = MarkerAppend(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.committed,
                lambda error: request.answer(partition, error),
            )
            self._groups.coordinator().write_marker(index, append)
            return
        error = leader.check_before_append(-1)
        if error:
            request.answer(partition, error)
            return
        now_ms, wall_ms = self._context.clock.now_ms(), self._context.clock.wall_ms()
        batch = encode_marker_batch(
            committed=marker.committed,
            coordinator_epoch=marker.coordinator_epoch,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp_ms=wall_ms,
        )
        hosted.log.producers.replicated(leader.high_watermark)
        appended = hosted.log.append_as_leader(memoryview(batch), hosted.leader_epoch, now_ms, wall_ms, internal=True)
        if appended.error:
            request.answer(partition, appended.error)
            hosted.append_refused()
            return
        wait = _MarkerWait(request, partition)
        hosted.wait_for_high_watermark(appended.last_offset + 1, wait)
        self._purgatory.add(now_ms + MARKER_TIMEOUT_MS, wait)
        self._turn.mark_dirty(hosted)
        self._effects.leader_has_appended(hosted, leader, now_ms)

    def _end_earlier(self, hosted: HostedPartition, marker: Marker) -> None:
        """A transaction that has lost its marker must not get that of a later one (KAFKA-20716)."""
        found = open_transaction(hosted, marker.producer_id)
        if found is not None and is_of_a_later_one(found, marker.producer_epoch, committed=marker.committed):
            self.end_hanging(hosted, found, aborted(found))

    def end_hanging(self, hosted: HostedPartition, transaction: OpenTransaction, ending: Ending) -> None:
        """Write the marker of a transaction that no coordinator will end, and report it once it is in the log."""
        entry = hosted.log.producers.entries[transaction.producer_id]
        marker = Marker(
            transaction.producer_id,
            ending.producer_epoch,
            max(0, entry.coordinator_epoch),
            ending.committed,
            ending.transaction_version,
        )
        errors: dict[TopicIndex, int] = {}
        self.write(marker, [transaction.partition], errors.update)
        if open_transaction(hosted, transaction.producer_id) == transaction:
            error = errors.get(transaction.partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            self._context.events.emit(HangingMarkerRefused(hosted.name, error))
            return
        self._context.metrics.hanging_transactions += 1
        self._context.events.emit(
            HangingTransactionEnded(
                hosted.name,
                transaction.producer_id,
                transaction.producer_epoch,
                ending.committed,
                ending.reason,
                transaction.first_offset,
                transaction.last_offset,
            )
        )

    def _answer_without_writing(self, hosted: HostedPartition, marker: Marker) -> int | None:
        """The error of a marker that may not be written; 0 of one that is there already; None: write it."""
        if marker.transaction_version < EPOCH_BUMP_VERSION:
            return None  # its epoch is that of the batches, and the log's own checks do
        entry = hosted.log.producers.entries.get(marker.producer_id)
        if entry is None or marker.producer_epoch > entry.epoch:
            return None
        ended = marker.producer_epoch == entry.epoch and entry.transaction_first_offset < 0
        if not ended:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        leader = hosted.leader
        committed = leader is not None and leader.high_watermark >= hosted.log.log_end_offset
        return ErrorCode.NONE if committed else None

"""The log of one replica, asked of its own broker by Kafka's requests, whether or not it leads: any Kafka's.

Owns three questions. ListOffsets of a debugging client (replica id -2) gives a log's start and end. Fetch with the end
as its offset and an epoch as that of the last record fetched gives where that epoch ended (KIP-595); so a search finds
the last epoch that has records, and a walk down from it the others. Fetch also gives a record: to a consumer below the
replica's high watermark, and to the end of the log under replica id -3, by which Kafka's brokers read logs for
themselves. A broker that refuses that reads to a consumer.

How far a log is synced to disk no request of Kafka's says: `ReplicaPositions.synced` stays unknown here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tanist.client.positions import (
    EARLIEST,
    FETCH_VERSION_MAX,
    LATEST,
    fetch_request,
    list_offsets_request,
    partition_in,
    read_from,
)
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.replica_positions import ReplicaPositions
from tanist.wire.batch import Record
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.list_offsets_response import ListOffsetsResponse

_CONSUMER, _DEBUGGING, _LOCAL = -1, -2, -3
"""Replica ids that are no broker's."""
_ANSWER_S: Final = 5.0
_RECORD_BYTES: Final = 64 << 10
"""A batch that is larger comes whole."""


class ReplicaLog:
    """One replica."""

    def __init__(self, client: Client, broker: int, where: TopicPartition, leader_epoch: int) -> None:
        """`leader_epoch`: the partition's. A replica that acts by another one refuses to answer."""
        self._client = client
        self._broker = broker
        self._where = where
        self._leader_epoch = leader_epoch

    def positions(self) -> ReplicaPositions:
        """`KafkaError` and `Unreachable` if it does not say."""
        start, end = self._offset(EARLIEST), self._offset(LATEST)
        high_watermark = self._fetch(end).high_watermark
        epochs = tuple(sorted(self._epochs(start, end))) if start < end else ()
        return ReplicaPositions(
            self._broker, "offline", True, start=start, end=end, high_watermark=high_watermark, epochs=epochs
        )

    def record(self, offset: int) -> Record | None:
        """The record at this offset; None for a marker of a transaction, for one that compaction has removed, and for
        one that the broker does not show.
        """
        for replica_id in (_LOCAL, _CONSUMER):
            found = self._fetch(offset, replica_id=replica_id, max_bytes=_RECORD_BYTES)
            if not found.error_code:
                records = read_from(found, offset).records
                return next((each for each in records if each.offset == offset), None)
        raise KafkaError(found.error_code)

    def _offset(self, timestamp: int) -> int:
        request = list_offsets_request({self._where: timestamp}, leader_epoch=self._leader_epoch, replica_id=_DEBUGGING)
        answer = self._client.ask(request, ListOffsetsResponse, node_id=self._broker, timeout_s=_ANSWER_S)
        found = partition_in(answer)
        if found.error_code:
            raise KafkaError(found.error_code)
        return int(found.offset)

    def _fetch(self, offset: int, *, last_epoch: int = -1, replica_id: int = _CONSUMER, max_bytes: int = 1) -> Any:
        request = fetch_request(
            self._where, offset, max_bytes=max_bytes, max_wait_ms=0, leader_epoch=self._leader_epoch
        )
        request.replica_id = replica_id
        request.topics[0].partitions[0].last_fetched_epoch = last_epoch
        answer = self._client.ask(
            request, FetchResponse, node_id=self._broker, timeout_s=_ANSWER_S, max_version=FETCH_VERSION_MAX
        )
        if answer.error_code:
            raise KafkaError(answer.error_code)
        return partition_in(answer)

    def _end_of(self, epoch: int, end: int) -> tuple[int, int] | None:
        """The last epoch up to this one, and where it ends; None if the log has none that is as late."""
        found = self._fetch(end, last_epoch=epoch)
        if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return None
        if found.error_code:
            raise KafkaError(found.error_code)
        diverging = found.diverging_epoch
        return (epoch, end) if diverging.epoch < 0 else (diverging.epoch, diverging.end_offset)

    def _epochs(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The leader epochs of [start, end), and where each begins; the last one first."""
        epoch, until, is_known = self._last_epoch(end), end, True
        while epoch > 0:
            before = self._end_of(epoch - 1, end)
            if before is None or (before[1] >= until and not is_known):
                return  # it was none of the log's: an epoch from before the first one ends where that begins
            yield epoch, max(before[1], start)
            is_known = before[0] < epoch - 1
            epoch, until = before
            if until <= start:
                return
        if epoch == 0 and until > start:
            yield 0, start

    def _last_epoch(self, end: int) -> int:
        """The last one that the log has; -1 if it has none."""
        too_late, step = self._leader_epoch + 1, 1
        known = self._leader_epoch
        while known >= 0 and self._end_of(known, end) is None:
            too_late, known, step = known, known - step, step * 2
        known = max(known, -1)
        while too_late - known > 1:
            middle = (known + too_late) // 2
            known, too_late = (middle, too_late) if self._end_of(middle, end) is not None else (known, middle)
        return known

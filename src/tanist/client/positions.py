"""The position of a reader in a partition: fetches, where they go on, and offsets by time or leader epoch.

A position moves over whatever the log has there: records, control batches, what compaction has taken. A batch whose CRC
does not match is not believed, and the position stays before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tanist.client.offsets import NO_EPOCH
from tanist.client.topic_partition import TopicPartition
from tanist.wire.batch import Record, crc_matches, iterate_headers
from tanist.wire.ids import indexes_by_topic
from tanist.wire.isolation import committed_batches
from tanist.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tanist.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2
FETCH_VERSION_MAX: Final = 12
"""The last that names a topic by its name; later ones use its id."""
_CONSUMER: Final = -1
"""The id of a reader that is no replica."""


def fetch_request(
    where: TopicPartition,
    offset: int,
    *,
    max_bytes: int,
    partition_bytes: int | None = None,
    max_wait_ms: int = 500,
    leader_epoch: int = NO_EPOCH,
    read_committed: bool = False,
) -> FetchRequest:
    """Of one partition, outside of fetch sessions. A leader of another epoch refuses it."""
    topic, partition = where
    asked = FetchPartition(
        partition=partition,
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        partition_max_bytes=max_bytes if partition_bytes is None else partition_bytes,
    )
    return FetchRequest(
        replica_id=_CONSUMER,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=int(read_committed),
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(asked,)),),
    )


def partition_in(answer: Any) -> Any:
    """The one partition of an answer to one of these requests; None if it has none."""
    topics = answer.responses if hasattr(answer, "responses") else answer.topics
    return topics[0].partitions[0] if topics else None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of one fetch."""

    records: tuple[Record, ...]
    next_offset: int
    """Where to go on; beyond control batches and what compaction has taken."""
    high_watermark: int
    is_corrupt: bool = False
    """A batch at `next_offset` has another CRC than its header says."""


def read_from(data: Any, offset: int, *, read_committed: bool = False) -> Fetched:
    """The records of a fetched partition from `offset` on: its first batch may begin before.

    `read_committed` leaves out those of transactions that were aborted.
    """
    view = memoryview(data.records or b"")
    intact, is_corrupt = _intact(view)
    aborted = data.aborted_transactions or () if read_committed else ()
    records: list[Record] = []
    position = offset
    for header, batch in committed_batches(view[:intact], [(each.first_offset, each.producer_id) for each in aborted]):
        records.extend(record for record in batch if record.offset >= offset)
        position = max(position, header.next_offset)
    return Fetched(tuple(records), position, data.high_watermark, is_corrupt)


def _intact(data: memoryview) -> tuple[int, bool]:
    """The length of the batches before the first whose CRC does not match, and whether there is one."""
    end = 0
    for at, header in iterate_headers(data):
        if not crc_matches(data, at, header.size_bytes):
            return end, True
        end = at + header.size_bytes
    return end, False


def list_offsets_request(
    wanted: Mapping[TopicPartition, int],
    *,
    leader_epoch: int = NO_EPOCH,
    read_committed: bool = False,
    timeout_ms: int = 10_000,
    replica_id: int = _CONSUMER,
) -> ListOffsetsRequest:
    """For each partition the offset of a timestamp, of `EARLIEST` or of `LATEST`.

    With `read_committed` the latest is where the first open transaction begins.
    """
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=int(read_committed),
        timeout_ms=timeout_ms,
        topics=tuple(
            ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    ListOffsetsPartition(
                        partition_index=index, current_leader_epoch=leader_epoch, timestamp=wanted[topic, index]
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in indexes_by_topic(wanted).items()
        ),
    )


def epoch_ends_request(epochs: Mapping[TopicPartition, int]) -> OffsetForLeaderEpochRequest:
    """For each partition the end of a leader epoch, or of the last one before it, in its leader's log (KIP-320)."""
    return OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=tuple(
            OffsetForLeaderTopic(
                topic=topic,
                partitions=tuple(
                    OffsetForLeaderPartition(partition=index, leader_epoch=epochs[topic, index]) for index in indexes
                ),
            )
            for topic, indexes in indexes_by_topic(epochs).items()
        ),
    )

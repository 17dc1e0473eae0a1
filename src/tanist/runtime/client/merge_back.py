"""Putting salvaged records back into a topic: those, and only those, that it lacks.

`merge_presence` says which of them the topic has: at the same offset (it was saved, and not lost), at another one (its
producer got no answer and sent it again), or by an earlier merge-back.

The topic is read from where its history parts from that of the salvage to its end: whatever was sent again, was sent to
a later leader. Records from before the topic's present start may have expired or been deleted there: it is
left out unless asked for. So are, by the command, the records of whole logs that were dropped because the leader's
begins beyond them (`out-of-range`).

Of transactions only committed records are restored, as plain records: each transaction by its marker in the salvage
(`transaction_outcomes`). Without one it is undecided: an open transaction may be aborted yet, and no option restores
it.

A compacted topic gets no record back whose key it has a newer record of: that would undo the newer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from tanist.client import positions
from tanist.client.admin import TOPIC_RESOURCE
from tanist.client.positions import EARLIEST, LATEST
from tanist.runtime.client import admin
from tanist.runtime.client.asking import ask_leader
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.merge_presence import MARK, Presence
from tanist.runtime.client.records import Producer, list_offset
from tanist.runtime.client.salvaged import PartitionSalvage, SalvagedRecord
from tanist.runtime.client.transaction_outcomes import TransactionOutcome
from tanist.wire.batch import BatchHeader, NewRecord, Record, decode_batch, iterate_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import id_text
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import FetchResponse
from tanist.wire.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse

_FETCH_BYTES = 8 << 20
_BATCH_RECORDS = 500
_BATCH_BYTES = 256 << 10
_RECORD_OVERHEAD_BYTES = 70


@dataclass(slots=True)
class MergeResult:
    """The result of merging back one partition's salvage."""

    topic: str
    partition: int
    target: str
    found: int = 0
    """Records in the salvage, each once."""
    present: int = 0
    """Those that the topic has."""
    restored: int = 0
    """Those that were sent, or would have been."""
    superseded: int = 0
    """Those whose keys the compacted topic has newer records of."""
    expired: int = 0
    """Those from before the topic's start."""
    aborted: int = 0
    """Those of aborted transactions."""
    undecided: int = 0
    """Those of transactions of which the salvage does not have the end, and that the topic does not have."""
    control_batches: int = 0
    unreadable_batches: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """The topic that gets the records."""

    topic: str
    partitions: tuple[int, ...]
    compacted: bool
    log_append_time: bool


class MergeInterrupted(Exception):
    """The cluster has refused a batch, or is not there any more."""


def describe_target(client: Client, topic: str) -> tuple[Target, str]:
    """The topic as far as a merge-back needs to know it, and its id. `KafkaError` if there is none."""
    (described,) = admin.describe_topics(client, [topic])
    settings = {entry.name: entry.value or "" for entry in admin.describe_configs(client, TOPIC_RESOURCE, topic)}
    return Target(
        topic,
        tuple(partition.partition for partition in described.partitions),
        "compact" in settings.get("cleanup.policy", ""),
        settings.get("message.timestamp.type") == "LogAppendTime",
    ), id_text(described.topic_id)


def merge_back(
    client: Client,
    salvage: PartitionSalvage,
    target: Target,
    *,
    mark: bool = False,
    include_expired: bool = False,
    dry_run: bool = False,
) -> MergeResult:
    """Send what the topic lacks of one partition's salvage. Can be repeated: what is there by then is recognised.

    A topic that stamps records itself forgets their timestamps, so records sent to one are always marked.
    """
    result = MergeResult(salvage.topic, salvage.partition, target.topic, control_batches=salvage.control_count)
    start = list_offset(client, target.topic, salvage.partition, EARLIEST)
    end = list_offset(client, target.topic, salvage.partition, LATEST)
    same_topic = target.topic == salvage.topic
    parting = _parting(client, salvage) if same_topic else start
    presence = Presence(salvage, compacted=target.compacted)
    for header, records in _batches(client, target.topic, salvage.partition, max(start, parting), end):
        presence.note(header, records)
    presence.end()

    sender = _Sending(client, target, salvage.partition, mark=mark or target.log_append_time, dry_run=dry_run)
    for salvaged in salvage.records():
        result.found += 1
        if salvaged.outcome is TransactionOutcome.ABORTED:
            result.aborted += 1
        elif salvaged.outcome is TransactionOutcome.UNDECIDED and not presence.has_send(salvaged):
            result.undecided += 1
        elif presence.has(salvaged):
            result.present += 1
        elif same_topic and salvaged.offset < start and not include_expired:
            result.expired += 1
        elif presence.supersedes(salvaged.record):
            result.superseded += 1
        else:
            sender.add(salvaged)
            result.restored += 1
    sender.flush()
    result.unreadable_batches = salvage.unreadable
    return result


class _Sending:
    """Batches on their way: as large as is reasonable, in the codec that the records came in."""

    def __init__(self, client: Client, target: Target, partition: int, *, mark: bool, dry_run: bool) -> None:
        self._producer = Producer(client)
        self._target = target
        self._partition = partition
        self._mark = mark
        self._dry_run = dry_run
        self._records: list[NewRecord] = []
        self._bytes = 0
        self._compression = 0
        self.sent = 0

    def add(self, salvaged: SalvagedRecord) -> None:
        if self._dry_run:
            return
        record, compression = salvaged.record, salvaged.header.compression
        size = len(record.key or b"") + len(record.value or b"") + _RECORD_OVERHEAD_BYTES
        full = len(self._records) >= _BATCH_RECORDS or self._bytes + size > _BATCH_BYTES
        if self._records and (full or compression != self._compression):
            self.flush()
        headers = tuple(record.headers)
        if self._mark:
            headers = (*(each for each in headers if not each[0].startswith(MARK)), *_marks_for(salvaged))
        self._records.append(NewRecord(record.timestamp, record.key, record.value, headers))
        self._bytes += size
        self._compression = compression

    def flush(self) -> None:
        if not self._records:
            return
        try:
            self._producer.send(self._target.topic, self._partition, self._records, compression=self._compression)
        except (KafkaError, Unreachable) as error:
            raise MergeInterrupted(
                f"{self._target.topic}-{self._partition}: {error}. Records restored so far: {self.sent}. "
                "Fix that and run it again: it restores each record once"
            ) from error
        self.sent += len(self._records)
        self._records, self._bytes = [], 0


def _batches(
    client: Client, topic: str, partition: int, start: int, end: int
) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """The batches from `start` on that begin below `end`: those of transactions whatever came of them, and markers."""
    position = start
    while position < end:
        request = positions.fetch_request((topic, partition), position, max_bytes=_FETCH_BYTES)
        data = memoryview(client.persist(partial(_fetched, client, topic, partition, request)))
        for at, header in iterate_headers(data):
            if header.base_offset < end:
                records = decode_batch(data[at : at + header.size_bytes])
                yield header, [record for record in records if record.offset >= start]
            position = max(position, header.next_offset)


def _parting(client: Client, salvage: PartitionSalvage) -> int:
    """The offset from which on the topic may have what was dropped: the end of the earliest epoch that was.

    It may be below all that was dropped: a second election may have taken the topic back further. -1: not known.
    """
    if not salvage.batches:
        return -1
    topic, index = salvage.topic, salvage.partition
    request = positions.epoch_ends_request({(topic, index): max(salvage.batches[0].epoch, 0)})

    def attempt() -> int:
        answer = ask_leader(client, topic, index, request, OffsetForLeaderEpochResponse)
        return answer.topics[0].partitions[0].end_offset

    return min(client.persist(attempt), min(batch.base_offset for batch in salvage.batches))


def _fetched(client: Client, topic: str, partition: int, request: FetchRequest) -> bytes:
    about = f"{topic}-{partition} while reading what is there"
    answer = ask_leader(
        client, topic, partition, request, FetchResponse, max_version=positions.FETCH_VERSION_MAX, about=about
    )
    if not answer.responses:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, about)
    return bytes(answer.responses[0].partitions[0].records or b"")


def _marks_for(salvaged: SalvagedRecord) -> tuple[tuple[str, bytes], ...]:
    manifest = salvaged.entry.manifest
    return (
        (f"{MARK}id", manifest.entry_id.encode()),
        (f"{MARK}topic.id", id_text(manifest.topic_id).encode()),
        (f"{MARK}partition", str(manifest.partition).encode()),
        (f"{MARK}epoch", str(salvaged.epoch).encode()),
        (f"{MARK}offset", str(salvaged.offset).encode()),
    )

"""Merge-back: what the topic lacks is restored, what it has is recognised, whatever way it came there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.log.salvage.manifest import Manifest, SalvageReason, SavedFile
from tanist.runtime.client.client import KafkaError
from tanist.runtime.client.merge_back import MergeInterrupted, MergeResult, Target, merge_back
from tanist.runtime.client.merge_presence import MARK
from tanist.runtime.client.salvaged import Entry, PartitionSalvage, by_partition
from tanist.wire.batch import NewRecord, Record, decode_batch, encode_batch, iterate_headers, read_header
from tanist.wire.compression import Compression
from tanist.wire.control import encode_marker_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.list_offsets_request import ListOffsetsRequest
from tanist.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tanist.wire.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from tanist.wire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tanist.wire.messages.produce_request import ProduceRequest
from tanist.wire.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

TOPIC_ID = UUID(int=99)
PLAIN = Target("t", (0,), compacted=False, log_append_time=False)
STAMPED = Target("t", (0,), compacted=False, log_append_time=True)
COMPACTED = Target("t", (0,), compacted=True, log_append_time=False)


class OnePartition:
    """As much of a `Client` as a merge-back uses, and the partition behind it."""

    def __init__(self, *, log_append_time: bool = False) -> None:
        self.batches: list[bytes] = []
        self.end = 0
        self.start = 0
        self.stamp = 5_000_000 if log_append_time else None
        self.refuse_after: int | None = None
        self.produced = 0
        self._ids = itertools.count(700)

    def has(self, *records: NewRecord, at: int | None = None, epoch: int = 9, **batch: Any) -> None:
        if at is not None:
            self.end = at
        self.batches.append(
            bytes(
                encode_batch(records, base_offset=self.end, leader_epoch=epoch, log_append_time_ms=self.stamp, **batch)
            )
        )
        self.end += len(records)

    @property
    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in decode_batch(batch)]

    def leader_of(self, topic: str, partition: int) -> int:
        assert (topic, partition) == ("t", 0)
        return 1

    def forget(self, topic: str) -> None:
        pass

    def persist(self, attempt: Callable[[], Any], **_: Any) -> Any:
        return attempt()

    def ask(self, request: Any, answer: type, **_: Any) -> Any:
        found = getattr(self, f"_{type(request).__name__}")(request)
        assert isinstance(found, answer)
        return found

    def _ListOffsetsRequest(self, request: ListOffsetsRequest) -> Any:  # noqa: N802
        offset = self.start if request.topics[0].partitions[0].timestamp == -2 else self.end
        part = ListOffsetsPartitionResponse(partition_index=0, error_code=0, timestamp=-1, offset=offset)
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="t", partitions=(part,)),))

    def _OffsetForLeaderEpochRequest(self, request: OffsetForLeaderEpochRequest) -> Any:  # noqa: N802
        epoch = request.topics[0].partitions[0].leader_epoch
        later = [header.base_offset for header in map(read_header, self.batches) if header.leader_epoch > epoch]
        part = EpochEndOffset(partition=0, leader_epoch=epoch, end_offset=min(later, default=self.end))
        return OffsetForLeaderEpochResponse(topics=(OffsetForLeaderTopicResult(topic="t", partitions=(part,)),))

    def _FetchRequest(self, request: FetchRequest) -> Any:  # noqa: N802
        wanted = request.topics[0].partitions[0].fetch_offset
        assert self.start <= wanted < self.end
        data = next(batch for batch in self.batches if read_header(batch).next_offset > wanted)
        part = PartitionData(partition_index=0, error_code=0, high_watermark=self.end, records=data)
        return FetchResponse(error_code=0, responses=(FetchableTopicResponse(topic="t", partitions=(part,)),))

    def _InitProducerIdRequest(self, request: InitProducerIdRequest) -> Any:  # noqa: N802
        return InitProducerIdResponse(error_code=0, producer_id=next(self._ids), producer_epoch=0)

    def _ProduceRequest(self, request: ProduceRequest) -> Any:  # noqa: N802
        if self.refuse_after is not None and self.produced >= self.refuse_after:
            raise KafkaError(int(ErrorCode.INVALID_TIMESTAMP), "too old")
        data = bytes(request.topic_data[0].partition_data[0].records or b"")
        header = read_header(data)
        assert header.producer_id >= 700, "merge-back is idempotent"
        self.has(
            *(NewRecord(r.timestamp, r.key, r.value, r.headers) for r in decode_batch(data)),
            compression=header.compression,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
        self.produced += 1
        part = PartitionProduceResponse(index=0, error_code=0, base_offset=self.end - header.record_count)
        return ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=(part,)),))


class Salvaged:
    """Quarantines, written batch by batch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self.entries: list[Entry] = []

    def entry(self, *batches: bytes | bytearray, why: SalvageReason = SalvageReason.UNCLEAN_ELECTION) -> Entry:
        name = f"1000-1-{next(self._numbers)}"
        data = b"".join(map(bytes, batches))
        headers = [header for _, header in iterate_headers(data)]
        first, end = headers[0].base_offset, headers[-1].next_offset
        file = f"{first:020d}.log"
        manifest = Manifest(
            name, 1, "t", TOPIC_ID, 0, why, 1000, 9, 5, first, end, ((headers[0].leader_epoch, first),),
            (SavedFile(file, len(data), 0),),
        )  # fmt: skip
        (self._folder / name).mkdir()
        (self._folder / name / file).write_bytes(data)
        made = Entry(self._folder / name, manifest)
        self.entries.append(made)
        return made

    @property
    def partition(self) -> PartitionSalvage:
        (found,) = by_partition(self.entries)
        return found


@pytest.fixture
def salvaged(tmp_path: Path) -> Salvaged:
    return Salvaged(tmp_path)


def record(number: int, key: bytes | None = b"k", **how: Any) -> NewRecord:
    return NewRecord(1_000 + number, key, b"value %d" % number, **how)


def lost(*numbers: int, at: int = 10, epoch: int = 3, **batch: Any) -> bytearray:
    return encode_batch([record(n) for n in numbers], base_offset=at, leader_epoch=epoch, **batch)


def merge(topic: OnePartition, salvaged: Salvaged, target: Target = PLAIN, **how: Any) -> MergeResult:
    return merge_back(topic, salvaged.partition, target, **how)  # type: ignore[arg-type]


def values(records: Sequence[Record]) -> list[bytes | None]:
    return [each.value for each in records]


def test_what_is_lost_comes_back_as_it_was(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    headers = (("trace", b"\x00"), ("empty", None))
    kept = NewRecord(1_002, None, None, headers)
    salvaged.entry(lost(1), encode_batch([kept], base_offset=11, leader_epoch=3))
    result = merge(topic, salvaged)
    assert (result.found, result.present, result.restored) == (2, 0, 2)
    restored = topic.records[1:]
    assert values(restored) == [b"value 1", None]
    assert (restored[1].timestamp, restored[1].key, tuple(restored[1].headers)) == (1_002, None, headers)


def test_a_second_run_restores_nothing(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    salvaged.entry(lost(1, 2, 3))
    merge(topic, salvaged)
    result = merge(topic, salvaged)
    assert (result.found, result.present, result.restored) == (3, 3, 0)
    assert len(topic.records) == 4


def test_each_record_once_however_many_replicas_have_saved_it(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    salvaged.entry(lost(1, 2), lost(3, at=12))
    salvaged.entry(lost(3, at=12), lost(4, at=13))
    result = merge(topic, salvaged)
    assert (result.found, result.restored) == (4, 4)
    assert values(topic.records[1:]) == [b"value %d" % n for n in (1, 2, 3, 4)]


def test_the_same_offset_of_another_epoch_is_another_record(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    salvaged.entry(lost(1, at=10, epoch=3))
    salvaged.entry(lost(2, at=10, epoch=2))
    assert merge(topic, salvaged).restored == 2
    assert values(topic.records[1:]) == [b"value 2", b"value 1"]


def test_what_was_saved_and_not_lost_is_recognised(salvaged: Salvaged) -> None:
    """A replica cut it off after a crash and fetched it again."""
    topic = OnePartition()
    topic.has(record(1), record(2), at=10, epoch=3)
    salvaged.entry(lost(1, 2, 3))
    result = merge(topic, salvaged)
    assert (result.present, result.restored) == (2, 1)
    assert values(topic.records) == [b"value 1", b"value 2", b"value 3"]


def test_what_its_producer_sent_again_is_recognised(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    same = {"producer_id": 5, "producer_epoch": 0}
    topic.has(record(1), record(2), base_sequence=7, **same)
    salvaged.entry(lost(1, 2, base_sequence=7, **same), lost(3, at=12, base_sequence=9, **same))
    result = merge(topic, salvaged)
    assert (result.present, result.restored) == (2, 1)


def test_a_producer_that_has_begun_anew_is_recognised_by_its_records(salvaged: Salvaged) -> None:
    """After a fatal error a producer bumps its epoch and numbers its batches from 0."""
    topic = OnePartition()
    topic.has(record(50), at=10)
    topic.has(record(1), producer_id=5, producer_epoch=1, base_sequence=0)
    salvaged.entry(lost(1, producer_id=5, producer_epoch=0, base_sequence=7))
    assert merge(topic, salvaged).present == 1


def test_two_sends_of_the_same_are_two_records(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    same = {"producer_id": 5, "producer_epoch": 0}
    topic.has(record(1), base_sequence=3, **same)
    salvaged.entry(lost(1, base_sequence=7, **same))
    assert merge(topic, salvaged).restored == 1


def test_of_records_that_are_alike_as_many_are_restored_as_are_missing(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(1), at=10)
    salvaged.entry(lost(1, 1, 1))
    result = merge(topic, salvaged)
    assert (result.present, result.restored) == (1, 2)
    assert merge(topic, salvaged).restored == 0


def test_a_topic_that_stamps_records_is_recognised_by_marks(salvaged: Salvaged) -> None:
    topic = OnePartition(log_append_time=True)
    topic.has(record(50), at=10)
    salvaged.entry(lost(1, 2, log_append_time_ms=4_000))
    assert merge(topic, salvaged, STAMPED).restored == 2
    assert merge(topic, salvaged, STAMPED).present == 2
    marks = dict(topic.records[1].headers)
    assert marks[f"{MARK}epoch"] == b"3"
    assert marks[f"{MARK}offset"] == b"10"
    assert marks[f"{MARK}id"] == b"1000-1-1"


def test_a_resent_batch_is_recognised_where_the_topic_stamps_records(salvaged: Salvaged) -> None:
    topic = OnePartition(log_append_time=True)
    topic.has(record(50), at=10)
    same = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 7}
    topic.has(record(1), **same)
    salvaged.entry(lost(1, log_append_time_ms=4_000, **same))
    assert merge(topic, salvaged, STAMPED).present == 1


def test_marks_are_added_on_request_and_do_not_hide_what_they_are_on(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    salvaged.entry(lost(1))
    merge(topic, salvaged, mark=True)
    assert len(topic.records[1].headers) == 5
    assert merge(topic, salvaged).present == 1
    assert merge(topic, salvaged, mark=True).present == 1


def test_a_record_that_is_lost_twice_is_marked_once(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=20)
    old = ((f"{MARK}offset", b"1"), ("mine", b"x"))
    salvaged.entry(encode_batch([record(1, headers=old)], base_offset=20, leader_epoch=3))
    merge(topic, salvaged, mark=True)
    names = [name for name, _ in topic.records[1].headers]
    assert names.count(f"{MARK}offset") == 1
    assert "mine" in names


def test_what_may_have_expired_is_left_out_unless_asked_for(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.start = 12
    topic.has(record(50), at=12)
    salvaged.entry(lost(1, 2, 3))
    result = merge(topic, salvaged, dry_run=True)
    assert (result.expired, result.restored) == (2, 1)
    assert topic.produced == 0
    assert merge(topic, salvaged, include_expired=True).restored == 3


def test_an_old_value_is_not_put_over_a_newer_one_of_a_compacted_topic(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(NewRecord(9_000, b"b", b"newer"), at=10)
    salvaged.entry(encode_batch([record(1, b"a"), record(2, b"b"), record(3, b"a")], base_offset=10, leader_epoch=3))
    result = merge(topic, salvaged, COMPACTED)
    assert (result.superseded, result.restored) == (1, 2)
    assert values(topic.records) == [b"newer", b"value 1", b"value 3"]
    assert merge(topic, salvaged, COMPACTED).restored == 0


def test_what_is_below_all_that_was_dropped_is_found_too(salvaged: Salvaged) -> None:
    """A second election took the topic back further; what was restored came before the old cut then."""
    topic = OnePartition()
    topic.has(record(49), at=4, epoch=2)
    topic.has(record(1), epoch=7)
    salvaged.entry(lost(1, 2))
    assert merge(topic, salvaged).present == 1


def begun(*numbers: int, at: int, producer: int = 5, epoch: int = 3, sequence: int = 0) -> bytearray:
    """Records of a transaction."""
    sender = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
    return lost(*numbers, at=at, epoch=epoch, transactional=True, **sender)


def ended(committed: bool, *, at: int, producer: int = 5, epoch: int = 3) -> bytearray:
    """The marker that ends it."""
    sender = {"producer_id": producer, "producer_epoch": 0}
    return encode_marker_batch(
        committed=committed, coordinator_epoch=0, timestamp_ms=1, base_offset=at, leader_epoch=epoch, **sender
    )


def test_of_transactions_those_come_back_that_the_salvage_has_committed(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    salvaged.entry(
        begun(1, at=10), ended(True, at=11), begun(2, at=12, sequence=1), lost(3, at=13), ended(False, at=14),
        begun(4, 5, at=15, sequence=2),
    )  # fmt: skip
    result = merge(topic, salvaged)
    assert (result.found, result.restored, result.aborted, result.undecided) == (5, 2, 1, 2)
    assert result.control_batches == 2
    assert values(topic.records[1:]) == [b"value 1", b"value 3"]
    assert not read_header(topic.batches[-1]).is_transactional
    again = merge(topic, salvaged)
    assert (again.present, again.restored, again.aborted, again.undecided) == (2, 0, 1, 2)


def test_a_record_that_the_topic_has_aborted_is_not_there(salvaged: Salvaged) -> None:
    """The election took the COMMIT away, and the cluster has ended the transaction by ABORT since."""
    topic = OnePartition()
    topic.batches = [bytes(begun(1, at=10)), bytes(ended(False, at=11, epoch=9))]
    topic.end = 12
    salvaged.entry(begun(1, at=10), ended(True, at=11))
    assert merge(topic, salvaged).restored == 1
    assert values(topic.records)[-1] == b"value 1"
    assert merge(topic, salvaged).restored == 0


@pytest.mark.parametrize("marker", [(), (bytes(ended(True, at=11, epoch=9)),)])
def test_a_record_that_is_open_or_committed_in_the_topic_is_there(salvaged: Salvaged, marker: tuple[bytes]) -> None:
    topic = OnePartition()
    topic.batches = [bytes(begun(1, at=10)), *marker]
    topic.end = 10 + len(topic.batches)
    salvaged.entry(begun(1, at=10), ended(True, at=11), begun(2, at=12, sequence=1))
    result = merge(topic, salvaged)
    assert (result.present, result.restored, result.undecided) == (1, 0, 1)


def test_an_undecided_record_that_the_topic_has_is_present(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.batches = [bytes(begun(1, at=10)), bytes(ended(True, at=11, epoch=9))]
    topic.end = 12
    salvaged.entry(begun(1, at=10))
    result = merge(topic, salvaged)
    assert (result.present, result.undecided) == (1, 0)


def test_a_transaction_that_was_cut_off_in_two_rounds_for_one_leader_is_whole(salvaged: Salvaged) -> None:
    """A follower asks for the end of one epoch after the other."""
    topic = OnePartition()
    topic.has(record(50), at=10)
    salvaged.entry(ended(True, at=12, epoch=4))
    salvaged.entry(begun(1, 2, at=10))
    assert merge(topic, salvaged).restored == 2


def test_behind_damage_no_marker_counts(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    broken = ended(False, at=11)
    broken[-1] ^= 1
    why = SalvageReason.RECOVERY_CUT
    salvaged.entry(begun(1, at=10), broken, begun(2, at=12, sequence=1), ended(True, at=13), why=why)
    result = merge(topic, salvaged)
    assert (result.restored, result.undecided) == (1, 1)
    assert values(topic.records[1:]) == [b"value 2"]


def test_a_hole_behind_which_a_marker_stands_ends_nothing(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    salvaged.entry(begun(1, at=10), ended(True, at=15), why=SalvageReason.RECOVERY_CUT)
    assert merge(topic, salvaged).undecided == 1


@pytest.mark.parametrize("codec", list(Compression))
def test_compressed_batches_come_back_compressed(salvaged: Salvaged, codec: Compression) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    salvaged.entry(lost(1, 2, compression=codec))
    assert merge(topic, salvaged).restored == 2
    assert read_header(topic.batches[-1]).compression == codec
    assert values(topic.records[1:]) == [b"value 1", b"value 2"]


def test_many_records_go_in_several_batches(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50_000), at=10)
    salvaged.entry(lost(*range(1_201)))
    assert merge(topic, salvaged).restored == 1_201
    assert topic.produced == 3
    assert values(topic.records[1:]) == [b"value %d" % n for n in range(1_201)]


def test_an_interruption_tells_how_far_it_came_and_the_rest_can_follow(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50_000), at=10)
    salvaged.entry(lost(*range(1_201)))
    topic.refuse_after = 2
    with pytest.raises(MergeInterrupted, match=r"t-0: INVALID_TIMESTAMP: too old. Records restored so far: 1000"):
        merge(topic, salvaged)
    topic.refuse_after = None
    result = merge(topic, salvaged)
    assert (result.present, result.restored) == (1_000, 201)
    assert len(topic.records) == 1_202


def test_damaged_batches_are_passed_over(salvaged: Salvaged) -> None:
    topic = OnePartition()
    topic.has(record(50), at=10)
    broken = lost(2, at=11)
    broken[-1] ^= 1
    salvaged.entry(lost(1), broken, lost(3, at=12), why=SalvageReason.RECOVERY_CUT)
    assert merge(topic, salvaged).restored == 2


def test_an_empty_topic_gets_all(salvaged: Salvaged) -> None:
    topic = OnePartition()
    salvaged.entry(lost(1, 2))
    assert merge(topic, salvaged).restored == 2


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_is_lost_the_topic_has_all_of_it_afterwards(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Records that differ, in any batches, on any replicas, some of which the topic has: then each exactly once."""
    salvaged = Salvaged(tmp_path_factory.mktemp("salvage"))
    count = data.draw(st.integers(1, 12))
    batches, at = [], 10
    while at < 10 + count:
        size = min(data.draw(st.integers(1, 4)), 10 + count - at)
        batches.append(lost(*range(at, at + size), at=at))
        at += size
    for _ in range(data.draw(st.integers(1, 3))):
        salvaged.entry(*batches[data.draw(st.integers(0, len(batches) - 1)) :])
    topic = OnePartition()
    topic.has(record(500), at=10)
    held = data.draw(st.lists(st.integers(10, 9 + count), unique=True))
    for number in held:
        topic.has(record(number))
    before = {(each.timestamp, each.value) for each in topic.records}
    saved = {(s.record.timestamp, s.record.value) for s in salvaged.partition.records()}
    merge(topic, salvaged)
    after = [(each.timestamp, each.value) for each in topic.records]
    assert sorted(after) == sorted(before | saved)
    merge(topic, salvaged)
    assert len(topic.records) == len(after)

"""Reading a range, against brokers that answer from a list."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tanist.client.metadata import ClusterView, PartitionView, TopicView
from tanist.runtime.client.client import Client, KafkaError
from tanist.spark.segments.record_columns import PADDING_BYTES
from tanist.spark.topic import reading as topic_reading
from tanist.spark.topic.fetching import Fetched
from tanist.spark.topic.plan import DataLoss, OffsetRange
from tanist.spark.topic.reading import read_range
from tanist.wire.batch import encode_batch
from tanist.wire.control import encode_marker_batch
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.ids import ZERO_UUID
from tanist.wire.messages import fetch_response, list_offsets_response
from tanist.wire.messages import offset_for_leader_epoch_response as epoch_response
from tanist.wire.messages.list_offsets_request import ListOffsetsRequest
from tests.spark.spark_segments_samples import some_records


class Scripted(Client):
    """A cluster of one partition, of which it is known where its log begins and where epochs end."""

    def __init__(self, *answers: Any, first: int = 0, epoch_end: int = -1) -> None:
        super().__init__([("nowhere", 1)], timeout_s=5.0)
        self.answers = list(answers)
        self.first = first
        self.epoch_end = epoch_end

    def ask(self, request: Any, answer: Any, **_: Any) -> Any:
        if isinstance(request, ListOffsetsRequest):
            partition = list_offsets_response.ListOffsetsPartitionResponse(offset=self.first)
            topic = list_offsets_response.ListOffsetsTopicResponse(name="t", partitions=(partition,))
            return list_offsets_response.ListOffsetsResponse(topics=(topic,))
        end = epoch_response.EpochEndOffset(leader_epoch=3, end_offset=self.epoch_end)
        ends = epoch_response.OffsetForLeaderTopicResult(topic="t", partitions=(end,))
        return epoch_response.OffsetForLeaderEpochResponse(topics=(ends,))

    def metadata(self, *_: Any, **__: Any) -> ClusterView:
        partition = PartitionView(0, 1, 0, (1,), (1,), ())
        self.view = ClusterView({}, None, -1, {"t": TopicView("t", ZERO_UUID, 0, False, {0: partition})})
        return self.view


class ScriptedFetching:
    """Gives the client's answers in their order."""

    def __init__(self, client: Scripted, *_: Any, **__: Any) -> None:
        self.answers = client.answers

    def begin(self, offset: int) -> None: ...

    def close(self) -> None: ...

    def fetch(self, offset: int) -> Fetched:
        found = self.answers.pop(0)
        if found.error_code:
            raise KafkaError(found.error_code, final=True)
        around = b"around"
        arena = np.frombuffer(around + found.records + b"\xff" * PADDING_BYTES, np.uint8)
        return Fetched(found, arena, len(around), len(around) + len(found.records))


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_reading, "Fetching", ScriptedFetching)


def fetched(data: bytes = b"", **fields: Any) -> Any:
    return fetch_response.PartitionData(records=data, high_watermark=100, **fields)


def batch(first: int, count: int, **settings: Any) -> bytes:
    return bytes(encode_batch(some_records(count, first), base_offset=first, **settings))


def offsets(
    client: Client, start: int, end: int, *, fail: bool = True, committed: bool = False, epoch: int = -1
) -> list[int]:
    wanted = OffsetRange("t", 0, start, end, epoch)
    found = read_range(
        client, wanted, ["offset", "value"], fetch_bytes=1000, fail_on_data_loss=fail, read_committed=committed
    )
    return [offset for each in found for offset in each.column("offset").to_pylist()]


def test_a_range_begins_and_ends_within_batches() -> None:
    client = Scripted(
        fetched(batch(0, 10) + batch(10, 10, compression=4)), fetched(batch(20, 10)[:-3]), fetched(batch(20, 10))
    )
    assert offsets(client, 7, 24) == list(range(7, 24))


def test_what_compaction_left_empty_is_no_loss() -> None:
    client = Scripted(fetched(batch(5, 2) + batch(30, 2)))
    assert offsets(client, 0, 32) == [5, 6, 30, 31]


def test_aborted_transactions_and_markers_are_not_seen() -> None:
    def marker(at: int, producer_id: int, committed: bool) -> bytes:
        return bytes(
            encode_marker_batch(
                committed=committed, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0, timestamp_ms=0,
                base_offset=at,
            )
        )  # fmt: skip

    def of(at: int, producer_id: int) -> bytes:
        return batch(at, 2, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)

    log = of(0, 7) + of(2, 8) + batch(4, 1) + marker(5, 7, False) + of(6, 7) + marker(8, 8, True) + marker(9, 7, True)
    aborted = (fetch_response.AbortedTransaction(producer_id=7, first_offset=0),)
    committed = Scripted(fetched(log, aborted_transactions=aborted))
    assert offsets(committed, 0, 10, committed=True) == [2, 3, 4, 6, 7]
    assert offsets(Scripted(fetched(log)), 0, 10) == [0, 1, 2, 3, 4, 6, 7]


def test_records_that_expired_since_the_plan() -> None:
    gone = fetched(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    with pytest.raises(DataLoss, match=r"offsets 3 to 20 were there .* the log begins at 20"):
        offsets(Scripted(gone, first=20), 3, 30)
    assert offsets(Scripted(gone, fetched(batch(20, 10)), first=20), 3, 30, fail=False) == list(range(20, 30))
    assert offsets(Scripted(gone, first=50), 3, 30, fail=False) == []


def test_a_log_that_was_truncated_since_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unclean election cut it off below the end that was committed: nothing comes, for long."""
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    nothing = [fetched() for _ in range(9)]
    with pytest.raises(DataLoss, match=r"offsets 110 to 130 were there .* the log ends at 100"):
        offsets(Scripted(*nothing), 110, 130)
    assert offsets(Scripted(*nothing), 110, 130, fail=False) == []
    assert offsets(Scripted(fetched(), fetched(batch(110, 20))), 110, 130) == list(range(110, 130))


def test_a_truncation_is_known_at_once_by_where_its_epoch_ends() -> None:
    client = Scripted(fetched(), epoch_end=115)
    with pytest.raises(DataLoss, match=r"offsets 110 to 130 .* in leader epoch 3, .* the log ends at 115"):
        offsets(client, 110, 130, epoch=3)
    assert client.answers == []


def test_what_a_later_leader_wrote_in_its_place_is_not_read() -> None:
    """The log has grown again since it was cut off: only the epoch tells that these are other records."""
    old, new = batch(0, 10, leader_epoch=3), batch(10, 30, leader_epoch=5)
    with pytest.raises(DataLoss, match=r"offsets 10 to 30 .* in leader epoch 3, .* written in leader epoch 5"):
        offsets(Scripted(fetched(old + new)), 0, 30, epoch=3)
    assert offsets(Scripted(fetched(old + new)), 0, 30, epoch=3, fail=False) == list(range(10))
    assert offsets(Scripted(fetched(old + new)), 0, 30, epoch=5) == list(range(30))
    # Beyond the range any epoch may follow.
    assert offsets(Scripted(fetched(old + new)), 0, 10, epoch=3) == list(range(10))


def test_damaged_bytes_end_the_task() -> None:
    hurt = bytearray(batch(0, 10))
    hurt[-1] ^= 1
    with pytest.raises(WireError, match="damaged"):
        offsets(Scripted(fetched(bytes(hurt))), 0, 10)

"""A replica's log, asked for by ListOffsets and Fetch: the answers are those of the rules (112, 113)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.client.positions import EARLIEST
from tanist.log.epochs import LeaderEpochCache
from tanist.replica.ports import ReplicaLog as ReplicaLogPort
from tanist.replica.reads import divergence
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.recovery_plan import runs_of
from tanist.runtime.client.replica_logs import ReplicaLog
from tanist.runtime.client.replica_positions import ReplicaPositions
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_response import EpochEndOffset, FetchableTopicResponse, FetchResponse, PartitionData
from tanist.wire.messages.list_offsets_request import ListOffsetsRequest
from tanist.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LEADER_EPOCH = 40


@dataclass
class Broker:
    """Answers for one log. `records` has some that stand above the high watermark, from `high_watermark` on."""

    log_start_offset: int
    log_end_offset: int
    epochs: LeaderEpochCache
    high_watermark: int = 0
    records: bytes = b""
    shows_all: bool = True
    leader_epoch: int = LEADER_EPOCH
    asked: list[Any] = field(default_factory=list)

    def ask(self, request: Any, answer: type, *, node_id: int, timeout_s: float, max_version: int | None = None) -> Any:
        self.asked.append(request)
        asked = request.topics[0].partitions[0]
        wrong = ErrorCode.UNKNOWN_LEADER_EPOCH if asked.current_leader_epoch != self.leader_epoch else 0
        if isinstance(request, ListOffsetsRequest):
            assert request.replica_id == -2
            offset = self.log_start_offset if asked.timestamp == EARLIEST else self.log_end_offset
            found = ListOffsetsPartitionResponse(partition_index=0, error_code=wrong, offset=offset)
            return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="t", partitions=(found,)),))
        assert isinstance(request, FetchRequest)
        log = cast(ReplicaLogPort, self)
        error, diverging = divergence(log, self.epochs.latest_epoch, asked.fetch_offset, asked.last_fetched_epoch)
        part = PartitionData(partition_index=0, error_code=wrong or error, high_watermark=self.high_watermark)
        if diverging is not None:
            part.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
        if request.replica_id == -3 and not self.shows_all:
            part.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif request.replica_id == -3 or asked.fetch_offset < self.high_watermark:
            part.records = self.records
        return FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=(part,)),))

    @property
    def replica(self) -> ReplicaLog:
        return ReplicaLog(cast(Client, self), 7, ("t", 0), LEADER_EPOCH)


@st.composite
def brokers(draw: st.DrawFn) -> Broker:
    count = draw(st.integers(0, 6))
    epochs = sorted(draw(st.sets(st.integers(0, LEADER_EPOCH), min_size=count, max_size=count)))
    starts = sorted(draw(st.sets(st.integers(0, 30), min_size=count, max_size=count)))
    end = draw(st.integers(max(starts, default=0), 40))
    # A log has epochs from its start on, if it has any; `test_..._before_there_were_epochs` has one that does not.
    start = draw(st.integers(starts[0], end)) if starts else 0
    cache = LeaderEpochCache(zip(epochs, starts, strict=True))
    return Broker(start, end if starts else 0, cache, high_watermark=start)


@given(brokers())
def test_epochs_are_found_by_fetches(broker: Broker) -> None:
    found = broker.replica.positions()
    assert (found.start, found.end, found.high_watermark) == (
        broker.log_start_offset, broker.log_end_offset, broker.high_watermark,
    )  # fmt: skip
    own = tuple((entry.epoch, entry.start_offset) for entry in broker.epochs.entries)
    expected = ReplicaPositions(7, "", True, start=found.start, end=found.end, epochs=own)
    assert runs_of(found) == runs_of(expected)
    assert found.synced is None


def test_a_log_whose_first_records_are_from_before_there_were_epochs() -> None:
    broker = Broker(0, 10, LeaderEpochCache([(4, 6), (7, 8)]))
    assert broker.replica.positions().epochs == ((4, 6), (7, 8))
    assert Broker(0, 10, LeaderEpochCache()).replica.positions().epochs == ()


def test_a_replica_in_another_leader_epoch_refuses() -> None:
    with pytest.raises(KafkaError, match="UNKNOWN_LEADER_EPOCH"):
        Broker(0, 5, LeaderEpochCache([(1, 0)]), leader_epoch=3).replica.positions()


def test_a_record_above_the_high_watermark_is_shown_to_who_may_replicate() -> None:
    records = bytes(encode_batch([NewRecord(value=b"one"), NewRecord(value=b"two")], base_offset=4, leader_epoch=1))
    broker = Broker(0, 6, LeaderEpochCache([(1, 0)]), high_watermark=4, records=records)
    found = broker.replica.record(5)
    assert found is not None
    assert (found.offset, found.value) == (5, b"two")
    assert broker.replica.record(6) is None
    broker.shows_all = False
    assert broker.replica.record(5) is None
    broker.high_watermark = 6
    assert broker.replica.record(5) == found

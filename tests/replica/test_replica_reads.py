"""Answers to readers: rule 112, bounds of a consumer, ListOffsets (S19), the nearest replica (KIP-392)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.replica.follower import FetchedPartition
from tanist.replica.memory import Entry
from tanist.replica.metadata import BrokerStatus
from tanist.replica.read_replica import ReadReplica, nearest_replica
from tanist.replica.reads import (
    AS_REPLICA,
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_REDIRECT,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ConsumerRead,
    EpochEnd,
    ListedOffset,
    check_epoch,
    consumer_fetch_bounds,
    consumer_read,
    list_offsets,
    offsets_for_leader_epoch,
    preferred_read_replica,
)
from tanist.wire.errors import ErrorCode
from tests.replica.replica_alone import Alone


def test_rule_112_leader_epochs_of_requests() -> None:
    assert check_epoch(5, 5) == check_epoch(-1, 5) == 0
    assert check_epoch(4, 5) == ErrorCode.FENCED_LEADER_EPOCH
    assert check_epoch(6, 5) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_rule_112_offset_for_leader_epoch() -> None:
    alone = Alone(leo=10)
    partition = alone.partition
    assert offsets_for_leader_epoch(partition, 5, 4) == EpochEnd(0, 4, 10)
    assert offsets_for_leader_epoch(partition, -1, 5) == EpochEnd(0, 5, 10)
    assert offsets_for_leader_epoch(partition, 5, 9) == EpochEnd(0, -1, -1)
    assert offsets_for_leader_epoch(partition, 4, 4) == EpochEnd(ErrorCode.FENCED_LEADER_EPOCH)


def test_rule_112_the_epoch_is_checked_before_the_leadership() -> None:
    partition = Alone(leader=2, leo=10).partition
    assert offsets_for_leader_epoch(partition, 6, 4).error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert offsets_for_leader_epoch(partition, 5, 4).error == ErrorCode.NOT_LEADER_OR_FOLLOWER


@given(st.integers(0, 100), st.integers(0, 100))
def test_nobody_reads_beyond_the_high_watermark(high_watermark: int, last_stable_offset: int) -> None:
    assert consumer_fetch_bounds(READ_UNCOMMITTED, high_watermark, last_stable_offset) == high_watermark
    committed = consumer_fetch_bounds(READ_COMMITTED, high_watermark, last_stable_offset)
    assert committed == min(high_watermark, last_stable_offset)


def read(alone: Alone, offset: int, **other: object) -> ConsumerRead:
    arguments: dict[str, object] = {
        "current_leader_epoch": -1,
        "last_fetched_epoch": -1,
        "isolation_level": READ_UNCOMMITTED,
        "last_stable_offset": 99,
        "leader_only": False,
    }
    return consumer_read(alone.partition, fetch_offset=offset, **(arguments | other))  # type: ignore[arg-type]


def test_a_consumer_of_a_leader() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 6)
    assert read(alone, 0) == ConsumerRead(0, None, 6)
    assert read(alone, 8) == ConsumerRead(0, None, 6)  # committed by and by: an empty answer, not an error
    assert read(alone, 11).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(alone, 0, isolation_level=READ_COMMITTED, last_stable_offset=4).upper_offset == 4
    assert read(alone, 0, current_leader_epoch=4).error == ErrorCode.FENCED_LEADER_EPOCH
    assert read(alone, 10, last_fetched_epoch=3).diverging == (3, 0)


def test_a_consumer_of_a_follower() -> None:
    alone = Alone(leader=2, leo=10)
    follower = alone.follower
    follower.fetched(FetchedPartition(high_watermark=7, log_start_offset=0), follower.fetch_position(), 0)
    assert read(alone, 0) == ConsumerRead(0, None, 7)
    assert read(alone, 11).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(alone, 0, leader_only=True).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read(alone, 0, leader_only=True, current_leader_epoch=6).error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert read(alone, 10, last_fetched_epoch=4) == ConsumerRead(0, None, 7)


def test_nothing_is_read_where_there_is_no_replica() -> None:
    assert read(Alone(replicas=(2, 3), leader=2), 0).error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def timed(**state: object) -> Alone:
    """A leader with records at 100, 300, 200, 300 ms (offsets 0-3); 3 is not committed."""
    alone = Alone(isr=(1, 2), **state)  # type: ignore[arg-type]
    for at, timestamp in enumerate((100, 300, 200, 300)):
        alone.log.append_as_follower((Entry(at, 5, "r", timestamp),), 9)
    alone.fetch(2, 3)
    return alone


def listed(alone: Alone, timestamp: int, **other: object) -> ListedOffset:
    arguments: dict[str, object] = {"isolation_level": READ_UNCOMMITTED, "last_stable_offset": 99}
    return list_offsets(alone.partition, alone.log, timestamp=timestamp, **(arguments | other))  # type: ignore[arg-type]


def test_list_offsets_of_a_leader() -> None:
    alone = timed()
    assert listed(alone, LATEST_TIMESTAMP) == ListedOffset(offset=3, leader_epoch=5)
    assert listed(alone, LATEST_TIMESTAMP, isolation_level=READ_COMMITTED, last_stable_offset=2).offset == 2
    assert listed(alone, LATEST_TIMESTAMP, isolation_level=AS_REPLICA).offset == 4
    assert listed(alone, EARLIEST_TIMESTAMP) == ListedOffset(offset=0, leader_epoch=5)
    assert listed(alone, EARLIEST_LOCAL_TIMESTAMP).offset == 0
    assert listed(alone, LATEST_TIERED_TIMESTAMP) == listed(alone, EARLIEST_PENDING_UPLOAD_TIMESTAMP) == ListedOffset()
    assert listed(alone, MAX_TIMESTAMP) == ListedOffset(timestamp=300, offset=1, leader_epoch=5)
    assert listed(alone, 150) == ListedOffset(timestamp=300, offset=1, leader_epoch=5)
    assert listed(alone, 301) == ListedOffset()
    alone.log.advance_log_start_offset(2)
    assert listed(alone, EARLIEST_TIMESTAMP).offset == 2
    assert listed(alone, 250) == ListedOffset()  # only offset 3 is as late, and it is not committed
    assert listed(alone, 250, isolation_level=AS_REPLICA).offset == 3


def test_list_offsets_of_others() -> None:
    alone = Alone(leader=2, leo=3)
    assert listed(alone, LATEST_TIMESTAMP).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert listed(alone, LATEST_TIMESTAMP, current_leader_epoch=4).error == ErrorCode.FENCED_LEADER_EPOCH


def test_a_debugging_client_hears_of_any_replicas_log() -> None:
    alone = Alone(leader=2, leo=3)
    anyone: dict[str, object] = {"leader_only": False, "isolation_level": AS_REPLICA}
    assert listed(alone, LATEST_TIMESTAMP, **anyone) == ListedOffset(offset=3, leader_epoch=5)
    assert listed(alone, EARLIEST_TIMESTAMP, **anyone).offset == 0
    assert listed(alone, LATEST_TIMESTAMP, current_leader_epoch=5, **anyone).offset == 3
    assert listed(alone, LATEST_TIMESTAMP, current_leader_epoch=4, **anyone).error == ErrorCode.FENCED_LEADER_EPOCH
    assert listed(alone, LATEST_TIMESTAMP, current_leader_epoch=6, **anyone).error == ErrorCode.UNKNOWN_LEADER_EPOCH
    nowhere = Alone(replicas=(2, 3), leader=2)
    assert listed(nowhere, LATEST_TIMESTAMP, **anyone).error == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("version", "error"), [(5, "OFFSET_NOT_AVAILABLE"), (4, "LEADER_NOT_AVAILABLE")])
def test_s19_a_new_leader_does_not_know_the_end_at_once(version: int, error: str) -> None:
    alone = Alone(isr=(1, 2), leo=10, high_watermark=6)
    assert listed(alone, LATEST_TIMESTAMP, version=version).error == ErrorCode[error]
    assert listed(alone, 10**9, version=version).error == ErrorCode[error]  # nor that there is no such record
    assert listed(alone, EARLIEST_TIMESTAMP, version=version).error == 0
    assert listed(alone, LATEST_TIMESTAMP, version=version, isolation_level=AS_REPLICA).offset == 10
    alone.fetch(2, 10)
    assert listed(alone, LATEST_TIMESTAMP, version=version).offset == 10


def test_s19_what_is_below_the_stale_high_watermark_is_reported() -> None:
    alone = Alone(leader=2, isr=(1, 2))
    alone.log.append_as_follower(tuple(Entry(at, 4, "r", 100 * at) for at in range(10)), 9)
    answer = FetchedPartition(high_watermark=6, log_start_offset=0)
    alone.follower.fetched(answer, alone.follower.fetch_position(), 0)
    alone.learn(leader=1, leader_epoch=6)
    assert listed(alone, 500) == ListedOffset(timestamp=500, offset=5, leader_epoch=4)
    assert listed(alone, 600).error == ErrorCode.OFFSET_NOT_AVAILABLE


# ---- KIP-392

LEADER = ReadReplica(1, "east", 10, 0)
WEST = (ReadReplica(2, "west", 9, 5), ReadReplica(3, "west", 10, 7), ReadReplica(4, "west", 10, 6))


def test_kip_392_without_a_rack_or_in_the_leaders_the_leader_serves() -> None:
    assert nearest_replica(None, LEADER, WEST) == nearest_replica("", LEADER, WEST) == 1
    assert nearest_replica("east", LEADER, (*WEST, ReadReplica(5, "east", 99, 0))) == 1
    assert nearest_replica("south", LEADER, WEST) == 1


def test_kip_392_in_another_rack_the_one_that_has_come_furthest() -> None:
    assert nearest_replica("west", LEADER, WEST) == 4
    assert nearest_replica("west", LEADER, WEST[:2]) == 3
    assert nearest_replica("west", LEADER, (ReadReplica(7, "west", 9, 5), WEST[0])) == 2


def racks(alone: Alone) -> None:
    for broker, rack in ((1, "east"), (2, "west"), (3, "west")):
        alone.brokers[broker] = BrokerStatus(broker + 1000, fenced=False, shutting_down=False, rack=rack)


def test_kip_392_only_members_of_the_isr_that_have_the_offset() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    racks(alone)
    assert preferred_read_replica("west", 5, alone.leader, alone.now_ms) == NO_REDIRECT  # nobody has fetched yet
    alone.fetch(2, 8, log_start=3)
    alone.fetch(3, 10)
    assert preferred_read_replica("west", 5, alone.leader, alone.now_ms) == 2  # 3 is no member yet
    assert preferred_read_replica("west", 8, alone.leader, alone.now_ms) == 2
    assert preferred_read_replica("west", 3, alone.leader, alone.now_ms) == 2
    assert preferred_read_replica("west", 9, alone.leader, alone.now_ms) == NO_REDIRECT
    assert preferred_read_replica("west", 2, alone.leader, alone.now_ms) == NO_REDIRECT
    assert preferred_read_replica("east", 5, alone.leader, alone.now_ms) == NO_REDIRECT
    assert preferred_read_replica(None, 5, alone.leader, alone.now_ms) == NO_REDIRECT

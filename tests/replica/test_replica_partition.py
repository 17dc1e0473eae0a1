"""Changes of role, metadata that can't be, and that a replica is all of its state."""

from __future__ import annotations

import copy
from dataclasses import replace
from uuid import UUID

import pytest

from tanist.events.replication import BecameFollower, BecameLeader
from tanist.lab.scenarios.replica import LAG_MS
from tanist.replica.effects import HighWatermarkAdvanced
from tanist.replica.follower import FetchedPartition
from tanist.replica.memory import Entry, MemoryLog
from tanist.replica.metadata import InvalidMetadata, ReplicaConfig
from tanist.wire.errors import ErrorCode
from tests.replica.replica_alone import Alone, state


def test_from_leader_to_follower_and_back_the_high_watermark_goes_along() -> None:
    alone = Alone(isr=(1, 2), leo=10)
    alone.fetch(2, 8)
    assert alone.learn(leader=2, leader_epoch=6) == [BecameFollower("foo-0", 2, 6)]
    assert alone.high_watermark == 8
    answer = FetchedPartition(high_watermark=9, log_start_offset=0)
    alone.follower.fetched(answer, alone.follower.fetch_position(), 0)
    assert alone.learn(leader=1, leader_epoch=7) == [BecameLeader("foo-0", 7, 10)]
    assert alone.high_watermark == 9


def test_a_new_leader_in_an_isr_of_one_commits_at_once() -> None:
    alone = Alone(leader=2, leo=10, high_watermark=4)
    assert alone.learn(leader=1, leader_epoch=6, isr=(1,)) == [BecameLeader("foo-0", 6, 10), HighWatermarkAdvanced(10)]


def test_leadership_that_was_lost_answers_nothing() -> None:
    alone = Alone(isr=(1,), leo=10)
    proposal = alone.propose(2)
    alone.learn(leader=2, leader_epoch=6)
    assert alone.answer(proposal, leader_epoch=6, partition_epoch=12) == []
    assert alone.answer(proposal, error=ErrorCode.UNKNOWN_SERVER_ERROR) == []
    assert alone.partition.alter_partition_failed(proposal, 0) == []


@pytest.mark.parametrize(
    "impossible",
    [
        {"leader": 2},  # two leaders in one epoch
        {"leader_epoch": 4},  # an epoch that goes back
        {"topic_id": UUID(int=99)},  # a topic of the same name
        {"partition": 1},
    ],
)
def test_impossible_metadata_raises_and_changes_nothing(impossible: dict[str, object]) -> None:
    alone = Alone(isr=(1, 2), leo=10)
    before = state(alone.partition, alone.log)
    with pytest.raises(InvalidMetadata):
        alone.learn(**impossible)
    assert state(alone.partition, alone.log) == before


def test_metadata_is_known_without_a_role() -> None:
    alone = Alone(replicas=(2, 3), leader=2, isr=(2,))
    assert alone.partition.role is None
    assert (alone.partition.leader_epoch, alone.partition.partition_epoch) == (5, 10)
    assert alone.learn(leader=3, partition_epoch=9, leader_epoch=9) == []


def test_config_reaches_every_role() -> None:
    for leader in (1, 2, 3):
        alone = Alone(leader=leader, replicas=(1, 2) if leader < 3 else (2, 3))
        config = ReplicaConfig(min_insync_replicas=2, replica_fetch_backoff_ms=7)
        alone.partition.set_config(config)
        assert alone.partition.config == config
        alone.learn(leader=1 if leader != 1 else 2, leader_epoch=6, replicas=(1, 2))
        assert alone.partition.config == config


def test_config_must_make_sense() -> None:
    for wrong in ({"min_insync_replicas": 0}, {"replica_lag_time_max_ms": -1}, {"replica_fetch_backoff_ms": -1}):
        with pytest.raises(ValueError):
            ReplicaConfig(**wrong)  # type: ignore[arg-type]


def play(alone: Alone) -> list[object]:
    """Something to do for a replica in any role; what came of it."""
    seen: list[object] = []
    if alone.partition.leader is not None:
        seen += alone.append(2)
        seen.append(alone.fetch(2, alone.log.log_end_offset))
        seen.append(alone.fetch(3, alone.log.log_end_offset))
        alone.now_ms += LAG_MS + 1
        seen += alone.append(1)
        seen += alone.leader.check_lag(alone.now_ms)
    elif alone.partition.follower is not None:
        position = alone.follower.fetch_position()
        records = (Entry(position.offset, 5, "a"),)
        answer = FetchedPartition(high_watermark=position.offset, log_start_offset=0, records=records)
        seen += alone.follower.fetched(answer, position, alone.now_ms)
        error = FetchedPartition(error=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        seen += alone.follower.fetched(error, alone.follower.fetch_position(), alone.now_ms)
    seen += alone.learn(leader=2, leader_epoch=8)
    return seen


@pytest.mark.parametrize("leader", [1, 3, 4])
def test_the_same_replica_decides_the_same(leader: int) -> None:
    """Nothing of it is anywhere else: the simulator and the model checker rely on that."""
    replicas = (1, 2, 3) if leader < 4 else (2, 3, 4)
    alone = Alone(leader=leader, replicas=replicas, isr=(2, leader), leo=10)
    if leader == 1:
        alone.propose(3)
    other = copy.deepcopy(alone)
    before = state(alone.partition, alone.log)
    assert state(other.partition, other.log) == before
    seen = play(other)
    assert state(alone.partition, alone.log) == before
    assert play(alone) == seen
    assert state(other.partition, other.log) == state(alone.partition, alone.log)


def test_memory_log_refuses_what_does_not_fit() -> None:
    log = MemoryLog([Entry(0, 0, "a")])
    assert log.append_as_follower((Entry(5, 0, "b"),), 9).error == ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(ValueError):
        MemoryLog([Entry(3, 0, "a")])
    with pytest.raises(IndexError):
        log.read(2, 2)
    with pytest.raises(ValueError):
        log.advance_log_start_offset(2)
    with pytest.raises(ValueError):
        log.truncate_fully_and_start_at(-1)


def test_memory_log_truncated_before_its_start_starts_there() -> None:
    log = MemoryLog([Entry(at, 0, "a") for at in range(5, 9)], log_start_offset=5)
    log.truncate_to(3)
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (3, 3, -1)


def test_metadata_of_a_leader_includes_what_the_controller_answered() -> None:
    alone = Alone(isr=(1,), leo=10)
    proposal = alone.propose(2)
    alone.answer(proposal)
    known = alone.partition.metadata
    assert known is not None
    assert (known.isr, known.partition_epoch) == ((1, 2), 11)
    assert alone.partition.apply_metadata(replace(known, partition_epoch=10, isr=(1,)), 0) == []
    assert alone.leader.isr == (1, 2)

"""The states of share partitions (KIP-932): epochs that fence, snapshots, updates, and what a replay makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tanist.coordinator.share.runs import RecordState, StateBatch
from tanist.coordinator.share.state_shard import Outcome, SharePartitionId, ShareStateShard, StateAppend
from tanist.wire.coordinator_records import encode_key, encode_value
from tanist.wire.errors import ErrorCode
from tanist.wire.share_state_records import decode_share_state_record
from tests.coordinator.group_rig import StandingTopics

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState


class StateRig:
    """One shard, and its log."""

    def __init__(self, updates_per_snapshot: int = 500) -> None:
        self.topics = StandingTopics()
        self.topic_id = self.topics.create("t", 2)
        self._updates = updates_per_snapshot
        self.shard = ShareStateShard(self.topics, updates_per_snapshot)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.kinds: list[str] = []

    def where(self, partition: int = 0, group: str = "g") -> SharePartitionId:
        return SharePartitionId(group, self.topic_id, partition)

    def done(self, effects: Sequence[Any], error: int = 0) -> Outcome:
        """Commit, or refuse, what was decided; the answer."""
        (effect,) = effects
        if isinstance(effect, StateAppend):
            for key, value in effect.records if not error else ():
                self.kinds.append("tombstone" if value is None else type(value).__name__)
                self.log.append((encode_key(key), None if value is None else encode_value(value)))
            (effect,) = self.shard.written(effect, error, 0)
        outcome: Outcome = effect.response
        return outcome

    def initialize(self, epoch: int = 1, start: int = -1, partition: int = 0) -> Outcome:
        return self.done(self.shard.initialize(self.where(partition), epoch, start, "x", 5))

    def read(self, leader_epoch: int = 3, partition: int = 0) -> Outcome:
        return self.done(self.shard.read(self.where(partition), leader_epoch, "x", 5))

    def write(self, *batches: StateBatch, epochs: tuple[int, int] = (1, 3), start: int = 0, error: int = 0) -> Outcome:
        return self.done(self.shard.write(self.where(), epochs, start, 0, batches, "x", 5), error)

    def replayed(self) -> ShareStateShard:
        shard = ShareStateShard(self.topics, self._updates)
        for key, value in self.log:
            decoded = decode_share_state_record(key, value)
            assert decoded is not None
            shard.replay(*decoded)
        return shard


def test_a_state_is_made_read_and_written_and_a_replay_makes_the_same() -> None:
    rig = StateRig()
    assert rig.read().error == ErrorCode.INVALID_REQUEST
    assert rig.write().error == ErrorCode.INVALID_REQUEST
    assert rig.initialize().error == 0
    read = rig.read()
    assert read.state is not None
    assert (read.state.start_offset, read.state.state_epoch, read.state.batches) == (-1, 1, ())
    assert rig.write(StateBatch(0, 4, ACKNOWLEDGED, 1), StateBatch(7, 7, AVAILABLE, 2)).error == 0
    assert rig.write(StateBatch(5, 6, ACKNOWLEDGED, 1), start=2).error == 0
    state = rig.shard.states[rig.where()]
    assert state.batches == (StateBatch(2, 6, ACKNOWLEDGED, 1), StateBatch(7, 7, AVAILABLE, 2))
    assert rig.kinds == ["ShareSnapshotValue", "ShareUpdateValue", "ShareUpdateValue", "ShareUpdateValue"]
    assert rig.replayed().states == rig.shard.states


def test_a_write_that_comes_late_takes_nothing_back() -> None:
    """The leader has asked again on another connection, and gone on; then what it had asked first arrives."""
    rig = StateRig()
    rig.initialize()
    rig.read()
    for batch, start in ((StateBatch(0, 4, ACKNOWLEDGED, 1), 0), (StateBatch(9, 9, AVAILABLE, 2), 5)):
        assert rig.done(rig.shard.write(rig.where(), (1, 3), start, 7 - start, (batch,), "x", 5)).error == 0
    before = rig.shard.states[rig.where()]
    late = rig.shard.write(rig.where(), (1, 3), 0, 7, (StateBatch(0, 4, ACKNOWLEDGED, 1),), "x", 5)
    assert rig.done(late).error == 0
    after = rig.shard.states[rig.where()]
    assert (after.start_offset, after.delivery_complete_count, after.batches) == (
        5,
        2,
        (StateBatch(9, 9, AVAILABLE, 2),),
    )
    assert after.batches == before.batches
    assert rig.replayed().states == rig.shard.states


def test_a_state_that_is_there_is_not_made_again() -> None:
    """A group's coordinator asks again when it has waited for long, and the first question may arrive as well."""
    for epoch in (1, 4):
        rig = StateRig()
        rig.initialize()
        rig.read()
        rig.write(StateBatch(0, 4, ACKNOWLEDGED, 1), start=5)
        before = rig.shard.states[rig.where()]
        assert rig.initialize(epoch).error == 0
        assert rig.shard.states[rig.where()] == before
        assert rig.initialize(epoch, 0).error == 0, "an operator wants it"
        assert rig.shard.states[rig.where()].start_offset == 0
        assert rig.replayed().states == rig.shard.states


def test_an_older_leader_and_an_older_state_are_fenced() -> None:
    rig = StateRig()
    rig.initialize()
    rig.read(5)
    assert rig.read(4).error == ErrorCode.FENCED_LEADER_EPOCH
    assert rig.write(epochs=(1, 4)).error == ErrorCode.FENCED_LEADER_EPOCH
    assert rig.write(epochs=(0, 5)).error == ErrorCode.FENCED_STATE_EPOCH
    assert rig.write(epochs=(1, 5)).error == 0
    assert rig.initialize(0).error == ErrorCode.FENCED_STATE_EPOCH
    assert rig.initialize(2, 40).error == 0
    assert rig.write(epochs=(1, 5)).error == ErrorCode.FENCED_STATE_EPOCH
    state = rig.read(-1).state
    assert state is not None
    assert (state.start_offset, state.state_epoch, state.snapshot_epoch) == (40, 2, 1)
    assert rig.replayed().states == rig.shard.states


def test_a_snapshot_follows_after_so_many_updates() -> None:
    rig = StateRig(updates_per_snapshot=2)
    rig.initialize()
    for offset in range(5):
        rig.write(StateBatch(offset, offset, ACKNOWLEDGED, 1), epochs=(1, -1))
    assert [kind == "ShareSnapshotValue" for kind in rig.kinds] == [True, False, False, True, False, False]
    assert rig.shard.states[rig.where()].snapshot_epoch == 1
    assert rig.replayed().states == rig.shard.states
    before, log_end = dict(rig.shard.states), len(rig.log)
    assert rig.done(rig.shard.snapshot_all("x", 9)).error == 0
    del rig.log[:log_end]
    after = rig.replayed().states[rig.where()]
    assert (after.batches, after.start_offset) == (before[rig.where()].batches, before[rig.where()].start_offset)


def test_what_the_log_refuses_was_never_decided() -> None:
    rig = StateRig()
    rig.initialize()
    rig.write(StateBatch(0, 4, AVAILABLE, 1), epochs=(1, -1))
    before = dict(rig.shard.states)
    refused = rig.write(StateBatch(0, 4, ACKNOWLEDGED, 1), epochs=(1, -1), error=int(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert refused.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.shard.states == before
    assert rig.write(epochs=(1, -1), error=int(ErrorCode.REQUEST_TIMED_OUT)).error != 0
    assert rig.shard.states != before, "it may be committed all the same"


def test_states_go_with_their_topics_and_by_request() -> None:
    rig = StateRig()
    rig.initialize()
    rig.initialize(partition=1)
    assert rig.initialize(partition=2).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert rig.done(rig.shard.delete(rig.where(1), "x")).error == 0
    assert list(rig.shard.states) == [rig.where()]
    summary = rig.done(rig.shard.summary(rig.where(1), "x"))
    assert summary.state is not None
    assert summary.state.start_offset == -1
    rig.topics.delete("t")
    (append,) = rig.shard.forget_missing()
    rig.log += [(encode_key(key), None) for key, _ in append.records]
    assert (rig.shard.states, rig.replayed().states) == ({}, {})
    assert rig.done(rig.shard.summary(rig.where(), "x")).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


BATCHES = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length, state, count),
    st.integers(0, 30), st.integers(0, 6), st.sampled_from((AVAILABLE, ACKNOWLEDGED, ARCHIVED)), st.integers(1, 4),
)  # fmt: skip


@given(st.lists(st.tuples(st.lists(BATCHES, max_size=3), st.integers(0, 12), st.booleans()), max_size=12))
def test_live_and_replayed_states_are_equal(writes: list[tuple[list[StateBatch], int, bool]]) -> None:
    """Whatever is written, and however often: the later state of a record counts, and below the start is nothing."""
    rig = StateRig(updates_per_snapshot=3)
    rig.initialize(1, 0)
    best: dict[int, tuple[int, int]] = {}
    start = 0
    for batches, forward, twice in writes:
        start = max(start, forward)
        for _ in range(1 + twice):
            assert rig.write(*batches, epochs=(1, -1), start=start).error == 0
        for batch in batches:
            for offset in range(batch.first, batch.last + 1):
                best[offset] = max(best.get(offset, (0, 0)), (batch.delivery_count, batch.state))
        best = {offset: each for offset, each in best.items() if offset >= start}
    state = rig.shard.states[rig.where()]
    stored = {
        offset: (batch.delivery_count, int(batch.state))
        for batch in state.batches
        for offset in range(batch.first, batch.last + 1)
    }
    assert stored == best
    assert rig.replayed().states == rig.shard.states

"""Leading: what a new leader writes, what is committed, appends (rules 142-144, 149)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.lab.scenarios.quorum_node import ME, WALL_MS, directory, fetch, log_of, vote
from tanist.ports import FileRange
from tanist.quorum import (
    BatchTooLarge,
    BecameQuorumLeader,
    ElectionState,
    HighWatermark,
    LogEnd,
    NotLeader,
    RaftConfig,
    Reply,
    SnapshotId,
    SteppedDown,
    SyncLog,
)
from tanist.quorum.storage import batches as quorum_batches
from tanist.wire.control import LeaderChangeMessage, decode_control_batch
from tests.quorum.quorum_kit import SELF, Kit, elected, fetch_snapshot, leader


class TestLeaderChange:
    """Rule 143."""

    def test_a_leader_begins_with_a_record_of_its_epoch(self) -> None:
        kit = leader(5, log=log_of([(2, 3)]))
        assert (kit.log.end_offset, kit.log.last_epoch) == (4, 5)
        chunk = kit.log.read(3, 1000)
        assert chunk is not None
        assert not isinstance(chunk, FileRange)
        header, (record,) = decode_control_batch(chunk)
        assert (header.base_offset, header.leader_epoch, header.base_timestamp) == (3, 5, WALL_MS + kit.now_ms)
        message = record.message
        assert isinstance(message, LeaderChangeMessage)
        assert (message.leader_id, message.version) == (ME, 0)
        assert [voter.voter_id for voter in message.voters] == [0, 1, 2]
        assert {voter.voter_id for voter in message.granting_voters} >= {0, 1}

    def test_the_end_of_an_older_epoch_is_known_from_then_on(self) -> None:
        kit = leader(5, log=log_of([(2, 3)]))
        assert kit.log.end_of_epoch(4) == LogEnd(2, 3)


class TestCommit:
    """Rules 142 and 144."""

    def test_older_records_are_committed_by_one_of_the_leaders_own(self) -> None:
        kit = leader(5, log=log_of([(2, 3)]))
        kit.ask(fetch(5, 1, 3, 2, max_wait_ms=0))
        kit.ask(fetch(5, 2, 3, 2, max_wait_ms=0))
        assert kit.node.high_watermark == 0
        effects = kit.receive(fetch(5, 1, 4, 5))
        assert effects[0] == HighWatermark(4)

    def test_the_leaders_own_records_count_when_they_are_durable(self) -> None:
        kit = Kit((0, 1), stored=ElectionState(5, None, SELF))
        kit.auto_sync = False
        kit.become_leader()
        kit.ask(fetch(5, 1, 1, 5, max_wait_ms=0))
        assert kit.node.high_watermark == 0
        effects = kit.take(kit.node.log_synced(1, kit.now_ms))
        assert HighWatermark(1) in effects

    def test_two_followers_make_a_majority_without_it(self) -> None:
        kit = Kit((0, 1, 2), stored=ElectionState(5, None, SELF))
        kit.auto_sync = False
        kit.become_leader()
        kit.ask(fetch(5, 1, 1, 5, max_wait_ms=0))
        assert kit.node.high_watermark == 0
        kit.ask(fetch(5, 2, 1, 5, max_wait_ms=0))
        assert kit.node.high_watermark == 1

    def test_observers_and_other_directories_do_not_count(self) -> None:
        kit = leader(5)
        kit.ask(fetch(5, 9, 1, 5, max_wait_ms=0))
        kit.ask(fetch(5, 1, 1, 5, max_wait_ms=0, from_directory=directory(77)))
        assert kit.node.high_watermark == 0
        kit.ask(fetch(5, 1, 1, 5, max_wait_ms=0))
        assert kit.node.high_watermark == 1

    def test_a_fetch_that_does_not_match_counts_for_nothing(self) -> None:
        kit = leader(5, log=log_of([(2, 3)]))
        for offset, epoch in ((4, 4), (9, 5), (3, 1)):
            kit.ask(fetch(5, 1, offset, epoch, max_wait_ms=0))
            kit.ask(fetch(5, 2, offset, epoch, max_wait_ms=0))
        assert kit.node.high_watermark == 0
        assert all(voter.log_end_offset == -1 for voter in kit.node.describe(0).voters if voter.replica_id != ME)

    def test_it_never_goes_back(self) -> None:
        kit = elected()
        kit.take(kit.node.append([b"a", b"b"], kit.now_ms, WALL_MS).effects)
        kit.commit_all()
        assert kit.node.high_watermark == 3
        kit.ask(fetch(5, 1, 0, 0, max_wait_ms=0))
        kit.ask(fetch(5, 2, 0, 0, max_wait_ms=0))
        assert kit.node.high_watermark == 3

    def test_one_sync_at_a_time_covers_all_appends(self) -> None:
        kit = elected()
        kit.auto_sync = False
        first = kit.node.append([b"a"], kit.now_ms, WALL_MS)
        second = kit.node.append([b"b"], kit.now_ms, WALL_MS)
        third = kit.node.append([b"c"], kit.now_ms, WALL_MS)
        assert SyncLog() in first.effects
        assert not [e for e in second.effects + third.effects if isinstance(e, SyncLog)]
        assert kit.node.log_synced(2, kit.now_ms) == [SyncLog()]
        assert kit.node.durable_end == 2
        assert kit.node.log_synced(4, kit.now_ms) == []
        assert kit.node.durable_end == 4


class TestAnnouncement:
    """Rule 149."""

    def test_elected_is_said_when_what_is_older_is_committed(self) -> None:
        kit = leader(5, log=log_of([(2, 3)]))
        assert not kit.of(BecameQuorumLeader)
        with pytest.raises(NotLeader):
            kit.node.append([b"too early"], kit.now_ms, WALL_MS)
        effects = kit.receive(fetch(5, 1, 4, 5))
        assert effects[:2] == [HighWatermark(4), BecameQuorumLeader(5, 3)]
        assert next(kit.node.read_committed(0)).values == [b"2@0", b"2@1", b"2@2"]

    def test_who_was_elected_is_reported_to_step_down(self) -> None:
        kit = elected()
        effects = kit.receive(vote(6, 1, 5, 1))
        assert SteppedDown(5) in effects
        with pytest.raises(NotLeader):
            kit.node.append([b"x"], kit.now_ms, WALL_MS)

    def test_who_was_not_is_not(self) -> None:
        kit = leader()
        assert not [e for e in kit.receive(vote(6, 1, 5, 1)) if isinstance(e, SteppedDown)]


class TestAppend:
    def test_offsets_and_values(self) -> None:
        kit = elected()
        outcome = kit.node.append([b"a", b"b"], kit.now_ms, WALL_MS)
        assert (outcome.first_offset, outcome.last_offset) == (1, 2)
        (batch,) = kit.log.read_batches(1, 3)
        assert (batch.offset, batch.epoch, batch.timestamp, batch.values) == (1, 5, WALL_MS, [b"a", b"b"])

    def test_what_cannot_be_appended_changes_nothing(self) -> None:
        kit = elected(config=RaftConfig(append_max_bytes=200))
        with pytest.raises(BatchTooLarge):
            kit.node.append([bytes(300)], kit.now_ms, WALL_MS)
        with pytest.raises(ValueError, match="nothing"):
            kit.node.append([], kit.now_ms, WALL_MS)
        assert kit.log.end_offset == 1

    def test_what_is_too_large_for_one_batch_goes_into_several(self) -> None:
        kit = elected(config=RaftConfig(append_max_bytes=200))
        values = [b"%030d" % n for n in range(10)]
        with pytest.raises(BatchTooLarge):
            kit.node.append(values, kit.now_ms, WALL_MS, atomic=True)
        outcome = kit.node.append(values, kit.now_ms, WALL_MS)
        assert (outcome.first_offset, outcome.last_offset) == (1, 10)
        batches = list(kit.log.read_batches(1, 11))
        assert len(batches) > 2
        assert [v for batch in batches for v in batch.values] == values
        chunk = kit.log.read(1, 10**6)
        assert isinstance(chunk, bytes)
        assert all(header.size_bytes <= 200 for _, header in quorum_batches.read_headers(memoryview(chunk)))

    @given(st.lists(st.binary(max_size=90), min_size=1, max_size=30), st.integers(161, 400))
    def test_runs_are_of_the_size_that_is_asked_for(self, values: list[bytes], max_bytes: int) -> None:
        runs = list(quorum_batches.cut_to_size(values, max_bytes))
        assert [value for run in runs for value in run] == values
        for run in runs:
            assert len(quorum_batches.encode_values(run, base_offset=0, epoch=1, timestamp=WALL_MS)) <= max_bytes

    def test_an_only_voter_commits_by_its_own_sync(self) -> None:
        kit = Kit((ME,))
        outcome = kit.node.append([b"a"], 0, WALL_MS)
        assert kit.node.high_watermark == 1
        kit.take(outcome.effects)
        assert kit.node.high_watermark == 2


def test_a_reply_is_given_for_every_request() -> None:
    """Whatever comes, and to any node: an answer, or a fetch that waits and is answered in the end."""
    for kit in (elected(), Kit(stored=ElectionState(5, 1)), Kit(stored=ElectionState(5, ME))):
        requests = [vote(5, 1, 0, 0), fetch(5, 1, 0, 0), fetch_snapshot(5, 1, SnapshotId(1, 1), 0)]
        for request in requests:
            effects = kit.receive(request, source="one")
            effects += kit.pass_time(600)
            assert len([e for e in effects if isinstance(e, Reply) and e.source == "one"]) == 1

"""Leading and following: rules 142-149, long polls, what is durable and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.ports import FileRange
from tanist.quorum import (
    BatchTooLarge,
    Effect,
    Elected,
    ElectionState,
    HighWatermark,
    LogEnd,
    MemoryLog,
    MetadataTruncated,
    NotLeader,
    QuorumInconsistent,
    RaftConfig,
    ReplicaKey,
    Reply,
    SnapshotId,
    SnapshotInstalled,
    SteppedDown,
    SyncLog,
    fetch_purgatory,
)
from tanist.quorum import batches as quorum_batches
from tanist.quorum.progress import MAX_OBSERVERS, OBSERVER_SESSION_MS
from tanist.wire.control import LeaderChangeMessage, decode_control_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import METADATA_TOPIC, ZERO_UUID
from tanist.wire.messages import describe_quorum_request
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from tanist.wire.messages.vote_request import VoteRequest
from tests.quorum.quorum_kit import (
    ME,
    WALL_MS,
    Kit,
    error_of,
    fetch,
    fetch_snapshot,
    fetched,
    log_of,
    part_of,
    snapshot_part,
    vote,
)
from tests.quorum.quorum_network import directory

SELF = ReplicaKey(ME, directory(ME))


def leader(epoch: int = 5, *, log: MemoryLog | None = None, **options: Any) -> Kit:
    kit = Kit(stored=ElectionState(epoch, None, SELF), log=log, **options)
    kit.become_leader()
    return kit


def elected(epoch: int = 5, **options: Any) -> Kit:
    kit = leader(epoch, **options)
    kit.commit_all()
    return kit


def records_of(response: Any) -> list[bytes]:
    view = memoryview(part_of(response).records)
    found = [
        quorum_batches.decode_values(view[at : at + header.size_bytes], header)
        for at, header in quorum_batches.read_headers(view)
    ]
    return [value for batch in found for value in batch.values]


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
        assert not kit.of(Elected)
        with pytest.raises(NotLeader):
            kit.node.append([b"too early"], kit.now_ms, WALL_MS)
        effects = kit.receive(fetch(5, 1, 4, 5))
        assert effects[:2] == [HighWatermark(4), Elected(5, 3)]
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


class TestFetchAnswer:
    """Rules 145 and 146; more of 146 in scenarios.yaml."""

    def test_checks_in_order(self) -> None:
        kit = elected()
        assert error_of(kit.ask(fetch(5, 1, 0, 0, cluster_id="another"))) == "INCONSISTENT_CLUSTER_ID"
        assert error_of(kit.ask(fetch(5, 1, 0, 0, topic_id=directory(1)))) == "INVALID_REQUEST"
        assert error_of(kit.ask(fetch(4, 1, -1, 0))) == "INVALID_REQUEST"
        assert error_of(kit.ask(fetch(4, 1, 0, -1))) == "INVALID_REQUEST"
        assert error_of(kit.ask(fetch(4, 1, 0, 5))) == "INVALID_REQUEST"
        assert error_of(kit.ask(fetch(5, 1, 0, 0, max_wait_ms=-1))) == "INVALID_REQUEST"
        assert error_of(kit.ask(fetch(4, 1, 0, 0))) == "FENCED_LEADER_EPOCH"
        assert error_of(kit.ask(fetch(6, 1, 0, 0))) == "UNKNOWN_LEADER_EPOCH"
        assert error_of(kit.ask(fetch(5, ME, 0, 0))) == "INVALID_REQUEST"
        assert error_of(kit.ask(fetch(5, 1, 0, 0))) == "NONE"

    def test_who_does_not_lead_says_who_does(self) -> None:
        kit = Kit(stored=ElectionState(5, 2))
        response = kit.ask(fetch(5, 1, 0, 0))
        part = part_of(response)
        assert error_of(response) == "NOT_LEADER_OR_FOLLOWER"
        assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (2, 5)
        assert [(e.node_id, e.host, e.port) for e in response.node_endpoints] == [(2, "node2", 9002)]
        assert part.high_watermark == -1

    def test_a_leader_that_shuts_down(self) -> None:
        kit = Kit((ME,))
        kit.take(kit.node.shutdown(0))
        assert kit.node.has_handed_over
        assert error_of(kit.ask(fetch(1, 9, 0, 0))) == "BROKER_NOT_AVAILABLE"
        kit = elected()
        kit.take(kit.node.shutdown(kit.now_ms))
        assert error_of(kit.ask(fetch(5, 1, 0, 0))) == "NOT_LEADER_OR_FOLLOWER"

    def test_topics_by_name_before_version_13_and_replica_ids_before_15(self) -> None:
        kit = leader()
        request = fetch(5, -1, 1, 5, topic_id=ZERO_UUID, max_wait_ms=0)
        request.replica_id = 1
        assert error_of(kit.ask(request, api_version=12)) == "NONE"
        kit.take(kit.node.log_synced(1, kit.now_ms))
        assert error_of(kit.ask(request, api_version=17)) == "INVALID_REQUEST"

    def test_records_come_at_once_and_as_many_as_fit(self) -> None:
        kit = elected()
        for n in range(10):
            kit.take(kit.node.append([b"%d" % n], kit.now_ms, WALL_MS).effects)
        assert records_of(kit.ask(fetch(5, 1, 1, 5))) == [b"%d" % n for n in range(10)]
        assert records_of(kit.ask(fetch(5, 1, 8, 5))) == [b"7", b"8", b"9"]
        assert records_of(kit.ask(fetch(5, 1, 1, 5, max_bytes=2**20))) == [b"%d" % n for n in range(10)]
        small = fetch(5, 1, 1, 5)
        small.max_bytes = 1
        assert records_of(kit.ask(small)) == [b"0"], "one batch, however large"

    def test_an_empty_follower_is_given_the_snapshot_but_not_the_bootstrap(self) -> None:
        kit = elected(log=log_of([(2, 3)], SnapshotId(3, 2)))
        part = part_of(kit.ask(fetch(5, 1, 0, 0)))
        assert (part.snapshot_id.end_offset, part.snapshot_id.epoch) == (3, 2)
        assert not part.records
        log = log_of([(2, 3)])
        log.create_snapshot(SnapshotId(0, 0), [b"bootstrap"], wall_ms=WALL_MS)
        part = part_of(elected(log=log).ask(fetch(5, 1, 0, 0)))
        assert part.snapshot_id.end_offset == -1
        assert part.records

    @pytest.mark.parametrize(("offset", "epoch", "snapshot"), [(2, 2, True), (3, 1, True), (5, 1, True), (3, 2, False)])
    def test_what_lies_before_the_log_is_in_the_snapshot(self, offset: int, epoch: int, snapshot: bool) -> None:
        kit = elected(log=log_of([(2, 3), (3, 3)], SnapshotId(3, 2)))
        part = part_of(kit.ask(fetch(5, 1, offset, epoch)))
        assert (part.snapshot_id.end_offset == 3) == snapshot
        assert bool(part.records) != snapshot

    def test_an_unexpected_request_is_refused(self) -> None:
        with pytest.raises(TypeError):
            leader().node.receive("x", object(), 0, api_version=0)  # type: ignore[arg-type]


class TestLongPoll:
    def hold(self, kit: Kit, source: object, from_id: int, **options: Any) -> None:
        effects = kit.receive(fetch(5, from_id, kit.log.end_offset, kit.log.last_epoch, **options), source=source)
        assert kit.reply_to(effects, source) is None

    def test_a_fetch_at_the_end_waits_for_an_append(self) -> None:
        kit = elected()
        self.hold(kit, "a", 1)
        effects = kit.take(kit.node.append([b"x"], kit.now_ms, WALL_MS).effects)
        assert records_of(kit.reply_to(effects, "a")) == [b"x"]

    def test_or_for_the_high_watermark_if_it_says_what_it_knows(self) -> None:
        """KIP-1166."""
        kit = elected()
        kit.take(kit.node.append([b"x"], kit.now_ms, WALL_MS).effects)
        self.hold(kit, "new", 9, high_watermark=1)
        self.hold(kit, "old", 10)
        effects = kit.receive(fetch(5, 1, 2, 5))
        assert part_of(kit.reply_to(effects, "new")).high_watermark == 2
        assert kit.reply_to(effects, "old") is None
        assert part_of(kit.ask(fetch(5, 9, 2, 5, high_watermark=1))).high_watermark == 2
        self.hold(kit, "again", 9, high_watermark=2)

    def test_or_until_its_time_is_up(self) -> None:
        kit = elected()
        self.hold(kit, "a", 1, max_wait_ms=100)
        assert kit.reply_to(kit.pass_time(99), "a") is None
        assert part_of(kit.reply_to(kit.pass_time(1), "a")).error_code == 0

    def test_or_until_leadership_ends(self) -> None:
        events: tuple[Callable[[Kit], list[Effect]], ...] = (
            lambda k: k.receive(vote(6, 2, 5, 1)),
            lambda k: k.take(k.node.resign(k.now_ms)),
        )
        for event in events:
            kit = elected()
            self.hold(kit, "a", 1)
            response = kit.reply_to(event(kit), "a")
            assert response is not None
            assert error_of(response) in ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH")

    def test_waiting_is_no_sign_of_life(self) -> None:
        kit = elected()
        self.hold(kit, "a", 1, max_wait_ms=10_000)
        self.hold(kit, "b", 2, max_wait_ms=10_000)
        kit.pass_time(3000)
        assert kit.node.role == "Resigned"

    def test_a_replica_waits_once(self) -> None:
        kit = elected()
        self.hold(kit, "a", 1)
        effects = kit.receive(fetch(5, 1, 1, 5), source="b")
        assert kit.reply_to(effects, "a") is not None
        assert kit.reply_to(effects, "b") is None

    def test_there_is_a_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fetch_purgatory, "MAX_HELD", 2)
        kit = elected()
        self.hold(kit, "a", 1)
        self.hold(kit, "b", 9)
        assert part_of(kit.ask(fetch(5, 10, 1, 5))).error_code == 0
        self.hold(kit, "c", 9)

    def test_those_without_an_id_are_reported_apart_by_their_connection(self) -> None:
        kit = elected()
        self.hold(kit, "a", -1)
        self.hold(kit, "b", -1)
        effects = kit.take(kit.node.append([b"x"], kit.now_ms, WALL_MS).effects)
        assert kit.reply_to(effects, "a")
        assert kit.reply_to(effects, "b")


class TestFollower:
    def follow(self, **options: Any) -> Kit:
        kit = Kit(stored=ElectionState(5, 1), **options)
        assert kit.node.role == "Follower"
        return kit

    def batch(self, kit: Kit, *values: bytes, epoch: int = 5, offset: int | None = None) -> bytearray:
        base = kit.log.end_offset if offset is None else offset
        return quorum_batches.encode_values(values, base_offset=base, epoch=epoch, timestamp=WALL_MS)

    def test_asks_for_what_follows_its_log(self) -> None:
        kit = self.follow(log=log_of([(2, 3)]))
        send = kit.last_sent(FetchRequest)
        part = part_of(send.request)
        assert send.to == 1
        assert (part.current_leader_epoch, part.fetch_offset, part.last_fetched_epoch) == (5, 3, 2)
        assert (part.high_watermark, part.replica_directory_id) == (0, directory(ME))
        request: Any = send.request
        assert (request.max_wait_ms, request.replica_state.replica_id) == (500, ME)

    def test_appends_learns_what_is_committed_and_asks_on(self) -> None:
        kit = self.follow()
        records = self.batch(kit, b"a", b"b")
        effects = kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, high_watermark=1, records=records))
        assert HighWatermark(1) in effects
        assert (kit.log.end_offset, kit.log.last_epoch) == (2, 5)
        part = part_of(kit.last_sent(FetchRequest).request)
        assert (part.fetch_offset, part.last_fetched_epoch, part.high_watermark) == (2, 5, 1)

    def test_a_voter_asks_for_more_when_what_it_has_is_durable(self) -> None:
        kit = self.follow()
        kit.auto_sync = False
        count = len(kit.sent(FetchRequest))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, records=self.batch(kit, b"a")))
        assert len(kit.sent(FetchRequest)) == count
        kit.take(kit.node.log_synced(1, 0))
        assert part_of(kit.last_sent(FetchRequest).request).fetch_offset == 1

    def test_an_observer_does_not_wait_for_its_disk(self) -> None:
        kit = Kit((1, 2), node_id=ME, stored=ElectionState(5, 1))
        kit.auto_sync = False
        effects = kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, records=self.batch(kit, b"a")))
        assert SyncLog() not in effects
        assert part_of(kit.last_sent(FetchRequest).request).fetch_offset == 1

    def test_the_watermark_is_no_further_than_its_log_and_never_back(self) -> None:
        kit = self.follow()
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, high_watermark=9, records=self.batch(kit, b"a")))
        assert kit.node.high_watermark == 1
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, high_watermark=0))
        assert kit.node.high_watermark == 1

    @pytest.mark.parametrize(
        ("values", "epoch", "offset"), [((b"a",), 6, 0), ((b"a",), 5, 1), ((b"a",), 5, 7)], ids=["epoch", "gap", "far"]
    )
    def test_what_does_not_follow_is_refused_whole(self, values: tuple[bytes], epoch: int, offset: int) -> None:
        kit = self.follow()
        records = self.batch(kit, *values, epoch=epoch, offset=offset)
        before = len(kit.sent(FetchRequest))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, high_watermark=5, records=records))
        assert (kit.log.end_offset, kit.node.high_watermark) == (0, 0)
        assert len(kit.sent(FetchRequest)) == before, "not at once"
        kit.pass_time(kit.config.retry_backoff_ms)
        assert len(kit.sent(FetchRequest)) == before + 1

    def test_a_damaged_batch_is_refused(self) -> None:
        kit = self.follow()
        records = self.batch(kit, b"a")
        records[-1] ^= 1
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, records=records))
        assert kit.log.end_offset == 0

    def test_a_batch_that_is_cut_off_is_left_out(self) -> None:
        kit = self.follow()
        records = self.batch(kit, b"a") + self.batch(kit, b"b", offset=1)[:-1]
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, records=records))
        assert kit.log.end_offset == 1

    def test_an_answer_of_another_time_is_dropped(self) -> None:
        kit = self.follow()
        old = kit.last_sent(FetchRequest)
        records = self.batch(kit, b"a")
        kit.receive(vote(6, 2, 5, 9))
        kit.respond(old, fetched(1, 5, records=records))
        assert kit.log.end_offset == 0
        assert kit.node.epoch == 6

    def test_a_leader_of_a_later_epoch_is_followed(self) -> None:
        kit = self.follow()
        kit.respond(kit.last_sent(FetchRequest), fetched(2, 7, error=ErrorCode.FENCED_LEADER_EPOCH))
        assert (kit.node.role, kit.node.leader_id, kit.node.epoch) == ("Follower", 2, 7)
        assert kit.last_sent(FetchRequest).to == 2

    def test_a_voter_without_a_leader_asks_around(self) -> None:
        kit = Kit(stored=ElectionState(5))
        assert kit.last_sent(FetchRequest).to in (1, 2)
        kit.respond(kit.last_sent(FetchRequest), fetched(2, 6, error=ErrorCode.FENCED_LEADER_EPOCH))
        assert (kit.node.role, kit.node.leader_id) == ("Follower", 2)

    def test_a_leader_found_by_asking_around_may_send_records_with_it(self) -> None:
        kit = Kit((1, 2), node_id=ME, stored=ElectionState(5))
        send = kit.last_sent(FetchRequest)
        kit.respond(send, fetched(send.to, 5, high_watermark=1, records=self.batch(kit, b"a")))
        assert (kit.node.leader_id, kit.log.end_offset, kit.node.high_watermark) == (send.to, 1, 1)

    def test_an_observer_that_cannot_reach_the_leader_asks_others(self) -> None:
        kit = Kit((1, 2), node_id=ME, stored=ElectionState(5, 1))
        kit.respond(kit.last_sent(FetchRequest), None)
        assert kit.last_sent(FetchRequest).to == 2
        kit.respond(kit.last_sent(FetchRequest), fetched(2, 6, error=ErrorCode.FENCED_LEADER_EPOCH))
        assert kit.node.leader_id == 2

    def test_a_peer_that_is_down_is_tried_less_and_less_often(self) -> None:
        kit = self.follow(config=RaftConfig(fetch_timeout_ms=60_000))
        tried: list[int] = []
        for _ in range(7):
            kit.respond(kit.last_sent(FetchRequest), None)
            before = kit.now_ms
            while len(kit.sent(FetchRequest)) == len(tried) + 1:
                kit.pass_time(1)
            tried.append(kit.now_ms - before)
        assert tried == [20, 40, 80, 160, 160, 160, 160]
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5))
        kit.respond(kit.last_sent(FetchRequest), None)
        count = len(kit.sent(FetchRequest))
        kit.pass_time(20)
        assert len(kit.sent(FetchRequest)) == count + 1, "an answer makes it as good as new"

    def test_a_silent_leader_is_doubted(self) -> None:
        kit = self.follow()
        kit.pass_time(1999)
        assert kit.node.role == "Follower"
        kit.pass_time(1)
        assert kit.node.role == "Prospective"
        assert kit.sent(VoteRequest)

    def test_an_unanswered_fetch_is_given_up_and_repeated(self) -> None:
        kit = self.follow(config=RaftConfig(request_timeout_ms=300))
        kit.pass_time(320)
        assert [send.to for send in kit.sent(FetchRequest)] == [1, 1]

    @pytest.mark.parametrize("error", [ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR])
    def test_other_errors_are_waited_out(self, error: ErrorCode) -> None:
        kit = self.follow()
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, error=error))
        assert len(kit.sent(FetchRequest)) == 1
        kit.pass_time(kit.config.retry_backoff_ms)
        assert len(kit.sent(FetchRequest)) == 2


class TestTruncation:
    """Rule 147."""

    @pytest.mark.parametrize(
        ("batches", "leader_end", "end", "last_epoch"),
        [
            ([(1, 3), (3, 3)], LogEnd(3, 5), 3, 1),
            ([(1, 3), (3, 1), (3, 2)], LogEnd(3, 4), 4, 3),
            ([(1, 3), (3, 3)], LogEnd(2, 4), 3, 1),
            ([(1, 3), (4, 3)], LogEnd(1, 2), 0, 0),
            ([(2, 1), (2, 2)], LogEnd(0, 0), 0, 0),
        ],
    )
    def test_to_where_the_leaders_epoch_ends(
        self, batches: list[tuple[int, int]], leader_end: LogEnd, end: int, last_epoch: int
    ) -> None:
        """A batch that is cut through goes whole."""
        kit = Kit(stored=ElectionState(5, 1), log=log_of(batches))
        effects = kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, diverging=leader_end))
        assert (kit.log.end_offset, kit.log.last_epoch) == (end, last_epoch)
        assert [type(e) for e in effects if isinstance(e, MetadataTruncated)] == [MetadataTruncated]
        part = part_of(kit.last_sent(FetchRequest).request)
        assert (part.fetch_offset, part.last_fetched_epoch) == (end, last_epoch)

    def test_never_below_what_is_committed(self) -> None:
        kit = Kit(stored=ElectionState(5, 1), log=log_of([(1, 3), (3, 3)]))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, high_watermark=3))
        with pytest.raises(QuorumInconsistent):
            kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, diverging=LogEnd(1, 2)))
        assert kit.log.end_offset == 6

    def test_a_sync_that_was_under_way_says_nothing_of_what_came_after(self) -> None:
        kit = Kit(stored=ElectionState(5, 1), log=log_of([(1, 3), (3, 3)]))
        kit.auto_sync = False
        quorum = kit.node._quorum
        quorum.log_grew()
        # The sync began with six records. Before it ends, three are cut and two others written.
        quorum.log.truncate_to(3)
        quorum.durability.cut(3)
        batch = quorum_batches.encode_values([b"x", b"y"], base_offset=3, epoch=5, timestamp=0)
        quorum.log.append(memoryview(batch), 5)
        quorum.log_grew()
        effects = kit.node.log_synced(6, 0)
        assert kit.node.durable_end == 3
        assert SyncLog() in effects
        kit.node.log_synced(5, 0)
        assert kit.node.durable_end == 5


class TestSnapshot:
    """Rules 146 and 148."""

    ID = SnapshotId(3, 2)

    def leader_with_snapshot(self) -> Kit:
        return elected(log=log_of([(2, 3)], self.ID))

    def test_checks(self) -> None:
        kit = self.leader_with_snapshot()
        size = kit.log.snapshot_size(self.ID)
        assert size is not None
        assert error_of(kit.ask(fetch_snapshot(5, 1, self.ID, 0, name="orders"))) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert error_of(kit.ask(fetch_snapshot(4, 1, self.ID, 0))) == "FENCED_LEADER_EPOCH"
        assert error_of(kit.ask(fetch_snapshot(6, 1, self.ID, 0))) == "UNKNOWN_LEADER_EPOCH"
        assert error_of(kit.ask(fetch_snapshot(5, 1, SnapshotId(2, 2), 0))) == "SNAPSHOT_NOT_FOUND"
        assert error_of(kit.ask(fetch_snapshot(5, 1, SnapshotId(0, 0), 0))) == "SNAPSHOT_NOT_FOUND"
        assert error_of(kit.ask(fetch_snapshot(5, 1, self.ID, -1))) == "POSITION_OUT_OF_RANGE"
        assert error_of(kit.ask(fetch_snapshot(5, 1, self.ID, size))) == "POSITION_OUT_OF_RANGE"
        request = fetch_snapshot(5, 1, self.ID, 0)
        request.cluster_id = "another"
        assert error_of(kit.ask(request)) == "INCONSISTENT_CLUSTER_ID"
        follower = Kit(stored=ElectionState(5, 2))
        response = follower.ask(fetch_snapshot(5, 1, self.ID, 0))
        assert error_of(response) == "NOT_LEADER_OR_FOLLOWER"
        assert part_of(response).current_leader.leader_id == 2

    def test_even_the_bootstrap_snapshot_of_its_own_is_not_given(self) -> None:
        log = log_of([(2, 3)])
        log.create_snapshot(SnapshotId(0, 0), [b"bootstrap"], wall_ms=WALL_MS)
        assert error_of(elected(log=log).ask(fetch_snapshot(5, 1, SnapshotId(0, 0), 0))) == "SNAPSHOT_NOT_FOUND"

    def test_in_pieces(self) -> None:
        kit = self.leader_with_snapshot()
        data = b""
        while True:
            part = part_of(kit.ask(fetch_snapshot(5, 1, self.ID, len(data), max_bytes=50)))
            assert part.position == len(data)
            assert 0 < len(part.unaligned_records) <= 50
            data += part.unaligned_records
            if len(data) == part.size:
                break
        assert data == kit.log.snapshot_chunk(self.ID, 0, 10_000)

    def test_fetching_a_snapshot_keeps_the_quorum(self) -> None:
        kit = self.leader_with_snapshot()
        for _ in range(3):
            kit.pass_time(2000)
            kit.ask(fetch_snapshot(5, 1, self.ID, 0))
        assert kit.node.is_leader
        kit.pass_time(3000)
        assert kit.node.role == "Resigned"

    def snapshot_bytes(self, values: list[bytes]) -> bytes:
        log = MemoryLog()
        log.create_snapshot(self.ID, values, wall_ms=WALL_MS)
        return bytes(log.snapshot_chunk(self.ID, 0, 10**6))  # type: ignore[arg-type]

    def test_a_follower_installs_it_and_goes_on_from_its_end(self) -> None:
        data = self.snapshot_bytes([b"a", b"b"])
        kit = Kit(stored=ElectionState(5, 1), log=log_of([(1, 1)]))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, snapshot=self.ID))
        assert kit.log.end_offset == 1
        half = len(data) // 2
        for start, piece in ((0, data[:half]), (half, data[half:])):
            send = kit.last_sent(FetchSnapshotRequest)
            part = part_of(send.request)
            assert (part.position, part.current_leader_epoch) == (start, 5)
            effects = kit.respond(send, snapshot_part(1, 5, self.ID, size=len(data), position=start, data=piece))
        kinds = [type(effect) for effect in effects]
        assert kinds.index(SnapshotInstalled) < kinds.index(HighWatermark)
        assert (kit.log.start_offset, kit.log.end_offset, kit.log.last_epoch) == (3, 3, 2)
        assert kit.node.high_watermark == 3
        assert [v for batch in kit.log.read_snapshot(self.ID) for v in batch.values] == [b"a", b"b"]
        part = part_of(kit.last_sent(FetchRequest).request)
        assert (part.fetch_offset, part.last_fetched_epoch) == (3, 2)

    @pytest.mark.parametrize("error", [ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE])
    def test_a_snapshot_that_is_gone_is_given_up(self, error: ErrorCode) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, snapshot=self.ID))
        before = len(kit.sent(FetchRequest))
        kit.respond(kit.last_sent(FetchSnapshotRequest), snapshot_part(1, 5, self.ID, error=error))
        assert len(kit.sent(FetchRequest)) == before + 1

    @pytest.mark.parametrize(
        "wrong",
        [
            {"position": 3},
            {"size": 2},
            {"data": b""},
        ],
    )
    def test_a_piece_that_does_not_fit_ends_the_download(self, wrong: dict[str, Any]) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, snapshot=self.ID))
        answer = {"size": 100, "position": 0, "data": b"abc", **wrong}
        kit.respond(kit.last_sent(FetchSnapshotRequest), snapshot_part(1, 5, self.ID, **answer))
        kit.pass_time(kit.config.retry_backoff_ms)
        assert len(kit.sent(FetchSnapshotRequest)) == 1
        assert len(kit.sent(FetchRequest)) == 2

    def test_a_snapshot_that_arrives_damaged_is_fetched_again(self) -> None:
        data = bytearray(self.snapshot_bytes([b"a"]))
        data[-20] ^= 4
        kit = Kit(stored=ElectionState(5, 1), log=log_of([(1, 1)]))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, snapshot=self.ID))
        send = kit.last_sent(FetchSnapshotRequest)
        kit.respond(send, snapshot_part(1, 5, self.ID, size=len(data), data=bytes(data)))
        assert (kit.log.start_offset, kit.log.end_offset, kit.node.high_watermark) == (0, 1, 0)
        kit.pass_time(kit.config.retry_backoff_ms)
        assert len(kit.sent(FetchRequest)) == 2

    def test_of_another_snapshot(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, snapshot=self.ID))
        kit.respond(kit.last_sent(FetchSnapshotRequest), snapshot_part(1, 5, SnapshotId(9, 4), size=1, data=b"x"))
        assert kit.log.latest_snapshot_id is None

    def test_half_an_id_is_no_id(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, snapshot=SnapshotId(3, -1)))
        assert not kit.sent(FetchSnapshotRequest)

    def test_never_back_before_what_is_committed(self) -> None:
        kit = Kit(stored=ElectionState(5, 1), log=log_of([(1, 3), (3, 3)]))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, high_watermark=6))
        with pytest.raises(QuorumInconsistent):
            kit.respond(kit.last_sent(FetchRequest), fetched(1, 5, snapshot=self.ID))

    def test_a_restart_begins_at_the_snapshot(self) -> None:
        kit = Kit(stored=ElectionState(5, 1), log=log_of([(2, 3), (3, 2)], self.ID))
        assert HighWatermark(3) in kit.effects
        assert kit.node.high_watermark == 3

    def test_ids_are_checked_against_the_log(self) -> None:
        kit = elected(log=log_of([(1, 3), (2, 3)]))
        kit.node.check_snapshot_id(SnapshotId(6, 2))
        kit.node.check_snapshot_id(SnapshotId(3, 1))
        for wrong in (SnapshotId(8, 5), SnapshotId(4, 1), SnapshotId(6, 4)):
            with pytest.raises(ValueError, match="SnapshotId"):
                kit.node.check_snapshot_id(wrong)
        with pytest.raises(ValueError, match="no snapshot"):
            kit.node.snapshot_created(SnapshotId(6, 2), 0, WALL_MS)


class TestDescribe:
    def request(self, topic: str = METADATA_TOPIC) -> describe_quorum_request.DescribeQuorumRequest:
        part = describe_quorum_request.PartitionData(partition_index=0)
        return describe_quorum_request.DescribeQuorumRequest(
            topics=(describe_quorum_request.TopicData(topic_name=topic, partitions=(part,)),)
        )

    def test_who_has_come_how_far(self) -> None:
        kit = elected()
        kit.now_ms += 100
        kit.ask(fetch(5, 9, 1, 5, max_wait_ms=0))
        kit.take(kit.node.append([b"x"], kit.now_ms, WALL_MS + kit.now_ms).effects)
        kit.now_ms += 50
        kit.ask(fetch(5, 1, 2, 5, max_wait_ms=0))
        response = kit.ask(self.request())
        part = part_of(response)
        assert (part.leader_id, part.leader_epoch, part.high_watermark) == (ME, 5, 2)
        one = next(voter for voter in part.current_voters if voter.replica_id == 1)
        assert (one.log_end_offset, one.replica_directory_id) == (2, directory(1))
        assert one.last_fetch_timestamp == one.last_caught_up_timestamp == WALL_MS + kit.now_ms
        (observer,) = part.observers
        assert (observer.replica_id, observer.log_end_offset) == (9, 1)
        assert observer.last_caught_up_timestamp == WALL_MS + kit.now_ms - 50
        assert [(node.node_id, node.listeners[0].host) for node in response.nodes] == [
            (0, "node0"),
            (1, "node1"),
            (2, "node2"),
        ]

    def test_caught_up_means_having_what_the_leader_had_a_fetch_ago(self) -> None:
        kit = elected()
        start = kit.now_ms
        kit.ask(fetch(5, 1, 1, 5, max_wait_ms=0))
        for step in range(1, 4):
            kit.take(kit.node.append([b"x"], kit.now_ms, WALL_MS + kit.now_ms).effects)
            kit.now_ms = start + step * 10
            kit.ask(fetch(5, 1, step, 5, max_wait_ms=0))
        (voter,) = [v for v in kit.node.describe(kit.now_ms).voters if v.replica_id == 1]
        assert voter.last_caught_up_timestamp == WALL_MS + start + 20

    def test_only_a_leader_knows(self) -> None:
        response = Kit(stored=ElectionState(5, 1)).ask(self.request())
        assert error_of(response) == "NOT_LEADER_OR_FOLLOWER"
        assert Kit(stored=ElectionState(5, 1)).node.describe(0).voters == ()

    def test_of_another_topic(self) -> None:
        assert error_of(elected().ask(self.request("orders"))) == "UNKNOWN_TOPIC_OR_PARTITION"

    def test_silent_observers_are_forgotten_and_their_number_is_bounded(self) -> None:
        kit = elected()
        role: Any = kit.node._quorum.role
        progress = role.progress
        for node_id in range(100, 100 + MAX_OBSERVERS + 5):
            progress.fetched(ReplicaKey(node_id), 0, 1, 0)
        assert len(progress.observers) == MAX_OBSERVERS
        assert ReplicaKey(100) not in progress.observers
        progress.fetched(ReplicaKey(50), 0, 1, OBSERVER_SESSION_MS)
        assert [observer.key.node_id for observer in progress.present_observers(OBSERVER_SESSION_MS)] == [50]


def test_a_reply_is_given_for_every_request() -> None:
    """Whatever comes, and to any node: an answer, or a fetch that waits and is answered in the end."""
    for kit in (elected(), Kit(stored=ElectionState(5, 1)), Kit(stored=ElectionState(5, ME))):
        requests = [vote(5, 1, 0, 0), fetch(5, 1, 0, 0), fetch_snapshot(5, 1, SnapshotId(1, 1), 0)]
        for request in requests:
            effects = kit.receive(request, source="one")
            effects += kit.pass_time(600)
            assert len([e for e in effects if isinstance(e, Reply) and e.source == "one"]) == 1

"""Following: what a follower appends, asks for and cuts (rule 147)."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.lab.scenarios.quorum_node import ME, WALL_MS, directory, fetched, log_of, part_of, vote
from tanist.quorum import (
    ElectionState,
    HighWatermark,
    LogEnd,
    MetadataLogTruncated,
    QuorumInconsistent,
    RaftConfig,
    SyncLog,
)
from tanist.quorum.storage import batches as quorum_batches
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.vote_request import VoteRequest
from tests.quorum.quorum_kit import Kit


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
        assert [type(e) for e in effects if isinstance(e, MetadataLogTruncated)] == [MetadataLogTruncated]
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

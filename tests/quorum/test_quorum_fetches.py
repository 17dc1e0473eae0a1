"""Answers to fetches, and fetches that wait for one (rules 145, 146)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tanist.lab.scenarios.quorum_node import ME, WALL_MS, directory, fetch, log_of, part_of, vote
from tanist.quorum import Effect, ElectionState, SnapshotId
from tanist.quorum.state import fetch_purgatory
from tanist.wire.ids import ZERO_UUID
from tests.quorum.quorum_kit import Kit, elected, error_of, leader, records_of


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

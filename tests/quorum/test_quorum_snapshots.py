"""Snapshots: given in pieces, installed, and begun from (rules 146, 148)."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.lab.scenarios.quorum_node import WALL_MS, fetched, log_of, part_of
from tanist.quorum import (
    ElectionState,
    HighWatermark,
    MemoryLog,
    QuorumInconsistent,
    SnapshotDownloaded,
    SnapshotId,
)
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.fetch_snapshot_request import FetchSnapshotRequest
from tests.quorum.quorum_kit import Kit, elected, error_of, fetch_snapshot, snapshot_part


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
        assert kinds.index(SnapshotDownloaded) < kinds.index(HighWatermark)
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

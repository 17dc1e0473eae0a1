"""Cutting a log: at batch boundaries, with everything that was learnt from what is gone."""

from __future__ import annotations

import pytest

from tanist.events.event import Event
from tanist.events.storage import RecordsCut
from tanist.events.stream import Events
from tanist.log.config import LogConfig
from tanist.log.log import Log, OffsetOutOfRange
from tests.log.log_batches import TRANSACTIONAL, batch, marker, offsets_in
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, content, epochs_of, open_log, read_all, segment_count

SIZE = len(batch([b"value"]))
SMALL = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=SIZE)


def test_cuts_the_batch_that_holds_the_offset() -> None:
    log = open_log()
    for _ in range(3):
        add(log, 3)
    assert log.truncate_to(7)
    assert log.log_end_offset == 6
    assert log.truncate_to(3)
    assert log.log_end_offset == 3
    assert offsets_in(read_all(log)) == [(0, 2, 0)]
    assert log.truncate_to(0)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)
    add(log, 2)
    assert offsets_in(read_all(log)) == [(0, 1, 0)]


def test_beyond_the_end_only_epochs_are_cut() -> None:
    """A leader that wrote nothing leaves an epoch at the end; it must not survive the next leader's answer."""
    log = open_log()
    add(log, 3, epoch=1)
    log.assign_epoch(2, 3)
    assert not log.truncate_to(3)
    assert not log.truncate_to(99)
    assert log.log_end_offset == 3
    assert epochs_of(log) == [(1, 0)]
    add(log, 1, epoch=2)
    assert epochs_of(log) == [(1, 0), (2, 3)]


def test_a_negative_offset_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="-1"):
        open_log().truncate_to(-1)


def test_into_a_gap() -> None:
    log = open_log()
    log.append_as_follower(batch([b"v"] * 3, leader_epoch=0), 9)
    log.append_as_follower(batch([b"v"], base_offset=10, leader_epoch=0), 9)
    log.truncate_to(8)
    assert log.log_end_offset == 8
    log.append_as_follower(batch([b"v"], base_offset=8, leader_epoch=1), 9)
    assert offsets_in(read_all(log)) == [(0, 2, 0), (8, 8, 1)]


def test_across_segments() -> None:
    disk = MemoryDisk()
    log = open_log(disk, SMALL)
    for number in range(10):
        add(log, epoch=number // 4, timestamp=100 + number)
    whole = read_all(log)
    assert segment_count(log) == 4
    assert log.truncate_to(4)
    assert segment_count(log) == 3, "all was read, so the log goes on in another file than the one that is cut"
    assert log.log_end_offset == 4
    assert read_all(log) == whole[: 4 * SIZE]
    assert epochs_of(log) == [(0, 0)]
    assert log.max_timestamp() == (103, 3, 0)
    dropped = log.drain_deleted()
    names = {path.removeprefix(f"{FOLDER}/") for path in dropped}
    assert {name for name in names if ".log" in name} == {f"{base:020d}.log.deleted" for base in (6, 9)}
    assert {f"{6:020d}.index.deleted", f"{6:020d}.timeindex.deleted"} < names
    assert all(disk.exists(path) for path in dropped)
    assert log.drain_deleted() == []
    add(log, epoch=5, timestamp=90)
    assert epochs_of(log) == [(0, 0), (5, 4)]
    assert offsets_in(read_all(log)) == [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 5)]


def test_to_the_start_of_a_segment() -> None:
    log = open_log(config=SMALL)
    for _ in range(9):
        add(log)
    log.truncate_to(6)
    assert log.log_end_offset == 6
    for _ in range(5):
        add(log)
    assert offsets_in(read_all(log)) == [(o, o, 0) for o in range(11)]


def test_indexes_forget_what_is_cut_and_go_on() -> None:
    disk = MemoryDisk()
    config = LogConfig(index_interval_bytes=SIZE)
    log, twin_disk = open_log(disk, config), MemoryDisk()
    for number in range(40):
        add(log, timestamp=1000 + (number * 7) % 40)
    log.truncate_to(23)
    twin = open_log(twin_disk, config)
    for number in range(23):
        add(twin, timestamp=1000 + (number * 7) % 40)
    for each in (log, twin):
        for number in range(30):
            add(each, timestamp=1030 + number)
        each.close()
    for suffix in (".log", ".index", ".timeindex"):
        path = f"{FOLDER}/{0:020d}{suffix}"
        assert disk.content(path) == twin_disk.content(path), suffix


def test_the_latest_time_is_looked_for_in_what_remains() -> None:
    log = open_log()
    for time in (50, 10, 70, 60):
        add(log, timestamp=time)
    log.truncate_to(2)
    assert log.max_timestamp() == (50, 0, 0)
    log.truncate_to(0)
    assert log.max_timestamp() is None


def test_below_the_first_segment_everything_goes() -> None:
    log = open_log()
    log.truncate_fully_and_start_at(100)
    add(log, 5)
    log.truncate_to(50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)


def test_log_start_offset_goes_down_with_the_end() -> None:
    log = open_log()
    for _ in range(4):
        add(log, 5)
    log.advance_log_start_offset(17)
    log.truncate_to(10)
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)


def test_start_fully_anew() -> None:
    disk = MemoryDisk()
    log = open_log(disk, SMALL)
    for _ in range(7):
        add(log, epoch=3, producer_id=9, producer_epoch=0, sequence=log.log_end_offset)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (100, 100, 0)
    assert epochs_of(log) == []
    assert log.producers.entries == {}
    assert [name for name in disk.list(FOLDER) if not name.endswith(".deleted")] == [
        f"{100:020d}.log",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert log.read(100, 1, 100) is None
    with pytest.raises(OffsetOutOfRange):
        log.read(99, 1, 100)
    add(log, 1, epoch=4)
    log.close()
    assert offsets_in(read_all(open_log(disk))) == [(100, 100, 4)]


# -- producers


def write_by(log: Log, producer_id: int, sequence: int, **how: object) -> int:
    data = batch([b"value"], producer_id=producer_id, producer_epoch=0, sequence=sequence, **how)  # type: ignore[arg-type]
    return log.append_as_leader(data, 0, 0).error


@pytest.mark.parametrize("config", [LogConfig(), SMALL])
def test_producers_become_what_they_were(config: LogConfig) -> None:
    log = open_log(config=config)
    for sequence in range(8):
        write_by(log, 9, sequence)
        write_by(log, 10, sequence)
    log.truncate_to(9)
    assert log.producers.entries[9].next_sequence == 5
    assert log.producers.entries[10].next_sequence == 4
    assert write_by(log, 10, 4) == 0
    assert write_by(log, 9, 5) == 0
    log.truncate_to(0)
    assert log.producers.entries == {}


def test_transactions_become_what_they_were() -> None:
    log = open_log()
    write_by(log, 9, 0, attributes=TRANSACTIONAL)
    log.append_as_leader(marker(9, 0, commit=False), 0, 0, internal=True)
    write_by(log, 8, 0, attributes=TRANSACTIONAL)
    assert log.last_stable_offset(3) == 2
    log.truncate_to(2)
    assert log.last_stable_offset(2) == 2
    assert log.aborted_transactions(0, 2) == [(9, 0, 1, 2)]
    log.truncate_to(1)
    assert log.last_stable_offset(1) == 0
    assert log.aborted_transactions(0, 1) == []


def test_snapshots_of_what_is_cut_are_removed() -> None:
    disk = MemoryDisk()
    log = open_log(disk, SMALL)
    for sequence in range(10):
        write_by(log, 9, sequence)
    log.truncate_to(4)
    assert [name for name in disk.list(FOLDER) if name.endswith(".snapshot")] == [f"{3:020d}.snapshot"]


# -- reports before


def test_a_cut_is_an_event_before_anything_is_gone() -> None:
    events = Events()
    log = open_log(config=SMALL, events=events)
    for number in range(8):
        add(log, timestamp=number)
    seen: list[tuple[Event, int]] = []
    events.subscribe(lambda event: seen.append((event, log.log_end_offset)))
    log.truncate_to(9)
    assert seen == []
    log.truncate_to(4)
    log.truncate_fully_and_start_at(50)
    log.truncate_fully_and_start_at(60)  # which has nothing to drop
    assert seen == [(RecordsCut("t-0", 4, 8), 8), (RecordsCut("t-0", 0, 4), 4)]


def test_a_recovery_point_goes_down_before_the_cut() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(5):
        add(log)
    for file in log.unflushed_files():
        disk.sync_now(file)
    log.mark_flushed(5)
    assert log.recovery_point == 4
    seen: list[tuple[int, int]] = []
    path = f"{FOLDER}/{0:020d}.log"
    log.before_cut = lambda each, end_offset: seen.append((each.recovery_point, len(disk.content(path))))
    log.truncate_to(3)
    assert seen == [(2, 5 * SIZE)]


def test_truncation_closes_no_file_that_is_being_sent() -> None:
    log = open_log(config=SMALL)
    for _ in range(9):
        add(log)
    piece = log.read(7, 1000, 9)
    assert piece is not None
    log.truncate_to(1)
    assert len(content(piece.chunk)) == 2 * SIZE, "a dropped segment can still be read by who holds it"
    log.roll_if_due(0)
    with pytest.raises(OSError, match="closed"):
        content(piece.chunk)

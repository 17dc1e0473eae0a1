"""What is deleted when, what is kept, and when it is durable."""

from __future__ import annotations

import pytest

from tanist.log.config import LogConfig
from tanist.log.log import Log, OffsetOutOfRange
from tests.log.log_batches import batch, offsets_in
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, epochs_of, open_log, read_all, segment_count

SIZE = len(batch([b"value"]))


def filled(count: int = 10, disk: MemoryDisk | None = None, **config: object) -> Log:
    """Two one-record batches a segment, a second apart."""
    log = open_log(disk, LogConfig(segment_bytes=2 * SIZE, **config))  # type: ignore[arg-type]
    for number in range(count):
        add(log, epoch=number // 4, timestamp=1_000 * number)
    return log


def test_segments_older_than_retention_ms_go() -> None:
    disk = MemoryDisk()
    log = filled(disk=disk, retention_ms=5_000)
    # The latest records of the segments are at 1, 3, 5, 7 and 9 s.
    deleted = log.delete_old_segments(0, 8_500, 10)
    assert log.log_start_offset == 4
    assert sorted(deleted) == [
        f"{FOLDER}/{base:020d}{suffix}.deleted" for base in (0, 2) for suffix in (".index", ".log", ".timeindex")
    ]
    assert all(disk.exists(path) for path in deleted)
    assert offsets_in(read_all(log))[0] == (4, 4, 1)
    assert epochs_of(log) == [(1, 4), (2, 8)]
    assert log.delete_old_segments(0, 8_500, 10) == []
    with pytest.raises(OffsetOutOfRange):
        log.read(3, 1, 10)


def test_a_timestamp_in_the_future_holds_up_retention_and_is_logged_once() -> None:
    """Apache Kafka logs it at each run: "contains future timestamp(s), making it ineligible to be deleted"."""
    log = filled(retention_ms=5_000)
    add(log, epoch=3, timestamp=10**12)
    add(log, epoch=3, timestamp=12_000)
    add(log, epoch=3, timestamp=13_000)
    assert log.newly_held_up(10**6, 13) is None  # the oldest one may go
    log.delete_old_segments(0, 10**6, 13)
    assert log.log_start_offset == 10
    assert log.newly_held_up(10**6, 13) == (10, 10**12)
    assert log.newly_held_up(10**6, 13) is None
    assert log.delete_old_segments(0, 10**6, 13) == []
    assert log.newly_held_up(10**12, 13) is None


def test_nothing_is_held_up_where_time_deletes_nothing() -> None:
    for config in ({"retention_ms": -1}, {"retention_ms": 5_000, "cleanup_policy": "compact"}):
        log = filled(count=0, **config)
        for number in range(3):
            add(log, timestamp=10**12 + number)
        assert log.newly_held_up(0, 3) is None
    log = filled(count=0, retention_ms=5_000)
    add(log, timestamp=10**12)
    assert log.newly_held_up(0, 1) is None  # it is written to
    add(log, timestamp=10**12)
    add(log, timestamp=10**12)
    assert log.newly_held_up(0, 1) is None  # retention does not come to it
    assert log.newly_held_up(0, 3) == (0, 10**12)


def test_nothing_that_reaches_the_high_watermark_goes() -> None:
    log = filled(retention_ms=1)
    log.delete_old_segments(0, 10**9, 5)
    assert log.log_start_offset == 4
    log.delete_old_segments(0, 10**9, 5)
    assert log.log_start_offset == 4


def test_the_active_segment_goes_too_when_it_has_expired() -> None:
    log = filled(retention_ms=1)
    log.delete_old_segments(0, 10**9, 10)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (10, 10, 0)
    assert log.delete_old_segments(0, 10**9, 10) == []
    add(log, epoch=2)
    assert log.log_end_offset == 11


def test_size_keeps_at_least_retention_bytes() -> None:
    for keep, start in [(4 * SIZE, 6), (4 * SIZE + 1, 4), (5 * SIZE, 4), (0, 10), (100 * SIZE, 0), (-1, 0)]:
        log = filled(retention_bytes=keep, retention_ms=-1)
        log.delete_old_segments(0, 10**9, 10)
        assert log.log_start_offset == start, keep


def test_records_without_a_time_age_with_their_segment() -> None:
    log = open_log(config=LogConfig(segment_bytes=2 * SIZE, retention_ms=1_000))
    for _ in range(4):
        log.append_as_leader(batch(timestamps=-1), 0, 500)
    log.delete_old_segments(1_400, 10**9, 4)
    assert log.log_start_offset == 2
    log.delete_old_segments(1_600, 10**9, 4)
    assert log.log_start_offset == 4


def test_deleted_records_take_their_segments_along() -> None:
    log = filled(retention_ms=-1)
    assert log.advance_log_start_offset(5)
    assert not log.advance_log_start_offset(5)
    assert not log.advance_log_start_offset(2)
    assert segment_count(log) == 5
    log.delete_old_segments(0, 0, 10)
    assert (log.first_segment_offset, log.log_start_offset) == (4, 5)
    assert log.epochs.entries[0] == (1, 5)
    with pytest.raises(OffsetOutOfRange):
        log.advance_log_start_offset(11)


def test_a_compacted_topic_loses_only_what_was_deleted_on_request() -> None:
    log = filled(cleanup_policy="compact", retention_ms=1, retention_bytes=0)
    log.advance_log_start_offset(3)
    log.delete_old_segments(0, 10**9, 10)
    assert log.first_segment_offset == 2


def test_snapshots_go_with_their_segments() -> None:
    disk = MemoryDisk()
    log = filled(disk=disk, retention_ms=5_000)
    log.delete_old_segments(0, 8_500, 10)
    assert [name for name in disk.list(FOLDER) if name.endswith(".snapshot")] == [
        f"{base:020d}.snapshot" for base in (4, 6, 8)
    ]


def test_retention_after_a_start_knows_the_times() -> None:
    disk = MemoryDisk()
    log = filled(disk=disk, retention_ms=5_000)
    log.close()
    again = open_log(disk, log.config, recovery_point=10)
    again.delete_old_segments(0, 8_500, 10)
    assert again.log_start_offset == 4


def test_a_new_configuration_counts_from_now_on() -> None:
    log = filled(retention_ms=-1)
    log.set_config(LogConfig(segment_bytes=5 * SIZE, retention_ms=5_000))
    for number in range(10, 16):
        add(log, epoch=2, timestamp=1_000 * number)
    assert segment_count(log) == 6
    log.delete_old_segments(0, 8_500, 16)
    assert log.log_start_offset == 4


# -- durability


def synced(disk: MemoryDisk, log: Log, end: int | None = None) -> set[str]:
    """Sync what the log asks for, up to an offset or all; the names that were."""
    files = log.unflushed_files(end)
    end = log.log_end_offset if end is None else end
    for file in files:
        disk.sync_now(file)
    log.mark_flushed(end)
    return {file.path.removeprefix(FOLDER + "/") for file in files}


def test_flushing_moves_the_recovery_point() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=2 * SIZE))
    assert synced(disk, log) == set()
    add(log)
    assert log.recovery_point == 0
    assert synced(disk, log) == {f"{0:020d}.log"}
    assert (log.recovery_point, log.flushed_offset) == (0, 1), "the indexes of an active segment are not durable"
    for _ in range(4):
        add(log)
    assert log.flush_due(0) == 4, "segments have rolled"
    names = synced(disk, log)
    assert {f"{base:020d}{suffix}" for base in (0, 2) for suffix in (".index", ".timeindex")} < names
    assert {f"{2:020d}.log", f"{4:020d}.log"} < names
    assert (log.recovery_point, log.flushed_offset) == (4, 5)
    assert log.flush_due(0) is None


def test_a_roll_flushes_what_has_rolled_and_not_the_active_segment() -> None:
    """Its file is being written: a sync of it would make the writes wait. And the clock of `flush.ms` goes on."""
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=2 * SIZE, flush_ms=1_000))
    for _ in range(5):
        add(log)
    assert log.flush_due(500) == 4
    log.write_pending()
    files = log.unflushed_files(4)
    assert {file.path for file in files if file.path.endswith(".log")} == {
        f"{FOLDER}/{base:020d}.log" for base in (0, 2)
    }
    for file in files:
        disk.sync_now(file)
    log.mark_flushed(4, 500)
    assert (log.recovery_point, log.flushed_offset) == (4, 4)
    assert log.flush_due(999) is None
    assert log.flush_due(1_000) == 5, "by time, all"


def test_the_recovery_point_stays_in_a_segment_whose_indexes_are_not_durable() -> None:
    """A sync of the log alone, begun before the roll, must not make recovery trust the indexes."""
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=2 * SIZE))
    add(log)
    add(log)
    files = log.unflushed_files()
    add(log)
    for file in files:
        disk.sync_now(file)
    log.mark_flushed(2)
    assert log.flushed_offset == 2
    assert log.recovery_point == 1
    assert log.flush_due(0)
    synced(disk, log)
    assert log.recovery_point == 2


def test_a_sync_from_before_a_truncation_confirms_nothing_of_after() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(4):
        add(log)
    files = log.unflushed_files()
    log.truncate_to(2)
    for _ in range(2):
        add(log)
    log.write_pending()
    assert [file.synced for file in files] == [2 * SIZE], "the cut itself is durable, what came after is not"
    log.mark_flushed(4)
    assert (log.flushed_offset, log.recovery_point) == (0, 0)


def test_flush_by_messages_and_by_time() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(flush_messages=3, flush_ms=1_000))
    add(log, 2)
    assert not log.flush_messages_due
    assert not log.flush_due(999)
    assert log.flush_due(1_000)
    add(log, 1)
    assert log.flush_messages_due
    assert log.flush_due(0)
    synced(disk, log)
    assert not log.flush_messages_due
    log.mark_flushed(3, 5_000)
    add(log)
    assert not log.flush_due(5_999)
    assert log.flush_due(6_000)


def test_epochs_are_durable_before_the_recovery_point_passes_them() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    add(log, epoch=1)
    log.write_pending()
    assert disk.journal[-1] == f"write {FOLDER}/leader-epoch-checkpoint"
    log.unflushed_files()
    assert disk.journal[-1] == f"sync {FOLDER}/leader-epoch-checkpoint"
    synced_before = disk.journal.count(f"sync {FOLDER}/leader-epoch-checkpoint")
    add(log, epoch=1)
    synced(disk, log)
    assert disk.journal.count(f"sync {FOLDER}/leader-epoch-checkpoint") == synced_before
    add(log, epoch=2)
    log.mark_flushed(3)
    assert log.recovery_point == 1


def test_idle_producers_expire_on_the_way() -> None:
    log = open_log(config=LogConfig(producer_id_expiration_ms=1_000))
    add(log, timestamp=5_000, producer_id=9, producer_epoch=0, sequence=0)
    log.roll_if_due(0, 5_999)
    log.roll_if_due(10, 6_000)
    log.roll_if_due(1_009, 7_000)
    assert list(log.producers.entries) == [9]
    log.roll_if_due(1_010, 7_000)
    assert log.producers.entries == {}

"""A queue that is written off the loop: what needs it in the file ends the write, and nothing is written twice."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.wire.errors import ErrorCode
from tests.log.log_batches import batch, offsets_in
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, content, epochs_of, open_log, read_all, segment_count, sizes_in

SIZE = len(batch([b"value"]))
FULL = OSError(errno.ENOSPC, "No space left on device")


def file_of(disk: MemoryDisk, base_offset: int = 0) -> bytes:
    return disk.content(f"{FOLDER}/{base_offset:020d}.log")


def written(disk: MemoryDisk, base_offset: int = 0) -> list[tuple[int, int]]:
    """First and last offset of each batch in the file."""
    return [(first, last) for first, last, _ in offsets_in(file_of(disk, base_offset))]


def fetched(base_offset: int, count: int = 1) -> memoryview:
    return batch([b"value"] * count, base_offset=base_offset, leader_epoch=0)


class Late:
    """A log with one batch of two records in its file, and one of three that is being written."""

    def __init__(self, config: LogConfig | None = None) -> None:
        self.disk = MemoryDisk()
        self.log = open_log(self.disk, config)
        self.done: list[OSError | None] = []
        add(self.log, 2)
        self.log.write_pending()
        add(self.log, 3)
        self.log.write_pending_later(self.done.append)
        self.disk.writes = 0


def test_nothing_is_in_the_file_until_the_write_ends() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    done: list[OSError | None] = []
    data = batch([b"value"] * 3)
    assert log.append_as_leader(data, 0, 0, 1_000).error == 0
    log.write_pending_later(done.append)
    assert (file_of(disk), done) == (b"", [])
    assert (log.log_end_offset, log.size_bytes, log.pending_bytes) == (3, len(data), 0)
    disk.end_writes()
    assert (file_of(disk), done) == (bytes(data), [None])
    assert (log.log_end_offset, log.size_bytes, log.pending_bytes) == (3, len(data), 0)


def test_the_written_end_leaves_out_what_is_queued_or_being_written() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    assert log.written_end_offset == 0
    add(log, 2)
    assert (log.written_end_offset, log.log_end_offset) == (0, 2)
    log.write_pending()
    assert log.written_end_offset == 2
    add(log, 3)
    log.write_pending_later(lambda _: None)
    add(log, 4)
    assert (log.written_end_offset, log.log_end_offset) == (2, 9)
    disk.end_writes()
    assert (log.written_end_offset, log.log_end_offset) == (5, 9)
    log.write_pending()
    assert log.written_end_offset == 9


def test_all_that_is_queued_is_one_write() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(5):
        add(log)
    disk.writes = 0
    log.write_pending_later(lambda _: None)
    disk.end_writes()
    assert disk.writes == 1
    assert written(disk) == [(index, index) for index in range(5)]


def test_a_read_of_what_is_being_written_ends_it_first() -> None:
    late = Late()
    piece = late.log.read(2, 1000, 5)
    assert piece is not None
    assert offsets_in(content(piece.chunk)) == [(2, 4, 0)]
    assert late.done == []
    assert (late.log.pending_bytes, late.log.written_end_offset) == (0, 5)
    late.disk.end_writes()
    assert late.done == [None]
    assert late.disk.writes == 1
    assert written(late.disk) == [(0, 1), (2, 4)]


NEEDS_THE_FILE: dict[str, Callable[[Log], object]] = {
    "writing": lambda log: log.write_pending(),
    "a search by timestamp": lambda log: log.offset_for_timestamp(1_000),
    "the latest timestamp": lambda log: log.max_timestamp(),
    "retention": lambda log: log.delete_old_segments(0, 1_000, 0),
    "the tail before a cut": lambda log: log.tail(3),
    "a flush": lambda log: log.unflushed_files(),
    "a cut behind the end": lambda log: log.truncate_to(5),
    "the end of an active segment": lambda log: log.roll_if_due(10**15),
    "another late write": lambda log: log.write_pending_later(lambda _: None),
    "abandoning": lambda log: log.abandon(),
}


@pytest.mark.parametrize("what", NEEDS_THE_FILE)
def test_what_needs_the_file_ends_the_write(what: str) -> None:
    late = Late()
    NEEDS_THE_FILE[what](late.log)
    assert written(late.disk) == [(0, 1), (2, 4)]
    assert late.done == []
    before = file_of(late.disk)
    late.disk.end_writes()
    assert late.done == [None]
    assert file_of(late.disk) == before


def test_an_append_meanwhile_is_written_behind_it() -> None:
    late = Late()
    add(late.log, 4)
    assert written(late.disk) == [(0, 1)]
    late.log.write_pending()
    assert written(late.disk) == [(0, 1), (2, 4), (5, 8)]
    late.disk.end_writes()
    assert late.done == [None]
    assert late.disk.writes == 2
    assert offsets_in(read_all(late.log)) == [(0, 1, 0), (2, 4, 0), (5, 8, 0)]


def test_an_append_meanwhile_stays_queued_when_the_write_ends() -> None:
    late = Late()
    add(late.log, 4)
    late.disk.end_writes()
    assert late.done == [None]
    assert written(late.disk) == [(0, 1), (2, 4)]
    assert (late.log.pending_bytes, late.log.written_end_offset) == (len(batch([b"value"] * 4)), 5)
    late.log.write_pending()
    assert written(late.disk) == [(0, 1), (2, 4), (5, 8)]
    assert late.log.pending_bytes == 0


def test_what_is_appended_when_a_read_has_ended_the_write_is_not_taken_for_written_by_its_report() -> None:
    late = Late()
    assert late.log.read(2, 1000, 5) is not None
    add(late.log, 4)
    late.disk.end_writes()
    assert late.done == [None]
    assert late.log.written_end_offset == 5
    late.log.write_pending()
    assert written(late.disk) == [(0, 1), (2, 4), (5, 8)]


def test_a_second_late_write_ends_the_first() -> None:
    late = Late()
    second: list[OSError | None] = []
    add(late.log, 4)
    late.log.write_pending_later(second.append)
    assert written(late.disk) == [(0, 1), (2, 4)]
    assert (late.log.written_end_offset, late.log.pending_bytes) == (5, 0)
    assert (late.done, second) == ([], [])
    late.disk.end_writes()
    assert (late.done, second) == ([None], [None])
    assert written(late.disk) == [(0, 1), (2, 4), (5, 8)]
    assert (late.log.written_end_offset, late.log.pending_bytes) == (9, 0)


def test_the_report_of_a_first_late_write_does_not_end_the_second() -> None:
    late = Late()
    second: list[OSError | None] = []
    add(late.log, 4)
    late.log.write_pending_later(second.append)
    first, after = late.disk.late_writes
    late.disk.late_writes = [first]
    late.disk.end_writes()
    assert (late.done, second) == ([None], [])
    assert written(late.disk) == [(0, 1), (2, 4)]
    late.disk.late_writes = [after]
    late.disk.end_writes()
    assert second == [None]
    assert written(late.disk) == [(0, 1), (2, 4), (5, 8)]


def test_a_late_write_of_nothing_is_reported() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    done: list[OSError | None] = []
    log.write_pending_later(done.append)
    add(log, 2)
    disk.end_writes()
    assert (done, written(disk)) == ([None], [])
    log.write_pending()
    assert written(disk) == [(0, 1)]


@pytest.mark.parametrize("offset", [0, 2, 4])
def test_what_is_cut_off_while_it_is_written_does_not_come_back(offset: int) -> None:
    late = Late()
    assert late.log.truncate_to(offset)
    end = 0 if offset == 0 else 2
    assert late.log.log_end_offset == late.log.written_end_offset == end
    before = file_of(late.disk)
    assert written(late.disk) == [(0, 1)][:end]
    late.disk.end_writes()
    assert late.done == [None]
    assert file_of(late.disk) == before
    add(late.log, 1, epoch=1)
    late.log.write_pending()
    assert offsets_in(read_all(late.log))[-1] == (end, end, 1)


def test_a_log_that_begins_anew_meanwhile_has_nothing_of_it() -> None:
    late = Late()
    late.log.truncate_fully_and_start_at(100)
    late.disk.end_writes()
    assert late.done == [None]
    assert (late.log.written_end_offset, late.log.pending_bytes) == (100, 0)
    add(late.log, 2)
    late.log.write_pending()
    assert written(late.disk, 100) == [(100, 101)]


def test_a_roll_ends_it_in_the_segment_that_it_belongs_to() -> None:
    sizes = sum(len(batch([b"value"] * count)) for count in (2, 3))
    late = Late(LogConfig(segment_bytes=sizes))
    add(late.log, 2)
    assert segment_count(late.log) == 2
    assert written(late.disk) == [(0, 1), (2, 4)]
    assert written(late.disk, 5) == []
    late.disk.end_writes()
    assert late.done == [None]
    assert (late.log.written_end_offset, late.log.pending_bytes) == (5, len(batch([b"value"] * 2)))
    late.log.write_pending()
    assert written(late.disk, 5) == [(5, 6)]
    assert offsets_in(read_all(late.log)) == [(0, 1, 0), (2, 4, 0), (5, 6, 0)]


def test_a_flush_covers_what_is_being_written() -> None:
    late = Late()
    files = late.log.unflushed_files()
    for file in files:
        late.disk.sync_now(file)
    late.log.mark_flushed(late.log.log_end_offset)
    assert late.log.flushed_offset == 5
    late.disk.end_writes()
    assert late.done == [None]
    assert late.log.unflushed_files() == []


def test_a_log_is_closed_with_what_is_being_written() -> None:
    late = Late()
    late.log.close()
    assert late.done == []
    late.disk.end_writes()
    assert late.done == [None]
    again = open_log(late.disk, recovery_point=late.log.recovery_point)
    assert again.recovery.cut_at_offset is None
    assert (again.log_start_offset, again.log_end_offset) == (0, 5)
    assert offsets_in(read_all(again)) == [(0, 1, 0), (2, 4, 0)]


def test_a_log_that_is_abandoned_closes_no_file_that_is_being_written() -> None:
    late = Late()
    add(late.log, 4)
    late.log.abandon()
    assert written(late.disk) == [(0, 1), (2, 4)]  # what was only queued is given up
    assert late.disk.open_files == 0
    late.disk.end_writes()
    assert late.done == [None]


def test_the_epoch_of_a_first_append_is_written_with_it() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    add(log, 3, epoch=4)
    log.write_pending_later(lambda _: None)
    assert epochs_of(log) == [(4, 0)]
    assert disk.content(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n1\n4 0\n"


# -- failures


def test_a_late_write_that_fails_fails_the_log() -> None:
    late = Late()
    late.disk.fail = FULL
    late.disk.end_writes()
    late.disk.fail = None
    assert late.done == [FULL]
    assert late.log.failed is FULL
    refused = late.log.append_as_leader(batch(), 0, 0, 1_000)
    assert refused.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert late.log.append_plain(batch(), 0, 0, 1_000) == -1
    for use in (
        lambda: late.log.append_as_follower(fetched(5), 9),
        lambda: late.log.read(0, 1000, 5),
        late.log.write_pending,
        lambda: late.log.write_pending_later(late.done.append),
        late.log.unflushed_files,
    ):
        with pytest.raises(OSError, match="No space left"):
            use()
    assert late.disk.late_writes == []
    late.log.close()
    assert late.done == [FULL]
    assert written(late.disk) == [(0, 1)]


NEEDS_IT_SOUND = {name: use for name, use in NEEDS_THE_FILE.items() if name != "abandoning"}


@pytest.mark.parametrize("what", [*NEEDS_IT_SOUND, "a read"])
def test_what_needs_the_file_meets_the_failure_first_and_it_is_reported_as_well(what: str) -> None:
    uses: dict[str, Callable[[Log], object]] = {**NEEDS_IT_SOUND, "a read": lambda log: log.read(2, 1000, 5)}
    late = Late()
    late.disk.fail = FULL
    with pytest.raises(OSError, match="No space left"):
        uses[what](late.log)
    assert late.log.failed is FULL
    assert late.done == []
    late.disk.fail = None
    late.disk.end_writes()
    assert late.done == [FULL]
    assert late.log.failed is FULL
    assert written(late.disk) == [(0, 1)]


def test_a_roll_that_meets_the_failure_refuses_the_append() -> None:
    late = Late(LogConfig(segment_bytes=3 * SIZE + 20))
    late.disk.fail = FULL
    assert late.log.append_as_leader(batch(), 0, 0, 1_000).error == ErrorCode.KAFKA_STORAGE_ERROR
    assert late.log.failed is FULL
    late.disk.end_writes()
    assert late.done == [FULL]


def test_the_report_of_a_failed_write_changes_no_log_that_has_failed_before() -> None:
    late = Late()
    add(late.log)
    late.disk.late_writes[0][0].finish()
    late.disk.fail = FULL
    with pytest.raises(OSError, match="No space left"):
        late.log.write_pending()
    assert late.log.failed is FULL
    late.disk.end_writes()
    assert late.done == [None]  # it is what came behind it that has failed
    assert late.log.failed is FULL


def test_a_late_write_that_could_not_be_asked_for_is_not_reported() -> None:
    """The epochs of a first append cannot be written."""
    disk = MemoryDisk()
    log = open_log(disk)
    done: list[OSError | None] = []
    add(log, 3)
    disk.fail = FULL
    with pytest.raises(OSError, match="No space left"):
        log.write_pending_later(done.append)
    disk.fail = None
    disk.end_writes()
    assert done == []


def test_a_log_whose_late_write_has_failed_is_opened_anew_without_it() -> None:
    late = Late()
    late.disk.fail = FULL
    late.disk.end_writes()
    late.disk.fail = None
    late.log.abandon()
    again = open_log(late.disk, clean=False)
    assert again.log_end_offset == 2
    assert offsets_in(read_all(again)) == [(0, 1, 0)]


# -- followers


def test_a_follower_writes_at_once_whatever_the_size() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    data = fetched(0, 5_000)
    assert log.append_as_follower(data, 9).error == 0
    assert file_of(disk) == bytes(data)
    assert (log.pending_bytes, log.written_end_offset) == (0, 5_000)


@pytest.mark.parametrize(("less", "queued"), [(0, True), (1, True), (-1, False)])
def test_a_follower_queues_batches_of_so_many_bytes_until_they_are_written(less: int, queued: bool) -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    data = memoryview(bytes(fetched(0, 3)) + bytes(fetched(3, 4)))
    log.queue_large(len(data) - less)
    assert log.append_as_follower(data, 9)[:3] == (0, 0, 6)
    assert log.log_end_offset == 7
    assert file_of(disk) == (b"" if queued else bytes(data))
    assert (log.pending_bytes, log.written_end_offset) == ((len(data), 0) if queued else (0, 7))
    log.write_pending()
    assert file_of(disk) == bytes(data)
    assert (log.pending_bytes, log.written_end_offset) == (0, 7)


def test_a_follower_counts_what_is_queued_already() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    log.queue_large(3 * SIZE)
    log.append_as_follower(memoryview(b"".join(bytes(fetched(index)) for index in range(3))), 9)
    log.append_as_follower(fetched(3), 9)
    assert (file_of(disk), log.pending_bytes) == (b"", 4 * SIZE)
    log.write_pending()
    log.append_as_follower(fetched(4), 9)
    assert sizes_in(file_of(disk)) == [SIZE] * 5


def test_what_a_follower_has_queued_may_be_written_late() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    log.queue_large(1)
    done: list[OSError | None] = []
    log.append_as_follower(fetched(0, 3), 9)
    log.write_pending_later(done.append)
    log.append_as_follower(fetched(3, 2), 9)
    assert (written(disk), log.written_end_offset) == ([], 0)
    disk.end_writes()
    assert (written(disk), log.written_end_offset, done) == ([(0, 2)], 3, [None])
    log.write_pending()
    assert written(disk) == [(0, 2), (3, 4)]


def test_a_small_batch_behind_a_late_write_ends_it() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    log.queue_large(3 * SIZE)
    log.append_as_follower(memoryview(b"".join(bytes(fetched(index)) for index in range(3))), 9)
    log.write_pending_later(lambda _: None)
    log.append_as_follower(fetched(3), 9)
    assert log.written_end_offset == 4
    assert sizes_in(file_of(disk)) == [SIZE] * 4


def test_what_is_fetched_for_several_segments_is_queued_for_the_last_alone() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=2 * SIZE))
    log.queue_large(SIZE)
    log.append_as_follower(memoryview(b"".join(bytes(fetched(index)) for index in range(5))), 9)
    assert [written(disk, base) for base in (0, 2, 4)] == [[(0, 0), (1, 1)], [(2, 2), (3, 3)], []]
    assert (log.written_end_offset, log.log_end_offset) == (4, 5)
    log.write_pending()
    assert written(disk, 4) == [(4, 4)]


def test_the_written_end_is_before_the_first_queued_batch_of_very_many() -> None:
    """More are queued than are known in memory once they are written."""
    disk = MemoryDisk()
    log = open_log(disk)
    log.queue_large(1)
    log.append_as_follower(fetched(0), 9)
    log.write_pending_later(lambda _: None)
    log.append_as_follower(memoryview(b"".join(bytes(fetched(index)) for index in range(1, 10_000))), 9)
    disk.end_writes()
    assert (log.written_end_offset, log.log_end_offset) == (1, 10_000)
    assert log.read(1, 1000, 2) is not None
    assert sizes_in(file_of(disk)) == [SIZE] * 10_000

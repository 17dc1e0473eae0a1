"""Open files: a start holds few of them at a time, a crowded disk keeps no index open, and a shortage of descriptors is
never taken for a failed disk.
"""

from __future__ import annotations

import errno
from uuid import UUID

import pytest

from tanist.log.config import LogConfig
from tanist.log.directory import LogDirectory
from tanist.ports import is_descriptor_shortage
from tests.log.log_batches import batch, offsets_in
from tests.log.log_disks import MemoryDisk, MemoryFile
from tests.log.log_rig import FOLDER, add, epochs_of, open_log, read_all, segment_count

ID = UUID(int=5)
SIZE = len(batch([b"value"]))
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=SIZE)
AT_ONCE = 4
"""Descriptors that a load may need beside one for each segment: three indexes, and one for a moment."""


def directory_of(disk: MemoryDisk) -> LogDirectory:
    directory = LogDirectory(disk, "/d")
    directory.load(0, lambda topic: CONFIG)
    return directory


def filled(logs: int, batches: int) -> tuple[MemoryDisk, LogDirectory]:
    disk = MemoryDisk()
    directory = directory_of(disk)
    for number in range(logs):
        log = directory.create_log("t", number, ID, CONFIG, 0)
        for _ in range(batches):
            add(log)
        log.write_pending()
    return disk, directory


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_hundred_killed_logs_are_recovered_with_hardly_more_descriptors_than_logs(batches: int) -> None:
    disk, _ = filled(100, batches)
    disk = disk.copy()
    disk.descriptors = 100 + AT_ONCE
    directory = directory_of(disk)
    assert len(directory.logs) == 100
    assert {log.log_end_offset for log in directory.logs.values()} == {batches}
    assert all(log.recovery.segments_scanned == 1 for log in directory.logs.values())
    assert disk.open_files == 100


def test_a_hundred_stopped_logs_are_opened_with_hardly_more_descriptors_than_logs() -> None:
    disk, directory = filled(100, 3)
    directory.shutdown_cleanly(1, {})
    assert disk.open_files == 0
    disk.descriptors = 100 + AT_ONCE
    assert {log.log_end_offset for log in directory_of(disk).logs.values()} == {3}
    assert disk.open_files == 100


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_of_many_segments_has_one_open_file_for_each(clean: bool) -> None:
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    for number in range(120):
        add(log, epoch=number // 50, producer_id=9, producer_epoch=0, sequence=number)
    if clean:
        log.close()
    else:
        log.write_pending()
    disk = disk.copy()
    for name in [name for name in disk.files if name.endswith(".snapshot")]:
        del disk.files[name]  # so that a clean start, too, walks through all segments, for the producers
    disk.descriptors = 30 + AT_ONCE
    log = open_log(disk, CONFIG, clean=clean)
    assert (segment_count(log), log.log_end_offset, epochs_of(log)) == (30, 120, [(0, 0), (1, 50), (2, 100)])
    assert log.producers.entries[9].next_sequence == 120
    assert disk.open_files == 30


def test_on_a_crowded_disk_no_index_stays_open() -> None:
    disk = MemoryDisk()
    disk.crowded_at = 0
    log = open_log(disk, CONFIG)
    for number in range(40):
        add(log, timestamp=1_000 + number)
        log.write_pending()
        assert disk.open_files == segment_count(log)
    data = read_all(log)
    assert [first for first, *_ in offsets_in(data)] == list(range(40))
    for number in range(40):
        found = log.offset_for_timestamp(1_000 + number)
        assert found is not None
        assert found.offset == number
        assert disk.open_files == segment_count(log)
    files = log.unflushed_files()
    assert disk.open_files == segment_count(log) + 2 * (segment_count(log) - 1)
    assert log.bytes_available(0, 40) == len(data)  # looks into indexes that are about to be synced
    for file in files:
        file.read(0, 1)  # an error if it is closed
        disk.sync_now(file)
    log.mark_flushed(40, 0)
    assert disk.open_files == segment_count(log)
    log.truncate_to(18)
    assert log.log_end_offset == 18
    log.close()
    assert disk.open_files == 0


def test_indexes_are_the_same_whether_they_are_kept_open_or_not() -> None:
    kept, crowded = MemoryDisk(), MemoryDisk()
    crowded.crowded_at = 0
    config = LogConfig(index_interval_bytes=SIZE)
    for disk in (kept, crowded):
        log = open_log(disk, config)
        for number in range(1500):  # more entries than wait in memory
            add(log, timestamp=1_000 + number)
            log.write_pending()
        log.truncate_to(1_200)
        add(log, timestamp=9_000)
        log.close()
    assert crowded.content(f"{FOLDER}/{0:020d}.index") == kept.content(f"{FOLDER}/{0:020d}.index")
    assert crowded.content(f"{FOLDER}/{0:020d}.timeindex") == kept.content(f"{FOLDER}/{0:020d}.timeindex")
    assert len(kept.content(f"{FOLDER}/{0:020d}.index")) > 4_096


# -- the shortage


@pytest.mark.parametrize("descriptors", range(40, 100, 7))
def test_a_start_with_too_few_descriptors_is_no_failure_of_the_disk(descriptors: int) -> None:
    disk, _ = filled(100, 3)
    before = disk.copy()
    disk = disk.copy()
    disk.descriptors = descriptors
    directory = LogDirectory(disk, "/d")
    with pytest.raises(OSError) as caught:
        directory.load(0, lambda topic: CONFIG)
    assert is_descriptor_shortage(caught.value)
    assert directory.failed is None
    assert disk.open_files == len(directory.logs)  # and none of the log that could not be opened
    for log in directory.logs.values():
        log.abandon()
    disk.descriptors = 200
    again = directory_of(disk)
    assert {name: read_all(log) for name, log in again.logs.items()} == {
        name: read_all(log) for name, log in directory_of(before).logs.items()
    }


def test_a_new_log_without_a_descriptor_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, directory = filled(3, 1)
    before = set(disk.files)
    open_file = disk.open

    def opening(path: str, *, create: bool = True) -> MemoryFile:
        """The last descriptor is gone once the folder has its first file."""
        if path.endswith(".log"):
            assert "/d/t-3/partition.metadata" in disk.files
            raise OSError(errno.EMFILE, "Too many open files")
        return open_file(path, create=create)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "open", opening)
        with pytest.raises(OSError, match="Too many open files"):
            directory.create_log("t", 3, ID, CONFIG, 0)
    assert directory.failed is None
    assert set(disk.files) == before
    assert directory.create_log("t", 3, ID, CONFIG, 0).log_end_offset == 0


def test_a_failed_disk_is_one_all_the_same() -> None:
    disk, directory = filled(3, 1)
    disk.fail = OSError(errno.EIO, "input/output error")
    with pytest.raises(OSError, match="input/output"):
        directory.create_log("t", 3, ID, CONFIG, 0)
    assert directory.failed is disk.fail


def test_a_shortage_is_one_of_the_process_or_of_the_system() -> None:
    assert is_descriptor_shortage(OSError(errno.EMFILE, "x"))
    assert is_descriptor_shortage(OSError(errno.ENFILE, "x"))
    assert not is_descriptor_shortage(OSError(errno.EIO, "x"))
    assert not is_descriptor_shortage(OSError("without a number"))
    assert not is_descriptor_shortage(ValueError(errno.EMFILE))

"""Bugs of disks: writes that fail, and files that a loss of power leaves empty or half."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tanist.lab.mutations.patching import Patch, fixed
from tanist.log import log as log_module
from tanist.log.appender import Appender
from tanist.log.checkpoints import decode_partition_metadata
from tanist.log.config import LogConfig
from tanist.log.directory import LogDirectory
from tanist.log.recovery import LogLoader
from tanist.log.segments import Segments
from tanist.log.topic_id import read_or_write_topic_id
from tanist.log.torn import as_failure
from tanist.wire.errors import ErrorCode
from tanist.wire.schema import ZERO_UUID
from tests.field.catalogue import bug
from tests.log.log_batches import batch
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, epochs_of, open_log, segment_count
from tests.log.test_log_directory import CONFIG, MARK, filled, loaded

SIZE = len(batch([b"value"]))
LEFT = (b"", bytes(20))
"""What a file system may leave of a small file that was written and renamed, and not synced."""


def _empty_is_none() -> tuple[Patch, ...]:
    read = LogLoader._read_epochs

    def believing(loader: LogLoader, names: set[str]) -> bool:
        clean, loader._clean = loader._clean, True
        try:
            return read(loader, names)
        finally:
            loader._clean = clean

    return (Patch(LogLoader, "_read_epochs", believing),)


@bug("KAFKA-16541, KAFKA-15312", planted=_empty_is_none, was_here=True)
def test_an_epoch_checkpoint_that_a_loss_of_power_has_emptied_is_made_anew() -> None:
    """The leader epoch checkpoint was renamed without a sync, and a loss of power could empty it."""
    for content in LEFT:
        disk = MemoryDisk()
        log = open_log(disk, LogConfig(segment_bytes=2 * SIZE))
        for number in range(9):
            add(log, epoch=number // 3)
        end = log.log_end_offset
        for file in log.unflushed_files():
            disk.sync_now(file)
        log.mark_flushed(end)
        point, epochs = log.recovery_point, epochs_of(log)
        assert (point, epochs) == (8, [(0, 0), (1, 3), (2, 6)])
        disk.write_file(f"{FOLDER}/leader-epoch-checkpoint", content)
        again = open_log(disk.copy(), LogConfig(segment_bytes=2 * SIZE), recovery_point=point, clean=False)
        assert epochs_of(again) == epochs, content


def _must_be_whole(disk: Any, path: str, topic_id: UUID) -> UUID:
    """As it was: only a log that is new may have no file."""
    if topic_id != ZERO_UUID and not disk.exists(path):
        return read_or_write_topic_id(disk, path, topic_id)
    return decode_partition_metadata(disk.read_file(path), path)


@bug("KAFKA-16814", planted=fixed(log_module, "read_or_write_topic_id", _must_be_whole))
def test_a_log_whose_topic_id_a_loss_of_power_has_taken_does_not_stop_the_broker() -> None:
    """A broker did not start when the file with a log's topic id was missing, as after an unclean stop."""
    for content in LEFT:
        disk, directory = filled()
        for log in directory.logs.values():
            log.write_pending()
        disk = disk.copy()
        disk.write_file("/d/t-0/partition.metadata", content)
        try:
            again = loaded(disk)
        except OSError as error:
            pytest.fail(str(error))
        assert {str(each) for each in again.logs} == {"t-1", "my-topic.v2-0"}


def _goes_on() -> tuple[Patch, ...]:
    def raises_only(appender: Appender, error: Exception) -> None:
        raise as_failure(error)

    return (Patch(Appender, "_give_up", raises_only),)


@bug("KAFKA-10778", planted=_goes_on)
def test_a_log_whose_write_has_failed_takes_no_more() -> None:
    """After a failed write the log took further appends until it was offline."""
    disk = MemoryDisk()
    log = open_log(disk)
    add(log, 3)
    log.write_pending()
    log.append_as_leader(batch([b"lost"]), 0, 0, 1_000)
    disk.fail = OSError(28, "no space left")
    with pytest.raises(OSError, match="no space"):
        log.write_pending()
    disk.fail = None
    assert log.append_as_leader(batch([b"later"]), 0, 0, 1_000).error == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.failed is not None


@bug(
    "KAFKA-10471, KAFKA-15375",
    planted=fixed(LogDirectory, "_forget_clean_shutdown", lambda directory: None),
    mutations=("A4",),
)
def test_a_start_that_dies_while_it_loads_was_no_clean_stop() -> None:
    """The mark of a clean stop outlived the loading of logs, so a broker that died meanwhile counted as stopped
    cleanly.
    """
    disk, directory = filled()
    directory.shutdown_cleanly(77, {})
    starting = LogDirectory(disk, "/d")
    assert starting.read_broker_epoch() == 77
    starting.open_log(starting.begin_load()[0], CONFIG, 0, None)
    after = disk.copy()
    assert LogDirectory(after, "/d").read_broker_epoch() is None, "the broker dies here"
    assert not loaded(after).was_clean
    assert MARK not in after.files


def _all_that_is_old(segments: Segments, config: Any, start: int, end: int, high_watermark: int, *_: int) -> int:
    return len(segments)


@bug("KAFKA-5634", planted=fixed(log_module, "expired_segments", _all_that_is_old), mutations=("trim-committed",))
def test_retention_stops_at_the_high_watermark() -> None:
    """Retention deleted segments above the high watermark."""
    log = open_log(config=LogConfig(segment_bytes=2 * SIZE, retention_ms=5_000))
    for number in range(10):
        add(log, timestamp=number)
    log.delete_old_segments(0, 10**9, 5)
    assert (log.log_start_offset, segment_count(log)) == (4, 3)

"""A `log.dirs` entry: what is loaded, what is written, and that a crash never leaves a mark that lies."""

from __future__ import annotations

from uuid import UUID

import pytest

from tanist.events.storage import CheckpointDamaged, NamelessLogDropped
from tanist.log.checkpoints import previous_broker_epoch
from tanist.log.config import LogConfig
from tanist.log.directory import LogDirectory
from tanist.log.log import Log
from tests.log.log_batches import batch, offsets_in
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import add, read_all

ID = UUID(int=5)
CONFIG = LogConfig()
MARK = "/d/.kafka_cleanshutdown"
POINTS = "/d/recovery-point-offset-checkpoint"


def loaded(disk: MemoryDisk, path: str = "/d") -> LogDirectory:
    directory = LogDirectory(disk, path)
    directory.load(0, lambda topic: CONFIG)
    return directory


def filled() -> tuple[MemoryDisk, LogDirectory]:
    disk = MemoryDisk()
    directory = loaded(disk)
    for topic, partition, count in (("t", 0, 3), ("t", 1, 5), ("my-topic.v2", 0, 1)):
        add(directory.create_log(topic, partition, ID, CONFIG, 0), count)
    return disk, directory


def ends(directory: LogDirectory) -> dict[str, int]:
    return {str(log.topic_partition): log.log_end_offset for log in directory.logs.values()}


def test_a_clean_stop_and_start() -> None:
    disk, directory = filled()
    directory.checkpoints.write_high_watermarks({("t", 0): 2, ("t", 1): 5})
    directory.shutdown_cleanly(77, {})
    assert disk.content(MARK) == b'{"version":0,"brokerEpoch":77}'
    assert disk.content(POINTS) == b"0\n3\nmy-topic.v2 0 1\nt 0 3\nt 1 5\n"
    assert disk.content("/d/replication-offset-checkpoint") == b"0\n2\nt 0 2\nt 1 5\n"
    assert disk.content("/d/log-start-offset-checkpoint") == b"0\n0\n"
    assert disk.open_files == 0
    disk.journal.clear()
    again = LogDirectory(disk, "/d")
    assert again.read_broker_epoch() == 77
    assert {str(log.topic_partition) for log in again.load(0, lambda topic: CONFIG)} == {
        "t-0",
        "t-1",
        "my-topic.v2-0",
    }
    assert again.was_clean
    assert ends(again) == {"t-0": 3, "t-1": 5, "my-topic.v2-0": 1}
    assert all(log.recovery.segments_scanned == 0 for log in again.logs.values())
    assert all(log.topic_id == ID for log in again.logs.values())
    assert again.checkpoints.high_watermark("t", 1) == 5
    assert again.checkpoints.high_watermark("my-topic.v2", 0) == 0


def test_the_mark_is_made_useless_before_anything_else_is_touched() -> None:
    """A4: a removal may be undone by a loss of power; an empty file says nothing."""
    disk, directory = filled()
    directory.shutdown_cleanly(77, {})
    disk.journal.clear()
    loaded(disk)
    assert disk.journal[:2] == [f"sync {MARK}", f"remove {MARK}"]
    disk.write_file(MARK, b"")
    assert LogDirectory(disk, "/d").read_broker_epoch() is None
    assert not loaded(disk).was_clean


def test_without_the_mark_logs_are_recovered() -> None:
    disk, directory = filled()
    for log in directory.logs.values():
        log.write_pending()
    disk = disk.copy()
    disk.files["/d/t-0/00000000000000000000.log"].data += b"torn"
    again = loaded(disk)
    assert not again.was_clean
    assert again.logs["t", 0].recovery.bytes_cut == 4
    assert ends(again) == {"t-0": 3, "t-1": 5, "my-topic.v2-0": 1}


def test_a_stop_that_fails_leaves_no_mark() -> None:
    disk, directory = filled()
    disk.fail = OSError(28, "no space left")
    with pytest.raises(OSError, match="no space"):
        directory.shutdown_cleanly(77, {})
    assert directory.failed is disk.fail
    assert MARK not in disk.files


def test_recovery_points_decide_what_is_read() -> None:
    disk = MemoryDisk()
    directory = loaded(disk)
    size = len(batch([b"value"]))
    log = directory.create_log("t", 0, ID, LogConfig(segment_bytes=2 * size), 0)
    for _ in range(6):
        add(log)
    end = log.log_end_offset
    for file in log.unflushed_files():
        disk.sync_now(file)
    log.mark_flushed(end)
    directory.checkpoints.write_recovery_points()
    again = loaded(disk.copy())
    assert again.logs["t", 0].recovery.segments_scanned == 1


def test_what_was_repaired_is_looked_at_again_until_it_is_durable() -> None:
    disk, directory = filled()
    directory.shutdown_cleanly(1, {})
    disk.remove(MARK)
    assert b"t 1 5\n" in disk.content(POINTS)
    loaded(disk)
    assert b"t 1 0\n" in disk.content(POINTS)


@pytest.mark.parametrize("data", [b"nonsense", b"0\n5\n", b"\xff\xff"])
def test_a_damaged_recovery_point_checkpoint_costs_a_longer_recovery(data: bytes) -> None:
    disk, directory = filled()
    for log in directory.logs.values():
        log.write_pending()
    disk = disk.copy()
    disk.write_file(POINTS, data)
    again = loaded(disk)
    (damaged,) = again.complaints
    assert isinstance(damaged, CheckpointDamaged)
    assert "recovery-point-offset-checkpoint" in damaged.reason
    assert all(log.recovery.segments_scanned == 1 for log in again.logs.values())


def test_the_log_start_offset_survives() -> None:
    disk, directory = filled()
    directory.logs["t", 1].advance_log_start_offset(4)
    directory.checkpoints.write_log_starts()
    assert disk.content("/d/log-start-offset-checkpoint") == b"0\n1\nt 1 4\n"
    again = loaded(disk.copy())
    assert again.logs["t", 1].log_start_offset == 4


def test_a_lowered_recovery_point_is_on_disk_before_the_cut() -> None:
    disk, directory = filled()
    log = directory.logs["t", 1]
    add(log, 2)
    for file in log.unflushed_files():
        disk.sync_now(file)
    log.mark_flushed(7)
    directory.checkpoints.write_recovery_points()
    assert b"t 1 6\n" in disk.content(POINTS), "within the active segment, whose indexes are not durable"
    disk.journal.clear()
    log.truncate_to(6)
    assert f"sync {POINTS}" in disk.journal
    assert b"t 1 4\n" in disk.content(POINTS)


def test_a_checkpoint_that_says_the_same_is_not_written_again() -> None:
    disk, directory = filled()
    directory.checkpoints.write_recovery_points()
    directory.checkpoints.write_high_watermarks({("t", 0): 1})
    disk.journal.clear()
    directory.checkpoints.write_recovery_points()
    directory.checkpoints.write_high_watermarks({("t", 0): 1})
    assert disk.journal == []
    directory.checkpoints.write_high_watermarks({("t", 0): 2})
    assert disk.journal == ["write /d/replication-offset-checkpoint"]


def test_high_watermarks_that_nobody_names_are_kept() -> None:
    disk, directory = filled()
    directory.checkpoints.write_high_watermarks({("t", 0): 2, ("t", 1): 5})
    directory.shutdown_cleanly(1, {})
    again = loaded(disk)
    again.checkpoints.write_high_watermarks({("t", 0): 3})
    assert disk.content("/d/replication-offset-checkpoint") == b"0\n2\nt 0 3\nt 1 5\n"
    again.delete_log("t", 1)
    again.checkpoints.write_high_watermarks({("t", 0): 3})
    assert disk.content("/d/replication-offset-checkpoint") == b"0\n1\nt 0 3\n"


def test_after_a_clean_stop_a_marked_folder_excuses_no_missing_log() -> None:
    """It is of an earlier log of that name: the replica was moved away, and came back."""
    disk, directory = filled()
    directory.delete_log("t", 1)
    add(directory.create_log("t", 1, ID, CONFIG, 0), 4)
    directory.shutdown_cleanly(1, {})
    for path in disk.list("/d/t-1"):
        disk.remove(f"/d/t-1/{path}")
    disk.remove("/d/t-1")
    assert {str(log): what for log, what in loaded(disk).lost.items()} == {
        "t-1": "it had reached offset 4, and is gone"
    }


def test_after_an_unclean_stop_a_marked_folder_is_the_one_that_a_checkpoint_names() -> None:
    disk, directory = filled()
    directory.checkpoints.write({})
    directory.delete_log("t", 1)
    assert loaded(disk).lost == {}


def test_deletion_renames_and_the_next_start_finds_the_rest() -> None:
    disk, directory = filled()
    assert directory.delete_log("nobody", 3) == []
    [path] = directory.delete_log("t", 1)
    assert path == f"/d/t-1.{ID.hex}-delete"
    assert disk.exists(f"{path}/00000000000000000000.log")
    assert not disk.exists("/d/t-1")
    # The same topic placed here again, and taken away again, before the first folder is gone.
    directory.create_log("t", 1, ID, CONFIG, 0)
    [second] = directory.delete_log("t", 1)
    assert second not in (path, "/d/t-1")
    directory.shutdown_cleanly(1, {})
    again = loaded(disk)
    assert again.paths_to_delete == sorted([path, second])
    assert ends(again) == {"t-0": 3, "my-topic.v2-0": 1}


def test_a_long_topic_name_still_makes_a_folder_name() -> None:
    disk = MemoryDisk()
    directory = loaded(disk)
    topic = "x" * 249
    directory.create_log(topic, 12345, ID, CONFIG, 0)
    [path] = directory.delete_log(topic, 12345)
    assert len(path.removeprefix("/d/")) == 255
    assert path.endswith(f"-12345.{ID.hex}-delete")


def test_what_is_no_log_is_left_alone() -> None:
    disk, directory = filled()
    directory.shutdown_cleanly(1, {})
    for name in (
        "__cluster_metadata-0",
        "t-2.0123abcd-future",
        "t-2.0123abcd-stray",
        "lost+found",
        "t-01",
        "-1",
        "t-x",
    ):
        disk.make_directory(f"/d/{name}")
        disk.write_file(f"/d/{name}/00000000000000000000.log", b"?")
    disk.write_file("/d/t-7", b"a file, no folder")
    again = loaded(disk)
    assert ends(again) == {"t-0": 3, "t-1": 5, "my-topic.v2-0": 1}
    assert again.paths_to_delete == []


def test_a_log_whose_topic_cannot_be_reported_takes_the_directory_down() -> None:
    """To guess would mean to delete it as another topic's."""
    disk, directory = filled()
    directory.shutdown_cleanly(1, {})
    disk.write_file("/d/t-0/partition.metadata", b"nonsense")
    again = LogDirectory(disk, "/d")
    with pytest.raises(OSError, match=r"partition.metadata.*move /d/t-0 away"):
        again.load(0, lambda topic: CONFIG)
    assert again.failed is not None


def test_a_folder_without_partition_metadata_is_loaded() -> None:
    disk, directory = filled()
    directory.shutdown_cleanly(1, {})
    disk.remove("/d/t-0/partition.metadata")
    again = loaded(disk)
    assert again.logs["t", 0].topic_id == UUID(int=0)
    again.logs["t", 0].assign_topic_id(ID)
    assert disk.exists("/d/t-0/partition.metadata")


def test_a_log_is_made_once() -> None:
    _, directory = filled()
    with pytest.raises(ValueError, match="t-0"):
        directory.create_log("t", 0, ID, CONFIG, 0)


def test_what_a_failed_creation_left_behind_is_taken_over() -> None:
    _, directory = filled()
    directory.logs["t", 0].write_pending()
    log = directory.logs.pop(("t", 0))
    again = directory.create_log("t", 0, ID, CONFIG, 0)
    assert again.log_end_offset == 3
    assert offsets_in(read_all(again)) == offsets_in(read_all(log))


@pytest.mark.parametrize(
    ("epochs", "previous"),
    [([7, 7], 7), ([7, 8], -1), ([7, None], -1), ([None], -1)],
)
def test_previous_broker_epoch(epochs: list[int | None], previous: int) -> None:
    """Rule 87: all directories, all readable, all agreeing."""
    found = []
    for number, epoch in enumerate(epochs):
        disk = MemoryDisk()
        directory = loaded(disk, f"/d{number}")
        directory.shutdown_cleanly(7 if epoch is None else epoch, {})
        if epoch is None:
            disk.remove(f"/d{number}/.kafka_cleanshutdown")
        found.append(LogDirectory(disk, f"/d{number}").read_broker_epoch())
    assert previous_broker_epoch(found) == previous


HIGH_WATERMARKS = "/d/replication-offset-checkpoint"


def test_a_high_watermark_does_not_outlive_the_records_that_a_loss_of_power_took() -> None:
    """Else the records that take their place would count as committed at the next start (seed 295877075592)."""
    disk, directory = filled()
    directory.checkpoints.write_high_watermarks({("t", 0): 3, ("t", 1): 5})
    for log in directory.logs.values():
        log.write_pending()
    lost = disk.copy()
    lost.files["/d/t-1/00000000000000000000.log"].data.clear()  # not synced, unlike the checkpoint
    again = loaded(lost)
    assert ends(again)["t-1"] == 0
    assert f"sync {HIGH_WATERMARKS}" in lost.journal
    assert lost.content(HIGH_WATERMARKS) == b"0\n2\nt 0 3\nt 1 0\n"
    add(again.logs["t", 1], 2)
    again.logs["t", 1].write_pending()
    assert loaded(lost.copy()).checkpoints.high_watermark("t", 1) == 0


def test_a_high_watermark_goes_down_before_its_records_are_cut() -> None:
    disk, directory = filled()
    directory.checkpoints.write_high_watermarks({("t", 0): 2, ("t", 1): 5})
    log = directory.logs["t", 1]
    disk.journal.clear()
    log.truncate_to(4)
    assert f"sync {HIGH_WATERMARKS}" in disk.journal
    assert disk.content(HIGH_WATERMARKS) == b"0\n2\nt 0 2\nt 1 0\n"  # the batch that has offset 4 goes as a whole
    add(log, 1)
    disk.journal.clear()
    log.truncate_to(0)  # nothing that counts as committed
    assert not any(HIGH_WATERMARKS in line for line in disk.journal)


def test_a_new_log_does_not_inherit_a_high_watermark() -> None:
    disk, directory = filled()
    directory.checkpoints.write_high_watermarks({("t", 0): 2, ("t", 1): 5})
    directory.delete_log("t", 1)
    directory.create_log("t", 1, ID, CONFIG, 0)
    assert disk.content(HIGH_WATERMARKS) == b"0\n1\nt 0 2\n"


def test_the_topic_id_of_a_new_log_is_durable_before_its_records() -> None:
    disk, directory = filled()
    log = directory.logs["t", 0]
    path = "/d/t-0/partition.metadata"
    assert f"write {path}" in disk.journal
    assert f"sync {path}" not in disk.journal
    assert not log.topic_id_durable
    log.unflushed_files()
    assert f"sync {path}" in disk.journal
    assert log.topic_id_durable


def test_a_topic_id_that_is_gone_is_written_again() -> None:
    disk, directory = filled()
    path = "/d/t-0/partition.metadata"
    written = disk.content(path)
    disk.remove(path)
    directory.logs["t", 0].unflushed_files()
    assert disk.content(path) == written


@pytest.mark.parametrize("left", [None, b"", bytes(40)])
def test_records_without_a_durable_topic_id_are_nobodys(left: bytes | None) -> None:
    """A loss of power has kept them and not the id: the topic of that name may be another one by now (A50)."""
    disk, directory = filled()
    for log in directory.logs.values():
        log.write_pending()
    path = "/d/t-0/partition.metadata"
    if left is None:
        del disk.files[path]
    else:
        disk.files[path].data[:] = left
    again = loaded(disk)
    assert ends(again) == {"t-1": 5, "my-topic.v2-0": 1}
    assert again.complaints == [NamelessLogDropped("/d/t-0")]
    (renamed,) = again.paths_to_delete
    assert renamed.startswith("/d/t-0.")
    assert again.create_log("t", 0, UUID(int=6), CONFIG, 0).log_end_offset == 0


def test_records_that_were_durable_stay_even_if_their_topic_is_not_known() -> None:
    disk, directory = filled()
    directory.shutdown_cleanly(1, {})
    disk.remove("/d/t-0/partition.metadata")
    assert ends(loaded(disk))["t-0"] == 3


def test_checkpoints_that_have_not_changed_are_not_written() -> None:
    disk, directory = filled()
    directory.checkpoints.write_high_watermarks({("t", 0): 2})
    directory.checkpoints.write_recovery_points()
    before = len(disk.journal)
    directory.checkpoints.write_high_watermarks({("t", 0): 2})
    directory.checkpoints.write_recovery_points()
    assert len(disk.journal) == before
    directory.delete_log("t", 0)
    directory.checkpoints.write_high_watermarks({})
    assert disk.content("/d/replication-offset-checkpoint") == b"0\n0\n"


def flushed(disk: MemoryDisk, log: Log) -> None:
    for file in log.unflushed_files():
        disk.sync_now(file)
    log.mark_flushed(log.log_end_offset)


@pytest.mark.parametrize("killed", [False, True])
def test_a_new_log_does_not_inherit_a_recovery_point(killed: bool) -> None:
    """Else a loss of power leaves holes in segments that the next start does not read."""
    disk, directory = filled()
    flushed(disk, directory.logs["t", 1])
    directory.checkpoints.write_recovery_points()
    assert disk.content(POINTS) == b"0\n3\nmy-topic.v2 0 0\nt 0 0\nt 1 4\n"
    directory.delete_log("t", 1)
    if killed:
        directory = loaded(disk)
    disk.journal.clear()
    log = directory.create_log("t", 1, ID, CONFIG, 0)
    assert f"sync {POINTS}" in disk.journal
    add(log, 7)
    log.write_pending()
    assert b"t 1" not in disk.content(POINTS)


def test_a_checkpoint_that_forgets_a_deleted_log_is_durable() -> None:
    """A run that is killed after it, and a loss of power: an older one would count for the next log of that name."""
    disk, directory = filled()
    flushed(disk, directory.logs["t", 1])
    directory.checkpoints.write_recovery_points()
    directory.checkpoints.write_high_watermarks({("t", 0): 2, ("t", 1): 5})
    assert not {f"sync {POINTS}", f"sync {HIGH_WATERMARKS}"} & set(disk.journal)
    directory.delete_log("t", 1)
    directory.checkpoints.write_recovery_points()
    directory.checkpoints.write_high_watermarks({("t", 0): 2})
    assert {f"sync {POINTS}", f"sync {HIGH_WATERMARKS}"} <= set(disk.journal)
    disk.journal.clear()
    directory.checkpoints.write_high_watermarks({("t", 0): 3})
    directory.create_log("t", 1, ID, CONFIG, 0)
    assert not {f"sync {POINTS}", f"sync {HIGH_WATERMARKS}"} & set(disk.journal)


LOG_STARTS = "/d/log-start-offset-checkpoint"


def test_a_new_log_does_not_inherit_a_log_start() -> None:
    """Else a crash before the next checkpoint would take its records, as if they had been deleted on request."""
    disk, directory = filled()
    directory.logs["t", 1].advance_log_start_offset(4)
    directory.checkpoints.write_log_starts()
    directory.delete_log("t", 1)
    log = directory.create_log("t", 1, ID, CONFIG, 0)
    add(log, 2)
    log.write_pending()
    assert disk.content(LOG_STARTS) == b"0\n0\n"
    again = loaded(disk.copy()).logs["t", 1]
    assert (again.log_start_offset, again.log_end_offset) == (0, 2)


def test_log_starts_are_written_again_only_if_they_have_moved() -> None:
    """Each write is synced on the event loop, which waits for a busy disk."""
    disk, directory = filled()
    directory.logs["t", 1].advance_log_start_offset(4)
    directory.checkpoints.write_log_starts()
    assert f"sync {LOG_STARTS}" in disk.journal
    disk.journal.clear()
    directory.checkpoints.write_log_starts()
    assert not any(LOG_STARTS in line for line in disk.journal)
    directory.logs["t", 1].advance_log_start_offset(5)
    directory.checkpoints.write_log_starts()
    assert f"sync {LOG_STARTS}" in disk.journal
    again = loaded(disk.copy())
    again._disk.journal.clear()  # type: ignore[attr-defined]
    again.checkpoints.write_log_starts()
    assert f"sync {LOG_STARTS}" in again._disk.journal, "a former run may have been killed before its sync"  # type: ignore[attr-defined]


def test_a_log_start_goes_down_before_its_log_is_cut_below_it() -> None:
    """After an unclean election the records that follow are not those that were deleted."""
    disk, directory = filled()
    log = directory.logs["t", 1]
    add(log, 3)
    log.advance_log_start_offset(6)
    directory.checkpoints.write_log_starts()
    assert disk.content(LOG_STARTS) == b"0\n1\nt 1 6\n"
    disk.journal.clear()
    log.truncate_to(5)
    assert f"sync {LOG_STARTS}" in disk.journal
    assert disk.content(LOG_STARTS) == b"0\n1\nt 1 5\n"
    add(log, 4)
    log.write_pending()
    again = loaded(disk.copy()).logs["t", 1]
    assert (again.log_start_offset, again.log_end_offset) == (5, 9)
    disk.journal.clear()
    log.truncate_to(9)  # above its start
    log.truncate_to(5)  # at its start
    assert not any(LOG_STARTS in line for line in disk.journal)


def test_the_checkpoints_of_every_few_seconds_are_written_off_the_loop() -> None:
    disk, directory = filled()
    flushed(disk, directory.logs["t", 1])
    directory.checkpoints.write({("t", 0): 2, ("t", 1): 5})
    disk.journal.clear()
    directory.checkpoints.write({("t", 0): 3, ("t", 1): 5})
    assert disk.journal == [], "the last ones are still being written"
    disk.write_late()
    assert disk.content(HIGH_WATERMARKS) == b"0\n2\nt 0 2\nt 1 5\n"
    assert disk.content(POINTS) == b"0\n3\nmy-topic.v2 0 0\nt 0 0\nt 1 4\n"
    directory.checkpoints.write({("t", 0): 3, ("t", 1): 5})
    disk.write_late()
    assert disk.content(HIGH_WATERMARKS) == b"0\n2\nt 0 3\nt 1 5\n"


def test_a_high_watermark_that_is_still_being_written_goes_down_before_its_records_are_cut() -> None:
    """Rule 117: what is given to a thread may be in the file at any time from then on."""
    disk, directory = filled()
    directory.checkpoints.write({("t", 0): 2, ("t", 1): 5})
    disk.journal.clear()
    directory.logs["t", 1].truncate_to(4)
    assert f"sync {HIGH_WATERMARKS}" in disk.journal
    disk.write_late()
    assert disk.content(HIGH_WATERMARKS) == b"0\n2\nt 0 2\nt 1 0\n"


def test_a_recovery_point_that_is_still_being_written_goes_down_before_its_log_is_made_anew() -> None:
    disk, directory = filled()
    flushed(disk, directory.logs["t", 1])
    directory.checkpoints.write({})
    directory.delete_log("t", 1)
    disk.journal.clear()
    directory.create_log("t", 1, ID, CONFIG, 0)
    assert f"sync {POINTS}" in disk.journal
    disk.write_late()
    assert b"t 1" not in disk.content(POINTS)


def test_a_disk_that_fails_off_the_loop_takes_the_directory_offline() -> None:
    disk, directory = filled()
    failures: list[OSError] = []
    directory.checkpoints.late_failure = failures.append
    directory.checkpoints.write({("t", 0): 2})
    disk.fail = OSError(5, "input/output error")
    disk.write_late()
    assert failures
    assert directory.failed is failures[0]

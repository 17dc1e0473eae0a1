"""Opening a folder: a clean stop is believed; after any other, what is torn is cut and what is lost is rebuilt."""

from __future__ import annotations

import struct
import zlib

import pytest

from tanist.log.config import LogConfig
from tanist.log.log import InconsistentTopicId, Log, RecoveryReport
from tanist.log.producer_snapshots import encode_snapshot
from tanist.log.producers import ProducerEntry
from tanist.log.scan import CHUNK_BYTES, UnsupportedFormatError
from tanist.wire.ids import ZERO_UUID
from tests.log.log_batches import TRANSACTIONAL, batch, marker, offsets_in
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, ID, add, epochs_of, open_log, read_all

SIZE = len(batch([b"value"]))
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=SIZE)


def path(base_offset: int, suffix: str = ".log") -> str:
    return f"{FOLDER}/{base_offset:020d}{suffix}"


def written(count: int = 10, config: LogConfig = CONFIG) -> tuple[MemoryDisk, Log]:
    disk = MemoryDisk()
    log = open_log(disk, config)
    for number in range(count):
        add(log, epoch=number // 3, timestamp=1_000 + number, producer_id=9, producer_epoch=0, sequence=number)
    log.write_pending()
    return disk, log


def crashed(count: int = 10, config: LogConfig = CONFIG) -> MemoryDisk:
    """What a process that was killed leaves: all writes, no last words."""
    disk, _ = written(count, config)
    return disk.copy()


def stopped(count: int = 10, config: LogConfig = CONFIG) -> MemoryDisk:
    disk, log = written(count, config)
    log.close()
    return disk.copy()


def files(disk: MemoryDisk) -> dict[str, bytes]:
    return {name: disk.content(name) for name in disk.files}


# -- a new log


def test_a_new_folder_to_the_byte() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    add(log, 2, epoch=7)
    log.close()
    assert {name.removeprefix(f"{FOLDER}/") for name in files(disk)} == {
        f"{0:020d}.log",
        f"{0:020d}.index",
        f"{0:020d}.timeindex",
        f"{2:020d}.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    }
    assert disk.content(f"{FOLDER}/partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ"
    assert disk.content(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n1\n7 0\n"
    assert disk.content(path(0, ".timeindex")) == struct.pack(">qi", 1_000, 1)
    assert disk.content(path(0, ".index")) == b""
    assert disk.content(path(2, ".snapshot")) == encode_snapshot([])
    assert disk.open_files == 0


def test_a_folder_of_another_topic_is_refused() -> None:
    disk = MemoryDisk()
    open_log(disk).close()
    other = ID.__class__(int=6)
    with pytest.raises(InconsistentTopicId) as caught:
        Log.open(disk, FOLDER, "t", 0, other, CONFIG, 0, recovery_point=0, clean=True)
    assert (caught.value.actual, caught.value.expected) == (ID, other)
    log = Log.open(disk, FOLDER, "t", 0, ZERO_UUID, CONFIG, 0, recovery_point=0, clean=True)
    assert log.topic_id == ID
    with pytest.raises(InconsistentTopicId):
        log.assign_topic_id(other)


def test_an_unknown_topic_id_can_be_reported_later() -> None:
    disk = MemoryDisk()
    log = Log.open(disk, FOLDER, "t", 0, ZERO_UUID, CONFIG, 0, recovery_point=0, clean=True)
    assert log.topic_id == ZERO_UUID
    assert not disk.exists(f"{FOLDER}/partition.metadata")
    log.assign_topic_id(ID)
    assert log.topic_id == ID
    assert disk.exists(f"{FOLDER}/partition.metadata")


# -- after a clean stop


def test_after_a_clean_stop_everything_is_as_it_was_and_nothing_is_read() -> None:
    disk = stopped()
    before = files(disk)
    disk.reads = 0
    log = open_log(disk, CONFIG, recovery_point=10)
    assert log.recovery == RecoveryReport()
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 10, 10)
    assert epochs_of(log) == [(0, 0), (1, 3), (2, 6), (3, 9)]
    assert log.producers.entries[9].next_sequence == 10
    assert disk.reads < 12
    assert files(disk) == before
    assert offsets_in(read_all(log)) == [(o, o, o // 3) for o in range(10)]
    add(log, epoch=3, producer_id=9, producer_epoch=0, sequence=10)
    assert log.log_end_offset == 11


def test_stopping_again_changes_nothing() -> None:
    disk = stopped()
    before = files(disk)
    open_log(disk, CONFIG, recovery_point=10).close()
    assert files(disk) == before


def test_files_to_the_byte_do_not_depend_on_restarts() -> None:
    """Indexes go on where they were, so the same appends give the same files."""
    plain, again = stopped(20), MemoryDisk()
    for start in range(0, 20, 5):
        log = open_log(again, CONFIG, recovery_point=start)
        for number in range(start, start + 5):
            add(log, epoch=number // 3, timestamp=1_000 + number, producer_id=9, producer_epoch=0, sequence=number)
        log.close()
    kinds = (".log", ".index", "leader-epoch-checkpoint", "partition.metadata")
    assert {n: c for n, c in files(again).items() if n.endswith(kinds)} == {
        n: c for n, c in files(plain).items() if n.endswith(kinds)
    }


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_made_anew(suffix: str) -> None:
    disk = stopped()
    before = files(disk)
    disk.remove(path(4, suffix))
    log = open_log(disk, CONFIG, recovery_point=10)
    assert log.recovery.segments_scanned == 2
    assert log.recovery.bytes_cut == 0
    assert f"{4:020d}{suffix} is missing" in log.recovery.reasons
    log.close()
    assert files(disk) == before


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_corrupt_index_is_made_anew_when_it_is_met(suffix: str) -> None:
    disk = stopped()
    before = files(disk)
    disk.files[path(0, suffix)].data += b"xyz"
    log = open_log(disk, CONFIG, recovery_point=10)
    assert log.offset_for_timestamp(1_001) == (1_001, 1, 0)
    log.close()
    assert files(disk) == before


def test_a_corrupt_index_of_the_active_segment() -> None:
    disk = stopped()
    before = files(disk)
    disk.files[path(8, ".index")].data[:] = b"\xff" * 16
    log = open_log(disk, CONFIG, recovery_point=10)
    assert log.log_end_offset == 10
    log.close()
    assert files(disk) == before


def test_apaches_preallocated_indexes() -> None:
    disk = stopped()
    for base in (0, 4, 8):
        disk.files[path(base, ".index")].data += bytes(800)
        disk.files[path(base, ".timeindex")].data += bytes(1200)
    log = open_log(disk, CONFIG, recovery_point=10)
    assert log.log_end_offset == 10
    assert log.max_timestamp() == (1_009, 9, 3)
    add(log, epoch=3, timestamp=2_000)
    log.close()
    assert disk.content(path(8, ".index")) == struct.pack(">ii", 2, 2 * SIZE)


def test_a_clean_stop_that_lies_about_the_last_segment() -> None:
    disk = stopped()
    disk.files[path(8)].data += b"\0" * 30
    log = open_log(disk, CONFIG, recovery_point=10)
    assert (log.log_end_offset, log.recovery.bytes_cut, log.recovery.cut_at_offset) == (10, 30, 10)


# -- after a crash


def test_after_a_crash_everything_is_rebuilt_from_the_batches() -> None:
    log = open_log(crashed(), CONFIG, clean=False)
    assert log.recovery.segments_scanned == 3
    assert log.recovery.bytes_cut == 0
    assert log.recovery.cut_at_offset is None
    assert (log.log_end_offset, log.recovery_point) == (10, 0)
    assert epochs_of(log) == [(0, 0), (1, 3), (2, 6), (3, 9)]
    assert log.producers.entries[9].next_sequence == 10
    log.close()


def test_recovery_gives_the_indexes_of_a_clean_stop() -> None:
    disk = crashed()
    log = open_log(disk, CONFIG, clean=False)
    log.close()
    kinds = (".log", ".index", ".timeindex", "leader-epoch-checkpoint")
    expected = {name: data for name, data in files(stopped()).items() if name.endswith(kinds)}
    assert {name: data for name, data in files(disk).items() if name.endswith(kinds)} == expected


def test_a_recovery_that_finds_all_as_it_should_be_changes_no_file() -> None:
    """A crash soon after a start: to write thousands of logs' files again would take the disk tens of seconds."""
    disk = crashed()
    open_log(disk, CONFIG, clean=False)
    before, inodes, changes = files(disk), dict(disk.files), disk.writes
    log = open_log(disk, CONFIG, clean=False)
    assert log.recovery.segments_scanned == 3
    assert (files(disk), disk.writes) == (before, changes)
    assert all(disk.files[name] is inode for name, inode in inodes.items())
    assert {name.rpartition("/")[2] for name in before if name.endswith(".snapshot")} == {
        f"{offset:020d}.snapshot" for offset in (4, 8, 10)
    }


def test_a_snapshot_that_the_batches_contradict_is_written_again_durably() -> None:
    disk = crashed()
    open_log(disk, CONFIG, clean=False)
    right = files(disk)
    for offset in (8, 10, 99):
        disk.write_file(f"{FOLDER}/{offset:020d}.snapshot", encode_snapshot([ProducerEntry(77, 0)]), sync=True)
    disk.journal.clear()
    log = open_log(disk, CONFIG, clean=False)
    assert list(log.producers.entries) == [9]
    assert files(disk) == right
    assert [line for line in disk.journal if line.startswith(("sync", "write")) and "snapshot" in line] == [
        f"sync {FOLDER}/{offset:020d}.snapshot" for offset in (8, 10)
    ]


def test_an_index_that_the_batches_contradict_is_written_again() -> None:
    disk = crashed()
    log = open_log(disk, CONFIG, clean=False)
    log.close()
    right = files(disk)
    for name in right:
        if name.endswith("index"):
            disk.files[name].data[:] = disk.files[name].data + bytes(range(1, 25))
    open_log(disk, CONFIG, clean=False).close()
    assert files(disk) == right


def test_only_segments_from_the_recovery_point_on_are_read() -> None:
    disk = crashed()
    disk.files[path(0)].data[SIZE + 30] ^= 1
    log = open_log(disk, CONFIG, clean=False, recovery_point=5)
    assert log.recovery.segments_scanned == 2
    assert log.log_end_offset == 10
    assert log.recovery_point == 4, "the indexes that were rebuilt have to be synced again"
    log = open_log(disk, CONFIG, clean=False, recovery_point=3)
    assert log.recovery.segments_scanned == 1
    assert (log.log_end_offset, log.recovery.cut_at_offset) == (1, 1)


@pytest.mark.parametrize("torn", [1, 11, 17, 60, 61, SIZE - 1])
def test_a_torn_tail_is_cut(torn: int) -> None:
    disk = crashed(9)
    disk.files[path(8)].data += bytes(batch([b"value"], base_offset=9))[:torn]
    log = open_log(disk, CONFIG, clean=False)
    assert (log.log_end_offset, log.recovery.bytes_cut, log.recovery.cut_at_offset) == (9, torn, 9)
    assert path(8) in log.recovery.reasons[-1]
    assert f"byte {SIZE}" in log.recovery.reasons[-1]
    assert len(disk.content(path(8))) == SIZE
    add(log, epoch=3)
    assert offsets_in(read_all(log))[-1] == (9, 9, 3)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, struct.pack(">q", 3)),
        (0, struct.pack(">q", -1)),
        (0, struct.pack(">q", 2**63 - 1)),
        (8, struct.pack(">i", 10)),
        (8, struct.pack(">i", -5)),
        (8, struct.pack(">i", 2**31 - 1)),
        (12, struct.pack(">i", 0)),
        (16, b"\1"),
        (16, b"\3"),
        (17, b"\0\0\0\0"),
        (23, struct.pack(">i", 2**31 - 1)),
        (70, b"!"),
    ],
)
def test_damage_in_the_middle_ends_the_log_there(at: int, value: bytes) -> None:
    """Batch 6, the third of the second segment: what follows has lost its place, and is fetched again."""
    disk = crashed()
    data = disk.files[path(4)].data
    data[2 * SIZE + at : 2 * SIZE + at + len(value)] = value
    log = open_log(disk, CONFIG, clean=False)
    assert (log.log_end_offset, log.recovery.cut_at_offset) == (6, 6)
    assert log.recovery.bytes_cut == 4 * SIZE
    assert offsets_in(read_all(log)) == [(o, o, o // 3) for o in range(6)]
    assert epochs_of(log) == [(0, 0), (1, 3)]
    assert log.producers.entries[9].next_sequence == 6
    assert f"{8:020d}.log.deleted" in {name.rpartition("/")[2] for name in log.drain_deleted()}
    again = open_log(disk, CONFIG, clean=False)
    assert (again.log_end_offset, again.recovery.bytes_cut) == (6, 0)


def test_zeros_of_a_preallocated_segment_are_cut() -> None:
    disk = crashed(9)
    disk.files[path(8)].data += bytes(5000)
    log = open_log(disk, CONFIG, clean=False)
    assert (log.log_end_offset, log.recovery.bytes_cut) == (9, 5000)


def test_an_older_history_behind_a_newer_one_is_cut() -> None:
    """A loss of power can undo a truncation and keep what was written since."""
    disk = MemoryDisk()
    log = open_log(disk)
    log.append_as_follower(batch([b"v"], leader_epoch=5), 9)
    log.write_pending()
    disk.files[path(0)].data += bytes(batch([b"v"], base_offset=1, leader_epoch=4))
    log = open_log(disk.copy(), clean=False)
    assert log.log_end_offset == 1
    assert "leader epoch 4 after 5" in log.recovery.reasons[0]


def test_large_batches_are_checked_without_being_in_memory() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for size in (10, 200_000, CHUNK_BYTES - 90, 5):
        add(log, 1, epoch=0) if size == 5 else log.append_as_leader(batch([b"x" * size]), 0, 0)
    log.write_pending()
    disk = disk.copy()
    log = open_log(disk, clean=False)
    assert log.log_end_offset == 4
    assert disk.read_bytes_max <= CHUNK_BYTES
    disk.files[path(0)].data[150_000] ^= 1
    assert open_log(disk, clean=False).log_end_offset == 1


def test_messages_of_an_old_format_are_not_cut() -> None:
    body = struct.pack(">bb", 1, 0) + struct.pack(">q", 5) + struct.pack(">i", -1) + struct.pack(">i", 2) + b"hi"
    message = struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
    disk = MemoryDisk()
    open_log(disk).close()
    disk.files[path(0)].data += message
    with pytest.raises(UnsupportedFormatError, match="before v2"):
        open_log(disk, clean=False)
    assert disk.content(path(0)) == message
    disk.files[path(0)].data[20] ^= 1
    assert open_log(disk, clean=False).recovery.bytes_cut == len(message)


@pytest.mark.parametrize("content", [None, b"nonsense", b"0\n1\n4\n", b"7\n0\n"])
def test_lost_epochs_are_read_from_the_batches(content: bytes | None) -> None:
    disk = stopped()
    if content is None:
        disk.remove(f"{FOLDER}/leader-epoch-checkpoint")
    else:
        disk.write_file(f"{FOLDER}/leader-epoch-checkpoint", content)
    log = open_log(disk, CONFIG, recovery_point=10)
    assert epochs_of(log) == [(0, 0), (1, 3), (2, 6), (3, 9)]
    assert log.recovery.segments_scanned == 3
    assert "leader-epoch-checkpoint" in log.recovery.reasons[0]


def test_epochs_that_were_not_durable_follow_the_batches() -> None:
    """The checkpoint is of before a truncation, the batches of after it."""
    disk = crashed()
    disk.write_file(f"{FOLDER}/leader-epoch-checkpoint", b"0\n3\n0 0\n1 3\n8 5\n")
    log = open_log(disk, CONFIG, clean=False)
    assert epochs_of(log) == [(0, 0), (1, 3), (2, 6), (3, 9)]
    assert disk.content(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n4\n0 0\n1 3\n2 6\n3 9\n"


def test_an_epoch_without_a_record_is_gone_after_a_start() -> None:
    """As in Kafka: what begins at the end of the log is forgotten."""
    disk, log = written()
    log.assign_epoch(8, 10)
    log.close()
    assert epochs_of(open_log(disk, CONFIG, recovery_point=10)) == [(0, 0), (1, 3), (2, 6), (3, 9)]


def test_a_log_start_within_the_log() -> None:
    log = open_log(stopped(), CONFIG, recovery_point=10, log_start_offset=7)
    assert (log.log_start_offset, log.log_end_offset) == (7, 10)
    assert epochs_of(log) == [(2, 7), (3, 9)]


def test_a_log_start_beyond_the_log_begins_anew() -> None:
    for disk, clean in ((stopped(), True), (crashed(), False)):
        log = open_log(disk, CONFIG, recovery_point=0, clean=clean, log_start_offset=50)
        assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (50, 50, 0)
        assert epochs_of(log) == []
        assert log.producers.entries == {}
        assert any("beyond the log" in reason for reason in log.recovery.reasons)
        add(log)
        assert log.log_end_offset == 51


def test_a_recovery_point_beyond_the_log() -> None:
    log = open_log(crashed(), CONFIG, clean=False, recovery_point=99)
    assert log.recovery.segments_scanned == 1
    assert (log.log_end_offset, log.recovery_point) == (10, 8)


# -- producers and transactions


def test_producers_come_from_the_snapshot_and_what_follows_it() -> None:
    disk = crashed()
    assert [name for name in disk.list(FOLDER) if name.endswith(".snapshot")] == [
        f"{4:020d}.snapshot",
        f"{8:020d}.snapshot",
    ]
    for damage in ((), (8,), (8, 4)):
        twin = disk.copy()
        for base in damage:
            twin.write_file(path(base, ".snapshot"), b"damaged")
        log = open_log(twin, CONFIG, clean=False, recovery_point=9)
        assert log.recovery.segments_scanned == 1
        assert len(log.recovery.reasons) == len(damage)
        assert log.producers.entries[9].next_sequence == 10
        assert [b.last_offset for b in log.producers.entries[9].batches][-1] == 9
        retry = batch([b"value"], producer_id=9, producer_epoch=0, sequence=9)
        assert log.append_as_leader(retry, 3, 0).duplicate


def test_producers_that_are_loaded_have_their_time_to_go_on() -> None:
    """Nobody knows how long ago they were active: their last timestamps are those of events."""
    config = LogConfig(producer_id_expiration_ms=500)
    log = open_log(stopped(config=config), config, recovery_point=10)
    for now_ms, known in ((10, [9]), (509, [9]), (510, [])):
        log.expire_producers(10**9, now_ms)
        assert list(log.producers.entries) == known


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive(clean: bool) -> None:
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    add(log, 1, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, sequence=0)
    add(log, 1, attributes=TRANSACTIONAL, producer_id=8, producer_epoch=0, sequence=0)
    log.append_as_leader(marker(7, 0, commit=False, coordinator_epoch=3), 0, 0, internal=True)
    for sequence in range(1, 5):
        add(log, 1, attributes=TRANSACTIONAL, producer_id=8, producer_epoch=0, sequence=sequence)
    aborted = [(7, 0, 2, 1)]
    assert log.aborted_transactions(0, 7) == aborted
    log.close() if clean else log.write_pending()
    disk = disk.copy()
    if not clean:
        disk.remove(path(0, ".txnindex"))
    log = open_log(disk, CONFIG, clean=clean, recovery_point=7 if clean else 0)
    assert log.last_stable_offset(7) == 1
    assert log.aborted_transactions(0, 7) == aborted
    assert log.producers.entries[7].coordinator_epoch == 3
    log.append_as_leader(marker(8, 0, commit=True), 0, 0, internal=True)
    assert log.last_stable_offset(8) == 8


def test_a_clean_stop_above_the_high_watermark_keeps_what_a_marker_there_has_decided() -> None:
    """A marker that may still be cut off exposes nothing, also after a restart (X5, seed 941145472185)."""
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    for sequence in range(2):
        add(log, 1, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, sequence=sequence)
    log.append_as_leader(marker(7, 0, commit=True), 0, 0, internal=True)
    log.close()
    log = open_log(disk, CONFIG, recovery_point=3)
    assert [log.last_stable_offset(end) for end in (2, 3)] == [0, 3]


def test_a_damaged_transaction_index_is_made_anew() -> None:
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    add(log, 1, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, sequence=0)
    log.append_as_leader(marker(7, 0, commit=False), 0, 0, internal=True)
    log.close()
    before = disk.content(path(0, ".txnindex"))
    disk.files[path(0, ".txnindex")].data[1] = 9
    log = open_log(disk, CONFIG, recovery_point=2)
    assert log.recovery.segments_scanned == 1
    assert log.aborted_transactions(0, 2) == [(7, 0, 1, 2)]
    assert disk.content(path(0, ".txnindex")) == before


def test_a_control_batch_that_makes_no_sense_ends_no_transaction() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    add(log, 1, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, sequence=0)
    nonsense = batch(
        [b"?"],
        key=b"?",
        attributes=TRANSACTIONAL | 32,
        producer_id=7,
        producer_epoch=0,
        base_offset=1,
        leader_epoch=0,
    )
    assert log.append_as_follower(nonsense, 9).error == 0
    assert log.last_stable_offset(2) == 0
    assert open_log(disk.copy(), clean=False).last_stable_offset(2) == 0


# -- crash cleanup


def test_crash_cleanup() -> None:
    disk = stopped()
    before = files(disk)
    for name in (
        f"{0:020d}.log.deleted",
        f"{4:020d}.timeindex.deleted",
        f"{4:020d}.snapshot.deleted",
        f"{4:020d}.log.cleaned",
        f"{8:020d}.log.swap",
        f"{99:020d}.index",
        f"{99:020d}.timeindex",
        f"{3:020d}.snapshot",
        "leader-epoch-checkpoint.tmp",
        "partition.metadata.tmp",
    ):
        disk.write_file(f"{FOLDER}/{name}", b"left over")
    mine = ("notes.txt", "00000000000000000007-0000000001.checkpoint.deleted", f"{0:019d}.log", f"{2**63}.log")
    for name in mine:
        disk.write_file(f"{FOLDER}/{name}", b"somebody else's")
    log = open_log(disk, CONFIG, recovery_point=10)
    assert log.log_end_offset == 10
    assert {name: data for name, data in files(disk).items() if name.rpartition("/")[2] not in mine} == before
    for name in mine:
        assert disk.content(f"{FOLDER}/{name}") == b"somebody else's"


def test_a_swap_that_was_under_way_is_finished() -> None:
    """Compaction had written segments 0 and 4 into one, and began to rename."""
    disk = stopped()
    data = disk.content(path(0))[SIZE:] + disk.content(path(4))[: 2 * SIZE]
    disk.write_file(path(0, ".log.swap"), data)
    disk.write_file(path(0, ".index.swap"), b"")
    disk.write_file(path(0, ".timeindex.swap"), struct.pack(">qi", 1_005, 5))
    log = open_log(disk, CONFIG, recovery_point=10)
    assert disk.content(path(0)) == data
    assert not disk.exists(path(0, ".log.swap"))
    # Segment 4 begins within what was cleaned: it is one of the originals.
    assert not disk.exists(path(4))
    assert [base for base, _, _ in offsets_in(read_all(log))] == [1, 2, 3, 4, 5, 8, 9]
    assert log.log_end_offset == 10


def test_a_swap_without_complete_output_is_undone() -> None:
    disk = stopped()
    before = files(disk)
    disk.write_file(path(0, ".log.swap"), b"half")
    disk.write_file(path(0, ".log.cleaned"), b"half")
    open_log(disk, CONFIG, recovery_point=10)
    assert files(disk) == before


def test_a_crash_between_the_steps_of_a_truncation() -> None:
    """The log file of a dropped segment is renamed before its indexes, the last segment first."""
    disk = crashed()
    disk.rename(path(8), path(8, ".log.deleted"))
    log = open_log(disk, CONFIG, clean=False)
    assert log.log_end_offset == 8
    assert [name for name in disk.list(FOLDER) if f"{8:020d}" in name and "snapshot" not in name] == []

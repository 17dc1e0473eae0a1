"""Reads of older batches: by entries of the index in memory, which are bounded, checked, and forgotten on a cut."""

from __future__ import annotations

import pytest

from tanist.log.config import LogConfig
from tanist.log.indexes import OffsetIndex
from tanist.log.log import Log
from tanist.log.positions import BLOCKS_MAX, IndexedPositions
from tanist.log.scan import DamagedBatch
from tanist.log.segment import TAIL_BATCHES
from tanist.log.segments import READ_LATELY_MAX
from tests.log.log_batches import batch, offsets_in
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, content, open_log, sizes_in

SIZE = len(batch([b"value"]))
CONFIG = LogConfig(index_interval_bytes=4 * SIZE, segment_bytes=3000 * SIZE)
BATCHES = 3 * 3000 + 100


def long_log(disk: MemoryDisk, config: LogConfig = CONFIG, batches: int = BATCHES) -> Log:
    log = open_log(disk, config)
    for _ in range(batches):
        add(log)
    log.write_pending()
    return log


def restarted(disk: MemoryDisk, log: Log, config: LogConfig = CONFIG) -> Log:
    log.close()
    return open_log(disk, config, recovery_point=log.log_end_offset)


def read_on(log: Log, offset: int, answers: int, max_bytes: int = 40 * SIZE) -> int:
    """Read on from an offset, as a consumer does; the offset after the last whole batch."""
    for _ in range(answers):
        piece = log.read(offset, max_bytes, log.log_end_offset)
        assert piece is not None
        assert piece.first_batch_offset == offset
        assert piece.size_bytes <= max_bytes
        offset = offsets_in(content(piece.chunk))[-1][1] + 1
    return offset


@pytest.mark.parametrize("restart", [False, True])
def test_a_reader_that_goes_on_reads_one_header_for_an_answer(restart: bool) -> None:
    disk = MemoryDisk()
    log = long_log(disk)
    if restart:
        log = restarted(disk, log)
    offset = read_on(log, 3100, 1)
    disk.reads = disk.read_bytes_max = 0
    read_on(log, offset, 50)
    # Two of a hundred: the header that the log reads, and the content that this test does.
    assert disk.reads <= 101
    assert disk.read_bytes_max == 40 * SIZE


def test_an_answer_ends_with_a_whole_batch() -> None:
    log = long_log(MemoryDisk())
    offset = 0
    for _ in range(200):
        piece = log.read(offset, 41 * SIZE + 7, log.log_end_offset)
        assert piece is not None
        data = content(piece.chunk)
        assert sum(sizes_in(data)) == len(data)
        offset = offsets_in(data)[-1][1] + 1


def test_the_active_segment_after_a_restart_is_read_up_to_the_bound() -> None:
    disk = MemoryDisk()
    log = restarted(disk, long_log(disk, batches=1000))
    assert len(log._segments.active._lasts) < 20
    for upper in (999, 998, 990, 700, 501):
        piece = log.read(500, 10**6, upper)
        assert piece is not None
        assert offsets_in(content(piece.chunk))[-1][1] == upper - 1
    assert log.read(500, 10**6, 500) is None


def test_batches_between_two_entries_are_found() -> None:
    disk = MemoryDisk()
    log = restarted(disk, long_log(disk, batches=1000))
    for offset in range(400, 420):
        piece = log.read(offset, SIZE, 1000)
        assert piece is not None
        assert offsets_in(content(piece.chunk)) == [(offset, offset, 0)]


@pytest.mark.parametrize("offset", [0, 2, 3000])
def test_the_start_of_a_segment_is_found_without_a_search(offset: int) -> None:
    """The index has no entry for a segment's first batches."""
    disk = MemoryDisk()
    log = long_log(disk)
    read_on(log, offset, 1)
    disk.reads = disk.read_bytes_max = 0
    for _ in range(50):
        read_on(log, offset, 1)
    # Of each three: the header of the first entry, those before it, and the content that this test reads.
    assert disk.reads <= 150


def test_blocks_have_a_bound_and_the_least_used_go() -> None:
    config = LogConfig(index_interval_bytes=0)
    disk = MemoryDisk()
    log = long_log(disk, config, 2 * TAIL_BATCHES + 512 * (BLOCKS_MAX + 4))
    found = log._segments.active._indexed
    for offset in range(1, 512 * (BLOCKS_MAX + 4), 256):
        read_on(log, offset, 1)
    assert len(found._blocks) == len(found._firsts) == BLOCKS_MAX
    assert [each.number for each in found._blocks] == list(range(4, BLOCKS_MAX + 4))
    read_on(log, 2, 1)
    assert [each.number for each in found._blocks] == [0, *range(5, BLOCKS_MAX + 4)]


def test_segments_that_were_not_read_lately_keep_nothing_in_memory() -> None:
    disk = MemoryDisk()
    config = LogConfig(index_interval_bytes=4 * SIZE, segment_bytes=100 * SIZE)
    log = restarted(disk, long_log(disk, config, 2000), config)
    for offset in range(50, 2000, 100):
        read_on(log, offset, 1, max_bytes=10 * SIZE)
    kept = [index for index, each in enumerate(log._segments) if each._indexed._blocks]
    assert kept == list(range(20 - READ_LATELY_MAX, 20))
    log.delete_old_segments(0, 10**9, 2000)
    assert log._segments._read_lately == []


def test_a_wrong_entry_is_not_believed() -> None:
    disk = MemoryDisk()
    log = restarted(disk, long_log(disk, batches=1000))
    index = disk.files[f"{FOLDER}/{0:020d}.index"].data
    at = 8 * 100
    relative = int.from_bytes(index[at : at + 4], "big")
    index[at + 4 : at + 8] = (int.from_bytes(index[at + 4 : at + 8], "big") + 1).to_bytes(4, "big")
    read_on(log, relative, 1)
    index[at : at + 8] = b"\xff" * 8
    log = open_log(disk, CONFIG, recovery_point=1000)
    read_on(log, relative, 5)


@pytest.mark.parametrize("waiting", range(1, 10))
def test_a_reader_before_the_first_batch_meets_an_entry_of_one_that_is_not_written_yet(waiting: int) -> None:
    """In the turn that appends it, where a compaction has left a gap at the segment's start: it is written first."""
    log = open_log(MemoryDisk(), LogConfig(index_interval_bytes=4 * SIZE, cleanup_policy="compact"))
    assert log.append_as_follower(batch([b"value"], base_offset=7, leader_epoch=0), 9, 0).error == 0
    for _ in range(waiting):
        add(log)
    piece = log.read(0, 100 * SIZE, log.log_end_offset)
    assert piece is not None
    assert [first for first, *_ in offsets_in(content(piece.chunk))] == list(range(7, 8 + waiting))


def test_a_file_that_something_else_has_cut_short_is_damaged_and_no_more() -> None:
    disk = MemoryDisk()
    log = restarted(disk, long_log(disk, batches=1000))
    del disk.files[f"{FOLDER}/{0:020d}.log"].data[500 * SIZE :]
    read_on(log, 100, 1)
    with pytest.raises(DamagedBatch):
        read_on(log, 600, 1)


def test_entries_that_were_cut_are_forgotten() -> None:
    disk = MemoryDisk()
    log = restarted(disk, long_log(disk, batches=1000))
    read_on(log, 500, 1)
    log.truncate_to(300)
    for _ in range(700):
        add(log, 2)
    log = restarted(disk, log)
    assert read_on(log, 300, 20) > 340


def test_a_block_that_has_grown_is_read_again() -> None:
    disk = MemoryDisk()
    index = OffsetIndex(disk, "/i", 0, 10**6)
    found = IndexedPositions(index)
    assert found.reaching(0) is None
    for number in range(1100):
        index.append(number, number * 10)
        block, at = found.reaching(number) or (None, 0)
        assert block is not None
        assert (block.lasts[at], block.positions[at]) == (number, number * 10)
        assert found.reaching(number + 1) is None
    index.write()
    for number in range(0, 1100, 7):
        block, at = found.reaching(number) or (None, 0)
        assert block is not None
        assert block.positions[at] == number * 10

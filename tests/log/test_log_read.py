"""Reads: whole batches below the bound, no I/O at the tail, searches by time down to the record."""

from __future__ import annotations

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.log.config import LogConfig
from tanist.log.log import Log, OffsetOutOfRange
from tanist.log.scan import DamagedBatch
from tanist.log.segment import TAIL_BATCHES
from tests.log.log_batches import GZIP, LZ4, SNAPPY, ZSTD, batch, offsets_in, record
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, content, open_log, read_all, segment_count

SIZE = len(batch([b"value"]))


def reopened(disk: MemoryDisk, log: Log, config: LogConfig | None = None) -> Log:
    log.close()
    return open_log(disk, config, recovery_point=log.log_end_offset)


@pytest.mark.parametrize("offset", [-1, 4])
def test_out_of_range(offset: int) -> None:
    log = open_log()
    add(log, 3)
    with pytest.raises(OffsetOutOfRange):
        log.read(offset, 100, 3)


def test_at_the_end_and_at_the_bound_there_is_nothing() -> None:
    log = open_log()
    add(log, 3)
    add(log, 3)
    assert log.read(6, 1000, 6) is None
    assert log.read(3, 1000, 3) is None
    assert log.read(4, 1000, 2) is None


def test_a_batch_that_reaches_the_bound_is_not_given() -> None:
    log = open_log()
    add(log, 3)
    add(log, 3)
    for upper in (3, 4, 5):
        piece = log.read(0, 1000, upper)
        assert piece is not None
        assert offsets_in(content(piece.chunk)) == [(0, 2, 0)]
    for upper in (1, 2):
        assert log.read(0, 1000, upper) is None


def test_size_limits() -> None:
    log = open_log()
    for _ in range(4):
        add(log)
    for max_bytes, batches in [(SIZE, 1), (2 * SIZE - 1, 1), (2 * SIZE, 2), (10 * SIZE, 4)]:
        piece = log.read(0, max_bytes, 9)
        assert piece is not None
        assert piece.size_bytes == batches * SIZE
    for max_bytes in (0, 1, SIZE - 1):
        piece = log.read(1, max_bytes, 9)
        assert piece is not None, "one batch, however large"
        assert piece.size_bytes == SIZE
        assert log.read(1, max_bytes, 9, at_least_one=False) is None
    assert log.read(1, SIZE, 9, at_least_one=False) is not None


def test_a_read_ends_with_its_segment() -> None:
    log = open_log(config=LogConfig(segment_bytes=2 * SIZE))
    for _ in range(5):
        add(log)
    assert [piece.size_bytes for offset in (0, 1, 2, 4) if (piece := log.read(offset, 10**6, 9))] == [
        2 * SIZE,
        SIZE,
        2 * SIZE,
        SIZE,
    ]


def test_the_tail_is_read_without_any_io() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for number in range(2000):
        add(log, timestamp=number)
    log.write_pending()
    disk.reads = 0
    for offset in (1999, 1000, 3):
        piece = log.read(offset, 10 * SIZE, 1999)
        assert (piece is None) == (offset == 1999)
        assert log.bytes_available(offset, 2000) == (2000 - offset) * SIZE
    assert disk.reads == 0


def test_memory_for_the_tail_has_a_bound_and_older_batches_are_found_on_disk() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(index_interval_bytes=4096))
    count = 2 * TAIL_BATCHES + 10
    for _ in range(count):
        add(log)
        log.write_pending()
    segment = log._segments.active
    assert len(segment._lasts) <= 2 * TAIL_BATCHES
    disk.reads = disk.read_bytes_max = 0
    piece = log.read(17, 5 * SIZE, count)
    assert piece is not None
    assert (piece.chunk.offset, piece.first_batch_offset) == (17 * SIZE, 17)
    assert piece.size_bytes == 5 * SIZE
    assert disk.reads < 20
    assert disk.read_bytes_max <= 65536
    assert offsets_in(read_all(log, 0, max_bytes=100_000)) == [(o, o, 0) for o in range(count)]


def test_reads_after_a_clean_start_use_the_index() -> None:
    disk = MemoryDisk()
    config = LogConfig(segment_bytes=200 * SIZE, index_interval_bytes=1000)
    log = open_log(disk, config)
    for number in range(500):
        add(log, timestamp=number)
    whole = read_all(log)
    log = reopened(disk, log, config)
    assert log.log_end_offset == 500
    assert read_all(log) == whole
    for offset in (0, 1, 199, 200, 201, 333, 499):
        piece = log.read(offset, SIZE, 500)
        assert piece is not None
        assert offsets_in(content(piece.chunk)) == [(offset, offset, 0)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=40),
    st.integers(2, 12),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 160), st.integers(0, 2000), st.integers(0, 170)), max_size=15),
)
def test_reads_against_a_list(
    sizes: list[int], per_segment: int, restart: bool, reads: list[tuple[int, int, int]]
) -> None:
    disk = MemoryDisk()
    config = LogConfig(segment_bytes=per_segment * 90, index_interval_bytes=100)
    log = open_log(disk, config)
    for count in sizes:
        add(log, count)
    end = log.log_end_offset
    if restart:
        log = reopened(disk, log, config)
    bounds = [sum(sizes[:index]) for index in range(len(sizes) + 1)]
    for offset, max_bytes, upper in reads:
        if offset > end:
            continue
        piece = log.read(offset, max_bytes, upper)
        first = next((index for index, stop in enumerate(bounds[1:]) if stop > offset), None)
        if first is None or bounds[first + 1] > min(upper, end):
            assert piece is None
            continue
        assert piece is not None
        found = offsets_in(content(piece.chunk))
        assert found[0][0] == piece.first_batch_offset == bounds[first]
        assert all(last < upper for _, last, _ in found)
        assert piece.size_bytes <= max_bytes or len(found) == 1


# -- what is available


def test_bytes_available_across_segments() -> None:
    log = open_log(config=LogConfig(segment_bytes=2 * SIZE))
    for _ in range(7):
        add(log)
    assert log.bytes_available(0, 7) == 7 * SIZE
    assert log.bytes_available(1, 6) == 5 * SIZE
    assert log.bytes_available(6, 7) == SIZE
    assert log.bytes_available(7, 7) == log.bytes_available(7, 3) == 0


# -- by time


def test_offset_for_timestamp_within_batches() -> None:
    log = open_log(config=LogConfig(segment_bytes=300, index_interval_bytes=1))
    for start in (100, 200, 300, 250, 400):
        log.append_as_leader(batch([b"v"] * 3, timestamps=[start, start + 10, start + 5]), 7, 0)
    assert segment_count(log) > 1
    for timestamp, expected in [
        (0, (100, 0)),
        (100, (100, 0)),
        (101, (110, 1)),
        (110, (110, 1)),
        (111, (200, 3)),
        (206, (210, 4)),
        (301, (310, 7)),
        (311, (400, 12)),
        (410, (410, 13)),
    ]:
        found = log.offset_for_timestamp(timestamp)
        assert found is not None
        assert (found.timestamp, found.offset, found.leader_epoch) == (*expected, 7)
    assert log.offset_for_timestamp(411) is None


def test_deleted_records_are_not_found_by_time() -> None:
    log = open_log()
    log.append_as_leader(batch([b"v"] * 3, timestamps=[1, 2, 3]), 0, 0)
    log.advance_log_start_offset(2)
    found = log.offset_for_timestamp(1)
    assert found is not None
    assert found.offset == 2


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_offset_for_timestamp_within_compressed_batches(codec: int) -> None:
    body = b"".join(record(index, time, b"k", b"v" * 50) for index, time in enumerate([0, 10, 20]))
    library = {GZIP: cramjam.gzip.compress, LZ4: cramjam.lz4.compress, ZSTD: cramjam.zstd.compress}
    packed = bytes(cramjam.snappy.compress_raw(body) if codec == SNAPPY else library[codec](body))
    log = open_log()
    data = batch([b"v"] * 3, timestamps=[100, 110, 120], attributes=codec, compress=packed)
    assert log.append_as_leader(data, 2, 0).error == 0
    assert log.offset_for_timestamp(105) == (110, 1, 2)
    assert log.max_timestamp() == (120, 2, 2)


def test_max_timestamp() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=300))
    assert log.max_timestamp() is None
    for start in (100, 500, 300):
        log.append_as_leader(batch([b"v"] * 3, timestamps=[start, start + 10, start + 10]), 7, 0)
    assert log.max_timestamp() == (510, 4, 7)
    assert reopened(disk, log).max_timestamp() == (510, 4, 7)


def test_of_records_without_a_time_the_first_is_the_latest() -> None:
    """As in Apache Kafka."""
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(2):
        log.append_as_leader(batch([b"v"] * 2, timestamps=-1), 0, 0)
    assert log.max_timestamp() == (-1, 0, 0)
    log = reopened(disk, log)
    assert log.max_timestamp() == (-1, 0, 0)
    log.advance_log_start_offset(1)
    assert log.max_timestamp() == (-1, 1, 0)
    log.advance_log_start_offset(4)
    assert log.max_timestamp() is None
    assert log.offset_for_timestamp(0) is None
    log.close()
    assert disk.content(f"{FOLDER}/{0:020d}.timeindex") == b""


# -- damage met by a reader


def test_a_wrong_index_is_made_anew() -> None:
    disk = MemoryDisk()
    config = LogConfig(index_interval_bytes=100)
    log = open_log(disk, config)
    for number in range(50):
        add(log, timestamp=number)
    log.close()
    path = f"{FOLDER}/{0:020d}.index"
    good = disk.content(path)
    for number in range(0, len(good), 8):
        # Positions in the middle of batches; the file as such is in order.
        disk.files[path].data[number + 7] ^= 5
    log = open_log(disk, config, recovery_point=50)
    assert offsets_in(read_all(log)) == [(o, o, 0) for o in range(50)]
    assert disk.content(path) == good


def test_a_broken_batch_is_reported_to_the_reader() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=10 * SIZE))
    for _ in range(20):
        add(log)
    log.close()
    log = open_log(disk, recovery_point=20)
    disk.files[f"{FOLDER}/{0:020d}.log"].data[3 * SIZE + 8 : 3 * SIZE + 12] = b"\x7f\0\0\0"
    assert log.read(0, SIZE, 20) is not None
    with pytest.raises(DamagedBatch):
        log.read(5, SIZE, 20)

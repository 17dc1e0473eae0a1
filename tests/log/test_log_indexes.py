"""Index files: exact bytes, lookups against bisection, Kafka's preallocated files, and damage."""

from __future__ import annotations

import struct
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.log.indexes import CorruptIndexError, OffsetIndex, TimeIndex
from tanist.log.transaction_index import AbortedTransaction, TransactionIndex
from tests.log.log_disks import MemoryDisk

BASE = 1_000
MAX_BYTES = 10 * 1024**2


def disk_with(data: bytes) -> MemoryDisk:
    disk = MemoryDisk()
    disk.write_file("/i", data)
    return disk


def offset_index(data: bytes = b"", max_bytes: int = MAX_BYTES) -> tuple[MemoryDisk, OffsetIndex]:
    disk = disk_with(data)
    return disk, OffsetIndex(disk, "/i", BASE, max_bytes)


def test_offset_index_bytes() -> None:
    disk, index = offset_index()
    index.append(BASE + 9, 4200)
    index.append(BASE + 300, 8300)
    index.close()
    assert disk.content("/i").hex() == "0000000900001068" + "0000012c0000206c"


def test_time_index_bytes() -> None:
    disk = disk_with(b"")
    index = TimeIndex(disk, "/i", BASE, MAX_BYTES)
    index.append_if_later(1_700_000_000_000, BASE + 9)
    index.append_if_later(1_700_000_000_000, BASE + 12)
    index.append_if_later(1_700_000_000_001, BASE + 15)
    index.close()
    assert disk.content("/i").hex() == "0000018bcfe5680000000009" + "0000018bcfe568010000000f"


def test_transaction_index_bytes() -> None:
    disk = MemoryDisk()
    index = TransactionIndex(disk, "/i", BASE, exists=False)
    assert index.file is None
    assert list(index.transactions()) == []
    assert disk.files == {}
    index.append(AbortedTransaction(7, BASE + 1, BASE + 5, BASE + 6))
    assert disk.content("/i").hex() == (
        "0000" + "0000000000000007" + "00000000000003e9" + "00000000000003ed" + "00000000000003ee"
    )
    assert list(TransactionIndex(disk, "/i", BASE, exists=True).transactions()) == [(7, 1001, 1005, 1006)]


def test_transaction_index_truncation() -> None:
    disk = MemoryDisk()
    index = TransactionIndex(disk, "/i", BASE, exists=False)
    for end in range(BASE + 10, BASE + 50, 10):
        index.append(AbortedTransaction(1, end - 5, end, end))
    index.truncate_to(BASE + 30)
    assert [each.last_offset for each in index.transactions()] == [BASE + 10, BASE + 20]
    index.reset()
    assert list(index.transactions()) == []


def test_transaction_index_damage() -> None:
    entry = struct.pack(">hqqqq", 1, 1, 1000, 1005, 1006)
    with pytest.raises(CorruptIndexError, match="version 1"):
        list(TransactionIndex(disk_with(entry), "/i", BASE, exists=True).transactions())
    entry = struct.pack(">hqqqq", 0, 1, 1, 5, 6)
    with pytest.raises(CorruptIndexError):
        list(TransactionIndex(disk_with(entry), "/i", BASE, exists=True).transactions())


ascending = st.lists(st.integers(1, 5_000), max_size=60).map(
    lambda steps: [sum(steps[: count + 1]) for count in range(len(steps))]
)


@given(ascending, st.integers(0, 60), st.lists(st.integers(-2, 200_000), min_size=1, max_size=20))
def test_lookup_is_the_last_entry_not_above(relative: list[int], written: int, targets: list[int]) -> None:
    _, index = offset_index()
    for number, offset in enumerate(relative):
        index.append(BASE + offset, offset * 10)
        if number == written:
            index.write()
    for target in [*targets, *relative]:
        number = bisect_right(relative, target) - 1
        expected = (BASE + relative[number], relative[number] * 10) if number >= 0 else (BASE, 0)
        assert index.lookup(BASE + target) == expected
    assert index.entries == len(relative)


def test_lookup_in_a_large_file_reads_little() -> None:
    count = 100_000
    data = b"".join(struct.pack(">ii", number * 7, number * 4100) for number in range(1, count + 1))
    disk, index = offset_index(data)
    assert index.lookup(BASE + 7 * 54_321 + 3) == (BASE + 7 * 54_321, 54_321 * 4100)
    assert disk.reads < 16
    assert disk.read_bytes_max <= 4096


@given(ascending, st.integers(0, 200_000))
def test_truncation_forgets_the_offset_and_later(relative: list[int], cut: int) -> None:
    disk, index = offset_index()
    for offset in relative:
        index.append(BASE + offset, offset)
    index.truncate_to(BASE + cut)
    index.append(BASE + 10**6, 77)
    index.close()
    kept = [offset for offset in relative if offset < cut]
    assert disk.content("/i") == b"".join(struct.pack(">ii", o, o) for o in kept) + struct.pack(">ii", 10**6, 77)


@given(ascending, st.integers(1, 40))
def test_kafkas_preallocated_file_is_read_over_its_zeros(relative: list[int], spare: int) -> None:
    entries = b"".join(struct.pack(">ii", offset, offset + 50) for offset in relative)
    disk, index = offset_index(entries + bytes(8 * spare))
    assert index.entries == len(relative)
    assert index.lookup(2**40).position == (relative[-1] + 50 if relative else 0)
    index.append(BASE + 10**6, 99)
    index.close()
    assert disk.content("/i") == entries + struct.pack(">ii", 10**6, 99)


def test_a_preallocated_time_index_of_one_entry_at_the_epoch() -> None:
    """(0, 0) as a first entry looks like padding; nothing but zeros is no entry."""
    disk = disk_with(bytes(1200))
    assert TimeIndex(disk, "/i", BASE, MAX_BYTES).entries == 0


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (bytes(7), "no multiple of 8"),
        (struct.pack(">ii", 5, 5) + struct.pack(">ii", -3, 9), "can't follow"),
        (struct.pack(">ii", 50, 5) + struct.pack(">ii", 3, 9), "can't follow"),
    ],
)
def test_impossible_offset_indexes(data: bytes, complaint: str) -> None:
    disk, index = offset_index(data)
    with pytest.raises(CorruptIndexError, match=complaint):
        index.lookup(BASE)
    assert disk.open_files == 0
    index.reset()
    assert index.lookup(BASE + 5) == (BASE, 0)


def test_impossible_time_index() -> None:
    disk = disk_with(struct.pack(">qi", 500, 5) + struct.pack(">qi", 400, 9))
    with pytest.raises(CorruptIndexError):
        TimeIndex(disk, "/i", BASE, MAX_BYTES).lookup(1)


def test_full_means_that_the_next_segment_has_to_begin() -> None:
    _, index = offset_index(max_bytes=8 * 3)
    for number in range(1, 3):
        index.append(BASE + number, number)
        assert not index.full
    index.append(BASE + 3, 3)
    assert index.full
    times = TimeIndex(disk_with(b""), "/i", BASE, 12 * 3)
    times.append(1, BASE + 1)
    assert not times.full
    times.append(2, BASE + 2)
    assert times.full, "one entry is kept for the roll, as in Kafka"


def test_entries_wait_in_memory_until_4_kb() -> None:
    disk, index = offset_index()
    for number in range(1, 512):
        index.append(BASE + number, number)
    assert disk.content("/i") == b""
    index.append(BASE + 512, 512)
    assert len(disk.content("/i")) == 4096


def test_offsets_beyond_an_int_do_not_fit() -> None:
    _, index = offset_index()
    assert index.fits(BASE + 2**31 - 1)
    assert not index.fits(BASE + 2**31)
    assert not index.fits(BASE - 1)

"""What recovery cuts off is handed out first, and its sound batches are found among whatever else is there."""

from __future__ import annotations

import contextlib
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.log.salvage.reading import sound_batches
from tanist.log.scan import CHUNK_BYTES
from tanist.ports import FileRange
from tests.log.log_batches import batch
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, ID, add, content, open_log, read_all

SIZE = len(batch([b"value"]))
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=SIZE)


def file_of(data: bytes) -> Any:
    disk = MemoryDisk()
    file = disk.open("/f")
    file.write(0, [data])
    return file


def found(data: bytes, least: int = 0) -> list[int]:
    return [at.header.base_offset for at in sound_batches(file_of(data), 0, len(data), least)]


def one(offset: int, value: bytes = b"value") -> bytes:
    return bytes(batch([value], base_offset=offset, leader_epoch=1))


def test_all_of_a_whole_tail() -> None:
    assert found(b"".join(one(n) for n in range(5))) == [0, 1, 2, 3, 4]
    assert found(b"") == []


def test_a_torn_tail_holds_nothing() -> None:
    assert found(one(1)[:-1]) == []
    assert found(one(1)[:30]) == []
    assert found(bytes(200_000)) == []


def test_batches_behind_one_with_a_wrong_crc() -> None:
    broken = bytearray(one(1))
    broken[-1] ^= 1
    assert found(bytes(broken) + one(2) + one(3)) == [2, 3]


def test_batches_behind_one_whose_header_is_gone() -> None:
    assert found(one(1) + b"\xff" * SIZE + one(3)) == [1, 3]
    assert found(b"\x02" * 7 + one(3)) == [3]


def test_batches_behind_a_hole_of_zeros_wider_than_any_read() -> None:
    assert found(one(1) + bytes(3 * CHUNK_BYTES + 5) + one(9) + one(10)) == [1, 9, 10]


def test_a_batch_inside_of_a_record_is_none_of_the_logs() -> None:
    inner = one(77)
    outer = bytearray(one(1, value=inner))
    outer[-1] ^= 1  # the last byte of the outer batch: the headers of its record
    assert found(bytes(outer) + one(2)) == [2]


def test_a_wrong_length_hides_nothing() -> None:
    longer = bytearray(one(1))
    longer[8:12] = (2 * SIZE - 12).to_bytes(4, "big")
    assert found(bytes(longer) + one(2) + one(3)) == [2, 3]


def test_none_below_the_offset_that_is_asked_for() -> None:
    assert found(one(1) + one(2) + b"xx" + one(1) + one(3), least=2) == [2, 3]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), max_size=6),
)
def test_what_is_not_damaged_is_found(counts: list[int], flips: list[tuple[int, int]]) -> None:
    pieces: list[tuple[int, int, int]] = []
    data = bytearray()
    offset = 0
    for count in counts:
        made = bytes(batch([b"value"] * count, base_offset=offset, leader_epoch=1))
        pieces.append((offset, len(data), len(data) + len(made)))
        data += made
        offset += count
    intact = bytes(data)
    for at, mask in flips:
        data[at % len(data)] ^= mask
    # The base offset and the epoch are not under the CRC: a log's scan cannot tell either.
    untouched = [base for base, start, end in pieces if data[start:end] == intact[start:end]]
    assert set(untouched) <= set(found(bytes(data)))
    assert all(
        any(bytes(data[start + 16 : end]) == intact[start + 16 : end] for _, start, end in pieces)
        for _ in found(bytes(data))
    )


@given(st.binary(max_size=2_000))
def test_nothing_is_found_in_noise(noise: bytes) -> None:
    assert found(noise) == []


# -- what recovery hands out


class Cuts:
    """Everything a recovery was about to cut off."""

    def __init__(self) -> None:
        self.seen: list[tuple[UUID, int, list[tuple[str, bytes]]]] = []

    def of(self, topic_id: UUID) -> Any:
        def rescue(from_offset: int, ranges: tuple[FileRange, ...]) -> None:
            pieces = [(each.file.path.rpartition("/")[2], content(each)) for each in ranges]
            self.seen.append((topic_id, from_offset, pieces))

        return rescue


def crashed() -> tuple[MemoryDisk, list[bytes]]:
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    for number in range(10):
        add(log, epoch=1, timestamp=1_000 + number)
    log.write_pending()
    data = read_all(log)
    return disk.copy(), [data[at : at + SIZE] for at in range(0, len(data), SIZE)]


def reopened(disk: MemoryDisk, cuts: Cuts) -> Log:
    return open_log(disk, CONFIG, clean=False, rescue=cuts.of)


def name(base: int) -> str:
    return f"{base:020d}.log"


def test_damage_hands_out_the_rest_of_its_segment_and_those_behind() -> None:
    disk, written = crashed()
    cuts = Cuts()
    disk.files[f"{FOLDER}/{name(4)}"].data[SIZE + 70] ^= 1
    log = reopened(disk, cuts)
    assert log.log_end_offset == 5
    ((topic_id, from_offset, pieces),) = cuts.seen
    assert (topic_id, from_offset) == (ID, 5)
    assert [(each, len(data)) for each, data in pieces] == [(name(4), 3 * SIZE), (name(8), 2 * SIZE)]
    assert pieces[0][1][SIZE:] + pieces[1][1] == b"".join(written[6:])


def test_a_hole_hands_out_what_is_behind_it() -> None:
    disk, written = crashed()
    cuts = Cuts()
    del disk.files[f"{FOLDER}/{name(4)}"].data[2 * SIZE :]
    log = reopened(disk, cuts)
    assert log.log_end_offset == 6
    assert cuts.seen == [(ID, 6, [(name(8), b"".join(written[8:]))])]


def test_nothing_is_handed_out_where_nothing_is_cut() -> None:
    disk, _ = crashed()
    cuts = Cuts()
    assert reopened(disk, cuts).log_end_offset == 10
    assert cuts.seen == []


def test_who_cannot_keep_it_can_stop_the_opening_before_anything_is_cut() -> None:
    disk, _ = crashed()
    disk.files[f"{FOLDER}/{name(4)}"].data[SIZE + 70] ^= 1
    before = disk.content(f"{FOLDER}/{name(4)}")

    def refuse(topic_id: UUID) -> Any:
        def rescue(from_offset: int, ranges: tuple[FileRange, ...]) -> None:
            raise OSError("no space")

        return rescue

    with contextlib.suppress(OSError):
        open_log(disk, CONFIG, clean=False, rescue=refuse)
        raise AssertionError("it was opened all the same")
    assert disk.content(f"{FOLDER}/{name(4)}") == before
    assert disk.exists(f"{FOLDER}/{name(8)}")

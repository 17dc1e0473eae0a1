"""Hostile and damaged files: nothing but the errors that are declared, no unbounded reads, and never a record made up.

Each round damages the files of a log that was in use, opens it, and uses it. The default run does a few thousand
rounds; `pytest -m slow` a hundred thousand.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import pytest
from crc32c import crc32c

from tanist.log.checkpoints import CheckpointError
from tanist.log.config import LogConfig
from tanist.log.log import InconsistentTopicId, Log
from tanist.log.scan import CHUNK_BYTES, DamagedBatch, UnsupportedFormatError
from tests.log.log_batches import TRANSACTIONAL, batch, marker
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, content, open_log, segment_count, sizes_in

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)
Damage = Callable[[MemoryDisk, random.Random], None]


def in_use(clean: bool) -> MemoryDisk:
    """Five segments, three epochs, producers with and without transactions."""
    disk = MemoryDisk()
    log = open_log(disk, CONFIG)
    for number in range(40):
        epoch = number // 15
        if number % 7 == 3:
            entry = log.producers.entries.get(5)
            how = {"producer_id": 5, "producer_epoch": 0, "sequence": entry.next_sequence if entry else 0}
            add(log, 2, epoch=epoch, timestamp=1_000 + number, attributes=TRANSACTIONAL, **how)
        elif number % 7 == 5:
            log.append_as_leader(marker(5, 0, commit=number % 2 == 0), epoch, 0, internal=True)
        else:
            add(log, 1 + number % 3, epoch=epoch, timestamp=1_000 + number)
    log.close() if clean else log.write_pending()
    return disk.copy()


IMAGES = {clean: in_use(clean) for clean in (True, False)}


def any_file(disk: MemoryDisk, rng: random.Random, *suffixes: str) -> str:
    names = sorted(name for name in disk.files if not suffixes or name.endswith(suffixes))
    return rng.choice(names)


def flip_bits(disk: MemoryDisk, rng: random.Random) -> None:
    data = disk.files[any_file(disk, rng)].data
    for _ in range(rng.choice([1, 1, 1, 8, 64])):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def cut_a_file(disk: MemoryDisk, rng: random.Random) -> None:
    data = disk.files[any_file(disk, rng)].data
    del data[rng.randrange(len(data) + 1) :]


def lengthen_a_file(disk: MemoryDisk, rng: random.Random) -> None:
    data = disk.files[any_file(disk, rng)].data
    data += rng.choice([bytes(rng.randrange(200)), rng.randbytes(rng.randrange(200)), bytes(data)])


def overwrite(disk: MemoryDisk, rng: random.Random) -> None:
    data = disk.files[any_file(disk, rng)].data
    if data:
        start = rng.randrange(len(data))
        stop = min(len(data), start + rng.randrange(1, 40))
        data[start:stop] = rng.choice([bytes(stop - start), rng.randbytes(stop - start), b"\xff" * (stop - start)])


def extreme_header(disk: MemoryDisk, rng: random.Random) -> None:
    """A field of a batch's header at the edge of its range, and the CRC made to fit."""
    data = disk.files[any_file(disk, rng, ".log")].data
    sizes = sizes_in(bytes(data))
    if not sizes or sum(sizes) > len(data) or min(sizes) < 61:
        return
    index = rng.randrange(len(sizes))
    start = sum(sizes[:index])
    at, width = rng.choice([(0, 8), (8, 4), (12, 4), (21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (57, 4)])
    edges = [0, 1, -1, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1)), rng.randrange(2 ** (8 * width - 1))]
    data[start + at : start + at + width] = rng.choice(edges).to_bytes(width, "big", signed=True)
    data[start + 17 : start + 21] = crc32c(bytes(data[start + 21 : start + sizes[index]])).to_bytes(4, "big")


def lose_a_file(disk: MemoryDisk, rng: random.Random) -> None:
    disk.remove(any_file(disk, rng))


def mix_up_files(disk: MemoryDisk, rng: random.Random) -> None:
    source, target = any_file(disk, rng), any_file(disk, rng)
    disk.files[target].data[:] = disk.files[source].data


def strange_names(disk: MemoryDisk, rng: random.Random) -> None:
    base = rng.choice([0, 7, 20, 2**63 - 1, 2**63, 10**19])
    suffix = rng.choice([".log", ".index", ".snapshot", ".log.swap", ".log.cleaned", ".timeindex.swap", ".log.deleted"])
    disk.write_file(f"{FOLDER}/{base:020d}{suffix}", rng.choice([b"", bytes(100), rng.randbytes(100)]))


DAMAGES: list[Damage] = [
    flip_bits,
    flip_bits,
    cut_a_file,
    lengthen_a_file,
    overwrite,
    extreme_header,
    extreme_header,
    lose_a_file,
    mix_up_files,
    strange_names,
]


def use(log: Log, rng: random.Random, *, whole: bool) -> None:
    """Everything a node does with a log. After recovery (`whole`) none of it may complain."""
    # A change that meets damage gives the log up: `OSError`.
    allowed: tuple[type[BaseException], ...] = () if whole else (DamagedBatch, OSError)
    with suppress(*allowed):
        offset = log.log_start_offset
        while (piece := log.read(offset, 500, log.log_end_offset)) is not None:
            data = content(piece.chunk)
            first = 12 + int.from_bytes(data[8:12], "big")
            next_offset = int.from_bytes(data[:8], "big") + int.from_bytes(data[23:27], "big") + 1
            assert next_offset > offset, "a reader must get on"
            if whole:
                assert crc32c(data[21:first]) == int.from_bytes(data[17:21], "big")
            offset = next_offset
    # Recovery does not decode records: a search that does may still find that a batch with a right CRC is none.
    with suppress(DamagedBatch):
        log.offset_for_timestamp(1_000 + rng.randrange(60))
    with suppress(DamagedBatch):
        log.max_timestamp()
    log.bytes_available(log.log_start_offset, log.log_end_offset)
    log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    assert log.last_stable_offset(log.log_end_offset) <= log.log_end_offset
    with suppress(*allowed):
        log.truncate_to(log.log_start_offset + (log.log_end_offset - log.log_start_offset) * rng.randrange(5) // 4)
        if log.log_end_offset < 2**62:
            # Whatever the epochs in the files say, this leader's is above them.
            result = log.append_as_leader(batch([b"after"]), min(2**31 - 1, log.latest_epoch + 1), 0)
            assert result.error == 0
    with suppress(*allowed):
        log.delete_old_segments(0, 10**6, log.log_end_offset)
    with suppress(*allowed):
        log.close()


def one_round(seed: int) -> None:
    rng = random.Random(seed)
    clean = rng.random() < 0.4
    disk = IMAGES[clean].copy()
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        rng.choice(DAMAGES)(disk, rng)
    try:
        log = open_log(disk, CONFIG, clean=clean, recovery_point=rng.choice([0, 0, 0, 12, 60, 10**12]))
    except (CheckpointError, InconsistentTopicId, UnsupportedFormatError):
        return  # Whose log it is can't be said; or what looks like an old message must not be cut.
    assert disk.read_bytes_max <= CHUNK_BYTES
    scanned_all = log.recovery.segments_scanned == segment_count(log)
    use(log, rng, whole=scanned_all)
    if log.failed is None:
        again = open_log(disk, CONFIG, clean=False, recovery_point=log.recovery_point)
        if scanned_all:
            assert again.recovery.bytes_cut == 0, "recovery leaves nothing to recover"


def test_the_images_are_in_order() -> None:
    for clean, image in IMAGES.items():
        log = open_log(image.copy(), CONFIG, clean=clean)
        assert log.recovery.bytes_cut == 0
        assert segment_count(log) >= 4
        use(log, random.Random(0), whole=True)


def test_a_header_that_claims_offsets_beyond_the_end_fails_the_log() -> None:
    """It was cut behind that batch, which no start had read, and rolled to the offset that the batch claims."""
    one_round(71_530)


@pytest.mark.parametrize("block", range(20))
def test_damaged_files(block: int) -> None:
    for seed in range(block * 150, block * 150 + 150):
        try:
            one_round(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


@pytest.mark.slow
def test_damaged_files_a_hundred_thousand_times() -> None:
    for seed in range(10_000, 110_000):
        try:
            one_round(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


def test_damage_to_a_segment_never_makes_up_a_record() -> None:
    """After any damage to one log file, recovery keeps a prefix of what was there."""
    image = IMAGES[False]
    names = sorted(name for name in image.files if name.endswith(".log"))
    whole = b"".join(image.content(name) for name in names)
    for seed in range(400):
        rng = random.Random(seed)
        disk = image.copy()
        data = disk.files[rng.choice(names)].data
        damage = rng.randrange(4)
        at = rng.randrange(len(data))
        if damage == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif damage == 1:
            del data[at:]
        elif damage == 2:
            data[at:] = bytes(len(data) - at)
        else:
            data[at : at + 20] = rng.randbytes(len(data[at : at + 20]))
        log = open_log(disk, CONFIG, clean=False)
        kept = b"".join(disk.content(name) for name in sorted(disk.files) if name.endswith(".log"))
        # Base offset and leader epoch lie outside the CRC: within what may follow each other, they can change unseen.
        sizes = sizes_in(kept)
        position = 0
        for size in sizes:
            ours, theirs = kept[position : position + size], whole[position : position + size]
            assert ours[8:12] + ours[16:] == theirs[8:12] + theirs[16:], seed
            position += size
        assert position == len(kept), seed
        assert log.log_end_offset <= 80

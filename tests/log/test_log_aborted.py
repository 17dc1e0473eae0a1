"""The aborted transactions of one answer: those that a reader needs to leave records out, and few others."""

from __future__ import annotations

import random

import pytest

from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.wire.isolation import committed_batches
from tests.log.log_batches import batch, marker
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import content, open_log

NOW = 1_700_000_000_000
PRODUCERS = 5
CONFIG = LogConfig(segment_bytes=16_000, index_interval_bytes=512)
TRANSACTIONAL = 16


def filled(seed: int, *, config: LogConfig = CONFIG) -> tuple[MemoryDisk, Log, list[int]]:
    """A log of transactions that overlap, half of them aborted, in several segments: the offsets that are committed."""
    rng, disk = random.Random(seed), MemoryDisk()
    log = open_log(disk, config)
    sequences = [0] * PRODUCERS
    begun: dict[int, list[int]] = {}
    committed: list[int] = []
    for _ in range(1_500):
        producer_id = rng.randrange(PRODUCERS)
        if producer_id in begun and rng.random() < 0.2:
            commit = rng.random() < 0.5
            assert log.append_as_leader(marker(producer_id, 0, commit=commit), 0, 0, NOW, internal=True).error == 0
            offsets = begun.pop(producer_id)
            committed += offsets if commit else []
            continue
        data = batch(
            [b"x" * 20] * 2,
            attributes=TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=0,
            sequence=sequences[producer_id],
            timestamps=NOW,
        )
        result = log.append_as_leader(data, 0, 0, NOW)
        assert result.error == 0, result.message
        sequences[producer_id] += 2
        begun.setdefault(producer_id, []).extend((result.first_offset, result.first_offset + 1))
    for producer_id, offsets in begun.items():
        log.append_as_leader(marker(producer_id, 0, commit=True), 0, 0, NOW, internal=True)
        committed += offsets
    return disk, log, sorted(committed)


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("max_bytes", [200, 3_000, 20_000])
def test_a_reader_gets_what_is_committed_by_pieces_of_any_size(max_bytes: int, reopened: bool) -> None:
    disk, log, committed = filled(max_bytes)
    if reopened:  # then the positions of batches are in the index only
        log.close()
        log = open_log(disk, CONFIG)
    end, offset, got = log.log_end_offset, 0, list[int]()
    named = needed = 0
    while (piece := log.read(offset, max_bytes, end)) is not None:
        aborted = log.aborted_within(piece, offset, end)
        data = content(piece.chunk)
        for header, records in committed_batches(data, [(each.first_offset, each.producer_id) for each in aborted]):
            got += [record.offset for record in records if record.offset >= offset]
            last = header.last_offset
        named += len(aborted)
        needed += sum(each.last_offset >= offset and each.first_offset <= last for each in aborted)
        offset = last + 1
    assert got == committed
    assert offset == end
    assert named <= 1.5 * needed + 5, "and hardly one that begins behind its piece"


def test_an_index_that_says_what_is_not_so_takes_no_transaction_away() -> None:
    disk, log, _ = filled(1)
    log.close()
    path = next(path for path in disk.files if path.endswith(f"{0:020d}.index"))
    entries = bytearray(disk.content(path))
    for start in range(0, len(entries) // 8 * 8, 8):  # each entry names the first offset, wherever it points
        entries[start : start + 4] = (1).to_bytes(4, "big")
    log = open_log(disk, CONFIG)
    whole = log.aborted_transactions(0, log.log_end_offset)
    disk.files[path].data[:] = entries
    piece = log.read(0, 2_000, log.log_end_offset)
    assert piece is not None
    last = max(header.last_offset for header, _ in committed_batches(content(piece.chunk), ()))
    found = log.aborted_within(piece, 0, log.log_end_offset)
    assert {each for each in whole if each.first_offset <= last} <= set(found)


def test_a_log_without_aborted_transactions_has_no_look_at_its_index() -> None:
    log = open_log()
    for _ in range(3):
        assert log.append_as_leader(batch([b"value"], timestamps=NOW), 0, 0, NOW).error == 0
    piece = log.read(0, 100, 3)
    assert piece is not None
    assert log.aborted_within(piece, 0, 3) == []

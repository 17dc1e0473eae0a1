"""Replicas that are summed up together have the sums that each of them has alone."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tanist.spark.jobs.audit.known_batches import KnownBatches
from tanist.spark.jobs.audit.segment_ranges import SegmentRange, sums_of_group
from tanist.spark.segments import record_columns
from tanist.wire.batch import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, LEADER_EPOCH_AT, NewRecord
from tanist.wire.crc import crc32c
from tests.spark.spark_segments_samples import START_MS, SegmentBuilder


def replica(number: int, made: SegmentBuilder, folder: Path) -> SegmentRange:
    path = made.write(folder / str(number))
    return SegmentRange(str(path), 0, len(made.data), "orders", 0, number, made.base_offset, None, None, None)


def by_bucket(batches: Any) -> dict[Any, Any]:
    """By replica, epoch and bucket, as Spark adds them up."""
    found: dict[Any, Any] = defaultdict(lambda: [0, 0, 1 << 62, -1, 0])
    for row in (row for batch in batches for row in batch.to_pylist()):
        if row["damages"]:
            found["damages", row["replica"]][0] += row["damages"]
            continue
        sums = found[row["replica"], row["leader_epoch"], row["bucket"]]
        sums[0] += row["records"]
        sums[1] ^= row["hash"]
        sums[2], sums[3] = min(sums[2], row["first_offset"]), max(sums[3], row["last_offset"])
        sums[4] += row["transactional"]
    return dict(found)


def alone(*pieces: SegmentRange) -> dict[Any, Any]:
    return by_bucket(batch for piece in pieces for batch in sums_of_group([piece]))


def together(*pieces: SegmentRange) -> dict[Any, Any]:
    return by_bucket(sums_of_group(list(pieces)))


def sound(seed: int) -> SegmentBuilder:
    made = SegmentBuilder(700)
    rng = random.Random(seed)
    for _ in range(40):
        made.epoch += rng.random() < 0.1
        values = [f"{made.offset}/{number}".encode() for number in range(rng.choice((1, 3, 60)))]
        made.batch([NewRecord(START_MS, None, value) for value in values], control=len(values) == 1)
    return made


def sealed(made: SegmentBuilder, number: int) -> None:
    """Give a batch that was changed the CRC of its bytes."""
    start, end = made.positions[number], [*made.positions, len(made.data)][number + 1]
    crc = crc32c(memoryview(bytes(made.data))[start + ATTRIBUTES_AT : end])
    made.data[start + CRC_AT : start + ATTRIBUTES_AT] = crc.to_bytes(4, "big")


def test_what_is_the_same_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [replica(number, sound(1), tmp_path) for number in (1, 2, 3)]
    expected = alone(*pieces)
    decoded = []
    decode = record_columns.decode

    def counted(arena: Any, starts: Any, ends: Any, counts: Any) -> Any:
        decoded.append(len(starts))
        return decode(arena, starts, ends, counts)

    monkeypatch.setattr(record_columns, "decode", counted)
    assert together(*pieces) == expected
    assert sum(decoded) == 40


@pytest.mark.parametrize("seed", range(8))
def test_replicas_that_differ_have_their_own_sums(tmp_path: Path, seed: int) -> None:
    """Bytes, epochs and batches that one replica has otherwise, damage of both kinds, and other cuts into batches."""
    rng = random.Random(seed)
    pieces = []
    for number in (1, 2, 3):
        made = sound(seed)
        for _ in range(3):
            batch = rng.randrange(40)
            start, end = made.positions[batch], [*made.positions, len(made.data)][batch + 1]
            kind = rng.randrange(4)
            if kind == 0:  # torn
                made.data[rng.randrange(start + HEADER_BYTES, end)] ^= 0xFF
            elif kind == 1:  # another epoch: not in the CRC
                made.data[start + LEADER_EPOCH_AT + 3] ^= 0x40
            elif kind == 2:  # other bytes in a value, and a right CRC
                made.data[end - 2] ^= 0x01
                sealed(made, batch)
            else:  # no records, though the CRC is right
                made.data[start + HEADER_BYTES] = 0x7F
                sealed(made, batch)
        pieces.append(replica(number, made, tmp_path))
    other = SegmentBuilder(700).batches(7, 33)
    pieces.append(replica(4, other, tmp_path))
    rng.shuffle(pieces)
    assert together(*pieces) == alone(*pieces)


def test_damage_within_a_sound_batch_is_damage_of_each_replica(tmp_path: Path) -> None:
    pieces = []
    for number in (1, 2):
        made = sound(3)
        made.data[made.positions[5] + HEADER_BYTES] = 0x7F
        sealed(made, 5)
        pieces.append(replica(number, made, tmp_path))
    found = together(*pieces)
    assert found == alone(*pieces)
    assert (found["damages", 1][0], found["damages", 2][0]) == (1, 1)


def test_batches_of_one_base_offset_are_not_learnt(tmp_path: Path) -> None:
    made = SegmentBuilder(0).batches(3, 5)
    for _ in range(2):
        made.offset = 10
        made.batch([NewRecord(START_MS, None, b"%d" % len(made.data))] * 5)
    pieces = [replica(number, made, tmp_path) for number in (1, 2)]
    assert together(*pieces) == alone(*pieces)


def test_nothing_was_met_before_anything_was_learnt() -> None:
    known = KnownBatches()
    known.learn()
    assert known.met() is None

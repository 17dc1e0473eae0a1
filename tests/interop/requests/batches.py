"""Record batches that producers send, right ones and wrong ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tanist.wire.batch import (
    ATTRIBUTES_AT,
    LAST_OFFSET_DELTA_AT,
    MAGIC_AT,
    RECORD_COUNT_AT,
    NewRecord,
    encode_batch,
    write_crc,
)

DAMAGES = ("none",) * 16 + (
    "crc",
    "magic",
    "length",
    "count",
    "offset",
    "compression",
    "control",
    "empty",
    "twice",
)
TIMES = (1_700_000_000_000, 1_700_000_000_500, 1_690_000_000_000, -1)


class Batch(NamedTuple):
    """A batch as it is drawn: ids may be symbols."""

    records: tuple[NewRecord, ...]
    producer_id: Any
    producer_epoch: Any
    base_sequence: int
    transactional: bool
    damage: str


def draw(random: Random, producer_id: Any, producer_epoch: Any, *, transactional: bool) -> Batch:
    time = random.choice(TIMES)
    keys = (None, b"a", b"b", b"")
    records = tuple(
        NewRecord(time, random.choice(keys), random.choice((None, b"", b"value"))) for _ in range(random.randint(1, 3))
    )
    return Batch(
        records,
        producer_id,
        producer_epoch,
        -1 if producer_id == -1 else random.choice((0, 0, 0, 1, 2, 3, 5, -1)),
        transactional,
        random.choice(DAMAGES),
    )


def encode(batch: Batch, filled: Callable[[Any], Any]) -> bytes | None:
    if batch.damage == "empty":
        return b""
    data = encode_batch(
        batch.records,
        producer_id=filled(batch.producer_id),
        producer_epoch=filled(batch.producer_epoch),
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
        control=batch.damage == "control",
    )
    if batch.damage == "crc":
        data[-1] ^= 1
    elif batch.damage == "magic":
        data[MAGIC_AT] = 1
    elif batch.damage == "length":
        del data[-3:]
    elif batch.damage == "twice":
        return bytes(data + data)
    elif batch.damage in ("count", "offset", "compression"):
        at, kind, value = {
            "count": (RECORD_COUNT_AT, ">i", len(batch.records) + 1),
            "offset": (LAST_OFFSET_DELTA_AT, ">i", len(batch.records)),
            "compression": (ATTRIBUTES_AT, ">h", 2),
        }[batch.damage]
        struct.pack_into(kind, data, at, value)
        write_crc(data, 0, len(data))
    return bytes(data)

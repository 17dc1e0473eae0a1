"""The records that every client is given to produce, and to give back unchanged."""

from __future__ import annotations

import time
from dataclasses import dataclass

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 3
# Within the last hour: older records fall to the retention of seven days, and do so in the middle of a test.
FIRST_TIMESTAMP_MS = int(time.time()) * 1000 - 3_600_000
STEP_MS = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """One record, with the partition and timestamp it is sent with."""

    partition: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def samples(count: int = 150, *, null_headers: bool = True) -> list[Sample]:
    """Records of every shape: null and empty keys and values, headers, large and small, all over three partitions.

    Timestamps rise by `STEP_MS`, in order of the list, and so within each partition. The pure Python clients refuse to
    send a header without a value, and a record with neither key nor value.
    """
    made = []
    for number in range(count):
        key = None if number % 5 == 0 else f"key-{number % 7}".encode()
        value: bytes | None = f"value-{number} ".encode() * (1 + number % 40)
        if number % 11 == 0:
            value = b""
        elif number % 13 == 0 and key is not None:
            value = None
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if number % 3 == 0:
            headers = (("trace", str(number).encode()), ("trace", b"again"), ("ünï", b"\x00\xff"), ("empty", b""))
        if null_headers and number % 17 == 0:
            headers = (*headers, ("null", None))
        made.append(Sample(number % PARTITIONS, FIRST_TIMESTAMP_MS + number * STEP_MS, key, value, headers))
    return made


def by_partition(records: list[Sample]) -> dict[int, list[Sample]]:
    """The samples of each partition, in order of production."""
    split: dict[int, list[Sample]] = {partition: [] for partition in range(PARTITIONS)}
    for record in records:
        split[record.partition].append(record)
    return split


def plain(number: int) -> bytes:
    """A short value for tests that only count."""
    return f"plain-{number}".encode()

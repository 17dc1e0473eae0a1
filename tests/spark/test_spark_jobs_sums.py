"""Sums of a log, where it is read: one row for each run of offsets through a bucket, and what the rows come to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.spark.jobs.audit import sums as audit_sums

SIZE = audit_sums.BUCKET_OFFSETS
Record = tuple[int, int, int]
"""Epoch, offset, fingerprint."""
records = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3 * SIZE), st.integers(-(2**63), 2**63 - 1)), max_size=30
)
KINDS = {
    "leader_epoch": pa.int32(), "offset": pa.int64(), "fingerprint": pa.int64(), "damage": pa.string(),
    "is_transactional": pa.bool_(),
}  # fmt: skip


def batch(rows: Iterable[Record], damages: int = 0) -> Any:
    lines: list[Any] = [(epoch, offset, mark, None, mark > 0) for epoch, offset, mark in rows]
    lines += [(None, None, None, "torn", None)] * damages
    columns = zip(*lines) if lines else ([] for _ in KINDS)
    return pa.RecordBatch.from_pydict({name: pa.array(column, KINDS[name]) for name, column in zip(KINDS, columns)})


def together(rows: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[int, ...]]:
    """By epoch and bucket, as Spark adds them up."""
    found: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 2**63, -1, 0])
    for row in rows:
        if row["bucket"] is None:
            continue
        sums = found[row["leader_epoch"], row["bucket"]]
        sums[0] += row["records"]
        sums[1] ^= row["hash"]
        sums[2] = min(sums[2], row["first_offset"])
        sums[3] = max(sums[3], row["last_offset"])
        sums[4] += row["transactional"]
    return {key: tuple(sums) for key, sums in found.items()}


def hashed(record: Record) -> int:
    """Of a record alone."""
    (row,) = audit_sums.summed(batch([record]), "t", 0, 1).to_pylist()
    return int(row["hash"])


def expected(rows: list[Record]) -> dict[tuple[int, int], tuple[int, ...]]:
    return together([
        {
            "leader_epoch": epoch, "bucket": offset // SIZE, "records": 1, "hash": hashed((epoch, offset, mark)),
            "first_offset": offset, "last_offset": offset, "transactional": int(mark > 0),
        }
        for epoch, offset, mark in rows
    ])  # fmt: skip


# The first example pays for numpy's and Arrow's imports.
@settings(deadline=None)
@given(records, st.integers(0, 3))
def test_sums_are_those_of_the_rows_however_they_come(rows: list[Record], damages: int) -> None:
    found = audit_sums.summed(batch(rows, damages), "orders", 3, 1).to_pylist()
    assert together(found) == expected(rows)
    assert sum(row["damages"] for row in found) == damages
    assert {(row["topic"], row["partition"], row["replica"]) for row in found} <= {("orders", 3, 1)}
    assert len(found) <= len(rows) + 1


def test_a_log_in_order_gives_one_row_a_bucket() -> None:
    rows = [(0, offset, 7) for offset in range(100, 100 + 2 * SIZE)]
    assert [row["records"] for row in audit_sums.summed(batch(rows), "t", 0, 1).to_pylist()] == [SIZE - 100, SIZE, 100]


def test_a_hash_is_of_offset_epoch_and_content() -> None:
    drawn = [(epoch, offset, mark) for epoch in range(8) for offset in range(8) for mark in range(-4, 4)]
    assert len({hashed(record) for record in drawn}) == len(drawn)

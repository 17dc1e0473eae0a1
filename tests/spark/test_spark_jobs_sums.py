"""Sums of a log, where it is read: one row for each run of offsets through a bucket, and what the rows come to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.spark.jobs.audit import spark_hashes
from tanist.spark.jobs.audit import sums as audit_sums

SIZE = audit_sums.BUCKET_OFFSETS
Record = tuple[int, int, int, bool, int]
"""Epoch, offset, fingerprint, is_control, value_hash."""
records = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 3 * SIZE), st.integers(-5, 5), st.booleans(), st.integers(-(2**63), 2**63 - 1)
    ),
    max_size=30,
)
KINDS = {
    "leader_epoch": pa.int32(), "offset": pa.int64(), "fingerprint": pa.int64(), "damage": pa.string(),
    "is_control": pa.bool_(), "value_hash": pa.int64(),
    "is_transactional": pa.bool_(),
}  # fmt: skip


def batch(rows: Iterable[Record], damages: int = 0) -> Any:
    lines: list[Any] = [
        (epoch, offset, mark, None, control, value, mark > 0) for epoch, offset, mark, control, value in rows
    ]
    lines += [(None, None, None, "torn", None, None, None)] * damages
    columns = zip(*lines) if lines else ([] for _ in KINDS)
    return pa.RecordBatch.from_pydict({name: pa.array(column, KINDS[name]) for name, column in zip(KINDS, columns)})


def together(rows: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[int, ...]]:
    """By epoch and bucket, as Spark adds them up."""
    found: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0, 2**63, -1, 0])
    for row in rows:
        if row["bucket"] is None:
            continue
        sums = found[row["leader_epoch"], row["bucket"]]
        sums[0] += row["records"]
        sums[1] ^= row["hash"]
        sums[2] += row["value_records"]
        sums[3] ^= row["value_hash"]
        sums[4] = min(sums[4], row["first_offset"])
        sums[5] = max(sums[5], row["last_offset"])
        sums[6] += row["transactional"]
    return {key: tuple(sums) for key, sums in found.items()}


def hashed(*numbers: int) -> int:
    return int(spark_hashes.of_longs(*(np.array([number], np.int64) for number in numbers)).view(np.int64)[0])


def expected(rows: list[Record]) -> dict[tuple[int, int], tuple[int, ...]]:
    return together([
        {
            "leader_epoch": epoch, "bucket": offset // SIZE, "records": 1, "hash": hashed(offset, epoch, mark),
            "value_records": int(not control), "value_hash": 0 if control else hashed(offset, value),
            "first_offset": offset, "last_offset": offset, "transactional": int(mark > 0),
        }
        for epoch, offset, mark, control, value in rows
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
    rows = [(0, offset, 7, False, offset) for offset in range(100, 100 + 2 * SIZE)]
    assert [row["records"] for row in audit_sums.summed(batch(rows), "t", 0, 1).to_pylist()] == [SIZE - 100, SIZE, 100]


def test_without_values_there_are_no_sums_of_values() -> None:
    names = audit_sums.columns(values=False)
    assert "value_hash" not in names
    (row,) = audit_sums.summed(batch([(0, 1, 2, False, 3)]).select(names), "t", 0, None).to_pylist()
    assert (row["records"], row["value_records"], row["value_hash"], row["replica"]) == (1, 0, 0, None)

"""Level one of a log: of each replica, epoch and bucket of offsets, how many records there are and what they come to.

Owns the sums, in two ways. A log that is read from segment files is summed up where it is read (`summed`), a batch of
rows at a time, so that hundreds of records reach the JVM as one row. A log that is a DataFrame is summed up by Spark
(`of_rows`). Exclusive-or puts sums together in any order, `together` does.

`hash` is over offset, epoch and fingerprint, and means something only beside others of its log; `value_hash` is over
offset and value, of records and not of control records, and is the one that clients' histories are summed up by.
`transactional` counts the records and markers of transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tanist.spark.jobs.audit.spark_hashes import of_longs

BUCKET_OFFSETS: Final = 512
"""Small, so that a bucket which has to be read again is little, however many records are wrong."""
BUCKET: Final = f"offset div {BUCKET_OFFSETS}"
SCHEMA: Final = (
    "topic string, partition int, replica int, leader_epoch int, bucket bigint, records bigint, hash bigint,"
    " first_offset bigint, last_offset bigint, damages bigint, value_records bigint, value_hash bigint,"
    " transactional bigint"
)
_BY: Final = ("topic", "partition", "replica", "leader_epoch", "bucket")


def columns(*, values: bool) -> list[str]:
    """The columns to read for it; `value_hash` stays 0 without `values`."""
    return [
        "leader_epoch",
        "offset",
        "fingerprint",
        "damage",
        "is_transactional",
        *(["is_control", "value_hash"] if values else []),
    ]


def together(sums: DataFrame) -> DataFrame:
    """One row for each replica, epoch and bucket."""
    return sums.groupBy(*_BY).agg(
        F.sum("records").alias("records"), F.expr("bit_xor(hash)").alias("hash"),
        F.min("first_offset").alias("first_offset"), F.max("last_offset").alias("last_offset"),
        F.sum("damages").alias("damages"), F.sum("value_records").alias("value_records"),
        F.expr("bit_xor(value_hash)").alias("value_hash"), F.sum("transactional").alias("transactional"),
    )  # fmt: skip


def of_rows(rows: DataFrame, *, values: bool) -> DataFrame:
    """Of a DataFrame with the columns of `_BY`, but for the bucket, and those of `columns`."""
    sound, valued = "damage is null", "damage is null and not is_control" if values else "false"
    value_hash = f"if({valued}, xxhash64(offset, value_hash), 0L)" if values else "0L"
    return rows.groupBy(*_BY[:-1], F.expr(BUCKET).alias("bucket")).agg(
        F.expr(f"count_if({sound})").alias("records"),
        F.expr(f"bit_xor(if({sound}, xxhash64(offset, leader_epoch, fingerprint), 0L))").alias("hash"),
        F.expr(f"min(if({sound}, offset, null))").alias("first_offset"),
        F.expr(f"max(if({sound}, offset, null))").alias("last_offset"),
        F.expr("count_if(damage is not null)").alias("damages"),
        F.expr(f"count_if({valued})").alias("value_records"),
        F.expr(f"bit_xor({value_hash})").alias("value_hash"),
        F.expr(f"count_if({sound} and is_transactional)").alias("transactional"),
    )  # fmt: skip


Sums: TypeAlias = dict[str, Any]
"""An array for each of the columns `leader_epoch`, `bucket` and those of `_TOGETHER`."""
_TOGETHER: Final = {
    "records": np.add, "hash": np.bitwise_xor, "first_offset": np.minimum, "last_offset": np.maximum,
    "value_records": np.add, "value_hash": np.bitwise_xor, "transactional": np.add,
}  # fmt: skip


def summed(batch: Any, topic: str, partition: int, replica: int | None) -> Any:
    """A row for each bucket that the records of a batch of `columns` run through; damage is counted in one."""
    return rows_of(in_buckets(apart(batch)), damages_in(batch), topic, partition, replica)


def damages_in(batch: Any) -> int:
    return int(batch.num_rows - batch.column("damage").null_count)


def rows_of(found: Sums, damages: int, topic: str, partition: int, replica: int | None) -> Any:
    """Sums of a replica, and its damage, as rows of `SCHEMA`."""
    rows = len(found["records"])
    columns: dict[str, Any] = {**found, "damages": [0] * rows}
    if damages:
        nothing = {"leader_epoch": None, "bucket": None, "first_offset": None, "last_offset": None, "damages": damages}
        columns = {name: [*values, nothing.get(name, 0)] for name, values in columns.items()}
    return _table(columns, {"topic": topic, "partition": partition, "replica": replica})


def apart(batch: Any) -> Sums:
    """The sums of each run of records of a batch of `columns` that are of one bucket and epoch.

    With the column `batch_offset` also of one batch of the log; the sums have that column then, too. Damage does not
    count.
    """
    if damages_in(batch):
        batch = batch.filter(batch.column("damage").is_null())
    names = set(batch.schema.names)
    keys = [name for name in ("leader_epoch", "batch_offset") if name in names]
    if not batch.num_rows:
        return {name: np.empty(0, np.int64) for name in (*keys, "bucket", *_TOGETHER)}
    epochs, offsets, prints = (_numbers(batch[name]) for name in ("leader_epoch", "offset", "fingerprint"))
    columns = {"bucket": offsets // BUCKET_OFFSETS, **{name: _numbers(batch[name]) for name in keys}}
    starts = _runs(*columns.values())
    none = np.zeros(len(starts), np.int64)
    found = {
        **{name: column[starts] for name, column in columns.items()},
        "records": np.diff(np.r_[starts, len(offsets)]),
        "hash": np.bitwise_xor.reduceat(of_longs(offsets, epochs, prints), starts).view(np.int64),
        "first_offset": np.minimum.reduceat(offsets, starts),
        "last_offset": np.maximum.reduceat(offsets, starts),
        "value_records": none,
        "value_hash": none,
        "transactional": np.add.reduceat(_flags(batch["is_transactional"]).astype(np.int64), starts),
    }
    if "value_hash" in names:
        valued = ~_flags(batch["is_control"])
        hashes = np.where(valued, of_longs(offsets, _numbers(batch["value_hash"])), np.uint64(0))
        found["value_records"] = np.add.reduceat(valued.astype(np.int64), starts)
        found["value_hash"] = np.bitwise_xor.reduceat(hashes, starts).view(np.int64)
    return found


def in_buckets(sums: Sums) -> Sums:
    """Sums that lie behind each other and are of one bucket and epoch, together."""
    if not len(sums["records"]):
        return sums
    starts = _runs(sums["leader_epoch"], sums["bucket"])
    found = {name: how.reduceat(sums[name], starts) for name, how in _TOGETHER.items()}
    return {**found, "leader_epoch": sums["leader_epoch"][starts], "bucket": sums["bucket"][starts]}


def _runs(*columns: Any) -> Any:
    """Where one of the columns changes, and at the beginning."""
    changes = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(np.r_[True, changes])


def _numbers(column: Any) -> Any:
    return np.ascontiguousarray(column.to_numpy(), np.int64)


def _flags(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False)


def _table(found: dict[str, Sequence[Any]], constant: dict[str, Any]) -> Any:
    import pyarrow as pa

    from tanist.spark.jobs.audit.arrow_columns import columns_of

    rows = len(found["records"])
    arrays = {}
    for name, kind in columns_of(SCHEMA).items():
        values = [constant[name]] * rows if name in constant else found[name]
        arrays[name] = pa.array(values, kind)
    return pa.RecordBatch.from_pydict(arrays)

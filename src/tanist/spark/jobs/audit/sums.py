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
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

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


def summed(batch: Any, topic: str, partition: int, replica: int | None) -> Any:
    """A row for each bucket that the records of a batch of `columns` run through; damage is counted in one."""
    import pyarrow.compute as pc

    sound = batch.filter(pc.is_null(batch["damage"]))
    found = _sums(sound) if sound.num_rows else {name: [] for name in _NAMES}
    damages = batch.num_rows - sound.num_rows
    rows = len(found["records"])
    found["damages"] = [0] * rows
    if damages:
        nothing = {"leader_epoch": None, "bucket": None, "first_offset": None, "last_offset": None, "damages": damages}
        found = {name: [*values, nothing.get(name, 0)] for name, values in found.items()}
    return _table(found, {"topic": topic, "partition": partition, "replica": replica})


_NAMES: Final = (
    "leader_epoch", "bucket", "records", "hash", "first_offset", "last_offset", "value_records", "value_hash",
    "transactional",
)  # fmt: skip


def _sums(batch: Any) -> dict[str, Any]:
    import numpy as np

    from tanist.spark.jobs.audit.spark_hashes import of_longs

    epochs, offsets, prints = (_numbers(batch[name]) for name in ("leader_epoch", "offset", "fingerprint"))
    buckets = offsets // BUCKET_OFFSETS
    starts = np.flatnonzero(np.r_[True, (buckets[1:] != buckets[:-1]) | (epochs[1:] != epochs[:-1])])
    none = np.zeros(len(starts), np.int64)
    found = {
        "leader_epoch": epochs[starts],
        "bucket": buckets[starts],
        "records": np.diff(np.r_[starts, len(offsets)]),
        "hash": np.bitwise_xor.reduceat(of_longs(offsets, epochs, prints), starts).view(np.int64),
        "first_offset": np.minimum.reduceat(offsets, starts),
        "last_offset": np.maximum.reduceat(offsets, starts),
        "value_records": none,
        "value_hash": none,
        "transactional": np.add.reduceat(_flags(batch["is_transactional"]).astype(np.int64), starts),
    }
    if "value_hash" in batch.schema.names:
        valued = ~_flags(batch["is_control"])
        hashes = np.where(valued, of_longs(offsets, _numbers(batch["value_hash"])), np.uint64(0))
        found["value_records"] = np.add.reduceat(valued.astype(np.int64), starts)
        found["value_hash"] = np.bitwise_xor.reduceat(hashes, starts).view(np.int64)
    return found


def _numbers(column: Any) -> Any:
    import numpy as np

    return np.ascontiguousarray(column.to_numpy(), np.int64)


def _flags(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False)


def _table(found: dict[str, Sequence[Any]], constant: dict[str, Any]) -> Any:
    import pyarrow as pa

    kinds = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
    rows = len(found["records"])
    arrays = {}
    for each in SCHEMA.split(","):
        name, kind = each.split()
        values = [constant[name]] * rows if name in constant else found[name]
        arrays[name] = pa.array(values, kinds[kind])
    return pa.RecordBatch.from_pydict(arrays)

"""Level one of a log: of each replica, epoch and bucket of offsets, how many records there are and what they come to.

Owns the sums of a log that is read from segment files: it is summed up where it is read (`summed`), a batch of rows at
a time, so that hundreds of records are one row. Exclusive-or puts sums together in any order.

`hash` is over offset, epoch and fingerprint, and means something only beside others of its log. `transactional` counts
the records and markers of transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tanist.spark.segments.fingerprints import finished

BUCKET_OFFSETS: Final = 4096
"""So many offsets are compared as one, and read again as one."""
BUCKET: Final = f"offset div {BUCKET_OFFSETS}"
SCHEMA: Final = (
    "topic string, partition int, replica int, leader_epoch int, bucket bigint, records bigint, hash bigint,"
    " first_offset bigint, last_offset bigint, damages bigint, transactional bigint"
)
COLUMNS: Final = ("leader_epoch", "offset", "fingerprint", "damage", "is_transactional")
"""The columns of `tanist-segments` that are summed up."""
_OF_OFFSET: Final = np.uint64(0x9E3779B97F4A7C15)
_OF_EPOCH: Final = np.uint64(0xC2B2AE3D27D4EB4F)

Sums: TypeAlias = dict[str, Any]
"""An array for each of the columns `leader_epoch`, `bucket` and those of `_TOGETHER`."""
_TOGETHER: Final = {
    "records": np.add, "hash": np.bitwise_xor, "first_offset": np.minimum, "last_offset": np.maximum,
    "transactional": np.add,
}  # fmt: skip


def summed(batch: Any, topic: str, partition: int, replica: int | None) -> Any:
    """A row for each bucket that the records of a batch of `COLUMNS` run through; damage is counted in one."""
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
    """The sums of each run of records of a batch of `COLUMNS` that are of one bucket and epoch.

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
    return {
        **{name: column[starts] for name, column in columns.items()},
        "records": np.diff(np.r_[starts, len(offsets)]),
        "hash": np.bitwise_xor.reduceat(_mixed(offsets, epochs, prints), starts).view(np.int64),
        "first_offset": np.minimum.reduceat(offsets, starts),
        "last_offset": np.maximum.reduceat(offsets, starts),
        "transactional": np.add.reduceat(_flags(batch["is_transactional"]).astype(np.int64), starts),
    }


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


def _mixed(offsets: Any, epochs: Any, prints: Any) -> Any:
    """64 bits of each record: of its place, and of what its fingerprint is of."""
    return finished(prints.view(np.uint64) + offsets.view(np.uint64) * _OF_OFFSET + epochs.view(np.uint64) * _OF_EPOCH)


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

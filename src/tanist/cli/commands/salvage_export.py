"""Salvaged records as JSON lines and as Parquet.

Owns what a salvaged record has besides a record's own fields, whose form is that of `runtime.record_json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import IO, Any

import click

from tanist.installed import add_extra
from tanist.runtime.client.record_json import content_json, line_of
from tanist.runtime.client.salvaged import PartitionSalvage, SalvagedRecord
from tanist.wire.ids import id_text

_ROW_GROUP = 50_000


def as_json(salvaged: SalvagedRecord) -> dict[str, Any]:
    """One record, as an object of JSON."""
    manifest, header, record = salvaged.entry.manifest, salvaged.header, salvaged.record
    value: dict[str, Any] = {
        "topic": manifest.topic,
        "topic_id": id_text(manifest.topic_id),
        "partition": manifest.partition,
        "epoch": salvaged.epoch,
        "offset": record.offset,
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        **content_json(record),
        "salvage_id": manifest.entry_id,
        "broker": manifest.broker_id,
    }
    if header.producer_id >= 0:
        value |= {
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "sequence": record.sequence,
        }
    if header.is_transactional:
        value["transactional"] = True
    if salvaged.outcome is not None:
        value["transaction"] = salvaged.outcome.value
    return value


def write_jsonl(partitions: Iterable[PartitionSalvage], out: IO[str]) -> int:
    """A line for each record; how many."""
    count = 0
    for partition in partitions:
        for salvaged in partition.records():
            out.write(line_of(as_json(salvaged)))
            count += 1
    return count


def write_parquet(partitions: Iterable[PartitionSalvage], path: Path) -> int:
    """A row for each record; how many."""
    pyarrow, parquet = _pyarrow()
    binary = pyarrow.binary()
    schema = pyarrow.schema(
        [
            ("topic", pyarrow.string()),
            ("topic_id", pyarrow.string()),
            ("partition", pyarrow.int32()),
            ("epoch", pyarrow.int32()),
            ("offset", pyarrow.int64()),
            ("timestamp", pyarrow.timestamp("ms", tz="UTC")),
            ("timestamp_type", pyarrow.string()),
            ("key", binary),
            ("value", binary),
            ("headers", pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", binary)]))),
            ("transactional", pyarrow.bool_()),
            ("transaction", pyarrow.string()),
            ("salvage_id", pyarrow.string()),
            ("broker", pyarrow.int32()),
        ]
    )
    rows = (_row(salvaged) for partition in partitions for salvaged in partition.records())
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for group in _groups(rows):
            writer.write_table(pyarrow.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count


def _row(salvaged: SalvagedRecord) -> dict[str, Any]:
    manifest, record = salvaged.entry.manifest, salvaged.record
    return {
        "topic": manifest.topic,
        "topic_id": id_text(manifest.topic_id),
        "partition": manifest.partition,
        "epoch": salvaged.epoch,
        "offset": record.offset,
        "timestamp": record.timestamp if record.timestamp >= 0 else None,
        "timestamp_type": "LogAppendTime" if salvaged.header.is_log_append_time else "CreateTime",
        "key": record.key,
        "value": record.value,
        "headers": [{"key": name, "value": data} for name, data in record.headers],
        "transactional": salvaged.header.is_transactional,
        "transaction": None if salvaged.outcome is None else salvaged.outcome.value,
        "salvage_id": manifest.entry_id,
        "broker": manifest.broker_id,
    }


def _groups(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while group := list(islice(rows, _ROW_GROUP)):
        yield group


def _pyarrow() -> tuple[Any, Any]:
    """Its two modules. Nobody needs them but this."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise click.ClickException(f"Parquet needs pyarrow: {add_extra('parquet')}") from None

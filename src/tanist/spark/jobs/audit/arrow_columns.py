"""The Arrow columns of a schema that is written as Spark reads it, so that each schema is written once."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_KINDS: Final = {
    "int": pa.int32(), "string": pa.string(), "bigint": pa.int64(), "boolean": pa.bool_(), "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"), "array<int>": pa.list_(pa.field("element", pa.int32())),
}  # fmt: skip


def columns_of(schema: str) -> dict[str, pa.DataType]:
    """By name, in the schema's order. KeyError for a kind of column that is not here."""
    return {name: _KINDS[kind] for name, kind in (each.split() for each in schema.split(","))}

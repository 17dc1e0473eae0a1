"""What a query over metadata logs reads (docs/spark.md).

Owns the options of `tanist-metadata`, and which of several nodes' logs is read: a quorum's nodes hold the same log, so
that one of them is enough, and the one that has come farthest is taken unless a node is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tanist.spark.metadata.changes import MetadataFolder, Row, changes, metadata_folders

_OPTIONS: Final = {"path", "replica"}
_ROWS: Final = 4096


@dataclass
class Log(InputPartition):
    folder: MetadataFolder


class MetadataReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        named = {name.lower(): value for name, value in options.items()}
        unknown = sorted(set(named) - _OPTIONS)
        if unknown:
            raise ValueError(
                f"tanist-metadata has no option {', '.join(unknown)}; it has {', '.join(sorted(_OPTIONS))}"
            )
        if "path" not in named:
            raise ValueError('tanist-metadata needs a folder: .load("PATH")')
        self._path = named["path"]
        self._replica = named.get("replica", "")
        if self._replica not in ("", "all") and not self._replica.isdecimal():
            raise ValueError(f"replica is a node's id or all, not {self._replica!r}")
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        folders = metadata_folders(self._path)
        if self._replica == "":
            folders = [max(folders, key=lambda each: each.end)]
        elif self._replica != "all":
            folders = [each for each in folders if each.replica == int(self._replica)]
            if not folders:
                raise ValueError(f"node {self._replica} has no metadata log below {self._path}")
        return [Log(each) for each in folders]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Log):
            raise TypeError(f"{type(partition).__name__} is no metadata log")
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self._schema, timezone="UTC")
        rows = changes(partition.folder)
        while chunk := list(islice(rows, _ROWS)):
            yield pa.RecordBatch.from_pylist([_completed(row, partition.folder) for row in chunk], schema=schema)


def _completed(row: Row, folder: MetadataFolder) -> Row:
    at_ms = row.get("timestamp_ms")
    return row | {"replica": folder.replica, "timestamp": None if at_ms is None else at_ms * 1000}

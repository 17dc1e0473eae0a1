"""Tables of an audit by DuckDB that several stages use: logs, facts, findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs.audit.by_duckdb.session import Database
from tanist.spark.jobs.audit.facts import Facts
from tanist.spark.jobs.audit.findings import SCHEMA
from tanist.spark.jobs.audit.log_files import COLUMNS, Holders, LogFiles, Near
from tanist.spark.jobs.audit.segment_ranges import SegmentRange, rows_of, sums_of_group

_SQL: Final = {"string": "varchar", "int": "integer", "bigint": "bigint", "array<int>": "integer[]"}


class Logs:
    """Segment files, decoded in this process as DuckDB takes them."""

    def __init__(self, database: Database, files: LogFiles) -> None:
        self._database = database
        self._files = files

    def sums(self) -> Iterator[Any]:
        return chain.from_iterable(map(sums_of_group, self._files.groups()))

    def load(
        self, table: str, columns: Sequence[str], *, holders: Holders = None, near: Near = None, only: str | None = None
    ) -> None:
        """Make a table of rows of `tanist-segments`; `only` is a column that must be true."""
        self._load(table, columns, self._files.ranges(holders=holders, near=near), only)

    def load_salvage(self, table: str, columns: Sequence[str], near: Near) -> None:
        self._load(table, columns, self._files.salvaged(near), None)

    def _load(self, table: str, columns: Sequence[str], ranges: Sequence[SegmentRange], only: str | None) -> None:
        rows = (batch for each in ranges for batch in rows_of(each, columns))
        if only is not None:
            rows = (batch.filter(batch.column(only)) for batch in rows)
        self._database.load(table, ", ".join(f"{name} {COLUMNS[name]}" for name in columns), rows)


def facts_table(database: Database, facts: Facts) -> None:
    """`facts`, and `starts`: where the log of each replica begins."""
    rows = [
        {
            "topic": topic, "partition": partition, "place": f"{topic}-{partition}", "replicas": len(each.replicas),
            "reference": each.reference, "start": each.start, "high_watermark": each.high_watermark,
            "judged": each.judged,
        }
        for (topic, partition), each in facts.items()
    ]  # fmt: skip
    starts = [
        {"topic": topic, "partition": partition, "replica": replica, "begins": start}
        for (topic, partition), each in facts.items()
        for replica, start in each.starts.items()
    ]
    database.insert(
        "facts",
        "topic string, partition int, place string, replicas int, reference int, start bigint, high_watermark bigint,"
        " judged boolean",
        rows,
    )
    database.insert("starts", "topic string, partition int, replica int, begins bigint", starts)


def findings_table(database: Database) -> None:
    columns = ", ".join(f'"{name}" {_SQL[kind]}' for name, kind in (each.split() for each in SCHEMA.split(",")))
    database.run(f"create temp table findings ({columns})")


def add_findings(database: Database, source: str, *, kind: Anomaly | None = None, **known: str) -> None:
    """Rows of `source` as findings, with the columns that are named by expressions; topic and partition are there."""
    columns = {"topic": "topic", "partition": '"partition"', **known}
    if kind is not None:
        columns["kind"] = f"'{kind.value}'"
    names = ", ".join(f'"{name}"' for name in columns)
    database.run(f"insert into findings ({names}) select {', '.join(columns.values())} {source}")

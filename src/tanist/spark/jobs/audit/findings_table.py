"""The table to which each audit adds its findings: Delta or Parquet, in a folder, or Delta in an object store.

Owns the columns of a run, and how a run gets into the table at once or not at all. Tasks write files; of Delta one
commit names those that count, and of Parquet one rename shows their folder. Whatever is killed before it leaves files
that no reader sees. What earlier runs have added stays. A run that has found nothing is one row without a kind.

Delta's files are written by tasks through `deltalake`, and not by Spark, whose object stores are jars that are not
here. Must not import pyspark before a job runs: `check` is called without Java.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from tanist.spark.jobs import delta_files
from tanist.spark.jobs.preconditions import Unfit, listed, writable_below
from tanist.spark.stores import SCHEMES, failing, reason, scheme_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TableFormat = Literal["delta", "parquet"]
FORMATS: Final = ("delta", "parquet")
COMPACTED_EVERY: Final = 64
"""Commits. An audit every ten minutes adds 50,000 small files a year."""
_RUN: Final = "run_id string, run_time timestamp, commit string, data string"
_ROWS_A_FILE: Final = 1_000_000
_DELTA_LOG: Final = "_delta_log"
_FOLDER_OF_RUN: Final = "run_id="
_UNFINISHED: Final = "_unfinished-"
"""Readers of Parquet folders pass over names that begin so."""


@dataclass(frozen=True, slots=True)
class Run:
    """One audit: what its rows have in common."""

    run_id: str
    time: datetime
    """When it began."""
    commit: str
    """The commit of the tanist that judged, else its version."""
    data: str | None
    """The folder of the replicas; None of DataFrames."""


class FindingsTable:
    """`place` is a folder, or for Delta also an address in a store (`stores.SCHEMES`)."""

    def __init__(self, place: str | Path, format: TableFormat = "delta") -> None:
        self.format = format
        self._scheme = scheme_of(place)
        self.place = str(Path(place).absolute()) if self._scheme is None else str(place)

    def check(self) -> None:
        """`Unfit` if it cannot be written, or if something else is there."""
        if self.format not in FORMATS:
            raise Unfit(f"findings are {' or '.join(FORMATS)}, not {self.format!r}")
        if self._scheme is None:
            _check_folder(Path(self.place), self.format)
        elif self.format == "parquet":
            raise Unfit(f"{self.place} is an address, where no folder can be renamed: --format delta adds to it")
        elif self._scheme not in SCHEMES:
            raise Unfit(f"findings go to a folder, or to an address of {listed(SCHEMES)}, not of {self._scheme}")
        if self.format == "delta" and (self._scheme is not None or (Path(self.place) / _DELTA_LOG).is_dir()):
            self._check_table()

    def append(self, findings: DataFrame, run: Run) -> None:
        """Add a run: all its rows, or none. `findings` has the columns of `findings.SCHEMA`, and `explained`."""
        rows = findings.select(*_columns_of(run), "*")
        rows = rows.coalesce(max(1, findings.count() // _ROWS_A_FILE))
        if self.format == "parquet":
            self._rename(rows, run)
        else:
            self._commit(rows)

    def _rename(self, rows: DataFrame, run: Run) -> None:
        """The run is in the name of its folder, which Spark, DuckDB and Arrow make a column of."""
        # The default of Spark is a form of 12 bytes that nobody else writes any more.
        rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        unfinished = Path(self.place) / f"{_UNFINISHED}{run.run_id}"
        rows.drop("run_id").write.parquet(unfinished.as_uri())
        os.rename(unfinished, Path(self.place) / f"{_FOLDER_OF_RUN}{run.run_id}")

    def _commit(self, rows: DataFrame) -> None:
        from deltalake import DeltaTable
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(rows.schema, timezone="UTC")
        with failing(self.place):
            table = DeltaTable.create(self.place, schema, mode="ignore")
            files = delta_files.write(rows, self.place)
            now_ms = time.time_ns() // 1_000_000
            table.create_write_transaction([file.added(now_ms) for file in files], "append", schema)
            table.update_incremental()
            if table.version() % COMPACTED_EVERY == 0:
                table.optimize.compact()
                table.vacuum(dry_run=False)

    def _check_table(self) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            if not DeltaTable.is_deltatable(self.place):
                return
            names = [field.name for field in DeltaTable(self.place).schema().fields]
        except (OSError, DeltaError, ValueError) as error:
            raise Unfit(f"the findings' table {reason(self.place, error)}") from error
        if names != _names():
            raise Unfit(f"{self.place} is a table with other columns than findings: name another")


def nothing_found(like: DataFrame) -> DataFrame:
    """The row of a run that has found nothing, with these columns."""
    empty = ["0L AS records" if name == "records" else f"CAST(NULL AS {kind}) AS {name}" for name, kind in like.dtypes]
    return like.sparkSession.range(1).selectExpr(*empty)


def _check_folder(folder: Path, format: TableFormat) -> None:
    if folder.exists() and not folder.is_dir():
        raise Unfit(f"{folder} is a file: a table is a folder")
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    if format == "parquet" and _DELTA_LOG in names:
        raise Unfit(f"{folder} is a Delta table: --format delta adds to it")
    if format == "delta" and _DELTA_LOG not in names and any(name.startswith(_FOLDER_OF_RUN) for name in names):
        raise Unfit(f"{folder} has findings as Parquet: --format parquet adds to them")
    if _DELTA_LOG not in names:
        others = sorted(name for name in names if not name.startswith((_FOLDER_OF_RUN, _UNFINISHED)))
        if others:
            raise Unfit(f"{folder} has other files ({listed(others)}): name another folder")
    writable_below(folder)


def _names() -> list[str]:
    from tanist.spark.jobs.audit.findings import SCHEMA

    return [each.split()[0] for each in (*_RUN.split(","), *SCHEMA.split(","), "explained")]


def _columns_of(run: Run) -> list[Any]:
    from pyspark.sql import functions as F

    values = (run.run_id, run.time, run.commit, run.data)
    fields = (each.split() for each in _RUN.split(","))
    return [F.lit(value).cast(kind).alias(name) for value, (name, kind) in zip(values, fields)]

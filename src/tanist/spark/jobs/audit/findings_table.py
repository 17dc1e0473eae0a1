"""The table to which each audit adds its findings: Delta or Parquet, in a folder, or Delta in an object store.

Owns the columns of a run, and how a run gets into the table at once or not at all. An engine runs a `Writer` over its
rows, in one task or in many; of Delta one commit names the files that count, and of Parquet one rename shows their
folder. Whatever is killed before it leaves files that no reader sees. What earlier runs have added stays. A run that
has found nothing is one row without a kind.

Delta's files are written through `deltalake`, and not by Spark, whose object stores are jars that are not here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from tanist.spark.jobs import delta_files
from tanist.spark.jobs.audit.findings import SCHEMA
from tanist.spark.jobs.delta_files import WrittenFile
from tanist.spark.jobs.preconditions import Unfit, listed, writable_below
from tanist.spark.stores import SCHEMES, failing, reason, scheme_of

TableFormat = Literal["delta", "parquet"]
FORMATS: Final = ("delta", "parquet")
COMPACTED_EVERY: Final = 64
"""Commits. An audit every ten minutes adds 50,000 small files a year."""
ROWS_A_FILE: Final = 1_000_000
COLUMNS: Final = f"run_id string, run_time timestamp, commit string, data string, {SCHEMA}, explained string"
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

    def append(self, write: Write | None, run: Run) -> None:
        """Add a run: all its rows, or none. None: it has found nothing."""
        if write is None:
            write = _nothing_found
        if self.format == "parquet":
            self._rename(write, run)
        else:
            self._commit(write, run)

    def _rename(self, write: Write, run: Run) -> None:
        """The run is in the name of its folder, which Spark, DuckDB and Arrow make a column of."""
        unfinished = Path(self.place) / f"{_UNFINISHED}{run.run_id}"
        unfinished.mkdir(parents=True)
        list(write(Writer(str(unfinished), self.format, run)))
        os.rename(unfinished, Path(self.place) / f"{_FOLDER_OF_RUN}{run.run_id}")

    def _commit(self, write: Write, run: Run) -> None:
        from deltalake import DeltaTable

        writer = Writer(self.place, self.format, run)
        with failing(self.place):
            table = DeltaTable.create(self.place, writer.schema, mode="ignore")
            files = [WrittenFile.of(row) for row in write(writer)]
            now_ms = time.time_ns() // 1_000_000
            table.create_write_transaction([file.added(now_ms) for file in files], "append", writer.schema)
            table.update_incremental()
            if table.version() % COMPACTED_EVERY == 0:
                table.optimize.compact()
                table.vacuum(dry_run=False)

    def _check_table(self) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        from tanist.spark.jobs.audit.arrow_columns import columns_of

        try:
            if not DeltaTable.is_deltatable(self.place):
                return
            names = [field.name for field in DeltaTable(self.place).schema().fields]
        except (OSError, DeltaError, ValueError) as error:
            raise Unfit(f"the findings' table {reason(self.place, error)}") from error
        if names != list(columns_of(COLUMNS)):
            raise Unfit(f"{self.place} is a table with other columns than findings: name another")


@dataclass(frozen=True, slots=True)
class Writer:
    """Puts rows into a file of the table, with a name that no other attempt has. Goes to tasks."""

    place: str
    format: TableFormat
    run: Run

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Of Arrow batches with the columns of `findings.SCHEMA`, and `explained`, in any order; rows of
        `delta_files.SCHEMA`.
        """
        return delta_files.written(self.place, (), None, map(self._whole, batches))

    @property
    def schema(self) -> Any:
        import pyarrow as pa

        from tanist.spark.jobs.audit.arrow_columns import columns_of

        kinds = columns_of(COLUMNS)
        if self.format == "parquet":
            del kinds["run_id"]
        return pa.schema(kinds)

    def _whole(self, batch: Any) -> Any:
        import pyarrow as pa

        run = asdict(self.run)
        run["run_time"] = run.pop("time")
        return pa.RecordBatch.from_arrays(
            [
                pa.repeat(pa.scalar(run[field.name], field.type), batch.num_rows)
                if field.name in run
                else batch.column(field.name).cast(field.type)
                for field in self.schema
            ],
            schema=self.schema,
        )


Write = Callable[[Writer], Iterable[Mapping[str, Any]]]
"""Runs the writer over all rows, and gives its rows."""


def _nothing_found(writer: Writer) -> list[dict[str, Any]]:
    import pyarrow as pa

    from tanist.spark.jobs.audit.arrow_columns import columns_of

    kinds = columns_of(f"{SCHEMA}, explained string")
    row = pa.RecordBatch.from_pylist([{"records": 0}], pa.schema(kinds))
    return [each for batch in writer(iter([row])) for each in batch.to_pylist()]


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

"""The table of seeds: Parquet files, one for each block of seeds that are played alike by the same code.

Owns the columns, the names of the files, and which runs are there. A run is the same wherever it is played, and the
name of a file says which runs are in it (code, kind, terms, block of seeds): a run that is in the table is not played
again, and one that two tasks play, or one task twice, is there once. A file is put there whole. Nothing here grows with
the number of files. Of two jobs that play other seeds of one block at once, one may overwrite what the other has
played; the next job plays it again.

    TABLE/CODE-KIND-TERMS-BLOCK.parquet         rows
    TABLE/_failures/CODE-KIND-TERMS/SEED.json   failures, shrunk, for `tanist lab replay`
    TABLE/_losses/CODE-KIND-TERMS/SEED.json     runs of settings that lost acknowledged records
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

import tanist
from tanist.spark.jobs.preconditions import Unfit, listed, writable_below
from tanist.spark.jobs.seeds.lots import Lot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = {
    "code": "string", "kind": "string", "terms": "string", "seed": "bigint",
    "property": "string", "violation": "string", "digest": "string", "situations": "map<string,bigint>",
    "events": "bigint", "virtual_ms": "bigint", "cpu_s": "double", "faults": "bigint",
    "acknowledged": "bigint", "lost": "bigint", "unclean": "bigint", "outage_ms": "bigint", "load_ms": "bigint",
}  # fmt: skip
SCHEMA: Final = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_ARROW: Final = {
    "string": pa.string(), "bigint": pa.int64(), "double": pa.float64(),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
}  # fmt: skip
_ARROW_SCHEMA: Final = pa.schema([(name, _ARROW[kind]) for name, kind in COLUMNS.items()])
BLOCK: Final = 100
"""Seeds of a file and of a task: long beside the start of a task, and short beside what a killed job may lose."""
_FAILURES, _LOSSES = "_failures", "_losses"
"""Spark passes over names that begin so."""
_WITHOUT_INFLUENCE: Final = frozenset({"runtime", "cli", "testing", "web", "spark"})
"""The packages that the simulator does not import. A package that is not listed decides how a run goes."""
_JOB: Final = Path("spark", "jobs", "seeds")
"""It says what is measured in a run."""
_ROOT: Final = Path(tanist.__file__).parent


class SeedTable:
    """The rows of one code."""

    def __init__(self, folder: str | Path, code: str | None = None) -> None:
        self.folder = Path(folder).absolute()
        self.code = code or code_of_runs()

    def frame(self, spark: SparkSession) -> DataFrame:
        """Its rows. Another program reads the folder as it is, and gets the rows of all codes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        reader = spark.read.schema(SCHEMA).option("pathGlobFilter", f"{self.code}-*.parquet")
        return reader.parquet(self.folder.as_uri())

    def has(self, lot: Lot, block: int, first: int, last: int) -> bool:
        """Whether these seeds of a block are there, by the end of its file. False if others between its seeds lack."""
        path = self._path(lot, block)
        if not path.exists():
            return False
        footer = pq.read_metadata(path)
        seeds = footer.row_group(0).column(list(COLUMNS).index("seed")).statistics
        return bool(seeds.min <= first and last <= seeds.max and footer.num_rows == seeds.max - seeds.min + 1)

    def block(self, lot: Lot, block: int) -> pa.Table:
        path = self._path(lot, block)
        # As one file: a dataset would take columns from the names of folders.
        return pq.ParquetFile(path).read() if path.exists() else _ARROW_SCHEMA.empty_table()

    def put(self, lot: Lot, block: int, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows to a block; `code`, `kind` and `terms` are added here."""
        known = {"code": self.code, "kind": lot.kind, "terms": lot.terms}
        added = pa.Table.from_pylist([{**row, **known} for row in rows], schema=_ARROW_SCHEMA)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(lot, block)
        unfinished = path.with_name(f".{uuid4().hex}")
        with unfinished.open("wb") as file:
            pq.write_table(pa.concat_tables([self.block(lot, block), added]).sort_by("seed"), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)

    def failure(self, lot: Lot, seed: int) -> Path:
        return self.folder / _FAILURES / f"{self.code}-{lot.key}" / f"{seed}.json"

    def loss(self, lot: Lot, seed: int) -> Path:
        return self.folder / _LOSSES / f"{self.code}-{lot.key}" / f"{seed}.json"

    def _path(self, lot: Lot, block: int) -> Path:
        return self.folder / f"{self.code}-{lot.key}-{block:012d}.parquet"


def fit_to_hold(folder: Path) -> None:
    """`Unfit` if it is no folder for a table of seeds."""
    if folder.is_dir():
        names = (name for name in os.listdir(folder) if name not in (_FAILURES, _LOSSES))
        others = sorted(name for name in names if not name.startswith(".") and not name.endswith(".parquet"))
        if others:
            raise Unfit(f"{folder} has other files ({listed(others)}): name another folder")
    writable_below(folder / "table")


@cache
def code_of_runs() -> str:
    """A digest of the sources that decide how a run goes: a commit says nothing of what was changed since."""
    digest = sha256()
    for path in sources():
        digest.update(f"{path.relative_to(_ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def sources() -> list[Path]:
    """Those that decide how a run goes."""
    every = sorted(path.relative_to(_ROOT) for path in _ROOT.rglob("*.py"))
    if not every:
        raise Unfit(
            f"tanist is no folder ({_ROOT}), so nothing says which code plays: install it, or unpack the archive"
        )
    return [_ROOT / path for path in every if path.parts[0] not in _WITHOUT_INFLUENCE or path.is_relative_to(_JOB)]

"""The outcomes of runs of the simulator: a table that grows chunk by chunk, with which a job that was killed goes on.

Owns which runs there are (setting and seed, of this code under these terms), which of them are still to be played, and
the files: one for each chunk, put there whole. A run is the same wherever it is played, so one that is in the table is
never played again. Rows of other code or other terms stay where they are, and do not count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import tanist
from tanist.spark.jobs.audit.arrow_columns import columns_of

OUTCOME: Final = (
    "replication_factor int, min_insync_replicas int, strategy string, seed bigint,"
    " acknowledged bigint, lost bigint, unclean int, outage_ms bigint, load_ms bigint, faults int, violation string"
)
RUNS_A_TASK: Final = 100
"""Minutes: long beside the start of a task, and short beside what a killed job may lose."""
_KEY: Final = "code string, terms string"
_SCHEMA: Final = pa.schema(columns_of(f"{_KEY}, {OUTCOME}"))
_WITHOUT_INFLUENCE: Final = frozenset({"runtime", "cli", "testing", "web", "spark"})
"""The packages that the simulator does not import. A package that is not listed decides how a run goes."""
_JOB: Final = Path("spark", "jobs", "durability.py")
"""It says what is measured in a run."""
_ROOT: Final = Path(tanist.__file__).parent

SettingKey = tuple[int, int, str]
"""Replication factor, min.insync.replicas, strategy."""


class Outcomes:
    def __init__(
        self, settings: Sequence[SettingKey], seeds: range, terms: Mapping[str, Any], folder: Path | None = None
    ) -> None:
        """Without a folder the table is in memory alone."""
        self._settings = list(settings)
        self._seeds = seeds
        self._folder = folder
        self._code = code()
        self._terms = sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()[:12]
        self._rows = self._stored()

    def shares(self, tasks: int) -> Iterator[list[list[tuple[int, int]]]]:
        """The runs that are still to be played, in chunks: for each task numbers of settings, and seeds."""
        count = len(self._settings)
        left = np.setdiff1d(np.arange(count * len(self._seeds)), self._numbers())
        while len(left):
            size = min(RUNS_A_TASK, -(-len(left) // tasks))
            chunk, left = left[: tasks * size], left[tasks * size :]
            yield [
                [(int(each) % count, self._seeds[int(each) // count]) for each in chunk[first::tasks]]
                for first in range(min(tasks, len(chunk)))
            ]

    def add(self, rows: pa.Table) -> None:
        """A chunk of `OUTCOME`. When this returns, it is played for good."""
        known = {"code": self._code, "terms": self._terms}
        columns = [
            pa.array([known[each.name]] * rows.num_rows, each.type)
            if each.name in known
            else rows.column(each.name).cast(each.type)
            for each in _SCHEMA
        ]
        table = pa.table(columns, schema=_SCHEMA)
        self._rows = pa.concat_tables([self._rows, table])
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"runs-{uuid4().hex}.parquet"
        unfinished = self._folder / f".{name}"
        pq.write_table(table, unfinished)
        os.replace(unfinished, self._folder / name)

    def of(self, setting: SettingKey) -> pa.Table:
        """By seed."""
        factor, least, strategy = setting
        mine = (pc.field("replication_factor") == factor) & (pc.field("min_insync_replicas") == least)
        return self._rows.filter(mine & (pc.field("strategy") == strategy)).sort_by("seed")

    def _stored(self) -> pa.Table:
        # With a dot begins what is not whole.
        files = [] if self._folder is None else sorted(map(str, self._folder.glob("[!.]*.parquet")))
        wanted = (pc.field("code") == self._code) & (pc.field("terms") == self._terms)
        wanted &= pc.field("seed").isin(pa.array(np.array(self._seeds)))
        # What an older version wrote has no code and no terms: they are null, and no run of ours.
        return ds.dataset(files, schema=_SCHEMA, format="parquet").to_table(filter=wanted)

    def _numbers(self) -> Any:
        """Of the runs that are in the table: seed by seed, each in all settings."""
        found = [np.empty(0, np.int64)]
        for number, setting in enumerate(self._settings):
            turns = (self.of(setting).column("seed").to_numpy() - self._seeds.start) // self._seeds.step
            found.append(turns * len(self._settings) + number)
        return np.concatenate(found)


def code() -> str:
    """A digest of the sources that decide how a run goes: a commit says nothing of what was changed since."""
    digest = sha256()
    for path in sources():
        digest.update(f"{path.relative_to(_ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def sources() -> list[Path]:
    """Those that decide how a run goes."""
    every = sorted(path.relative_to(_ROOT) for path in _ROOT.rglob("*.py"))
    return [_ROOT / path for path in every if path.parts[0] not in _WITHOUT_INFLUENCE or path == _JOB]

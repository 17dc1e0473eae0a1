"""DuckDB as the engine of audits: a database for each audit, in this process, which may write to a folder of its own.

Owns the way of Arrow batches into tables, the end of an audit that is stopped, and the macros by which DuckDB
understands `audit.rules`. duckdb is imported by an audit, not before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import Any, Final, TypeVar

from tanist.spark.stores import is_stored, opened

T = TypeVar("T")

_COPIED_BYTES: Final = 8 << 20
_INTERRUPT_EVERY_S: Final = 0.05
_MACROS: Final = {
    "get(l, i)": "l[i + 1]",
    "size(l)": "len(l)",
    "array_max(l)": "list_max(l)",
    "array_join(l, separator)": "array_to_string(l, separator)",
    "slice(l, first, count)": "l[first:first + count - 1]",
    "array_except(l, m)": "list_filter(l, lambda each: not list_contains(m, each))",
    "array_intersect(l, m)": "list_filter(l, lambda each: list_contains(m, each))",
}
"""Functions of Spark's, with its arguments."""


class Stopped(Exception):
    """The audit was to end: what it has found so far means nothing."""


class DuckDB:
    """What `audit_folder` takes in place of a Spark session."""

    def __init__(self) -> None:
        self._stopped = Event()
        self._open: Database | None = None

    def database(self) -> Database:
        self._open = Database(self._stopped)
        return self._open

    def cancel(self) -> None:
        """End the audit that runs, and all others. From another thread; again until it has ended."""
        self._stopped.set()
        if self._open is not None:
            self._open.interrupt()


class Database:
    """The tables of one audit."""

    def __init__(self, stopped: Event) -> None:
        import duckdb

        if stopped.is_set():
            raise Stopped
        self._stopped = stopped
        self._copies = 0
        self._folder = tempfile.TemporaryDirectory(prefix="tanist-audit-")
        # What is needed is in the package: nothing is fetched.
        self._connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        self.run(f"set temp_directory = {text(self._folder.name)}")
        self.run("set preserve_insertion_order = false")
        self.run("set enable_progress_bar = false")
        # As Spark sorts.
        self.run("set default_null_order = 'nulls_first'")
        for name, body in _MACROS.items():
            self.run(f"create macro {name} as {body}")

    def local(self, path: str) -> str:
        """A file of this machine, or a copy of one in a store, which goes with the audit.

        DuckDB reads from a store by Python's code in threads of its own, and crashes by it.
        """
        if not is_stored(path):
            return path
        self._copies += 1
        copy = Path(self._folder.name) / f"copy-{self._copies}"
        with closing(opened(path)) as file, copy.open("wb") as out:
            for at in range(0, file.size, _COPIED_BYTES):
                if self._stopped.is_set():
                    raise Stopped
                out.write(file.read(at, _COPIED_BYTES))
        return str(copy)

    def run(self, sql: str) -> Any:
        if self._stopped.is_set():
            raise Stopped
        return self._beside(lambda: self._connection.execute(sql))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        done = self.run(sql)
        return list(self._beside(done.fetchall))

    def dicts(self, sql: str) -> list[dict[str, Any]]:
        done = self.run(sql)
        names = [column[0] for column in done.description]
        return [dict(zip(names, row)) for row in self._beside(done.fetchall)]

    def batches(self, sql: str) -> Iterator[Any]:
        """Arrow."""
        reader = self._beside(lambda: self._connection.sql(sql).to_arrow_reader(1 << 16))
        while (batch := self._beside(lambda: next(reader, None))) is not None:
            yield batch

    def _beside(self, work: Callable[[], T]) -> T:
        """What a thread of its own makes of it, while this one hears Ctrl-C: DuckDB looks for signals between the parts
        of a query only, and a part may not end. `Stopped` if it was cancelled.
        """
        import duckdb

        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(work)
            try:
                return running.result()
            except KeyboardInterrupt:
                while not running.done():
                    self.interrupt()
                    wait([running], _INTERRUPT_EVERY_S)
                raise
            except duckdb.InterruptException as error:
                raise Stopped from error

    def types(self, relation: str) -> dict[str, Any]:
        """The columns of what can stand behind FROM, and their types."""
        found = self._connection.sql(f"from {relation}")
        return dict(zip(found.columns, found.types))

    def load(self, table: str, schema: str, batches: Iterable[Any]) -> None:
        """Make a table of Arrow batches, whose schema is written as Spark reads it; while they come."""
        import duckdb
        import pyarrow as pa

        from tanist.spark.jobs.audit.arrow_columns import columns_of

        failures: list[BaseException] = []
        kinds = pa.schema(columns_of(schema))
        reader = pa.RecordBatchReader.from_batches(kinds, self._each(batches, kinds, failures))
        self._connection.register("_arrow", reader)
        try:
            self.run(f"create or replace temp table {table} as from _arrow")
        except duckdb.Error as error:
            if failures:
                raise failures[0] from error
            raise
        finally:
            self._connection.unregister("_arrow")

    def insert(self, table: str, schema: str, rows: list[dict[str, Any]]) -> None:
        """Make a table of a few rows."""
        import pyarrow as pa

        from tanist.spark.jobs.audit.arrow_columns import columns_of

        self.load(table, schema, pa.Table.from_pylist(rows, pa.schema(columns_of(schema))).to_batches())

    def _each(self, batches: Iterable[Any], kinds: Any, failures: list[BaseException]) -> Iterator[Any]:
        """The batches; what they raise would else come out as an error of DuckDB's."""
        try:
            for batch in batches:
                if self._stopped.is_set():
                    raise Stopped
                if batch.schema != kinds:  # Arrow would read other bytes than there are
                    raise ValueError(f"a batch has {batch.schema}, not {kinds}")
                yield batch
        except BaseException as error:
            failures.append(error)
            raise

    def interrupt(self) -> None:
        import duckdb

        with suppress(duckdb.ConnectionException):  # it is closed: its audit has ended
            self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()
        self._folder.cleanup()


def text(value: str) -> str:
    """As SQL."""
    return "'" + value.replace("'", "''") + "'"

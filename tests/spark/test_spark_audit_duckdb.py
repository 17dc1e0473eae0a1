"""The database of an audit: what goes in comes out as it was, or not at all, and an audit that is to end ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest

from tanist.spark.jobs.audit.audit import audit_folder
from tanist.spark.jobs.audit.by_duckdb.session import Database, DuckDB, Stopped, text
from tests.spark.spark_audit_samples import plant, sound_scene


@pytest.fixture
def session() -> DuckDB:
    return DuckDB()


@pytest.fixture
def database(session: DuckDB) -> Iterator[Database]:
    made = session.database()
    yield made
    made.close()


def batch(kind: Any, *numbers: int) -> Any:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, kind)})


def test_batches_become_a_table_while_they_come(database: Database) -> None:
    database.load("t", "n bigint", (batch(pa.int64(), number, number) for number in range(3)))
    assert database.rows("select n, count(*) from t group by n order by n") == [(0, 2), (1, 2), (2, 2)]


def test_a_batch_of_other_types_is_refused(database: Database) -> None:
    """Arrow takes the schema's word for what is in a buffer."""
    with pytest.raises(ValueError, match="int32"):
        database.load("t", "n bigint", [batch(pa.int64(), 1), batch(pa.int32(), 1)])


@pytest.mark.parametrize("error", [FileNotFoundError, KeyboardInterrupt])
def test_what_a_decoder_raises_comes_out_as_it_was(database: Database, error: type[BaseException]) -> None:
    def failing() -> Iterator[Any]:
        yield batch(pa.int64(), 1)
        raise error("gone")

    with pytest.raises(error, match="gone"):
        database.load("t", "n bigint", failing())


def test_an_audit_that_is_to_end_does_not_go_on_with_a_part(session: DuckDB, database: Database) -> None:
    def endless() -> Iterator[Any]:
        yield batch(pa.int64(), 1)
        session.cancel()
        while True:
            yield batch(pa.int64(), 2)

    with pytest.raises(Stopped):
        database.load("t", "n bigint", endless())
    with pytest.raises(Stopped):
        database.rows("select 1")


ENDLESS = "select sum(a.range * b.range) from range(1000000000) a, range(1000000000) b"


@contextmanager
def again_and_again(do: Callable[[], None]) -> Iterator[None]:
    """From another thread, until the block has ended."""
    ended = Event()

    def repeat() -> None:
        while not ended.wait(0.05):
            do()

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_query_that_runs_is_cancelled(session: DuckDB, database: Database) -> None:
    with pytest.raises(Stopped), again_and_again(session.cancel):
        database.run(ENDLESS)


def test_ctrl_c_ends_a_query_as_it_ends_all_else() -> None:
    """In a process of its own: pytest has a handler of its own."""
    program = (
        "import os, signal, threading\n"
        "from tanist.spark.jobs.audit.by_duckdb.session import DuckDB\n"
        "database = DuckDB().database()\n"
        "try:\n"
        "    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        f"    database.run({ENDLESS!r})\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "interrupted\n", done.stderr


def test_a_cancelled_session_audits_nothing_more(session: DuckDB, tmp_path: Path) -> None:
    sound_scene(1, 100, seed=3).write(tmp_path)
    assert audit_folder(session, tmp_path / "data", [tmp_path / "history.jsonl"]).clean
    session.cancel()
    with pytest.raises(Stopped):
        audit_folder(session, tmp_path / "data", [tmp_path / "history.jsonl"])


def test_nothing_is_left_in_the_folder_for_large_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    sound_scene(1, 100, seed=3).write(tmp_path)
    audit_folder(DuckDB(), tmp_path / "data", [tmp_path / "history.jsonl"])
    assert not list((tmp_path / "temp").iterdir())


def test_a_path_is_a_text(tmp_path: Path, session: DuckDB) -> None:
    folder = tmp_path / "it's; --"
    folder.mkdir()
    sound_scene(1, 100, seed=3).write(folder)
    assert audit_folder(session, folder / "data", [folder / "history.jsonl"]).sends
    assert text("it's") == "'it''s'"


def test_each_audit_gives_the_same_findings_in_the_same_order(tmp_path: Path) -> None:
    """DuckDB's threads end in any order; unacknowledged sends have no offset to sort by."""
    plant(sound_scene(2, 1_000, seed=5), seed=6, faults=40).write(tmp_path)
    found = [audit_folder(DuckDB(), tmp_path / "data", [tmp_path / "history.jsonl"]).findings for _ in range(6)]
    assert found[0]
    assert all(each == found[0] for each in found)

"""Batches into a table, with a crash at each of the moments that count, and a table back into a frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"


class Crashed(Exception):
    pass


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose query has begun: Spark has given it an id."""
    (tmp_path / "t" / "_checkpoint").mkdir(parents=True)
    (tmp_path / "t" / "_checkpoint" / "metadata").write_text(json.dumps({"id": "query-1"}))
    return tmp_path / "t"


def batch(spark: Any, first: int, count: int) -> Any:
    rows = [(None, b"%d" % n, "orders", n % 2, n, None, 0) for n in range(first, first + count)]
    return spark.createDataFrame(rows, SCHEMA)


def offsets(spark: Any, table: Path) -> list[int]:
    from tanist.spark.jobs.ingest import read_table

    return sorted(row.offset for row in read_table(spark, table).select("offset").collect())


def test_a_batch_is_in_the_table_once_wherever_the_query_is_killed(
    spark: Any, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tanist.spark.jobs.ingest import TableSink

    TableSink(table, "delta").take(batch(spark, 0, 10), 0)

    # Killed between the files and the commit: they are there, and the table does not have them.
    with monkeypatch.context() as patched:
        patched.setattr(TableSink, "_commit", lambda *_: (_ for _ in ()).throw(Crashed()))
        with pytest.raises(Crashed):
            TableSink(table, "delta").take(batch(spark, 10, 5), 1)
    assert list((table / "data" / "batch=000000000001").rglob("*.parquet"))
    assert offsets(spark, table) == list(range(10))

    # Run again; then killed between the commit and Spark's own: run again once more.
    for known in (0, 1):
        again = TableSink(table, "delta")
        again.take(batch(spark, 10, 5), 1)
        assert (again.result.known, again.result.records) == (known, 0 if known else 5)
    assert offsets(spark, table) == list(range(15))


def test_the_table_is_one_that_others_read(spark: Any, table: Path) -> None:
    from deltalake import DeltaTable

    from tanist.spark.jobs.ingest import TableSink

    TableSink(table, "delta").take(batch(spark, 0, 10), 0)
    found = DeltaTable(str(table))
    assert found.metadata().partition_columns == ["topic", "partition"]
    assert found.transaction_version("query-1") == 0
    read = found.to_pyarrow_table(filters=[("partition", "=", 1)], columns=["offset", "value", "topic"])
    assert sorted(read.column("offset").to_pylist()) == [1, 3, 5, 7, 9]
    assert set(read.column("topic").to_pylist()) == {"orders"}
    added = found.get_add_actions(flatten=True)
    assert sum(added.column("num_records").to_pylist()) == 10
    assert (min(added.column("min.offset").to_pylist()), max(added.column("max.offset").to_pylist())) == (0, 9)


def test_a_folder_of_parquet_leaves_out_a_batch_that_was_cut_short(spark: Any, table: Path) -> None:
    from tanist.spark.jobs.ingest import TableSink

    for number in range(2):
        TableSink(table, "parquet").take(batch(spark, 10 * number, 10), number)
    assert offsets(spark, table) == list(range(20))
    (table / "data" / "batch=000000000001" / "_SUCCESS").unlink()
    assert offsets(spark, table) == list(range(10))


def test_a_table_without_its_checkpoint_is_refused(spark: Any, table: Path) -> None:
    from tanist.spark.jobs.ingest import TableSink, ingest, read_table
    from tanist.spark.jobs.tables import TableUnfit

    TableSink(table, "delta").take(batch(spark, 0, 1), 0)
    (table / "_checkpoint" / "metadata").unlink()
    with pytest.raises(TableUnfit, match="once more"):
        ingest(spark, "localhost:1", ["orders"], table)
    with pytest.raises(TableUnfit, match="no table"):
        read_table(spark, table / "none")


def files_below(table: Path) -> list[Path]:
    return [path for path in (table / "data").rglob("*.parquet") if not path.name.startswith(".")]


def test_a_query_that_runs_on_has_few_files_and_keeps_none_of_their_names(
    spark: Any, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltalake import DeltaTable

    from tanist.spark.jobs import ingest

    monkeypatch.setattr(ingest, "COMPACTED_EVERY", 3)
    monkeypatch.setattr(ingest, "_KEPT_S", -60)
    opened: list[None] = []
    monkeypatch.setattr(DeltaTable, "__init__", counted(DeltaTable.__init__, opened))
    sink = ingest.TableSink(table, "delta")
    for number in range(6):
        sink.take(batch(spark, 10 * number, 10), number)
    assert len(opened) == 1
    assert offsets(spark, table) == list(range(60))
    # Of batches 0 to 5 all is in one file a partition; what they have replaced is gone.
    assert len(files_below(table)) == 2
    assert sink.result.files >= 12
    assert sink.result.records == 60
    found = DeltaTable(str(table))
    assert found.transaction_version("query-1") == 5
    read = found.to_pyarrow_table(filters=[("partition", "=", 1), ("offset", ">", 50)], columns=["offset", "topic"])
    assert sorted(read.column("offset").to_pylist()) == [51, 53, 55, 57, 59]


def counted(function: Any, calls: list[None]) -> Any:
    def called(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        return function(*arguments, **named)

    return called


def test_compacting_that_is_cut_short_changes_nothing(spark: Any, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tanist.spark.jobs import ingest

    monkeypatch.setattr(ingest, "COMPACTED_EVERY", 2)
    monkeypatch.setattr(ingest, "_KEPT_S", -60)
    with monkeypatch.context() as patched:
        patched.setattr(ingest.WrittenFile, "added", killed_when_compacting(ingest.WrittenFile.added))
        sink = ingest.TableSink(table, "delta")
        sink.take(batch(spark, 0, 10), 0)
        with pytest.raises(Crashed):
            sink.take(batch(spark, 10, 10), 1)
    assert offsets(spark, table) == list(range(20))
    again = ingest.TableSink(table, "delta")
    again.take(batch(spark, 10, 10), 1)
    assert again.result.known == 1
    for number in (2, 3):
        again.take(batch(spark, 10 * number, 10), number)
    assert offsets(spark, table) == list(range(40))
    assert len(files_below(table)) == 2


def killed_when_compacting(added: Any) -> Any:
    def called(file: Any, *, new: bool) -> Any:
        if not new:
            raise Crashed
        return added(file, new=new)

    return called

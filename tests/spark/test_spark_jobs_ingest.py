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
    assert len(files_below(table)) > len(read_files(table))
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
    """All, whether or not they count."""
    return [path for path in table.glob("topic=*/**/*.parquet") if not path.name.startswith(".")]


def read_files(table: Path) -> list[str]:
    from tanist.spark.jobs.tables import files_of

    return [path for path, _, _ in files_of(table)]


def test_a_query_that_runs_on_has_few_files_and_keeps_none_of_their_names(
    spark: Any, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltalake import DeltaTable

    from tanist.spark.jobs import ingest

    monkeypatch.setattr(ingest, "COMPACTED_EVERY", 3)
    monkeypatch.setattr(ingest, "_KEPT_HOURS", 0)
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
    from deltalake import DeltaTable

    from tanist.spark.jobs import ingest

    monkeypatch.setattr(ingest, "COMPACTED_EVERY", 2)
    sink = ingest.TableSink(table, "delta")
    sink.take(batch(spark, 0, 10), 0)
    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "vacuum", lambda *_, **__: (_ for _ in ()).throw(Crashed()))
        with pytest.raises(Crashed):
            sink.take(batch(spark, 10, 10), 1)
    assert offsets(spark, table) == list(range(20))
    again = ingest.TableSink(table, "delta")
    again.take(batch(spark, 10, 10), 1)
    assert again.result.known == 1
    # A file that was written this moment may be of a batch that is not committed yet.
    orphan = table / "topic=orders" / "partition=0" / "part-orphan.snappy.parquet"
    orphan.write_bytes(Path(read_files(table)[0]).read_bytes())
    for number in (2, 3):
        again.take(batch(spark, 10 * number, 10), number)
    assert offsets(spark, table) == list(range(40))
    assert len(read_files(table)) == 2
    assert orphan in files_below(table)
    monkeypatch.setattr(ingest, "_KEPT_HOURS", 0)
    for number in (4, 5):
        again.take(batch(spark, 10 * number, 10), number)
    assert sorted(map(str, files_below(table))) == sorted(read_files(table))
    assert (table / "_checkpoint" / "metadata").exists()


def test_a_table_of_another_checkpoint_is_refused(spark: Any, table: Path, tmp_path: Path) -> None:
    from tanist.spark.jobs.ingest import TableSink
    from tanist.spark.jobs.tables import TableUnfit

    TableSink(table, "delta").take(batch(spark, 0, 1), 0)
    TableSink(table, "delta").require_own_table(spark)
    other = tmp_path / "other"
    with pytest.raises(TableUnfit, match="once more"):
        TableSink(table, "delta", other).require_own_table(spark)
    other.mkdir()
    (other / "metadata").write_text(json.dumps({"id": "query-2"}))
    with pytest.raises(TableUnfit, match=r"not of the checkpoint file:.*/other: all would be written once more"):
        TableSink(table, "delta", other).require_own_table(spark)
    with pytest.raises(TableUnfit, match=r"Spark cannot use the checkpoint s3a://b/c: .*Name a folder; .*hadoop-aws"):
        TableSink(table, "delta", "s3a://b/c").require_own_table(spark)


def test_a_table_that_was_begun_with_sparks_files_goes_on(spark: Any, table: Path) -> None:
    """They lie in `data/batch=N`, and were written by Java."""
    from deltalake import CommitProperties, DeltaTable, Transaction
    from deltalake.transaction import AddAction
    from pyspark.sql.pandas.types import to_arrow_schema

    from tanist.spark.jobs.ingest import TableSink
    from tanist.spark.jobs.tables import PARTITIONED_BY, partition_of

    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    rows, by = batch(spark, 0, 10), list(PARTITIONED_BY)
    rows.write.partitionBy(*by).parquet(str(table / "data" / "batch=000000000000"))
    paths = [str(path.relative_to(table)) for path in table.rglob("*.snappy.parquet") if path.name[0] != "."]
    added = [AddAction(path, (table / path).stat().st_size, partition_of(path), 0, True, "{}") for path in paths]
    schema = to_arrow_schema(rows.schema, timezone="UTC")
    once = CommitProperties(app_transactions=[Transaction("query-1", 0)])
    delta = DeltaTable.create(str(table), schema, partition_by=by)
    delta.create_write_transaction(added, "append", schema, partition_by=by, commit_properties=once)
    TableSink(table, "delta").require_own_table(spark)
    sink = TableSink(table, "delta")
    for number in (0, 1):
        sink.take(batch(spark, 10 * number, 10), number)
    assert (sink.result.known, sink.result.batches) == (1, 1)
    assert offsets(spark, table) == list(range(20))


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_topic_of_digits_keeps_its_name(spark: Any, table: Path, kind: Any) -> None:
    from tanist.spark.jobs.ingest import TableSink, read_table

    rows = batch(spark, 0, 2).selectExpr("key", "value", "'007' AS topic", "partition", "offset", "timestamp")
    TableSink(table, kind).take(rows, 0)
    found = read_table(spark, table).select("topic", "partition").collect()
    assert sorted((row.topic, row.partition) for row in found) == [("007", 0), ("007", 1)]


def test_rows_of_a_task_become_files_of_a_partition_each(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full files end, few are open at once, and whatever comes of it has each row once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tanist.spark.jobs import delta_files

    monkeypatch.setattr(delta_files, "_GROUP_BYTES", 200)
    monkeypatch.setattr(delta_files, "_FILE_BYTES", 600)
    monkeypatch.setattr(delta_files, "_OPEN_MAX", 2)
    batches = [
        pa.RecordBatch.from_pydict({"p": [n % 5 for n in range(at, at + 30)], "offset": list(range(at, at + 30))})
        for at in range(0, 300, 30)
    ]
    (said,) = delta_files.written(str(tmp_path), ("p",), "offset", iter(batches))
    seen = []
    for row in said.to_pylist():
        rows = pq.ParquetFile(tmp_path / row["path"])
        assert row["size_bytes"] == (tmp_path / row["path"]).stat().st_size
        found = rows.read().column("offset").to_pylist()
        stats, partition = json.loads(row["stats"]), json.loads(row["partition"])
        assert {str(offset % 5) for offset in found} == {partition["p"]}
        assert stats["numRecords"] == row["records"] == len(found)
        assert (stats["minValues"]["offset"], stats["maxValues"]["offset"]) == (min(found), max(found))
        seen += found
    assert sorted(seen) == list(range(300))
    assert said.num_rows > 10

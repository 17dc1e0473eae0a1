"""Both engines of the audit find the same, and say the same of it: in whatever history, of whatever logs."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tanist.cli.output.spark_reports import audit_json
from tanist.lab.anomalies import OF_AUDITS
from tanist.spark.jobs.audit.audit import audit_folder
from tanist.spark.jobs.audit.by_duckdb.session import DuckDB
from tanist.spark.jobs.audit.findings_table import FindingsTable, TableFormat
from tests.spark.spark_audit_samples import missing_tail, plant, sound_scene, write_parquet
from tests.spark.spark_audit_worlds import drawn_cluster


def everything(result: Any) -> dict[str, Any]:
    """All that an audit says, but when."""
    said = {name: value for name, value in audit_json(result).items() if name not in ("run_id", "seconds")}
    said["findings"] = sorted(map(repr, result.findings))
    names = ("epoch_ranges", "facts", "known", "high_watermarks", "replicas", "begun")
    return {**said, **{name: getattr(result, name) for name in names}}


def rows_of(table: FindingsTable) -> list[str]:
    """But for what names the run."""
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    if table.format == "delta":
        found = DeltaTable(table.place).to_pyarrow_table()
    else:
        found = ds.dataset(table.place, partitioning="hive").to_table()
    return sorted(repr(sorted(row.items())) for row in found.drop_columns(["run_id", "run_time"]).to_pylist())


def by_both(
    spark: Any, folder: Path, histories: Sequence[str | Path], table_format: TableFormat = "parquet", **settings: Any
) -> Any:
    """DuckDB's result, which is Spark's, too."""
    tables = [FindingsTable(folder / f"findings-{name}", table_format) for name in ("duckdb", "spark")]
    by_duckdb, by_spark = (
        audit_folder(session, folder / "data", histories, findings=table, **settings)
        for session, table in zip((DuckDB(), spark), tables)
    )
    ours, theirs = everything(by_duckdb), everything(by_spark)
    for name, value in theirs.items():
        assert ours[name] == value, name
    assert rows_of(tables[0]) == rows_of(tables[1])
    return by_duckdb


def test_drawn_clusters(spark: Any, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    folder = drawn_cluster(tmp_path, random.Random(seed), worlds=8)
    by_both(spark, folder, [folder / "history.jsonl"])


def test_a_cluster_with_findings_of_all_kinds(spark: Any, tmp_path: Path) -> None:
    folder = drawn_cluster(tmp_path, random.Random(1), worlds=24)
    result = by_both(spark, folder, [folder / "history.jsonl"], "delta")
    assert {kind for kind, _, _ in result.counts} == set(OF_AUDITS)
    assert len({each.kind for each in result.findings if each.explained}) > 5
    assert any("saved by broker 2" in each.detail for each in result.findings)
    assert any("still has it" in each.detail for each in result.findings)
    assert result.open_transactions
    assert result.begun


@pytest.mark.parametrize("parquet", [pytest.param(False, marks=pytest.mark.slow), True])
def test_planted_faults(spark: Any, tmp_path: Path, parquet: bool) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    scene = plant(sound_scene(2, 6_000, seed), seed + 1, faults=27)
    scene.write(tmp_path)
    history = write_parquet(scene, tmp_path / "history") if parquet else tmp_path / "history.jsonl"
    assert not by_both(spark, tmp_path, [history]).clean


def test_a_sound_cluster_and_one_topic_of_it(spark: Any, tmp_path: Path) -> None:
    sound_scene(2, 2_000, seed=3).write(tmp_path)
    assert by_both(spark, tmp_path, [tmp_path / "history.jsonl"], topics=["orders"]).clean


def test_replicas_alone(spark: Any, tmp_path: Path) -> None:
    folder = drawn_cluster(tmp_path, random.Random(5), worlds=4)
    assert not by_both(spark, folder, []).clean


LINES: list[dict[str, Any]] = [
    {"process": "p", "type": "ok", "f": "send", "partition": "t-0", "value": "a", "offset": 0, "invoked_ns": 1,
     "time_ns": 2},
    {"process": "p", "type": "ok", "f": "send", "partition": "t-0", "value": "grün, and longer than thirty-two bytes",
     "offset": 1, "acks": "1", "idempotent": False, "time_ns": 3},
    {"process": "p", "type": "ok", "f": "send", "partition": "t-1", "value": "without an offset", "acks": "-1"},
    {"process": "p", "type": "fail", "f": "send", "partition": "t-0", "value": "c", "aborted": True, "time_ns": 4},
    {"process": "p", "type": "info", "f": "send", "partition": "u-0", "value": "d", "acks": "all", "time_ns": 5},
    {"process": "c", "type": "ok", "f": "poll", "partition": "t-0", "value": "a", "offset": 0, "time_ns": 6},
    {"process": "c", "type": "ok", "f": "poll", "partition": "t-0", "value": "", "offset": 7, "time_ns": 7,
     "isolation": "read_committed"},
    # Not events.
    {"process": "c", "type": "ok", "f": "poll", "time_ns": 8},
    {"process": "c", "type": "ok", "f": "poll", "partition": "t-0", "value": "a", "time_ns": 8},
    {"process": "c", "type": "info", "f": "poll", "partition": "t-0", "value": "a", "offset": 1, "time_ns": 8},
    {"process": "p", "type": "ok", "f": "send", "partition": "t-0", "offset": 3, "time_ns": 9},
    {"process": "p", "type": "ok", "f": "send", "value": "e", "offset": 3, "time_ns": 9},
    {"process": "nemesis", "type": "ok", "f": "send", "partition": "t-0", "value": "f", "offset": 3, "time_ns": 9},
    {"process": "c", "type": "ok", "f": "end", "partition": "t-0", "offset": 3, "value": "g", "time_ns": 9},
]  # fmt: skip
PAIRS: list[dict[str, Any]] = [
    *(line | {"time_ns": line.get("time_ns", 2)} for line in LINES),
    {"process": "p", "type": "invoke", "f": "send", "id": "1", "partition": "t-0", "value": "h", "time_ns": 20},
    {"process": "p", "type": "invoke", "f": "send", "id": "2", "partition": "t-0", "value": "i", "time_ns": 21},
    {"process": "p", "type": "ok", "f": "send", "id": "1", "offset": 8, "time_ns": 21},
]
SEVERAL: list[dict[str, Any]] = [
    {"process": "c", "type": "ok", "f": "poll", "time_ns": 9, "isolation": "read_committed",
     "records": [{"partition": "t-0", "offset": 8, "value": "h"}, {"partition": "t-1", "offset": 0, "value": "i"}]},
    {"process": "t", "type": "invoke", "f": "txn", "time_ns": 30,
     "ops": [{"f": "send", "partition": "t-0", "value": "j"}, {"f": "send", "partition": "t-0", "value": "k"}]},
    {"process": "t", "type": "fail", "f": "txn", "time_ns": 39, "aborted": True,
     "ops": [{"f": "send", "partition": "t-0", "value": "j", "offset": 11}]},
    {"process": "t", "type": "ok", "f": "txn", "time_ns": 49,
     "ops": [{"f": "poll", "records": [{"partition": "t-0", "offset": 8, "value": "h"}], "time_ns": 41}]},
]  # fmt: skip
KINDS = {
    "process": pa.string(), "type": pa.string(), "f": pa.string(), "partition": pa.string(), "value": pa.string(),
    "acks": pa.string(), "isolation": pa.string(), "offset": pa.int64(), "invoked_ns": pa.int64(),
    "time_ns": pa.int64(), "idempotent": pa.bool_(), "aborted": pa.bool_(),
}  # fmt: skip
RECORDS = pa.list_(pa.struct({"partition": pa.string(), "offset": pa.int64(), "value": pa.string()}))
OPS = pa.list_(pa.struct({
    "f": pa.string(), "partition": pa.string(), "value": pa.string(), "offset": pa.int64(), "records": RECORDS,
    "time_ns": pa.int64(),
}))  # fmt: skip
CODED = {**KINDS, "process": pa.dictionary(pa.int32(), pa.string()), "f": pa.dictionary(pa.int32(), pa.string())}
FEW = {name: kind for name, kind in KINDS.items() if name not in ("acks", "isolation", "idempotent", "aborted")}
OTHER = {**KINDS, "time_ns": pa.int32(), "offset": pa.float64(), "value": pa.binary(), "partition": pa.large_string()}
ALL = {**KINDS, "id": pa.string(), "records": RECORDS, "ops": OPS}


def written(folder: Path, lines: Sequence[dict[str, Any]], kinds: dict[str, Any]) -> Path:
    import pyarrow.parquet as pq

    folder.mkdir()
    (folder / "_SUCCESS").touch()
    (folder / ".part.parquet.crc").write_text("not Parquet")
    for number in range(2):
        columns = {name: [line.get(name) for line in lines[number::2]] for name in kinds}
        if kinds["value"] == pa.binary():
            columns["value"] = [None if value is None else value.encode() for value in columns["value"]]
        arrays = {
            name: pa.array(columns[name], kind.value_type).dictionary_encode()
            if pa.types.is_dictionary(kind)
            else pa.array(columns[name], kind)
            for name, kind in kinds.items()
        }
        pq.write_table(pa.table(arrays), folder / f"{number}.parquet", row_group_size=3)
    return folder


@pytest.mark.parametrize(
    ("lines", "kinds", "topics", "count"),
    [
        (LINES, KINDS, [], 7),
        (LINES, KINDS, ["t"], 6),
        (LINES, CODED, [], 7),
        (LINES, FEW, [], 7),
        (LINES, OTHER, [], 7),
        (PAIRS, ALL, [], 9),
        ([*PAIRS, *SEVERAL], ALL, [], 14),
    ],
)
def test_parquet_is_read_as_spark_reads_it(
    spark: Any, tmp_path: Path, lines: Any, kinds: dict[str, Any], topics: list[str], count: int
) -> None:
    from tanist.spark.jobs.audit.by_duckdb import history as by_duckdb
    from tanist.spark.jobs.audit.by_spark.history import read_history

    path = written(tmp_path / "history", lines, kinds)
    found = read_history(spark, [path])
    events = (found.of_topics(topics) if topics else found).events.drop("hash")
    database = DuckDB().database()
    by_duckdb.read_history(database, [path], topics)
    names = ", ".join(f'"{name}"' for name in events.columns)
    rows = database.rows(f"select {names} from events")
    assert sorted(map(repr, rows)) == sorted(repr(tuple(row)) for row in events.collect())
    assert len(rows) == count
    assert database.rows("select count(*) from events where hash <> hash(encode(value))") == [(0,)]
    database.close()


def without_java(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command where no Java is to be found, and PySpark cannot be imported."""
    (cwd / "pyspark").mkdir(exist_ok=True)
    (cwd / "pyspark" / "__init__.py").write_text("raise RuntimeError('PySpark is imported')")
    environment = {"PATH": "/nowhere", "HOME": str(cwd), "PYTHONPATH": str(cwd)}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    command = [sys.executable, "-m", "tanist.cli.main", "spark", "audit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=cwd, env=environment)


@pytest.mark.parametrize("engine", [(), ("--engine", "duckdb")])
def test_without_java_and_without_pyspark(tmp_path: Path, engine: tuple[str, ...]) -> None:
    missing_tail(sound_scene(1, 500, seed=3), partition=0, records=100).write(tmp_path)
    arguments = ["--data", "data", "--history", "history.jsonl", "--json", "--html", "page.html", *engine]
    done = without_java(*arguments, "--findings", "findings", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["counts"][0]["kind"] == "lost-write"
    assert "lost acknowledged records" in (tmp_path / "page.html").read_text()
    assert rows_of(FindingsTable(tmp_path / "findings"))


def test_bad_input_is_said_in_a_sentence(tmp_path: Path) -> None:
    sound_scene(1, 100, seed=3).write(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "text.jsonl").write_text("no JSON\n")
    for arguments, said in {
        ("--data", "data", "--history", "broken.parquet"): "DuckDB failed: ",
        ("--data", "data", "--history", "text.jsonl"): "the history has no acknowledged send to orders",
        ("--data", "data", "--history", "text.jsonl", "--history", "broken.parquet"): "partly JSON Lines",
        ("--data", "nowhere"): "there is no folder",
        ("--data", "data", "--topic", "order"): "Did you mean orders?",
        ("--data", "data", "--engine", "duckdb", "--master", "local[2]"): "--master is Spark's",
    }.items():
        done = without_java(*arguments, cwd=tmp_path)
        assert done.returncode == 2, (arguments, done.stdout, done.stderr)
        assert said in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr


def test_who_names_sparks_settings_has_spark(tmp_path: Path) -> None:
    sound_scene(1, 100, seed=3).write(tmp_path)
    for arguments in (("--engine", "spark"), ("--master", "local[1]"), ("--conf", "spark.driver.memory=1g")):
        done = without_java("--data", "data", *arguments, cwd=tmp_path)
        assert "PySpark is imported" in done.stderr, done.stderr

"""The table of findings: each audit adds a run, whole or not at all, in a folder or in an object store."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tanist.spark.jobs.audit import findings_table
from tanist.spark.jobs.audit.audit import audit_folder
from tanist.spark.jobs.audit.by_spark import findings as by_spark_findings
from tanist.spark.jobs.audit.by_spark.findings import written
from tanist.spark.jobs.audit.findings import SCHEMA
from tanist.spark.jobs.audit.findings_table import FindingsTable, Run, TableFormat
from tanist.spark.jobs.preconditions import Unfit
from tests.spark.spark_audit_samples import brute, missing_tail, plant, sound_scene
from tests.spark.spark_object_store import BUCKET

FORMATS: tuple[TableFormat, ...] = ("delta", "parquet")
PAGE = Path(__file__).parents[2] / "docs" / "pipeline.md"
ROW = ("lost-write", "orders", 0, 7, 9, 3, [4], [1, 2], "v", "p1", "below", "because")


def run(number: int) -> Run:
    return Run(f"run-{number}", datetime(2026, 1, 1, number, tzinfo=UTC), "c0ffee", "data")


def frame(spark: Any, *rows: tuple[Any, ...]) -> Any:
    return spark.createDataFrame(list(rows), f"{SCHEMA}, explained string")


def example(word: str) -> str:
    """The Python of docs/pipeline.md that has this word."""
    (found,) = (each for each in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if word in each)
    return str(found)


def rows_of(table: FindingsTable) -> list[dict[str, Any]]:
    """As another program reads it, without Spark."""
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    if table.format == "delta":
        return list(DeltaTable(table.place).to_pyarrow_table().to_pylist())
    return list(ds.dataset(table.place, partitioning="hive").to_table().to_pylist())


def test_each_audit_adds_a_run_also_one_that_finds_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = FindingsTable(tmp_path / "table")
    broken = plant(sound_scene(2, 3_000, seed=5), seed=6, faults=20)
    scenes = {"broken": broken, "sound": sound_scene(1, 500, seed=3)}
    results = {}
    before = datetime.now(UTC)
    for name, scene in scenes.items():
        scene.write(tmp_path / name)
        results[name] = audit_folder(
            spark, tmp_path / name / "data", [tmp_path / name / "history.jsonl"], findings=table
        )
    found = rows_of(table)
    by_run = {name: [row for row in found if row["run_id"] == result.run_id] for name, result in results.items()}
    assert len(found) == len(by_run["broken"]) + 1
    counts: dict[str, Counter[int]] = {}
    for row in by_run["broken"]:
        counts.setdefault(row["kind"], Counter())[row["partition"]] += row["records"]
    assert counts == brute(broken)
    (clean,) = by_run["sound"]
    assert (clean["kind"], clean["records"], clean["data"]) == (None, 0, str(tmp_path / "sound" / "data"))
    times = {name: {row["run_time"] for row in rows} for name, rows in by_run.items()}
    assert [len(each) for each in times.values()] == [1, 1]
    assert before <= min(times["broken"]) < min(times["sound"]) <= datetime.now(UTC)
    assert all(row["commit"] for row in found)
    (tmp_path / "table").rename(tmp_path / "findings")
    monkeypatch.chdir(tmp_path)
    exec(example("QueryBuilder"), {})
    *_, lost, nothing, _ = capsys.readouterr().out.rstrip().splitlines()
    assert [int(line.split("|")[2]) for line in (lost, nothing)] == [sum(counts["lost-write"].values()), 0]


def test_the_example_for_programs_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing_tail(sound_scene(1, 500, seed=3), partition=0, records=100).write(tmp_path / "story")
    monkeypatch.chdir(tmp_path)
    exec(example("audit_folder"), {})
    count = sum(row["records"] for row in rows_of(FindingsTable("findings")) if row["kind"] == "lost-write")
    assert count
    assert capsys.readouterr().out.startswith(f"{count} [")


@pytest.mark.parametrize("table_format", FORMATS)
def test_every_column_comes_back_and_large_runs_have_several_files(
    spark: Any, tmp_path: Path, table_format: TableFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_spark_findings, "ROWS_A_FILE", 1)
    table = FindingsTable(tmp_path / "table", table_format)
    table.append(written(frame(spark, ROW, (*ROW[:3], 11, *ROW[4:]))), run(1))
    names = [each.split()[0] for each in SCHEMA.split(",")]
    want = dict(zip([*names, "explained"], ROW)) | {
        "run_id": "run-1", "run_time": run(1).time, "commit": "c0ffee", "data": "data",
    }  # fmt: skip
    rows = rows_of(table)
    assert sorted(row["first_offset"] for row in rows) == [7, 11]
    assert next(row for row in rows if row["first_offset"] == 7) == want
    assert len(list(Path(table.place).rglob("*.parquet"))) == 2


@pytest.mark.parametrize("table_format", [pytest.param("parquet", marks=pytest.mark.slow), "delta"])
def test_a_run_that_is_killed_is_not_there_and_the_table_goes_on(
    spark: Any, tmp_path: Path, table_format: TableFormat
) -> None:
    table = FindingsTable(tmp_path / "table", table_format)
    table.append(written(frame(spark, ROW)), run(1))
    files = set(Path(table.place).rglob("*.parquet"))
    command = [sys.executable, "-m", "tests.spark.spark_findings_killed", table.place, table_format]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
    assert set(Path(table.place).rglob("*.parquet")) - files, "it was killed too early"
    assert [row["run_id"] for row in rows_of(table)] == ["run-1"]
    table.check()
    table.append(None, run(2))
    assert sorted((row["run_id"], row["kind"]) for row in rows_of(table)) == [("run-1", "lost-write"), ("run-2", None)]


def test_many_small_files_become_one(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltalake import DeltaTable

    monkeypatch.setattr(findings_table, "COMPACTED_EVERY", 4)
    table = FindingsTable(tmp_path / "table")
    for number in range(1, 5):
        table.append(written(frame(spark, ROW)), run(number))
    assert len(DeltaTable(table.place).file_uris()) == 1
    assert sorted(row["run_id"] for row in rows_of(table)) == ["run-1", "run-2", "run-3", "run-4"]


def test_a_table_of_something_else_is_left_alone(tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(tmp_path / "table", pa.table({"a": [1]}))
    with pytest.raises(Unfit, match="other columns than findings"):
        FindingsTable(tmp_path / "table").check()


def test_an_audit_adds_to_a_table_in_an_object_store(store: None, tmp_path: Path) -> None:
    """By the command: its Python workers are started with the variables of the store."""
    table = FindingsTable(f"s3a://{BUCKET}/audits/findings")
    broken = missing_tail(sound_scene(1, 500, seed=3), partition=0, records=100)
    broken.write(tmp_path)
    command = [
        *(sys.executable, "-m", "tanist.cli.main", "spark", "audit", "--data", str(tmp_path / "data")),
        *("--history", str(tmp_path / "history.jsonl"), "--findings", table.place),
    ]
    for count in (1, 2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path)
        assert done.returncode == 1, done.stderr[-3000:]
        rows = rows_of(table)
        assert len({row["run_id"] for row in rows}) == count
        lost = sum(row["records"] for row in rows if row["kind"] == "lost-write")
        assert lost == count * sum(brute(broken)["lost-write"].values())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "history.jsonl"]


def test_a_store_that_does_not_answer_is_said(store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unfit, match=r"s3://nowhere/x cannot be reached: .*NoSuchBucket"):
        FindingsTable("s3://nowhere/x").check()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(Unfit, match=r"cannot be reached: .*127\.0\.0\.1:1/"):
        FindingsTable(f"s3://{BUCKET}/x").check()

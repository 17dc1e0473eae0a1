"""A copy of a cluster's folder in an object store reads as the folder does, and what a store refuses is one line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual
from pyspark.sql.types import StructType

from tanist.cli.app import app
from tanist.cli.spark.session import refused
from tanist.log.salvage.manifest import MANIFEST, QUARANTINE, Manifest, SalvageReason, SavedFile, entry_id
from tanist.spark.jobs import delta_files
from tanist.spark.jobs.audit.log_files import LogFiles
from tanist.spark.metadata.changes import changes, metadata_folders
from tanist.spark.segments import ranges
from tanist.spark.segments.planning import SegmentsReader
from tanist.spark.segments.replica_files import NothingThere, SegmentFile, segment_files
from tanist.spark.segments.source import DDL
from tanist.spark.stores import StoreFailed, opened, path_of
from tests.spark.spark_audit_samples import plant, sound_scene
from tests.spark.spark_object_store import BUCKET, object_store, upload
from tests.spark.spark_segments_samples import SegmentBuilder, name_directory
from tests.spark.test_spark_metadata_source import created, log_of

pytestmark = pytest.mark.usefixtures("spark")
"""Spark reads schemas."""
PLACE = f"s3://{BUCKET}/copy"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes with two partitions, one of them damaged; a metadata log; an entry of the salvage."""
    root = tmp_path_factory.mktemp("cluster")
    for node in (1, 2):
        directory = root / f"node-{node}" / "data"
        name_directory(directory, node)
        (root / f"node-{node}" / "server.properties").write_text(f"node.id={node}\nlog.dirs={directory}\n")
        for base in (0, 400):
            made = SegmentBuilder(base).batches(40, 10)
            made.data[made.positions[7] + 80] ^= 0xFF
            made.write(directory / "orders-0", indexes=True)
        SegmentBuilder().batches(1, 10).write(directory / "orders-1")
        log_of(directory, 0, *created())
    entry = root / "node-1" / "data" / QUARANTINE / entry_id(1_700_000_000_000, 1, 1)
    path = SegmentBuilder(30).batches(1, 5).write(entry)
    manifest = Manifest(
        entry.name, 1, "orders", UUID(int=5), 0, SalvageReason.FOLLOWER_TRUNCATION, 1_700_000_000_000, 3, 30, 30, 35,
        ((2, 30),), (SavedFile(path.name, path.stat().st_size, 0),),
    )  # fmt: skip
    (entry / MANIFEST).write_bytes(manifest.encode())
    return root


@pytest.fixture(scope="module")
def copy(store: None, folder: Path) -> str:
    return upload(folder, PLACE)


def found(root: str, below: str, **how: Any) -> list[tuple[Any, ...]]:
    files = segment_files(root + below, **how)
    return [
        (each.path.removeprefix(root), each.topic, each.partition, each.replica, each.following_offset, each.salvage_id)
        for each in files
    ]


BELOW = ["", "/node-1", "/node-2/data", "/node-1/data/orders-0", f"/node-1/data/{QUARANTINE}"]


@pytest.mark.parametrize("below", BELOW)
@pytest.mark.parametrize("contents", ["log", "salvage", "all"])
def test_the_same_files_are_below_a_copy(folder: Path, copy: str, below: str, contents: Any) -> None:
    here = found(str(folder), below, contents=contents)
    assert found(copy, below, contents=contents) == here
    assert here or contents == "salvage"
    sizes = {each.path: each.size_bytes for each in segment_files(copy + below, contents=contents)}
    assert sizes == {copy + path: (folder / path[1:]).stat().st_size for path, *_ in here}


def rows(root: str, *filters: Any, **options: str) -> list[dict[str, Any]]:
    reader = SegmentsReader({"path": root, "contents": "all", **options}, StructType.fromDDL(DDL))
    list(reader.pushFilters(list(filters)))
    plan = reader.partitions()
    return [row for part in plan for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize("options", [{}, {"stretchBytes": "3000"}, {"stretchBytes": "3000", "indexes": "false"}])
def test_the_same_rows_come_of_a_copy_damage_included(folder: Path, copy: str, options: dict[str, str]) -> None:
    here = rows(str(folder), **options)
    assert sum(row["damage"] is not None for row in here) == 4
    assert rows(copy, **options) == here
    wanted = (GreaterThanOrEqual(("offset",), 700), EqualTo(("replica",), 2))
    few = rows(copy, *wanted, **options)
    assert few == rows(str(folder), *wanted, **options)
    assert 0 < len(few) < len(here) / 4


def test_only_the_bytes_of_a_range_are_fetched(copy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment that is one stretch is planned without a question, and a read is no larger than what is wanted."""
    asked: list[tuple[str, int | None]] = []
    monkeypatch.setattr(ranges, "opened", lambda path, size=None: asked.append((path, size)) or opened(path, size))
    (file, _) = segment_files(f"{copy}/node-1/data/orders-0")
    assert list(ranges.stretches(file, ranges.Bounds())) == [(0, file.size_bytes)]
    assert asked == [(file.path, file.size_bytes)]
    segment = opened(file.path)
    assert segment.size == file.size_bytes
    memory = bytearray(100)
    assert segment.read_into(memoryview(memory), segment.size - 40) == 40
    assert segment.read_into(memoryview(memory), segment.size) == 0
    assert segment.read(segment.size - 40, 100) == bytes(memory[:40])
    assert segment.read(segment.size + 1, 100) == b""
    gone = SegmentFile(f"{copy}/none.log", "orders", 0, 1, 0, None, None)
    assert list(ranges.stretches(gone, ranges.Bounds())) == []


def test_the_metadata_log_of_a_copy(folder: Path, copy: str) -> None:
    here, there = metadata_folders(str(folder)), metadata_folders(copy)
    assert [(each.replica, each.end) for each in there] == [(each.replica, each.end) for each in here]
    assert [list(changes(each)) for each in there] == [list(changes(each)) for each in here]


def test_what_an_audit_knows_before_it_reads(spark: Any, tmp_path: Path, store: None) -> None:
    plant(sound_scene(2, 300, seed=5), seed=6, faults=5).write(tmp_path)
    copy = upload(tmp_path / "data", f"s3://{BUCKET}/known")
    known = LogFiles(copy).known()
    assert known == LogFiles(tmp_path / "data").known()
    assert known.high_watermarks


def test_an_audit_of_a_copy(store: None, tmp_path: Path) -> None:
    plant(sound_scene(2, 1_000, seed=5), seed=6, faults=20).write(tmp_path)
    copy = upload(tmp_path / "data", f"s3://{BUCKET}/audited").replace("s3:", "s3a:")
    said = []
    for data in (copy, str(tmp_path / "data")):
        command = [sys.executable, "-m", "tanist.cli.main", "spark", "audit", "--data", data, "--json"]
        more = ["--history", str(tmp_path / "history.jsonl")]
        done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 1, done.stderr[-3000:]
        said.append({name: each for name, each in json.loads(done.stdout).items() if "second" not in name})
    assert said[0] == said[1]
    assert said[0]["counts"]


# -- what a store refuses


def refusal(*arguments: str) -> str:
    """The one line of a job that cannot begin."""
    result = CliRunner().invoke(app, ["spark", *arguments])
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.removeprefix("Error: ").rstrip()


def test_what_is_not_there_is_said(copy: str, folder: Path) -> None:
    assert refusal("audit", "--data", f"{copy}/none") == f"there is nothing below {copy}/none"
    assert refusal("audit", "--data", f"{copy}/node-1/data/orders-0/x").startswith("there is nothing below")
    nowhere = refusal("audit", "--data", "s3://nowhere/x")
    assert nowhere.startswith("s3://nowhere/x cannot be reached: NoSuchBucket: ")
    assert nowhere.endswith(". Make the bucket, or name another")
    audit = ("audit", "--data", str(folder), "--history")
    assert refusal(*audit, f"{copy}/history.jsonl") == f"{copy}/history.jsonl cannot be read: No such file or directory"
    assert "is an address (s3:), and this job reads" in refusal(*audit[:3], "--html", f"{copy}/audit.html")
    with pytest.raises(NothingThere, match="nothing below"):
        rows(f"{copy}/none")
    with pytest.raises(StoreFailed, match="an address of ftp: name a folder, or an address of s3, "):
        rows("ftp://host/x")
    with pytest.raises(FileNotFoundError):
        (path_of(copy) / "none").read_bytes()


def test_who_is_not_let_in_is_said(copy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store(tmp_path / "log", asks_who=True) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        said = refusal("audit", "--data", copy)
        assert "cannot be reached: InvalidAccessKeyId" in said
        assert "AWS_SECRET_ACCESS_KEY" in said
        with pytest.raises(StoreFailed, match=r"privileges .*AWS_SECRET_ACCESS_KEY"):
            opened(f"{copy}/x.log")


def test_what_a_worker_is_refused_is_one_line(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver may have other variables than Spark's workers."""
    place = spark.createDataFrame([(PLACE,)], ["path"])
    for job in (lambda: delta_files.write(place, PLACE), lambda: place.mapInArrow(_listed, "path string").collect()):
        with object_store(tmp_path / "log", asks_who=True) as variables, monkeypatch.context() as patched:
            for name, value in variables.items():
                patched.setitem(spark.sparkContext.environment, name, value)
            with pytest.raises(PySparkException) as caught:
                job()
        said = refused(caught.value, verbose=False)
        assert said is not None
        assert said.message.startswith(f"{PLACE} cannot be reached: InvalidAccessKeyId: ")
        assert said.message.endswith("also for Spark's workers")


def _listed(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        segment_files(batch.column("path")[0].as_py())
        yield batch


def test_a_store_that_does_not_answer_is_said(copy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.delenv("AWS_ALLOW_HTTP")
        assert "AWS_ALLOW_HTTP=true allows" in refusal("audit", "--data", copy)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    said = refusal("audit", "--data", copy)
    assert "127.0.0.1:1/" in said
    assert said.endswith("Set AWS_ENDPOINT_URL, AWS_REGION and the account's variables, also for Spark's workers")

"""Histories in an object store: both engines find in them what they find in the same files of this machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.spark.jobs.audit.by_spark import stored_history
from tanist.spark.jobs.preconditions import NothingToJudge, Unfit, readable_histories
from tanist.spark.stores import StoreFailed
from tests.spark.spark_audit_samples import missing_tail, sound_scene, write_parquet
from tests.spark.spark_audit_worlds import drawn_cluster
from tests.spark.spark_object_store import BUCKET, upload
from tests.spark.test_spark_audit_engines import by_both, everything

pytestmark = pytest.mark.usefixtures("at_workers")


def in_store(folder: Path, name: str) -> str:
    return upload(folder, f"s3://{BUCKET}/{name}")


def test_lines(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = drawn_cluster(tmp_path, random.Random(3), worlds=12)
    history = folder / "history.jsonl"
    for name, lines in (("first", slice(0, None, 2)), ("second", slice(1, None, 2))):
        (tmp_path / "halves" / name).parent.mkdir(exist_ok=True)
        kept = history.read_bytes().splitlines(keepends=True)[lines]
        (tmp_path / "halves" / name).write_bytes(b"".join(kept).rstrip(b"\n"))
    place = in_store(tmp_path / "halves", "lines").replace("s3:", "s3a:")
    monkeypatch.setattr(stored_history, "SHARE_BYTES", 50_000)
    plain = everything(by_both(spark, folder, [history]))
    there = everything(by_both(spark, folder, [f"{place}/first", f"{place}/second"]))
    assert there == plain
    assert plain["findings"]


def test_parquet(spark: Any, tmp_path: Path) -> None:
    scene = missing_tail(sound_scene(2, 400, seed=5), partition=1, records=30)
    folder = scene.write(tmp_path / "cluster")
    history = write_parquet(scene, tmp_path / "history", row_group=100)
    (history if history.is_dir() else history.parent).joinpath("_notes").write_text("no history")
    place = in_store(tmp_path / "history", "parquet")
    plain = everything(by_both(spark, folder, [history]))
    assert everything(by_both(spark, folder, [place])) == plain
    assert plain["findings"]


def test_each_line_is_in_one_range_wherever_ranges_end(tmp_path: Path) -> None:
    text = "one\n\ntwo, and more\nthree\r\nfour"
    (tmp_path / "file").write_text(text)
    place = in_store(tmp_path, "ranges")
    for size in range(1, len(text) + 2):
        shares = stored_history.shares_of(f"{place}/file", size)
        found = [text for share in shares for batch in stored_history.lines_of(share) for text in batch[0].to_pylist()]
        assert "".join(found) == text, size


def test_what_cannot_be_judged_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"\n \n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes").write_text("x")
    place = in_store(tmp_path, "unfit")
    for name, error, said in (
        ("empty", NothingToJudge, f"{place}/empty is empty: there is nothing to judge"),
        ("folder", NothingToJudge, f"no Parquet file is below {place}/folder"),
        ("missing", Unfit, f"{place}/missing cannot be read: "),
    ):
        with pytest.raises(error, match=said):
            readable_histories([f"{place}/{name}"])
    with pytest.raises(StoreFailed, match="NoSuchBucket"):
        readable_histories(["s3://other/history"])


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_the_command(tmp_path: Path, engine: str, spark: Any) -> None:
    scene = missing_tail(sound_scene(1, 200, seed=5), partition=0, records=30)
    folder = scene.write(tmp_path / "cluster")
    place = in_store(folder, f"whole-{engine}")
    arguments = ["spark", "audit", "--data", f"{place}/data", "--history", f"{place}/history.jsonl", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--engine", engine])
    assert (result.exit_code, '"kind": "lost-write"' in result.stdout) == (1, True), result.output

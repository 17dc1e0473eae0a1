"""`tanist salvage` on the files of three brokers that have dropped records, none of which runs."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.installed import add_extra
from tanist.log.salvage.manifest import QUARANTINE
from tanist.wire.control import encode_marker_batch
from tanist.wire.ids import id_text
from tests.cli.salvage_rig import BINARY, TOPIC_ID, WALL_MS, Broker, at, salvage_something

Tanist = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "cluster"
    salvage_something(folder)
    return folder


@pytest.fixture
def tanist(folder: Path) -> Tanist:
    def run(*arguments: str, code: int = 0, data: Path = folder) -> Any:
        done = CliRunner().invoke(app, ["salvage", *arguments, "--data", str(data)])
        assert done.exit_code == code, f"{done.exit_code}\n{done.output}\n{done.exception!r}"
        return json.loads(done.stdout) if "--json" in arguments else done

    return run


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_list(tanist: Tanist) -> None:
    found = tanist("list", "--json")
    assert [(e["topic"], e["broker"], e["from_offset"], e["to_offset"], e["records"]) for e in found] == [
        ("orders", 2, 1, 6, 5),
        ("orders", 3, 4, 6, 2),
        ("payments", 3, 0, 1, 1),
    ]
    assert found[0]["id"] == f"{WALL_MS + 2}-2-1"
    assert found[0]["topic_id"] == id_text(TOPIC_ID)
    assert found[0]["when"] == "2023-11-14T22:13:20.002Z"
    assert [entry["topic"] for entry in tanist("list", "--topic", "payments", "--json")] == ["payments"]
    text = tanist("list").stdout.splitlines()
    assert text[0].split() == ["ID", "PARTITION", "BROKER", "OFFSETS", "RECORDS", "WHY", "WHEN"]
    assert text[1].split()[1:5] == ["orders-0", "2", "1..5", "5"]
    assert text[1].endswith("  2023-11-14 22:13:20Z")


@pytest.mark.parametrize("inside", ["node-2", "node-2/data", f"node-2/data/{QUARANTINE}"])
def test_a_node_or_a_disk_alone(tanist: Tanist, folder: Path, inside: str) -> None:
    assert [entry["broker"] for entry in tanist("list", "--json", data=folder / inside)] == [2]


def test_log_directories_that_are_elsewhere(tanist: Tanist, folder: Path, tmp_path: Path) -> None:
    node = tmp_path / "configs" / "node-2"
    node.mkdir(parents=True)
    (node / "server.properties").write_text(f"node.id=2\nlog.dirs=/nowhere,{folder}/node-2/data\n")
    assert [entry["broker"] for entry in tanist("list", "--json", data=node)] == [2]
    assert [entry["broker"] for entry in tanist("list", "--json", data=node.parent)] == [2]


def test_show(tanist: Tanist) -> None:
    shown = tanist("show", f"{WALL_MS + 2}-2-1", "--records", "2", "--json")
    assert [record["offset"] for record in shown["first_records"]] == [1, 2]
    assert shown["why"] == "unclean-election"
    text = tanist("show", f"{WALL_MS + 2}").stdout
    assert "unclean-election" in text
    assert "the leader of epoch 8" in text
    assert "fünf" in text
    assert "y" * 59 + "…" in text
    assert "no entry has an id that begins with 999" in tanist("show", "999", code=1).output
    assert "3 entries have an id that begins with 17" in tanist("show", "17", code=1).output


def test_export_as_json_lines(tanist: Tanist, tmp_path: Path) -> None:
    done = tanist("export", "--topic", "orders", "--to", "jsonl")
    assert "5 records exported" in done.stderr
    records = lines(done.stdout)
    assert [(r["offset"], r["epoch"], r["timestamp"]) for r in records] == [
        (1, 3, WALL_MS + 1),
        (2, 3, WALL_MS + 2),
        (3, 3, WALL_MS + 3),
        (4, 4, WALL_MS + 4),
        (5, 4, WALL_MS + 5),
    ]
    assert (records[0]["key"], records[0]["value"]) == ("k", "fünf")
    assert records[0]["headers"] == [
        {"key": "h", "value": "x"},
        {"key": "raw", "value": base64.b64encode(BINARY).decode(), "value_encoding": "base64"},
        {"key": "none", "value": None},
    ]
    assert (records[1]["key"], records[1]["value_encoding"]) == (None, "base64")
    assert base64.b64decode(records[1]["value"]) == BINARY
    assert (records[2]["key_encoding"], records[2]["value"]) == ("base64", None)
    assert "value_encoding" not in records[2]
    file = tmp_path / "out.jsonl"
    tanist("export", "--all", "--to", "jsonl", "--output", str(file))
    assert [record["topic"] for record in lines(file.read_text())] == ["orders"] * 5 + ["payments"]
    by_id = lines(tanist("export", f"{WALL_MS + 3}-3-1", "--to", "jsonl").stdout)
    assert [record["offset"] for record in by_id] == [4, 5]


def test_export_of_transactions_says_so_and_leaves_their_markers_out(tanist: Tanist, tmp_path: Path) -> None:
    broker = Broker(tmp_path / "txn", 4)
    sender = {"producer_id": 6, "producer_epoch": 1}
    broker.append(1, at(0, b"k", b"in a transaction"), base_sequence=0, transactional=True, **sender)
    marker = encode_marker_batch(
        committed=False, coordinator_epoch=0, timestamp_ms=WALL_MS, base_offset=1, leader_epoch=1, **sender
    )
    assert broker.log.append_as_follower(memoryview(marker), 9).error == 0
    broker.salvage(0)
    broker.close()
    done = tanist("export", "--all", "--to", "jsonl", data=tmp_path / "txn")
    (record,) = lines(done.stdout)
    assert (record["transactional"], record["producer_id"], record["sequence"]) == (True, 6, 0)
    assert record["transaction"] == "aborted"
    assert "orders-0: left out 1 control batch" in done.stderr


def test_parquet_without_pyarrow_says_what_to_do(tanist: Tanist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = tanist("export", "--all", "--to", "parquet", "--output", "x.parquet", code=1).output
    assert add_extra("parquet") in said


def test_export_as_parquet(tanist: Tanist, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "out.parquet"
    done = tanist("export", "--all", "--to", "parquet", "--output", str(file))
    assert "6 records exported" in done.stderr
    rows = parquet.read_table(file).to_pylist()
    assert [(row["topic"], row["offset"], row["epoch"]) for row in rows] == [
        *[("orders", offset, 3 if offset < 4 else 4) for offset in range(1, 6)],
        ("payments", 0, 1),
    ]
    assert rows[0]["headers"] == [
        {"key": "h", "value": b"x"},
        {"key": "raw", "value": BINARY},
        {"key": "none", "value": None},
    ]
    assert (rows[1]["key"], rows[1]["value"]) == (None, BINARY)
    assert rows[0]["timestamp"].timestamp() * 1000 == WALL_MS + 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "--to", "jsonl"), "give entry IDs, --topic or --all"),
        (("export", "--all", "--topic", "orders", "--to", "jsonl"), "or --all"),
        (("export", "--all", "--to", "jsonl", "--dry-run"), "are for --to topic"),
        (("export", "--all", "--to", "jsonl", "--target", "x"), "are for --to topic"),
        (("export", "--all", "--to", "topic", "--output", "x"), "--output is for"),
        (("export", "--all", "--to", "parquet"), "needs --output"),
        (("export", "--all"), "missing option '--to'"),
        (("remove",), "missing argument"),
    ],
)
def test_mistakes(tanist: Tanist, arguments: tuple[str, ...], said: str) -> None:
    assert said in tanist(*arguments, code=2).output


def test_what_there_is_not(tanist: Tanist, tmp_path: Path) -> None:
    assert "nothing of topic x was saved" in tanist("export", "--topic", "x", "--to", "jsonl", code=1).output
    assert "there is no folder" in tanist("list", data=tmp_path / "absent", code=1).output
    (tmp_path / "empty").mkdir()
    assert tanist("list", "--json", data=tmp_path / "empty") == []


def test_entries_that_are_damaged_or_under_way_are_named_or_passed_over(tanist: Tanist, folder: Path) -> None:
    quarantine = folder / "node-2" / "data" / QUARANTINE
    (entry,) = (path for path in quarantine.iterdir() if path.is_dir())
    entry.rename(entry.with_name(entry.name + ".tmp"))
    assert [found["broker"] for found in tanist("list", "--json")] == [3, 3]
    (quarantine / "1-2-3").mkdir()
    (quarantine / "1-2-4").mkdir()
    (quarantine / "1-2-4" / "manifest.json").write_text("{")
    done = tanist("list")
    assert "left out: " in done.stderr
    assert "1-2-3 has no manifest.json" in done.stderr
    assert "1-2-4" in done.stderr
    assert "is damaged" in done.stderr


def test_files_that_are_gone_or_cannot_be_written_are_named(tanist: Tanist, folder: Path, tmp_path: Path) -> None:
    said = tanist("export", "--all", "--to", "jsonl", "--output", str(tmp_path / "no" / "out"), code=1).output
    assert f"there is no folder {tmp_path}/no" in said
    (tmp_path / "file").touch()
    said = tanist("export", "--all", "--to", "jsonl", "--output", str(tmp_path / "file" / "out"), code=1).output
    assert "Not a directory" in said
    (segment,) = (folder / "node-2").rglob(f"{QUARANTINE}/*/*.log")
    segment.unlink()
    said = tanist("export", "--all", "--to", "jsonl", code=1).output
    assert f"{segment} is not there" in said
    assert "try again" in said


def test_remove(tanist: Tanist, folder: Path) -> None:
    assert "Error: aborted" in tanist("remove", f"{WALL_MS + 2}", code=1).output
    assert len(tanist("list", "--json")) == 3
    tanist("remove", f"{WALL_MS + 2}", "--yes")
    assert [entry["broker"] for entry in tanist("list", "--json")] == [3, 3]
    assert sorted(path.name for path in (folder / "node-2" / "data" / QUARANTINE).iterdir()) == ["README.txt"]

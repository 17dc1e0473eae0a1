"""Histories in files: JSON Lines in all the ways they are broken, and Parquet that says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tanist.installed import add_extra
from tanist.lab.history import Checker, HistoryError, HistoryWriter, Verdict, files, open_history, verify
from tests.lab import history_worlds as worlds
from tests.lab.brute_history import count

Line = dict[str, Any]


def _write(path: Path, history: list[Line]) -> Path:
    with path.open("w") as file:
        writer = HistoryWriter(file)
        for line in history:
            writer.write(line)
    return path


def _counts(verdict: Verdict) -> dict[tuple[str, str], int]:
    return {(found.anomaly.value, name): n for found in verdict.findings for name, n in found.partitions.items()}


@pytest.mark.parametrize("seed", range(5))
def test_a_file_is_judged_as_its_operations_are(tmp_path: Path, seed: int) -> None:
    history = worlds.soup(seed)
    done: list[int] = []
    path = _write(tmp_path / "history.jsonl", history)
    verdict, operations = verify(path, done.append)
    assert _counts(verdict) == count(history)
    assert bool(operations) == bool(verdict.findings)
    for number, operation in operations.items():
        assert operation == history[number - 1]
    assert sum(done) == path.stat().st_size == open_history(path).size


def test_progress_is_reported_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PROGRESS_STEP", 300)
    path = _write(tmp_path / "history.jsonl", worlds.world(3))
    done: list[int] = []
    verify(path, done.append)
    assert len(done) > 3
    assert sum(done) == path.stat().st_size


def test_empty_lines_count_and_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text('\n\n {"process":1,"type":"ok","f":"poll"} \r\n\n{"process":1,"type":"ok","f":"walk"}')
    with pytest.raises(HistoryError, match="line 5: f is 'walk'"):
        verify(path)


def test_an_empty_file_is_a_history_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").touch()
    assert verify(tmp_path / "history.jsonl") == (Verdict(), {})


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"process":1', "it is not JSON: Expecting ',' delimiter at column 13"),
        (b"[1]", "it is not an object"),
        (b'{"process":1} {}', "something stands behind its object, at column 14"),
        (b'{"process":"\xff"}', "it is not UTF-8: invalid start byte"),
        (b'{"process":%s}' % (b"1" * 5000), "it is not JSON that can be read: Exceeds the limit"),
        (b'{"process":' + b"[" * 100_000, "it is not JSON that can be read: maximum recursion depth exceeded"),
    ],
)
def test_a_line_that_is_no_operation(tmp_path: Path, raw: bytes, said: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"process":1,"type":"ok","f":"poll"}\n' + raw + b"\n")
    with pytest.raises(HistoryError) as raised:
        verify(path)
    assert str(raised.value).startswith(f"line 2: {said}")


def test_a_line_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LINE_BYTES_MAX", 1 << 20)
    path = tmp_path / "history.jsonl"
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(HistoryError, match="line 1: it is longer than 1 MiB"):
        verify(path)
    path.write_bytes(b" " * (1 << 20))
    assert verify(path)[0].operations == 0


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="No such file"):
        open_history(tmp_path / "nothing")


# -- Parquet


def _as_columns(history: list[Line]) -> list[Line]:
    """Rows of which each column has one type."""
    rows = []
    for line in history:
        row: Line = {name: value for name, value in line.items() if name not in ("topics",)}
        row["process"] = str(line["process"])
        for name in ("value", "id", "acks"):
            if name in row:
                value = row[name]
                row[name] = "/".join(map(str, value)) if isinstance(value, list) else str(value)
        if "records" in row:
            row["records"] = [
                {"partition": name, "offset": offset, "value": "/".join(map(str, v)) if isinstance(v, list) else str(v)}
                for name, records in row["records"].items()
                for offset, v in records
            ]
        if "positions" in row:
            row["positions"] = [{"partition": name, "offset": offset} for name, offset in row["positions"].items()]
        rows.append(row)
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_parquet_says_the_same(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(files, "_BATCH_ROWS", 7)
    history = (worlds.soup if seed % 2 else worlds.planted)(seed)
    pair = pyarrow.struct([("partition", pyarrow.string()), ("offset", pyarrow.int64()), ("value", pyarrow.string())])
    place = pyarrow.struct([("partition", pyarrow.string()), ("offset", pyarrow.int64())])
    texts = ("process", "type", "f", "id", "partition", "value", "acks", "isolation", "note")
    schema = pyarrow.schema(
        [(name, pyarrow.string()) for name in texts]
        + [(name, pyarrow.int64()) for name in ("time_ns", "invoked_ns", "offset")]
        + [(name, pyarrow.bool_()) for name in ("idempotent", "aborted")]
        + [("records", pyarrow.list_(pair)), ("positions", pyarrow.list_(place))]
        + [("partitions", pyarrow.list_(pyarrow.string()))]
    )
    path = tmp_path / "history"
    parquet.write_table(pyarrow.Table.from_pylist(_as_columns(history), schema=schema), path, row_group_size=11)
    file = open_history(path)
    assert file.size == len(history)
    done: list[int] = []
    verdict, operations = verify(file, done.append)
    assert sum(done) == len(history)
    assert _counts(verdict) == count(history)
    every = (*verdict.findings, *verdict.expected)
    assert set(operations) == {line for found in every for cite in found.citations for line in cite.lines}


def test_parquet_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "history.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(HistoryError, match="is not Parquet that can be read"):
        verify(path)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(files, "import_module", missing)
    path = tmp_path / "history.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(HistoryError, match=re.escape(add_extra("parquet"))):
        verify(path)


def test_columns_of_another_shape() -> None:
    with pytest.raises(HistoryError, match="line 4: records is not a list of structs"):
        files._operation(["records"], ("{}",), 4)
    assert files._operation(["positions"], ([{"partition": "t-0", "offset": None}],), 1) == {"positions": {"t-0": None}}
    with pytest.raises(HistoryError, match="line 4: ops is not a list of structs"):
        files._operation(["ops"], ([7],), 4)


def test_the_columns_of_a_transaction() -> None:
    ops = [
        {"f": "send", "partition": "t-0", "value": "a", "offset": 3, "records": None, "positions": None},
        {"f": "poll", "partition": None, "records": [{"partition": "t-1", "offset": 5, "value": "b"}]},
    ]
    operation = files._operation(["process", "f", "type", "ops"], ("t", "txn", "ok", ops), 1)
    assert operation["ops"][1]["records"] == {"t-1": [[5, "b"]]}
    checker = Checker()
    checker.take(1, operation)
    verdict = checker.verdict()
    assert (verdict.acknowledged, verdict.polls, verdict.records_polled) == (1, 1, 1)
    assert [each.anomaly.value for each in verdict.findings] == ["phantom"]


def test_the_writer_leaves_out_what_is_none(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with path.open("w") as file:
        writer = HistoryWriter(file)
        writer.invoke("p", "send", 5, partition="t-0", value="ä", acks=None)
        writer.complete("p", "send", "ok", 6, offset=0)
        writer.poll("c", "t-0", [(0, "ä")], 7)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"process": "p", "type": "invoke", "f": "send", "time_ns": 5, "partition": "t-0", "value": "ä"},
        {"process": "p", "type": "ok", "f": "send", "time_ns": 6, "offset": 0},
        {"process": "c", "type": "ok", "f": "poll", "time_ns": 7, "records": {"t-0": [[0, "ä"]]}},
    ]
    assert verify(path)[0].findings == ()

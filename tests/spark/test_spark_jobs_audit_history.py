from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tanist.spark.jobs.audit.by_spark.history import read_history
from tanist.spark.jobs.history_files import HistoryUnfit

SEND: dict[str, Any] = {"process": "p", "f": "send", "partition": "my-topic-3"}


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_two_lines_are_one_send_and_one_that_nothing_follows_is_unknown(spark: Any, tmp_path: Path) -> None:
    lines = [
        {**SEND, "type": "invoke", "value": "a", "id": 1, "time_ns": 10, "acks": 1},
        {**SEND, "type": "invoke", "value": 7, "id": 2, "time_ns": 11},
        {"process": "p", "f": "send", "type": "ok", "id": 2, "offset": 5, "time_ns": 12},
        {"process": "p", "f": "send", "type": "ok", "id": 1, "offset": 6, "time_ns": 13},
        {**SEND, "type": "invoke", "value": "c", "id": 1, "time_ns": 14},
        {**SEND, "type": "ok", "value": "d", "offset": 9, "invoked_ns": 15, "time_ns": 16, "idempotent": False},
        {"process": "nemesis", "f": "send", "type": "ok", "partition": "my-topic-3", "value": "x", "time_ns": 17},
    ]
    sends = read_history(spark, [written(tmp_path / "h.jsonl", lines)]).sends.orderBy("began_ns").collect()
    assert [(row.value, row.outcome, row.offset, row.began_ns, row.ended_ns) for row in sends] == [
        ("a", "ok", 6, 10, 13), ("7", "ok", 5, 11, 12), ("c", "info", None, 14, None), ("d", "ok", 9, 15, 16),
    ]  # fmt: skip
    assert [(row.promised, row.ordered) for row in sends] == [
        (False, False), (True, True), (True, True), (True, False),
    ]  # fmt: skip


def test_an_array_is_the_same_value_however_a_line_spells_it(spark: Any, tmp_path: Path) -> None:
    line = '{"process": "p", "f": "send", "type": "ok", "partition": "t-0", "offset": 0, "value": '
    texts = ('["p", 1]', '["p",1]', '[ "p" ,1]', '"[1, 2]"')
    (tmp_path / "h.jsonl").write_text("".join(f"{line}{text}}}\n" for text in texts))
    found = read_history(spark, [tmp_path / "h.jsonl"]).sends.collect()
    assert sorted(row.value for row in found) == ['["p",1]'] * 3 + ["[1, 2]"]


def test_polls_come_apart_into_records_in_both_forms(spark: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines = [
        {"process": "c", "f": "poll", "type": "ok", "records": {"t-0": [[4, "a"], [5, 6]], "t-1": []}, "time_ns": 1},
        {"process": "c", "f": "poll", "type": "ok", "partition": "t-1", "offset": 0, "value": "b", "time_ns": 2,
         "isolation": "read_committed"},
        {"process": "c", "f": "poll", "type": "ok", "time_ns": 3},
    ]  # fmt: skip
    expected = {("t-0", 4, "a", False), ("t-0", 5, "6", False), ("t-1", 0, "b", True)}
    text = read_history(spark, [written(tmp_path / "h.jsonl", lines)]).polls
    records = [[{"partition": "t-0", "offset": 4, "value": "a"}, {"partition": "t-0", "offset": 5, "value": "6"}], None]
    table = pa.table({
        "process": ["c", "c"], "f": ["poll", "poll"], "type": ["ok", "ok"], "records": records,
        "partition": [None, "t-1"], "offset": [None, 0], "value": [None, "b"], "isolation": [None, "read_committed"],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "h.parquet")
    for polls in (text, read_history(spark, [tmp_path / "h.parquet"]).polls):
        assert {(row.place, row.offset, row.value, row.committed) for row in polls.collect()} == expected


def test_what_cannot_be_put_together_is_refused(spark: Any, tmp_path: Path) -> None:
    lines = [{**SEND, "type": "invoke", "value": "a", "id": 1}, {**SEND, "type": "ok", "id": 1, "offset": 0}]
    with pytest.raises(HistoryUnfit, match="time_ns"):
        read_history(spark, [written(tmp_path / "h.jsonl", lines)])
    with pytest.raises(HistoryUnfit, match="no history"):
        read_history(spark, [])


def test_text_and_bytes_have_one_hash(spark: Any) -> None:
    from pyspark.sql import functions as F

    from tanist.spark.jobs.audit.by_spark.history import value_hash

    frame = spark.createDataFrame([("grün/1", "grün/1".encode())], "text string, bytes binary")
    row = frame.select(value_hash(F.col("text")).alias("a"), value_hash(F.col("bytes")).alias("b")).first()
    assert row.a == row.b


def test_a_transaction_comes_apart_into_its_sends_and_polls(spark: Any, tmp_path: Path) -> None:
    def op(value: str, **more: Any) -> dict[str, Any]:
        return {"f": "send", "partition": "t-0", "value": value, **more}

    txn = {"process": "p", "f": "txn"}
    poll = {"f": "poll", "records": {"t-1": [[3, "x"], [4, "y"]]}, "invoked_ns": 13, "time_ns": 14}
    lines = [
        {**txn, "type": "invoke", "time_ns": 10, "ops": [op("a"), {"f": "poll"}, op("b")]},
        {**txn, "type": "ok", "time_ns": 19, "isolation": "read_committed", "ops": [op("a", offset=5), poll, op("b")]},
        {**txn, "type": "invoke", "time_ns": 20, "ops": [op("c"), op("d")]},
        {**txn, "type": "fail", "aborted": True, "time_ns": 29, "ops": [op("c", offset=8)]},
        {**txn, "process": "q", "type": "info", "invoked_ns": 30, "time_ns": 39, "ops": [op("e")]},
        {**txn, "type": "invoke", "time_ns": 40, "ops": [op("f")]},
        {**SEND, "process": "r", "type": "ok", "value": "g", "offset": 1, "time_ns": 41},
    ]
    found = read_history(spark, [written(tmp_path / "h.jsonl", lines)])
    sends = found.sends.orderBy("value").collect()
    assert [(row.value, row.outcome, row.offset, row.aborted, row.began_ns, row.ended_ns) for row in sends] == [
        ("a", "ok", 5, False, 10, 19), ("b", "ok", None, False, 10, 19), ("c", "fail", None, True, 20, 29),
        ("d", "fail", None, True, 20, 29), ("e", "info", None, False, 30, 39), ("f", "info", None, False, 40, None),
        ("g", "ok", 1, False, None, 41),
    ]  # fmt: skip
    assert {(row.promised, row.ordered) for row in sends} == {(True, True)}
    polls = found.polls.orderBy("offset").collect()
    assert [(row.place, row.offset, row.value, row.committed, row.began_ns, row.ended_ns) for row in polls] == [
        ("t-1", 3, "x", True, 13, 14), ("t-1", 4, "y", True, 13, 14),
    ]  # fmt: skip

"""An audit of logs with transactions: what a marker has aborted is neither lost, nor duplicated, nor a phantom."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from tanist.cli.output.spark_reports import audit_json, audit_lines
from tanist.spark.jobs.audit.by_spark import transactions
from tests.spark.spark_transaction_samples import PLAIN, log_of, write_logs

LOG: tuple[tuple[int, str | bool], ...] = (
    (PLAIN, "a"),
    (7, "committed"), (7, True),
    (7, "aborted"), (7, False),
    (8, "taken back"), (8, False),
    (8, "tried twice"), (8, False), (8, "tried twice"), (8, True),
    (9, "of nobody"), (9, False),
    (9, "open"), (PLAIN, "b"), (9, "open, too"),
)  # fmt: skip
"""By offset: the producer, and a value, or whether a marker commits."""


def send(value: str, kind: str, offset: int | None, **more: Any) -> dict[str, Any]:
    return {
        "process": "p",
        "type": kind,
        "f": "send",
        "partition": "orders-0",
        "value": value,
        "offset": offset,
        **more,
    }


def poll(process: str, isolation: str, *offsets: int) -> dict[str, Any]:
    records = {"orders-0": [[str(offset), LOG[offset][1]] for offset in offsets]}
    return {"process": process, "type": "ok", "f": "poll", "isolation": isolation, "records": records}


def kinds(result: Any) -> dict[str, tuple[int | None, int]]:
    return {each.kind.value: (each.first_offset, each.records) for each in result.findings}


def test_aborted_records_are_not_lost_ones(spark: Any, tmp_path: Path) -> None:
    from tanist.spark.jobs.audit.audit import audit_folder

    data = write_logs(tmp_path / "data", (1, 0, log_of(LOG)), (2, 0, log_of(LOG)))
    lines = [
        send("a", "ok", 0), send("committed", "ok", 1), send("aborted", "fail", None, aborted=True),
        send("taken back", "ok", 5), send("tried twice", "ok", 9), send("open", "info", None), send("b", "ok", 14),
        send("open, too", "info", None),
        poll("all", "read_uncommitted", 0, 1, 3, 5, 7, 9, 11, 13, 14, 15),
        poll("committed", "read_committed", 0, 1, 5, 9),
    ]  # fmt: skip
    history = tmp_path / "history.jsonl"
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = audit_folder(spark, data, [history])
    assert kinds(result) == {"aborted-in-log": (5, 1), "G1a": (5, 1)}
    assert {each.value for each in result.findings} == {"taken back"}
    (found,) = result.open_transactions
    assert (found.producer_id, found.first_offset, found.last_offset, found.records) == (9, 13, 15, 2)


def test_replicas_alone_name_what_is_open_and_differ_in_an_outcome(spark: Any, tmp_path: Path) -> None:
    from tanist.spark.jobs.audit.audit import audit_folder
    from tanist.spark.report.audit_page import page

    one, other = (log_of(((7, "x"), (7, committed), (8, "y"))) for committed in (True, False))
    data = write_logs(tmp_path, (1, 0, log_of(LOG)), (2, 0, log_of(LOG)), (1, 1, one), (2, 1, other))
    result = audit_folder(spark, data)
    assert kinds(result) == {"divergent": (1, 1)}
    text = "\n".join(audit_lines(result))
    assert "open transactions: 2, with 3 records that readers of committed records do not get yet" in text
    assert "orders-0 offsets 13..15, producer 9 epoch 0" in text
    assert [each["partition"] for each in audit_json(result)["open_transactions"]] == [0, 1]
    assert "orders-1 offset 2, producer 8 epoch 0" in page(result, title="x")


@pytest.mark.slow
def test_a_history_of_whole_transactions_is_judged_as_one_of_single_sends(spark: Any, tmp_path: Path) -> None:
    from tanist.spark.jobs.audit.audit import audit_folder

    def txn(value: str, kind: str, offset: int | None, **more: Any) -> dict[str, Any]:
        op = {"f": "send", "partition": "orders-0", "value": value, "offset": offset}
        return {"process": "p", "type": kind, "f": "txn", "ops": [op], **more}

    data = write_logs(tmp_path / "data", (1, 0, log_of(LOG)), (2, 0, log_of(LOG)))
    history = tmp_path / "history.jsonl"
    lines = [
        send("a", "ok", 0), txn("committed", "ok", 1), txn("aborted", "fail", None, aborted=True),
        txn("taken back", "ok", 5), txn("tried twice", "ok", 9), txn("of nobody", "fail", None, aborted=True),
        txn("open", "info", None), txn("open, too", "info", None),
    ]  # fmt: skip
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    first = audit_folder(spark, data, [history])
    assert kinds(first) == {"aborted-in-log": (5, 1)}
    with history.open("a") as file:
        file.write(json.dumps(send("b", "ok", 14)) + "\n" + json.dumps(txn("gone", "ok", 16)) + "\n")
    second = audit_folder(spark, data, [history])
    assert {each.value for each in second.findings} == {"taken back", "gone"}, "the lines that were added count"


ROWS = (
    "topic string, partition int, replica int, leader_epoch int, offset bigint, key binary, producer_id bigint,"
    " producer_epoch int, is_control boolean, is_transactional boolean, damage string"
)


def test_outcomes_are_those_of_the_first_marker_behind_a_record(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn at random; stretches are so small that markers are in them, in the next, in later ones and nowhere."""
    monkeypatch.setattr(transactions, "_STRETCH_OFFSETS", 8)
    rng = random.Random(41)
    rows, expected = [], {}
    for place in ((0, 1), (0, None), (1, 2)):
        ended: dict[int, str] = {}
        for offset in sorted(rng.sample(range(300), 200), reverse=True):
            producer, kind = rng.choice((7, 7, 7, 8)), rng.choice((None,) * 12 + ("aborted", "committed"))
            key = None if kind is None else b"\0\0\0\1" if kind == "committed" else b"\0\0\0\0"
            rows.append(("t", *place, 0, offset, key, producer, 0, kind is not None, True, None))
            if kind is not None:
                ended[producer] = kind
            else:
                expected[*place, offset] = ended.get(producer, "open")
    found = transactions.decided(spark.createDataFrame(rows, ROWS)).collect()
    assert {(row.partition, row.replica, row.offset): row.outcome for row in found} == expected
    assert len(found) == len(expected)
    assert set(expected.values()) == {"open", "committed", "aborted"}


def test_the_records_of_one_producer_are_several_tasks(spark: Any) -> None:
    """An exactly-once application has one producer in a partition, for years."""
    rows = [("t", 0, 1, 0, at << 16, None, 7, 0, False, True, None) for at in range(32)]
    marker = ("t", 0, 1, 0, 32 << 16, b"\0\0\0\1", 7, 0, True, True, None)
    # Else the few rows of a test are put together again.
    wanted = {"spark.sql.shuffle.partitions": "8", "spark.sql.adaptive.enabled": "false"}
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        found = transactions.decided(spark.createDataFrame([*rows, marker], ROWS))
        tasks = found.select("outcome", F.spark_partition_id().alias("task")).collect()
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert {row.outcome for row in tasks} == {"committed"}
    assert len(tasks) == 32
    assert len({row.task for row in tasks}) > 3

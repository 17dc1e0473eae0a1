"""An audit that has nothing to judge is an error, one of logs without a record is none; what expired is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tanist.cli.output.spark_reports import audit_json, audit_lines
from tests.spark.spark_audit_samples import REPLICAS, TOPIC, Batch, Scene

PLACE = f"{TOPIC}-0"


def send(offset: int, place: str = PLACE, **more: Any) -> dict[str, Any]:
    line = {"process": "p", "type": "ok", "f": "send", "partition": place, "value": f"{place}/{offset}"}
    return line | {"offset": offset, "invoked_ns": 10 * offset + 1, "time_ns": 10 * offset + 2} | more


def scene(first: int, end: int, lines: list[dict[str, Any]]) -> Scene:
    """Every replica has the offsets from `first` to `end`."""
    values = [f"{PLACE}/{offset}".encode() for offset in range(first, end)]
    batches = [Batch(first, 0, values)] if values else []
    return Scene({0: {replica: list(batches) for replica in REPLICAS}}, {0: end}, lines)


def audited(spark: Any, made: Scene, folder: Path, **settings: Any) -> Any:
    from tanist.spark.jobs.audit.audit import audit_folder

    made.write(folder)
    return audit_folder(spark, folder / "data", [folder / "history.jsonl"], **settings)


def counts(result: Any) -> dict[str, int]:
    return {kind.value: count for (kind, _, _), count in result.counts.items()}


def test_when_no_replica_has_a_record_every_acknowledged_one_is_lost(spark: Any, tmp_path: Path) -> None:
    result = audited(spark, scene(0, 0, [send(offset) for offset in range(5)]), tmp_path)
    assert counts(result) == {"lost-write": 5}
    assert (result.replicas, result.records, result.sends, result.expired) == (3, 0, 5, 0)


def test_what_retention_took_is_counted_and_is_not_lost(spark: Any, tmp_path: Path) -> None:
    result = audited(spark, scene(40, 60, [send(offset) for offset in range(60)]), tmp_path)
    assert counts(result) == {}
    assert (result.sends, result.expired, result.begun) == (60, 40, {(TOPIC, 0): 40})
    assert audit_lines(result)[1] == (
        "orders-0 begins at offset 40, for older records have expired; 40 acknowledged sends from before are not judged"
    )
    assert audit_json(result)["expired"] == 40


def test_a_log_that_is_empty_since_all_expired_has_lost_nothing(spark: Any, tmp_path: Path) -> None:
    made = scene(0, 0, [send(offset) for offset in range(5)])
    made.write(tmp_path)
    for replica in REPLICAS:
        home = tmp_path / "data" / f"node-{replica}" / "log" / PLACE
        for file in home.glob("*.log"):
            file.rename(home / f"{5:020d}.log")
    from tanist.spark.jobs.audit.audit import audit_folder

    result = audit_folder(spark, tmp_path / "data", [tmp_path / "history.jsonl"])
    assert (counts(result), result.sends, result.expired) == ({}, 5, 5)


def test_of_a_history_of_several_topics_only_the_named_one_is_judged(spark: Any, tmp_path: Path) -> None:
    lines = [*(send(offset) for offset in range(5)), send(0, "payments-0")]
    made = scene(0, 5, lines)
    named = audited(spark, made, tmp_path / "named", topics=[TOPIC])
    assert (counts(named), named.sends) == ({}, 5)
    (lost,) = audited(spark, made, tmp_path / "all").findings
    assert (lost.kind.value, lost.topic, lost.detail) == (
        "lost-write",
        "payments",
        "no replica of the partition is here",
    )


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([send(0, "payments-0")], "the history speaks of payments-0, and the replicas are of orders"),
        ([send(0) | {"type": "info", "offset": None}], "no acknowledged send to orders, and no record polled"),
        ([{"process": "nemesis", "f": "kill"}], "no acknowledged send to orders, and no record polled"),
    ],
)
def test_a_history_that_says_nothing_of_the_topic_is_an_error(
    spark: Any, tmp_path: Path, lines: list[dict[str, Any]], why: str
) -> None:
    from tanist.spark.jobs.preconditions import NothingToJudge

    with pytest.raises(NothingToJudge, match=why):
        audited(spark, scene(0, 5, lines), tmp_path)


def test_a_history_whose_acknowledgements_have_no_offsets_is_judged(spark: Any, tmp_path: Path) -> None:
    lines = [send(offset) | {"offset": None} for offset in range(6)]
    assert counts(audited(spark, scene(0, 5, lines), tmp_path)) == {"lost-write": 1}
    assert json.loads((tmp_path / "history.jsonl").read_text().splitlines()[0])["offset"] is None


def test_frames_without_a_record_are_an_error(spark: Any) -> None:
    from tanist.spark.jobs.audit.by_spark.engine import audit
    from tanist.spark.jobs.audit.by_spark.logs import FrameLogs
    from tanist.spark.jobs.audit.log_files import COLUMNS
    from tanist.spark.jobs.preconditions import NothingToJudge

    logs = FrameLogs(spark.createDataFrame([], ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())))
    with pytest.raises(NothingToJudge, match="no replica has a record"):
        audit(logs, known=logs.known())

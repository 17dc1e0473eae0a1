"""The verdicts on salvaged records, over rows as `tanist-segments` has them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

SCHEMA = (
    "topic string, partition int, replica int, leader_epoch int, offset bigint, timestamp timestamp, key binary,"
    " producer_id bigint, producer_epoch int, sequence int, is_transactional boolean, fingerprint bigint,"
    " salvage_id string, batch_offset bigint"
)


def record(
    offset: int, fingerprint: int, *, epoch: int = 1, replica: int = 2, key: bytes | None = None, ms: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1), transactional: bool = False, topic: str = "t",
    salvage: str | None = "1-2-0",
) -> tuple[Any, ...]:  # fmt: skip
    when = datetime(2026, 1, 1, 0, 0, 0, 1000 * ms)
    return (topic, 0, replica, epoch, offset, when, key, *producer, transactional, fingerprint, salvage, offset)


def verdicts(
    spark: Any,
    saved: list[Any],
    live: list[Any],
    compacted: frozenset[str] = frozenset(),
    outcomes: dict[int, str] | None = None,
) -> dict[int, str]:
    from tanist.spark.jobs.merge_back import judged

    ended = [("t", 0, 1, offset, outcome) for offset, outcome in (outcomes or {}).items()]
    names = "topic string, partition int, leader_epoch int, batch_offset bigint, outcome string"
    tables = (spark.createDataFrame(saved, SCHEMA), spark.createDataFrame(live, SCHEMA))
    found = judged(*tables, compacted, None, spark.createDataFrame(ended, names)).collect()
    assert len({(row.topic, row.leader_epoch, row.offset) for row in found}) == len(found)
    return {row.offset: row.verdict for row in found}


def test_each_verdict(spark: Any) -> None:
    saved = [
        record(10, 100),
        record(10, 100, replica=3, salvage="1-3-0"),
        record(11, 101),
        record(12, 102, producer=(7, 0, 12)),
        record(13, 103),
        record(14, 104, transactional=True),
    ]
    live = [
        record(11, 101, salvage=None),
        record(30, 102, epoch=5, producer=(7, 0, 12), ms=9, salvage=None),
        record(31, 103, epoch=5, producer=(8, 0, 0), salvage=None),
        record(13, 999, epoch=5, salvage=None),
    ]
    assert verdicts(spark, saved, live) == {10: "lost", 11: "kept", 12: "re-sent", 13: "re-sent", 14: "undecided"}


def test_transactions_by_their_outcome(spark: Any) -> None:
    """Whatever is left out takes no record of the log from one that is like it."""

    def sent(offset: int, fingerprint: int) -> Any:
        return record(offset, fingerprint, producer=(7, 0, offset), transactional=True)

    saved = [sent(10, 100), sent(11, 101), sent(12, 102), sent(13, 103), sent(14, 104), record(15, 104)]
    live = [
        record(12, 102, producer=(7, 0, 12), transactional=True, salvage=None),
        record(40, 103, epoch=5, producer=(7, 0, 13), ms=3, salvage=None),
        record(41, 104, epoch=5, producer=(9, 0, 0), salvage=None),
    ]
    found = verdicts(spark, saved, live, outcomes={10: "committed", 11: "aborted", 14: "undecided"})
    assert found == {10: "lost", 11: "aborted", 12: "kept", 13: "re-sent", 14: "undecided", 15: "re-sent"}


def test_a_record_that_the_log_has_aborted_is_not_in_it(spark: Any) -> None:
    from tanist.spark.jobs.audit.by_spark.transactions import decided
    from tanist.spark.jobs.merge_back import judged, without_aborted

    sent = [record(offset, 90 + offset, producer=(7, 0, offset), transactional=True) for offset in (10, 12, 14)]
    columns = (
        "topic string, partition int, replica int, leader_epoch int, offset bigint, key binary, producer_id bigint,"
        " producer_epoch int, is_control boolean, is_transactional boolean, damage string"
    )
    markers = {11: b"\0\0\0\0", 13: b"\0\0\0\x01"}
    rows = [("t", 0, 2, 1, at, markers.get(at), 7, 0, at in markers, True, None) for at in range(10, 15)]
    found = decided(spark.createDataFrame(rows, columns))
    assert {row.offset: row.outcome for row in found.collect()} == {10: "aborted", 12: "committed", 14: "open"}
    live = without_aborted(spark.createDataFrame(sent, SCHEMA), found)
    names = "topic string, partition int, leader_epoch int, batch_offset bigint, outcome string"
    ended = spark.createDataFrame([("t", 0, 1, at, "committed") for at in (10, 12, 14)], names)
    judgement = judged(spark.createDataFrame(sent, SCHEMA), live, frozenset(), None, ended).collect()
    assert {row.offset: row.verdict for row in judgement} == {10: "lost", 12: "kept", 14: "kept"}


def test_each_record_of_the_log_counts_for_one_that_is_like_it(spark: Any) -> None:
    saved = [record(offset, 100) for offset in (10, 11, 12)]
    assert verdicts(spark, saved, [record(50, 100, epoch=5)]) == {10: "re-sent", 11: "lost", 12: "lost"}


def test_the_senders_own_record_under_another_number_is_another_send(spark: Any) -> None:
    saved = [record(10, 100, producer=(7, 0, 3))]
    assert verdicts(spark, saved, [record(9, 100, epoch=0, producer=(7, 0, 2))]) == {10: "lost"}
    assert verdicts(spark, saved, [record(9, 100, epoch=0, producer=(7, 0, 3))]) == {10: "re-sent"}


def test_a_compacted_topic_keeps_what_is_newer(spark: Any) -> None:
    saved = [record(10, 100, key=b"a"), record(11, 101, key=b"b"), record(12, 102)]
    live = [record(40, 200, epoch=5, key=b"a"), record(41, 201, epoch=5)]
    assert verdicts(spark, saved, live, frozenset({"t"})) == {10: "superseded", 11: "lost", 12: "lost"}
    assert verdicts(spark, saved, live) == {10: "lost", 11: "lost", 12: "lost"}


def test_what_stood_below_the_topics_start_has_expired_and_is_not_lost(spark: Any) -> None:
    from tanist.spark.jobs.merge_back import judged

    saved = spark.createDataFrame([record(10, 100), record(11, 101), record(12, 102)], SCHEMA)
    live = spark.createDataFrame([record(11, 101, salvage=None)], SCHEMA)
    found = judged(saved, live, frozenset(), {("t", 0): 12, ("u", 0): 99}).collect()
    assert {row.offset: row.verdict for row in found} == {10: "expired", 11: "kept", 12: "lost"}

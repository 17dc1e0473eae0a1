"""Each stage of the audit alone: small values in, a value out. No cluster, no files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tanist.client.topic_partition import TopicPartition
from tanist.lab.anomalies import Anomaly
from tanist.spark.jobs.audit import findings, lost
from tanist.spark.jobs.audit.by_spark import clients
from tanist.spark.jobs.audit.by_spark import findings as audit_findings
from tanist.spark.jobs.audit.by_spark import order as audit_order
from tanist.spark.jobs.audit.by_spark import replicas as audit_replicas
from tanist.spark.jobs.audit.by_spark import values as audit_values
from tanist.spark.jobs.audit.by_spark.engine import SparkEngine
from tanist.spark.jobs.audit.by_spark.history import History, history
from tanist.spark.jobs.audit.by_spark.logs import FrameLogs
from tanist.spark.jobs.audit.explanations import Explanations, explanations
from tanist.spark.jobs.audit.facts import EpochRange, PartitionFacts, most_advanced, partition_facts
from tanist.spark.jobs.audit.findings import Finding
from tanist.spark.jobs.audit.log_files import COLUMNS, Known
from tanist.spark.jobs.audit.metadata import NOTHING, Change, Metadata
from tanist.spark.jobs.audit.result import ClientCounts
from tanist.spark.jobs.audit.stages import judged
from tanist.spark.jobs.preconditions import NothingToJudge

PLACE: TopicPartition = ("orders", 0)
FACTS = {PLACE: PartitionFacts((1, 2), 1, 0, 4, {1: 0, 2: 0}, judged=True)}


def held(replica: int, first: int, last: int, epoch: int = 0) -> EpochRange:
    return EpochRange(*PLACE, replica, epoch, first, last, last - first + 1)


def change(leader: int, epoch: int, isr: tuple[int, ...], *, unclean: bool = False, offset: int = 0) -> Change:
    return Change(offset, 0, leader, epoch, (1, 2), isr, (), unclean)


def finding(
    kind: Anomaly, offset: int | None, *, replicas: tuple[int, ...] = (), value: str | None = None, detail: str = ""
) -> Finding:
    return Finding(kind, *PLACE, offset, offset, 1, (), replicas, value, None, detail)


def logs(spark: Any, replicas: dict[int, dict[int, str]], salvage: dict[int, str] | None = None) -> FrameLogs:
    """Offsets with their values, by replica; and those that replica 2 saved."""

    def frame(rows: Sequence[tuple[int, int, str, str | None]]) -> Any:
        made = [
            (*PLACE, replica, 0, offset, value.encode(), hash(value) % 1000, salvage_id)
            for replica, offset, value, salvage_id in rows
        ]
        names = ("topic", "partition", "replica", "leader_epoch", "offset", "value", "fingerprint", "salvage_id")
        return spark.createDataFrame(made, ", ".join(f"{name} {COLUMNS[name]}" for name in names))

    found = [(replica, offset, value, None) for replica, each in replicas.items() for offset, value in each.items()]
    saved = [(2, offset, value, "s1") for offset, value in (salvage or {}).items()]
    return FrameLogs(frame(found), frame(saved) if salvage is not None else None)


def clients_of(spark: Any, *lines: tuple[str, str, str, int | None, int]) -> History:
    """Process, f, value, offset, and when it was answered; each began 5 ns before."""
    rows = [(process, "ok", f, "orders-0", value, offset, at - 5, at) for process, f, value, offset, at in lines]
    return history(
        spark.createDataFrame(
            rows,
            "process string, type string, f string, partition string, value string, offset bigint,"
            " invoked_ns bigint, time_ns bigint",
        )
    )


def keep(frame: Any) -> Any:
    return frame


# -- facts


def test_the_reference_is_the_leader_by_the_metadata_log() -> None:
    metadata = Metadata({PLACE: [change(2, 0, (1, 2))]})
    facts = partition_facts(Known({PLACE: (1, 2)}), metadata, [held(1, 0, 9), held(2, 0, 7)])
    assert (facts[PLACE].reference, facts[PLACE].high_watermark) == (2, 8)


def test_without_metadata_the_reference_is_the_most_advanced_log() -> None:
    ranges = [held(1, 0, 99), held(2, 0, 9), held(2, 10, 20, epoch=1)]
    assert most_advanced(ranges) == 2
    assert partition_facts(Known(), NOTHING, ranges)[PLACE].reference == 2


def test_a_log_without_a_record_has_facts_and_begins_where_its_files_do() -> None:
    known = Known({PLACE: (1, 2)}, {(*PLACE, 1): 5}, {PLACE: 9})
    assert partition_facts(known, NOTHING, []) == {PLACE: PartitionFacts((1, 2), 1, 5, 9, {1: 5, 2: 5}, judged=True)}


def test_a_compacted_log_begins_at_its_first_record_and_its_holes_are_not_judged() -> None:
    known = Known({PLACE: (1,)}, {(*PLACE, 1): 0})
    facts = partition_facts(known, Metadata({}, frozenset({"orders"})), [held(1, 3, 9)])
    assert (facts[PLACE].start, facts[PLACE].judged) == (3, False)


# -- explanations


def explained(changes: list[Change], dropped: list[tuple[int, int, int]] | None = None) -> Explanations:
    made = explanations(Metadata({PLACE: changes}), (), [held(1, 0, 9), held(1, 10, 19, epoch=2)], FACTS, {PLACE})
    return Explanations(made.metadata, {PLACE: dropped or []}, made.reference_epochs)


def test_what_is_missing_is_explained_by_the_change_that_took_the_replica_out_of_the_isr() -> None:
    found = explained([change(1, 0, (1, 2), offset=1), change(1, 0, (1,), offset=2)])
    assert "(metadata offset 2," in (found.of(finding(Anomaly.MISSING, 3, replicas=(2,))) or "")


def test_a_lost_record_that_was_saved_is_explained_by_the_leader_for_which_it_was_dropped() -> None:
    changes = [change(1, 0, (1,), offset=1), change(2, 1, (2,), offset=2), change(1, 3, (1,), offset=3)]
    found = explained(changes, dropped=[(5, 8, 3)])
    assert "(metadata offset 3," in (found.of(finding(Anomaly.LOST_WRITE, 6)) or "")
    assert "(metadata offset 2," in (found.of(finding(Anomaly.LOST_WRITE, 8)) or "")


def test_a_record_that_was_read_and_lost_is_explained_by_the_election_after_the_record_before_it() -> None:
    changes = [change(1, 0, (1,), offset=1), change(2, 1, (2,), offset=2), change(1, 3, (1,), unclean=True, offset=3)]
    assert "(metadata offset 3," in (explained(changes).of(finding(Anomaly.READ_LOST, 12)) or "")
    assert explained([]).of(finding(Anomaly.READ_LOST, 12)) is None


def test_workers_get_the_metadata_of_partitions_with_findings_alone() -> None:
    metadata = Metadata({PLACE: [change(1, 0, (1,))], ("other", 0): [change(1, 0, (1,))]})
    assert set(explanations(metadata, (), (), FACTS, {PLACE}).metadata.changes) == {PLACE}


# -- replicas


def test_replicas_that_agree_have_no_findings(spark: Any) -> None:
    same = dict(enumerate("abcd"))
    made = logs(spark, {1: same, 2: same})
    level_one = audit_replicas.buckets(made)
    assert audit_replicas.epoch_ranges(level_one) == [held(1, 0, 3), held(2, 0, 3)]
    compared = audit_replicas.compare(made, level_one, FACTS, keep=keep)
    assert (compared.findings, compared.plan) == (None, "two-level: 0 of 1 buckets differ")
    assert audit_replicas.holders(level_one, "damages") == []


@pytest.mark.parametrize("plan", ["two-level", "flat"])
def test_replicas_that_differ_and_lack_records_have_findings(spark: Any, plan: str) -> None:
    made = logs(spark, {1: dict(enumerate("abcd")), 2: {0: "a", 1: "x"}})
    compared = audit_replicas.compare(made, audit_replicas.buckets(made), FACTS, plan=plan, keep=keep)
    assert compared.findings is not None
    found = audit_findings.first_of_each_kind(compared.findings)
    assert [(each.kind, each.first_offset, each.last_offset, each.replicas) for each in found] == [
        (Anomaly.MISSING, 2, 3, (2,)),
        (Anomaly.DIVERGENT, 1, 1, (1, 2)),
    ]
    assert audit_findings.counted(compared.findings) == {(Anomaly.MISSING, *PLACE): 2, (Anomaly.DIVERGENT, *PLACE): 1}


# -- clients


def test_clients_are_counted_and_their_progress_is_followed(spark: Any) -> None:
    made = clients_of(spark, ("p", "send", "a", 0, 10), ("p", "send", "b", 1, 20), ("c", "poll", "a", 0, 30))
    assert clients.counted(made, {PLACE: 1}) == ClientCounts(
        sends=2, expired=1, polled=1, partitions=frozenset({"orders-0"}), first_ns=10, last_ns=30
    )
    assert clients.moments(made, 1) == [("orders-0", 10, 0), ("orders-0", 20, 1), ("orders-0", 30, 0)]
    assert clients.moments(made, 20) == [("orders-0", 0, 0), ("orders-0", 20, 1)]


def test_clients_of_other_topics_cannot_be_judged(spark: Any) -> None:
    made = clients_of(spark, ("p", "send", "a", 0, 10))
    engine = SparkEngine(logs(spark, {}), made)
    with pytest.raises(NothingToJudge, match="the history speaks of orders-0, and the replicas are of payments"):
        judged(engine, Known({("payments", 0): (1,)}))


# -- values, order


def test_values_are_held_against_the_log(spark: Any) -> None:
    made = logs(spark, {1: {0: "a", 1: "b"}})
    clients = clients_of(
        spark, ("p", "send", "a", 0, 10), ("p", "send", "b", 1, 20), ("p", "send", "gone", 2, 30),
        ("c", "poll", "ghost", 1, 40),
    )  # fmt: skip
    compared = audit_values.compare(made, clients, FACTS, keep=keep)
    assert compared.findings is not None
    found = audit_findings.first_of_each_kind(compared.findings)
    assert [(each.kind, each.value, each.first_offset) for each in found] == [
        (Anomaly.LOST_WRITE, "gone", 2),
        (Anomaly.READ_LOST, "ghost", 1),
        (Anomaly.PHANTOM, "ghost", 1),
    ]


def test_a_record_before_one_that_was_acknowledged_earlier_is_out_of_order(spark: Any) -> None:
    made = logs(spark, {1: {0: "second", 1: "first"}})
    in_turn = clients_of(spark, ("p", "send", "first", 1, 10), ("p", "send", "second", 0, 20))
    found = audit_order.check(made, in_turn, None, FACTS, keep=keep)
    assert found is not None
    (reordered,) = audit_findings.first_of_each_kind(found)
    assert (reordered.kind, reordered.value, reordered.first_offset) == (Anomaly.REORDERED, "second", 0)
    at_once = clients_of(spark, ("p", "send", "first", 1, 10), ("p", "send", "second", 0, 12))
    assert audit_order.check(made, at_once, None, FACTS, keep=keep) is None


# -- lost


def test_lost_records_are_looked_for_in_other_replicas_and_in_the_salvage(spark: Any) -> None:
    made = logs(spark, {1: {0: "a"}, 2: {0: "a", 1: "kept"}}, salvage={2: "saved", 3: "another"})
    wanted = [
        finding(Anomaly.LOST_WRITE, 1, value="kept", detail="lost"),
        finding(Anomaly.LOST_WRITE, 2, value="saved", detail="lost"),
        finding(Anomaly.LOST_WRITE, 3, value="gone", detail="lost"),
        finding(Anomaly.PHANTOM, 1, value="kept", detail="read"),
    ]
    assert [each.detail for each in lost.located(wanted, SparkEngine(made, None).search)] == [
        "lost; replica 2 still has it",
        "lost; saved by broker 2 (s1)",
        "lost",
        "read",
    ]


def test_the_first_record_of_a_log_is_located_as_any_other(spark: Any) -> None:
    """Offset 0 is an offset."""
    made = logs(spark, {1: {1: "b"}, 2: {0: "a", 1: "b"}})
    (found,) = lost.located([finding(Anomaly.LOST_WRITE, 0, value="a", detail="lost")], SparkEngine(made, None).search)
    assert (found.detail, found.replicas) == ("lost; replica 2 still has it", (2,))


def test_what_has_no_offset_comes_before_offset_0() -> None:
    found = findings.merged([finding(Anomaly.LOST_WRITE, 0), finding(Anomaly.LOST_WRITE, None)])
    assert [each.first_offset for each in found] == [None, 0]

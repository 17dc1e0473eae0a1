from __future__ import annotations

from typing import Any

from tanist.spark.jobs.audit.metadata import metadata_of


def row(offset: int, leader: int, epoch: int, isr: list[int], unclean: int = -1, **more: Any) -> dict[str, Any]:
    return {
        "record": "PartitionChangeRecord", "offset": offset, "timestamp_ms": 1_700_000_000_000 + offset, "topic": "t",
        "partition": 0, "leader": leader, "leader_epoch": epoch, "replicas": [1, 2, 3], "isr": isr, "elr": [],
        "last_unclean_epoch": unclean, **more,
    }  # fmt: skip


CHANGES = [
    row(10, 1, 0, [1, 2, 3]),
    row(11, 1, 0, [1, 3]),
    row(12, 3, 1, [3]),
    row(13, -1, 2, [3]),
    row(14, 2, 3, [2], unclean=3),
    row(15, 2, 3, [2, 1], unclean=3),
]


def test_an_unclean_election_explains_what_was_there_before_it() -> None:
    found = metadata_of(CHANGES)
    reported = found.explain(("t", 0), 0)
    assert reported is not None
    assert reported.startswith("leader epoch 3: broker 2 leads after an unclean election, ISR 2 (metadata offset 14")
    assert [change.unclean for change in found.changes["t", 0]] == [False, False, False, False, True, False]


def test_without_one_the_first_election_after_it_does() -> None:
    reported = metadata_of(CHANGES[:4]).explain(("t", 0), 0)
    assert reported is not None
    assert "metadata offset 12" in reported


def test_a_replica_that_lacks_records_is_explained_by_its_leaving_the_isr() -> None:
    reported = metadata_of(CHANGES).explain(("t", 0), None, [2])
    assert reported is not None
    assert "metadata offset 11" in reported
    assert metadata_of(CHANGES).explain(("t", 0), 3, [7]) is None
    assert metadata_of(CHANGES).explain(("other", 0), 0) is None


def test_the_last_leader_the_replicas_and_compacted_topics_are_known() -> None:
    policy = {"record": "ConfigRecord", "offset": 20, "topic": "t", "name": "cleanup.policy"}
    found = metadata_of([*CHANGES[:4], {**policy, "value": "compact,delete"}])
    assert (found.leader(("t", 0)), found.replicas(("t", 0))) == (3, (1, 2, 3))
    assert found.compacted == {"t"}
    assert metadata_of([{**policy, "value": "compact"}, {**policy, "value": None}]).compacted == frozenset()


def test_a_topic_that_was_deleted_has_no_past() -> None:
    removed = {"record": "RemoveTopicRecord", "offset": 30, "topic": "t"}
    assert metadata_of([*CHANGES, removed]).changes == {}

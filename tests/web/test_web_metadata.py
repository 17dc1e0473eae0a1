"""The metadata log as the view shows it: partitions, sentences, successions, and a log that is followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tanist.web.metadata_log import MetadataLog
from tanist.web.metadata_view import EVENTS_MAX, MetadataView
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.metadata import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
    record_version,
)
from tanist.wire.schema import MetadataRecord

TOPIC = UUID(int=77)


def beginning(partitions: int = 1) -> list[MetadataRecord]:
    """Three brokers, a topic, ELR on."""
    brokers = [
        RegisterBrokerRecord(broker_id=each, incarnation_id=UUID(int=each), broker_epoch=each, fenced=False)
        for each in (1, 2, 3)
    ]
    return [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        *brokers,
        TopicRecord(name="t", topic_id=TOPIC),
        ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="2"),
        *(
            PartitionRecord(
                topic_id=TOPIC,
                partition_id=each,
                replicas=(1, 2, 3),
                isr=(1, 2, 3),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
            )
            for each in range(partitions)
        ),
    ]


def replayed(records: list[MetadataRecord], view: MetadataView | None = None) -> MetadataView:
    view = view or MetadataView()
    for record in records:
        view.replay(view.next_offset, 1000, record)
    return view


def fence(broker: int) -> MetadataRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=broker, fenced=1)


def unfence(broker: int) -> MetadataRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=broker, fenced=-1)


def test_a_partition_and_its_successions() -> None:
    view = replayed(beginning())
    shown = view.partitions()["p/t/0"]
    assert (shown["leader"], shown["isr"], shown["danger"]) == (1, [1, 2, 3], "healthy")
    assert shown["why"] == "broker 1 leads and every replica is in sync"
    assert shown["min_isr"] == 2
    found = view.successions("t", 0)
    assert {broker: (each.leader, each.isr) for broker, each in found.items()} == {
        1: (2, (2, 3)),
        2: (1, (1, 3)),
        3: (1, (1, 2)),
    }
    assert view.successions("another", 0) == {}


def test_a_fence_is_reported_with_the_brokers_as_they_are_after_it() -> None:
    view = replayed(beginning())
    before = view.partitions()["p/t/0"]
    change = PartitionChangeRecord(topic_id=TOPIC, partition_id=0, isr=(1, 2))
    view.replay(view.next_offset, 2000, change)
    view.replay(view.next_offset, 2000, fence(3))
    *_, partition, broker = view.events.values()
    assert partition["text"] == "t-0: ISR 1,2,3 → 1,2"
    assert partition["why"].startswith("broker 1 leads, and broker 3 is offline")
    assert broker["text"] == "broker 3 is fenced"
    assert view.partitions()["p/t/0"] is not before
    # Nothing that changes nothing is worked out again.
    assert view.partitions()["p/t/0"] is view.partitions()["p/t/0"]


def test_a_deleted_topic_leaves_nothing() -> None:
    view = replayed(beginning(3))
    assert len(view.partitions()) == 3
    view.replay(view.next_offset, 2000, PartitionChangeRecord(topic_id=TOPIC, partition_id=0, isr=(1, 2)))
    view.replay(view.next_offset, 2000, RemoveTopicRecord(topic_id=TOPIC))
    assert view.partitions() == {}
    assert list(view.events.values())[-1]["text"] == "topic t is deleted"


def test_ten_thousand_changes_of_one_moment_are_a_few_lines() -> None:
    view = replayed(beginning(2_000))
    for index in range(2_000):
        view.replay(view.next_offset, 2000, PartitionChangeRecord(topic_id=TOPIC, partition_id=index, isr=(1, 2)))
    view.replay(view.next_offset, 2000, fence(3))
    texts = [each["text"] for each in view.events.values()]
    assert texts[-2:] == ["and 1976 more partitions changed", "broker 3 is fenced"]
    assert len(texts) < 50 < EVENTS_MAX
    assert len(view.partitions()) == 2_000


def write(folder: Path, batches: list[list[MetadataRecord]]) -> Path:
    """A metadata log in a folder of its own."""
    log = folder / "__cluster_metadata-0"
    log.mkdir(exist_ok=True)
    offset, data = 0, b""
    for batch in batches:
        values = [
            NewRecord(timestamp=1000, value=bytes(encode_record(record, record_version(type(record), 30))))
            for record in batch
        ]
        data += bytes(encode_batch(values, base_offset=offset, leader_epoch=1))
        offset += len(batch)
    (log / f"{0:020d}.log").write_bytes(data)
    return log


def test_a_log_is_followed_as_far_as_it_is_committed(tmp_path: Path) -> None:
    first = beginning()
    change: list[MetadataRecord] = [PartitionChangeRecord(topic_id=TOPIC, partition_id=0, isr=(1,))]
    write(tmp_path, [first, change])
    log = MetadataLog(tmp_path, MetadataView)
    assert log.follow(len(first) - 1)
    assert log.view.partitions()["p/t/0"]["isr"] == [1, 2, 3]
    assert not log.follow(len(first) - 1)
    assert log.follow(len(first))
    assert log.view.partitions()["p/t/0"]["isr"] == [1]
    # A batch that is not whole yet is not read.
    path = write(tmp_path, [first, change, [fence(3)]]) / f"{0:020d}.log"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert not log.follow(len(first) + 1)
    path.write_bytes(whole)
    assert log.follow(len(first) + 1)


def test_a_broker_that_dies_moves_ten_thousand_leaders_in_a_few_lines() -> None:
    view = replayed(beginning(2_000))
    for index in range(2_000):
        change = PartitionChangeRecord(topic_id=TOPIC, partition_id=index, isr=(2, 3), leader=2)
        view.replay(view.next_offset, 2000 + index // 100, change)
    view.replay(view.next_offset, 2021, fence(1))
    shown = list(view.events.values())
    assert [each["text"] for each in shown[-2:]] == ["and 1976 more partitions changed", "broker 1 is fenced"]
    assert (shown[-2]["weight"], shown[-2]["worse"], shown[-1]["worse"]) == (2, True, True)
    assert len(shown) < 50 < EVENTS_MAX
    # The next burst is shown from its beginning on.
    view.replay(view.next_offset, 9000, PartitionChangeRecord(topic_id=TOPIC, partition_id=0, isr=(2,)))
    assert list(view.events.values())[-1]["text"] == "t-0: ISR 2,3 → 2"


def test_news_are_bad_good_or_neither() -> None:
    view = replayed(beginning(1))

    def worse(record: MetadataRecord) -> Any:
        view.replay(view.next_offset, 2000 + view.next_offset, record)
        return list(view.events.values())[-1].get("worse")

    def change(**fields: Any) -> PartitionChangeRecord:
        return PartitionChangeRecord(topic_id=TOPIC, partition_id=0, **fields)

    assert worse(change(leader=2)) is None
    assert worse(change(leader=3, isr=(2, 3))) is True
    assert worse(fence(1)) is True
    assert worse(unfence(1)) is False
    assert worse(change(isr=(1, 2, 3))) is False
    assert worse(change(leader=-1, isr=())) is True
    assert worse(change(leader=1, isr=(1,))) is False


def test_a_record_that_changes_several_partitions_is_several_events() -> None:
    view = replayed(beginning(3))
    for index in range(3):
        change = PartitionChangeRecord(
            topic_id=TOPIC, partition_id=index, isr=(1,), eligible_leader_replicas=(2,), last_known_elr=(3,)
        )
        view.replay(view.next_offset, 2000, change)
    offset = view.next_offset
    view.replay(offset, 5000, ClearElrRecord(topic_name="t"))
    found = {key: each for key, each in view.events.items() if each["offset"] == offset}
    assert list(found) == [f"e/{offset}", f"e/{offset}/1", f"e/{offset}/2"]
    assert [each["text"] for each in found.values()] == [
        f"t-{index}: ELR 2 → ∅, LastKnownElr 3 → ∅" for index in range(3)
    ]
    assert {each["partition"] for each in found.values()} == {0, 1, 2}


def test_a_broker_that_is_dead_and_not_fenced_yet_does_not_count() -> None:
    view = replayed(beginning())
    view.note_not_running({2})
    found = view.successions("t", 0)
    assert {broker: (each.leader, each.isr) for broker, each in found.items()} == {1: (3, (3,)), 3: (1, (1,))}
    assert found[1].counted_as_fenced == (2,)
    # With two of three dead the ELR is what is left: it cannot lead, for it is dead.
    view.note_not_running({2, 3})
    alone = view.successions("t", 0)[1]
    assert (alone.leader, alone.counted_as_fenced) == (-1, (2, 3))
    view.note_not_running({2})
    assert list(view.successions("t", 0, of=(3, 7))) == [3]
    # A fence that has been written is no early one.
    view.replay(view.next_offset, 2000, fence(2))
    assert view.successions("t", 0)[1].counted_as_fenced == ()


def test_the_log_goes_on_in_another_node(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    first = beginning()
    change: list[MetadataRecord] = [PartitionChangeRecord(topic_id=TOPIC, partition_id=0, isr=(1,))]
    write(one, [first])
    write(two, [first, change])
    made: list[MetadataView] = []

    def fresh() -> MetadataView:
        made.append(MetadataView())
        return made[-1]

    log = MetadataLog(one, fresh)
    assert log.follow(len(first) + 5)
    log.move(two)
    assert log.follow(len(first) + 5)
    assert log.view.partitions()["p/t/0"]["isr"] == [1]
    assert len(made) == 1


def test_of_a_long_log_the_last_changes_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tanist.web.metadata_log._SHOWN_MAX", 2)
    first = beginning()
    sets: list[tuple[int, ...]] = [(1,), (1, 2), (1, 3), (1, 2, 3)]
    changes: list[MetadataRecord] = [PartitionChangeRecord(topic_id=TOPIC, partition_id=0, isr=each) for each in sets]
    write(tmp_path, [first, changes])
    log = MetadataLog(tmp_path, MetadataView)
    assert log.end_offset() == len(first) + 3
    assert log.follow(log.end_offset())
    assert log.view.partitions()["p/t/0"]["isr"] == [1, 2, 3]
    assert [each["text"] for each in log.view.events.values()] == [
        "t-0: ISR 1 → 1,2",
        "t-0: ISR 1,2 → 1,3",
        "t-0: ISR 1,3 → 1,2,3",
    ]

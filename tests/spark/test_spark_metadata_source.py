"""`format("tanist-metadata")`: what a cluster's controllers wrote, and logs that are made for the test."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tanist.client.admin import TOPIC_RESOURCE
from tanist.quorum.storage.batches import encode_values
from tanist.quorum.storage.snapshots import encode_snapshot, file_name
from tanist.quorum.voters import SnapshotId
from tanist.runtime.client.admin import alter_configs, create_topic, delete_topic, describe_topics
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.processes import wait_until
from tanist.spark.metadata.changes import MetadataFolder, changes, metadata_folders
from tanist.wire.metadata import (
    ClearElrRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
)

ORDERS = UUID(int=7)


def values(*records: MetadataRecord) -> list[bytes]:
    return [encode_record(record, record.VERSIONS[1]) for record in records]


def log_of(folder: Path, base: int, *records: MetadataRecord) -> MetadataFolder:
    home = folder / "__cluster_metadata-0"
    home.mkdir(exist_ok=True)
    data = encode_values(values(*records), base_offset=base, epoch=3, timestamp=1000 + base)
    (home / f"{base:020d}.log").write_bytes(data)
    (found,) = metadata_folders(str(folder))
    return found


def created(isr: tuple[int, ...] = (1, 2), elr: tuple[int, ...] = (3,)) -> list[MetadataRecord]:
    partition = PartitionRecord(
        partition_id=0, topic_id=ORDERS, replicas=(1, 2, 3), isr=isr, leader=1, leader_epoch=4, partition_epoch=9,
        eligible_leader_replicas=elr, directories=(UUID(int=1),) * 3,
    )  # fmt: skip
    return [TopicRecord(name="orders", topic_id=ORDERS), partition]


def test_a_change_has_the_whole_state_after_it(tmp_path: Path) -> None:
    change = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=(2,), leader=2, eligible_leader_replicas=(1, 3))
    rows = list(changes(log_of(tmp_path, 0, *created(), change, NoOpRecord(), RemoveTopicRecord(topic_id=ORDERS))))
    assert [(row["offset"], row["record"], row.get("topic"), row.get("partition")) for row in rows] == [
        (0, "TopicRecord", "orders", None),
        (1, "PartitionRecord", "orders", 0),
        (2, "PartitionChangeRecord", "orders", 0),
        (3, "NoOpRecord", None, None),
        (4, "RemoveTopicRecord", "orders", None),
    ]
    after = rows[2]
    assert (after["leader"], after["leader_epoch"], after["partition_epoch"]) == (2, 5, 10)
    assert (after["isr"], after["elr"], after["replicas"]) == ([2], [1, 3], [1, 2, 3])
    assert json.loads(after["fields"])["isr"] == [2]
    assert all(row["epoch"] == 3 and row["damage"] is None and not row["snapshot"] for row in rows)


def test_one_record_that_changes_many_partitions_is_many_rows(tmp_path: Path) -> None:
    second = PartitionRecord(
        partition_id=1, topic_id=ORDERS, replicas=(2, 3), isr=(2,), leader=2, leader_epoch=0, partition_epoch=0,
        eligible_leader_replicas=(3,), directories=(UUID(int=1),) * 2,
    )  # fmt: skip
    rows = list(changes(log_of(tmp_path, 0, *created(), second, ClearElrRecord())))
    assert [(row["offset"], row["partition"], row["elr"]) for row in rows[3:]] == [(3, 0, []), (3, 1, [])]


def test_a_log_that_begins_late_builds_on_a_snapshot(tmp_path: Path) -> None:
    change = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=(1,), leader=1)
    folder = log_of(tmp_path, 100, NoOpRecord(), NoOpRecord(), change)
    (row,) = changes(folder)
    assert row["damage"] == "the log begins at offset 100, and there is no snapshot that it builds on"
    for end in (90, 101, 102):
        snapshot = encode_snapshot(SnapshotId(end, 2), values(*created()), wall_ms=5, last_contained_log_timestamp=4)
        (Path(folder.path) / file_name(SnapshotId(end, 2))).write_bytes(b"".join(snapshot))
    rows = list(changes(folder))
    reported = [(row["offset"], row["epoch"], row["snapshot"], row["record"]) for row in rows]
    assert reported == [
        (100, 2, True, "TopicRecord"),
        (100, 2, True, "PartitionRecord"),
        (101, 3, False, "NoOpRecord"),
        (102, 3, False, "PartitionChangeRecord"),
    ]
    assert (rows[-1]["isr"], rows[-1]["partition_epoch"]) == ([1], 10)


def test_damage_is_the_last_row(tmp_path: Path) -> None:
    folder = log_of(tmp_path, 0, *created())
    path = Path(folder.path) / f"{0:020d}.log"
    sound = path.read_bytes()
    following = bytearray(encode_values(values(NoOpRecord()), base_offset=2, epoch=3, timestamp=0))
    following[-1] ^= 1
    path.write_bytes(sound + following)
    assert [row["damage"] for row in changes(folder)] == [None, None, f"a batch with a wrong CRC, at byte {len(sound)}"
                                                          f" of {path.name}"]  # fmt: skip
    unfit = encode_values(values(RemoveTopicRecord(topic_id=UUID(int=9))), base_offset=2, epoch=3, timestamp=0)
    path.write_bytes(sound + unfit)
    assert "no topic has the id" in str([row["damage"] for row in changes(folder)][-1])
    path.write_bytes(sound + bytes(following[:20]))
    assert [row["damage"] for row in changes(folder)] == [None, None]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("brokers") / "c"
    cluster = LocalCluster(folder)
    address = bootstrap_of(cluster.up(brokers=3, port=random.randint(20000, 50000)))
    with Client(parse_bootstrap(address), timeout_s=60) as client:
        create_topic(client, "orders", assignment=[[1, 2, 3]], config={"min.insync.replicas": "2"})
        create_topic(client, "gone", partitions=1)
        delete_topic(client, "gone")
        alter_configs(client, TOPIC_RESOURCE, "orders", {"retention.ms": "1000"})
        cluster.crash(3)
        cluster.crash(2)

        def isr() -> tuple[int, ...]:
            return describe_topics(client, ["orders"])[0].partitions[0].isr

        # One of three voters is left: nothing more is written until another is back.
        cluster.start(2)
        assert wait_until(lambda: 3 not in isr() and 2 in isr(), 60)
        (partition,) = describe_topics(client, ["orders"])[0].partitions
    yield folder, {"partition": partition}
    cluster.down()


def test_a_partition_over_time(spark: Any, live: tuple[Path, dict[str, Any]]) -> None:
    folder, known = live
    table = spark.read.format("tanist-metadata").load(str(folder))
    assert table.filter("damage is not null").count() == 0
    rows = table.filter("topic = 'orders' and partition = 0").orderBy("offset").collect()
    assert rows[0].record == "PartitionRecord"
    assert {row.record for row in rows[1:]} == {"PartitionChangeRecord"}
    assert list(rows[0].isr) == [1, 2, 3]
    assert [row.partition_epoch for row in rows] == list(range(len(rows)))
    last, partition = rows[-1], known["partition"]
    assert (last.leader, last.leader_epoch) == (partition.leader, partition.leader_epoch)
    assert (sorted(last.isr), sorted(last.elr)) == (sorted(partition.isr), sorted(partition.elr))
    assert rows[0].timestamp is not None


def test_configurations_brokers_and_what_is_gone(spark: Any, live: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = live
    table = spark.read.format("tanist-metadata").load(str(folder)).cache()
    settings = table.filter("record = 'ConfigRecord' and topic = 'orders'").select("name", "value").collect()
    assert {tuple(row) for row in settings} == {("min.insync.replicas", "2"), ("retention.ms", "1000")}
    fenced = table.filter("record = 'BrokerRegistrationChangeRecord' and broker = 3").orderBy("offset").collect()
    assert fenced[-1].fenced is True
    assert table.filter("record = 'RemoveTopicRecord' and topic = 'gone'").count() == 1
    assert table.filter("record = 'LeaderChangeMessage'").count() >= 1
    table.unpersist()


def test_which_nodes_log(spark: Any, live: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = live
    read = spark.read.format("tanist-metadata")
    every = read.option("replica", "all").load(str(folder))
    assert sorted(row.replica for row in every.select("replica").distinct().collect()) == [1, 2, 3]
    one = spark.read.format("tanist-metadata").option("replica", "2").load(str(folder))
    assert [row.replica for row in one.select("replica").distinct().collect()] == [2]
    with pytest.raises(Exception, match="node 9 has no metadata log"):
        spark.read.format("tanist-metadata").option("replica", "9").load(str(folder)).count()

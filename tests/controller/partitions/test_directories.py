"""AssignReplicasToDirs (KIP-858)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tanist.controller.features import Bootstrap
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tests.controller.controller_double import Cluster, directory, end_session


def _request(cluster: Cluster, broker_id: int, where: UUID, topic_id: UUID, *partitions: int) -> Any:
    broker = cluster.image.brokers.get(broker_id)
    return AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=-5 if broker is None else broker.epoch,
        directories=(
            DirectoryData(
                id=where,
                topics=(
                    TopicData(
                        topic_id=topic_id,
                        partitions=tuple(PartitionData(partition_index=number) for number in partitions),
                    ),
                ),
            ),
        ),
    )


def assign(cluster: Cluster, broker_id: int, where: UUID, topic: str, *partitions: int) -> list[str]:
    answer = cluster.ask(_request(cluster, broker_id, where, cluster.image.topic_ids[topic], *(partitions or (0,))))
    return [ErrorCode(each.error_code).name for each in answer.directories[0].topics[0].partitions]


def _cluster() -> Cluster:
    cluster = Cluster()
    for broker_id in (1, 2, 3):
        cluster.register(broker_id, log_dirs=(directory(broker_id), directory(broker_id, 1)))
        cluster.heartbeat(broker_id)
    cluster.create_topic("foo", (1, 2), (1, 2))
    return cluster


def test_the_broker_says_where_its_replica_is() -> None:
    cluster = _cluster()
    before = cluster.partition("foo")
    assert assign(cluster, 1, directory(1, 1), "foo", 0, 1) == ["NONE", "NONE"]
    after = cluster.partition("foo")
    assert after.directory_of(1) == directory(1, 1)
    assert after.directory_of(2) == before.directory_of(2)
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch, before.partition_epoch + 1)  # rule 69
    since = len(cluster.log)
    assert assign(cluster, 1, directory(1, 1), "foo", 0) == ["NONE"]
    assert cluster.written(since) == []


def test_each_replica_succeeds_or_fails_by_itself() -> None:
    cluster = _cluster()
    assert assign(cluster, 1, directory(1), "foo", 0, 7, 0) == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_REQUEST"]
    assert assign(cluster, 3, directory(3), "foo") == ["NOT_LEADER_OR_FOLLOWER"]
    assert assign(cluster, 1, UUID(int=2), "foo") == ["INVALID_REQUEST"]
    answer = cluster.ask(_request(cluster, 1, directory(1), UUID(int=9), 0))
    assert answer.directories[0].topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_directory_that_failed_meanwhile() -> None:
    cluster = _cluster()
    cluster.heartbeat(1, offline_log_dirs=(directory(1, 1),))
    before = cluster.partition("foo")
    assert before.leader == 1
    since = len(cluster.log)
    assert assign(cluster, 1, directory(1, 1), "foo", 0) == ["NONE"]
    assert cluster.written(since) == ["PartitionChangeRecord"]
    after = cluster.partition("foo")
    assert (after.leader, after.isr, after.directory_of(1)) == (2, (2,), directory(1, 1))


def test_strangers_and_old_clusters() -> None:
    cluster = _cluster()
    answer = cluster.ask(_request(cluster, 9, directory(9), UUID(int=9), 0))
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    old = Cluster(bootstrap=Bootstrap(metadata_version=16))
    answer = old.ask(_request(old, 1, directory(1), UUID(int=9), 0))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_directory_that_is_reported_clears_no_elr() -> None:
    """apache/kafka#20716: a replica that moves between directories stays eligible, and so do the others."""
    cluster = _cluster()
    cluster.create_topic("three", (1, 2, 3), min_insync_replicas="2")
    end_session(cluster, 3)
    end_session(cluster, 2)
    before = cluster.partition("three")
    assert (before.isr, before.elr) == ((1,), (2,))
    assert assign(cluster, 1, directory(1, 1), "three") == ["NONE"]
    after = cluster.partition("three")
    assert (after.isr, after.elr, after.directory_of(1)) == ((1,), (2,), directory(1, 1))


def test_a_replica_that_is_back_in_a_directory_that_works_may_lead() -> None:
    cluster = _cluster()
    cluster.create_topic("alone", (1,))
    assert assign(cluster, 1, directory(1, 1), "alone") == ["NONE"]
    cluster.heartbeat(1, offline_log_dirs=(directory(1, 1),))
    lost = cluster.partition("alone")
    assert (lost.leader, lost.isr) == (-1, ())
    assert assign(cluster, 1, directory(1), "alone") == ["NONE"], "it was on its way, and has not left"
    found = cluster.partition("alone")
    assert (found.leader, found.isr) == (1, (1,))

"""Topics come, grow, move and go: requests of clients to a cluster of three."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.client.admin import TOPIC_RESOURCE, ElectionType, delete_topic_request, elect_request, reassign_request
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from tanist.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from tanist.wire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.broker.cluster_rig import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(config={"min.insync.replicas": "2"})


def metadata(cluster: Cluster, name: str, *, create: bool = False, version: int = 12) -> Any:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=create)
    return cluster.ask(request, version)


def test_a_topic_is_created_on_demand_and_the_first_answer_knows_it(cluster: Cluster) -> None:
    absent = metadata(cluster, "later")
    assert absent.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    created = metadata(cluster, "later", create=True)
    assert created.topics[0].error_code == 0
    assert len(created.topics[0].partitions) == 1
    assert metadata(cluster, "bad name!", create=True).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_what_is_produced_can_be_read_from_the_leader_and_lies_on_all_replicas(cluster: Cluster) -> None:
    cluster.create_topic("t")
    values = [b"%d" % n for n in range(50)]
    for value in values:
        assert cluster.produce("t", [value]).error_code == 0
    assert cluster.values("t") == values
    cluster.until(lambda: all(h.replica.high_watermark == 50 for h in cluster.hosted("t").values()))
    assert len(cluster.hosted("t")) == 3


def test_partitions_are_added_with_their_leaders(cluster: Cluster) -> None:
    cluster.create_topic("t")
    request = CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=4, assignments=None),))
    assert cluster.ask(request, 3, to=2).results[0].error_code == 0
    cluster.until(lambda: cluster.leader("t", 3) is not None)
    assert cluster.produce("t", [b"x"], partition=3).base_offset == 0


def test_a_deleted_topic_is_gone_and_its_name_can_be_used_again(cluster: Cluster) -> None:
    cluster.create_topic("t")
    cluster.produce("t", [b"old"])
    assert cluster.ask(delete_topic_request("t"), 6, to=3).responses[0].error_code == 0
    cluster.until(lambda: not cluster.hosted("t"))
    assert metadata(cluster, "t").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.create_topic("t")
    cluster.produce("t", [b"new"])
    assert cluster.values("t") == [b"new"]


def test_a_topic_deleted_and_made_anew_while_a_broker_was_down_does_not_get_its_old_log(cluster: Cluster) -> None:
    """A50: the log on that broker's disk belongs to another topic id."""
    cluster.create_topic("t")
    for n in range(5):
        cluster.produce("t", [b"old %d" % n])
    cluster.host(3).kill()
    cluster.run(100)
    cluster.delete_topic("t")
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.produce("t", [b"new"])
    cluster.host(3).start()
    cluster.until(lambda: 3 in cluster.hosted("t") and cluster.hosted("t")[3].replica.high_watermark == 1)
    assert cluster.values("t", to=3) == [b"new"]


def test_a_partition_moves_to_other_brokers_with_its_records() -> None:
    cluster = Cluster(nodes=4, config={"min.insync.replicas": "2"})
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    values = [b"%d" % n for n in range(30)]
    for value in values:
        cluster.produce("t", [value])
    answer = cluster.ask(reassign_request("t", 0, (4, 2, 3)), 0, to=2)
    assert answer.responses[0].partitions[0].error_code == 0, answer
    cluster.until(lambda: set(cluster.hosted("t")) == {2, 3, 4} and cluster.leader("t") is not None)
    assert cluster.values("t") == values
    assert cluster.produce("t", [b"more"]).base_offset == 30


def test_records_are_deleted_on_all_replicas(cluster: Cluster) -> None:
    cluster.create_topic("t")
    for n in range(10):
        cluster.produce("t", [b"%d" % n])
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=7),)),),
        timeout_ms=5_000,
    )
    leader = cluster.leader("t") or 1
    answer = cluster.ask(request, 2, to=leader).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (0, 7)
    assert all(h.log.log_start_offset == 7 for h in cluster.hosted("t").values())
    assert cluster.fetch("t", 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    beyond = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=99),)),),
        timeout_ms=1_000,
    )
    assert cluster.ask(beyond, 2, to=leader).topics[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_offsets_are_found_by_time_within_batches(cluster: Cluster) -> None:
    cluster.create_topic("t")
    before_ms = cluster.client.clock.wall_ms()
    cluster.produce("t", [b"a", b"b"])
    cluster.run(1_000)
    middle_ms = cluster.client.clock.wall_ms()
    cluster.produce("t", [b"c"])

    def offset(timestamp: int) -> tuple[int, int]:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(partition_index=0, timestamp=timestamp),)),
            ),
        )
        answer = cluster.ask(request, 7, to=cluster.leader("t") or 1).topics[0].partitions[0]
        return answer.error_code, answer.offset

    assert offset(-2) == (0, 0)
    assert offset(-1) == (0, 3)
    assert offset(before_ms) == (0, 0)
    assert offset(middle_ms) == (0, 2)
    assert offset(middle_ms + 60_000) == (0, -1)
    assert offset(-3) == (0, 2)


def test_configs_are_changed_and_reported_with_their_source(cluster: Cluster) -> None:
    cluster.create_topic("t")
    cluster.configure(TOPIC_RESOURCE, "t", {"retention.ms": "12345"})
    cluster.until(lambda: all(h.log.config.retention_ms == 12345 for h in cluster.hosted("t").values()))
    request = DescribeConfigsRequest(
        resources=(
            DescribeConfigsResource(
                resource_type=2, resource_name="t", configuration_keys=("retention.ms", "min.insync.replicas")
            ),
        )
    )
    entries = {entry.name: entry for entry in cluster.ask(request, 4).results[0].configs}
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("12345", 1)
    assert entries["min.insync.replicas"].value == "2"
    unknown = DescribeConfigsRequest(resources=(DescribeConfigsResource(resource_type=2, resource_name="nope"),))
    assert cluster.ask(unknown, 4).results[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_log_directories_are_described(cluster: Cluster) -> None:
    cluster.create_topic("t")
    cluster.produce("t", [b"x" * 1000])
    cluster.until(lambda: all(h.log.log_end_offset == 1 for h in cluster.hosted("t").values()))
    result = cluster.ask(DescribeLogDirsRequest(topics=None), 4, to=2).results[0]
    assert result.log_dir == "/data"
    assert result.topics[0].partitions[0].partition_size > 1000


def test_the_preferred_leader_is_elected_on_request(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[2, 1, 3]])
    assert cluster.leader("t") == 2
    cluster.host(2).kill()
    cluster.until(lambda: cluster.leader("t") not in (2, None))
    cluster.host(2).start()
    cluster.until(lambda: all(len(h.replica.role.isr) == 3 for h in cluster.hosted("t").values()))
    request = elect_request(ElectionType.PREFERRED, "t")
    answer = cluster.ask(request, 2).replica_election_results[0].partition_result[0]
    assert answer.error_code == 0, answer
    cluster.until(lambda: cluster.leader("t") == 2)
    again = cluster.ask(request, 2).replica_election_results[0].partition_result[0]
    assert again.error_code == ErrorCode.ELECTION_NOT_NEEDED


def test_idle_producers_are_forgotten_by_leaders_and_followers() -> None:
    cluster = Cluster(config={"min.insync.replicas": "2", "producer.id.expiration.ms": "5000"})
    cluster.create_topic("t")
    assert cluster.produce("t", [b"x"], producer_id=5, producer_epoch=0, base_sequence=0).error_code == 0
    cluster.until(lambda: all(list(h.log.producers.entries) == [5] for h in cluster.hosted("t").values()))
    cluster.run(4_000)
    assert all(list(h.log.producers.entries) == [5] for h in cluster.hosted("t").values())
    cluster.until(lambda: not any(h.log.producers.entries for h in cluster.hosted("t").values()), within_ms=180_000)

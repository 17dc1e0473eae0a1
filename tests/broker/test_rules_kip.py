"""Sentences of KIP-966 that only whole nodes keep."""

from __future__ import annotations

import json
from typing import Any

from tanist.client.admin import ElectionType, elect_request
from tanist.controller.image.image import ELR_VERSION
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.get_replica_log_info_request import GetReplicaLogInfoRequest
from tests.api_versions import API_VERSIONS
from tests.broker.cluster_rig import Cluster

CLEAN_SHUTDOWN = "/data/.kafka_cleanshutdown"


def test_the_high_watermarks_rule_is_guarded_by_no_feature() -> None:
    """KIP: "this new requirement is not guarded by any feature flags/Metadata version"."""
    cluster = Cluster(nodes=5, config={"min.insync.replicas": "2"}, features={ELR_VERSION: 0})
    assert not cluster.node(1).metadata.image.elr_enabled
    cluster.create_topic("t", assignment=[[1, 2]])
    cluster.host(2).kill()
    cluster.until(lambda: cluster.hosted("t")[1].leader.isr == (1,))
    assert cluster.produce("t", [b"x"], acks=1).error_code == 0
    cluster.run(2_000)
    assert (cluster.hosted("t")[1].log.log_end_offset, cluster.fetch("t").high_watermark) == (1, 0)
    assert cluster.values("t") == []


def test_a_broker_that_stops_before_it_has_an_epoch_writes_minus_one() -> None:
    cluster = Cluster(nodes=3)
    hosts = cluster.world.hosts
    for host in hosts.values():
        host.stop(lambda: None)
    cluster.until(lambda: not cluster.world.nodes(), within_ms=60_000)
    assert json.loads(hosts[1].disk.content(CLEAN_SHUTDOWN))["brokerEpoch"] > 0
    hosts[1].start()  # without a quorum nobody registers it
    cluster.run(500)
    assert cluster.node(1).lifecycle.broker_epoch == -1
    hosts[1].stop(lambda: None)
    cluster.until(lambda: not hosts[1].up, within_ms=60_000)
    assert json.loads(hosts[1].disk.content(CLEAN_SHUTDOWN)) == {"version": 0, "brokerEpoch": -1}
    cluster.world.start()
    cluster.until(cluster.world.ready, within_ms=60_000)
    assert cluster.node(1).lifecycle.previous_broker_epoch == -1


def test_the_kips_requests_are_reported_to_clients() -> None:
    answer = Cluster(nodes=1).ask(API_VERSIONS, 4)
    versions = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert versions[75] == (0, 0)  # DescribeTopicPartitions
    assert versions[43] == (0, 3)  # ElectLeaders, with the desired leaders
    assert not {93, GetReplicaLogInfoRequest.API_KEY} & versions.keys()  # it is between nodes


def test_an_epoch_without_records_is_not_the_last_written_one() -> None:
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    assert cluster.produce("t", [b"one", b"two"]).error_code == 0
    cluster.until(lambda: all(hosted.log.log_end_offset == 2 for hosted in cluster.hosted("t").values()))
    cluster.host(1).kill()
    cluster.until(lambda: cluster.leader("t") in (2, 3))
    cluster.host(1).start()
    cluster.until(cluster.world.ready)
    first_of_all = elect_request(ElectionType.PREFERRED, "t")

    def preferred() -> bool:
        answer: Any = cluster.ask(first_of_all, 2)
        return bool(answer.replica_election_results[0].partition_result[0].error_code == ErrorCode.ELECTION_NOT_NEEDED)

    cluster.until(preferred)
    cluster.until(lambda: cluster.leader("t") == 1)
    epoch = cluster.hosted("t")[1].leader_epoch
    assert epoch >= 2
    assert cluster.hosted("t")[1].log.latest_epoch == epoch  # it has begun in the log
    answer = cluster.ask(GetReplicaLogInfoRequest(broker_id=1, topic_partitions=None), 0)
    (info,) = answer.topic_partition_log_info_list[0].partition_log_info
    assert (info.last_written_leader_epoch, info.current_leader_epoch, info.log_end_offset) == (0, epoch, 2)


def test_replicas_without_records_say_so_also_the_leader() -> None:
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    assert cluster.hosted("t")[1].log.latest_epoch == 0  # it leads, and its epoch has begun
    for node_id in (1, 2):
        answer = cluster.ask(GetReplicaLogInfoRequest(broker_id=node_id, topic_partitions=None), 0, to=node_id)
        (info,) = answer.topic_partition_log_info_list[0].partition_log_info
        assert (info.error_code, info.last_written_leader_epoch, info.log_end_offset) == (0, -1, 0)


def test_who_led_and_wrote_nothing_is_not_preferred_to_who_has_the_records() -> None:
    """3, which never had a record, leads an epoch uncleanly. Later its log is compared with that of 1."""
    cluster = Cluster(nodes=7, config={"min.insync.replicas": "2"})
    hosts = cluster.world.hosts
    hosts[3].kill()
    cluster.until(lambda: cluster.image.brokers[3].fenced)
    cluster.create_topic("t", assignment=[[1, 2, 3]], config={"unclean.recovery.strategy": "Aggressive"})
    assert cluster.produce("t", [b"one", b"two"]).error_code == 0
    hosts[2].kill()
    hosts[1].kill()
    hosts[3].start()
    cluster.until(lambda: cluster.leader("t") == 3)
    empty_epoch = cluster.hosted("t")[3].leader_epoch
    cluster.cut(1, 3)
    hosts[3].freeze()
    hosts[1].start()
    cluster.until(lambda: cluster.leader("t") == 1)
    hosts[3].thaw()
    cluster.until(lambda: not cluster.image.brokers[3].fenced and cluster.leader("t") == 1)
    hosts[1].kill()
    hosts[1].start()
    cluster.until(lambda: cluster.leader("t") in (1, 3) and cluster.hosted("t")[3].leader_epoch > empty_epoch + 2)
    assert cluster.leader("t") == 1
    cluster.heal()
    cluster.until(lambda: cluster.values("t") == [b"one", b"two"])

"""What a cluster of three does when something ends, fails, or asks nonsense."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tanist.broker.metadata.controller_service import ControllerService
from tanist.broker.metadata.features import TANIST_VERSION
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.channel import Channel
from tanist.events.process import ShutdownDone
from tanist.events.quorum import MetadataLogNotClosed
from tanist.events.storage import LogRecovered, RecordsCut
from tanist.sim.world.world import BROKER_PORT, CONTROLLER_PORT
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_response import AlterPartitionResponse
from tanist.wire.messages.alter_partition_response import PartitionData as PartitionAnswer
from tanist.wire.messages.alter_partition_response import TopicData as TopicAnswer
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from tanist.wire.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.metadata import ConfigRecord, PartitionChangeRecord
from tests.api_versions import API_VERSIONS
from tests.broker.cluster_rig import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(config={"min.insync.replicas": "2"})


def in_sync(cluster: Cluster, topic: str, count: int) -> bool:
    leader = cluster.leader(topic)
    return leader is not None and len(cluster.hosted(topic)[leader].leader.isr) == count


def test_acks_all_is_refused_before_the_append_when_too_few_are_in_sync(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.host(2).kill()
    cluster.host(3).kill()
    cluster.run(500)
    # Two of three controllers are gone as well, so the ISR cannot shrink: what is written is not committed.
    answer = cluster.produce("t", [b"x"], to=1, timeout_ms=300)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert cluster.fetch("t", to=1).high_watermark == 0


def test_min_isr_is_kept_and_consumers_see_nothing_of_what_is_not_committed() -> None:
    cluster = Cluster(nodes=5, config={"min.insync.replicas": "2"})
    cluster.create_topic("t", assignment=[[1, 2]])
    cluster.host(2).kill()
    cluster.until(lambda: in_sync(cluster, "t", 1))
    assert cluster.produce("t", [b"x"]).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    # KIP-966: acks=1 is taken, but the high watermark does not move below min ISR.
    assert cluster.produce("t", [b"y"], acks=1).error_code == 0
    assert cluster.values("t") == []
    cluster.host(2).start()
    cluster.until(lambda: in_sync(cluster, "t", 2))
    cluster.until(lambda: cluster.values("t") == [b"y"])


def test_a_minimum_that_comes_with_a_smaller_isr_holds_for_it() -> None:
    """Both in one burst of metadata: the high watermark must not pass a member that has gone to the ELR."""
    cluster = Cluster(config={"min.insync.replicas": "1"})
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    for node_id in (2, 3):
        cluster.host(node_id).freeze()
    assert cluster.produce("t", [b"x"], acks=1, to=1).error_code == 0
    node, hosted = cluster.node(1), cluster.hosted("t")[1]
    assert hosted.replica.high_watermark == 0
    records = [
        ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="2"),
        PartitionChangeRecord(partition_id=0, topic_id=hosted.topic_id, isr=(1,), eligible_leader_replicas=(2, 3)),
    ]
    node.metadata.apply(records, node.metadata.applied_offset + len(records))
    assert (hosted.leader.isr, hosted.replica.high_watermark) == ((1,), 0)


def test_an_answer_to_alter_partition_takes_effect_with_the_metadata_that_has_it() -> None:
    """By then the broker also knows the min.insync.replicas by which the controller has decided, and kept an ELR."""
    cluster = Cluster(config={"min.insync.replicas": "2", "replica.lag.time.max.ms": "1000"})
    controller = cluster.controller()
    leader, follower = (node_id for node_id in (1, 2, 3) if node_id != controller)
    cluster.create_topic("t", assignment=[[leader, follower, controller]])
    cluster.host(controller).freeze()
    assert cluster.produce("t", [b"x"], acks=1, to=leader).error_code == 0
    node, hosted = cluster.node(leader), cluster.hosted("t")[leader]
    cluster.until(lambda: hosted.leader.pending is not None)
    state = node.metadata.image.partition(hosted.topic_id, 0)
    smaller = PartitionAnswer(
        partition_index=0,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        isr=(leader, follower),
        partition_epoch=state.partition_epoch + 1,
    )
    node.components.isr_changes._handle_response(
        AlterPartitionResponse(topics=(TopicAnswer(topic_id=hosted.topic_id, partitions=(smaller,)),))
    )
    assert (set(hosted.leader.isr), hosted.leader.high_watermark) == ({1, 2, 3}, 0)
    change = PartitionChangeRecord(partition_id=0, topic_id=hosted.topic_id, isr=(leader, follower))
    node.metadata.apply([change], node.metadata.applied_offset + 1)
    assert (set(hosted.leader.isr), hosted.leader.high_watermark) == ({leader, follower}, 1)


def test_a_stopping_broker_hands_its_leaderships_over_and_comes_back_clean(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.produce("t", [b"x"])
    began_ms = cluster.world.now_ms
    cluster.host(1).stop(lambda: None)
    cluster.until(lambda: cluster.leader("t") in (2, 3))
    assert cluster.world.now_ms - began_ms < 200
    cluster.until(lambda: not cluster.host(1).up)
    assert b"brokerEpoch" in cluster.host(1).disk.content("/data/.kafka_cleanshutdown")
    epoch = cluster.node(1).lifecycle.broker_epoch
    cluster.host(1).start()
    cluster.until(lambda: in_sync(cluster, "t", 3))
    assert cluster.node(1).lifecycle.previous_broker_epoch == epoch
    assert not [*cluster.seen(RecordsCut), *cluster.seen(LogRecovered)]


def test_an_idempotent_retry_after_a_leader_change_is_reported_from_a_new_record(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    given = cluster.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
    assert given.error_code == 0
    other = cluster.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4, to=2)
    assert other.producer_id != given.producer_id
    batch = {"producer_id": given.producer_id, "producer_epoch": 0}
    assert cluster.produce("t", [b"a"], base_sequence=0, **batch).base_offset == 0
    cluster.until(lambda: all(h.log.log_end_offset == 1 for h in cluster.hosted("t").values()))
    cluster.host(1).kill()
    cluster.until(lambda: cluster.leader("t") in (2, 3))
    again = cluster.produce("t", [b"a"], base_sequence=0, **batch)
    assert (again.error_code, again.base_offset) == (0, 0)
    assert cluster.produce("t", [b"b"], base_sequence=1, **batch).base_offset == 1
    gap = cluster.produce("t", [b"d"], base_sequence=3, **batch)
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert cluster.values("t") == [b"a", b"b"]


def test_a_consumer_is_sent_to_the_replica_in_its_rack() -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    cluster = Cluster(
        config={"replica.selector.class": selector}, per_node={n: {"broker.rack": f"rack{n}"} for n in (1, 2, 3)}
    )
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.produce("t", [b"x"])
    cluster.until(lambda: all(h.replica.high_watermark == 1 for h in cluster.hosted("t").values()))
    redirected = cluster.fetch("t", to=1, rack_id="rack3")
    assert (redirected.preferred_read_replica, bytes(redirected.records)) == (3, b"")
    assert cluster.fetch("t", to=1, rack_id="rack1").preferred_read_replica == -1
    assert cluster.fetch("t", to=1, rack_id="").preferred_read_replica == -1
    assert cluster.values("t", to=3) == [b"x"]
    # A client from before KIP-392 is served by leaders only.
    assert cluster.fetch("t", to=3, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("noticed_by", ["this partition", "another partition"])
def test_a_directory_that_fails_before_roles_are_taken_gets_no_empty_log_in_its_place(noticed_by: str) -> None:
    """The controller may still count this broker as eligible: what is elsewhere and empty must not be led."""
    cluster = Cluster(config={"log.dirs": "/data/1,/data/2"})
    cluster.create_topic("t", partitions=4, factor=3)
    assert cluster.produce("t", [b"x"]).error_code == 0
    host = cluster.host(3)
    there = {log.partition for log in host.node.replicas.directories[1].logs.values()}
    assert len(there) == 2
    host.kill()
    cluster.run(500)
    host.start()
    if noticed_by == "another partition":
        host.node.replicas.directories[1].failed = OSError(5, "input/output error")
    host.disk.failing.append("/data/2")
    cluster.until(lambda: len(cluster.hosted("t", 0)) + len(cluster.hosted("t", 1)) >= 5)
    cluster.run(2_000)
    assert host.up, host.fatal
    replicas = host.node.replicas
    assert replicas.directories.offline_ids() == (replicas.directories[1].directory_id,)
    assert not there & {log.partition for log in replicas.directories[0].logs.values()}
    assert all(3 not in cluster.hosted("t", index) for index in there)


def test_a_start_that_cannot_open_a_log_is_not_a_clean_one() -> None:
    """Its mark was there, and its logs are not: they are made anew, empty, in the other directory."""
    cluster = Cluster(config={"log.dirs": "/data/1,/data/2"})
    cluster.create_topic("t", partitions=4, factor=3)
    host = cluster.host(3)
    log = next(iter(host.node.replicas.directories[1].logs.values()))
    stopped: list[bool] = []
    host.stop(lambda: stopped.append(True))
    cluster.until(lambda: bool(stopped))
    host.disk.failing.append(log.directory)
    host.start()
    cluster.until(lambda: host.node is not None and host.node.lifecycle.broker_epoch >= 0)
    assert host.node.replicas.directories.offline_ids() == (host.node.replicas.directories[1].directory_id,)
    assert host.node.lifecycle.previous_broker_epoch == -1


def test_a_failed_log_directory_takes_its_partitions_offline_and_nothing_else() -> None:
    cluster = Cluster(config={"min.insync.replicas": "2", "log.dirs": "/data,/more"})
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 4)
    for partition in range(4):
        cluster.produce("t", [b"x"], partition=partition)
    node = cluster.node(1)
    by_directory: dict[str, list[int]] = {}
    for partition in range(4):
        by_directory.setdefault(node.replicas.get("t", partition).directory.path, []).append(partition)
    assert set(by_directory) == {"/data", "/more"}
    cluster.until(
        lambda: set(node.metadata.image.brokers[1].directories) == set(node.replicas.directories.online_ids())
    )
    cluster.host(1).disk.failing.append("/more")
    lost, kept = by_directory["/more"], by_directory["/data"]
    cluster.produce("t", [b"y"], partition=lost[0], to=1, timeout_ms=100)
    cluster.until(lambda: all(cluster.leader("t", partition) in (2, 3) for partition in lost))
    assert all(cluster.leader("t", partition) == 1 for partition in kept)
    assert cluster.host(1).up
    assert cluster.produce("t", [b"z"], partition=lost[0]).error_code == 0


def test_a_directory_that_fails_while_topic_ids_are_written_takes_no_other_along() -> None:
    """The ids of all new logs are made durable together, and one of them cannot be."""
    cluster = Cluster(config={"min.insync.replicas": "2", "log.dirs": "/data,/more"})
    host = cluster.host(1)
    assert host.node is not None
    replicas = host.node.replicas
    cluster.create_topic("t", assignment=[[1, 2, 3]] * 4)
    cluster.until(lambda: {each.directory.path for each in replicas.nameless} == {"/data", "/more"})
    host.disk.failing.append("/more")
    cluster.until(lambda: any(directory.failed for directory in replicas.directories))
    cluster.run(2_000)
    assert host.up, host.fatal
    assert [directory.path for directory in replicas.directories if directory.failed] == ["/more"]
    assert all(each.log.topic_id_durable for each in replicas)


def test_a_node_without_a_working_directory_goes_down_and_says_why(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.host(1).disk.failing.append("/data")
    cluster.produce("t", [b"y"], to=1, timeout_ms=100)
    cluster.until(lambda: not cluster.host(1).up)
    assert "offline" in (cluster.host(1).fatal or "")
    cluster.until(lambda: cluster.leader("t") in (2, 3))


def test_an_append_that_the_disk_refuses_takes_its_directory_offline_at_once() -> None:
    """Followers wait for news of the partition, and get none: no read notices the failure for them."""
    cluster = Cluster(config={"log.roll.ms": "200"})
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.produce("t", [b"x"])
    cluster.until(lambda: cluster.hosted("t")[2].log.log_end_offset == 1)
    log = cluster.hosted("t")[1].log
    cluster.run(210)
    cluster.host(1).disk.full = True
    answer = cluster.produce("t", [b"y"], to=1, timeout_ms=100)  # it needs another segment
    cluster.host(1).disk.full = False
    assert log.failed is not None
    assert answer is None or answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not cluster.host(1).up, "it was the only directory"


def test_flush_messages_1_makes_every_acknowledged_record_durable() -> None:
    cluster = Cluster(nodes=1, config={"log.flush.interval.messages": "1"})
    cluster.create_topic("t", factor=1)
    for n in range(20):
        assert cluster.produce("t", [b"%d" % n], acks=1).error_code == 0
        file = cluster.hosted("t")[1].log.read(0, 1 << 20, n + 1).chunk.file
        assert file.synced == file.size
    cluster.host(1).lose_power()
    cluster.host(1).start()
    cluster.until(lambda: cluster.leader("t") == 1)
    assert cluster.values("t") == [b"%d" % n for n in range(20)]


def test_the_metadata_log_is_cut_by_snapshots_and_a_node_starts_from_one() -> None:
    cluster = Cluster(config={"metadata.log.max.record.bytes.between.snapshots": "3000"})
    for n in range(30):
        cluster.create_topic(f"t{n}", partitions=2)
    cluster.until(lambda: all(node.quorum.raft.log.latest_snapshot_id is not None for node in cluster.world.nodes()))
    cluster.host(3).kill()
    cluster.run(200)
    for path in cluster.host(3).disk.paths():
        if "__cluster_metadata" in path and not path.endswith("quorum-state"):
            cluster.host(3).disk.view(cluster.client.process).remove(path)
    cluster.host(3).start()
    cluster.until(cluster.world.ready)
    assert len(cluster.node(3).metadata.image.topic_ids) == 30
    cluster.until(lambda: cluster.node(3).metadata.image == cluster.node(1).metadata.image)


def test_a_snapshot_is_written_when_the_last_one_is_old_and_something_was_committed() -> None:
    cluster = Cluster(config={"metadata.log.max.snapshot.interval.ms": "20000"})
    cluster.create_topic("t")
    assert all(node.quorum.raft.log.latest_snapshot_id is None for node in cluster.world.nodes())
    cluster.run(20_000)
    cluster.create_topic("u")
    cluster.until(lambda: all(node.quorum.raft.log.latest_snapshot_id is not None for node in cluster.world.nodes()))
    first = cluster.node(1).quorum.raft.log.latest_snapshot_id
    cluster.create_topic("v")
    cluster.run(1_000)
    assert cluster.node(1).quorum.raft.log.latest_snapshot_id == first


def test_brokers_that_may_not_listen_yet_are_fenced_a_moment_later() -> None:
    """As Apache Kafka's brokers, which do not register as nodes of tanist do."""
    cluster = Cluster()
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    active = cluster.controller()
    other = next(n for n in (1, 2, 3) if n != active)

    def fenced_after_ms(*, unknown: bool, active: int = active) -> int:
        service = cluster.node(active).quorum.controller_service
        assert service is not None
        controller = service.controller
        registration = controller.image.brokers[other]
        assert TANIST_VERSION in registration.features
        if unknown:
            controller.image.brokers[other] = replace(
                registration, features={k: v for k, v in registration.features.items() if k != TANIST_VERSION}
            )
        began_ms = cluster.world.now_ms
        cluster.host(other).kill()
        cluster.until(lambda: controller.image.brokers[other].fenced)
        took_ms = cluster.world.now_ms - began_ms
        cluster.host(other).start()
        cluster.until(lambda: in_sync(cluster, "t", 3))
        return took_ms

    assert fenced_after_ms(unknown=False) < 100
    assert 500 <= fenced_after_ms(unknown=True) < 2_000


def test_all_nodes_stop_and_start_again_with_everything(cluster: Cluster) -> None:
    cluster.create_topic("t")
    for n in range(10):
        cluster.produce("t", [b"%d" % n])
    for host in cluster.world.hosts.values():
        host.stop(lambda: None)
    cluster.until(lambda: not cluster.world.nodes(), within_ms=60_000)
    cluster.world.start()
    cluster.until(cluster.world.ready)
    cluster.until(lambda: cluster.leader("t") is not None)
    assert cluster.values("t") == [b"%d" % n for n in range(10)]


def test_a_frozen_broker_loses_its_session_and_comes_back(cluster: Cluster) -> None:
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    follower = next(n for n in (2, 3) if n != cluster.controller())
    cluster.host(follower).freeze()
    cluster.until(lambda: in_sync(cluster, "t", 2))
    assert cluster.produce("t", [b"x"]).error_code == 0
    cluster.host(follower).thaw()
    cluster.until(lambda: in_sync(cluster, "t", 3))


def test_a_newer_client_is_reported_what_we_speak(cluster: Cluster) -> None:
    answer = cluster.ask(API_VERSIONS, 4)
    versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert versions[0] == (0, 13)  # KAFKA-18659
    assert answer.finalized_features
    from tanist.wire.frames import encode_request

    frame = bytearray(encode_request(API_VERSIONS, 4, 7, "future"))
    frame[6:8] = (99).to_bytes(2, "big")
    seen: list[bytes] = []
    channel = Channel(
        cluster.client.clock,
        cluster.world.network.view("client", cluster.client.process),
        "node1",
        9092,
        client_id="future",
        max_frame_bytes=1 << 20,
    )
    cluster.client.run(
        lambda: channel.call_raw(
            lambda number: bytes(frame[:8]) + number.to_bytes(4, "big") + bytes(frame[12:]),
            5_000,
            lambda f: seen.append(b"" if f is None else bytes(f)),
        )
    )
    cluster.until(lambda: bool(seen))
    assert int.from_bytes(seen[0][4:6], "big") == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0" * 8, b"\x7f\xff\0\0\0\0\0\1\xff\xff", b"\0\0\0\x09\0\0\0\1\0\1x"])
def test_nonsense_ends_its_connection_and_nothing_else(cluster: Cluster, frame: bytes) -> None:
    closed: list[str] = []

    class Handler:
        def on_open(self, connection: object) -> None: ...

        def on_frame(self, frame: memoryview) -> None:
            closed.append("answered")

        def on_close(self, reason: str) -> None:
            closed.append(reason)

    def send() -> None:
        view = cluster.world.network.view("client", cluster.client.process)
        connection = view.connect("node1", 9092, Handler(), max_frame_bytes=1 << 20)
        connection.send([len(frame).to_bytes(4, "big") + frame])

    cluster.client.run(send)
    cluster.until(lambda: bool(closed))
    assert closed != ["answered"]
    cluster.create_topic("still-there")


def test_describe_quorum_cluster_and_coordinators(cluster: Cluster) -> None:
    request = DescribeQuorumRequest(
        topics=(TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),)),)
    )
    part = cluster.ask(request, 2).topics[0].partitions[0]
    assert part.error_code == 0
    assert {voter.replica_id for voter in part.current_voters} == {1, 2, 3}
    assert part.leader_id == cluster.node(1).quorum.leader_id
    described = cluster.ask(DescribeClusterRequest(endpoint_type=1), 1)
    assert [broker.broker_id for broker in described.brokers] == [1, 2, 3]
    controllers = cluster.ask(DescribeClusterRequest(endpoint_type=2), 1, port=CONTROLLER_PORT)
    assert {each.port for each in controllers.brokers} == {CONTROLLER_PORT}
    groups = cluster.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), 4).coordinators[0]
    assert (groups.error_code, groups.port) == (0, BROKER_PORT)
    transactions = cluster.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("x",)), 4).coordinators[0]
    assert (transactions.error_code, transactions.port) == (0, BROKER_PORT)


def test_topics_are_described_page_by_page(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        cluster.create_topic(name, partitions=3)
    seen: list[tuple[str, int]] = []
    cursor: Cursor | None = None
    for _ in range(10):
        answer = cluster.ask(DescribeTopicPartitionsRequest(response_partition_limit=2, cursor=cursor), 0)
        seen += [(topic.name, part.partition_index) for topic in answer.topics for part in topic.partitions]
        if answer.next_cursor is None:
            break
        cursor = Cursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)
    assert seen == [(name, index) for name in "abc" for index in range(3)]
    missing = cluster.ask(DescribeTopicPartitionsRequest(topics=(TopicRequest(name="nope"),)), 0)
    assert missing.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert missing.topics[0].topic_id == UUID(int=0)


def test_metadata_changes_nothing_at_a_broker_that_has_closed_its_logs(cluster: Cluster) -> None:
    """A combined node goes on as a controller for a while, and so hears of changes."""
    node = cluster.node(3)
    node.replicas.close(node.lifecycle.broker_epoch)
    cluster.create_topic("later", assignment=[[1, 2, 3]])
    topic_id = cluster.node(1).metadata.topic_id("later")
    cluster.until(lambda: node.metadata.topic_id("later") == topic_id)
    cluster.run(1_000)
    assert node.replicas.get("later", 0) is None
    assert ("later", 0) not in node.replicas.directories[0].logs


def test_a_long_metadata_log_is_applied_in_many_turns_before_the_controller_is_active(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        cluster.create_topic(f"topic{number}", partitions=3)
    applied: list[int] = []
    active_with: list[int] = []
    apply, elected = MetadataView.apply, ControllerService.elected

    def counted(view: MetadataView, records: list[Any], *rest: Any) -> None:
        applied.append(len(records))
        apply(view, records, *rest)

    def checked(service: ControllerService, epoch: int) -> None:
        active_with.append(len(service.controller.image.topics))
        elected(service, epoch)

    monkeypatch.setattr(MetadataView, "apply", counted)
    monkeypatch.setattr(ControllerService, "elected", checked)
    for host in cluster.world.hosts.values():
        host.kill()
    for host in cluster.world.hosts.values():
        host.properties["tanist.metadata.turn.records.max"] = "1"
        host.start()
    cluster.until(cluster.world.ready)
    cluster.run(5_000)
    topics = len(cluster.node(1).metadata.image.topics)
    assert topics >= 10
    assert set(active_with) == {topics}
    assert len(applied) > 3 * topics, "a batch a turn, on each node"
    assert {node.metadata.applied_offset for node in cluster.world.nodes()} == {cluster.node(1).metadata.applied_offset}


def test_a_node_whose_disk_fails_as_it_closes_stops_all_the_same_and_comes_back(cluster: Cluster) -> None:
    host = cluster.host(1)
    cluster.node(1).quorum._log.close = _fails  # type: ignore[method-assign]
    cluster.stop(host.node_id)
    assert len(cluster.seen(MetadataLogNotClosed)) == 1
    assert ShutdownDone(1) in cluster.seen(ShutdownDone)
    host.start()
    cluster.until(cluster.world.ready)


def _fails() -> None:
    raise OSError(5, "input/output error")

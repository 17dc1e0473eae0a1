"""Groups in a cluster of three: the topic that holds them, their coordinator, and what is left of them when it dies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

import pytest

from tanist.broker.node import Node
from tanist.sim.oracle import batch_bytes
from tanist.wire.batch import iterate_headers
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from tanist.wire.messages.join_group_response import JoinGroupResponse
from tanist.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.offset_commit_request import OffsetCommitRequestTopic
from tanist.wire.messages.offset_commit_response import OffsetCommitResponse
from tanist.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client, groups_cluster


@pytest.fixture
def cluster() -> Cluster:
    cluster = groups_cluster()
    cluster.create_topic("t")
    return cluster


def _is_led_by_another(cluster: Cluster, partition: int, former: int) -> bool:
    return cluster.leader(OFFSETS_TOPIC, partition) not in (former, None)


def test_the_topic_of_groups_is_made_when_a_coordinator_is_first_asked_for(cluster: Cluster) -> None:
    assert cluster.node(1).metadata.image.topic(OFFSETS_TOPIC) is None
    found = cluster.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
    assert found.error_code == 0
    topic = cluster.node(1).metadata.image.topic(OFFSETS_TOPIC)
    assert topic is not None
    assert len(topic.partitions) == 5
    assert all(len(state.replicas) == 3 for state in topic.partitions.values())
    assert found.node_id == cluster.leader(OFFSETS_TOPIC, Client(cluster).partition)
    config = cluster.node(1).metadata.image.configs[(2, OFFSETS_TOPIC)]
    assert config["cleanup.policy"] == "compact"


def test_it_has_no_more_replicas_than_there_are_brokers() -> None:
    cluster = groups_cluster(nodes=1)
    assert cluster.ask(FindCoordinatorRequest(key="g", key_type=0), 3).error_code == 0
    topic = cluster.node(1).metadata.image.topic(OFFSETS_TOPIC)
    assert topic is not None
    assert {state.replicas for state in topic.partitions.values()} == {(1,)}


def test_coordinators_of_several_groups_are_found_at_once_and_all_brokers_agree(cluster: Cluster) -> None:
    keys = tuple(f"group-{number}" for number in range(8))
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=keys)
    Client(cluster).coordinator()
    cluster.run(1_000)
    answers = [
        [(c.key, c.error_code, c.node_id, c.port) for c in cluster.ask(request, 6, to=node).coordinators]
        for node in (1, 2, 3)
    ]
    assert answers[0] == answers[1] == answers[2]
    assert [each[:2] for each in answers[0]] == [(key, 0) for key in keys]
    assert len({each[2] for each in answers[0]}) > 1


def test_nobody_loads_the_coordinator_who_has_no_groups(cluster: Cluster) -> None:
    cluster.produce("t", [b"x"])
    assert all(node.components.groups.loaded is None for node in cluster.world.nodes())


def test_an_offset_is_committed_on_all_replicas_and_reported_with_its_metadata(cluster: Cluster) -> None:
    client = Client(cluster)
    assert client.commit(7, metadata="wo ich war") == 0
    found = client.fetched()
    assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (7, 2, "wo ich war")
    replicas = cluster.hosted(OFFSETS_TOPIC, client.partition)
    assert len(replicas) == 3
    cluster.until(lambda: all(h.replica.high_watermark == 1 for h in replicas.values()))


def test_a_group_that_nobody_knows_has_committed_nothing_and_that_is_no_error(cluster: Cluster) -> None:
    client = Client(cluster)
    request = OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0, 3)),))
    for version in range(1, 8):
        answer = client.ask(request, version, lambda a: a.error_code or a.topics[0].partitions[0].error_code)
        assert answer.error_code == 0
        parts = answer.topics[0].partitions
        assert [(p.committed_offset, p.metadata, p.error_code) for p in parts] == [(-1, "", 0)] * 2
    assert client.committed() == -1


def test_every_version_of_a_commit_and_of_its_question(cluster: Cluster) -> None:
    client = Client(cluster)
    client.commit(0)
    topic_id = cluster.node(1).metadata.image.topic_ids["t"]
    for version in range(2, 11):
        request = client.commit_request(40 + version)
        request.topics[0].topic_id = topic_id
        answer = client.ask(request, version, lambda a: int(a.topics[0].partitions[0].error_code))
        assert answer.topics[0].partitions[0].error_code == 0
        assert client.committed() == 40 + version
        for fetch_version in (8, 9, 10):
            for topics in (None, (OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=(0,)),)):
                wanted = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=topics),))
                group = client.ask(wanted, fetch_version, lambda a: int(a.groups[0].error_code)).groups[0]
                assert group.topics[0].partitions[0].committed_offset == 40 + version
    everything = client.ask(OffsetFetchRequest(group_id="g", topics=None), 2, lambda a: int(a.error_code))
    assert [(t.name, t.partitions[0].committed_offset) for t in everything.topics] == [("t", 50)]
    unknown = client.commit_request(1)
    unknown.topics[0].topic_id = UUID(int=77)
    answer = client.ask(unknown, 10, lambda a: 0)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_topics_that_are_not_there_are_refused_and_the_others_committed(cluster: Cluster) -> None:
    client = Client(cluster)
    request = client.commit_request(5)
    other = OffsetCommitRequestTopic(name="absent", partitions=request.topics[0].partitions)
    request.topics = (other, *request.topics)
    answer = client.ask(request, 8, lambda a: max(topic.partitions[0].error_code for topic in a.topics))
    errors = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert errors == {"t": 0, "absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert client.committed() == 5


def test_a_group_is_asked_at_its_coordinator_and_nowhere_else(cluster: Cluster) -> None:
    client = Client(cluster)
    client.commit(1)
    others = {1, 2, 3} - {client.coordinator()}
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert {cluster.ask(request, 4, to=node).error_code for node in others} == {ErrorCode.NOT_COORDINATOR}


def test_a_member_joins_in_every_version_syncs_and_leaves(cluster: Cluster) -> None:
    client = Client(cluster)
    for version in range(10):
        joined = client.join(version=version)
        assert (joined.error_code, joined.generation_id, joined.leader) == (0, 2 * version + 1, joined.member_id)
        assert joined.member_id.startswith("client-")
        if version < 7:
            joined.protocol_type = "consumer"
        assert client.sync(joined, b"mine").assignment == b"mine"
        assert client.heartbeat(joined) == 0
        leave = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=joined.member_id),))
        answer = client.ask(leave, 5, lambda a: int(a.error_code))
        assert [member.error_code for member in answer.members] == [0]
        old = LeaveGroupRequest(group_id="g", member_id=joined.member_id)
        assert client.ask(old, 1, lambda a: int(a.error_code)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_committed_offsets_and_members_outlive_their_coordinator(cluster: Cluster) -> None:
    client = Client(cluster)
    joined = client.join()
    client.sync(joined, b"mine")
    other = Client(cluster, "other")
    for offset in range(30):
        assert other.commit(offset) == 0
    for _ in range(2):
        victim = client.coordinator()
        cluster.host(victim).kill()
        cluster.until(partial(_is_led_by_another, cluster, client.partition, victim))
        assert client.heartbeat(joined) == 0
        assert client.sync(joined).assignment == b"mine"
        assert other.committed() == 29
        cluster.host(victim).start()
        cluster.until(
            lambda: all(
                len(cluster.hosted(OFFSETS_TOPIC, index)[leader].leader.isr) == 3
                for index in range(5)
                if (leader := cluster.leader(OFFSETS_TOPIC, index)) is not None
            )
        )


def test_offsets_never_go_back_while_coordinators_die(cluster: Cluster) -> None:
    """Commits go on through every failure, and no fetched offset is less than an earlier or acknowledged one."""
    client = Client(cluster)
    acknowledged = fetched_before = -1
    offset = 0
    for _ in range(4):
        for _ in range(10):
            if client.commit(offset) == 0:
                acknowledged = offset
            offset += 1
            now = client.committed()
            assert now >= max(acknowledged, fetched_before)
            fetched_before = now
        # One more commit is under way when the coordinator dies: it may count or not, for good.
        victim = client.coordinator()
        cluster.send(client.commit_request(offset), 8, to=victim, timeout_ms=1_000)
        offset += 1
        cluster.run(1)
        cluster.host(victim).kill()
        now = client.committed()
        assert now >= max(acknowledged, fetched_before)
        fetched_before = now
        cluster.host(victim).start()
        cluster.until(
            lambda: all(
                len(cluster.hosted(OFFSETS_TOPIC, index)[leader].leader.isr) == 3
                for index in range(5)
                if (leader := cluster.leader(OFFSETS_TOPIC, index)) is not None
            )
        )
    assert offset == 44


def test_a_commit_that_is_not_replicated_in_time_is_not_reported_and_counts_once_it_is() -> None:
    cluster = groups_cluster(config={"min.insync.replicas": "2", "offsets.commit.timeout.ms": "3000"})
    cluster.create_topic("t")
    client = Client(cluster)
    assert client.commit(1) == 0
    leader = client.coordinator()
    followers = [cluster.host(node) for node in {1, 2, 3} - {leader}]
    for host in followers:
        host.freeze()
    answer = cluster.ask(client.commit_request(2), 8, to=leader)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    wanted = OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),))
    # Nor is anything else: with followers that say nothing it may have been deposed (`test_leadership.py`).
    assert cluster.ask(wanted, 7, to=leader).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    for host in followers:
        host.thaw()
    cluster.until(lambda: client.committed() == 2)


def commit_together(client: Client, metadata: Sequence[str]) -> list[int]:
    """Several commits in one turn of the coordinator; gives the errors that their answers have by and by."""
    node = client.cluster.node(client.coordinator())
    coordinator = node.components.groups.coordinator()
    found = coordinator.find(client.group)
    assert not isinstance(found, int)
    errors: list[int] = []
    for offset, text in enumerate(metadata):
        request = client.commit_request(offset, metadata=text)
        reply = partial(reported_error, errors)
        coordinator.carry_out(found, partial(found.shard.commit, request, reply, node.context.clock.now_ms()))
    return errors


def reported_error(errors: list[int], response: OffsetCommitResponse) -> None:
    errors.append(int(response.topics[0].partitions[0].error_code))


def batches(cluster: Cluster, client: Client, begin: int) -> list[int]:
    """How many records each batch of the coordinator's log has, from an offset on."""
    log = cluster.hosted(OFFSETS_TOPIC, client.partition)[client.coordinator()].log
    views = batch_bytes(log, begin, log.log_end_offset)
    return [header.record_count for view in views for _, header in iterate_headers(view)]


def test_what_one_turn_commits_is_one_batch(cluster: Cluster) -> None:
    client = Client(cluster)
    assert client.commit(7) == 0
    begin = cluster.hosted(OFFSETS_TOPIC, client.partition)[client.coordinator()].log.log_end_offset
    errors = commit_together(client, ["a", "b", "c"])
    assert errors == []  # nothing is answered before it is committed
    cluster.until(lambda: len(errors) == 3)
    assert errors == [0, 0, 0]
    assert batches(cluster, client, begin) == [3]
    assert client.fetched().metadata == "c"


def test_a_turn_that_commits_too_much_for_one_batch_has_several_and_refuses_only_what_fits_in_none() -> None:
    cluster = groups_cluster(config={"message.max.bytes": "2000"})
    cluster.create_topic("t")
    client = Client(cluster)
    assert client.commit(7) == 0
    begin = cluster.hosted(OFFSETS_TOPIC, client.partition)[client.coordinator()].log.log_end_offset
    errors = commit_together(client, [*["x" * 600] * 4, "y" * 2500, *["z" * 600] * 3])
    cluster.until(lambda: len(errors) == 8)
    assert sorted(errors) == sorted([0] * 7 + [int(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)])
    found = batches(cluster, client, begin)
    assert sum(found) == 7
    assert 1 < len(found) < 7
    assert client.fetched().metadata == "z" * 600


def test_what_a_turn_decides_and_loses_with_its_leadership_is_not_written(cluster: Cluster) -> None:
    """Though it led again at the turn's end: what it has then is what the log had when it came to lead."""
    client = Client(cluster)
    assert client.commit(7) == 0
    node = cluster.node(client.coordinator())
    hosted = cluster.hosted(OFFSETS_TOPIC, client.partition)[node.node_id]
    end = hosted.log.log_end_offset
    errors = commit_together(client, ["a"])
    coordinator = node.components.groups.coordinator()
    leader, hosted.leader = hosted.leader, None
    coordinator.role_changed(hosted)
    hosted.leader = leader
    coordinator.role_changed(hosted)
    cluster.until(lambda: len(errors) == 1)
    assert errors == [ErrorCode.NOT_COORDINATOR]
    assert hosted.log.log_end_offset == end
    cluster.until(lambda: client.committed() == 7)


def leads_anew(cluster: Cluster, client: Client) -> Node:
    """The client's coordinator, after a commit, as if it had come to lead before it heard what else is committed."""
    assert client.commit(1) == 0
    node = cluster.node(client.coordinator())
    hosted = cluster.hosted(OFFSETS_TOPIC, client.partition)[node.node_id]
    assert hosted.leader is not None
    hosted.leader.high_watermark = 0
    return node


def test_a_coordinator_tells_nothing_before_what_its_log_held_at_the_start_is_committed(cluster: Cluster) -> None:
    """A new leader may have records that its predecessor had not committed: until they are, it is loading."""
    client = Client(cluster)
    fresh = leads_anew(cluster, client).components.groups._make()
    cluster.run(1_000)
    assert fresh.find("g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert client.commit(2) == 0
    cluster.until(lambda: not isinstance(fresh.find("g"), int))
    found = fresh.find("g")
    assert not isinstance(found, int)
    assert found.shard.committed("g")[("t", 0)].offset == 1


def test_a_coordinator_that_is_loading_does_not_list_its_groups_as_none(cluster: Cluster) -> None:
    client = Client(cluster)
    node = leads_anew(cluster, client)
    node.components.groups.loaded = node.components.groups._make()
    listed = cluster.ask(ListGroupsRequest(), 4, to=node.node_id)
    assert (listed.error_code, listed.groups) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ())
    assert client.commit(2) == 0
    cluster.until(lambda: cluster.ask(ListGroupsRequest(), 4, to=node.node_id).error_code == ErrorCode.NONE)
    assert [group.group_id for group in cluster.ask(ListGroupsRequest(), 4, to=node.node_id).groups] == ["g"]


def test_a_broker_that_starts_again_has_its_groups() -> None:
    cluster = groups_cluster(nodes=1)
    cluster.create_topic("t", factor=1)
    client = Client(cluster)
    for offset in range(200):
        assert client.commit(offset) == 0
    cluster.host(1).kill()
    cluster.host(1).start()
    assert client.committed() == 199


def test_groups_are_listed_described_and_deleted(cluster: Cluster) -> None:
    client = Client(cluster)
    joined = client.join()
    client.sync(joined, b"mine")
    other = Client(cluster, "offsets only")
    other.commit(3)
    listed = {}
    for node in (1, 2, 3):
        answer = cluster.ask(ListGroupsRequest(), 5, to=node)
        assert answer.error_code == 0
        listed.update({group.group_id: (group.group_state, group.group_type) for group in answer.groups})
    assert listed == {"g": ("Stable", "classic"), "offsets only": ("Empty", "classic")}
    filtered = ListGroupsRequest(states_filter=("stable",), types_filter=("classic",))
    assert [g.group_id for g in cluster.ask(filtered, 5, to=client.coordinator()).groups] == ["g"]
    described = cluster.ask(DescribeGroupsRequest(groups=("g",)), 5, to=client.coordinator()).groups[0]
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    member = described.members[0]
    assert (member.member_id, member.client_id, member.member_assignment) == (joined.member_id, "client", b"mine")
    assert member.client_host.startswith("/")
    delete = DeleteGroupsRequest(groups_names=("g",))
    assert cluster.ask(delete, 2, to=client.coordinator()).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    delete = DeleteGroupsRequest(groups_names=("offsets only",))
    assert cluster.ask(delete, 2, to=other.coordinator()).results[0].error_code == 0
    assert other.committed() == -1
    gone = cluster.ask(DescribeGroupsRequest(groups=("offsets only",)), 6, to=other.coordinator()).groups[0]
    assert gone.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    gone = cluster.ask(DescribeGroupsRequest(groups=("offsets only",)), 5, to=other.coordinator()).groups[0]
    assert (gone.error_code, gone.group_state) == (0, "Dead")


def test_a_topic_made_anew_begins_at_its_beginning(cluster: Cluster) -> None:
    client = Client(cluster)
    client.commit(50)
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),), timeout_ms=5_000)
    assert cluster.ask(request, 6).responses[0].error_code == 0
    cluster.until(lambda: not cluster.hosted("t"))
    cluster.create_topic("t")
    cluster.until(lambda: client.committed() == -1)


def test_who_waits_is_sent_on_when_the_leadership_moves(cluster: Cluster) -> None:
    """A member that waits for others to join hears NOT_COORDINATOR, not nothing."""
    client = Client(cluster)
    client.sync(client.join(), b"")
    answers: list[JoinGroupResponse | None] = []
    host = cluster.host(client.coordinator())
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    answers = cluster.send(request, 3, to=host.node_id, timeout_ms=60_000)
    cluster.run(500)
    assert not answers
    host.stop(lambda: None)
    cluster.until(lambda: bool(answers))
    assert answers[0] is not None
    assert answers[0].error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", [9, 12])
def test_clients_do_not_write_to_the_topic_of_groups(cluster: Cluster, version: int) -> None:
    client = Client(cluster)
    assert client.commit(1) == 0
    refused = cluster.produce(OFFSETS_TOPIC, [b"forged"], partition=client.partition, version=version)
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.error_message == "__consumer_offsets is the cluster's own"
    assert client.commit(2) == 0
    assert client.committed() == 2

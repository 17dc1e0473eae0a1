"""Streams groups (KIP-1071) on nodes, in virtual time: internal topics, failover, permissions, operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tanist.controller.configs.settings import GROUP_RESOURCE
from tanist.controller.features import STREAMS_VERSION
from tanist.coordinator.streams.topology import StatusCode
from tanist.wire.acls import AclOperation, ResourceType
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from tanist.wire.messages.streams_group_heartbeat_request import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from tests.broker.acl_rig import SecuredCluster
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client

READ, DESCRIBE, CREATE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.CREATE
CONFIG = {
    "offsets.topic.num.partitions": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
REPARTITION, CHANGELOG = "g-words-repartition", "g-counts-changelog"


def topology(**of_changelog: Any) -> Topology:
    """Words of `t` are counted."""
    compact = (KeyValue(key="cleanup.policy", value="compact"),)
    changelog = TopicInfo(**{"name": CHANGELOG, "topic_configs": compact, **of_changelog})
    return Topology(
        subtopologies=(
            Subtopology(subtopology_id="0", source_topics=("t",), repartition_sink_topics=(REPARTITION,)),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=(TopicInfo(name=REPARTITION),),
                state_changelog_topics=(changelog,),
            ),
        )
    )


def streams_cluster(*, nodes: int = 3, config: Mapping[str, str] | None = None) -> Cluster:
    cluster = Cluster(nodes=nodes, config={**CONFIG, **(config or {})}, features={STREAMS_VERSION: 1})
    cluster.create_topic("t", partitions=2, factor=nodes)
    return cluster


class Member(Client):
    """A member of the group, of a process of its own: it does at once what it is to do."""

    def __init__(self, cluster: Cluster, name: str, sent: Topology | None = None) -> None:
        super().__init__(cluster)
        self.name = name
        self.epoch = 0
        self.sent = sent or topology()
        self.active: dict[str, tuple[int, ...]] = {}

    def request(self) -> StreamsGroupHeartbeatRequest:
        joining = self.epoch == 0
        return StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id=self.name,
            member_epoch=self.epoch,
            rebalance_timeout_ms=30_000 if joining else -1,
            process_id=self.name if joining else None,
            topology=self.sent if joining else None,
            active_tasks=tuple(TaskIds(subtopology_id=part, partitions=ids) for part, ids in self.active.items()),
            standby_tasks=(),
            warmup_tasks=(),
            task_offsets=(TaskOffset(subtopology_id="1", partition=1, offset=8),),
        )

    def beat(self) -> Any:
        answer = self.ask(self.request(), 1, lambda answer: answer.error_code)
        self.heard(answer)
        return answer

    def heard(self, answer: Any) -> None:
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                self.active = {each.subtopology_id: each.partitions for each in answer.active_tasks}

    def beat_until(self, done: Any) -> None:
        for _ in range(100):
            if done(self.beat()):
                return
            self.cluster.run(200)
        raise AssertionError(f"{self.name} has {self.active}")

    def leave(self) -> None:
        self.epoch = -1
        self.beat()


ALL = {"0": (0, 1), "1": (0, 1)}


def test_internal_topics_are_made_and_then_tasks_are_assigned() -> None:
    cluster = streams_cluster()
    a = Member(cluster, "a")
    assert [each.status_code for each in a.beat().status] == [StatusCode.MISSING_INTERNAL_TOPICS]
    a.beat_until(lambda answer: a.active == ALL)
    for name in (REPARTITION, CHANGELOG):
        topic = cluster.image.topic(name)
        assert topic is not None
        assert [len(topic.partitions[index].replicas) for index in sorted(topic.partitions)] == [1, 1]
    assert cluster.image.configs[2, CHANGELOG]["cleanup.policy"] == "compact"


def test_members_go_on_with_their_tasks_when_the_coordinator_dies() -> None:
    cluster = streams_cluster()
    a, b = Member(cluster, "a"), Member(cluster, "b")
    a.beat_until(lambda answer: a.active == ALL)
    b.beat()
    for member in (a, b, a, b):
        member.beat()
    had = (dict(a.active), dict(b.active), a.epoch, b.epoch)
    assert sum(map(len, a.active.values())) == sum(map(len, b.active.values())) == 2
    cluster.stop(a.coordinator())
    for member in (a, b):
        assert member.beat().error_code == 0
    assert (a.active, b.active, a.epoch, b.epoch) == had


def test_a_member_that_has_not_heard_of_its_tasks_hears_of_them_again() -> None:
    cluster = streams_cluster()
    a = Member(cluster, "a")
    a.beat_until(lambda answer: a.active == ALL)
    assert a.beat().active_tasks is None
    a.active = {"0": (0,)}  # as if the last answer was lost
    a.beat()
    assert a.active == ALL


def test_why_an_internal_topic_cannot_be_made_is_said() -> None:
    cluster = streams_cluster(nodes=1, config={"offsets.topic.replication.factor": "1"})
    a = Member(cluster, "a", topology(replication_factor=3))
    a.beat()
    cluster.run(500)
    detail = a.beat().status[0].status_detail
    assert detail.startswith(f"Internal topics are missing: {CHANGELOG}; Creation failed: {CHANGELOG} (")
    cluster.run(20_000)
    assert a.active == {}


def test_a_member_may_hear_of_its_topics_and_create_those_that_are_missing() -> None:
    config = {**CONFIG, "offsets.topic.replication.factor": "1"}
    cluster = SecuredCluster(nodes=1, config=config, features={STREAMS_VERSION: 1})
    cluster.create_topic("t", partitions=2, factor=1)
    alice = Member(cluster, "a")

    def ask() -> Any:
        for _ in range(50):
            answer = cluster.ask_as("alice", alice.request(), 1)
            if answer.error_code not in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR):
                alice.heard(answer)
                return answer
            alice.coordinator()  # a client that asks for it has it made
            cluster.run(100)
        raise AssertionError("no coordinator")

    group = (READ, ResourceType.GROUP, "g")
    cluster.allow("alice", group, (DESCRIBE, ResourceType.TOPIC, "t"))
    assert ask().error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    cluster.allow("alice", *((DESCRIBE, ResourceType.TOPIC, name) for name in (REPARTITION, CHANGELOG)))
    (status,) = ask().status
    assert status.status_detail == (
        f"Internal topics are missing: {CHANGELOG}, {REPARTITION}; "
        f"Unauthorized to CREATE on topics {REPARTITION}, {CHANGELOG}."
    )
    assert cluster.image.topic(CHANGELOG) is None
    cluster.allow("alice", *((CREATE, ResourceType.TOPIC, name) for name in (REPARTITION, CHANGELOG)))
    for _ in range(20):
        ask()
        cluster.run(200)
    assert alice.active == ALL
    describe = StreamsGroupDescribeRequest(group_ids=("g",))
    assert cluster.ask_as("alice", describe, 1).groups[0].members
    cluster.revoke("alice")
    cluster.allow("alice", group, (DESCRIBE, ResourceType.TOPIC, "t"))
    (described,) = cluster.ask_as("alice", describe, 1).groups
    assert (described.error_code, described.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
    assert described.topology is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "__consumer_offsets",
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
        ),
        ("no/topic", "Topic names no/topic are not valid topic names."),
    ],
)
def test_topics_that_an_application_cannot_have(name: str, message: str) -> None:
    cluster = streams_cluster(nodes=1)
    refused = cluster.ask(Member(cluster, "a", topology(name=name)).request(), 1)
    assert (refused.error_code, refused.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def test_operators_see_change_and_delete_a_group() -> None:
    cluster = streams_cluster()
    a, b = Member(cluster, "a"), Member(cluster, "b")
    a.beat_until(lambda answer: a.active == ALL)
    b.beat()
    coordinator = a.coordinator()
    listed = cluster.ask(ListGroupsRequest(types_filter=("Streams",)), 5, to=coordinator).groups
    assert [(each.group_id, each.group_type, each.group_state) for each in listed] == [("g", "streams", "Reconciling")]
    request = StreamsGroupDescribeRequest(group_ids=("g", "x"), include_topology_description=True)
    known, unknown = cluster.ask(request, 1, to=coordinator).groups
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (known.group_state, known.assignor_name, known.topology_description_status) == ("Reconciling", "sticky", 1)
    assert [part.subtopology_id for part in known.topology.subtopologies] == ["0", "1"]
    assert [(each.name, each.partitions) for each in known.topology.subtopologies[1].state_changelog_topics] == [
        (CHANGELOG, 2)
    ]
    of_a, of_b = known.members
    assert [(each.subtopology_id, each.partition, each.offset) for each in of_a.task_offsets] == [("1", 1, 8)]
    assert sum(len(tasks.partitions) for tasks in of_a.assignment.active_tasks) == 4
    assert sum(len(tasks.partitions) for tasks in of_b.target_assignment.active_tasks) == 2
    assert cluster.ask(StreamsGroupDescribeRequest(group_ids=("g",)), 0, to=coordinator).groups[0].members
    cluster.configure(GROUP_RESOURCE, "g", {"streams.heartbeat.interval.ms": "7000"})
    assert a.beat().heartbeat_interval_ms == 7_000
    delete = DeleteGroupsRequest(groups_names=("g",))
    assert cluster.ask(delete, 2, to=coordinator).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    for member in (a, b):
        member.leave()
    assert cluster.ask(delete, 2, to=coordinator).results[0].error_code == 0
    assert cluster.ask(ListGroupsRequest(), 5, to=coordinator).groups == ()


def test_standbys_of_a_group_are_its_own_setting_within_the_brokers_bounds() -> None:
    cluster = streams_cluster(config={"group.streams.max.standby.replicas": "1"})
    cluster.configure(GROUP_RESOURCE, "g", {"streams.num.standby.replicas": "1"})
    a, b = Member(cluster, "a"), Member(cluster, "b")
    a.beat_until(lambda answer: a.active == ALL)
    b.beat()
    (described,) = cluster.ask(StreamsGroupDescribeRequest(group_ids=("g",)), 1, to=a.coordinator()).groups
    standbys = [tasks for each in described.members for tasks in each.target_assignment.standby_tasks]
    assert sum(len(tasks.partitions) for tasks in standbys) == 2


@pytest.mark.parametrize("level", [0, 1])
def test_streams_groups_are_there_from_streams_version_1_on(level: int) -> None:
    cluster = Cluster(nodes=1, config=CONFIG, features={STREAMS_VERSION: level})
    describe = StreamsGroupDescribeRequest(group_ids=("g",))
    errors = [
        cluster.ask(StreamsGroupHeartbeatRequest(group_id="g", member_id="a"), 1).error_code,
        cluster.ask(describe, 1).groups[0].error_code,
    ]
    assert [error == ErrorCode.UNSUPPORTED_VERSION for error in errors] == [level == 0] * 2

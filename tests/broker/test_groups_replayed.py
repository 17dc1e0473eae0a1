"""A group that has moved between the protocols is one group, at this coordinator and at the next."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tanist.sim.checkers.coordinators import state_of_groups
from tanist.wire.consumer_protocol import encode_protocol
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client, groups_cluster

SUBSCRIPTION = encode_protocol(ConsumerProtocolSubscription(topics=("t",)), 1)


@pytest.fixture
def cluster() -> Cluster:
    cluster = groups_cluster(nodes=1, partitions=1)
    cluster.create_topic("t", factor=1)
    return cluster


def beat(client: Client, epoch: int) -> Any:
    """The heartbeat of the one member of the consumer protocol."""
    request = ConsumerGroupHeartbeatRequest(group_id=client.group, member_id="new", member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.topic_partitions = 10_000, ()
        request.subscribed_topic_names = ("t",)
    return client.ask(request, 1, lambda answer: int(answer.error_code))


def listed(cluster: Cluster) -> list[tuple[str, str, str]]:
    answer = cluster.ask(ListGroupsRequest(), 5)
    return [(each.group_id, each.group_type, each.group_state) for each in answer.groups]


def restart(cluster: Cluster, client: Client) -> None:
    cluster.host(1).kill()
    cluster.host(1).start()
    client.committed()  # its coordinator has loaded


def leave(client: Client, member_id: str) -> None:
    request = LeaveGroupRequest(group_id=client.group, members=(MemberIdentity(member_id=member_id),))
    assert client.ask(request, 5, lambda answer: int(answer.error_code)).error_code == 0


@pytest.mark.parametrize("online", [False, True], ids=["when it was empty", "with its members"])
def test_a_group_that_went_over_to_the_consumer_protocol_is_one_group_after_a_restart(
    cluster: Cluster, online: bool
) -> None:
    client = Client(cluster)
    joined = client.join(metadata=SUBSCRIPTION)
    client.sync(joined, b"")
    client.commit_as(joined, 7)
    if not online:
        leave(client, joined.member_id)
    assert beat(client, 0).error_code == 0
    before = listed(cluster)
    assert [each[:2] for each in before] == [("g", "consumer")]
    restart(cluster, client)
    assert listed(cluster) == before
    assert client.committed() == 7
    leave(client, "new")
    if online:
        return
    delete = DeleteGroupsRequest(groups_names=("g",))
    assert cluster.ask(delete, 2).results[0].error_code == 0
    assert listed(cluster) == []
    restart(cluster, client)
    assert listed(cluster) == []


def test_a_group_that_went_back_to_the_classic_protocol_is_one_group_after_a_restart(cluster: Cluster) -> None:
    client = Client(cluster)
    joined = client.join(metadata=SUBSCRIPTION)
    client.sync(joined, b"")
    client.commit_as(joined, 7)
    assert beat(client, 0).error_code == 0
    assert beat(client, -1).error_code == 0  # the last of the new protocol leaves
    assert [each[:2] for each in listed(cluster)] == [("g", "classic")]
    restart(cluster, client)
    assert [each[:2] for each in listed(cluster)] == [("g", "classic")]


def test_an_empty_consumer_group_that_a_classic_member_joins_is_a_classic_group(cluster: Cluster) -> None:
    """As Apache Kafka's GroupMetadataManager: a consumer group without members is no reason to speak its protocol."""
    client = Client(cluster)
    client.commit(7)
    assert beat(client, 0).error_code == 0
    assert beat(client, -1).error_code == 0
    joined = client.join(metadata=SUBSCRIPTION)
    assert (joined.error_code, joined.leader) == (0, joined.member_id)
    client.sync(joined, b"")
    assert listed(cluster) == [("g", "classic", "Stable")]
    restart(cluster, client)
    assert listed(cluster) == [("g", "classic", "Stable")]
    assert client.committed() == 7


def test_what_one_turn_decides_and_the_log_refuses_is_undone_the_last_decision_first() -> None:
    """Each decision rests on those before it: undone in their order, they would leave what the log never had."""
    cluster = groups_cluster(nodes=3, partitions=1)
    cluster.create_topic("t")
    client = Client(cluster)
    assert beat(client, 0).error_code == 0
    node = cluster.node(client.coordinator())
    coordinator = node.components.groups.coordinator()
    partition = next(coordinator.partitions())
    before = state_of_groups(partition.shard)
    leader = partition.hosted.leader
    assert leader is not None
    errors: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(leader), "check_before_append", lambda self, acks: int(ErrorCode.NOT_ENOUGH_REPLICAS))
        for name in ("second", "third"):
            request = ConsumerGroupHeartbeatRequest(
                group_id="g", member_id=name, member_epoch=0, rebalance_timeout_ms=10_000, topic_partitions=()
            )
            request.subscribed_topic_names = ("t",)
            decide = partial(
                partition.shard.consumer_heartbeat,
                request,
                ("client", "/host"),
                lambda answer: errors.append(int(answer.error_code)),
                node.context.clock.now_ms(),
            )
            coordinator.carry_out(partition, decide)
        cluster.until(lambda: len(errors) == 2)
    assert errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert state_of_groups(partition.shard) == before

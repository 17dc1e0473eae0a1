"""Configurations of groups (KIP-848): how they are set and described, and that the coordinator obeys them."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.client.admin import alter_configs_request
from tanist.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.list_config_resources_request import ListConfigResourcesRequest
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client, groups_cluster

CLIENT_METRICS, GROUP = 16, 32
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
MEMBER = "A" * 22


@pytest.fixture
def cluster() -> Cluster:
    cluster = groups_cluster()
    cluster.create_topic("t")
    return cluster


def alter(cluster: Cluster, kind: int, name: str, **values: str | None) -> tuple[int, str | None]:
    """Set values, or take them away; underscores are dots."""
    changes = {key.replace("_", "."): value for key, value in values.items()}
    (answer,) = cluster.ask(alter_configs_request(kind, name, changes), 1).responses
    cluster.run(500)
    return answer.error_code, answer.error_message


def described(cluster: Cluster, kind: int, name: str, key: str, *, to: int = 1) -> tuple[str | None, int, list[Any]]:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=(key,))
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    ((entry,),) = [result.configs for result in cluster.ask(request, 4, to=to).results]
    return entry.value, entry.config_source, [(each.name, each.value, each.source) for each in entry.synonyms]


def beat(client: Client, epoch: int = 0) -> Any:
    joining = epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        group_id=client.group,
        member_id=MEMBER,
        member_epoch=epoch,
        rebalance_timeout_ms=300_000 if joining else -1,
        subscribed_topic_names=("t",) if joining else None,
        topic_partitions=() if joining else None,
    )
    answer = client.ask(request, 1, lambda answer: int(answer.error_code))
    assert answer.error_code == 0, answer
    return answer


def members(client: Client) -> int:
    request = ConsumerGroupDescribeRequest(group_ids=(client.group,))
    return len(client.ask(request, 1, lambda answer: int(answer.groups[0].error_code)).groups[0].members)


def test_a_groups_value_comes_before_its_brokers(cluster: Cluster) -> None:
    default = ("group.consumer.session.timeout.ms", "45000", 5)
    assert described(cluster, GROUP, "g", SESSION) == ("45000", 5, [default])
    assert alter(cluster, GROUP, "g", consumer_session_timeout_ms="50000") == (0, None)
    for node in (1, 2, 3):
        assert described(cluster, GROUP, "g", SESSION, to=node) == ("50000", 8, [(SESSION, "50000", 8), default])
    assert described(cluster, GROUP, "other", SESSION) == ("45000", 5, [default])
    found = cluster.ask(ListConfigResourcesRequest(resource_types=(GROUP,)), 1).config_resources
    assert [(each.resource_type, each.resource_name) for each in found] == [(GROUP, "g")]
    assert alter(cluster, GROUP, "g", consumer_session_timeout_ms=None) == (0, None)
    assert described(cluster, GROUP, "g", SESSION) == ("45000", 5, [default])
    assert cluster.ask(ListConfigResourcesRequest(resource_types=(GROUP,)), 1).config_resources == ()


def test_members_are_asked_for_heartbeats_as_their_group_says(cluster: Cluster) -> None:
    client = Client(cluster)
    epoch = beat(client).member_epoch
    assert beat(client, epoch).heartbeat_interval_ms == 5_000
    alter(cluster, GROUP, "g", consumer_heartbeat_interval_ms="7000")
    assert beat(client, epoch).heartbeat_interval_ms == 7_000
    alter(cluster, GROUP, "g", consumer_heartbeat_interval_ms=None)
    assert beat(client, epoch).heartbeat_interval_ms == 5_000


@pytest.mark.parametrize(("timeout_ms", "left"), [(None, 0), ("58000", 1)])
def test_a_silent_member_is_removed_after_its_groups_timeout(
    cluster: Cluster, timeout_ms: str | None, left: int
) -> None:
    client = Client(cluster)
    epoch = beat(client).member_epoch
    alter(cluster, GROUP, "g", consumer_session_timeout_ms=timeout_ms)
    beat(client, epoch)
    cluster.run(44_000)
    assert members(client) == 1
    cluster.run(9_000)
    assert members(client) == left
    cluster.run(9_000)
    assert members(client) == 0


def test_a_subscription_to_client_metrics_is_kept(cluster: Cluster) -> None:
    assert described(cluster, CLIENT_METRICS, "s", "interval.ms") == ("300000", 5, [])
    assert alter(cluster, CLIENT_METRICS, "s", interval_ms="5000", match="client_id=a.*") == (0, None)
    assert described(cluster, CLIENT_METRICS, "s", "interval.ms") == ("5000", 7, [("interval.ms", "5000", 7)])
    found = cluster.ask(ListConfigResourcesRequest(), 0).config_resources
    assert [each.resource_name for each in found] == ["s"]

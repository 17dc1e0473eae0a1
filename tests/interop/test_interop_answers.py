"""Answers that Apache Kafka's one node and ours must give alike, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tanist.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tanist.wire.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.describe_groups_request import DescribeGroupsRequest
from tanist.wire.messages.describe_groups_response import DescribeGroupsResponse
from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from tanist.wire.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.metadata_response import MetadataResponse
from tests.interop.pair import Asker, Pair, alike, pair
from tests.interop.raw import RawClient
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

GROUPS = ("classic", "consumers", "")
CONTROLLERS = 2


@pytest.fixture(scope="module")
def nodes(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("answers")
    with pair(folder, {}) as both:
        for address in (both.apache, both.tanist):
            with RawClient(*address) as client:
                client.create_topic("t", 1, 1, {})
            with Asker(address) as asker:
                _have_consumers(asker)
        yield both


def _have_consumers(asker: Asker) -> None:
    """A member of the group `consumers` (KIP-848)."""
    beat = ConsumerGroupHeartbeatRequest(
        group_id="consumers",
        member_id="AAAAAAAAAAAAAAAAAAAAAA",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )

    def joined() -> bool:
        asker.ask(FindCoordinatorRequest(key="consumers"), 3, FindCoordinatorResponse)
        return asker.ask(beat, 1, ConsumerGroupHeartbeatResponse).error_code == 0

    wait_for(joined, "the group has a member")


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(("version", "by_id"), [*((each, False) for each in range(8, 14)), (12, True), (13, True)])
def test_operations_in_metadata(nodes: Pair, version: int, *, by_id: bool, asked: bool) -> None:
    def question(asker: Asker) -> Any:
        names = ("t", "no-such-topic", "not a name")
        topics = [MetadataRequestTopic(name=name) for name in names]
        if by_id:
            topics = [MetadataRequestTopic(topic_id=UUID(int=77), name=None)]
        request = MetadataRequest(
            topics=tuple(topics),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=asked,
            include_cluster_authorized_operations=asked and version <= 10,
        )
        answer = asker.ask(request, version, MetadataResponse)
        found = sorted((str(each.name), each.error_code, each.topic_authorized_operations) for each in answer.topics)
        everything = asker.ask(
            MetadataRequest(topics=None, include_topic_authorized_operations=asked), version, MetadataResponse
        )
        of_all = {each.topic_authorized_operations for each in everything.topics}
        return answer.cluster_authorized_operations, found, of_all

    alike(nodes, question)


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("controllers", [True, False])
def test_operations_in_describe_cluster(nodes: Pair, version: int, *, controllers: bool, asked: bool) -> None:
    def question(asker: Asker) -> Any:
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=asked,
            endpoint_type=CONTROLLERS if controllers and version else 1,
        )
        answer = asker.ask(request, version, DescribeClusterResponse)
        return answer.error_code, answer.error_message, answer.cluster_authorized_operations

    alike(nodes, question, controllers=controllers)


def test_operations_in_describe_topic_partitions(nodes: Pair) -> None:
    def question(asker: Asker) -> Any:
        request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"), TopicRequest(name="no-such-topic")))
        answer = asker.ask(request, 0, DescribeTopicPartitionsResponse)
        return [(each.name, each.error_code, each.topic_authorized_operations) for each in answer.topics]

    alike(nodes, question)


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("version", range(3, 7))
def test_operations_in_describe_groups(nodes: Pair, version: int, *, asked: bool) -> None:
    def question(asker: Asker) -> Any:
        request = DescribeGroupsRequest(groups=GROUPS, include_authorized_operations=asked)
        answer = asker.ask(request, version, DescribeGroupsResponse)
        return sorted(
            (each.group_id, each.error_code, str(each.error_message), each.group_state, each.authorized_operations)
            for each in answer.groups
        )

    alike(nodes, question)


@pytest.mark.parametrize("asked", [True, False])
def test_operations_in_consumer_group_describe(nodes: Pair, *, asked: bool) -> None:
    def question(asker: Asker) -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=GROUPS, include_authorized_operations=asked)
        answer = asker.ask(request, 1, ConsumerGroupDescribeResponse)
        return sorted(
            (each.group_id, each.error_code, str(each.error_message), each.group_state, each.authorized_operations)
            for each in answer.groups
        )

    alike(nodes, question)


@pytest.mark.parametrize("version", range(7))
def test_the_coordinator_of_a_group(nodes: Pair, version: int) -> None:
    def question(asker: Asker) -> Any:
        request = FindCoordinatorRequest(key="consumers", coordinator_keys=("consumers",))
        answer = asker.ask(request, version, FindCoordinatorResponse)
        found = [(each.key, each.node_id, each.error_code, each.error_message) for each in answer.coordinators]
        return answer.error_code, answer.error_message, answer.node_id, found

    alike(nodes, question)

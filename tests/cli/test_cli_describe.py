"""`tanist topics describe`: its filters, its lines and its JSON, of a cluster that says what the test wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.cli.commands import topics as topics_cli
from tanist.client.metadata import Broker, ClusterView
from tanist.runtime.client.client import Client, Unreachable
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest
from tanist.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from tanist.wire.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from tanist.wire.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from tanist.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

IDS = {"a": UUID(int=1 << 100), "b": UUID(int=2 << 100)}
TOPIC, BROKER = 2, 4
FROM_TOPIC, FROM_DEFAULT, FROM_STATIC = 1, 5, 4


def part(index: int, leader: int, isr: tuple[int, ...], **more: Any) -> DescribeTopicPartitionsResponsePartition:
    fields: dict[str, Any] = {"replica_nodes": (1, 2, 3), "eligible_leader_replicas": (), "last_known_elr": (), **more}
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index, leader_id=leader, leader_epoch=7, isr_nodes=isr, **fields
    )


@dataclass
class World:
    """What the cluster says."""

    partitions: dict[str, list[DescribeTopicPartitionsResponsePartition]]
    configs: dict[tuple[int, str], dict[str, tuple[str, int]]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=lambda: {"eligible.leader.replicas.version": 1})
    registered: tuple[int, ...] = (1, 2, 3)
    moving: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    controller: bool = True
    asked: list[Any] = field(default_factory=list)


class AnsweredClient(Client):
    """A client of that cluster."""

    def __init__(self, world: World) -> None:
        super().__init__([("nowhere", 1)], timeout_s=1.0)
        self.world = world

    def metadata(self, *_: Any, **__: Any) -> ClusterView:
        return ClusterView({2: Broker(2, "nowhere", 1, None)})

    def ask(self, request: Any, answer: Any, **_: Any) -> Any:
        self.world.asked.append(request)
        found = _ANSWERS[type(request)](self.world, request)
        assert isinstance(found, answer)
        return found


def _topics(world: World, request: DescribeTopicPartitionsRequest) -> Any:
    return DescribeTopicPartitionsResponse(
        topics=tuple(
            DescribeTopicPartitionsResponseTopic(name=name, topic_id=IDS[name], partitions=tuple(partitions))
            for name, partitions in world.partitions.items()
        )
    )


def _configs(world: World, request: DescribeConfigsRequest) -> Any:
    return DescribeConfigsResponse(
        results=tuple(
            DescribeConfigsResult(
                resource_type=wanted.resource_type,
                resource_name=wanted.resource_name,
                configs=tuple(
                    DescribeConfigsResourceResult(name=name, value=value, config_source=source)
                    for name, (value, source) in world.configs.get(
                        (wanted.resource_type, wanted.resource_name), {}
                    ).items()
                    if wanted.configuration_keys is None or name in wanted.configuration_keys
                ),
            )
            for wanted in request.resources
        )
    )


def _versions(world: World, request: ApiVersionsRequest) -> Any:
    return ApiVersionsResponse(
        api_keys=(ApiVersion(api_key=DescribeClusterRequest.API_KEY, min_version=0, max_version=2),),
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level) for name, level in world.features.items()
        ),
    )


def _cluster(world: World, request: DescribeClusterRequest) -> Any:
    if not request.include_fenced_brokers:
        return DescribeClusterResponse(metadata_age_ms=-1 if world.controller else 14_200)
    offline = {each for parts in world.partitions.values() for found in parts for each in found.offline_replicas}
    return DescribeClusterResponse(
        brokers=tuple(DescribeClusterBroker(broker_id=each, is_fenced=each in offline) for each in world.registered)
    )


def _moving(world: World, request: ListPartitionReassignmentsRequest) -> Any:
    if not world.controller:
        raise Unreachable("no controller")
    return ListPartitionReassignmentsResponse(
        topics=tuple(
            OngoingTopicReassignment(
                name=topic,
                partitions=(
                    OngoingPartitionReassignment(
                        partition_index=partition, adding_replicas=adding, removing_replicas=removing
                    ),
                ),
            )
            for (topic, partition), (adding, removing) in world.moving.items()
        )
    )


_ANSWERS: dict[type, Callable[[World, Any], Any]] = {
    ApiVersionsRequest: _versions,
    DescribeClusterRequest: _cluster,
    DescribeConfigsRequest: _configs,
    DescribeTopicPartitionsRequest: _topics,
    ListPartitionReassignmentsRequest: _moving,
}

MIN_2 = {"min.insync.replicas": ("2", FROM_TOPIC), "retention.ms": ("1", FROM_DEFAULT)}


@pytest.fixture
def world() -> World:
    return World(
        {
            "a": [
                part(0, 1, (1, 2, 3)),
                part(1, 2, (2, 3), offline_replicas=(1,)),
                part(2, 2, (2,), offline_replicas=(1, 3), eligible_leader_replicas=(3,)),
            ],
            "b": [part(0, -1, (), offline_replicas=(1, 2, 3), eligible_leader_replicas=(1,), last_known_elr=(2,))],
        },
        {(TOPIC, "a"): MIN_2, (TOPIC, "b"): {}},
    )


@pytest.fixture
def describe(monkeypatch: pytest.MonkeyPatch, world: World) -> Callable[..., str]:
    monkeypatch.setattr(topics_cli, "connect", lambda *_: AnsweredClient(world))

    def run(*arguments: str) -> str:
        result: Result = CliRunner().invoke(app, ["topics", "describe", *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    return run


def test_the_lines_are_those_of_kafka_topics(describe: Callable[..., str]) -> None:
    assert describe() == (
        "Topic: a\tTopicId: AAAAEAAAAAAAAAAAAAAAAA\tPartitionCount: 3\tReplicationFactor: 3\t"
        "Configs: min.insync.replicas=2\n"
        "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
        "\tTopic: a\tPartition: 1\tLeader: 2\tReplicas: 1,2,3\tIsr: 2,3\tElr: \tLastKnownElr: \n"
        "\tTopic: a\tPartition: 2\tLeader: 2\tReplicas: 1,2,3\tIsr: 2\tElr: 3\tLastKnownElr: \n"
        "Topic: b\tTopicId: AAAAIAAAAAAAAAAAAAAAAA\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: \n"
        "\tTopic: b\tPartition: 0\tLeader: none\tReplicas: 1,2,3\tIsr: \tElr: 1\tLastKnownElr: 2\n"
    )


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("--under-replicated-partitions", [("a", 1), ("a", 2), ("b", 0)]),
        ("--under-min-isr-partitions", [("a", 2), ("b", 0)]),
        ("--at-min-isr-partitions", [("a", 1)]),
        ("--unavailable-partitions", [("b", 0)]),
    ],
)
def test_a_filter_shows_its_partitions_and_no_topics(
    describe: Callable[..., str], option: str, shown: list[tuple[str, int]]
) -> None:
    assert "PartitionCount" not in describe(option)
    reported = json.loads(describe(option, "--json"))
    assert [(topic["topic"], each["partition"]) for topic in reported for each in topic["partitions"]] == shown


def test_min_isr_counts_as_what_it_can_be_at_most(describe: Callable[..., str], world: World) -> None:
    world.partitions = {"a": [part(0, 1, (1, 2, 3))]}
    world.configs = {(TOPIC, "a"): {"min.insync.replicas": ("9", FROM_TOPIC)}}
    assert describe("--under-min-isr-partitions") == ""
    assert "Partition: 0" in describe("--at-min-isr-partitions")


def test_two_filters_are_refused(describe: Callable[..., str]) -> None:
    result = CliRunner().invoke(app, ["topics", "describe", "--unavailable-partitions", "--at-min-isr-partitions"])
    assert result.exit_code == 2
    assert "give one filter only" in result.output


def test_replicas_that_are_being_added_are_not_missing_yet(describe: Callable[..., str], world: World) -> None:
    world.partitions = {"a": [part(0, 1, (1, 2), replica_nodes=(1, 2, 3)), part(1, 1, (1,), replica_nodes=(1, 2, 3))]}
    world.moving = {("a", 0): ((3,), ()), ("a", 1): ((3,), (1,))}
    reported = json.loads(describe("--under-replicated-partitions", "--json"))
    assert [each["partition"] for each in reported[0]["partitions"]] == [1]
    assert "Isr: 1,2\tAdding Replicas: 3\tRemoving Replicas: \tElr: " in describe()
    world.controller = False  # nobody to ask: then nothing is known of it, and the rest is shown
    assert "Adding" not in describe()


def test_explanations_take_the_cluster_into_account(describe: Callable[..., str], world: World) -> None:
    def why(partition: str) -> str:
        lines = describe("--explain", *([] if partition == "a" else ["--unavailable-partitions"])).splitlines()
        return lines[-1].strip()

    world.configs[BROKER, "2"] = {"unclean.recovery.manager.enabled": ("true", FROM_STATIC)}
    assert why("b") == (
        "no leader: ISR is empty; broker 1 is eligible (ELR) but fenced; strategy Balanced waits for it "
        "(KIP-966 leader election 3b)"
    )
    world.configs[TOPIC, "b"] = {"unclean.leader.election.enable": ("true", FROM_TOPIC)}
    assert "strategy Aggressive does not wait" in why("b")
    world.partitions["b"] = [part(0, -1, (), offline_replicas=(1, 2, 3), last_known_elr=(1, 2))]
    world.configs[TOPIC, "b"] = {}
    assert "once brokers 1 and 2 of LastKnownElr are unfenced" in why("b")
    world.registered = (2, 3)
    assert "once broker 2 of LastKnownElr is unfenced" in why("b")
    world.configs[BROKER, "2"] = {}
    assert "KIP-966 delivery plan" in why("b")
    world.features = {}
    assert "Kafka before KIP-966" in why("b")


def test_only_what_is_needed_is_asked_for(describe: Callable[..., str], world: World) -> None:
    describe("--under-min-isr-partitions")
    asked = [each for each in world.asked if isinstance(each, DescribeConfigsRequest)]
    assert [each.configuration_keys for each in asked[0].resources] == [
        ("min.insync.replicas", "unclean.leader.election.enable", "unclean.recovery.strategy")
    ] * 2
    assert not any(isinstance(each, ListPartitionReassignmentsRequest) for each in world.asked)
    assert not any(isinstance(each, ApiVersionsRequest) for each in world.asked)


def test_without_a_controller_the_age_is_said_first_and_no_controller_is_asked(
    describe: Callable[..., str], world: World
) -> None:
    world.controller = False
    lines = describe("--explain").splitlines()
    silence = "no quorum: no broker has heard from a controller for 14 s"
    assert lines[0] == f"Warning: {silence}; what is below is as old. See `tanist status`"
    assert lines[1].startswith("Topic: a")
    assert not any(isinstance(each, ListPartitionReassignmentsRequest) for each in world.asked)

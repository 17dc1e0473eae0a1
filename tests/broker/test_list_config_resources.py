"""What has a configuration: topics and live brokers, of the types that are asked for."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tanist.wire.errors import ErrorCode
from tanist.wire.messages.list_config_resources_request import ListConfigResourcesRequest
from tests.broker.cluster_rig import Cluster

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
TOPICS = [(TOPIC, "apples"), (TOPIC, "pears")]
BROKERS = [(BROKER, "1"), (BROKER, "2"), (BROKER, "3")]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    cluster = Cluster()
    for name in ("pears", "apples"):
        cluster.create_topic(name)
    return cluster


def listed(cluster: Cluster, types: Iterable[int]) -> list[tuple[int, str]]:
    answer = cluster.ask(ListConfigResourcesRequest(resource_types=tuple(types)), 1)
    assert answer.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((), TOPICS + BROKERS),
        ((TOPIC,), TOPICS),
        ((BROKER,), BROKERS),
        ((BROKER, TOPIC), TOPICS + BROKERS),
        ((BROKER_LOGGER, CLIENT_METRICS, GROUP), []),
    ],
)
def test_the_types_that_are_asked_for_are_listed(
    cluster: Cluster, types: tuple[int, ...], expected: list[tuple[int, str]]
) -> None:
    assert listed(cluster, types) == expected


def test_a_type_that_nobody_knows_is_refused(cluster: Cluster) -> None:
    answer = cluster.ask(ListConfigResourcesRequest(resource_types=(TOPIC, 3)), 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.config_resources == ()


def test_version_0_asks_for_client_metrics_alone(cluster: Cluster) -> None:
    answer = cluster.ask(ListConfigResourcesRequest(), 0)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.NONE, ())

"""What a partition depends on, read off the wire; its recovery strategy is the one that the controller finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.client.metadata import Broker, ClusterView
from tanist.controller.configs.description import describe_topic
from tanist.controller.configs.settings import Levels
from tanist.controller.image.image import MetadataImage
from tanist.controller.partitions.recovery_strategy import recovery_strategy as controllers_strategy
from tanist.runtime.client import partition_context
from tanist.runtime.client.admin import _SOURCES, ConfigEntry, PartitionDescription, TopicDescription
from tanist.runtime.client.client import Client
from tanist.runtime.client.partition_context import Elections, recovery_strategy
from tanist.wire.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from tanist.wire.metadata import ConfigRecord

SETTINGS = {
    "unclean.recovery.strategy": ("None", "Balanced", "Aggressive"),
    "unclean.leader.election.enable": ("true", "false"),
}


def level() -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in SETTINGS.items()})


@given(topic=level(), node=level(), cluster=level(), static=level())
def test_the_strategy_is_the_controllers(
    topic: dict[str, str], node: dict[str, str], cluster: dict[str, str], static: dict[str, str]
) -> None:
    image = MetadataImage(static)
    for kind, name, values in ((2, "t", topic), (4, "1", node), (4, "", cluster)):
        for key, value in values.items():
            image.replay(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
    shown = describe_topic(topic, Levels.of(image.configs, 1, static), tuple(SETTINGS))
    entries = {e.name: ConfigEntry(e.name, e.value, _SOURCES[int(e.source)], False, False) for e in shown}
    assert recovery_strategy(entries) == controllers_strategy(image, "t", 1).value


@pytest.mark.parametrize(("value", "strategy"), [("true", "Aggressive"), ("false", "Balanced")])
def test_apache_has_the_switch_only(value: str, strategy: str) -> None:
    name = "unclean.leader.election.enable"
    assert recovery_strategy({name: ConfigEntry(name, value, "topic", False, False)}) == strategy
    assert recovery_strategy({}) == "Balanced"


class Answering(Client):
    """A cluster in which broker 1 is live, 2 is fenced, and 3 is not registered."""

    def __init__(self, version: int) -> None:
        super().__init__([("nowhere", 1)])
        self.version = version
        self.asked: list[object] = []

    def metadata(self, topics: Iterable[str] | None = None, *, node_id: int | None = None) -> ClusterView:
        return ClusterView(brokers={1: Broker(1, "nowhere", 1)})

    def ask(self, request: Any, answer: Any, **_: Any) -> Any:
        self.asked.append(request)
        return DescribeClusterResponse(
            brokers=(DescribeClusterBroker(broker_id=1), DescribeClusterBroker(broker_id=2, is_fenced=True))
        )


@pytest.mark.parametrize(("version", "unregistered"), [(2, {3}), (1, set())])
def test_a_live_broker_whose_replica_is_offline_has_lost_a_directory(
    version: int, unregistered: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_context, "served_version", lambda client, _: client.version)
    client = Answering(version)
    partition = PartitionDescription(0, -1, 0, (1, 2, 3), (), (1, 2), (), (1, 2, 3))
    brokers = partition_context.offline_brokers(client, [TopicDescription("t", UUID(int=1), False, (partition,))])
    situation = partition_context.situation_of(partition, {}, Elections(True, True), brokers)
    assert (situation.without_directory, situation.unregistered) == ({1}, unregistered)
    assert len(client.asked) == (version == 2)


def test_nobody_is_asked_of_offline_brokers_when_there_are_none() -> None:
    client = Answering(2)
    partition = PartitionDescription(0, 1, 0, (1, 2), (1, 2), (), (), ())
    found = partition_context.offline_brokers(client, [TopicDescription("t", UUID(int=1), False, (partition,))])
    assert (found, client.asked) == (partition_context.OfflineBrokers(), [])

"""Clients' requests on their way to the controller: which are repeated for them, and which answers they never get."""

from __future__ import annotations

import pytest

from tanist.broker.node import Node
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tests.broker.cluster_rig import Cluster


def controller_of(cluster: Cluster) -> Node:
    return next(node for node in cluster.world.nodes() if (host := node.quorum.controller_service) and host.active)


def create(timeout_ms: int = 10_000, name: str = "t") -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=3)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=timeout_ms)


def test_a_refusal_that_the_first_request_has_caused_is_not_passed_on() -> None:
    """The topic is committed, the controller dies before its answer arrives, and its successor knows the topic."""
    cluster = Cluster()
    old = controller_of(cluster).node_id
    asked = next(node_id for node_id in cluster.world.hosts if node_id != old)
    assert cluster.ask(create(name="before"), 7, to=asked) is not None  # the way to the controller is open
    answers: list[object] = []
    address = (cluster.world.hosts[asked].name, BROKER_PORT)
    cluster.world.network.block(f"node{old}", f"node{asked}")
    cluster.client.run(lambda: cluster.client.channel(address).call(create(), 7, 20_000, answers.append))
    third = next(node_id for node_id in cluster.world.hosts if node_id not in (old, asked))
    cluster.until(lambda: "t" in cluster.node(third).metadata.image.topic_ids)
    cluster.world.hosts[old].kill()
    cluster.until(lambda: bool(answers))
    assert answers == [None]  # the connection has closed: the client knows that it does not know


def test_a_refusal_of_the_only_request_is_passed_on() -> None:
    cluster = Cluster()
    cluster.create_topic("t")
    answer = cluster.ask(create(), 7)
    assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(("timeout_ms", "heard_ms"), [(1_000, 25_000), (60_000, 65_000)])
def test_the_controller_is_asked_for_as_long_as_the_request_says(timeout_ms: int, heard_ms: int) -> None:
    cluster = Cluster()
    one, others = 1, (2, 3)
    for other in others:
        cluster.world.hosts[other].kill()
    cluster.until(lambda: cluster.node(one).quorum.leader_id is None)
    began_ms = cluster.world.now_ms
    assert cluster.ask(create(timeout_ms), 7, to=one, timeout_ms=100_000) is None
    assert heard_ms - 1_000 <= cluster.world.now_ms - began_ms <= heard_ms + 1_000

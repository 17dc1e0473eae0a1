"""From when on a broker serves clients: not before it knows what was committed before it started."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.history import History
from tanist.sim.world.world import BROKER_PORT, CONTROLLER_PORT, World
from tanist.wire.ids import KNOWS_NOTHING_MS
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.list_transactions_request import ListTransactionsRequest
from tanist.wire.messages.metadata_request import MetadataRequest
from tests.broker.cluster_rig import Cluster

TOPICS = 30

QUESTIONS = {
    "Metadata": (MetadataRequest(topics=None), 12),
    "ListGroups": (ListGroupsRequest(), 4),
    "ListTransactions": (ListTransactionsRequest(), 1),
    "FindCoordinator": (FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), 4),
    "DescribeCluster": (DescribeClusterRequest(include_fenced_brokers=True), 2),
}


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for number in range(TOPICS):
        cluster.create_topic(f"t{number}")
    return cluster


def first_answer(cluster: Cluster, node_id: int, request: Any, version: int) -> Any:
    """The first thing that a node says after it has been started: asked again and again, by one that is turned away."""
    for _ in range(1_000):
        answer = cluster.ask(request, version, to=node_id, timeout_ms=5_000)
        if answer is not None:
            return answer
        cluster.run(1)
    raise AssertionError("it never answers")


@pytest.mark.parametrize("records_a_turn", [None, 1])
def test_the_first_metadata_that_a_restarted_broker_tells_has_all_topics(
    cluster: Cluster, records_a_turn: int | None
) -> None:
    host = cluster.world.hosts[3]
    host.kill()
    if records_a_turn is not None:
        host.properties["tanist.metadata.turn.records.max"] = str(records_a_turn)
    host.start()
    answer = first_answer(cluster, 3, *QUESTIONS["Metadata"])
    assert len(answer.topics) == TOPICS
    assert {1, 2} <= {broker.node_id for broker in answer.brokers}
    cluster.until(cluster.world.ready)


def test_a_broker_without_a_quorum_answers_no_client_until_there_is_one(cluster: Cluster) -> None:
    for node_id in (1, 2, 3):
        cluster.world.hosts[node_id].kill()
    cluster.world.hosts[2].start()
    cluster.run(10_000)
    said = {name: cluster.ask(request, version, to=2) for name, (request, version) in QUESTIONS.items()}
    assert said == dict.fromkeys(QUESTIONS)
    # Other controllers, and an operator, hear it from the beginning.
    asked = cluster.ask(DescribeClusterRequest(endpoint_type=2), 2, to=2, port=CONTROLLER_PORT)
    assert (asked.error_code, asked.metadata_age_ms) == (0, KNOWS_NOTHING_MS)
    for node_id in (1, 3):
        cluster.world.hosts[node_id].start()
    answer = first_answer(cluster, 2, *QUESTIONS["Metadata"])
    assert len(answer.topics) == TOPICS
    cluster.until(cluster.world.ready)


def test_a_broker_of_its_own_serves_when_it_has_caught_up_with_its_controllers() -> None:
    world = World(1, roles={1: "controller", 2: "broker", 3: "broker"})
    world.start()
    assert world.run_until(world.ready, within_ms=30_000)
    client = SimClient(world, "client", History())
    answers: list[Any] = []

    def ask() -> None:
        request, version = QUESTIONS["DescribeCluster"]
        client.channel(("node2", BROKER_PORT)).call(request, version, 1_000, answers.append)

    world.hosts[1].kill()
    world.hosts[2].kill()
    world.hosts[2].start()
    for _ in range(100):
        client.run(ask)
        world.run_for(100)
    assert answers == [None] * len(answers)
    assert len(answers) > 50
    world.hosts[1].start()
    assert world.run_until(world.ready, within_ms=30_000)
    client.run(ask)
    assert world.run_until(lambda: answers[-1] is not None, within_ms=1_000)
    assert [broker.broker_id for broker in answers[-1].brokers] == [2, 3]

"""From when on a broker serves clients: not before it knows what was committed before it started."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.sim.world.world import CONTROLLER_PORT
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
    host = cluster.host(3)
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
        cluster.host(node_id).kill()
    cluster.host(2).start()
    cluster.run(10_000)
    said = {name: cluster.ask(request, version, to=2) for name, (request, version) in QUESTIONS.items()}
    assert said == dict.fromkeys(QUESTIONS)
    # Other controllers, and an operator, hear it from the beginning.
    asked = cluster.ask(DescribeClusterRequest(endpoint_type=2), 2, to=2, port=CONTROLLER_PORT)
    assert (asked.error_code, asked.metadata_age_ms) == (0, KNOWS_NOTHING_MS)
    for node_id in (1, 3):
        cluster.host(node_id).start()
    answer = first_answer(cluster, 2, *QUESTIONS["Metadata"])
    assert len(answer.topics) == TOPICS
    cluster.until(cluster.world.ready)


def test_a_broker_of_its_own_serves_when_it_has_caught_up_with_its_controllers() -> None:
    cluster = Cluster(roles={1: "controller", 2: "broker", 3: "broker"})
    question = QUESTIONS["DescribeCluster"]
    cluster.host(1).kill()
    cluster.host(2).kill()
    cluster.host(2).start()
    answers: list[Any] = []
    for _ in range(100):
        cluster.send(*question, to=2, timeout_ms=1_000, heard=answers.append)
        cluster.run(100)
    assert answers == [None] * len(answers)
    assert len(answers) > 50
    cluster.host(1).start()
    cluster.until(cluster.world.ready)
    answer = cluster.ask(*question, to=2, timeout_ms=1_000)
    assert [broker.broker_id for broker in answer.brokers] == [2, 3]

"""The topics of coordinators are made when they are needed, and a cluster without a quorum is not reported for it."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tanist.wire.messages.create_topics_request import CreateTopicsRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tests.broker.cluster_rig import Cluster

WHY = "can't be created"


def find(cluster: Cluster, group: str = "g", *, to: int) -> Any:
    answer = cluster.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=(group,)), 4, to=to)
    return answer.coordinators[0]


def ask_for_a_while(cluster: Cluster, to: int) -> list[int]:
    """As a client does that looks for its coordinator, for three seconds."""
    errors = []
    for _ in range(30):
        errors.append(int(find(cluster, to=to).error_code))
        cluster.run(100)
    return errors


def test_without_a_quorum_it_is_reported_now_and_then_that_a_topic_can_not_be_made() -> None:
    cluster = Cluster()
    left = next(node_id for node_id in (1, 2, 3) if node_id != cluster.controller())
    gone = {1, 2, 3} - {left}
    for node_id in gone:
        cluster.host(node_id).kill()
    cluster.log.clear()
    assert set(ask_for_a_while(cluster, left)) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert len([line for line in cluster.log if WHY in line]) == 1
    for node_id in gone:
        cluster.host(node_id).start()
    cluster.until(lambda: find(cluster, to=left).error_code == 0)


def test_a_topic_is_asked_for_once_however_many_clients_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(nodes=1)
    channel = cluster.node(1).components.controller_channel
    call = type(channel).call
    asked: list[str] = []

    def counted(one: Any, request: Any, *how: Any) -> None:
        if isinstance(request, CreateTopicsRequest):
            asked.extend(topic.name for topic in request.topics)
        call(one, request, *how)

    monkeypatch.setattr(type(channel), "call", counted)
    answers: list[Any] = []
    for number in range(20):
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=(f"group {number}",))
        cluster.send(request, 4, to=1, heard=answers.append)
    cluster.until(lambda: len(answers) == 20)
    assert [answer.coordinators[0].error_code for answer in answers] == [0] * 20
    assert asked == [OFFSETS_TOPIC]

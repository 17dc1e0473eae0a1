"""Waiting for a state of a cluster: what is said when it does not come."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.runtime.cluster.waiting import wait_until_so
from tanist.testing.conditions import in_sync, wait_for
from tanist.testing.errors import NotInTime
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.metadata_response import MetadataResponse, MetadataResponseBroker


class Silent(Client):
    """A broker that has heard from no controller for so long."""

    def __init__(self, age_ms: int) -> None:
        super().__init__([("nowhere", 1)])
        self.age_ms = age_ms

    def ask(self, request: Any, answer: Any, **_: Any) -> Any:
        if isinstance(request, DescribeClusterRequest):
            return DescribeClusterResponse(metadata_age_ms=self.age_ms)
        if isinstance(request, MetadataRequest):
            return MetadataResponse(brokers=(MetadataResponseBroker(node_id=1, host="nowhere", port=1),))
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def group(client: Client) -> str:
    client.ask(None, object)  # type: ignore[arg-type]
    return ""


def gone(_: Client) -> str:
    raise Unreachable("refused", 2)


@pytest.mark.parametrize(
    ("age_ms", "more"),
    [
        (-1, ""),
        (100, "; no quorum: no broker has heard from a controller for 0.1 s"),
        (14_000, "; no quorum: no broker has heard from a controller for 14 s"),
    ],
)
def test_a_wait_that_is_too_long_says_that_there_is_no_quorum(age_ms: int, more: str) -> None:
    def connect() -> Client:
        return Silent(age_ms)

    assert wait_until_so(lambda _: "t-0 has no leader", connect, 0) == f"t-0 has no leader{more}"
    assert wait_until_so(group, connect, 0) == f"COORDINATOR_NOT_AVAILABLE{more}"
    assert wait_until_so(gone, connect, 0) == f"broker 2 does not answer (refused){more}"


def test_what_brokers_remember_without_a_quorum_is_not_believed() -> None:
    lack = wait_until_so(lambda _: "", lambda: Silent(14_000), 0)
    assert lack == "no quorum: no broker has heard from a controller for 14 s"


def test_the_library_says_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(_: Any, client: Client) -> str:
        return "t-0 has 1 replica in sync"

    monkeypatch.setattr("tanist.testing.conditions.Condition.lack", lacking)
    with pytest.raises(NotInTime, match="t-0 has 1 replica in sync; no quorum: no broker has heard from a controller"):
        wait_for(in_sync("t"), lambda: Silent(14_000), 0)


def test_there_may_be_no_cluster_yet() -> None:
    asked: list[int] = []

    def connect() -> Client:
        asked.append(1)
        if len(asked) < 3:
            raise ClusterError("there is no cluster in x")
        return Silent(-1)

    assert wait_until_so(lambda _: "", connect, 60) == ""
    assert len(asked) == 3
    asked.clear()
    with pytest.raises(ClusterError):
        wait_until_so(lambda _: "", connect, 0)

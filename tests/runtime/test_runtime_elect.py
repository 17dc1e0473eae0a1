"""ElectLeaders as a client asks for it: batches, the limit of a request, and clusters that have less of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tanist.client.admin import ElectionType
from tanist.runtime.client.client import Client, KafkaError, Unsupported
from tanist.runtime.client.elect import Candidate, elect
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest
from tanist.wire.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult

Decide = Callable[[str, int, int | None], int]
"""The error code of a partition, by topic, partition and desired leader."""


class Controller(Client):
    """A client whose cluster elects as the test says, and serves so many partitions a request."""

    def __init__(self, decide: Decide = lambda *_: 0, *, limit: int = 1000, max_version: int = 3) -> None:
        super().__init__([("nowhere", 1)], timeout_s=5.0)
        self.decide = decide
        self.limit = limit
        self.max_version = max_version
        self.requests: list[ElectLeadersRequest] = []
        self.refusals: list[int] = []
        self.everything: dict[str, list[int]] = {}

    def ask(self, request: Any, answer: Any, **_: Any) -> Any:
        if isinstance(request, ApiVersionsRequest):
            return ApiVersionsResponse(api_keys=(ApiVersion(api_key=43, min_version=0, max_version=self.max_version),))
        if isinstance(request, DescribeClusterRequest):
            return DescribeClusterResponse()
        assert isinstance(request, ElectLeadersRequest)
        self.requests.append(request)
        if self.refusals:
            return ElectLeadersResponse(error_code=self.refusals.pop(0))
        left = self.limit
        topics = []
        asked = [(each.topic, each.partitions, each.desired_leaders) for each in request.topic_partitions or ()]
        if request.topic_partitions is None:
            asked = [(topic, tuple(partitions), None) for topic, partitions in self.everything.items()]
        for topic, partitions, leaders in asked:
            results = []
            for place, partition in enumerate(partitions):
                code: int = ErrorCode.REQUEST_LIMIT_REACHED
                if left > 0:
                    left -= 1
                    code = self.decide(topic, partition, None if leaders is None else leaders[place])
                results.append(PartitionResult(partition_id=partition, error_code=code))
            topics.append(ReplicaElectionResult(topic=topic, partition_result=tuple(results)))
        return ElectLeadersResponse(replica_election_results=tuple(topics))


def sizes(controller: Controller) -> list[int]:
    return [sum(len(each.partitions) for each in request.topic_partitions or ()) for request in controller.requests]


def test_a_request_carries_at_most_a_thousand_partitions() -> None:
    controller = Controller()
    wanted = [Candidate(f"t{number % 7}", number // 7) for number in range(2500)]
    results = elect(controller, ElectionType.PREFERRED, wanted, timeout_ms=1000)
    assert sizes(controller) == [1000, 1000, 500]
    assert {(each.topic, each.partition) for each in results} == {(each.topic, each.partition) for each in wanted}
    assert all(each.elected for each in results)
    assert [(each.topic, each.partition) for each in results] == sorted((e.topic, e.partition) for e in wanted)


def test_what_was_over_the_limit_is_asked_for_again_with_its_own_leaders() -> None:
    chosen: dict[int, int | None] = {}

    def decide(topic: str, partition: int, leader: int | None) -> int:
        assert topic == "t"
        assert partition not in chosen
        chosen[partition] = leader
        return 0

    controller = Controller(decide, limit=4)
    wanted = [Candidate("t", number, 100 + number) for number in range(10)]
    results = elect(controller, ElectionType.DESIGNATION, wanted, timeout_ms=1000)
    assert sizes(controller) == [10, 6, 2]
    assert chosen == {number: 100 + number for number in range(10)}
    assert [each.partition for each in results] == list(range(10))
    assert all(each.elected for each in results)


def test_all_partitions_are_asked_for_without_a_list_and_the_rest_by_name() -> None:
    controller = Controller(limit=2)
    controller.everything = {"a": [0, 1, 2], "b": [0]}
    results = elect(controller, ElectionType.UNCLEAN, None, timeout_ms=1000)
    assert controller.requests[0].topic_partitions is None
    assert sizes(controller)[1:] == [2]
    assert [(each.topic, each.partition, each.elected) for each in results] == [
        ("a", 0, True), ("a", 1, True), ("a", 2, True), ("b", 0, True),
    ]  # fmt: skip


def test_a_controller_that_serves_nothing_is_not_asked_for_ever() -> None:
    controller = Controller(limit=0)
    (result,) = elect(controller, ElectionType.PREFERRED, [Candidate("t", 0)], timeout_ms=1000)
    assert result.failed
    assert result.error_code == ErrorCode.REQUEST_LIMIT_REACHED
    assert len(controller.requests) == 1


@pytest.mark.parametrize("election", list(ElectionType))
def test_a_cluster_without_the_version_is_detected_before_anything_is_sent(election: ElectionType) -> None:
    wanted = [Candidate("t", 0, 1 if election is ElectionType.DESIGNATION else None)]
    apache = Controller(max_version=2)
    if election <= ElectionType.UNCLEAN:
        assert elect(apache, election, wanted, timeout_ms=1000)[0].elected
        assert apache.requests[0].election_type == int(election)
        return
    with pytest.raises(Unsupported, match=f"up to version 2, and {election.name} elections need version 3"):
        elect(apache, election, wanted, timeout_ms=1000)
    assert apache.requests == []


def test_version_0_would_take_unclean_for_preferred() -> None:
    with pytest.raises(Unsupported, match="UNCLEAN elections need version 1"):
        elect(Controller(max_version=0), ElectionType.UNCLEAN, [Candidate("t", 0)], timeout_ms=1000)


def test_outcomes_that_are_no_failures() -> None:
    codes = {0: ErrorCode.NONE, 1: ErrorCode.ELECTION_NOT_NEEDED, 2: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    controller = Controller(lambda _, partition, __: codes[partition])
    results = elect(controller, ElectionType.UNCLEAN, [Candidate("t", number) for number in codes], timeout_ms=1000)
    assert [(each.elected, each.needless, each.failed) for each in results] == [
        (True, False, False), (False, True, False), (False, False, True),
    ]  # fmt: skip


def test_a_cluster_without_a_controller_for_a_moment_is_asked_again() -> None:
    controller = Controller()
    controller.refusals = [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER]
    assert elect(controller, ElectionType.PREFERRED, [Candidate("t", 0)], timeout_ms=5000)[0].elected
    assert len(controller.requests) == 3


def test_a_refusal_of_the_whole_request_is_raised() -> None:
    controller = Controller()
    controller.refusals = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
        elect(controller, ElectionType.PREFERRED, [Candidate("t", 0)], timeout_ms=5000)

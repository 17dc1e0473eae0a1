"""Changes whose answers are lost: nothing is repeated unseen, and the outcome that is given is the one there is."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest

from tanist.client.admin import ElectionType
from tanist.runtime.client import admin, changes, groups
from tanist.runtime.client import client as client_module
from tanist.runtime.client.client import Client, KafkaError, OutcomeUnknown, Unanswered, Unreachable
from tanist.runtime.client.elect import Candidate, elect
from tanist.runtime.client.quorum import NoQuorum, metadata_age_ms, missing_quorum, watching
from tanist.runtime.migration.nodes import read_quorum
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_request, encode_response, parse_request_header
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest
from tanist.wire.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from tanist.wire.messages.create_topics_request import CreateTopicsRequest
from tanist.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest
from tanist.wire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest
from tanist.wire.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

LOST, NEVER_CAME, LATE, NOT_CONTROLLER = "lost", "never came", "late", "not controller"
"""What happens to a request: done and not answered; not done; done after the next look; written, then resigned."""


class Faulty(Client):
    """A cluster of one, whose answers to changes are lost as the test says."""

    def __init__(self, *mishaps: str, timeout_s: float = 5.0) -> None:
        super().__init__([("nowhere", 1)], timeout_s=timeout_s)
        self._last = ("nowhere", 1)
        self.mishaps = list(mishaps)
        self.topics: dict[str, tuple[UUID, list[tuple[int, ...]]]] = {}
        self.changes: list[Any] = []
        self.later: list[Callable[[], Any]] = []
        self.looks_fail = 0
        self.ages_ms: list[int] = []
        """How old the brokers' metadata is, each time that they are asked; then it is current."""

    def ask(self, request: Any, answer: Any, *, once: bool = False, **_: Any) -> Any:
        if isinstance(request, MetadataRequest):
            if self.changes and self.looks_fail:
                self.looks_fail -= 1
                raise Unreachable("busy")
            shown = self._metadata(request)
            while self.later:
                self.later.pop()()
            return shown
        if isinstance(request, DescribeClusterRequest):
            return DescribeClusterResponse(metadata_age_ms=self.ages_ms.pop(0) if self.ages_ms else -1)
        assert once, "a change that a broken connection repeats"
        self.changes.append(request)
        mishap = self.mishaps.pop(0) if self.mishaps else None
        if mishap == LATE:
            self.later.append(lambda: self._done(request))
        done = self._done(request) if mishap in (None, LOST, NOT_CONTROLLER) else None
        if mishap == NOT_CONTROLLER:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        if mishap is not None:
            raise Unanswered("it does not answer")
        return done

    def apart(self) -> Client:
        return self

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        found = []
        for wanted in request.topics or ():
            topic_id, partitions = self.topics.get(wanted.name or "", (UUID(int=0), []))
            parts = tuple(
                MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=replicas)
                for index, replicas in enumerate(partitions)
            )
            code = 0 if parts else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            found.append(MetadataResponseTopic(error_code=code, name=wanted.name, topic_id=topic_id, partitions=parts))
        alone = MetadataResponseBroker(node_id=1, host="nowhere", port=1)
        return MetadataResponse(brokers=(alone,), topics=tuple(found))

    def _done(self, request: Any) -> Any:
        if isinstance(request, CreateTopicsRequest):
            topic = request.topics[0]
            if topic.name in self.topics:
                return CreateTopicsResponse(topics=(CreatableTopicResult(name=topic.name, error_code=36),))
            topic_id = self.create(topic.name, topic.num_partitions)
            return CreateTopicsResponse(topics=(CreatableTopicResult(name=topic.name, topic_id=topic_id),))
        if isinstance(request, DeleteTopicsRequest):
            state = request.topics[0]
            gone = [name for name, (topic_id, _) in self.topics.items() if topic_id == state.topic_id]
            for name in gone:
                del self.topics[name]
            code = 0 if gone else ErrorCode.UNKNOWN_TOPIC_ID
            return DeleteTopicsResponse(responses=(DeletableTopicResult(name=state.name, error_code=code),))
        assert isinstance(request, CreatePartitionsRequest)
        grown = request.topics[0]
        partitions = self.topics[grown.name][1]
        code = 0 if grown.count > len(partitions) else ErrorCode.INVALID_PARTITIONS
        partitions += [(1, 2, 3)] * (grown.count - len(partitions))
        return CreatePartitionsResponse(results=(CreatePartitionsTopicResult(name=grown.name, error_code=code),))

    def create(self, name: str, partitions: int) -> UUID:
        self.topics[name] = (uuid4(), [(1, 2, 3)] * partitions)
        return self.topics[name][0]


@pytest.mark.parametrize("mishap", [LOST, NEVER_CAME, LATE, NOT_CONTROLLER])
def test_a_topic_is_created_whatever_becomes_of_the_answer(mishap: str) -> None:
    client = Faulty(mishap)
    client.looks_fail = 3
    topic_id = admin.create_topic(client, "t", partitions=4, replication_factor=3)
    assert client.topics["t"][0] == topic_id
    assert len(client.changes) == (1 if mishap in (LOST, NOT_CONTROLLER) else 2)


def test_a_topic_that_was_there_before_exists_already() -> None:
    client = Faulty()
    client.create("t", 4)
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topic(client, "t", partitions=4, replication_factor=3)
    client.mishaps = [LOST]  # the refusal is lost, and returned by the second request
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topic(client, "t", partitions=4, replication_factor=3)


def test_another_topic_that_took_the_name_meanwhile_is_not_ours() -> None:
    client = Faulty(NEVER_CAME)
    client.later.append(lambda: client.create("t", 1))  # after the look before the first request
    with pytest.raises(KafkaError, match="already exists, with other partitions"):
        admin.create_topic(client, "t", partitions=4, replication_factor=3)
    assert len(client.changes) == 1


def test_what_cannot_be_seen_is_not_said_to_be_done_or_refused() -> None:
    client = Faulty(LOST, timeout_s=0.3)
    client.looks_fail = 10_000
    with pytest.raises(OutcomeUnknown, match=r"whether this was done: create topic t \(busy\). Check before"):
        admin.create_topic(client, "t", partitions=4, replication_factor=3)
    assert len(client.changes) == 1


def test_the_request_says_how_long_it_may_take_and_many_replicas_may_take_longer() -> None:
    client = Faulty()
    admin.create_topic(client, "few", partitions=1, replication_factor=3)
    admin.create_topic(client, "many", partitions=10_000, replication_factor=3)
    few, many = (request.timeout_ms for request in client.changes)
    assert 4_900 <= few <= 5_100
    assert 94_000 <= many <= 95_000


@pytest.mark.parametrize("mishap", [LOST, NEVER_CAME, LATE, NOT_CONTROLLER])
def test_a_topic_is_deleted_and_not_another_of_its_name(mishap: str) -> None:
    client = Faulty(mishap)
    topic_id = client.create("t", 1)
    admin.delete_topic(client, "t")
    assert client.topics == {}
    assert {request.topics[0].topic_id for request in client.changes} == {topic_id}
    assert {request.topics[0].name for request in client.changes} == {None}


def test_a_topic_that_is_not_there_cannot_be_deleted() -> None:
    client = Faulty(timeout_s=0.3)
    with pytest.raises(KafkaError, match="there is no topic t"):
        admin.delete_topic(client, "t")
    assert client.changes == []


@pytest.mark.parametrize("mishap", [LOST, NEVER_CAME, LATE, NOT_CONTROLLER])
def test_partitions_are_added_whatever_becomes_of_the_answer(mishap: str) -> None:
    client = Faulty(mishap)
    client.create("t", 2)
    admin.add_partitions(client, "t", 6)
    assert len(client.topics["t"][1]) == 6


def test_fewer_partitions_are_refused_though_the_first_refusal_is_lost() -> None:
    client = Faulty(LOST)
    client.create("t", 6)
    with pytest.raises(KafkaError, match="INVALID_PARTITIONS"):
        admin.add_partitions(client, "t", 2)


def test_an_election_that_a_lost_answer_was_about_is_reported_as_such() -> None:
    class Electing(Client):
        led = False

        def ask(self, request: Any, answer: Any, **_: Any) -> Any:
            if isinstance(request, ApiVersionsRequest):
                return ApiVersionsResponse(api_keys=(ApiVersion(api_key=43, min_version=0, max_version=3),))
            if isinstance(request, DescribeClusterRequest):
                return DescribeClusterResponse()
            assert isinstance(request, ElectLeadersRequest)
            if not self.led:
                self.led = True
                raise Unanswered("it does not answer")
            found = PartitionResult(partition_id=0, error_code=ErrorCode.ELECTION_NOT_NEEDED)
            return ElectLeadersResponse(
                replica_election_results=(ReplicaElectionResult(topic="t", partition_result=(found,)),)
            )

    client = Electing([("nowhere", 1)], timeout_s=5.0)
    (outcome,) = elect(client, ElectionType.UNCLEAN, [Candidate("t", 0)], timeout_ms=1000)
    assert outcome.needless
    assert outcome.asked_again


def test_a_group_is_deleted_whatever_becomes_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"g"}
    asked: list[str] = []

    def describe(client: Client, group: str) -> None:
        if group not in there:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)

    class Coordinator(Client):
        def ask(self, request: Any, answer: Any, **_: Any) -> Any:
            assert isinstance(request, DeleteGroupsRequest)
            (group,) = request.groups_names
            asked.append(group)
            if group in there:
                there.remove(group)
                raise Unanswered("it does not answer")
            return DeleteGroupsResponse(results=(DeletableGroupResult(group_id=group, error_code=69),))

    monkeypatch.setattr(groups, "describe_group", describe)
    monkeypatch.setattr(groups, "coordinator_of", lambda client, kind, group: 1)
    client = Coordinator([("nowhere", 1)], timeout_s=5.0)
    assert groups.delete_groups(client, ["g"]) == {"g": 0}
    assert groups.delete_groups(client, ["g"]) == {"g": 69}
    assert asked == ["g", "g"]


def test_a_group_whose_coordinator_was_not_found_is_known_to_be_there() -> None:
    class Uncoordinated(Client):
        def ask(self, request: Any, answer: Any, **_: Any) -> Any:
            assert isinstance(request, FindCoordinatorRequest)
            found = Coordinator(key="g", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return FindCoordinatorResponse(coordinators=(found,))

    results = groups.delete_groups(Uncoordinated([("nowhere", 1)], timeout_s=0.2), ["g"])
    assert results == {"g": ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_the_look_before_a_change_takes_from_its_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """`groups delete` without a coordinator took twice as long as it was to wait."""
    client = Faulty(timeout_s=30.0)
    now_s = [time.monotonic()]
    patience_s: list[float] = []

    def find_result() -> None:
        now_s[0] += 30.0
        raise Unreachable("nobody")

    def attempt(within_s: float) -> None:
        patience_s.append(within_s)
        raise Unreachable("nobody")

    monkeypatch.setattr("tanist.runtime.client.changes.time.monotonic", lambda: now_s[0])
    with pytest.raises(Unreachable):
        changes.carry_out(client, "change", attempt, find_result)
    assert patience_s == [1.0]


def test_the_quorum_is_not_asked_for_where_there_is_none() -> None:
    """`tanist migrate` said that no broker answers."""
    client = Faulty(timeout_s=0.2)
    client.ages_ms = [12_000] * 100
    with pytest.raises(NoQuorum):
        read_quorum(client)


@contextmanager
def closing_broker() -> Iterator[tuple[int, list[int]]]:
    """A broker that answers ApiVersions, and closes the connection when it has received anything else."""
    received: list[int] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                while prefix := stream.read(4):
                    frame = memoryview(stream.read(int.from_bytes(prefix, "big")))
                    header = parse_request_header(frame)
                    received.append(header.api_key)
                    if header.api_key != ApiKey.API_VERSIONS:
                        break
                    decode_request(header, frame)
                    keys = (ApiKey.API_VERSIONS, ApiKey.CREATE_TOPICS)
                    known = ApiVersionsResponse(
                        api_keys=tuple(ApiVersion(api_key=key, min_version=0, max_version=4) for key in keys)
                    )
                    connection.sendall(encode_response(known, header.api_version, header.correlation_id))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], received
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_a_request_that_a_broker_has_received_is_not_sent_to_the_next_one() -> None:
    with closing_broker() as (port, received), closing_broker() as (other, spared):
        with Client([("127.0.0.1", 1), ("127.0.0.1", port), ("127.0.0.1", other)], timeout_s=5.0) as client:
            with pytest.raises(Unanswered, match=f"127.0.0.1:{port} closed the connection"):
                changes.ask_once(client, CreateTopicsRequest(timeout_ms=1000), CreateTopicsResponse, 1.0)
            assert received.count(ApiKey.CREATE_TOPICS) == 1
            assert spared == []
            with pytest.raises(Unreachable):
                client.ask(CreateTopicsRequest(timeout_ms=1000), CreateTopicsResponse)
        assert ApiKey.CREATE_TOPICS in spared


# -- no quorum


def test_without_a_quorum_nothing_is_asked_for_and_that_is_said() -> None:
    """A lost change is either known to be undone, or it was sent."""
    client = Faulty(timeout_s=0.5)
    client.ages_ms = [14_000] * 1_000
    with pytest.raises(NoQuorum, match="no quorum: no broker has heard from a controller for 14 s"):
        admin.create_topic(client, "t", partitions=1)
    assert client.changes == []


def test_a_quorum_that_comes_back_in_time_is_waited_for() -> None:
    client = Faulty()
    client.ages_ms = [14_000, 14_100, 14_200]
    admin.create_topic(client, "t", partitions=1)
    assert len(client.changes) == 1


def test_an_election_is_no_missing_quorum() -> None:
    client = Faulty()
    client.ages_ms = [10, 120, 240]
    assert metadata_age_ms(client) is None
    client.ages_ms = [10]
    assert missing_quorum(client) == ""


def test_who_waits_says_once_that_there_is_no_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LONG_WAIT_S", 0.0)
    client = Faulty(timeout_s=0.5)
    client.ages_ms = [14_000] * 1_000
    said: list[str] = []
    watching(client, said.append)

    def nobody() -> None:
        raise Unreachable("Connection refused", 2)

    with pytest.raises(Unreachable) as caught:
        client.persist(nobody)
    assert caught.value.in_words == "broker 2 does not answer (Connection refused)"
    assert said == ["no quorum: no broker has heard from a controller for 14 s"]

"""That something is not there is not believed because one broker says so: the client asks others."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tanist.runtime.client import admin, groups, transactions
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from tanist.wire.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.list_groups_response import ListedGroup, ListGroupsResponse
from tanist.wire.messages.list_transactions_request import ListTransactionsRequest
from tanist.wire.messages.list_transactions_response import ListTransactionsResponse
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ALL = {1: {"a", "b"}, 2: {"a", "b"}, 3: {"a", "b"}}


class Answering(Client):
    """Brokers 1 to 3 at ports of their numbers, each with the topics that it knows; those without any know nothing."""

    def __init__(self, topics: dict[int, set[str]], *, offsets_leaders: tuple[int, ...] = ()) -> None:
        super().__init__([("broker", port) for port in topics], timeout_s=0.5)
        self.topics = topics
        self.empty: set[int] = set()
        """Brokers that know of no broker."""
        self.down: set[int] = set()
        self.offsets_leaders = offsets_leaders
        self.listed: dict[int, tuple[str, ...]] = {}
        self.asked: list[int] = []

    def _ask_at(self, address: Address, request: Any, answer: Any, *_: Any, **__: Any) -> Any:
        broker = address[1]
        self.asked.append(broker)
        if broker in self.down:
            raise Unreachable(f"{broker} is down")
        if isinstance(request, MetadataRequest):
            return self._metadata(broker, request)
        if isinstance(request, DescribeTopicPartitionsRequest):
            names = [each.name for each in request.topics] or sorted(self.topics[broker])
            return DescribeTopicPartitionsResponse(
                topics=tuple(
                    DescribeTopicPartitionsResponseTopic(error_code=self._error(broker, name), name=name)
                    for name in names
                )
            )
        if isinstance(request, ListGroupsRequest):
            return ListGroupsResponse(groups=tuple(ListedGroup(group_id=each) for each in self.listed.get(broker, ())))
        assert isinstance(request, ListTransactionsRequest)
        return ListTransactionsResponse()

    def _error(self, broker: int, name: str) -> int:
        return 0 if name in self.topics[broker] else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _metadata(self, broker: int, request: MetadataRequest) -> MetadataResponse:
        names = sorted(self.topics[broker]) if request.topics is None else [each.name or "" for each in request.topics]
        found = []
        for name in names:
            internal = name == OFFSETS_TOPIC and bool(self.offsets_leaders)
            parts = tuple(
                MetadataResponsePartition(partition_index=index, leader_id=leader)
                for index, leader in enumerate(self.offsets_leaders if internal else (1,))
            )
            error = 0 if internal else self._error(broker, name)
            found.append(
                MetadataResponseTopic(
                    name=name, topic_id=UUID(int=1), error_code=error, partitions=() if error else parts
                )
            )
        alive = () if broker in self.empty else sorted(self.topics.keys() - self.down)
        brokers = tuple(MetadataResponseBroker(node_id=each, host="broker", port=each) for each in alive)
        return MetadataResponse(brokers=brokers, topics=tuple(found))


def test_topics_that_one_broker_denies_are_asked_of_the_others() -> None:
    client = Answering({1: set(), 2: {"a", "b"}, 3: {"a", "b"}})
    assert [name for name, _, _ in admin.list_topics(client)] == ["a", "b"]
    assert client.metadata(["b"]).topics["b"].error_code == 0
    assert not client.metadata(["c"]).topics["c"].partitions
    client.asked.clear()
    client.metadata(["c"])
    assert client.asked == [1, 2, 3]  # each once


def test_a_list_that_lacks_what_the_client_has_seen_is_doubted() -> None:
    client = Answering(dict(ALL))
    assert client.metadata(None).topics.keys() == {"a", "b"}
    client.topics[1] = {"a"}
    client.asked.clear()
    assert client.metadata(None).topics.keys() == {"a", "b"}
    client.topics = {1: {"a"}, 2: {"a"}, 3: {"a"}}
    assert client.metadata(None).topics.keys() == {"a"}
    client.asked.clear()
    assert client.metadata(None).topics.keys() == {"a"}
    assert client.asked == [1]  # that is settled


def test_only_brokers_that_the_cluster_counts_in_are_asked() -> None:
    """One that is cut off has not heard that the topic is deleted."""
    client = Answering(dict(ALL))
    client.metadata(None)
    client.topics = {1: {"a"}, 2: {"a"}, 3: {"a", "b"}}
    client.down.add(3)
    client.asked.clear()
    assert client.metadata(None).topics.keys() == {"a"}
    assert client.asked == [1, 2]


def test_an_answer_without_brokers_is_none() -> None:
    client = Answering({1: set(), 2: {"a"}, 3: {"a"}})
    client.empty = {1}
    assert client.metadata(["a"]).brokers.keys() == {1, 2, 3}
    client.empty = {1, 2, 3}
    with pytest.raises(Unreachable, match="no broker is in the cluster yet"):
        client.metadata(["a"])


def test_a_description_that_one_broker_cannot_give_comes_from_another() -> None:
    client = Answering({1: set(), 2: {"a", "b"}, 3: {"a", "b"}})
    assert [each.topic for each in admin.describe_topics(client, ["b"])] == ["b"]
    client = Answering({1: set(), 2: {"a", "b"}, 3: {"a", "b"}})
    assert [each.topic for each in admin.describe_topics(client)] == ["a", "b"]
    client.topics[2] = {"a"}
    assert [each.topic for each in admin.describe_topics(client)] == ["a", "b"]
    with pytest.raises(KafkaError, match="there is no topic c"):
        admin.describe_topics(client, ["c"])


def test_groups_are_listed_when_all_coordinators_have_been_asked() -> None:
    client = Answering(dict(ALL), offsets_leaders=(1, 2, 1))
    client.listed = {1: ("g1",), 2: ("g2",)}
    assert [each.group for each in groups.list_groups(client)] == ["g1", "g2"]
    client.offsets_leaders = (1, -1, 1)
    client.listed = {1: ("g1",)}
    with pytest.raises(
        KafkaError, match=r"no broker leads partition 1 of __consumer_offsets: what it holds is not known"
    ):
        groups.list_groups(client)
    assert [each.group for each in groups.list_groups(client, some=True)] == ["g1"]


def test_without_a_topic_for_them_there_are_no_groups_and_no_transactions() -> None:
    client = Answering(dict(ALL))
    assert groups.list_groups(client) == []
    assert transactions.list_transactions(client) == []

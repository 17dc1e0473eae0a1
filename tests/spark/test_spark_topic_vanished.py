"""Topics that a broker denies, that are gone, and that are back: no position of a stream is dropped."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tanist.client.positions import EARLIEST
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable
from tanist.spark.topic.options import TopicOptions
from tanist.spark.topic.plan import DataLoss, OffsetRange
from tanist.spark.topic.positions import from_json, ranges_between
from tanist.spark.topic.stream import TopicStreamReader
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.list_offsets_request import ListOffsetsRequest
from tanist.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST, SECOND = UUID(int=1), UUID(int=2)


class Brokers(Client):
    """Brokers 1 and 2 of a cluster; 1 leads all. `topics`: id, number of partitions, end of each."""

    def __init__(self, topics: dict[str, tuple[UUID, int, int]]) -> None:
        super().__init__([("broker", 1), ("broker", 2)], timeout_s=0.5)
        self.topics = topics
        self.denying: set[int] = set()
        """Brokers that have not read the metadata."""
        self.short: set[int] = set()
        """Brokers that know of one partition of each topic only."""
        self.age_ms = -1

    def _ask_at(self, address: Address, request: Any, answer: Any, *_: Any, **__: Any) -> Any:
        broker = address[1]
        if isinstance(request, DescribeClusterRequest):
            return DescribeClusterResponse(metadata_age_ms=self.age_ms)
        if isinstance(request, MetadataRequest):
            known = {} if broker in self.denying else self.topics
            names = sorted(known) if request.topics is None else [each.name or "" for each in request.topics]
            return MetadataResponse(
                brokers=tuple(MetadataResponseBroker(node_id=each, host="broker", port=each) for each in (1, 2)),
                topics=tuple(self._topic(known, name, 1 if broker in self.short else None) for name in names),
            )
        assert isinstance(request, ListOffsetsRequest)
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=0 if each.timestamp == EARLIEST else self.topics[topic.name][2],
                            leader_epoch=0,
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _topic(self, known: Any, name: str, most: int | None) -> MetadataResponseTopic:
        if name not in known:
            return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic_id, count, _ = known[name]
        partitions = tuple(
            MetadataResponsePartition(partition_index=index, leader_id=1) for index in range(most or count)
        )
        return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)


class Query:
    """The triggers of a stream, as Spark asks for them."""

    def __init__(self, brokers: Brokers, **options: str) -> None:
        named = {"kafka.bootstrap.servers": "broker:1", "startingOffsets": "earliest", "failOnDataLoss": "false"}
        parsed = TopicOptions.parse(named | options, streaming=True)
        self.reader = TopicStreamReader(parsed, ["value"])
        self.reader._connected = brokers
        self.at: dict[str, Any] = self.reader.initialOffset()

    def trigger(self) -> list[OffsetRange]:
        """What the next trigger reads."""
        self.reader._found_at_s = None
        end = self.reader.latestOffset(self.at, ReadAllAvailable())
        read = ranges_between(from_json(self.at), from_json(end))
        self.at = end
        return read


READING = [{"subscribe": "orders"}, {"subscribePattern": "ord.*"}, {"assign": '{"orders": [0, 1]}'}]


@pytest.fixture
def brokers() -> Brokers:
    return Brokers({"orders": (FIRST, 2, 200)})


@pytest.mark.parametrize("how", READING)
@pytest.mark.parametrize("fails", ["false", "true"])
def test_one_broker_that_denies_a_topic_changes_nothing(brokers: Brokers, how: dict[str, str], fails: str) -> None:
    query = Query(brokers, failOnDataLoss=fails, **how)
    assert [(each.start, each.end) for each in query.trigger()] == [(0, 200), (0, 200)]
    brokers.denying = {1}
    assert query.trigger() == []
    brokers.denying = set()
    assert query.trigger() == []  # and not all of it again
    brokers.topics["orders"] = (FIRST, 2, 201)
    assert [(each.start, each.end) for each in query.trigger()] == [(200, 201), (200, 201)]


@pytest.mark.parametrize("how", READING)
def test_a_topic_that_is_gone_and_the_same_when_it_is_back_goes_on(
    brokers: Brokers, how: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    query = Query(brokers, **how)
    query.trigger()
    there = brokers.topics
    brokers.topics = {}
    assert query.trigger() == []
    assert query.at["orders"]["0"]["gone"]
    assert query.at["orders"]["0"]["lost"] == "gone: orders-0, read up to offset 200"
    assert query.trigger() == []
    assert capsys.readouterr().err.count("partitions are gone: orders-0, read up to offset 200, orders-1") == 1
    brokers.topics = {"orders": (FIRST, 2, 210)}
    assert there
    assert [(each.start, each.end) for each in query.trigger()] == [(200, 210), (200, 210)]
    assert "gone" not in query.at["orders"]["0"]


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(
    brokers: Brokers, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether it was seen to be gone or not, and though it is longer than the one before."""
    query = Query(brokers, subscribe="orders")
    query.trigger()
    brokers.topics = {"orders": (SECOND, 2, 300)}
    assert [(each.start, each.end) for each in query.trigger()] == [(0, 300), (0, 300)]
    assert "orders-0: the topic that was read up to offset 200 was deleted, and made anew" in capsys.readouterr().err
    brokers.topics = {}
    query.trigger()
    brokers.topics = {"orders": (FIRST, 1, 5)}
    assert [(each.partition, each.start, each.end) for each in query.trigger()] == [(0, 0, 5)]


@pytest.mark.parametrize("how", READING)
def test_what_is_gone_for_certain_ends_a_query_that_must_lose_nothing(brokers: Brokers, how: dict[str, str]) -> None:
    query = Query(brokers, failOnDataLoss="true", **how)
    query.trigger()
    brokers.topics = {}
    with pytest.raises(DataLoss, match="partitions are gone: orders-0, read up to offset 200, orders-1"):
        query.trigger()


def test_without_a_controller_nothing_is_known_to_be_gone(brokers: Brokers) -> None:
    query = Query(brokers, subscribe="orders", failOnDataLoss="true")
    query.trigger()
    before = query.at
    brokers.topics, brokers.age_ms = {}, 60_000
    with pytest.raises(Unreachable, match="no controller is active: whether orders is gone is not known"):
        query.trigger()
    assert query.at == before


def test_partitions_that_a_broker_does_not_know_of_yet_are_not_gone(brokers: Brokers) -> None:
    query = Query(brokers, subscribe="orders", failOnDataLoss="true")
    query.trigger()
    brokers.short = {1}
    assert query.trigger() == []
    brokers.short = {1, 2}
    with pytest.raises(KafkaError, match="orders-1, which was read before"):
        query.trigger()


def test_a_topic_that_never_was_is_refused(brokers: Brokers) -> None:
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: other"):
        Query(brokers, subscribe="other")


def test_all_that_is_available_now_is_not_less_because_a_topic_is_denied(brokers: Brokers) -> None:
    query = Query(brokers, subscribe="orders")
    brokers.denying = {1}
    query.reader.prepareForTriggerAvailableNow()
    assert [(each.start, each.end) for each in query.trigger()] == [(0, 200), (0, 200)]
    assert query.trigger() == []

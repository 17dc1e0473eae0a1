"""KIP-966's admin client: it asks on as long as there is a cursor, and puts a topic's pages together."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tanist.broker.api.describe_topic_partitions import describe
from tanist.controller.image.image import MetadataImage
from tanist.runtime.client.admin import describe_topics
from tanist.runtime.client.client import Client, KafkaError
from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from tanist.wire.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from tanist.wire.metadata import PartitionRecord, TopicRecord


class Broker(Client):
    """A client of a broker that describes `limit` partitions at a time."""

    def __init__(self, limit: int, **topics: int) -> None:
        super().__init__([("nowhere", 1)], timeout_s=1.0)
        self.limit = limit
        self.requests: list[DescribeTopicPartitionsRequest] = []
        self.stuck = False
        self.image = MetadataImage()
        for number, (name, partitions) in enumerate(topics.items()):
            topic_id = UUID(int=100 + number)
            self.image.replay(TopicRecord(name=name, topic_id=topic_id))
            for partition in range(partitions):
                record = PartitionRecord(partition_id=partition, topic_id=topic_id, replicas=(1, 2, 3), isr=(1,))
                record.leader, record.leader_epoch, record.partition_epoch = 1, 0, 0
                record.eligible_leader_replicas, record.last_known_elr = (2,), (3,)
                self.image.replay(record)

    def ask(self, request: Any, answer: Any, **_: Any) -> Any:
        assert answer is DescribeTopicPartitionsResponse
        self.requests.append(request)
        page = describe(self.image, request, self.limit)
        if self.stuck and request.cursor is not None:
            page.next_cursor = request.cursor
        return page


def test_all_pages_are_asked_for_and_put_together() -> None:
    broker = Broker(3, a=5, b=1, c=3)
    described = describe_topics(broker)
    assert [(each.topic, [one.partition for one in each.partitions]) for each in described] == [
        ("a", [0, 1, 2, 3, 4]),
        ("b", [0]),
        ("c", [0, 1, 2]),
    ]
    cursors = [each.cursor for each in broker.requests]
    assert [None if each is None else (each.topic_name, each.partition_index) for each in cursors] == [
        None,
        ("a", 3),
        ("c", 0),
    ]
    assert all((one.elr, one.last_known_elr) == ((2,), (3,)) for each in described for one in each.partitions)


def test_the_names_that_were_asked_for_are_in_every_request() -> None:
    broker = Broker(1, a=2, b=2, c=1)
    assert [each.topic for each in describe_topics(broker, ["c", "a"])] == ["a", "c"]
    assert [[topic.name for topic in each.topics] for each in broker.requests] == [["a", "c"]] * 3


def test_a_page_that_comes_again_is_not_asked_for_for_ever() -> None:
    broker = Broker(1, a=3)
    broker.stuck = True
    with pytest.raises(KafkaError, match="the page that it just gave"):
        describe_topics(broker)
    assert len(broker.requests) == 2

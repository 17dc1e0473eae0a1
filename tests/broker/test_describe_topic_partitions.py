"""DescribeTopicPartitions: pages, cursors and what is wrong with them (rules 121-125)."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.broker.api.describe_topic_partitions import InvalidCursor, describe
from tanist.controller.image.image import MetadataImage
from tanist.events.process import MalformedRequest
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tanist.wire.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from tanist.wire.metadata import PartitionRecord, RegisterBrokerRecord, TopicRecord
from tests.broker.cluster_rig import Cluster

LIMIT = 2000


def an_image(topics: dict[str, int]) -> MetadataImage:
    image = MetadataImage()
    for broker_id in (1, 2, 3):
        image.replay(
            RegisterBrokerRecord(broker_id=broker_id, incarnation_id=UUID(int=broker_id), broker_epoch=1, fenced=False)
        )
    for number, (name, partitions) in enumerate(topics.items()):
        topic_id = UUID(int=1000 + number)
        image.replay(TopicRecord(name=name, topic_id=topic_id))
        for index in range(partitions):
            image.replay(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=(1, 2, 3),
                    isr=(1,),
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                )
            )
    return image


def request(*names: str, limit: int = LIMIT, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def shown(page: DescribeTopicPartitionsResponse) -> list[tuple[str, int]]:
    return [(topic.name or "", part.partition_index) for topic in page.topics for part in topic.partitions]


def following(page: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = page.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


names = st.sampled_from(["a", "b", "c", "d.e", "f_g", "Z"])


@given(
    topics=st.dictionaries(names, st.integers(1, 5)),
    asked=st.lists(names, max_size=4),
    limit=st.integers(-1, 7),
    ours=st.integers(1, 7),
)
def test_the_pages_together_are_everything_once_and_in_order(
    topics: dict[str, int], asked: list[str], limit: int, ours: int
) -> None:
    image = an_image(topics)
    wanted = sorted(set(asked)) or sorted(topics)
    everything = [(name, index) for name in wanted for index in range(topics.get(name, 0))]
    most = max(1, min(limit, ours))
    seen: list[tuple[str, int]] = []
    missing: list[str] = []
    cursor = None
    for _ in range(len(everything) + len(wanted) + 1):
        page = describe(image, request(*asked, limit=limit, cursor=cursor), ours)
        assert len(shown(page)) <= most
        seen += shown(page)
        missing += [topic.name or "" for topic in page.topics if topic.error_code]
        cursor = following(page)
        if cursor is None:
            break
    assert cursor is None
    assert seen == everything
    assert missing == [name for name in wanted if name not in topics]


def test_where_a_page_ends() -> None:
    image = an_image({"a": 3, "b": 2})
    assert following(describe(image, request(limit=2), LIMIT)) == ("a", 2)
    # The budget is used up exactly, and another topic follows, which need not even exist (rule 123).
    assert following(describe(image, request(limit=3), LIMIT)) == ("b", 0)
    assert following(describe(image, request("a", "nope", limit=3), LIMIT)) == ("nope", 0)
    assert following(describe(image, request(limit=5), LIMIT)) is None
    assert following(describe(image, request(limit=LIMIT), 4)) == ("b", 1)
    assert shown(describe(image, request(limit=0), LIMIT)) == [("a", 0)]


def test_cursors_before_between_and_beyond() -> None:
    image = an_image({"b": 2, "d": 2})
    assert shown(describe(image, request(cursor=("a", 7)), LIMIT)) == [("b", 0), ("b", 1), ("d", 0), ("d", 1)]
    assert shown(describe(image, request(cursor=("c", 1)), LIMIT)) == [("d", 0), ("d", 1)]
    assert shown(describe(image, request(cursor=("d", 1)), LIMIT)) == [("d", 1)]
    assert shown(describe(image, request(cursor=("d", 9)), LIMIT)) == []
    assert shown(describe(image, request(cursor=("e", 0)), LIMIT)) == []
    assert shown(describe(image, request("b", "d", cursor=("d", 0)), LIMIT)) == [("d", 0), ("d", 1)]


@pytest.mark.parametrize(
    ("topics", "cursor"), [(("a",), ("b", 0)), (("a", "c"), ("b", 0)), (("a",), ("a", -1)), ((), ("a", -1))]
)
def test_a_cursor_that_is_not_the_requests(topics: tuple[str, ...], cursor: tuple[str, int]) -> None:
    with pytest.raises(InvalidCursor):
        describe(an_image({"a": 1, "b": 1}), request(*topics, cursor=cursor), LIMIT)


def test_topics_that_there_are_not() -> None:
    page = describe(an_image({"a": 1}), request("a", "nope", "no/pe", ""), LIMIT)
    assert [(topic.name, topic.error_code) for topic in page.topics] == [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a", 0),
        ("no/pe", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert page.topics[3].topic_id == UUID(int=0)


def test_what_the_asker_cannot_reach_is_offline_to_them() -> None:
    image = an_image({"a": 1})
    (topic,) = describe(image, request(), LIMIT, reachable=lambda broker_id: broker_id == 2).topics
    (part,) = topic.partitions
    assert (part.leader_id, part.offline_replicas) == (-1, (1, 3))
    # Never null: an empty list says that there are none, null that nobody knows (rule 125).
    assert (part.eligible_leader_replicas, part.last_known_elr) == ((), ())


def test_a_node_answers_a_wrong_cursor_and_keeps_the_connection() -> None:
    cluster = Cluster(config={"max.request.partition.size.limit": "3"})
    cluster.create_topic("a", partitions=5)
    answer = cluster.ask(request("a", "b", cursor=("c", 0)), 0)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]
    answer = cluster.ask(request("a"), 0)
    assert (shown(answer), following(answer)) == ([("a", 0), ("a", 1), ("a", 2)], ("a", 3))
    assert all(part.leader_id > 0 and part.offline_replicas == () for part in answer.topics[0].partitions)
    assert cluster.seen(MalformedRequest) == []

"""Kind `describe`: the pages of DescribeTopicPartitions.

Owns a cluster of three brokers in which every partition has one replica in sync, one in the ELR and one in
LastKnownElr, as the scenarios assume.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tanist.broker.api.describe_topic_partitions import describe as describe_page
from tanist.controller.image.image import ELR_VERSION, METADATA_VERSION, MetadataImage
from tanist.lab.scenarios.controlled import LATEST
from tanist.lab.scenarios.fields import Fields, NotUnderstood
from tanist.lab.scenarios.outcome import Difference, check, error_name, same, value_text
from tanist.lab.scenarios.partitions import level_of
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.ids import ZERO_UUID
from tanist.wire.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tanist.wire.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponseTopic
from tanist.wire.metadata import FeatureLevelRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord

LEADER, ELIGIBLE, LAST_KNOWN = 0, 1, 2
LIMIT = 2000
"""The default of `max.request.partition.size.limit` and of the request's own limit."""


def describe(item: Fields) -> Sequence[Difference]:
    image = _image(item.inner("topics").plain())
    hidden = frozenset(item.get("unauthorized") or ())
    asked = item.inner("request")
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in asked.get("topics") or ()),
        response_partition_limit=_limit(asked),
        cursor=_cursor(asked.get("cursor")),
    )
    expect = item.inner("expect")
    try:
        page = describe_page(image, request, _limit(item), may_describe=lambda name: name not in hidden)
    except WireError:
        # The message has no field for it: the connection's answer is the error.
        same("the page", "INVALID_REQUEST", error_name(expect.get("error")))
        return ()
    same("the page", "NONE", error_name(expect.get("error")))
    if "topics" in expect:
        wanted = expect.each("topics")
        same("the topics", [topic.name for topic in page.topics], [topic["name"] for topic in wanted])
        for topic, each in zip(page.topics, wanted, strict=True):
            _check_topic(topic, each)
    if "next_cursor" in expect:
        cursor = page.next_cursor
        seen = None if cursor is None else (cursor.topic_name, cursor.partition_index)
        same("the next cursor", seen, _name_and_partition(expect["next_cursor"]))
    return ()


def _limit(fields: Fields) -> int:
    """The limit of the request or of the broker, under any of its names."""
    names = [name for name in fields if str(name).endswith("limit")]
    return fields.number(names[0]) if names else LIMIT


def _image(topics: dict[Any, Any]) -> MetadataImage:
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level_of(LATEST)))
    image.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
    replicas = (LEADER, ELIGIBLE, LAST_KNOWN)
    for broker_id in replicas:
        image.replay(
            RegisterBrokerRecord(
                broker_id=broker_id, incarnation_id=UUID(int=broker_id + 1), broker_epoch=1, fenced=False
            )
        )
    for number, (name, partitions) in enumerate(topics.items(), start=1):
        topic_id = UUID(int=1000 + number)
        image.replay(TopicRecord(name=str(name), topic_id=topic_id))
        for partition in range(partitions):
            image.replay(
                PartitionRecord(
                    partition_id=partition,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=(LEADER,),
                    leader=LEADER,
                    leader_epoch=0,
                    partition_epoch=0,
                    eligible_leader_replicas=(ELIGIBLE,),
                    last_known_elr=(LAST_KNOWN,),
                )
            )
    return image


def _cursor(value: object) -> Cursor | None:
    pair = _name_and_partition(value)
    return None if pair is None else Cursor(topic_name=pair[0], partition_index=pair[1])


def _name_and_partition(value: object) -> tuple[str, int] | None:
    """A cursor: [topic, partition], or the same with names."""
    if value is None:
        return None
    pair = list(value.values()) if isinstance(value, dict) else value
    match pair:
        case [str(topic), int(partition)]:
            return topic, partition
    raise NotUnderstood(f"{value_text(value)} is no cursor")


def _check_topic(topic: DescribeTopicPartitionsResponseTopic, wanted: Fields) -> None:
    seen: dict[str, object] = {
        "name": topic.name,
        "error": ErrorCode.name_of(topic.error_code),
        "topic_id_zero": topic.topic_id == ZERO_UUID,
        "internal": topic.is_internal,
        "partitions": [partition.partition_index for partition in topic.partitions],
    }
    for partition in topic.partitions:
        # They are all equal, so one expectation covers all of them.
        seen |= {
            "elr": partition.eligible_leader_replicas,
            "last_known_elr": partition.last_known_elr,
            "isr": partition.isr_nodes,
            "replicas": partition.replica_nodes,
            "leader": partition.leader_id,
            "offline": partition.offline_replicas,
        }
    check(wanted, seen)

"""DescribeTopicPartitions (key 75), version 0: pages of topics, with ELR and LastKnownElr (KIP-966; rules 121-125)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tanist.broker.api.authorized_operations import TOPIC_OPERATIONS
from tanist.broker.api.metadata import replica_offline
from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.topic_names import name_error
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.internal_topics import INTERNAL_TOPICS
from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from tanist.wire.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from tanist.controller.image.image import MetadataImage


@dataclass(frozen=True, slots=True)
class DescribeTopicPartitions:
    """The handler of DescribeTopicPartitions."""

    context: NodeContext
    metadata: MetadataView

    def handle(self, request: DescribeTopicPartitionsRequest, call: Call) -> None:
        """Describe topics in the order of their names, from the cursor on, up to the limit."""
        image = self.metadata.image
        limit = self.context.config.max_request_partition_size_limit
        try:
            row = rows.DESCRIBE_TOPIC_PARTITIONS_NAMED if request.topics else rows.DESCRIBE_TOPIC_PARTITIONS_ALL
            response = describe(
                image,
                request,
                limit,
                may_describe=partial(call.may, row),
                operations=partial(call.operations, rows.DESCRIBE_TOPIC_PARTITIONS_BITS),
                reachable=_reachable_by(image, call.listener),
            )
        except InvalidCursor:
            # The message has no field for a general error: each topic that was asked for gets it, as with Kafka.
            response = DescribeTopicPartitionsResponse(
                topics=tuple(
                    DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
                    for topic in request.topics
                )
            )
        call.reply(response)


def build(components: NodeComponents) -> Handler:
    return DescribeTopicPartitions(components.context, components.metadata).handle


class InvalidCursor(WireError):
    """The cursor does not belong to the request."""


def _reachable_by(image: MetadataImage, listener: str) -> Callable[[int], bool]:
    """Which brokers clients of this listener can reach: unfenced, and with a listener of that name."""
    reachable = {
        broker.id
        for broker in image.brokers.values()
        if not broker.fenced and any(endpoint.name == listener for endpoint in broker.endpoints)
    }
    return reachable.__contains__


def _any_broker(_broker_id: int) -> bool:
    return True


def _everything(_name: str) -> bool:
    """Without an authorizer: who can connect may describe."""
    return True


def _all_operations(_name: str) -> int:
    return TOPIC_OPERATIONS


def describe(
    image: MetadataImage,
    request: DescribeTopicPartitionsRequest,
    limit: int,
    *,
    may_describe: Callable[[str], bool] = _everything,
    operations: Callable[[str], int] = _all_operations,
    reachable: Callable[[int], bool] = _any_broker,
) -> DescribeTopicPartitionsResponse:
    """One page. `InvalidCursor` for a cursor that makes no sense.

    A leader that the client cannot reach is none to it (rule 125), and a replica there is offline. Topics that may
    not be described come after the page, without their ids, if they were asked for by name.
    """
    names = sorted({topic.name for topic in request.topics})
    listing_all = not names
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        raise InvalidCursor(f"cursor {cursor.topic_name}-{cursor.partition_index} is not within the request")
    if listing_all:
        names = sorted(image.topic_ids)
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    hidden = [name for name in names if not may_describe(name)]
    if hidden:
        names = sorted(set(names).difference(hidden))
    budget = max(1, min(request.response_partition_limit, limit))
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
    for name in names:
        if budget == 0:
            next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topic(name)
        if topic is None:
            if not listing_all:
                invalid = name_error(name) is not None
                error = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                topics.append(
                    DescribeTopicPartitionsResponseTopic(
                        error_code=error, name=name, topic_authorized_operations=operations(name)
                    )
                )
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        wanted = [index for index in sorted(topic.partitions) if index >= first]
        page, rest = wanted[:budget], wanted[budget:]
        budget -= len(page)
        partitions: list[DescribeTopicPartitionsResponsePartition] = []
        for index in page:
            state = topic.partitions[index]
            leader = image.brokers.get(state.leader)
            alive = leader is not None and not leader.fenced
            partitions.append(
                DescribeTopicPartitionsResponsePartition(
                    partition_index=index,
                    leader_id=state.leader if alive and reachable(state.leader) else -1,
                    leader_epoch=state.leader_epoch,
                    replica_nodes=state.replicas,
                    isr_nodes=state.isr,
                    eligible_leader_replicas=state.elr,
                    last_known_elr=state.last_known_elr,
                    offline_replicas=tuple(
                        b
                        for b in state.replicas
                        if not reachable(b) or replica_offline(image, topic.topic_id, index, b)
                    ),
                    last_unclean_epoch=state.last_unclean_epoch,
                )
            )
        topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=tuple(partitions),
                topic_authorized_operations=operations(name),
            )
        )
        if rest:
            next_cursor = Cursor(topic_name=name, partition_index=rest[0])
            break
    if not listing_all:
        topics.extend(
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
            for name in hidden
        )
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=next_cursor)

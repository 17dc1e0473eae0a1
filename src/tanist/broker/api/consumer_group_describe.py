"""ConsumerGroupDescribe (key 69), versions 0-1: a consumer group's epochs and members, what they have and will have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from tanist.broker.api.authorized_operations import NOT_ASKED
from tanist.broker.components import NodeComponents
from tanist.broker.groups.describing import Undescribed, find_group, reply_when_committed, topics_refusal
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.features import GROUP_VERSION
from tanist.coordinator.consumer.group import ConsumerGroup
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tanist.wire.messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribe:
    """The handler of ConsumerGroupDescribe."""

    metadata: MetadataView
    groups: Groups

    def handle(self, request: ConsumerGroupDescribeRequest, call: Call) -> None:
        """Describe each group that is asked for. There are none before group.version 1."""
        if self.metadata.image.features.get(GROUP_VERSION, 0) < 1:
            unsupported = ErrorCode.UNSUPPORTED_VERSION
            groups = tuple(DescribedGroup(group_id=each, error_code=unsupported) for each in request.group_ids)
        else:
            asked = request.include_authorized_operations
            groups = tuple(self._describe(each, asked, call) for each in request.group_ids)
        reply_when_committed(self.groups, call, groups, lambda found: ConsumerGroupDescribeResponse(groups=found))

    def _describe(self, group_id: str, asked: bool, call: Call) -> DescribedGroup:
        group = find_group(self.groups, call, rows.CONSUMER_GROUP_DESCRIBE_GROUP, group_id, ConsumerGroup)
        if isinstance(group, Undescribed):
            return DescribedGroup(group_id=group_id, error_code=group.error, error_message=group.message)
        members = tuple(_member(group, member_id) for member_id in group.members)
        topics = {part.topic_name for member in members for part in _parts(member)}
        refusal = topics_refusal(call, rows.CONSUMER_GROUP_DESCRIBE_TOPIC, topics)
        if refusal is not None:
            return DescribedGroup(group_id=group_id, error_code=refusal.error, error_message=refusal.message)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=group.assignor(),
            members=members,
            authorized_operations=(
                call.operations(rows.CONSUMER_GROUP_DESCRIBE_BITS, group_id) if asked else NOT_ASKED
            ),
        )


def build(components: NodeComponents) -> Handler:
    return ConsumerGroupDescribe(components.metadata, components.groups).handle


def _parts(member: Member) -> tuple[TopicPartitions, ...]:
    """What it has and will have."""
    return (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions)


def _member(group: ConsumerGroup, member_id: str) -> Member:
    subscription, current = group.members[member_id], group.current(member_id)
    return Member(
        member_id=member_id,
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        member_epoch=current.epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=subscription.topic_names,
        subscribed_topic_regex=subscription.regex or "",
        assignment=_assignment(group, current.assigned),
        target_assignment=_assignment(group, group.target(member_id)),
        member_type=_CONSUMER_MEMBER if subscription.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(group: ConsumerGroup, assigned: Mapping[UUID, Iterable[int]]) -> Assignment:
    parts: list[TopicPartitions] = []
    for topic_id, indexes in assigned.items():
        name = group.topics.name_of(topic_id)
        if name is not None:
            parts.append(TopicPartitions(topic_id=topic_id, topic_name=name, partitions=tuple(sorted(indexes))))
    return Assignment(topic_partitions=tuple(sorted(parts, key=lambda part: part.topic_name)))

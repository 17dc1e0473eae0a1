"""ShareGroupDescribe (key 77), version 1: a share group's epochs and members, and what they have."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.api.authorized_operations import NOT_ASKED
from tanist.broker.components import NodeComponents
from tanist.broker.groups.describing import Undescribed, find_group, reply_when_committed, topics_refusal
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.features import SHARE_VERSION
from tanist.coordinator.share.assignor import SIMPLE
from tanist.coordinator.share.group import ShareGroup
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.share_group_describe_request import ShareGroupDescribeRequest
from tanist.wire.messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)


@dataclass(frozen=True, slots=True)
class ShareGroupDescribe:
    """The handler of ShareGroupDescribe."""

    metadata: MetadataView
    groups: Groups

    def handle(self, request: ShareGroupDescribeRequest, call: Call) -> None:
        """Describe each group that is asked for. There are none before share.version 1."""
        if self.metadata.image.features.get(SHARE_VERSION, 0) < 1:
            unsupported = ErrorCode.UNSUPPORTED_VERSION
            groups = tuple(DescribedGroup(group_id=each, error_code=unsupported) for each in request.group_ids)
        else:
            asked = request.include_authorized_operations
            groups = tuple(self._describe(each, asked, call) for each in request.group_ids)
        reply_when_committed(self.groups, call, groups, lambda found: ShareGroupDescribeResponse(groups=found))

    def _describe(self, group_id: str, asked: bool, call: Call) -> DescribedGroup:
        group = find_group(self.groups, call, rows.SHARE_GROUP_DESCRIBE_GROUP, group_id, ShareGroup)
        if isinstance(group, Undescribed):
            return DescribedGroup(group_id=group_id, error_code=group.error, error_message=group.message)
        members = tuple(_member(group, member_id) for member_id in group.members)
        topics = {part.topic_name for member in members for part in member.assignment.topic_partitions}
        refusal = topics_refusal(call, rows.SHARE_GROUP_DESCRIBE_TOPIC, topics)
        if refusal is not None:
            return DescribedGroup(group_id=group_id, error_code=refusal.error, error_message=refusal.message)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=SIMPLE,
            members=members,
            authorized_operations=call.operations(rows.SHARE_GROUP_DESCRIBE_BITS, group_id) if asked else NOT_ASKED,
        )


def build(components: NodeComponents) -> Handler:
    return ShareGroupDescribe(components.metadata, components.groups).handle


def _member(group: ShareGroup, member_id: str) -> Member:
    member, current = group.members[member_id], group.current(member_id)
    parts = [
        TopicPartitions(topic_id=topic_id, topic_name=name, partitions=tuple(sorted(indexes)))
        for topic_id, indexes in current.assigned.items()
        if (name := group.topics.name_of(topic_id)) is not None
    ]
    return Member(
        member_id=member_id,
        rack_id=member.rack_id,
        member_epoch=current.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topic_names,
        assignment=Assignment(topic_partitions=tuple(sorted(parts, key=lambda part: part.topic_name))),
    )

"""StreamsGroupDescribe (key 89), versions 0-1: a Streams group's epochs, topology and members, and their tasks.

Version 1 may ask for a description of the topology (KIP-1331), which Apache Kafka's plugins keep. There are none here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tanist.broker.api.authorized_operations import NOT_ASKED
from tanist.broker.components import NodeComponents
from tanist.broker.groups.describing import Undescribed, find_group, reply_when_committed, topics_refusal
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.features import STREAMS_VERSION
from tanist.coordinator.streams.assignor import STICKY
from tanist.coordinator.streams.group import StreamsGroup
from tanist.coordinator.streams.tasks import Role, RoleIn, ids_of
from tanist.coordinator.streams.topology import named_topics
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.messages import streams_group_heartbeat_request as sent
from tanist.wire.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from tanist.wire.messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)

_NOT_REQUESTED: Final = 0
_NOT_STORED: Final = 1


@dataclass(frozen=True, slots=True)
class StreamsGroupDescribe:
    """The handler of StreamsGroupDescribe."""

    metadata: MetadataView
    groups: Groups

    def handle(self, request: StreamsGroupDescribeRequest, call: Call) -> None:
        """Describe each group that is asked for. There are none before streams.version 1."""
        if self.metadata.image.features.get(STREAMS_VERSION, 0) < 1:
            unsupported = ErrorCode.UNSUPPORTED_VERSION
            groups = tuple(DescribedGroup(group_id=each, error_code=unsupported) for each in request.group_ids)
        else:
            groups = tuple(self._describe(each, request, call) for each in request.group_ids)
        reply_when_committed(self.groups, call, groups, lambda found: StreamsGroupDescribeResponse(groups=found))

    def _describe(self, group_id: str, request: StreamsGroupDescribeRequest, call: Call) -> DescribedGroup:
        group = find_group(self.groups, call, rows.STREAMS_GROUP_DESCRIBE_GROUP, group_id, StreamsGroup)
        if isinstance(group, Undescribed):
            return DescribedGroup(group_id=group_id, error_code=group.error, error_message=group.message)
        names = set() if group.topology is None else set(named_topics(group.topology.subtopologies))
        refusal = topics_refusal(call, rows.STREAMS_GROUP_DESCRIBE_TOPIC, names)
        if refusal is not None:
            return DescribedGroup(group_id=group_id, error_code=refusal.error, error_message=refusal.message)
        asked = request.include_authorized_operations
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            topology=_topology(group),
            members=tuple(_member(group, member_id) for member_id in group.members),
            authorized_operations=call.operations(rows.STREAMS_GROUP_DESCRIBE_BITS, group_id) if asked else NOT_ASKED,
            topology_description_status=_NOT_STORED if request.include_topology_description else _NOT_REQUESTED,
            assignor_name=STICKY,
        )


def build(components: NodeComponents) -> Handler:
    return StreamsGroupDescribe(components.metadata, components.groups).handle


def _topology(group: StreamsGroup) -> Topology | None:
    """The topology, with the numbers of partitions where they are known."""
    if group.topology is None:
        return None
    configured = group.configured()
    counts = configured.partitions if configured.is_ready else {}
    parts = sorted(group.topology.subtopologies, key=lambda part: part.subtopology_id)
    return Topology(
        epoch=group.topology.epoch,
        subtopologies=tuple(
            Subtopology(
                subtopology_id=part.subtopology_id,
                source_topics=tuple(sorted(part.source_topics)),
                repartition_sink_topics=tuple(sorted(part.repartition_sink_topics)),
                state_changelog_topics=_infos(part.state_changelog_topics, counts),
                repartition_source_topics=_infos(part.repartition_source_topics, counts),
            )
            for part in parts
        ),
    )


def _infos(topics: Iterable[sent.TopicInfo], counts: Mapping[str, int]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(
            name=each.name,
            partitions=counts.get(each.name, each.partitions),
            replication_factor=each.replication_factor,
            topic_configs=tuple(KeyValue(key=pair.key, value=pair.value) for pair in each.topic_configs),
        )
        for each in sorted(topics, key=lambda each: each.name)
    )


def _member(group: StreamsGroup, member_id: str) -> Member:
    member, current = group.members[member_id], group.current(member_id)
    endpoint, offsets = member.user_endpoint, group.offsets_of(member_id)
    return Member(
        member_id=member_id,
        member_epoch=current.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=tuple(KeyValue(key=each.key, value=each.value) for each in member.client_tags),
        task_offsets=_offsets(offsets.reached),
        task_end_offsets=_offsets(offsets.ends),
        assignment=_assignment(current.assigned),
        target_assignment=_assignment(group.targets.get(member_id, {})),
    )


def _offsets(offsets: Mapping[tuple[str, int], int]) -> tuple[TaskOffset, ...]:
    return tuple(
        TaskOffset(subtopology_id=part, partition=index, offset=offset)
        for (part, index), offset in sorted(offsets.items())
    )


def _assignment(tasks: Mapping[RoleIn, Iterable[int]]) -> Assignment:
    return Assignment(
        active_tasks=ids_of(tasks, Role.ACTIVE, TaskIds),
        standby_tasks=ids_of(tasks, Role.STANDBY, TaskIds),
        warmup_tasks=ids_of(tasks, Role.WARMUP, TaskIds),
    )

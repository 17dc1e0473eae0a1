"""Which process has which partitions, for interactive queries: a member's endpoint, and the partitions it reads."""

from __future__ import annotations

from collections.abc import Mapping

from tanist.coordinator.streams.tasks import CurrentTasks, Role
from tanist.coordinator.streams.topology import ConfiguredSubtopology, Count
from tanist.wire.messages.streams_group_heartbeat_response import Endpoint, EndpointToPartitions, TopicPartition
from tanist.wire.streams_group_records import StreamsMemberValue


def endpoint_partitions(
    members: Mapping[str, StreamsMemberValue],
    currents: Mapping[str, CurrentTasks],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    count: Count,
) -> tuple[EndpointToPartitions, ...]:
    """An entry for each member that has an endpoint."""
    entries: list[EndpointToPartitions] = []
    for member_id, member in members.items():
        current = currents.get(member_id)
        if member.user_endpoint is None or current is None:
            continue
        entries.append(
            EndpointToPartitions(
                user_endpoint=Endpoint(host=member.user_endpoint.host, port=member.user_endpoint.port),
                active_partitions=_partitions(current, (Role.ACTIVE,), subtopologies, count),
                standby_partitions=_partitions(current, (Role.STANDBY, Role.WARMUP), subtopologies, count),
            )
        )
    return tuple(entries)


def _partitions(
    current: CurrentTasks,
    roles: tuple[Role, ...],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    count: Count,
) -> tuple[TopicPartition, ...]:
    """A task reads the partition of its number of each source that has so many."""
    read: dict[str, set[int]] = {}
    for key, tasks in current.assigned.items():
        part = subtopologies.get(key.subtopology_id)
        if key.role in roles and part is not None:
            for topic in part.sources:
                read.setdefault(topic, set()).update(index for index in tasks if index < (count(topic) or 0))
    return tuple(
        TopicPartition(topic=topic, partitions=tuple(sorted(indexes))) for topic, indexes in sorted(read.items())
    )

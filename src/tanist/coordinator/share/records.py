"""A share group's members and share partitions, and their records. Immutable: a change makes a new value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from tanist.coordinator.consumer.member import Subscription
from tanist.wire.share_group_records import (
    NamedPartitions,
    NamedTopic,
    ShareGroupKey,
    ShareMemberCurrentKey,
    ShareMemberKey,
    ShareMemberTargetKey,
    ShareMemberValue,
    SharePartitionsKey,
    SharePartitionsValue,
    ShareTargetKey,
)

UNINITIALIZED: Final = -1
"""The start offset of a share partition that is to begin where its group's configuration says."""
SHARE_KEYS = (
    ShareGroupKey,
    ShareMemberKey,
    ShareTargetKey,
    ShareMemberTargetKey,
    ShareMemberCurrentKey,
    SharePartitionsKey,
)


class Named(NamedTuple):
    """Partitions of a topic, with its name when that was written."""

    name: str
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Partitions:
    """The share partitions whose state is asked for, is there, or is being deleted, by topic id."""

    initializing: Mapping[UUID, Named] = field(default_factory=dict)
    initialized: Mapping[UUID, Named] = field(default_factory=dict)
    deleting: Mapping[UUID, str] = field(default_factory=dict)

    def indexes(self, topic_id: UUID, *, initialized: bool) -> frozenset[int]:
        found = (self.initialized if initialized else self.initializing).get(topic_id)
        return frozenset() if found is None else found.partitions

    def with_initializing(self, more: Mapping[UUID, Named]) -> Partitions:
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in more}
        return Partitions(_sum(self.initializing, more), self.initialized, deleting)

    def with_initialized(self, more: Mapping[UUID, Named]) -> Partitions:
        return Partitions(_difference(self.initializing, more), _sum(self.initialized, more), self.deleting)

    def without_initializing(self, less: Mapping[UUID, Named]) -> Partitions:
        return Partitions(_difference(self.initializing, less), self.initialized, self.deleting)

    def without_initialized(self, less: Mapping[UUID, Named]) -> Partitions:
        return Partitions(self.initializing, _difference(self.initialized, less), self.deleting)

    def with_deleting(self, topics: Mapping[UUID, str]) -> Partitions:
        return Partitions(
            {topic_id: named for topic_id, named in self.initializing.items() if topic_id not in topics},
            {topic_id: named for topic_id, named in self.initialized.items() if topic_id not in topics},
            {**self.deleting, **topics},
        )

    def without(self, topic_ids: Iterable[UUID]) -> Partitions:
        gone = frozenset(topic_ids)
        return Partitions(
            {topic_id: named for topic_id, named in self.initializing.items() if topic_id not in gone},
            {topic_id: named for topic_id, named in self.initialized.items() if topic_id not in gone},
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in gone},
        )

    def topic_ids(self) -> frozenset[UUID]:
        return frozenset((*self.initializing, *self.initialized, *self.deleting))


def _sum(some: Mapping[UUID, Named], more: Mapping[UUID, Named]) -> dict[UUID, Named]:
    result = dict(some)
    for topic_id, named in more.items():
        before = result.get(topic_id, named)
        result[topic_id] = Named(named.name, before.partitions | named.partitions)
    return result


def _difference(some: Mapping[UUID, Named], less: Mapping[UUID, Named]) -> dict[UUID, Named]:
    result = {}
    for topic_id, named in some.items():
        left = named.partitions - (less[topic_id].partitions if topic_id in less else frozenset())
        if left:
            result[topic_id] = Named(named.name, left)
    return result


def partitions_record(partitions: Partitions) -> SharePartitionsValue:
    def listed(named: Mapping[UUID, Named]) -> tuple[NamedPartitions, ...]:
        return tuple(
            NamedPartitions(topic_id=topic_id, topic_name=each.name, partitions=tuple(sorted(each.partitions)))
            for topic_id, each in sorted(named.items())
        )

    return SharePartitionsValue(
        initializing_topics=listed(partitions.initializing),
        initialized_topics=listed(partitions.initialized),
        deleting_topics=tuple(
            NamedTopic(topic_id=topic_id, topic_name=name) for topic_id, name in sorted(partitions.deleting.items())
        ),
    )


def partitions_of(value: SharePartitionsValue) -> Partitions:
    def named(listed: Iterable[NamedPartitions]) -> dict[UUID, Named]:
        return {each.topic_id: Named(each.topic_name, frozenset(each.partitions)) for each in listed}

    return Partitions(
        named(value.initializing_topics),
        named(value.initialized_topics),
        {each.topic_id: each.topic_name for each in value.deleting_topics},
    )


def member_record(member: Subscription) -> ShareMemberValue:
    return ShareMemberValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topic_names,
    )


def member_of(value: ShareMemberValue) -> Subscription:
    return Subscription(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=tuple(sorted(value.subscribed_topic_names)),
    )

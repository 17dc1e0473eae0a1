"""What a batch of metadata records changed, for those who act on changes.

Owns `ImageDelta`, filled in by `MetadataImage.replay(record, delta)`: per thing that changed, what it was *before the
first change of the batch* (what it is now, the image knows). Its size is that of the batch, never that of the cluster.
Must never be kept across batches: take a fresh one each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from tanist.controller.partition_state import PartitionState

if TYPE_CHECKING:
    from tanist.controller.image import BrokerRegistration, MetadataImage


class LocalChange(NamedTuple):
    """A changed partition that has, or had, a replica on one broker."""

    topic_id: UUID
    topic: str
    partition: int
    before: PartitionState | None
    """None: the partition is new."""
    after: PartitionState | None
    """None: its topic is deleted."""


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    name: str
    partitions: dict[int, PartitionState]
    """As they were before the batch."""


@dataclass(slots=True)
class ImageDelta:
    """Changes of one or more replayed records, with the state before them."""

    created_topics: dict[UUID, str] = field(default_factory=dict)
    deleted_topics: dict[UUID, DeletedTopic] = field(default_factory=dict)
    partitions: dict[UUID, dict[int, PartitionState | None]] = field(default_factory=dict)
    """Changed or new (None) partitions of topics that exist, as they were."""
    brokers: dict[int, BrokerRegistration | None] = field(default_factory=dict)
    """Brokers that registered (None: unknown before), changed or were unregistered, as they were."""
    controllers: set[int] = field(default_factory=set)
    configs: set[tuple[int, str]] = field(default_factory=set)
    """(resource type, name) of each resource with a changed configuration; name "" is the cluster default."""
    features: set[str] = field(default_factory=set)
    producer_ids: bool = False

    def __bool__(self) -> bool:
        return bool(
            self.created_topics
            or self.deleted_topics
            or self.partitions
            or self.brokers
            or self.controllers
            or self.configs
            or self.features
            or self.producer_ids
        )

    @property
    def grows_topics(self) -> bool:
        """Whether there are new partitions."""
        return any(before is None for partitions in self.partitions.values() for before in partitions.values())

    def partition_changed(self, topic_id: UUID, partition: int, before: PartitionState | None) -> None:
        self.partitions.setdefault(topic_id, {}).setdefault(partition, before)

    def topic_deleted(self, topic_id: UUID, name: str, partitions: dict[int, PartitionState]) -> None:
        changed = self.partitions.pop(topic_id, {})
        if self.created_topics.pop(topic_id, None) is not None:
            return  # came and went within the batch: nobody has seen it
        # What a replica holder must drop is what it held before the batch, not what the last record said.
        before: dict[int, PartitionState] = {}
        for number, last in partitions.items():
            state = changed.get(number, last)
            if state is not None:
                before[number] = state
        self.deleted_topics[topic_id] = DeletedTopic(name, before)

    def broker_changed(self, broker_id: int, before: BrokerRegistration | None) -> None:
        self.brokers.setdefault(broker_id, before)

    def local_changes(self, image: MetadataImage, broker_id: int) -> Iterator[LocalChange]:
        """Changes a broker must act on: deletions first, so that a name can be used again at once."""
        for topic_id, deleted in self.deleted_topics.items():
            for number, before in deleted.partitions.items():
                if broker_id in before.replicas:
                    yield LocalChange(topic_id, deleted.name, number, before, None)
        for topic_id, partitions in self.partitions.items():
            topic = image.topics[topic_id]
            for number, state in partitions.items():
                after = topic.partitions[number]
                if broker_id in after.replicas or (state is not None and broker_id in state.replicas):
                    yield LocalChange(topic_id, topic.name, number, state, after)


def delta_between(before: MetadataImage, after: MetadataImage) -> ImageDelta:
    """What differs between two images: for a broker that was given a snapshot instead of records."""
    delta = ImageDelta()
    for topic_id, old in before.topics.items():
        if topic_id not in after.topics:
            delta.topic_deleted(topic_id, old.name, old.partitions)
    for topic_id, new in after.topics.items():
        known = before.topics.get(topic_id)
        if known is None:
            delta.created_topics[topic_id] = new.name
        for number, state in new.partitions.items():
            earlier = None if known is None else known.partitions.get(number)
            if earlier != state:
                delta.partition_changed(topic_id, number, earlier)
    for broker_id in before.brokers.keys() | after.brokers.keys():
        registration = before.brokers.get(broker_id)
        if registration != after.brokers.get(broker_id):
            delta.broker_changed(broker_id, registration)
    delta.controllers.update(
        number
        for number in before.controllers.keys() | after.controllers.keys()
        if before.controllers.get(number) != after.controllers.get(number)
    )
    delta.configs.update(
        resource
        for resource in before.configs.keys() | after.configs.keys()
        if before.configs.get(resource) != after.configs.get(resource)
    )
    delta.features.update(
        name
        for name in before.features.keys() | after.features.keys()
        if before.features.get(name) != after.features.get(name)
    )
    delta.producer_ids = before.next_producer_id != after.next_producer_id
    return delta

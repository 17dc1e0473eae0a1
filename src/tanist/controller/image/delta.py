"""The changes of a batch of metadata records.

Owns `ImageDelta`, filled in by `MetadataImage.replay(record, delta)`: for each changed object its state *before the
first change of the batch* (the image has the present state). Its size is that of the batch, not of the cluster. Must
not be kept across batches: use a new one each time. `differences` reads it beside the image.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from tanist.controller.image.acls import Acl
from tanist.controller.image.partition_state import PartitionState
from tanist.controller.image.registration import BrokerRegistration


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
    quotas: bool = False
    """Whether quotas of clients have changed."""
    acls: dict[UUID, Acl | None] = field(default_factory=dict)
    """Access control entries that were added (None) or removed, as they were."""

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
            or self.quotas
            or self.acls
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
            return  # created and deleted within the batch: never visible
        # A broker must drop the replicas that it held before the batch, not those of the last record.
        before: dict[int, PartitionState] = {}
        for number, last in partitions.items():
            state = changed.get(number, last)
            if state is not None:
                before[number] = state
        self.deleted_topics[topic_id] = DeletedTopic(name, before)

    def broker_changed(self, broker_id: int, before: BrokerRegistration | None) -> None:
        self.brokers.setdefault(broker_id, before)

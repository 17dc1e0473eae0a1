"""Differences between metadata images: those that concern one broker, and those between two images.

Owns the functions that need both a delta and the image: `delta` itself has only the state before. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.partition_state import PartitionState


class LocalChange(NamedTuple):
    """A changed partition that has, or had, a replica on one broker."""

    topic_id: UUID
    topic: str
    partition: int
    before: PartitionState | None
    """None: the partition is new."""
    after: PartitionState | None
    """None: its topic is deleted."""


def local_changes(delta: ImageDelta, image: MetadataImage, broker_id: int) -> Iterator[LocalChange]:
    """Changes on which a broker must act: deletions first, so that a name can be used again at once."""
    for topic_id, deleted in delta.deleted_topics.items():
        for number, before in deleted.partitions.items():
            if broker_id in before.replicas:
                yield LocalChange(topic_id, deleted.name, number, before, None)
    for topic_id, partitions in delta.partitions.items():
        topic = image.topics[topic_id]
        for number, state in partitions.items():
            after = topic.partitions[number]
            if broker_id in after.replicas or (state is not None and broker_id in state.replicas):
                yield LocalChange(topic_id, topic.name, number, state, after)


def delta_between(before: MetadataImage, after: MetadataImage) -> ImageDelta:
    """The difference between two images, for a broker that loaded a snapshot instead of records."""
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
    delta.acls.update(
        (acl_id, before.acls.get(acl_id))
        for acl_id in {**before.acls, **after.acls}
        if before.acls.get(acl_id) != after.acls.get(acl_id)
    )
    delta.quotas = before.quotas != after.quotas
    delta.producer_ids = before.next_producer_id != after.next_producer_id
    return delta

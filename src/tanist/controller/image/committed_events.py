"""The events of committed metadata records (`events.metadata`): what each record changes, and what was there before.

A function of the record and of the image that it is about to change. Records of a metadata transaction (KIP-868), which
only Apache Kafka's controllers write, have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tanist.controller.image.image import MetadataImage
from tanist.controller.image.partition_state import RECOVERING, PartitionState, merge
from tanist.events.event import Event
from tanist.events.metadata import (
    BrokerFenced,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    BrokerUnregistered,
    ConfigChanged,
    FeatureLevelChanged,
    LeaderElected,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicDeleted,
)
from tanist.wire.metadata import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from tanist.wire.schema import MetadataRecord


def committed_events(record: MetadataRecord, before: MetadataImage) -> list[Event]:
    """What the record means, to be emitted once it is applied to the image."""
    events_of = None if before.in_transaction else _EVENTS.get(type(record))
    return [] if events_of is None else events_of(record, before)


def partition_changed(
    partition: str, before: PartitionState, after: PartitionState, *, min_isr: int, elr_enabled: bool
) -> PartitionChanged:
    return PartitionChanged(
        partition=partition,
        partition_epoch=after.partition_epoch,
        leader_before=before.leader,
        leader=after.leader,
        leader_epoch_before=before.leader_epoch,
        leader_epoch=after.leader_epoch,
        isr_before=before.isr,
        isr=after.isr,
        elr_before=before.elr,
        elr=after.elr,
        last_known_elr_before=before.last_known_elr,
        last_known_elr=after.last_known_elr,
        replicas_before=before.replicas,
        replicas=after.replicas,
        recovering_before=before.recovering,
        recovering=after.recovering,
        reassigning_before=before.reassigning,
        reassigning=after.reassigning,
        min_isr=min_isr,
        elr_enabled=elr_enabled,
    )


def _changed_partition(record: PartitionChangeRecord, image: MetadataImage) -> list[Event]:
    before = image.partition(record.topic_id, record.partition_id)
    if before is None:
        return []
    after = merge(before, record)
    name = f"{image.topics[record.topic_id].name}-{record.partition_id}"
    min_isr = min(image.min_insync_replicas(image.topics[record.topic_id].name), len(after.replicas))
    events: list[Event] = [
        partition_changed(name, before, after, min_isr=min_isr, elr_enabled=image.elr_enabled),
    ]
    if after.has_leader and after.leader_epoch > before.leader_epoch:
        events.append(
            LeaderElected(
                partition=name,
                leader=after.leader,
                leader_epoch=after.leader_epoch,
                leader_before=before.leader,
                from_elr=after.leader in before.elr,
                unclean=record.leader_recovery_state == RECOVERING,
            )
        )
    return events


def _created_partition(record: PartitionRecord, image: MetadataImage) -> list[Event]:
    topic = image.topics.get(record.topic_id)
    if topic is None:
        return []
    replicas, isr = tuple(record.replicas), tuple(record.isr)
    return [PartitionCreated(f"{topic.name}-{record.partition_id}", replicas, isr, record.leader, record.leader_epoch)]


def _removed_topic(record: RemoveTopicRecord, image: MetadataImage) -> list[Event]:
    topic = image.topics.get(record.topic_id)
    return [] if topic is None else [TopicDeleted(topic.name, str(record.topic_id))]


def _registered(record: RegisterBrokerRecord, image: MetadataImage) -> list[Event]:
    return [BrokerRegistered(record.broker_id, record.broker_epoch, str(record.incarnation_id), record.fenced)]


def _changed_registration(record: BrokerRegistrationChangeRecord, image: MetadataImage) -> list[Event]:
    events: list[Event] = []
    if record.fenced:
        kind = BrokerFenced if record.fenced > 0 else BrokerUnfenced
        events.append(kind(record.broker_id, record.broker_epoch))
    if record.in_controlled_shutdown > 0:
        events.append(BrokerShuttingDown(record.broker_id, record.broker_epoch))
    return events


def _feature(record: FeatureLevelRecord, image: MetadataImage) -> list[Event]:
    return [FeatureLevelChanged(record.name, image.features.get(record.name, 0), record.feature_level)]


def _config(record: ConfigRecord, image: MetadataImage) -> list[Event]:
    return [ConfigChanged(record.resource_type, record.resource_name, record.name, record.value is None)]


_EVENTS: dict[type[MetadataRecord], Callable[[Any, MetadataImage], list[Event]]] = {
    BrokerRegistrationChangeRecord: _changed_registration,
    ConfigRecord: _config,
    FeatureLevelRecord: _feature,
    FenceBrokerRecord: lambda record, _: [BrokerFenced(record.id, record.epoch)],
    PartitionChangeRecord: _changed_partition,
    PartitionRecord: _created_partition,
    RegisterBrokerRecord: _registered,
    RemoveTopicRecord: _removed_topic,
    TopicRecord: lambda record, _: [TopicCreated(record.name, str(record.topic_id))],
    UnfenceBrokerRecord: lambda record, _: [BrokerUnfenced(record.id, record.epoch)],
    UnregisterBrokerRecord: lambda record, _: [BrokerUnregistered(record.broker_id, record.broker_epoch)],
}

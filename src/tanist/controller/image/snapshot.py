"""The records of a metadata snapshot, from an image and back.

Owns the order: the metadata version first, because it says how the rest is read; then features, brokers and
controllers, topics with their partitions, configurations, producer ids, access control lists. Replaying the records
gives an equal image.

DEVIATION from rule 60: an ELR left over from before the feature was switched off is part of the snapshot too, as long
as the record version can carry it. Otherwise a node that started from a snapshot would hold another image than one
that replayed the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from tanist.controller.image.image import BESIDE_PARTITIONS, METADATA_VERSION, ImageError, MetadataImage, PartitionState
from tanist.controller.image.partition_state import RECOVERED, RECOVERING, state_of, supports_elr
from tanist.controller.image.registration import BrokerRegistration, ControllerRegistration
from tanist.invariants import InvariantError
from tanist.wire.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    decode_record,
    encode_record,
    record_version,
)
from tanist.wire.schema import MetadataRecord

FIRST_WITH_CONTROLLERS = 15
"""3.7-IV0: controllers register from here on."""


def to_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """The records of a snapshot, one at a time. Not within a metadata transaction: half of it has no records."""
    if image.in_transaction:
        raise ImageError("no snapshot can be taken within a metadata transaction")
    return _records(image)


def from_records(records: Iterable[MetadataRecord], static_configs: Mapping[str, str] | None = None) -> MetadataImage:
    image = MetadataImage(static_configs)
    for record in records:
        image.replay(record)
    return image


def checked_values(image: MetadataImage, twin: MetadataImage | None = None) -> Iterator[bytes]:
    """The records as the log has them. `InvariantError`, in place of the last, unless reading them gives the image.

    What a snapshot lacks is lost with the log below it. `twin`: another image of the same offset, which is to be equal.
    Each partition is compared when its record is made: what is left to compare at the end is little.
    """
    version = image.metadata_version
    again = MetadataImage()
    partitions = 0
    for record in to_records(image):
        value = encode_record(record, record_version(type(record), version))
        read = decode_record(value)
        if isinstance(read, PartitionRecord):
            _compare("a snapshot", image.partition(read.topic_id, read.partition_id), state_of(read))
            partitions += 1
        else:
            again.replay(read)
            if twin is not None and isinstance(read, TopicRecord):
                _compare("the other image", image.topics[read.topic_id], twin.topics.get(read.topic_id))
        yield value
    _compare("a snapshot", sum(len(topic.partitions) for topic in image.topics.values()), partitions)
    for name in BESIDE_PARTITIONS:
        _compare("a snapshot", getattr(image, name), getattr(again, name))
        if twin is not None:
            _compare("the other image", getattr(image, name), getattr(twin, name))


def _compare(with_what: str, has: object, found: object) -> None:
    if has != found:
        raise InvariantError("an image is the replay of its log", compared_with=with_what, has=has, found=found)


def _records(image: MetadataImage) -> Iterator[MetadataRecord]:
    if METADATA_VERSION in image.features:
        yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.features[METADATA_VERSION])
    for name, level in sorted(image.features.items()):
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level)
    for _, broker in sorted(image.brokers.items()):
        yield _broker_record(broker)
    if image.metadata_version >= FIRST_WITH_CONTROLLERS:
        for _, controller in sorted(image.controllers.items()):
            yield _controller_record(controller)
    with_elr = supports_elr(image.metadata_version)
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for partition, state in sorted(topic.partitions.items()):
            yield _partition_record(topic.topic_id, partition, state, with_elr)
    for (resource_type, resource_name), values in image.configs.items():
        for name, value in sorted(values.items()):
            yield ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.scram.values()
    yield from image.tokens.values()
    for acl_id, acl in image.acls.items():
        yield acl.record(acl_id)
    yield from image.quotas.records()


def _broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=tuple(
            BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in broker.endpoints
        ),
        features=tuple(
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(broker.features.items())
        ),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.directories,
        cordoned_log_dirs=broker.cordoned_directories or None,
    )


def _controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=tuple(
            ControllerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in controller.endpoints
        ),
        features=tuple(
            ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(controller.features.items())
        ),
    )


def _partition_record(topic_id: UUID, partition: int, state: PartitionState, with_elr: bool) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=state.replicas,
        isr=state.isr,
        removing_replicas=state.removing,
        adding_replicas=state.adding,
        leader=state.leader,
        leader_recovery_state=RECOVERING if state.recovering else RECOVERED,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=state.directories,
        # Rule 73: a tagged field is written only when it is not at its default.
        eligible_leader_replicas=(state.elr or None) if with_elr else None,
        last_known_elr=(state.last_known_elr or None) if with_elr else None,
        last_unclean_epoch=state.last_unclean_epoch,
    )

"""Image -> records -> image, also through the bytes of a metadata log."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.controller.image.image import ELR_VERSION, METADATA_VERSION, ImageError, MetadataImage, PartitionState
from tanist.controller.image.partition_state import state_of
from tanist.controller.image.snapshot import from_records, to_records
from tanist.wire.metadata import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerEndpoint,
    EntityData,
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

brokers = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True).map(tuple)
names = st.text(st.sampled_from("abc.-_"), min_size=1, max_size=6)
ids = st.uuids().filter(lambda each: each.int > 2)


@st.composite
def partition_records(draw: st.DrawFn) -> PartitionRecord:
    replicas = draw(brokers)
    subset = st.lists(st.sampled_from(replicas), unique=True).map(tuple)
    leader_epoch = draw(st.integers(0, 9))
    return PartitionRecord(
        replicas=replicas,
        isr=draw(subset),
        removing_replicas=draw(subset),
        adding_replicas=draw(subset),
        leader=draw(st.sampled_from((-1, *replicas))),
        leader_recovery_state=draw(st.integers(0, 1)),
        leader_epoch=leader_epoch,
        partition_epoch=leader_epoch + draw(st.integers(0, 9)),
        directories=draw(st.lists(ids, min_size=len(replicas), max_size=len(replicas)).map(tuple)),
        eligible_leader_replicas=draw(subset),
        last_known_elr=draw(subset),
    )


@st.composite
def images(draw: st.DrawFn) -> MetadataImage:
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=30))
    for name in draw(st.sets(st.sampled_from((ELR_VERSION, "group.version")))):
        image.replay(FeatureLevelRecord(name=name, feature_level=1))
    for broker_id in draw(st.sets(st.integers(0, 9), max_size=4)):
        image.replay(
            RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=draw(ids),
                broker_epoch=draw(st.integers(0, 1 << 40)),
                end_points=(BrokerEndpoint(name="P", host="h", port=draw(st.integers(1, 65535)), security_protocol=0),),
                features=(BrokerFeature(name="f", min_supported_version=0, max_supported_version=3),),
                rack=draw(st.none() | names),
                fenced=draw(st.booleans()),
                in_controlled_shutdown=draw(st.booleans()),
                log_dirs=tuple(draw(st.lists(ids, max_size=3, unique=True))),
                cordoned_log_dirs=draw(st.none() | st.lists(ids, max_size=1).map(tuple)),
            )
        )
    for controller_id in draw(st.sets(st.integers(100, 103))):
        image.replay(
            RegisterControllerRecord(
                controller_id=controller_id,
                incarnation_id=draw(ids),
                end_points=(ControllerEndpoint(name="C", host="h", port=1, security_protocol=0),),
            )
        )
    for name in draw(st.sets(names, max_size=3)):
        topic_id = draw(ids.filter(lambda each: each not in image.topics))
        image.replay(TopicRecord(name=name, topic_id=topic_id))
        for number, record in enumerate(draw(st.lists(partition_records(), max_size=3))):
            record.topic_id, record.partition_id = topic_id, number
            image.replay(record)
        for key in draw(st.sets(names, max_size=2)):
            image.replay(ConfigRecord(resource_type=2, resource_name=name, name=key, value=draw(names)))
    if draw(st.booleans()):
        image.replay(ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=draw(st.integers(1, 1 << 50))))
        image.replay(AccessControlEntryRecord(id=draw(ids), resource_type=2, resource_name="t", principal="p"))
        image.replay(ClientQuotaRecord(entity=(EntityData(entity_type="user", entity_name=None),), key="k", value=2.5))
    return image


@settings(max_examples=60, deadline=None)
@given(images())
def test_a_snapshot_holds_the_image(image: MetadataImage) -> None:
    again = from_records(to_records(image))
    assert again == image
    for broker_id in range(10):
        assert sorted(again.partitions_in_isr(broker_id)) == sorted(image.partitions_in_isr(broker_id))
        assert sorted(again.partitions_in_elr(broker_id)) == sorted(image.partitions_in_elr(broker_id))


@settings(max_examples=60, deadline=None)
@given(images())
def test_a_snapshot_holds_the_image_as_bytes_too(image: MetadataImage) -> None:
    stored = [encode_record(each, record_version(type(each), image.metadata_version)) for each in to_records(image)]
    assert from_records(decode_record(value) for value in stored) == image


def test_the_metadata_version_comes_first() -> None:
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name="a.version", feature_level=1))
    image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=30))
    assert [record.name for record in to_records(image) if isinstance(record, FeatureLevelRecord)] == [
        METADATA_VERSION,
        "a.version",
    ]


def partition_of(metadata_version: int) -> PartitionRecord:
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=metadata_version))
    image.replay(TopicRecord(name="t", topic_id=UUID(int=5)))
    image.replay(
        PartitionRecord(
            partition_id=0,
            topic_id=UUID(int=5),
            replicas=(1, 2),
            isr=(),
            leader_epoch=3,
            partition_epoch=4,
            eligible_leader_replicas=(2,),
            last_known_elr=(),
        )
    )
    return next(record for record in to_records(image) if isinstance(record, PartitionRecord))


def test_rule_73_an_elr_is_written_when_there_is_one() -> None:
    record = partition_of(30)
    assert (record.eligible_leader_replicas, record.last_known_elr) == ((2,), None)


def test_deviation_60_a_remaining_elr_is_part_of_the_snapshot_unless_the_records_are_too_old() -> None:
    assert partition_of(23).eligible_leader_replicas == (2,)  # the feature is off here
    assert partition_of(22).eligible_leader_replicas is None


def test_no_snapshot_within_a_transaction() -> None:
    image = MetadataImage()
    image.replay(BeginTransactionRecord())
    with pytest.raises(ImageError):
        to_records(image)


def test_a_partition_record_without_elr_has_none() -> None:
    record = PartitionRecord(replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0)
    assert state_of(record) == PartitionState(replicas=(1,), isr=(1,), leader=1, directories=(UUID(int=0),))

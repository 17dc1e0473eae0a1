"""DescribeTopicPartitions on a partition in good and in bad times: rule 125."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tanist.broker.api.describe_topic_partitions import describe
from tanist.controller.image.image import MetadataImage
from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from tanist.wire.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

TOPIC = UUID(int=100)


def directory(broker_id: int) -> UUID:
    return UUID(int=1000 + broker_id)


def image_of_one_partition() -> MetadataImage:
    """Broker 1 leads; 2, 3 and 4 follow."""
    image = MetadataImage()
    brokers = (1, 2, 3, 4)
    for broker_id in brokers:
        image.replay(
            RegisterBrokerRecord(broker_id=broker_id, broker_epoch=5, fenced=False, log_dirs=(directory(broker_id),))
        )
    image.replay(TopicRecord(name="t", topic_id=TOPIC))
    image.replay(
        PartitionRecord(
            partition_id=0,
            topic_id=TOPIC,
            replicas=brokers,
            isr=brokers,
            leader=1,
            leader_epoch=4,
            partition_epoch=7,
            directories=tuple(map(directory, brokers)),
        )
    )
    return image


def described(image: MetadataImage) -> Any:
    return describe(image, DescribeTopicPartitionsRequest(response_partition_limit=10), 10).topics[0].partitions[0]


def test_rule_125_in_good_times() -> None:
    partition = described(image_of_one_partition())
    assert (partition.leader_id, partition.leader_epoch) == (1, 4)
    assert (partition.replica_nodes, partition.isr_nodes) == ((1, 2, 3, 4), (1, 2, 3, 4))
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((), ())  # not null
    assert partition.offline_replicas == ()


def test_rule_125_the_elr_and_the_last_known_elr_are_the_partitions() -> None:
    image = image_of_one_partition()
    image.replay(
        PartitionChangeRecord(
            partition_id=0, topic_id=TOPIC, isr=(1,), eligible_leader_replicas=(2,), last_known_elr=(3,)
        )
    )
    partition = described(image)
    assert (partition.isr_nodes, partition.eligible_leader_replicas, partition.last_known_elr) == ((1,), (2,), (3,))


def test_rule_125_offline_is_who_is_fenced_unknown_or_without_the_directory() -> None:
    image = image_of_one_partition()
    image.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1))  # by the records it leads on
    image.replay(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=5, log_dirs=(UUID(int=77),)))
    image.replay(UnregisterBrokerRecord(broker_id=3, broker_epoch=5))
    partition = described(image)
    assert (partition.leader_id, partition.leader_epoch) == (-1, 4)
    assert partition.offline_replicas == (1, 2, 3)

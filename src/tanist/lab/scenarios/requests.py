"""The requests of a scenario to a controller, one partition or one resource each, and the error in each answer.

Owns the conversion of a scenario's fields to messages. Missing fields get the values of a broker or an operator's tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from tanist.controller.features import SUPPORTED_FEATURES
from tanist.lab.scenarios.fields import NotUnderstood
from tanist.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from tanist.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1
PREFERRED, UNCLEAN, NO_SUCH_TYPE = 0, 1, 99
UPGRADE_TYPES: Mapping[str, int] = {"UPGRADE": 1, "SAFE_DOWNGRADE": 2, "UNSAFE_DOWNGRADE": 3}

Registered = Mapping[str, tuple[int, int]]


def registration(
    broker_id: int,
    *,
    cluster_id: str,
    incarnation: UUID,
    directories: Iterable[UUID],
    previous_epoch: int = -1,
    features: Registered = SUPPORTED_FEATURES,
) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation,
        listeners=(Listener(name="PLAINTEXT", host="localhost", port=9092),),
        features=tuple(
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in features.items()
        ),
        log_dirs=tuple(directories),
        previous_broker_epoch=previous_epoch,
    )


def create_topic(
    name: str, assignments: Sequence[Sequence[int]], config: Mapping[str, object] | None = None
) -> CreateTopicsRequest:
    """A topic with the given replicas."""
    return CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=tuple(
                    CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(replicas))
                    for number, replicas in enumerate(assignments)
                ),
                configs=tuple(
                    CreatableTopicConfig(name=key, value=_text(value)) for key, value in (config or {}).items()
                ),
            ),
        ),
        timeout_ms=10_000,
    )


def alter_partition(
    *,
    sender: int,
    sender_epoch: int,
    topic_id: UUID,
    partition: int,
    isr: Iterable[tuple[int, int]],
    leader_epoch: int,
    partition_epoch: int,
    recovering: bool = False,
) -> AlterPartitionRequest:
    """`isr`: ids and broker epochs."""
    data = PartitionData(
        partition_index=partition,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        new_isr_with_epochs=tuple(BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in isr),
        leader_recovery_state=int(recovering),
    )
    return AlterPartitionRequest(
        broker_id=sender, broker_epoch=sender_epoch, topics=(TopicData(topic_id=topic_id, partitions=(data,)),)
    )


def set_config(resource_type: int, resource: str, key: str, value: object | None) -> IncrementalAlterConfigsRequest:
    """`value` None removes the setting."""
    config = AlterableConfig(
        name=key,
        config_operation=DELETE if value is None else SET,
        value=None if value is None else _text(value),
    )
    return IncrementalAlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=resource_type, resource_name=resource, configs=(config,)),)
    )


def elect(kind: int, topic: str | None, partition: int = 0) -> ElectLeadersRequest:
    """`topic` None: all partitions."""
    wanted = None if topic is None else (TopicPartitions(topic=topic, partitions=(partition,)),)
    return ElectLeadersRequest(election_type=kind, topic_partitions=wanted, timeout_ms=10_000)


def reassign(
    topic: str, partition: int, replicas: Sequence[int] | None, *, allow_rf_change: bool = True
) -> AlterPartitionReassignmentsRequest:
    """`replicas` None cancels."""
    wanted = ReassignablePartition(partition_index=partition, replicas=None if replicas is None else tuple(replicas))
    return AlterPartitionReassignmentsRequest(
        timeout_ms=10_000,
        allow_replication_factor_change=allow_rf_change,
        topics=(ReassignableTopic(name=topic, partitions=(wanted,)),),
    )


def update_feature(name: str, level: int, upgrade_type: str) -> UpdateFeaturesRequest:
    if upgrade_type not in UPGRADE_TYPES:
        raise NotUnderstood(f"{upgrade_type!r} is no upgrade type")
    update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=UPGRADE_TYPES[upgrade_type])
    return UpdateFeaturesRequest(feature_updates=(update,))


def _text(value: object) -> str:
    """A configuration's value as Kafka writes it: YAML has true where Kafka has "true"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def error_in(response: Any) -> int:
    """The error of an answer: its own, else that of the first item that it lists."""
    code = getattr(response, "error_code", 0)
    for names in (
        ("topics", "partitions"),
        ("responses", "partitions"),
        ("replica_election_results", "partition_result"),
    ):
        if code == 0:
            code = _listed_error(response, *names)
    return int(
        code
        or _first_error(response, "topics")
        or _first_error(response, "responses")
        or _first_error(response, "results")
    )


def _listed_error(response: Any, outer: str, inner: str) -> int:
    return next((_first_error(each, inner) for each in getattr(response, outer, ())), 0)


def _first_error(response: Any, name: str) -> int:
    return next((int(getattr(each, "error_code", 0)) for each in getattr(response, name, None) or ()), 0)

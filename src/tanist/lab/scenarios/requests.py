"""The requests of a scenario to a controller, one partition or one resource each, and the error in each answer.

Owns the conversion of a scenario's fields to messages. Missing fields get the values of a broker or an operator's tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from tanist.client.admin import alter_configs_request, create_topics_request, new_topic
from tanist.controller.features import SUPPORTED_FEATURES
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from tanist.wire.messages.create_topics_request import CreateTopicsRequest
from tanist.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest

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
    configs = {key: _text(value) for key, value in (config or {}).items()}
    return create_topics_request(new_topic(name, assignment=assignments, configs=configs))


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


def set_config(kind: int, resource: str, key: str, value: object | None) -> IncrementalAlterConfigsRequest:
    """`value` None removes the setting."""
    return alter_configs_request(kind, resource, {key: None if value is None else _text(value)})


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

"""What can happen in a sequence: requests of brokers and operators, in terms that mean the same to both controllers.

A step names brokers, topics and places in lists; epochs and ids are filled in by the side it is played to ("the present
epoch", "one too low"). `act` sends it, and gives what is comparable of the answer: errors by name, and what else an
answer tells of a partition or a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from uuid import UUID

from tanist.client.admin import delete_topic_request, elect_request, reassign_request
from tanist.controller.configs.settings import MIN_INSYNC_REPLICAS
from tanist.lab.scenarios import requests
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tests.interop.controllers.side import FEATURES, UP_TO_DATE, Features, Side

Answer = Mapping[str, object]

ELECT_LEADERS = 2
DELETE_BY_NAME = 5
"""Highest versions of these requests that Apache Kafka and we mean the same by."""


def directories(broker_id: int) -> tuple[UUID, UUID]:
    """Every broker keeps what it has in two directories. The first is the one that may fail."""
    return UUID(int=(7 << 64) + broker_id), UUID(int=(8 << 64) + broker_id)


def _error(code: int) -> str:
    return ErrorCode.name_of(code)


class Step(Protocol):
    def act(self, side: Side) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Heartbeat:
    broker_id: int
    want_fence: bool = False
    want_shut_down: bool = False
    offset: int = UP_TO_DATE
    stale: bool = False
    directory_lost: bool = False

    def act(self, side: Side) -> Answer:
        """Twice, for a broker goes on beating: Apache forgets what it has read when it is unfenced (rule 92)."""
        first = self._beat(side)
        return first if self.want_fence or first["error"] != "NONE" else {"first": first, **self._beat(side)}

    def _beat(self, side: Side) -> dict[str, object]:
        response = side.ask(
            side.heartbeat(
                self.broker_id,
                epoch=side.epoch(self.broker_id) - self.stale,
                offset=self.offset,
                want_fence=self.want_fence,
                want_shut_down=self.want_shut_down,
                offline=directories(self.broker_id)[:1] if self.directory_lost else (),
            )
        )
        return {
            "error": _error(response.error_code),
            "is_caught_up": response.is_caught_up,
            "is_fenced": response.is_fenced,
            "should_shut_down": response.should_shut_down,
        }


@dataclass(frozen=True, slots=True)
class Register:
    broker_id: int
    clean: bool
    incarnation: UUID
    features: Features = field(default_factory=lambda: FEATURES)

    def act(self, side: Side) -> Answer:
        request = side.registration(
            self.broker_id,
            self.incarnation,
            directories(self.broker_id),
            clean=self.clean,
            features=self.features,
        )
        return {"error": _error(side.ask(request).error_code)}


@dataclass(frozen=True, slots=True)
class Silence:
    """A broker is not heard of until it is fenced for it. `wait`: until that has come about, on both sides."""

    broker_id: int
    wait: Callable[[], None] = field(compare=False, repr=False)

    def act(self, side: Side) -> Answer:
        self.wait()
        side.catch_up()
        return {}


@dataclass(frozen=True, slots=True)
class Unregister:
    broker_id: int

    def act(self, side: Side) -> Answer:
        return {"error": _error(side.ask(UnregisterBrokerRequest(broker_id=self.broker_id)).error_code)}


@dataclass(frozen=True, slots=True)
class AssignDirectories:
    """A broker tells in which of its directories it keeps replicas: topic, partition, which directory."""

    broker_id: int
    replicas: tuple[tuple[str, int, int], ...]

    def act(self, side: Side) -> Answer:
        request = AssignReplicasToDirsRequest(
            broker_id=self.broker_id,
            broker_epoch=side.epoch(self.broker_id),
            directories=tuple(
                DirectoryData(
                    id=directories(self.broker_id)[which],
                    topics=(
                        TopicData(
                            topic_id=side.topic_id(topic), partitions=(PartitionData(partition_index=partition),)
                        ),
                    ),
                )
                for topic, partition, which in self.replicas
            ),
        )
        response: Any = side.ask(request)
        names = {topic_id: name for name, topic_id in side.image.topic_ids.items()}
        results = {
            f"{names.get(topic.topic_id)}-{partition.partition_index}": _error(partition.error_code)
            for each in response.directories
            for topic in each.topics
            for partition in topic.partitions
        }
        return {"error": _error(response.error_code), **dict(sorted(results.items()))}


@dataclass(frozen=True, slots=True)
class CreateTopic:
    topic: str
    assignments: tuple[tuple[int, ...], ...]
    config: tuple[tuple[str, str], ...] = ()

    def act(self, side: Side) -> Answer:
        response = side.ask(requests.create_topic(self.topic, self.assignments, dict(self.config)))
        return {"error": _error(requests.error_in(response))}


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    topic: str

    def act(self, side: Side) -> Answer:
        request = delete_topic_request(self.topic)
        return {"error": _error(requests.error_in(side.ask(request, max_version=DELETE_BY_NAME)))}


Epoch = Literal["present", "unknown", "stale"]


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """`isr`: brokers, and which epoch of each the leader believes in."""

    topic: str
    partition: int
    sender: int
    isr: tuple[tuple[int, Epoch], ...]
    stale_sender: bool = False
    leader_epoch_by: int = 0
    partition_epoch_by: int = 0
    recovering: bool = False

    def act(self, side: Side) -> Answer:
        state = side.partition(self.topic, self.partition)
        by_epoch: dict[str, Callable[[int], int]] = {
            "present": side.epoch,
            "unknown": lambda _: -1,
            "stale": lambda broker: side.epoch(broker) - 1,
        }
        response: Any = side.ask(
            requests.alter_partition(
                sender=self.sender,
                sender_epoch=side.epoch(self.sender) - self.stale_sender,
                topic_id=side.topic_id(self.topic),
                partition=self.partition,
                isr=[(broker, by_epoch[epoch](broker)) for broker, epoch in self.isr],
                leader_epoch=max(0, (0 if state is None else state.leader_epoch) + self.leader_epoch_by),
                partition_epoch=max(0, (0 if state is None else state.partition_epoch) + self.partition_epoch_by),
                recovering=self.recovering,
            )
        )
        if response.error_code:
            return {"error": _error(response.error_code)}
        part = response.topics[0].partitions[0]
        reported = {"error": _error(part.error_code)}
        if part.error_code:
            return reported
        return {
            **reported,
            "leader": part.leader_id,
            "leader_epoch": part.leader_epoch,
            "isr": tuple(part.isr),
            "recovery": part.leader_recovery_state,
            "partition_epoch": part.partition_epoch,
        }


@dataclass(frozen=True, slots=True)
class Elect:
    """`topic` None: all partitions there are."""

    kind: int
    topic: str | None = None
    partition: int = 0

    def act(self, side: Side) -> Answer:
        response: Any = side.ask(elect_request(self.kind, self.topic, self.partition), max_version=ELECT_LEADERS)
        results = {
            f"{each.topic}-{partition.partition_id}": _error(partition.error_code)
            for each in response.replica_election_results
            for partition in each.partition_result
        }
        return {"error": _error(response.error_code), **dict(sorted(results.items()))}


@dataclass(frozen=True, slots=True)
class Reassign:
    """`replicas` None cancels."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None
    allow_rf_change: bool = True

    def act(self, side: Side) -> Answer:
        request = reassign_request(
            self.topic, self.partition, self.replicas, allow_replication_factor_change=self.allow_rf_change
        )
        return {"error": _error(requests.error_in(side.ask(request, max_version=1)))}


@dataclass(frozen=True, slots=True)
class SetConfig:
    resource_type: int
    resource: str
    key: str
    value: str | None

    @property
    def is_min_isr(self) -> bool:
        return self.key == MIN_INSYNC_REPLICAS

    def act(self, side: Side) -> Answer:
        request = requests.set_config(self.resource_type, self.resource, self.key, self.value)
        return {"error": _error(requests.error_in(side.ask(request)))}

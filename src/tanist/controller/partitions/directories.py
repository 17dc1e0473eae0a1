"""The directories of replicas on a broker (KIP-858).

Owns AssignReplicasToDirs: a broker with several log directories chooses one for a new replica and reports it. A replica
whose directory has failed meanwhile leaves the ISR at once (rule 48). Must never move a replica by itself.
"""

from __future__ import annotations

from uuid import UUID

from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.features import DIRECTORY_ASSIGNMENT_FROM
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.partition_state import PartitionState
from tanist.controller.image.registration import BrokerRegistration
from tanist.controller.partitions.change import Intent, partition_change
from tanist.controller.partitions.context import PartitionContexts
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import RESERVED_DIRECTORIES
from tanist.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from tanist.wire.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tanist.wire.schema import MetadataRecord


def assign_replicas_to_dirs(
    image: MetadataImage, request: AssignReplicasToDirsRequest, settings: ControllerSettings
) -> Decision:
    """Each replica succeeds or fails by itself. A replica that already has the reported directory writes no record."""
    if image.metadata_version < DIRECTORY_ASSIGNMENT_FROM:
        return Decision(response=AssignReplicasToDirsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return Decision(response=AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    assigner = _Assigner(image, broker, settings)
    directories = tuple(
        DirectoryData(
            id=directory.id,
            topics=tuple(
                TopicData(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        PartitionData(
                            partition_index=partition.partition_index,
                            error_code=assigner.assign(directory.id, topic.topic_id, partition.partition_index),
                        )
                        for partition in topic.partitions
                    ),
                )
                for topic in directory.topics
            ),
        )
        for directory in request.directories
    )
    response = AssignReplicasToDirsResponse(error_code=ErrorCode.NONE, directories=directories)
    return Decision(tuple(assigner.records), response, atomic=False)


class _Assigner:
    """One request."""

    def __init__(self, image: MetadataImage, broker: BrokerRegistration, settings: ControllerSettings) -> None:
        self._image = image
        self._broker = broker
        self._contexts = PartitionContexts(image, settings)
        self._seen: set[tuple[UUID, int]] = set()
        self.records: list[MetadataRecord] = []

    def assign(self, directory: UUID, topic_id: UUID, partition: int) -> ErrorCode:
        if directory.int < RESERVED_DIRECTORIES:
            return ErrorCode.INVALID_REQUEST
        topic = self._image.topics.get(topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        state = topic.partitions.get(partition)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._broker.id not in state.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if (topic_id, partition) in self._seen:
            return ErrorCode.INVALID_REQUEST
        self._seen.add((topic_id, partition))
        intent = self._intent(state, directory, topic_id, partition)
        # Whether it may lead is a matter of where it is now, and not of where it was.
        context = self._contexts.of(topic_id, state.with_directory(self._broker.id, directory))
        record = partition_change(state, intent, context)
        if record is not None:
            self.records.append(record)
        return ErrorCode.NONE

    def _intent(self, state: PartitionState, directory: UUID, topic_id: UUID, partition: int) -> Intent:
        broker_id = self._broker.id
        if directory in self._broker.directories:
            return Intent(topic_id=topic_id, partition=partition, target_directories={broker_id: directory})
        # The chosen directory has failed since. One record says both: the replica's directory, and that it is offline.
        # DEVIATION from rule 79: Apache writes two.
        return Intent(
            topic_id=topic_id,
            partition=partition,
            target_isr=tuple(replica for replica in state.isr if replica != broker_id),
            target_directories={broker_id: directory},
            election=self._contexts.election(topic_id),
            removed_broker=broker_id,
        )

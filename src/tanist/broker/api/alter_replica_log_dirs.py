"""AlterReplicaLogDirs (key 34), versions 1-2: replicas go to another log directory of this broker (KIP-113).

The answer says that a move has begun, or why it cannot; DescribeLogDirs says how far it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.broker.replication.replicas import Replicas
from tanist.log.names import future_folder_name
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from tanist.wire.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

_A_UNIQUE = "0" * 32


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirs:
    """The handler of AlterReplicaLogDirs."""

    replicas: Replicas

    def handle(self, request: AlterReplicaLogDirsRequest, call: Call) -> None:
        """Each replica begins to move, or fails, by itself."""
        results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
        for directory in request.dirs:
            for topic in directory.topics:
                results.setdefault(topic.name, []).extend(
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=self._move(topic.name, index, directory.path)
                    )
                    for index in topic.partitions
                )
        call.reply(
            AlterReplicaLogDirsResponse(
                results=tuple(
                    AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
                    for name, partitions in results.items()
                )
            )
        )

    def _move(self, topic: str, index: int, path: str) -> ErrorCode:
        try:
            future_folder_name(topic, index, _A_UNIQUE)
        except ValueError:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        replicas = self.replicas
        directory = next((each for each in replicas.directories if each.path == (path.rstrip("/") or path)), None)
        if directory is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        hosted = replicas.get(topic, index)
        if hosted is None and replicas.absent_error(topic, index) != ErrorCode.KAFKA_STORAGE_ERROR:
            # As in Apache Kafka: the tool has asked for the replica, and asks again once it is here.
            replicas.moves.choose(topic, index, directory)
            return ErrorCode.REPLICA_NOT_AVAILABLE
        if hosted is None or directory.failed is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if hosted.directory is not directory and replicas.directories.offline_ids():
            return ErrorCode.KAFKA_STORAGE_ERROR  # there may be a copy already
        try:
            replicas.moves.begin(hosted, directory)
        except OSError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE


def build(components: NodeComponents) -> Handler:
    return AlterReplicaLogDirs(components.replicas).handle

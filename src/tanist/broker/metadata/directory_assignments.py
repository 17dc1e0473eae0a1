"""Where this broker keeps its replicas, told to the controller (AssignReplicasToDirs, KIP-858).

With one log directory the controller knows by itself. With several, the broker chooses when it makes the log, and says
so; until the metadata agrees it says so again. The controller needs it to see which replicas a failed directory takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from tanist.wire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

if TYPE_CHECKING:
    from tanist.broker.node import Node

_VERSION = 0
_TIMEOUT_MS = 5_000
_RETRY_MS = 200
_MAX_PER_REQUEST = 2_000


class DirectoryAssignments:
    """What is still to be told."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._wanted: dict[tuple[UUID, int], UUID] = {}
        self._in_flight = False
        self._scheduled = False

    def __len__(self) -> int:
        """Replicas whose directories the controller has yet to hear of."""
        return len(self._wanted)

    def tell(self, topic_id: UUID, partition: int, directory_id: UUID) -> None:
        """The replica lies in `directory_id`, and the metadata says something else."""
        self._wanted[(topic_id, partition)] = directory_id
        self._schedule(0)

    def agreed(self, topic_id: UUID, partition: int) -> None:
        """The metadata says so too, or the replica is gone."""
        self._wanted.pop((topic_id, partition), None)

    def _schedule(self, delay_ms: int) -> None:
        if self._wanted and not self._scheduled and not self._in_flight and not self._node.stopping_finally:
            self._scheduled = True
            self._node.clock.call_at(self._node.clock.now_ms() + delay_ms, self._send)

    def _send(self) -> None:
        self._scheduled = False
        if not self._wanted or self._in_flight:
            return
        broker_epoch = self._node.lifecycle.broker_epoch
        if broker_epoch < 0:
            self._schedule(_RETRY_MS)
            return
        batch = list(self._wanted.items())[:_MAX_PER_REQUEST]
        by_directory: dict[UUID, dict[UUID, list[PartitionData]]] = {}
        for (topic_id, partition), directory_id in batch:
            topics = by_directory.setdefault(directory_id, {})
            topics.setdefault(topic_id, []).append(PartitionData(partition_index=partition))
        request = AssignReplicasToDirsRequest(
            broker_id=self._node.node_id,
            broker_epoch=broker_epoch,
            directories=tuple(
                DirectoryData(
                    id=directory_id,
                    topics=tuple(
                        TopicData(topic_id=topic_id, partitions=tuple(parts)) for topic_id, parts in topics.items()
                    ),
                )
                for directory_id, topics in by_directory.items()
            ),
        )
        self._in_flight = True
        self._node.controller_channel.call(request, _VERSION, _TIMEOUT_MS, self._answered)

    def _answered(self, response: Any) -> None:
        self._in_flight = False
        untold = len(self._wanted)
        if response is not None and response.error_code == 0:
            for directory in response.directories:
                for topic in directory.topics:
                    for partition in topic.partitions:
                        if partition.error_code == 0:
                            self.agreed(topic.topic_id, partition.partition_index)
        # What has come up meanwhile is told at once; what failed, later.
        self._schedule(0 if len(self._wanted) < untold else _RETRY_MS)

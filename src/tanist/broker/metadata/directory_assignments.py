"""Where this broker keeps its replicas, as it reports it to the controller (AssignReplicasToDirs, KIP-858).

With one log directory the controller knows by itself, unless the directory has another id than it had. With several,
the broker chooses when it makes the log, and says so; until the metadata agrees it says so again. The controller needs
it to see which replicas a failed directory takes.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.wire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

_VERSION = 0
_TIMEOUT_MS = 5_000
_RETRY_MS = 200
_MAX_PER_REQUEST = 2_000


class DirectoryAssignments:
    """Assignments that the controller has yet to learn."""

    def __init__(self, context: NodeContext, controller_channel: ControllerChannel, lifecycle: Lifecycle) -> None:
        self._context = context
        self._controller_channel = controller_channel
        self._lifecycle = lifecycle
        self._wanted: dict[tuple[UUID, int], UUID] = {}
        self._in_flight = False
        self._scheduled = False

    def __len__(self) -> int:
        """Replicas whose directories the controller has yet to hear of."""
        return len(self._wanted)

    def report(self, topic_id: UUID, partition: int, directory_id: UUID) -> None:
        """The replica lies in `directory_id`, and the metadata says something else."""
        self._wanted[(topic_id, partition)] = directory_id
        self._schedule(0)

    def agreed(self, topic_id: UUID, partition: int) -> None:
        """The metadata says so too, or the replica is gone."""
        self._wanted.pop((topic_id, partition), None)

    def _schedule(self, delay_ms: int) -> None:
        if self._wanted and not self._scheduled and not self._in_flight and not self._context.stopping:
            self._scheduled = True
            self._context.clock.call_at(self._context.clock.now_ms() + delay_ms, self._send)

    def _send(self) -> None:
        self._scheduled = False
        if not self._wanted or self._in_flight:
            return
        broker_epoch = self._lifecycle.broker_epoch
        if broker_epoch < 0:
            self._schedule(_RETRY_MS)
            return
        batch = list(self._wanted.items())[:_MAX_PER_REQUEST]
        by_directory: dict[UUID, dict[UUID, list[PartitionData]]] = {}
        for (topic_id, partition), directory_id in batch:
            topics = by_directory.setdefault(directory_id, {})
            topics.setdefault(topic_id, []).append(PartitionData(partition_index=partition))
        request = AssignReplicasToDirsRequest(
            broker_id=self._context.node_id,
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
        self._controller_channel.call(request, _VERSION, _TIMEOUT_MS, self._handle_response)

    def _handle_response(self, response: Any) -> None:
        self._in_flight = False
        unagreed = len(self._wanted)
        if response is not None and response.error_code == 0:
            for directory in response.directories:
                for topic in directory.topics:
                    for partition in topic.partitions:
                        key = (topic.topic_id, partition.partition_index)
                        # It may have been moved, or given up, since that was sent.
                        if partition.error_code == 0 and self._wanted.get(key) == directory.id:
                            del self._wanted[key]
        # New assignments go at once; those that failed go later.
        self._schedule(0 if len(self._wanted) < unagreed else _RETRY_MS)

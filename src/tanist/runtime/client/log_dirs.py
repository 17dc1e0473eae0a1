"""Log directories of any Kafka cluster's brokers, asked for and changed through `Client` (KIP-113).

A move is asked for by where the replica is to be, so it is safe to ask again. Each broker answers for its own replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tanist.client.admin import move_logs_request
from tanist.runtime.client.client import Client, Unreachable, Unsupported
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from tanist.wire.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from tanist.wire.messages.describe_log_dirs_response import DescribeLogDirsResponse

Replica: TypeAlias = tuple[str, int, int]
"""Topic, partition, broker."""
_ASK_S = 5.0


@dataclass(slots=True)
class Placed:
    """Where a replica is, and where it is on its way to."""

    path: str = ""
    size_bytes: int = 0
    target: str | None = None
    copied_bytes: int = 0

    @property
    def copied(self) -> float:
        """The share of the log that its copy has."""
        return min(1.0, self.copied_bytes / self.size_bytes) if self.size_bytes else 1.0


def placed(
    client: Client, brokers: Iterable[int], partitions: Collection[tuple[str, int]] | None = None
) -> dict[Replica, Placed]:
    """The replicas of these partitions, or of all, on those of the brokers that can be asked."""
    topics = None if partitions is None else indexes_by_topic(partitions)
    request = DescribeLogDirsRequest(
        topics=None
        if topics is None
        else tuple(DescribableLogDirTopic(topic=name, partitions=tuple(each)) for name, each in topics.items())
    )
    found: dict[Replica, Placed] = {}
    for broker in brokers:
        try:
            answer = client.ask(request, DescribeLogDirsResponse, node_id=broker, timeout_s=_ASK_S)
        except (Unreachable, Unsupported):
            continue
        for result in answer.results:
            for topic in result.topics:
                for part in topic.partitions:
                    place = found.setdefault((topic.name, part.partition_index, broker), Placed())
                    if part.is_future_key:
                        place.target, place.copied_bytes = result.log_dir, part.partition_size
                    else:
                        place.path, place.size_bytes = result.log_dir, part.partition_size
    return found


def move(client: Client, targets: Mapping[Replica, str]) -> dict[Replica, int]:
    """Ask the brokers to have these replicas in these directories; gives the errors of those that will not.

    A broker that cannot be asked counts as one that has no such replica yet.
    """
    by_broker: dict[int, dict[tuple[str, int], str]] = {}
    for (topic, index, broker), path in targets.items():
        by_broker.setdefault(broker, {})[topic, index] = path
    refused: dict[Replica, int] = {}
    for broker, wanted in by_broker.items():
        try:
            request = move_logs_request(wanted)
            answer = client.ask(request, AlterReplicaLogDirsResponse, node_id=broker, timeout_s=_ASK_S)
        except Unreachable:
            refused.update(((*partition, broker), ErrorCode.REPLICA_NOT_AVAILABLE) for partition in wanted)
            continue
        for result in answer.results:
            for part in result.partitions:
                if part.error_code:
                    refused[result.topic_name, part.partition_index, broker] = part.error_code
    return refused

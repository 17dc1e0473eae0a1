"""Reassignments of any Kafka cluster, asked for and watched through `Client` (KIP-455).

Owns the requests and what an answer means for each partition. A replica list is absolute, so it is safe to ask for it
again; a cancellation that is asked for again because its answer was lost may find nothing to cancel, which is the wish.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tanist.runtime.client.changes import ask_once
from tanist.runtime.client.client import Client, KafkaError, Unanswered
from tanist.runtime.client.quorum import ask_controller
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tanist.wire.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse
from tanist.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tanist.wire.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Moving:
    """A partition whose reassignment is under way."""

    replicas: tuple[int, ...]
    """Those that are to go included."""
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.replicas if replica not in self.removing)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The controller's refusal of one partition, or a broker's of its replica."""

    topic: str
    partition: int
    error_code: int
    message: str | None

    def __str__(self) -> str:
        name = ErrorCode.name_of(self.error_code)
        return f"{self.topic}-{self.partition}: {name}" + (f": {self.message}" if self.message else "")


def present_assignment(client: Client, topics: Iterable[str] | None = None) -> dict[Partition, tuple[int, ...]]:
    """The replicas of each partition as they are now; of all topics, or those named. `KafkaError` for none such."""
    wanted = None if topics is None else sorted(set(topics))

    def attempt() -> dict[Partition, tuple[int, ...]]:
        view = client.metadata(wanted)
        found = {}
        for topic in view.topics.values():
            if topic.error_code:
                raise KafkaError(topic.error_code, f"there is no topic {topic.name}")
            found.update({(topic.name, index): part.replicas for index, part in topic.partitions.items()})
        return found

    return client.persist(attempt, timeout_s=2.0)


def racks(client: Client) -> dict[int, str | None]:
    """The brokers that are in the cluster, each with its rack."""
    answer = client.ask(DescribeClusterRequest(), DescribeClusterResponse)
    if answer.error_code:
        raise KafkaError(answer.error_code, answer.error_message)
    return {broker.broker_id: broker.rack for broker in answer.brokers}


def reassign(client: Client, targets: Mapping[Partition, tuple[int, ...]]) -> list[Refusal]:
    """Begin to move partitions; gives those that the controller refuses."""
    return _alter(client, targets)


def cancel(client: Client, partitions: Collection[Partition]) -> list[Refusal]:
    """Take reassignments back; gives those that cannot be, as where none is under way."""
    return _alter(client, dict.fromkeys(partitions))


def _alter(client: Client, targets: Mapping[Partition, tuple[int, ...] | None]) -> list[Refusal]:
    topics: dict[str, list[ReassignablePartition]] = {}
    for (topic, index), replicas in sorted(targets.items()):
        topics.setdefault(topic, []).append(ReassignablePartition(partition_index=index, replicas=replicas))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=round(client.timeout_s * 1000),
        topics=tuple(ReassignableTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()),
    )
    again = False

    def attempt() -> AlterPartitionReassignmentsResponse:
        nonlocal again
        try:
            answer = ask_once(client, request, AlterPartitionReassignmentsResponse, client.timeout_s)
        except Unanswered:
            again = True
            raise
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message)
        return answer

    answer = client.persist(attempt)
    done = {ErrorCode.NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS} if again else {ErrorCode.NONE}
    return [
        Refusal(topic.name, part.partition_index, part.error_code, part.error_message)
        for topic in answer.responses
        for part in topic.partitions
        if part.error_code not in done
    ]


def moving(client: Client, partitions: Collection[Partition] | None = None) -> dict[Partition, Moving]:
    """The reassignments under way, of all partitions or of those named."""
    topics = indexes_by_topic(partitions or ())
    request = ListPartitionReassignmentsRequest(
        timeout_ms=round(client.timeout_s * 1000),
        topics=None
        if partitions is None
        else tuple(
            ListPartitionReassignmentsTopics(name=name, partition_indexes=tuple(indexes))
            for name, indexes in topics.items()
        ),
    )

    def attempt() -> ListPartitionReassignmentsResponse:
        answer = ask_controller(client, request, ListPartitionReassignmentsResponse)
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message)
        return answer

    return {
        (topic.name, part.partition_index): Moving(part.replicas, part.adding_replicas, part.removing_replicas)
        for topic in client.persist(attempt).topics
        for part in topic.partitions
    }

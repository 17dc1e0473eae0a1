"""An ElectLeaders request whose answer waits for its last election.

Owns `ElectionWait`: the partitions of one ElectLeaders in the order of the request, and the result of each. It decides
nothing: `elect_leaders` fills it in.
"""

from __future__ import annotations

from tanist.wire.errors import ErrorCode
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.elect_leaders_response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult

ElectionResult = tuple[ErrorCode, str | None]


class ElectionWait:
    """A request whose elections are not all decided yet, or were just now."""

    def __init__(self, everything: bool, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.pending: dict[TopicIdPartition, int] = {}
        """Undecided partition -> its index in the request."""
        self._everything = everything
        self._partitions: list[tuple[str, int]] = []
        """As the request lists them."""
        self._results: dict[int, ElectionResult] = {}
        """Index in the request -> its result."""

    def add(self, topic: str, partition: int, result: ElectionResult) -> None:
        """The next partition of the request."""
        self._results[len(self._partitions)] = result
        self._partitions.append((topic, partition))

    def add_pending(self, topic: str, partition: int, key: TopicIdPartition) -> None:
        """The next partition of the request; `resolve` will set its result."""
        self.pending[key] = len(self._partitions)
        self._partitions.append((topic, partition))

    def resolve(self, key: TopicIdPartition, result: ElectionResult) -> None:
        self._results[self.pending.pop(key)] = result

    @property
    def done(self) -> bool:
        return not self.pending

    def response(self) -> ElectLeadersResponse:
        """Partitions that need no election are left out when all were meant."""
        by_topic: dict[str, list[PartitionResult]] = {}
        for place, (topic, partition) in enumerate(self._partitions):
            error, message = self._results[place]
            if self._everything and error == ErrorCode.ELECTION_NOT_NEEDED:
                continue
            result = PartitionResult(partition_id=partition, error_code=error, error_message=message)
            by_topic.setdefault(topic, []).append(result)
        return ElectLeadersResponse(
            replica_election_results=tuple(
                ReplicaElectionResult(topic=topic, partition_result=tuple(results))
                for topic, results in by_topic.items()
            )
        )

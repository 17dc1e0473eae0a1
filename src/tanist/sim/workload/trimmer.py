"""An operator who deletes records: DeleteRecords to the leaders of partitions, at offsets that are drawn.

Owns the requests and their numbers; the checkers hear of each one and of its answer (`sim.events`). A request is sent
once, as `kafka-delete-records` sends it. In the liveness phase it is repeated until each partition has acknowledged
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tanist.sim.events import DeletionAnswered, DeletionRequested
from tanist.sim.oracle import Oracle, PartitionOracle
from tanist.sim.workload.cluster_client import BACKOFF_MS
from tanist.sim.workload.history import History
from tanist.sim.workload.operations import Operation, Operator, Topic
from tanist.sim.world.world import World
from tanist.wire.ids import TopicIdPartition
from tanist.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

_VERSION: Final = 2
_TIMEOUT_MS: Final = 3_000
_HIGH_WATERMARK: Final = -1
_FAR: Final = 1_000_000
_TRIES: Final = 20


class Trimmer(Operator):
    """Sends DeleteRecords requests."""

    def __init__(self, world: World, history: History, oracle: Oracle, topics: Sequence[Topic]) -> None:
        super().__init__(world, "trimmer", history)
        self._oracle = oracle
        self._topics = [topic.name for topic in topics]
        self._offsets: dict[str, Callable[[TopicIdPartition, float], int]] = {
            "delete_records": lambda key, choice: self._drawn(self._oracle.partitions[key], choice),
            "delete_all": lambda key, choice: _HIGH_WATERMARK,
            "delete_beyond": self._beyond,
        }
        self._number = 0
        self._unacknowledged: set[TopicIdPartition] = set()

    @property
    def all_acknowledged(self) -> bool:
        """Whether each partition has acknowledged a DeleteRecords since `delete_older_halves`."""
        return not self._unacknowledged

    def described(self) -> str:
        return ", ".join(sorted(self._oracle.partitions[key].name for key in self._unacknowledged))

    def delete_older_halves(self) -> None:
        """Delete the older half of each partition's committed records, until that is acknowledged."""
        self._unacknowledged = set(self._partitions())
        for key in self._partitions():
            self.run(partial(self._delete_older_half, key))

    def _delete_older_half(self, key: TopicIdPartition) -> None:
        def try_again(error: int) -> None:
            if error:
                self.later(BACKOFF_MS, lambda: self._delete_older_half(key))
            else:
                self._unacknowledged.discard(key)

        self._delete(key, self._drawn(self._oracle.partitions[key], 0.5), try_again)

    def _partitions(self) -> list[TopicIdPartition]:
        """Those of its topics; internal topics are compacted."""
        partitions = self._oracle.partitions
        return [key for key, oracle in partitions.items() if oracle.name.rpartition("-")[0] in self._topics]

    # -- operations

    def _act(self, operation: Operation) -> None:
        keys = self._partitions()
        if keys:
            key = keys[int(operation.first * len(keys))]
            self._delete(key, self._offsets[operation.kind](key, operation.second), lambda error: None)

    def _beyond(self, key: TopicIdPartition, choice: float) -> int:
        """Beyond the high watermark: at the leader's end, which may have it by then, or far away."""
        oracle, state = self._oracle.partitions[key], self._oracle.states.get(key)
        leader = None if state is None else oracle.mirrors.get(state.leader)
        end = oracle.high_watermark if leader is None else leader.end
        return max(end, oracle.high_watermark) + (0 if choice < 0.7 and leader is not None else _FAR)

    def _drawn(self, oracle: PartitionOracle, choice: float) -> int:
        least = 0 if oracle.trimming is None else oracle.trimming.highest
        return least + int(choice * (oracle.high_watermark - least))

    # -- requests

    def _delete(self, key: TopicIdPartition, offset: int, done: Callable[[int], None], tries: int = _TRIES) -> None:
        """Once a leader is known; `done` gets the error, -1 without an answer."""
        topic = self._oracle.image.topics.get(key[0])
        where = None if topic is None else self.leader_of(topic.name, key[1])
        if topic is None or where is None:
            self.refresh(self._topics)
            if tries:
                self.later(BACKOFF_MS, lambda: self._delete(key, offset, done, tries - 1))
            else:
                done(-1)
            return
        self._number += 1
        self._under_way += 1
        number, broker_id = self._number, where[0]
        self.world.emit(DeletionRequested(number, key, f"{topic.name}-{key[1]}", offset))

        def handle_response(response: Any) -> None:
            self._under_way -= 1
            if response is None:
                self.refresh(self._topics)
                done(-1)
                return
            answer = response.topics[0].partitions[0]
            self.world.emit(DeletionAnswered(number, broker_id, answer.error_code, answer.low_watermark))
            if answer.error_code:
                self.refresh(self._topics)
            done(answer.error_code)

        wanted = DeleteRecordsPartition(partition_index=key[1], offset=offset)
        request = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=topic.name, partitions=(wanted,)),), timeout_ms=_TIMEOUT_MS
        )
        where[2].call(request, _VERSION, _TIMEOUT_MS + 1_000, handle_response)

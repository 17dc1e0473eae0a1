"""A transactional producer in a virtual cluster, request by request; it asks again as client libraries do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from tanist.client.errors import error_in
from tanist.client.requests import Ask, Coordinator, coordinator_in, find_coordinator
from tanist.client.transactions import Transactions
from tanist.wire.batch import NewRecord
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from tests.broker.cluster_rig import Cluster

LATER = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
ATTEMPTS = 600
PAUSE_MS = 50


class TransactionalProducer:
    """One transactional id. `bumps`: a client of `transaction.version` 2."""

    def __init__(self, cluster: Cluster, transactional_id: str = "tx", *, bumps: bool = True) -> None:
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.transactions = Transactions(transactional_id, timeout_ms=60_000, adds_itself=bumps)

    @property
    def producer(self) -> tuple[int, int]:
        return self.transactions.producer

    def _persist(self, ask: Callable[[], Any], error_of: Callable[[Any], int] = error_in) -> Any:
        for _ in range(ATTEMPTS):
            answer = ask()
            if answer is not None and error_of(answer) not in LATER:
                return answer
            self.cluster.run(PAUSE_MS)
        raise AssertionError("no answer but to ask later")

    def _once(self, asked: Ask) -> Any:
        if isinstance(asked.to, Coordinator):
            to = self._coordinator(asked.to)
        else:
            to = self.cluster.leader(asked.to.topic, asked.to.partition) or 1
        return self.cluster.ask(asked.request, asked.newest, to=to)

    def _coordinator(self, of: Coordinator) -> int:
        node_id = next(node.node_id for node in self.cluster.world.nodes())
        request = find_coordinator(of.kind, of.key)
        return coordinator_in(self._persist(lambda: self.cluster.ask(request, 4, to=node_id))).node_id

    def _carry_out(self, asked: Ask | None) -> Any:
        """The last answer."""
        if asked is None:
            return None
        answer = self._persist(lambda: self._once(asked))
        self.transactions.handle_response(answer)
        return answer

    def _succeed(self, asked: Ask | None) -> None:
        answer = self._carry_out(asked)
        assert answer is None or error_in(answer) == 0, answer

    def begin(self) -> None:
        """InitProducerId."""
        self._succeed(self.transactions.initialize())

    def write(self, topic: str, values: Sequence[bytes], *, partition: int = 0, patient: bool = True) -> int:
        """Write one batch within the transaction: its offset. Without `patient` it is sent once: the error."""
        self.add(topic, partition)
        wall_ms = self.cluster.client.clock.wall_ms()
        records = [NewRecord(wall_ms, None, value) for value in values]
        asked = self.transactions.batch((topic, partition), records, timeout_ms=5_000)
        answer = self._carry_out(asked) if patient else self._once(asked)
        if not patient:
            return error_in(answer)
        assert error_in(answer) == 0, answer
        self.transactions.written((topic, partition), len(values))
        return int(answer.responses[0].partition_responses[0].base_offset)

    def add(self, topic: str, partition: int) -> None:
        self._succeed(self.transactions.add_partitions([(topic, partition)]))

    def add_offsets(self, group: str) -> None:
        self._succeed(self.transactions.add_offsets(group))

    def commit_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], int], *, ids: Mapping[str, UUID] | None = None
    ) -> dict[tuple[str, int], int]:
        """TxnOffsetCommit: the error of each partition. `ids`: those by which the topics are named (KIP-1319)."""
        asked = self.transactions.commit_offsets(group, offsets)
        names = {} if ids is None else {topic_id: name for name, topic_id in ids.items()}
        if ids is not None:
            assert isinstance(asked.request, TxnOffsetCommitRequest)
            for topic in asked.request.topics:
                topic.topic_id, topic.name = ids[topic.name], ""
            asked = replace(asked, version_max=6)

        def error_of(answer: Any) -> int:
            codes = (each.error_code for topic in answer.topics for each in topic.partitions)
            return next((code for code in codes if code not in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), 0)

        answer = self._persist(lambda: self._once(asked), error_of)
        return {
            (names.get(topic.topic_id, topic.name), each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }

    def end(self, *, committed: bool = True, waits: bool = True) -> None:
        """EndTxn; with `waits` until its markers are written as well."""
        self._succeed(self.transactions.end(committed=committed))
        if waits:
            self.cluster.until(self.has_ended)

    def has_ended(self) -> bool:
        for node in self.cluster.world.nodes():
            coordinator = node.components.transactions.loaded
            for partition in coordinator.partitions() if coordinator is not None else ():
                known = partition.shard.transactions.get(self.transactional_id)
                if known is not None and partition.hosted.leader is not None:
                    return known.pending is None and known.markers is None
        return False

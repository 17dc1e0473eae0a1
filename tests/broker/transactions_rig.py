"""A transactional producer in a virtual cluster, request by request; it asks again as client libraries do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from tanist.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tanist.wire.messages.end_txn_request import EndTxnRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
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
        self.bumps = bumps
        self.producer = (-1, -1)
        self._sequences: dict[tuple[int, int, int], int] = {}

    def _persist(self, ask: Callable[[], Any], error_of: Callable[[Any], int]) -> Any:
        for _ in range(ATTEMPTS):
            answer = ask()
            if answer is not None and error_of(answer) not in LATER:
                return answer
            self.cluster.run(PAUSE_MS)
        raise AssertionError("no answer but to ask later")

    def coordinator(self) -> int:
        node_id = next(node.node_id for node in self.cluster.world.nodes())
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=(self.transactional_id,))
        answer = self._persist(
            lambda: self.cluster.ask(request, 4, to=node_id), lambda found: int(found.coordinators[0].error_code)
        )
        return int(answer.coordinators[0].node_id)

    def _ask(self, request: Any, version: int, error_of: Callable[[Any], int]) -> Any:
        return self._persist(lambda: self.cluster.ask(request, version, to=self.coordinator()), error_of)

    def begin(self, timeout_ms: int = 60_000) -> None:
        """InitProducerId."""
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms)
        answer = self._ask(request, 4, lambda found: int(found.error_code))
        assert answer.error_code == 0
        self.producer = (answer.producer_id, answer.producer_epoch)

    def write(self, topic: str, values: Sequence[bytes], *, partition: int = 0, patient: bool = True) -> int:
        """Write one batch within the transaction: its offset. Without `patient` it is sent once: the error."""
        if not self.bumps:
            self.add(topic, partition)
        key = (*self.producer, partition)
        sequence = self._sequences.get(key, 0)
        wall_ms = self.cluster.client.clock.wall_ms()
        records = encode_batch(
            [NewRecord(wall_ms, None, value) for value in values],
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=partition, records=bytes(records))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5_000,
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )

        def ask() -> Any:
            return self.cluster.ask(request, 12 if self.bumps else 9, to=self.cluster.leader(topic, partition) or 1)

        def error_of(found: Any) -> int:
            return int(found.responses[0].partition_responses[0].error_code)

        answer = self._persist(ask, error_of) if patient else ask()
        written = answer.responses[0].partition_responses[0]
        if not patient:
            return int(written.error_code)
        assert written.error_code == 0, written
        self._sequences[key] = sequence + len(values)
        return int(written.base_offset)

    def add(self, topic: str, partition: int) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer[0],
            v3_and_below_producer_epoch=self.producer[1],
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=(partition,)),),
        )

        def error_of(found: Any) -> int:
            return int(found.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

        assert error_of(self._ask(request, 3, error_of)) == 0

    def add_offsets(self, group: str) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            group_id=group,
        )
        assert self._ask(request, 3, lambda found: int(found.error_code)).error_code == 0

    def commit_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
        """TxnOffsetCommit: the error of each partition."""
        topics = tuple(
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                    for (name, index), offset in offsets.items()
                    if name == topic
                ),
            )
            for topic in dict.fromkeys(name for name, _ in offsets)
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            topics=topics,
        )
        answer = self._persist(
            lambda: self.cluster.ask(request, 5 if self.bumps else 3, to=self._coordinator_of(group)),
            lambda found: int(found.topics[0].partitions[0].error_code),
        )
        return {
            (topic.name, each.partition_index): each.error_code for topic in answer.topics for each in topic.partitions
        }

    def _coordinator_of(self, group: str) -> int:
        node_id = next(node.node_id for node in self.cluster.world.nodes())
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))
        answer = self._persist(
            lambda: self.cluster.ask(request, 4, to=node_id), lambda found: int(found.coordinators[0].error_code)
        )
        return int(answer.coordinators[0].node_id)

    def end(self, *, committed: bool = True, waits: bool = True) -> None:
        """EndTxn; with `waits` until its markers are written as well."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            committed=committed,
        )
        answer = self._ask(request, 5 if self.bumps else 3, lambda found: int(found.error_code))
        assert answer.error_code == 0, answer
        if self.bumps:
            self.producer = (answer.producer_id, answer.producer_epoch)
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

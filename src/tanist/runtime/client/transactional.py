"""The transactions of one transactional id: the producer's side of KIP-98 and KIP-447, through `Client`.

Owns the producer's id and epoch, the requests to its coordinator, and the writes of one batch at a time, to partitions
that were added before. Sequence numbers are the caller's. The requests are those of
clients before KIP-890, which every Kafka knows. Use one `initialize` for each transaction: its new epoch is what tells
a late request from one of the next transaction.

Errors that may pass are tried again until `Client.timeout_s` is over. `KafkaError` with PRODUCER_FENCED or
INVALID_PRODUCER_EPOCH: another producer has this transactional id now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.coordinators import CoordinatorKind, coordinator_of
from tanist.runtime.client.groups import offsets_in
from tanist.runtime.client.records import produce
from tanist.runtime.client.topic_partition import TopicPartition
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from tanist.wire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from tanist.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tanist.wire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from tanist.wire.messages.end_txn_request import EndTxnRequest
from tanist.wire.messages.end_txn_response import EndTxnResponse
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.offset_fetch_request import OffsetFetchRequest
from tanist.wire.messages.offset_fetch_response import OffsetFetchResponse
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tanist.wire.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from tanist.wire.schema import Request, Response

R = TypeVar("R", bound=Response)

PRODUCE_VERSION_MAX: Final = 11
"""From 12 on a batch adds its partition by itself, and the transaction is of KIP-890's second part."""
_INIT_VERSION: Final = 5
_ADD_PARTITIONS_VERSION: Final = 3
_ADD_OFFSETS_VERSION: Final = 4
_COMMIT_VERSION: Final = 4
_END_VERSION: Final = 4
_FETCH_VERSION: Final = 7


class TransactionalProducer:
    """One transactional id. A transaction is `initialize`, `add_partitions`, the writes, `commit_offsets`, `end`."""

    def __init__(self, client: Client, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        """`timeout_ms`: after so long the coordinator aborts a transaction that is not ended."""
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.producer_epoch = -1
        self._client = client
        self._timeout_ms = timeout_ms

    def initialize(self) -> None:
        """Get an epoch: earlier producers are fenced, and the transaction that they had open is ended."""
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms)
        answer = self._ask(request, InitProducerIdResponse, _INIT_VERSION, lambda found: found.error_code)
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions to which the transaction will write."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes))
                for topic, indexes in indexes_by_topic(partitions).items()
            ),
        )

        def error_of(answer: AddPartitionsToTxnResponse) -> int:
            topics = answer.results_by_topic_v3_and_below
            return _first(each.partition_error_code for topic in topics for each in topic.results_by_partition)

        self._ask(request, AddPartitionsToTxnResponse, _ADD_PARTITIONS_VERSION, error_of)

    def write(
        self,
        topic: str,
        partition: int,
        records: Sequence[NewRecord],
        base_sequence: int,
        *,
        request_timeout_ms: int = 10_000,
        answer_within_s: float | None = None,
    ) -> int:
        """Append one batch of the open transaction; gives the offset of its first record.

        `base_sequence` counts the records of this epoch in the partition. -1: it was in the log already. The leader may
        wait for the other replicas for `request_timeout_ms`, each time that it is asked; `answer_within_s` is for each
        answer.
        """
        batch = encode_batch(
            records,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=base_sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=partition, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=request_timeout_ms,
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )
        return self._client.persist(
            lambda: produce(
                self._client,
                topic,
                partition,
                request,
                max_version=PRODUCE_VERSION_MAX,
                timeout_s=answer_within_s,
            )
        )

    def committed_offsets(self, group: str) -> dict[TopicPartition, int]:
        """What the group has committed, once no transaction is open that may change it (KIP-447)."""
        request = OffsetFetchRequest(group_id=group, topics=None, require_stable=True)

        def error_of(answer: OffsetFetchResponse) -> int:
            return answer.error_code or _first(each.error_code for topic in answer.topics for each in topic.partitions)

        answer = self._ask(request, OffsetFetchResponse, _FETCH_VERSION, error_of, group=group)
        return offsets_in(answer)

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of a group that has no members: they count if the transaction is committed."""
        adding = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
        )
        self._ask(adding, AddOffsetsToTxnResponse, _ADD_OFFSETS_VERSION, lambda answer: answer.error_code)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=tuple(
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=tuple(
                        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offsets[topic, index])
                        for index in indexes
                    ),
                )
                for topic, indexes in indexes_by_topic(offsets).items()
            ),
        )

        def error_of(answer: TxnOffsetCommitResponse) -> int:
            return _first(each.error_code for topic in answer.topics for each in topic.partitions)

        self._ask(request, TxnOffsetCommitResponse, _COMMIT_VERSION, error_of, group=group)

    def end(self, *, committed: bool) -> None:
        """Commit or abort. If this raises `Unreachable`, the outcome is known after the next `initialize`."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=committed,
        )
        self._ask(request, EndTxnResponse, _END_VERSION, lambda answer: answer.error_code)

    def _ask(
        self,
        request: Request,
        answers: type[R],
        max_version: int,
        error_of: Callable[[R], int],
        *,
        group: str | None = None,
    ) -> R:
        """Ask the coordinator of the transactional id, or of a group, wherever it is by then."""
        kind = CoordinatorKind.TRANSACTION if group is None else CoordinatorKind.GROUP
        key = self.transactional_id if group is None else group

        def attempt() -> R:
            node_id = coordinator_of(self._client, kind, key)
            answer = self._client.ask(request, answers, node_id=node_id, max_version=max_version)
            error = error_of(answer)
            if error:
                raise KafkaError(error, f"{type(request).__name__.removesuffix('Request')} of {key}")
            return answer

        return self._client.persist(attempt)


def _first(codes: Iterable[int]) -> int:
    """The first that is an error; 0 if none is."""
    return next(filter(None, codes), 0)

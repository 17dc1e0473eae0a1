"""Transactions of any Kafka cluster, through `Client` (KIP-664): what is open, what hangs, and how to end it.

A transaction *hangs* when a partition has it open and no coordinator knows of it: no marker will come, and readers of
committed records wait for ever. An abort writes the marker itself, to that partition alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tanist.client.requests import CoordinatorKind
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.asking import ask_leader
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.coordinators import ask_all_coordinators, coordinator_of
from tanist.runtime.client.transactional import TransactionalProducer
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from tanist.wire.messages.describe_producers_response import DescribeProducersResponse
from tanist.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from tanist.wire.messages.describe_transactions_response import DescribeTransactionsResponse
from tanist.wire.messages.list_transactions_request import ListTransactionsRequest
from tanist.wire.messages.list_transactions_response import ListTransactionsResponse
from tanist.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tanist.wire.messages.write_txn_markers_response import WriteTxnMarkersResponse


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int
    """Wall clock; -1 if no transaction is open."""
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """A producer as the leader of a partition remembers it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int
    """Of its open transaction; -1 if none is open."""


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    topic: str
    partition: int
    producer: ProducerDescription


def list_transactions(
    client: Client,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[TransactionListing]:
    """All transactional ids, by name: every broker is asked for those that it coordinates.

    `KafkaError` if there may be others: what a coordinator could not say must not be taken for hanging.
    """
    request = ListTransactionsRequest(
        state_filters=tuple(states),
        producer_id_filters=tuple(producer_ids),
        duration_filter=longer_than_ms,
        transactional_id_pattern=pattern,
    )
    answers = ask_all_coordinators(client, CoordinatorKind.TRANSACTION, request, ListTransactionsResponse)
    found: list[TransactionListing] = []
    for broker_id, answer in answers.items():
        if answer.unknown_state_filters:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"no such state: {', '.join(answer.unknown_state_filters)}")
        found += [
            TransactionListing(each.transactional_id, broker_id, each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        ]
    return sorted(found, key=lambda listing: listing.transactional_id)


def describe_transaction(client: Client, transactional_id: str) -> TransactionDescription:
    """The state of an id. `KafkaError` (TRANSACTIONAL_ID_NOT_FOUND) if it is unknown."""

    def attempt() -> TransactionDescription:
        coordinator = coordinator_of(client, CoordinatorKind.TRANSACTION, transactional_id)
        request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        answer = client.ask(request, DescribeTransactionsResponse, node_id=coordinator)
        state = answer.transaction_states[0]
        if state.error_code:
            missing = state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            said = f"there is no transactional id {transactional_id}" if missing else transactional_id
            raise KafkaError(state.error_code, said)
        return TransactionDescription(
            transactional_id,
            coordinator,
            state.producer_id,
            state.producer_epoch,
            state.transaction_state,
            state.transaction_timeout_ms,
            state.transaction_start_time_ms,
            tuple(sorted((topic.topic, index) for topic in state.topics for index in topic.partitions)),
        )

    return client.persist(attempt)


def describe_producers(client: Client, topic: str, partition: int) -> list[ProducerDescription]:
    """The producers that the leader of a partition remembers, by id."""
    request = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(partition,)),))

    def attempt() -> list[ProducerDescription]:
        answer = ask_leader(client, topic, partition, request, DescribeProducersResponse)
        return sorted(
            (
                ProducerDescription(
                    each.producer_id,
                    each.producer_epoch,
                    each.coordinator_epoch,
                    each.last_sequence,
                    each.last_timestamp,
                    each.current_txn_start_offset,
                )
                for each in answer.topics[0].partitions[0].active_producers
            ),
            key=lambda producer: producer.producer_id,
        )

    return client.persist(attempt)


def find_hanging(
    client: Client, partitions: Iterable[TopicPartition], *, older_than_ms: int, now_ms: int
) -> list[HangingTransaction]:
    """Transactions that are open in a partition since `older_than_ms` ago, and that no coordinator has open there."""
    suspects = [
        HangingTransaction(topic, partition, producer)
        for topic, partition in partitions
        for producer in describe_producers(client, topic, partition)
        if producer.start_offset >= 0 and now_ms - producer.last_timestamp_ms >= older_than_ms
    ]
    if not suspects:
        return []
    producer_ids = sorted({suspect.producer.producer_id for suspect in suspects})
    known = _open_partitions(client, producer_ids)
    return [
        suspect
        for suspect in suspects
        if (suspect.topic, suspect.partition) not in known.get(suspect.producer.producer_id, ())
    ]


def _open_partitions(client: Client, producer_ids: Sequence[int]) -> dict[int, Collection[TopicPartition]]:
    """The partitions of the transactions that producers have open, as their coordinators know."""
    found: dict[int, Collection[TopicPartition]] = {}
    for listing in list_transactions(client, producer_ids=producer_ids):
        described = describe_transaction(client, listing.transactional_id)
        found[described.producer_id] = described.partitions
    return found


def abort_transaction(client: Client, topic: str, partition: int, producer: ProducerDescription) -> None:
    """Write the ABORT marker of a producer's open transaction to one partition. `KafkaError`."""
    request = WriteTxnMarkersRequest(
        markers=(
            WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                transaction_result=False,
                coordinator_epoch=max(0, producer.coordinator_epoch),
                topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(partition,)),),
            ),
        )
    )

    client.persist(lambda: ask_leader(client, topic, partition, request, WriteTxnMarkersResponse))


def force_terminate(client: Client, transactional_id: str) -> tuple[int, int]:
    """Fence the producer of an id, and abort its transaction. Gives the new producer id and epoch. `KafkaError`."""
    describe_transaction(client, transactional_id)  # an unknown id is not to be made by this
    producer = TransactionalProducer(client, transactional_id)
    producer.initialize()
    return producer.transactions.producer

"""AddPartitionsToTxn (key 24), versions 0-5: the partitions to which a transaction will write.

Clients send versions 0-3, for one transaction. From version 4 on other brokers send it: to have a partition verified
before its first batch, or added for a client of `transaction.version` 2 (KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.broker.transactions.service import Transactions
from tanist.coordinator.transactions.fencing import fenced_error
from tanist.coordinator.transactions.state import EPOCH_BUMP_VERSION, NO_BUMP_VERSION, TopicIndex
from tanist.ports import Clock
from tanist.security import requirements as rows
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import INTERNAL_TOPICS
from tanist.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tanist.wire.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

_FENCED_VERSION = 2
_BATCHED_VERSION = 4

OnErrors = Callable[[dict[TopicIndex, int]], None]


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxn:
    """The handler of AddPartitionsToTxn."""

    clock: Clock
    metadata: MetadataView
    transactions: Transactions

    def handle(self, request: AddPartitionsToTxnRequest, call: Call) -> None:
        """Add or verify the partitions of each transaction; the answer waits until all are in the log."""
        if call.version >= _BATCHED_VERSION:
            self._handle_batch(request, call)
            return
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )

        def added(errors: dict[TopicIndex, int]) -> None:
            knows_fenced = call.version >= _FENCED_VERSION
            known = {each: int(fenced_error(error, knows_fenced=knows_fenced)) for each, error in errors.items()}
            results = _results_of(request.v3_and_below_topics, known)
            call.reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))

        denied = [
            topic.name
            for topic in transaction.topics
            if topic.name in INTERNAL_TOPICS or not call.may(rows.ADD_PARTITIONS_TO_TXN_TOPIC, topic.name)
        ]
        if denied:
            # None is added: a transaction that cannot write all that it wants will not be committed.
            partitions = _partitions_of(transaction.topics)
            errors = self._unknown(partitions) or dict.fromkeys(partitions, int(ErrorCode.OPERATION_NOT_ATTEMPTED))
            code = int(rows.ADD_PARTITIONS_TO_TXN_TOPIC.code)
            added({each: code if each[0] in denied else error for each, error in errors.items()})
            return
        self._add(transaction, NO_BUMP_VERSION, call.later(added))

    def _handle_batch(self, request: AddPartitionsToTxnRequest, call: Call) -> None:
        results: list[AddPartitionsToTxnResult] = []
        if not request.transactions:
            call.reply(AddPartitionsToTxnResponse())
        for transaction in request.transactions:

            def handle_response(
                errors: dict[TopicIndex, int], transaction: AddPartitionsToTxnTransaction = transaction
            ) -> None:
                results.append(
                    AddPartitionsToTxnResult(
                        transactional_id=transaction.transactional_id,
                        topic_results=_results_of(transaction.topics, errors),
                    )
                )
                if len(results) == len(request.transactions):
                    call.reply(AddPartitionsToTxnResponse(results_by_transaction=tuple(results)))

            if transaction.verify_only:
                self._verify(transaction, handle_response)
            else:
                self._add(transaction, EPOCH_BUMP_VERSION, call.later(handle_response))

    def _unknown(self, partitions: list[TopicIndex]) -> dict[TopicIndex, int] | None:
        """The errors if one of them is not there: a transaction that can't write all it wants will not be committed."""
        unknown = [each for each in partitions if self.metadata.current_leader(*each) is None]
        if not unknown:
            return None
        errors = dict.fromkeys(partitions, int(ErrorCode.OPERATION_NOT_ATTEMPTED))
        return errors | dict.fromkeys(unknown, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    def _verify(self, transaction: AddPartitionsToTxnTransaction, on_errors: OnErrors) -> None:
        partitions = _partitions_of(transaction.topics)
        errors = self._unknown(partitions)
        if errors is not None:
            on_errors(errors)
            return
        found = self.transactions.coordinator().find(transaction.transactional_id)
        if isinstance(found, int):
            on_errors(dict.fromkeys(partitions, found))
            return
        producer = (transaction.producer_id, transaction.producer_epoch)
        on_errors(found.shard.verify(transaction.transactional_id, producer, partitions))

    def _add(self, transaction: AddPartitionsToTxnTransaction, client_version: int, on_errors: OnErrors) -> None:
        partitions = _partitions_of(transaction.topics)
        errors = self._unknown(partitions)
        if errors is not None:
            on_errors(errors)
            return
        coordinator = self.transactions.coordinator()
        found = coordinator.find(transaction.transactional_id)
        if isinstance(found, int):
            on_errors(dict.fromkeys(partitions, found))
            return

        def added(error: int) -> None:
            on_errors(dict.fromkeys(partitions, int(error)))

        decide = partial(
            found.shard.add_partitions,
            transaction.transactional_id,
            (transaction.producer_id, transaction.producer_epoch),
            frozenset(partitions),
            client_version,
            added,
            self.clock.wall_ms(),
        )
        coordinator.carry_out(found, decide, partial(added, ErrorCode.UNKNOWN_SERVER_ERROR))


def build(components: NodeComponents) -> Handler:
    return AddPartitionsToTxn(components.context.clock, components.metadata, components.transactions).handle


def _partitions_of(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicIndex]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _results_of(
    topics: Iterable[AddPartitionsToTxnTopic], errors: dict[TopicIndex, int]
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=errors[topic.name, index])
                for index in topic.partitions
            ),
        )
        for topic in topics
    )

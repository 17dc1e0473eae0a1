"""Whether a partition belongs to a producer's transaction, asked of the coordinator before the first append (KIP-890).

A leader that appended a batch of a transaction that has ended would keep it open for ever: no marker comes. So the
first batch of a transaction waits until the coordinator has said that the partition is in it. For clients of
`transaction.version` 2 the same request adds the partition. Questions to one coordinator go together, one request at a
time. The caller holds what waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tanist.broker.context import NodeContext
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.peers import Peer, Peers
from tanist.broker.transactions.transaction_coordinator import TransactionCoordinator
from tanist.coordinator.transactions.state import EPOCH_BUMP_VERSION, TopicIndex
from tanist.ports import Timer
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import indexes_by_topic
from tanist.wire.internal_topics import TRANSACTIONS_TOPIC, partition_of
from tanist.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tanist.wire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse

_VERSION: Final = 5
_TIMEOUT_MS: Final = 10_000
_MAX_FRAME_BYTES: Final = 4 << 20

OnVerified = Callable[[dict[TopicIndex, int]], None]
"""Gets the error of each partition, as the coordinator said it."""


@dataclass(slots=True, eq=False)
class _Question:
    """One producer's partitions."""

    transactional_id: str
    producer: tuple[int, int]
    partitions: tuple[TopicIndex, ...]
    adds: bool
    on_verified: OnVerified
    asked_ms: int

    def fail(self, error: int) -> None:
        self.on_verified(dict.fromkeys(self.partitions, int(error)))


class TransactionVerifier:
    """Questions to the coordinators of transactions."""

    def __init__(
        self, context: NodeContext, metadata: MetadataView, coordinator: Callable[[], TransactionCoordinator]
    ) -> None:
        """`coordinator` gives the one of this broker, for the transactions that it has itself."""
        self._context = context
        self._metadata = metadata
        self._coordinator = coordinator
        # A transaction that is being completed is asked about again: the producer has begun the next one (KAFKA-18575).
        self._retry_ms = context.config.add_partitions_to_txn_retry_backoff_ms
        self._patience_ms = context.config.add_partitions_to_txn_retry_backoff_max_ms
        self._peers: Peers[list[_Question]] = Peers(
            context, metadata.inter_broker_endpoint, "verification", _MAX_FRAME_BYTES, list, self._send
        )
        self._timers: set[Timer] = set()
        self._closed = False
        self.answered = 0
        self.refused = 0
        self.total_ms = 0
        """Of all that were answered, from the first question to the answer."""

    def verify(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Iterable[TopicIndex],
        on_verified: OnVerified,
        *,
        adds: bool,
    ) -> None:
        """Ask whether the partitions are in the transaction of `producer` (id, epoch); with `adds` put them there."""
        now_ms = self._context.clock.now_ms()
        self._ask(_Question(transactional_id, producer, tuple(partitions), adds, on_verified, now_ms))

    def close(self) -> None:
        """The broker is going down."""
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        self._peers.close()

    def _ask(self, question: _Question) -> None:
        topic = self._metadata.image.topic(TRANSACTIONS_TOPIC)
        if self._closed or topic is None:
            question.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        index = partition_of(question.transactional_id, len(topic.partitions))
        leader = topic.partitions[index].leader
        if leader == self._context.node_id:
            self._ask_here(question)
            return
        peer = self._peers.find(leader)
        if peer is None:
            question.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        peer.queue.append(question)
        peer.schedule()

    def _ask_here(self, question: _Question) -> None:
        coordinator = self._coordinator()
        found = coordinator.find(question.transactional_id)
        if isinstance(found, int):
            question.fail(found)
        elif not question.adds:
            answers = found.shard.verify(question.transactional_id, question.producer, question.partitions)
            self._handle_response(question, answers)
        else:

            def added(error: int) -> None:
                self._handle_response(question, dict.fromkeys(question.partitions, int(error)))

            decide = partial(
                found.shard.add_partitions,
                question.transactional_id,
                question.producer,
                frozenset(question.partitions),
                EPOCH_BUMP_VERSION,
                added,
                self._context.clock.wall_ms(),
            )
            coordinator.carry_out(found, decide, partial(added, ErrorCode.UNKNOWN_SERVER_ERROR))

    def _send(self, peer: Peer[list[_Question]]) -> None:
        sent, peer.queue = self._one_of_each(peer.queue)
        if not sent:
            return
        request = AddPartitionsToTxnRequest(
            transactions=tuple(
                AddPartitionsToTxnTransaction(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer[0],
                    producer_epoch=each.producer[1],
                    verify_only=not each.adds,
                    topics=tuple(
                        AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes))
                        for topic, indexes in indexes_by_topic(each.partitions).items()
                    ),
                )
                for each in sent
            )
        )
        peer.call(request, _VERSION, _TIMEOUT_MS, partial(self._received, sent))

    @staticmethod
    def _one_of_each(queue: list[_Question]) -> tuple[list[_Question], list[_Question]]:
        """The answer names questions by their transactional id: one of each in a request. And the rest."""
        first: dict[str, _Question] = {}
        rest: list[_Question] = []
        for each in queue:
            if each.transactional_id in first:
                rest.append(each)
            else:
                first[each.transactional_id] = each
        return list(first.values()), rest

    def _received(self, sent: list[_Question], response: AddPartitionsToTxnResponse | None) -> None:
        try:
            answers = _answers_of(sent, response)
        except Exception as error:
            self._context.unexpected.met("an answer of a transaction coordinator", error)
            unknown = int(ErrorCode.UNKNOWN_SERVER_ERROR)
            answers = [(question, dict.fromkeys(question.partitions, unknown)) for question in sent]
        for question, errors in answers:
            self._handle_response(question, errors)

    def _handle_response(self, question: _Question, errors: dict[TopicIndex, int]) -> None:
        now_ms = self._context.clock.now_ms()
        if (
            question.adds
            and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
            and now_ms - question.asked_ms < self._patience_ms
            and not self._closed
        ):

            def again() -> None:
                self._timers.discard(timer)
                self._ask(question)

            timer = self._context.clock.call_at(now_ms + self._retry_ms, again)
            self._timers.add(timer)
            return
        self.answered += 1
        self.refused += any(errors.values())
        self.total_ms += now_ms - question.asked_ms
        question.on_verified(errors)


def _answers_of(
    sent: Sequence[_Question], response: AddPartitionsToTxnResponse | None
) -> list[tuple[_Question, dict[TopicIndex, int]]]:
    answers: dict[str, dict[TopicIndex, int]] = {}
    for result in response.results_by_transaction if response is not None else ():
        answers[result.transactional_id] = {
            (topic.name, each.partition_index): each.partition_error_code
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
    missing = ErrorCode.NETWORK_EXCEPTION if response is None else response.error_code
    error = int(missing or ErrorCode.UNKNOWN_SERVER_ERROR)
    found = []
    for question in sent:
        known = answers.get(question.transactional_id, {})
        found.append((question, {each: known.get(each, error) for each in question.partitions}))
    return found

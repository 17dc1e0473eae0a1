"""The client's side of the transactions of one transactional id (KIP-98, KIP-360, KIP-447, KIP-890).

Owns the producer's id, epoch and sequence numbers, and which request may follow which:

    state      may ask                                    a refusal that is not retriable leads to
    NEW        initialize, abort                          NEW
    READY      initialize, add, batch, offsets, end       ABORTING; NEW if the producer is fenced, or the end is refused
    ABORTING   initialize, abort                          NEW

What is not allowed raises, and changes nothing: after a refusal nothing can be committed but a later transaction.

A driver sends what it is given, again while the answer's meaning is retriable, and gives each answer to
`handle_response`. It may send the batches of several partitions at once; of the other requests one is under way at a
time.

A producer that `adds_itself` is one of KIP-890's second part: its batches and offsets add themselves to the
transaction, and each end gives it the next epoch. An older one adds them before; its driver initializes again before
each transaction if late requests must not join the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from tanist.client.errors import Meaning, meaning_in
from tanist.client.offsets import NO_EPOCH, offset_fetch
from tanist.client.offsets import VERSION_MAX as OFFSETS_VERSION_MAX
from tanist.client.requests import Ask, Coordinator, CoordinatorKind, Leader
from tanist.client.sequences import Sequences, produce_request
from tanist.client.topic_partition import TopicPartition
from tanist.invariants import InvariantError
from tanist.wire.batch import NewRecord
from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from tanist.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tanist.wire.messages.end_txn_request import EndTxnRequest
from tanist.wire.messages.end_txn_response import EndTxnResponse
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.offset_fetch_response import OffsetFetchResponse
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tanist.wire.schema import Request, Response


class State(Enum):
    NEW = "it has no epoch, or one that may not be valid any more"
    READY = "a transaction may begin, or is open"
    ABORTING = "the transaction that is open can only be aborted"


_INIT_VERSION: Final = 5
_ADD_PARTITIONS_VERSION: Final = 3
"""Later ones are for brokers."""
_ADD_OFFSETS_VERSION: Final = 4
PRODUCE_VERSION_MAX: Final = 11
_NAMED: Final = (PRODUCE_VERSION_MAX, 4, 4)
"""The last versions of Produce, TxnOffsetCommit and EndTxn of a producer that adds partitions by requests."""
_ADDING: Final = (12, 5, 5)
"""Those of one that `adds_itself`."""


class Transactions:
    """One transactional id, one transaction after the other."""

    def __init__(self, transactional_id: str, *, timeout_ms: int, adds_itself: bool = False) -> None:
        """`timeout_ms`: after so long the coordinator aborts a transaction that is not ended."""
        self.transactional_id = transactional_id
        self.adds_itself = adds_itself
        self.state = State.NEW
        self.sequences = Sequences()
        self._timeout_ms = timeout_ms
        self._produce_version, self._commit_version, self._end_version = _ADDING if adds_itself else _NAMED

    @property
    def producer(self) -> tuple[int, int]:
        """Producer id and epoch."""
        return self.sequences.producer

    # -- requests

    def initialize(self, *, keeps_id: bool = False) -> Ask:
        """Get an epoch: earlier producers are fenced, and the transaction that they had open is ended.

        `keeps_id`: refused if this producer is fenced itself by then (KIP-360).
        """
        producer_id, producer_epoch = self.producer if keeps_id else (-1, -1)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        return self._of_transaction(request, _INIT_VERSION)

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> Ask | None:
        """Partitions to which the transaction will write; None if batches add them."""
        self._must_be(State.READY)
        if self.adds_itself:
            return None
        producer_id, producer_epoch = self.producer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=producer_epoch,
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes))
                for topic, indexes in indexes_by_topic(partitions).items()
            ),
        )
        return self._of_transaction(request, _ADD_PARTITIONS_VERSION)

    def batch(self, where: TopicPartition, records: Sequence[NewRecord], *, timeout_ms: int) -> Ask:
        """Append the next batch of a partition. Its leader may wait for the other replicas for `timeout_ms`.

        Once it is written: `written`. Until then the next one has the same sequence number.
        """
        self._must_be(State.READY)
        batch = self.sequences.batch(where, records, transactional=True)
        request = produce_request(where, batch, timeout_ms=timeout_ms, transactional_id=self.transactional_id)
        return Ask(Leader(*where), request, self._produce_version)

    def written(self, where: TopicPartition, count: int) -> None:
        """The last batch of so many records is in the log."""
        self.sequences.advance(where, count)

    def stable_offsets(self, group: str, partitions: Iterable[TopicPartition] | None = None) -> Ask:
        """What the group has committed, once no transaction is open that may change it."""
        return _of_group(group, offset_fetch(group, partitions, require_stable=True), OFFSETS_VERSION_MAX)

    def add_offsets(self, group: str) -> Ask | None:
        """The group whose offsets the transaction will commit; None if the commit adds it."""
        self._must_be(State.READY)
        if self.adds_itself:
            return None
        producer_id, producer_epoch = self.producer
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            group_id=group,
        )
        return self._of_transaction(request, _ADD_OFFSETS_VERSION)

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], *, member_id: str = "", epoch: int = NO_EPOCH
    ) -> Ask:
        """Offsets that count if the transaction is committed, of a group without members or as one of them."""
        self._must_be(State.READY)
        producer_id, producer_epoch = self.producer
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            member_id=member_id,
            generation_id=epoch,
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
        return _of_group(group, request, self._commit_version)

    def end(self, *, committed: bool) -> Ask:
        """Commit or abort. Without an answer the outcome is known after the next `initialize`."""
        if committed:
            self._must_be(State.READY)
        producer_id, producer_epoch = self.producer
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            committed=committed,
        )
        return self._of_transaction(request, self._end_version)

    # -- answers

    def handle_response(self, answer: Response | None) -> Meaning:
        """An answer to one of its requests, or None."""
        meaning = meaning_in(answer)
        if meaning.is_retriable or isinstance(answer, OffsetFetchResponse):
            return meaning
        ends = isinstance(answer, InitProducerIdResponse | EndTxnResponse)
        if meaning is not Meaning.DONE:
            self.state = State.NEW if ends or meaning is Meaning.FENCED else State.ABORTING
        elif isinstance(answer, InitProducerIdResponse | EndTxnResponse):
            following = (answer.producer_id, answer.producer_epoch)
            self.begin_as(following if answer.producer_id >= 0 else self.producer)
        return meaning

    def begin_as(self, producer: tuple[int, int]) -> None:
        """Continue with this id and epoch, which the coordinator has given out."""
        self.sequences.begin(producer)
        self.state = State.READY

    # -- inner

    def _of_transaction(self, request: Request, version_max: int) -> Ask:
        return Ask(Coordinator(CoordinatorKind.TRANSACTION, self.transactional_id), request, version_max)

    def _must_be(self, *states: State) -> None:
        if self.state not in states:
            raise InvariantError(
                "a transaction is asked for what its state allows", state=self.state.name, producer=self.producer
            )


def _of_group(group: str, request: Request, version_max: int) -> Ask:
    return Ask(Coordinator(CoordinatorKind.GROUP, group), request, version_max)

"""Whether a transaction that a partition has open will ever get its marker, and which marker it gets instead.

A transaction hangs when its marker was in the partition once, and an unclean election has taken it away (KAFKA-20716):
for its coordinator it is over. Owns the decision, as a function of what the partition has and of what the coordinators
know. It must never end a transaction that its coordinator will end.
"""

from __future__ import annotations

from typing import NamedTuple

from tanist.coordinator.transactions.state import EPOCH_BUMP_VERSION, TopicIndex, TransactionState

_ENDING = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class OpenTransaction(NamedTuple):
    """A transaction that a partition has open. Two are the same if nothing was written to it in between."""

    partition: TopicIndex
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int


class KnownTransaction(NamedTuple):
    """What its coordinator says of the transactional id that has the producer id now."""

    transactional_id: str
    state: TransactionState
    producer_epoch: int
    client_version: int
    """-1 if the coordinator does not say it."""
    partitions: frozenset[TopicIndex]


class Ending(NamedTuple):
    """The marker that a hanging transaction gets."""

    committed: bool
    producer_epoch: int
    transaction_version: int
    reason: str
    """What is known of its outcome, for the operator."""


_UNKNOWN = "whether it had been committed is not known"


def aborted(transaction: OpenTransaction) -> Ending:
    """The marker of a transaction whose outcome nobody knows."""
    return Ending(False, transaction.producer_epoch, 0, _UNKNOWN)


def is_of_a_later_one(transaction: OpenTransaction, epoch: int, *, committed: bool) -> bool:
    """Whether a coordinator's marker ends a later transaction of the same producer than the one that is open.

    A commit has the epoch of the batches, or (with bumps) the next; an abort that fences is one or two ahead. Version 1
    of WriteTxnMarkers does not say whether the client bumps its epoch.
    """
    return epoch > transaction.producer_epoch + (1 if committed else 2)


def ending_of(transaction: OpenTransaction, known: KnownTransaction | None) -> Ending | None:
    """How to end it; None if its coordinator will do so.

    `known` is from after the transaction was found open; None: no transactional id has its producer id.
    """
    epoch = transaction.producer_epoch
    abort = aborted(transaction)
    if known is None:
        return abort
    if transaction.partition in known.partitions:
        if known.state in _ENDING:
            return None
        if known.state is TransactionState.ONGOING and known.producer_epoch == epoch:
            return None
    if known.producer_epoch == epoch + 1 and known.client_version >= EPOCH_BUMP_VERSION:
        # Each end bumps the epoch: the last transaction that ended is this one.
        if known.state is TransactionState.COMPLETE_COMMIT:
            return Ending(True, known.producer_epoch, EPOCH_BUMP_VERSION, "its coordinator had committed it")
        if known.state is TransactionState.COMPLETE_ABORT:
            return Ending(False, known.producer_epoch, EPOCH_BUMP_VERSION, "its coordinator had aborted it")
    return abort

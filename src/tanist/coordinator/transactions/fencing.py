"""The fencing of producers by their epochs (KIP-98, KIP-360, KIP-890).

Owns the comparison of a producer's id and epoch with the values of its transactional id, for each kind of request, and
the errors, as a client of an older version can act on them. Changes nothing: `transaction_shard` has the requests.
"""

from __future__ import annotations

from tanist.coordinator.transactions.state import (
    COMPLETED,
    MAX_EPOCH,
    NO_PRODUCER_EPOCH,
    ONGOING,
    PREPARED,
    TransactionValues,
)
from tanist.wire.errors import ErrorCode


def end_error(values: TransactionValues, producer: tuple[int, int], *, bumps: bool) -> tuple[int, bool]:
    """The error of an EndTxn, and whether it repeats one that has bumped the epoch (`bumps`: a client of KIP-890)."""
    if bumps:
        return _end_with_bump_error(values, producer)
    producer_id, epoch = producer
    if values.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING, False
    return ErrorCode.NONE if values.producer_epoch == epoch else ErrorCode.PRODUCER_FENCED, False


def _end_with_bump_error(values: TransactionValues, producer: tuple[int, int]) -> tuple[int, bool]:
    """A client may abort its next transaction at once, before the markers of its last are written (franz-go does)."""
    if _begins_next(values, producer):
        return ErrorCode.CONCURRENT_TRANSACTIONS, False
    producer_id, epoch = producer
    overflowed = values.previous_producer_id == producer_id and epoch == MAX_EPOCH - 1 and values.producer_epoch == 0
    # The last epoch comes with the next producer id if it is the client's end, and fences if without (KAFKA-20090).
    bumped = values.producer_epoch == epoch + 1 and (values.producer_epoch < MAX_EPOCH or values.next_producer_id >= 0)
    retried = bumped or overflowed
    if values.producer_id != producer_id and not overflowed:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING, retried
    if values.state in PREPARED:
        valid = bumped
    elif values.state in COMPLETED:
        valid = retried or values.producer_epoch == epoch
    else:
        valid = values.producer_epoch == epoch
    return ErrorCode.NONE if valid else ErrorCode.PRODUCER_FENCED, retried


def partitions_error(values: TransactionValues | None, producer: tuple[int, int]) -> int:
    """The error of a request that adds or verifies partitions of the producer's transaction; None: no such id."""
    if values is not None and _begins_next(values, producer):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if values is None or values.producer_id != producer[0]:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if values.producer_epoch == producer[1] else ErrorCode.PRODUCER_FENCED


def may_initialize_again(values: TransactionValues, producer: tuple[int, int]) -> bool:
    """Whether a producer may go on with this id: it is the present one, or the one before a rotation (KIP-360).

    A transaction is ended by its own epoch only: a request of an earlier one is late.
    """
    producer_id, epoch = producer
    if values.state is ONGOING and epoch != values.producer_epoch:
        return False
    return (
        values.producer_epoch == NO_PRODUCER_EPOCH
        or producer_id == values.producer_id
        or (producer_id == values.previous_producer_id and epoch >= MAX_EPOCH - 1)
    )


def _begins_next(values: TransactionValues, producer: tuple[int, int]) -> bool:
    """Whether the producer has the answer to its last end, whose markers are on their way, and begins the next."""
    rotates = values.next_producer_id >= 0
    answered = (values.next_producer_id, 0) if rotates else (values.producer_id, values.producer_epoch)
    return values.state in PREPARED and producer == answered


# -- clients of older versions


def fenced_error(error: int, *, knows_fenced: bool) -> int:
    """PRODUCER_FENCED is INVALID_PRODUCER_EPOCH for a client that does not know it (KIP-588)."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if error == ErrorCode.PRODUCER_FENCED and not knows_fenced else error


def verification_error(error: int, *, knows_abortable: bool) -> int:
    """A coordinator's refusal of a write; INVALID_TXN_STATE for a client that is older than KIP-890."""
    if error == ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return fenced_error(error, knows_fenced=False)

"""Errors of transactional requests, as a client of an older version can act on them."""

from __future__ import annotations

from tanist.wire.errors import ErrorCode


def fenced_error(error: int, *, knows_fenced: bool) -> int:
    """PRODUCER_FENCED is INVALID_PRODUCER_EPOCH for a client that does not know it (KIP-588)."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if error == ErrorCode.PRODUCER_FENCED and not knows_fenced else error


def verification_error(error: int, *, knows_abortable: bool) -> int:
    """A coordinator's refusal of a write; INVALID_TXN_STATE for a client that is older than KIP-890."""
    if error == ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return fenced_error(error, knows_fenced=False)

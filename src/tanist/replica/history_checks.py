"""Checks of a reader's history: its leader epoch, and the point where its log diverges from this one.

Owns the checks that a leader makes of its followers and that every replica makes of consumers: leader epochs
(rule 112, KIP-320) and divergence (rule 113, KIP-595). Nothing here changes anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tanist.replica.metadata import NO_EPOCH, UNKNOWN_OFFSET
from tanist.wire.errors import ErrorCode

if TYPE_CHECKING:
    from tanist.replica.ports import ReplicaLog

_NONE: Final = int(ErrorCode.NONE)
_OFFSET_OUT_OF_RANGE: Final = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_FENCED_LEADER_EPOCH: Final = int(ErrorCode.FENCED_LEADER_EPOCH)
_UNKNOWN_LEADER_EPOCH: Final = int(ErrorCode.UNKNOWN_LEADER_EPOCH)

_AGREES: Final = (_NONE, None)


def check_epoch(given: int, own: int) -> int:
    """The error for a request that names leader epoch `given`, -1 for none, at a replica in epoch `own` (rule 112)."""
    if given in (own, NO_EPOCH):
        return _NONE
    return _FENCED_LEADER_EPOCH if given < own else _UNKNOWN_LEADER_EPOCH


def divergence(
    log: ReplicaLog, latest_epoch: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, tuple[int, int] | None]:
    """(error, None), or (0, (epoch, end offset)) if a reader's history is no prefix of `log` beyond there (rule 113).

    `latest_epoch` is the log's: a reader whose last epoch it is, and who is not beyond the end, needs no look-up.
    """
    end = log.log_end_offset
    if last_fetched_epoch != NO_EPOCH and not (last_fetched_epoch == latest_epoch and fetch_offset <= end):
        epoch, end_of_epoch = log.epochs.end_offset_for(last_fetched_epoch, end)
        if epoch == NO_EPOCH or end_of_epoch == UNKNOWN_OFFSET or fetch_offset < log.log_start_offset:
            return _OFFSET_OUT_OF_RANGE, None
        if epoch < last_fetched_epoch or end_of_epoch < fetch_offset:
            return _NONE, (epoch, end_of_epoch)
    if fetch_offset > end or fetch_offset < log.log_start_offset:
        return _OFFSET_OUT_OF_RANGE, None
    return _AGREES

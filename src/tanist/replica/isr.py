"""A change of the ISR on its way through the controller.

Owns the state of a leader's one AlterPartition in flight (rules 5, 9), the shape of the answer, and the meaning of each
error in it (rule 18). The committed ISR is the controller's. While a change to it is pending, the leader must count
with every ISR that the controller may have by now: their union is the *maximal ISR*, and the high watermark waits for
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tanist.replica.effects import ProposeIsr
from tanist.wire.errors import ErrorCode

RETRY_BACKOFF_MS = 50
"""The pause before an AlterPartition that failed as a whole is sent again (rule 21)."""


@dataclass(frozen=True, slots=True)
class PendingIsr:
    """A proposal that the controller has not answered, and the ISR to count with until it does."""

    proposal: ProposeIsr
    maximal: frozenset[int]

    @property
    def proposed(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id, _ in self.proposal.isr)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionResult:
    """One partition's part of an AlterPartition response."""

    error: int
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1
    recovering: bool = False


class Verdict(Enum):
    """The consequence of an error in the answer."""

    ROLLED_BACK = "the controller has certainly not applied it: the committed ISR still holds"
    OVERTAKEN = "the controller knows better: wait, as large as before, for the metadata that says so"
    UNCLEAR = "it may or may not have been applied: ask again"


_ROLLED_BACK = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
_OVERTAKEN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


def verdict(error: int) -> Verdict:
    """Rule 18, for an `error` other than NONE."""
    if error in _ROLLED_BACK:
        return Verdict.ROLLED_BACK
    if error in _OVERTAKEN:
        return Verdict.OVERTAKEN
    return Verdict.UNCLEAR

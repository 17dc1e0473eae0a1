"""The outcome of each transactional batch of a log that is known in parts only (docs/salvage.md).

Owns one rule: the first marker of the same producer behind a batch ends its transaction. It is applied along *chains*,
batches that stood behind each other in one replica's log, with nothing between them that is not known. Chains that
share a batch, or meet at an offset within a leader epoch, are parts of the same log up to there: two logs that have the
same epoch at the same offset are equal below it. Behind that they may part, for they were cut off by several elections.
A batch that is committed behind one parting and aborted behind another is undecided, and so is one without a marker.

A log that begins within a transaction is no problem. Producer epochs are not looked at: a marker may have the epoch of
its transaction, or the next (KIP-890), and no broker writes one that skips an open transaction of its producer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from tanist.wire.control import ControlKind

Place: TypeAlias = tuple[int, int]
"""The leader epoch and the base offset of a batch."""


class TransactionOutcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNDECIDED = "undecided"
    """No marker is known, or two that disagree."""


class ChainedBatch(NamedTuple):
    """A batch, as far as outcomes need it."""

    epoch: int
    base_offset: int
    next_offset: int
    producer_id: int
    is_transactional: bool
    marker: int | None
    """The kind of a control record; None in a batch of records. A kind that cannot be read is -1."""

    @property
    def place(self) -> Place:
        return self.epoch, self.base_offset


Chain: TypeAlias = Sequence[ChainedBatch]
_Ends: TypeAlias = dict[int, TransactionOutcome]
"""By producer: how its next marker ends the transaction that is open."""

_OUTCOMES: Final = {
    int(ControlKind.COMMIT): TransactionOutcome.COMMITTED,
    int(ControlKind.ABORT): TransactionOutcome.ABORTED,
}


def outcomes(chains: Iterable[Chain], seams: Iterable[tuple[Place, Place]] = ()) -> dict[Place, TransactionOutcome]:
    """The outcome of each transactional batch of records. `seams`: batches known to stand behind each other."""
    batches = {batch.place: batch for chain in chains for batch in chain}
    following = _following(chains, seams, batches)
    preceding = dict.fromkeys(batches, 0)
    for each in following.values():
        for place in each:
            preceding[place] += 1
    found: dict[Place, TransactionOutcome] = {}
    known: dict[Place, _Ends] = {}
    for batch in sorted(batches.values(), key=lambda each: -each.base_offset):
        ends = _joined([_taken(place, known, preceding) for place in sorted(following.get(batch.place, ()))])
        if batch.marker is not None:
            if batch.is_transactional:
                ends[batch.producer_id] = _OUTCOMES.get(batch.marker, TransactionOutcome.UNDECIDED)
        elif batch.is_transactional:
            found[batch.place] = ends.get(batch.producer_id, TransactionOutcome.UNDECIDED)
        known[batch.place] = ends
    return found


def _following(
    chains: Iterable[Chain], seams: Iterable[tuple[Place, Place]], batches: Mapping[Place, ChainedBatch]
) -> dict[Place, set[Place]]:
    found: dict[Place, set[Place]] = {}
    for chain in chains:
        for before, after in pairwise(chain):
            found.setdefault(before.place, set()).add(after.place)
        for last in chain[-1:]:
            # Within an epoch there is one log. -1 is no epoch.
            if last.epoch >= 0 and (last.epoch, last.next_offset) in batches:
                found.setdefault(last.place, set()).add((last.epoch, last.next_offset))
    for one, other in seams:
        found.setdefault(one, set()).add(other)
    return found


def _taken(place: Place, known: dict[Place, _Ends], preceding: dict[Place, int]) -> _Ends:
    """What is known behind a batch, for the caller to change: only one that several precede is copied."""
    preceding[place] -= 1
    return dict(known[place]) if preceding[place] else known.pop(place)


def _joined(several: Collection[_Ends]) -> _Ends:
    """What is known behind a parting of logs."""
    first, *others = several or [{}]
    for other in others:
        for producer_id, outcome in other.items():
            if first.setdefault(producer_id, outcome) is not outcome:
                first[producer_id] = TransactionOutcome.UNDECIDED
    return first

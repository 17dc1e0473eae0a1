"""Records of a share partition that stand in one state: runs of consecutive offsets, sorted and without overlap.

Also how batches of stored state are combined (Apache Kafka's PersisterStateBatchCombiner): where two speak of a record,
the one with the higher delivery count counts, and of equal counts the one with the later state. So a write that comes
twice, or late, takes nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

M = TypeVar("M")


class RecordState(IntEnum):
    """The state of a record's delivery, by Kafka's names and numbers."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """It goes to a dead letter topic, and is archived then."""
    ARCHIVED = 4

    @property
    def is_over(self) -> bool:
        """Whether nobody gets the record any more."""
        return self.is_terminal or self is RecordState.ARCHIVING

    @property
    def is_terminal(self) -> bool:
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


class StateBatch(NamedTuple):
    """Records in one state, delivered equally often, as they are stored."""

    first: int
    last: int
    state: RecordState
    delivery_count: int


def batches_in(listed: Iterable[Any]) -> tuple[StateBatch, ...]:
    """Those of a record or a message. `ValueError` for a state that there is not."""
    return tuple(
        StateBatch(each.first_offset, each.last_offset, RecordState(each.delivery_state), each.delivery_count)
        for each in listed
    )


def as_messages(kind: Callable[..., M], batches: Iterable[StateBatch]) -> tuple[M, ...]:
    """As `kind` has them: a record's, or a message's."""
    return tuple(
        kind(
            first_offset=each.first,
            last_offset=each.last,
            delivery_state=int(each.state),
            delivery_count=each.delivery_count,
        )
        for each in batches
    )


class Acquired(NamedTuple):
    """Records that a member has got, and how often they were delivered."""

    first: int
    last: int
    delivery_count: int


def combined(before: Iterable[StateBatch], changes: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """The state after the changes, without what is below the start offset; neighbours of one state are one batch."""
    batches = [each for each in (*before, *changes) if each.last >= start_offset]
    cuts = sorted({max(each.first, start_offset) for each in batches} | {each.last + 1 for each in batches})
    result: list[StateBatch] = []
    for first, end in pairwise(cuts):
        over = [each for each in batches if each.first <= first and each.last >= end - 1]
        if not over:
            continue
        best = max(over, key=lambda each: (each.delivery_count, each.state))
        last = result[-1] if result else None
        if last is not None and last.last + 1 == first and last[2:] == best[2:]:
            result[-1] = last._replace(last=end - 1)
        else:
            result.append(StateBatch(first, end - 1, best.state, best.delivery_count))
    return tuple(result)

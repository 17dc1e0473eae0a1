"""What members ask for and say, and how many records they get at once: the arithmetic of a share partition's delivery.

Pure, and without any state: `partition` has that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tanist.coordinator.share.runs import Acquired

_LEAST_THROTTLED: Final = 2
"""Records that were delivered so often, or half as often as they may be, come in smaller portions."""


class FetchedBatch(NamedTuple):
    """A batch of records that was read."""

    first: int
    last: int
    aborted: bool = False
    """Of an aborted transaction, and the group reads what is committed."""


class Wanted(NamedTuple):
    """What a member asks for."""

    member_id: str
    max_records: int
    batch_size: int
    exact: bool = False
    """Not a record more than `max_records`; else whole batches are better."""


class Acknowledgement(NamedTuple):
    """A member's word on consecutive records: one type for all of them, or one for each."""

    first: int
    last: int
    types: tuple[int, ...]


def portion_of(size: int, delivery_count: int, limit: int) -> int | None:
    """How many of records that were delivered so often may come at once; None: all.

    One of them may be what makes its members fail. The last attempt is for each record alone.
    """
    throttled_from = max(_LEAST_THROTTLED, -(-limit // 2))
    if delivery_count < throttled_from:
        return None
    if limit > 2 and delivery_count == limit - 1:
        return 1
    return max(1, size >> (delivery_count - throttled_from + 1))


def end_of(first: int, count: int, batches: Sequence[FetchedBatch], *, exact: bool) -> int:
    """The last of so many records, or of the batch that it is in."""
    last = first + count - 1
    return last if exact else next((each.last for each in batches if each.first <= last <= each.last), last)


def by_type(each: Acknowledgement, start_offset: int) -> Iterable[tuple[int, int, int]]:
    """The parts of an acknowledgement that have one type, from the start offset on."""
    if len(each.types) == 1:
        parts = [(each.first, each.last, each.types[0])]
    else:
        parts = []
        for offset, kind in enumerate(each.types, start=each.first):
            if parts and parts[-1][2] == kind:
                parts[-1] = (parts[-1][0], offset, kind)
            else:
                parts.append((offset, offset, kind))
    return [(max(first, start_offset), last, kind) for first, last, kind in parts if last >= start_offset]


def add(taken: list[Acquired], more: Acquired) -> None:
    before = taken[-1] if taken else None
    if before is not None and before.last + 1 == more.first and before.delivery_count == more.delivery_count:
        taken[-1] = before._replace(last=more.last)
    else:
        taken.append(more)


def without(each: Acquired, batch: FetchedBatch) -> Iterable[Acquired]:
    """What is left of acquired records without those of a batch."""
    if each.last < batch.first or each.first > batch.last:
        yield each
        return
    if each.first < batch.first:
        yield each._replace(last=batch.first - 1)
    if each.last > batch.last:
        yield each._replace(first=batch.last + 1)

"""Which leader epoch begins at which offset.

Owns the ordered (epoch, start offset) entries of one partition and the answer to "where did epoch E end?", which tells
followers where to truncate (rules 109-114). It never touches a disk: `Log` writes `leader-epoch-checkpoint` when
`dirty` is set.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    """`epoch` began at `start_offset`: the log end offset of the leader when it took over."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """An answer to `end_offset_for`. (-1, -1) is "I can't say"."""

    epoch: int
    end_offset: int


UNDEFINED = EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)


class LeaderEpochCache:
    """Epochs and start offsets, both strictly ascending."""

    __slots__ = ("_entries", "dirty")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[EpochEntry] = []
        self.dirty = False
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)
        self.dirty = False

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int:
        """The highest epoch known, -1 when none is."""
        return self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH

    @property
    def earliest(self) -> EpochEntry | None:
        return self._entries[0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Epoch `epoch` begins at `start_offset`; True if that is news (rule 109).

        Entries that contradict it, of the same or a later epoch or start, were written by a history that has lost.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset}: neither may be negative")
        entries = self._entries
        if entries and entries[-1].epoch == epoch and start_offset >= entries[-1].start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self.dirty = True
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The largest epoch not above `epoch`, and where it ended (rule 110)."""
        entries = self._entries
        if epoch == UNDEFINED_EPOCH or not entries:
            return UNDEFINED
        if epoch == entries[-1].epoch:
            return EpochEndOffset(epoch, log_end_offset)
        if epoch > entries[-1].epoch:
            return UNDEFINED
        index = bisect_right(entries, (epoch, 2**63))
        if index == 0:
            return EpochEndOffset(epoch, entries[0].start_offset)
        return EpochEndOffset(entries[index - 1].epoch, entries[index].start_offset)

    def common_end(self, end_offset: int, other: LeaderEpochCache, other_end_offset: int) -> int:
        """Up to where two logs of a partition, which end there, are the same; -1 if that cannot be said.

        Two logs that have a record of one epoch at one offset have the same records before it.
        """
        theirs = {epoch for epoch, _ in other.entries}
        common = next((epoch for epoch, _ in reversed(self._entries) if epoch in theirs), UNDEFINED_EPOCH)
        end, other_end = self.end_offset_for(common, end_offset), other.end_offset_for(common, other_end_offset)
        return min(end.end_offset, other_end.end_offset)

    def epoch_at(self, offset: int) -> int:
        """The epoch in which `offset` was, or would be, written; -1 when that is before the first entry."""
        found = UNDEFINED_EPOCH
        for entry in reversed(self._entries):
            if entry.start_offset <= offset:
                found = entry.epoch
                break
        return found

    def previous_epoch(self, epoch: int) -> int:
        """The highest epoch below `epoch`, -1 when there is none."""
        index = bisect_right(self._entries, (epoch, -1))
        return self._entries[index - 1].epoch if index else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget epochs that began at or after `end_offset` (rule 111); a negative offset changes nothing."""
        entries = self._entries
        if end_offset < 0 or not entries or entries[-1].start_offset < end_offset:
            return False
        while entries and entries[-1].start_offset >= end_offset:
            entries.pop()
        self.dirty = True
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget what lies before `start_offset`; the epoch that reaches it now begins there (rule 111)."""
        entries = self._entries
        index = bisect_right(entries, start_offset, key=lambda entry: entry.start_offset)
        if index == 0 or (index == 1 and entries[0].start_offset == start_offset):
            return False
        last = entries[index - 1]
        entries[:index] = [EpochEntry(last.epoch, start_offset)]
        self.dirty = True
        return True

    def become(self, other: LeaderEpochCache) -> None:
        """Have the entries of another."""
        self._entries = list(other.entries)
        self.dirty = True

    def clear(self) -> None:
        if self._entries:
            self._entries.clear()
            self.dirty = True

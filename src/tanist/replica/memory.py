"""A log that is a tuple of entries, for replicas of the model checker, the scenario runner and the tests.

Owns nothing but the entries, so a copy and a snapshot cost next to nothing. It behaves to a replica as
`tanist.log.log.Log` does; it has no batches, no producers and no disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tanist.log.epochs import LeaderEpochCache
from tanist.wire.errors import ErrorCode


class Entry(NamedTuple):
    """One record."""

    offset: int
    leader_epoch: int
    value: str
    timestamp: int = -1


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append."""

    error: int
    first_offset: int
    last_offset: int
    message: str | None = None


class MemoryLog:
    """A `ReplicaLog` and `ReadableLog`."""

    __slots__ = ("_log_start_offset", "entries", "epochs")

    def __init__(self, entries: Iterable[Entry] = (), log_start_offset: int = 0) -> None:
        self._log_start_offset = log_start_offset
        self.entries: tuple[Entry, ...] = ()
        self.epochs = LeaderEpochCache()
        entries = tuple(entries)
        if entries and self.append_as_follower(entries, entries[-1].leader_epoch).error:
            raise ValueError(f"the entries do not follow one another from offset {log_start_offset}")

    @property
    def log_start_offset(self) -> int:
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._log_start_offset + len(self.entries)

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest_epoch

    def append_as_leader(self, values: Iterable[str], leader_epoch: int, timestamp: int = -1) -> Appended:
        first = self.log_end_offset
        entries = tuple(Entry(first + at, leader_epoch, value, timestamp) for at, value in enumerate(values))
        return self.append_as_follower(entries, leader_epoch)

    def append_as_follower(self, batches: tuple[Entry, ...], leader_epoch: int, /) -> Appended:
        first = self.log_end_offset
        if any(entry.offset != first + at for at, entry in enumerate(batches)):
            return Appended(int(ErrorCode.CORRUPT_MESSAGE), -1, -1, "the entries do not follow one another")
        epochs = [self.latest_epoch, *(entry.leader_epoch for entry in batches), leader_epoch]
        if any(before > after for before, after in pairwise(epochs)):
            return Appended(int(ErrorCode.CORRUPT_MESSAGE), -1, -1, f"the epochs {epochs} descend")
        for entry in batches:
            self.epochs.assign(entry.leader_epoch, entry.offset)
        self.entries += tuple(batches)
        return Appended(0, first, self.log_end_offset - 1)

    def read(self, offset: int, upper_offset: int, max_entries: int | None = None) -> tuple[Entry, ...]:
        """Entries from `offset`, below `upper_offset`."""
        start = self._log_start_offset
        if not start <= offset <= self.log_end_offset:
            raise IndexError(f"offset {offset} is not in {start}..{self.log_end_offset}")
        found = self.entries[offset - start : max(upper_offset, offset) - start]
        return found if max_entries is None else found[:max_entries]

    def truncate_to(self, offset: int, /) -> None:
        if offset < self._log_start_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self.entries = self.entries[: offset - self._log_start_offset]
        self.epochs.truncate_from_end(offset)

    def truncate_fully_and_start_at(self, offset: int, /) -> None:
        if offset < 0:
            raise ValueError(f"a log can't start at {offset}")
        self.entries = ()
        self._log_start_offset = offset
        self.epochs.clear()

    def advance_log_start_offset(self, offset: int, /) -> None:
        if offset > self.log_end_offset:
            raise ValueError(f"log start {offset} would be beyond the end {self.log_end_offset}")
        if offset > self._log_start_offset:
            self.entries = self.entries[offset - self._log_start_offset :]
            self._log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def offset_for_timestamp(self, timestamp_ms: int, /) -> Entry | None:
        return next((entry for entry in self.entries if entry.timestamp >= timestamp_ms), None)

    def max_timestamp(self) -> Entry | None:
        return max(self.entries, key=lambda entry: (entry.timestamp, -entry.offset), default=None)

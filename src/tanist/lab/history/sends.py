"""The sends of one partition, in the order in which they began: a row each, in arrays of integers (46 bytes a row).

Owns what is known of a send: when it began and ended, what came of it, where its record stands. Whether it was read,
and where one of unknown outcome stands, is filled in when all is read (`judgement`).
"""

from __future__ import annotations

from array import array

IDEMPOTENT = 1
PROMISED = 2
"""With acks=all: an acknowledgement is a promise."""
OK = 4
"""Acknowledged, and that is a promise."""
FAILED = 8
ABORTED = 16
"""Failed, because its transaction was aborted: it stands in the log, for those who read what is not committed."""
READ = 32
PLACED = 64
"""It stands where it was polled; its acknowledgement, if there is one, did not say where."""


class Sends:
    """The sends of one partition."""

    __slots__ = ("begin_lines", "end_lines", "ends_at", "flags", "offsets", "producers", "starts_at", "values")

    def __init__(self) -> None:
        self.values = array("q")
        self.offsets = array("q")
        """Where the record stands; -1 if that is not known."""
        self.starts_at = array("q")
        self.ends_at = array("q")
        self.begin_lines = array("I")
        self.end_lines = array("I")
        self.producers = array("I")
        """Who sent it; a producer that crashes is another one afterwards."""
        self.flags = bytearray()

    def __len__(self) -> int:
        return len(self.flags)

    def begin(self, value: int, producer: int, flags: int, start_at: int, line: int) -> int:
        """A row for a send whose outcome is not known yet."""
        self.values.append(value)
        self.offsets.append(-1)
        self.starts_at.append(start_at)
        self.ends_at.append(-1)
        self.begin_lines.append(line)
        self.end_lines.append(line)
        self.producers.append(producer)
        self.flags.append(flags)
        return len(self.flags) - 1

    def complete(self, row: int, outcome: int, offset: int, end_at: int, line: int) -> None:
        self.flags[row] |= outcome
        self.offsets[row] = offset
        self.ends_at[row] = end_at
        self.end_lines[row] = line

    def lines(self, row: int) -> tuple[int, ...]:
        begin, end = self.begin_lines[row], self.end_lines[row]
        return (begin,) if begin == end else (begin, end)

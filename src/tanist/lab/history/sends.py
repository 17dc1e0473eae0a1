"""The sends of one partition, in the order in which they began: a row each, in arrays of integers (46 bytes a row).

Owns the facts about a send: its start and end, its outcome, and its record's offset. Whether it was read, and the
offset of a send with an unknown outcome, is filled in when everything is read (`judgement`).
"""

from __future__ import annotations

from array import array

IDEMPOTENT = 1
PROMISED = 2
"""With acks=all: an acknowledgement is a promise."""
OK = 4
"""Acknowledged with a promise."""
FAILED = 8
ABORTED = 16
"""Failed, because its transaction was aborted: the record is in the log, for consumers with read_uncommitted."""
READ = 32
PLACED = 64
"""Its offset is that of a poll; its acknowledgement, if there is one, had none."""
TRANSACTIONAL = 128
"""It is of a transaction: it is acknowledged, or failed, with that."""


class Sends:
    """The sends of one partition."""

    __slots__ = (
        "begin_lines",
        "end_lines",
        "ends_at",
        "flags",
        "offsets",
        "producers",
        "starts_at",
        "transactions",
        "values",
    )

    def __init__(self) -> None:
        self.values = array("q")
        self.offsets = array("q")
        """The record's offset; -1 if it is unknown."""
        self.starts_at = array("q")
        self.ends_at = array("q")
        self.begin_lines = array("I")
        self.end_lines = array("I")
        self.producers = array("I")
        """Its producer; a producer that crashes gets another number."""
        self.transactions = array("I")
        """The number of its transaction, or 0; it ends with the last row that has one."""
        self.flags = bytearray()

    def __len__(self) -> int:
        return len(self.flags)

    def begin(self, value: int, producer: int, flags: int, start_at: int, line: int, transaction: int = 0) -> int:
        """A row for a send whose outcome is not known yet."""
        if transaction:
            self.transactions.extend([0] * (len(self.flags) - len(self.transactions)))
            self.transactions.append(transaction)
            flags |= TRANSACTIONAL
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

    def transaction(self, row: int) -> int:
        """The number of its transaction; 0 if it has none."""
        return self.transactions[row] if row < len(self.transactions) else 0

    def lines(self, row: int) -> tuple[int, ...]:
        begin, end = self.begin_lines[row], self.end_lines[row]
        return (begin,) if begin == end else (begin, end)

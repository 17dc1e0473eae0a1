"""A process of a history: its open operation, and its position as a consumer.

Owns the match of completions with operations, a consumer's next expected offset, and its partitions with their start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tanist.lab.history.operation import HistoryError
from tanist.lab.history.tally import Cite

UNKNOWN_START = -1
"""Earlier than everything: no conclusion depends on it."""


class Invoked(NamedTuple):
    """An operation that has begun and not ended."""

    function: str
    line: int
    start_at: int
    partition: str = ""
    row: int = -1
    transaction: int = 0


class Span(NamedTuple):
    """The start and end of an operation, as far as they are known, and its lines."""

    start_at: int
    end_at: int
    begin_line: int
    line: int

    @property
    def lines(self) -> tuple[int, ...]:
        return (self.line,) if self.begin_line == self.line else (self.begin_line, self.line)


class Poll(NamedTuple):
    """One poll."""

    line: int
    polled_at: int
    """Its start; its end if the start is unknown."""
    ended_at: int
    committed: bool
    """Its isolation is read_committed."""
    transaction: int = 0
    """The number of the transaction that it is of; 0 for none."""


class LastRead(NamedTuple):
    """The last offset that a consumer has read, or behind which it is positioned, and the line of that."""

    offset: int
    line: int
    polled: bool
    """It has read it; otherwise it is only positioned behind it."""
    transaction: int = 0
    """The transaction in which it has read it."""


@dataclass(slots=True)
class Process:
    """One process."""

    name: str | int
    producer: int
    """Its number as a producer. It gets another one when it crashes."""
    open: Invoked | None = None
    """The open operation that has no id."""
    open_by_id: dict[str | int, Invoked] = field(default_factory=dict)
    sent_at: int = UNKNOWN_START
    """The start of its last send with a known start."""
    sent_line: int = 0
    read_until_at: int = UNKNOWN_START
    """The end of its last operation as a consumer: the next one begins no earlier."""
    read_until_line: int = 0
    in_group: bool = False
    """Its partitions change without an operation."""
    last_reads: dict[str, LastRead] = field(default_factory=dict)
    group_reads: dict[str, LastRead] = field(default_factory=dict)
    """In a group: what it read last of each partition, which it need not go on from."""
    reading: dict[str, Cite] = field(default_factory=dict)
    """Its partitions -> the operation that assigned them."""
    polled_at: int = UNKNOWN_START
    """The start of its last empty poll, since its partitions last changed."""
    polled_lines: tuple[int, ...] = ()
    """The evidence of its start, and its own line."""
    polled_committed: bool = False
    """Its isolation."""

    def send_begins(self, start_at: int, line: int) -> None:
        """The order of lines is the order of sends, so that a file cannot be misread as an anomaly."""
        if start_at < self.sent_at:
            raise HistoryError(
                f"process {self.name} began this send before that of line {self.sent_line}: the sends of a process "
                "stand in the order in which they began",
                line,
            )
        self.sent_at, self.sent_line = start_at, line

    def invoke(self, function: str, identity: str | int | None, invoked: Invoked, line: int) -> None:
        if identity is not None:
            if identity in self.open_by_id:
                raise HistoryError(
                    f"process {self.name} has an open operation with this id since line "
                    f"{self.open_by_id[identity].line}",
                    line,
                )
            self.open_by_id[identity] = invoked
            return
        if self.open is not None:
            raise HistoryError(
                f"process {self.name} has an open operation since line {self.open.line} (a {self.open.function}): "
                "operations of one process that overlap need an id each",
                line,
            )
        self.open = invoked

    def complete(self, function: str, identity: str | int | None, line: int) -> Invoked | None:
        """The invocation that this completes; None if the operation has only this line."""
        if identity is not None:
            found = self.open_by_id.pop(identity, None)
        else:
            found, self.open = self.open, None
        if found is not None and found.function != function:
            raise HistoryError(
                f"process {self.name} completes a {function}, but what it has open since line {found.line} is a "
                f"{found.function}",
                line,
            )
        return found

    def crash(self, producer: int) -> None:
        """A new client under the same name. Open operations stay open forever."""
        self.producer = producer
        self.open = None

    def forget(self) -> None:
        """Its partitions are unknown."""
        self.in_group = False
        self.last_reads.clear()
        self.group_reads.clear()
        self.reading.clear()

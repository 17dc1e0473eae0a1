"""The facts of a history about one partition, collected line by line: sends, claims, and skipped offsets.

Owns the data that `judgement` needs when everything is read, in arrays that grow with the history. Anomalies in a
single consumer's order are found here, at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from tanist.lab.history.anomaly import Anomaly, Cite, Evidence, Tally
from tanist.lab.history.offsets import Offsets
from tanist.lab.history.operation import pair_of, value_hash
from tanist.lab.history.processes import LastRead, Span
from tanist.lab.history.sends import OK, Sends


class Gaps:
    """Ranges of offsets that consumers skipped, without both bounds."""

    __slots__ = ("after_lines", "before_lines", "committed", "highs", "lows")

    def __init__(self) -> None:
        self.lows = array("q")
        self.highs = array("q")
        self.before_lines = array("I")
        self.after_lines = array("I")
        self.committed = bytearray()

    def __len__(self) -> int:
        return len(self.lows)

    def add(self, last: LastRead, high: int, line: int, *, committed: bool) -> None:
        self.lows.append(last.offset)
        self.highs.append(high)
        self.before_lines.append(last.line)
        self.after_lines.append(line)
        self.committed.append(committed)


class Ends:
    """The ends of the partition that clients received."""

    __slots__ = ("begin_lines", "lines", "offsets", "starts_at")

    def __init__(self) -> None:
        self.offsets = array("q")
        self.starts_at = array("q")
        self.begin_lines = array("I")
        self.lines = array("I")

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: int, span: Span) -> None:
        self.offsets.append(offset)
        self.starts_at.append(span.start_at)
        self.begin_lines.append(span.begin_line)
        self.lines.append(span.line)


class PartitionHistory:
    """The facts about one partition."""

    __slots__ = (
        "acknowledged_until_at",
        "end_poll",
        "end_poll_at",
        "end_position",
        "ends",
        "final_poll",
        "final_poll_at",
        "gaps",
        "name",
        "offsets",
        "records_polled",
        "sends",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.sends = Sends()
        self.offsets = Offsets()
        self.gaps = Gaps()
        self.ends = Ends()
        self.acknowledged_until_at = -1
        """The time of the last promise."""
        self.final_poll_at = -1
        """The start of the last empty poll of a consumer of this partition."""
        self.final_poll: Evidence = ()
        """The evidence that it reads it, and the poll."""
        self.end_poll_at = -1
        """The start of the last empty poll of a consumer with a known position."""
        self.end_position = 0
        """That position."""
        self.end_poll: Evidence = ()
        self.records_polled = 0

    def send_completed(self, row: int, outcome: int, offset: int, end_at: int, line: int) -> None:
        """A send is completed; its offset counts if the acknowledgement is a promise."""
        sends = self.sends
        sends.complete(row, outcome, offset, end_at, line)
        if outcome & OK:
            self.acknowledged_until_at = max(self.acknowledged_until_at, end_at)
            if offset >= 0:
                slot = self.offsets.claim(offset, sends.values[row])
                if self.offsets.senders[slot] == 0:
                    self.offsets.senders[slot] = row + 1

    def polled(
        self,
        records: Sequence[Any],
        last: LastRead | None,
        line: int,
        polled_at: int,
        tally: Tally,
        *,
        committed: bool,
    ) -> LastRead | None:
        """The records of one poll, and the consumer's position after them."""
        read, before = self.offsets.read, last
        following = None if last is None else last.offset + 1
        for record in records:
            offset, value = pair_of(record, line)
            read(offset, value_hash(value), line, polled_at, committed=committed)
            if following is not None and offset != following:
                self._jumped(before or LastRead(following - 1, line, True), offset, line, tally, committed=committed)
            following, before = offset + 1, None
        self.records_polled += len(records)
        return last if following is None else LastRead(following - 1, line, True)

    def stands_at(self, position: int, last: LastRead | None, line: int, tally: Tally, *, committed: bool) -> LastRead:
        """A consumer reports its position after a poll."""
        if last is None:
            return LastRead(position - 1, line, False)
        if position == last.offset + 1:
            return last
        if position <= last.offset:
            tally.add(
                Anomaly.NONMONOTONIC_POLL,
                self.name,
                f"offset {last.offset + 1} was next, and after a poll {position} is",
                self.cite_last(last),
                Cite((line,), self.name),
            )
        else:
            self.gaps.add(last, position, line, committed=committed)
        return LastRead(position - 1, line, False)

    def _jumped(self, last: LastRead, offset: int, line: int, tally: Tally, *, committed: bool) -> None:
        if offset > last.offset:
            self.gaps.add(last, offset, line, committed=committed)
            return
        tally.add(
            Anomaly.NONMONOTONIC_POLL,
            self.name,
            f"offset {last.offset + 1} was next and {offset} came",
            self.cite_last(last),
            Cite((line,), self.name, offset),
        )

    def cite_last(self, last: LastRead) -> Cite:
        return Cite((last.line,), self.name, last.offset if last.polled else None)

    def polled_in_vain(self, start_at: int, *evidence: Cite) -> None:
        """An empty poll of a consumer of this partition; only the last one matters."""
        if start_at > self.final_poll_at:
            self.final_poll_at, self.final_poll = start_at, evidence

    def ended_at(self, last: LastRead, start_at: int, lines: tuple[int, ...]) -> None:
        """An empty poll behind `last`; only the last one matters."""
        position = last.offset + 1
        if start_at > self.end_poll_at or (start_at == self.end_poll_at and position < self.end_position):
            self.end_poll_at, self.end_position = start_at, position
            self.end_poll = (self.cite_last(last), Cite(lines, self.name))

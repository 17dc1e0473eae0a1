"""The facts of a history about one partition, collected line by line: sends, claims, and skipped offsets.

Owns the data that `judgement` needs when everything is read, in arrays that grow with the history. Anomalies in a
single consumer's order are found here, at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from tanist.lab.anomalies import Anomaly
from tanist.lab.history.offsets import Offsets
from tanist.lab.history.operation import pair_of, value_hash
from tanist.lab.history.processes import LastRead, Poll, Span
from tanist.lab.history.sends import OK, Sends
from tanist.lab.history.tally import Citations, Cite, Tally


class Gaps:
    """Ranges of offsets that consumers skipped, without both bounds."""

    __slots__ = ("after_lines", "before_lines", "committed", "expected", "highs", "internal", "lows")

    def __init__(self) -> None:
        self.lows = array("q")
        self.highs = array("q")
        self.before_lines = array("I")
        self.after_lines = array("I")
        self.committed = bytearray()
        self.internal = bytearray()
        """Both reads are of one transaction."""
        self.expected = bytearray()
        """The group may have moved the partition in between."""

    def __len__(self) -> int:
        return len(self.lows)

    def add(self, last: LastRead, high: int, line: int, *, committed: bool, internal: bool, expected: bool) -> None:
        self.lows.append(last.offset)
        self.highs.append(high)
        self.before_lines.append(last.line)
        self.after_lines.append(line)
        self.committed.append(committed)
        self.internal.append(internal)
        self.expected.append(expected)


class EmptyPoll:
    """The last of some polls that gave nothing."""

    __slots__ = ("at", "citations", "position")

    def __init__(self) -> None:
        self.at = -1
        """Its start."""
        self.position = 0
        """The next offset of its consumer, if that is known."""
        self.citations: Citations = ()
        """The evidence that it reads the partition, and the poll."""

    def take(self, at: int, citations: Citations, position: int = 0) -> None:
        if at > self.at or (at == self.at and position < self.position):
            self.at, self.position, self.citations = at, position, citations


class Ends:
    """The ends of the partition that clients received."""

    __slots__ = ("begin_lines", "ends_at", "lines", "offsets", "starts_at")

    def __init__(self) -> None:
        self.offsets = array("q")
        self.starts_at = array("q")
        self.ends_at = array("q")
        self.begin_lines = array("I")
        self.lines = array("I")

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: int, span: Span) -> None:
        self.offsets.append(offset)
        self.starts_at.append(span.start_at)
        self.ends_at.append(span.end_at)
        self.begin_lines.append(span.begin_line)
        self.lines.append(span.line)

    def cite(self, at: int, partition: str) -> Cite:
        begin, line = self.begin_lines[at], self.lines[at]
        return Cite((line,) if begin == line else (begin, line), partition, self.offsets[at])


class PartitionHistory:
    """The facts about one partition."""

    __slots__ = (
        "acknowledged_until_at",
        "end_polls",
        "ends",
        "final_polls",
        "gaps",
        "name",
        "offsets",
        "records_polled",
        "sends",
        "stable_ends",
        "transactional_reads",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.sends = Sends()
        self.offsets = Offsets()
        self.gaps = Gaps()
        self.ends = Ends()
        """Its ends, for readers of uncommitted records."""
        self.stable_ends = Ends()
        """Its ends for readers of committed records: the last stable offset."""
        self.acknowledged_until_at = -1
        """The time of the last promise."""
        self.final_polls = (EmptyPoll(), EmptyPoll())
        """The last empty polls of consumers of this partition: of read_uncommitted, and of read_committed."""
        self.end_polls = (EmptyPoll(), EmptyPoll())
        """The same, of consumers with a known position."""
        self.records_polled = 0
        self.transactional_reads = (array("I"), array("I"))
        """Transactions, and the slots of committed records that they have polled."""

    @property
    def has_transactions(self) -> bool:
        return len(self.sends.transactions) > 0

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
        self, records: Sequence[Any], last: LastRead | None, poll: Poll, tally: Tally, *, expected: bool = False
    ) -> LastRead | None:
        """The records of one poll, and the consumer's position after them. `expected`: it need not go on at `last`."""
        read, before, line, transaction = self.offsets.read, last, poll.line, poll.transaction
        following = None if last is None else last.offset + 1
        for record in records:
            offset, value = pair_of(record, line)
            slot = read(offset, value_hash(value), line, poll.polled_at, poll.ended_at, committed=poll.committed)
            if transaction and poll.committed:
                self.transactional_reads[0].append(transaction)
                self.transactional_reads[1].append(slot)
            if following is not None and offset != following:
                previous = before or LastRead(following - 1, line, True, transaction)
                self._jumped(previous, offset, poll, tally, expected=expected and before is not None)
            following, before = offset + 1, None
        self.records_polled += len(records)
        return last if following is None else LastRead(following - 1, line, True, transaction)

    def stands_at(self, position: int, last: LastRead | None, poll: Poll, tally: Tally) -> LastRead:
        """A consumer reports its position after a poll."""
        line, transaction = poll.line, poll.transaction
        if last is None:
            return LastRead(position - 1, line, False, transaction)
        if position == last.offset + 1:
            return last
        internal = transaction != 0 and last.transaction == transaction
        if position <= last.offset:
            tally.add(
                Anomaly.INT_NONMONOTONIC_POLL if internal else Anomaly.NONMONOTONIC_POLL,
                self.name,
                f"offset {last.offset + 1} was next, and after a poll {position} is",
                self.cite_last(last),
                Cite((line,), self.name),
            )
        else:
            self.gaps.add(last, position, line, committed=poll.committed, internal=internal, expected=False)
        return LastRead(position - 1, line, False, transaction)

    def _jumped(self, last: LastRead, offset: int, poll: Poll, tally: Tally, *, expected: bool) -> None:
        internal = poll.transaction != 0 and last.transaction == poll.transaction and not expected
        if offset > last.offset:
            self.gaps.add(last, offset, poll.line, committed=poll.committed, internal=internal, expected=expected)
            return
        tally.add(
            Anomaly.INT_NONMONOTONIC_POLL if internal else Anomaly.NONMONOTONIC_POLL,
            self.name,
            f"offset {last.offset + 1} was next and {offset} came",
            self.cite_last(last),
            Cite((poll.line,), self.name, offset),
            expected=expected,
        )

    def cite_last(self, last: LastRead) -> Cite:
        return Cite((last.line,), self.name, last.offset if last.polled else None)

    def polled_in_vain(self, start_at: int, *citations: Cite, committed: bool) -> None:
        """An empty poll of a consumer of this partition; only the last one matters."""
        self.final_polls[committed].take(start_at, citations)

    def ended_at(self, last: LastRead, start_at: int, lines: tuple[int, ...], *, committed: bool) -> None:
        """An empty poll behind `last`; only the last one matters."""
        self.end_polls[committed].take(start_at, (self.cite_last(last), Cite(lines, self.name)), last.offset + 1)

    def final_poll(self) -> EmptyPoll:
        """The last empty poll. One of read_committed says nothing of records whose transaction may be open."""
        return self._last_of(self.final_polls)

    def end_poll(self) -> EmptyPoll:
        """The last empty poll with a position."""
        return self._last_of(self.end_polls)

    def _last_of(self, polls: tuple[EmptyPoll, EmptyPoll]) -> EmptyPoll:
        if self.has_transactions:
            return polls[False]
        return min(polls, key=lambda poll: (-poll.at, poll.position))

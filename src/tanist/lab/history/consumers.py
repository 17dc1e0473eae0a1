"""The consumers of a history: their positions, their records, and the partitions that they read.

Owns the meaning of poll, end, assign, subscribe, seek and crash. After `assign` or `seek` a consumer continues at its
position, poll by poll. After `subscribe` its partitions change with the group's rebalances, so each poll is checked
alone, as in Jepsen: a jump from one to the next is counted apart, as one that Kafka allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tanist.lab.history import operation as fields
from tanist.lab.history.operation import HistoryError, Operation, wrong
from tanist.lab.history.partition import PartitionHistory
from tanist.lab.history.processes import UNKNOWN_START, LastRead, Poll, Process, Span
from tanist.lab.history.tally import Cite, Tally


class Consumers:
    """Takes the completions of all operations that are not sends."""

    def __init__(self, partition: Callable[[str], PartitionHistory], tally: Tally) -> None:
        self._partition = partition
        self._tally = tally
        self._completed = {
            fields.POLL: self._polled,
            fields.END: self._end_reported,
            fields.ASSIGN: self._assigned,
            fields.SUBSCRIBE: self._subscribed,
            fields.SEEK: self._sought,
            fields.CRASH: self._crashed,
        }

    def completed(self, process: Process, function: str, kind: str, operation: Operation, span: Span) -> None:
        self._completed[function](process, kind, operation, span)

    def ended(self, process: Process) -> None:
        """The history ends."""
        self._count_polls(process)

    def _count_polls(self, process: Process) -> None:
        """Its partitions will change, so its polls so far count for its present partitions."""
        if process.polled_at != UNKNOWN_START:
            for name, shown in process.reading.items():
                self._partition(name).polled_in_vain(
                    process.polled_at, shown, Cite(process.polled_lines, name), committed=process.polled_committed
                )
        process.polled_at = UNKNOWN_START

    def _polled(self, process: Process, kind: str, operation: Operation, span: Span) -> None:
        if kind != fields.OK:
            if fields.records_of(operation, span.line) or fields.positions_of(operation, span.line):
                raise HistoryError(f"a poll that is {kind} has no records and no positions", span.line)
            return
        self.regrouped(process)
        self.polled(process, operation, span, committed=fields.is_committed_read(operation, span.line))

    def regrouped(self, process: Process) -> None:
        """In a group it may have been given other partitions since, or the same ones from another offset on."""
        if process.in_group:
            process.group_reads.update(process.last_reads)
            process.last_reads.clear()

    def polled(
        self, process: Process, operation: Operation, span: Span, *, committed: bool, transaction: int = 0
    ) -> bool:
        """A poll that has an answer, perhaps of a transaction. Returns whether it has records."""
        line = span.line
        records = fields.records_of(operation, line)
        last_reads = process.last_reads
        polled_at = span.end_at if span.start_at == UNKNOWN_START else span.start_at
        poll = Poll(line, polled_at, span.end_at, committed, transaction)
        if span.start_at != UNKNOWN_START and not any(records.values()):
            for name, stood in last_reads.items():
                self._partition(name).ended_at(stood, span.start_at, span.lines, committed=committed)
        for name, polled in records.items():
            if not isinstance(polled, list):
                raise wrong(f"what was polled of {name}", polled, "an array", line)
            if not polled:
                continue
            partition = self._partition(fields.partition_of(name, line))
            known = last_reads.get(partition.name)
            before = known or process.group_reads.get(partition.name)
            last = partition.polled(polled, before, poll, self._tally, expected=known is None)
            if last is not None:
                last_reads[partition.name] = last
            self._reads(process, Cite((line,), partition.name, polled[0][0]))
        is_empty = not any(records.values())
        for name, position in fields.positions_of(operation, line).items():
            if position is None:
                raise HistoryError(f"the position in {name} is null, which it cannot be after a poll", line)
            partition = self._partition(name)
            last_reads[name] = partition.stands_at(position, last_reads.get(name), poll, self._tally)
            if process.in_group and is_empty:
                partition.polled_in_vain(span.start_at, Cite(span.lines, name), committed=committed)
            self._reads(process, Cite((line,), name))
        # Only an empty poll shows that there were no more records.
        if is_empty and span.start_at > process.polled_at:
            process.polled_at, process.polled_lines = span.start_at, span.lines
            process.polled_committed = committed
        return not is_empty

    def _reads(self, process: Process, shown: Cite) -> None:
        """A poll shows that this process reads a partition; in a group, only that it did so this time."""
        if not process.in_group and shown.partition not in process.reading:
            self._count_polls(process)
            process.reading[shown.partition] = shown

    def _end_reported(self, process: Process, kind: str, operation: Operation, span: Span) -> None:
        committed = fields.is_committed_read(operation, span.line)
        if kind != fields.OK:
            return
        partition = self._partition(fields.partition_of(operation.get("partition"), span.line))
        offset = fields.offset_of(operation.get("offset"), span.line)
        # The last stable offset waits for transactions: it may be before acknowledged records.
        if span.start_at != UNKNOWN_START:
            (partition.stable_ends if committed else partition.ends).add(offset, span)

    def _assigned(self, process: Process, kind: str, operation: Operation, span: Span) -> None:
        if kind == fields.FAIL:
            return
        names = {name: Cite((span.line,), name) for name in fields.partitions_of(operation, span.line)}
        positions = fields.positions_of(operation, span.line)
        for name in positions:
            if name not in names:
                raise HistoryError(f"there is a position in {name}, which is not assigned", span.line)
        kept = {name: last for name, last in process.last_reads.items() if name in names and not process.in_group}
        self._count_polls(process)
        process.forget()
        if kind == fields.OK:
            process.reading.update(names)
            process.last_reads.update(kept)
            _place(process, positions, span.line)

    def _sought(self, process: Process, kind: str, operation: Operation, span: Span) -> None:
        if kind == fields.FAIL:
            return
        positions = fields.positions_of(operation, span.line)
        if not positions:
            raise wrong("positions", None, "an object", span.line)
        if kind == fields.INFO:
            # It may have happened or not.
            _place(process, dict.fromkeys(positions), span.line)
            return
        self._count_polls(process)
        if not process.in_group:
            for name in positions:
                process.reading.setdefault(name, Cite((span.line,), name))
        _place(process, positions, span.line)

    def _subscribed(self, process: Process, kind: str, operation: Operation, span: Span) -> None:
        if kind == fields.FAIL:
            return
        self._count_polls(process)
        process.forget()
        process.in_group = True

    def _crashed(self, process: Process, kind: str, operation: Operation, span: Span) -> None:
        self._count_polls(process)
        process.forget()


def _place(process: Process, positions: Mapping[str, int | None], line: int) -> None:
    for name, position in positions.items():
        if position is None:
            process.last_reads.pop(name, None)
        else:
            process.last_reads[name] = LastRead(position - 1, line, False)

"""The transactions of a history: their lines become sends and polls, and each has a number, its times and its outcome.

Owns the table of transactions and the meaning of `txn`. A transaction's sends begin with it and are completed by its
end: acknowledged with the commit, failed and aborted with an abort, unknown otherwise. Its polls are those of its
process as a consumer. `atomicity` and `dependencies` have the anomalies of whole transactions.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tanist.lab.history import operation as fields
from tanist.lab.history.consumers import Consumers
from tanist.lab.history.micro_operations import MicroSend, agreed, sends_and_polls
from tanist.lab.history.operation import HistoryError, Operation
from tanist.lab.history.partition import PartitionHistory
from tanist.lab.history.processes import UNKNOWN_START, Invoked, Process, Span
from tanist.lab.history.sends import ABORTED, FAILED, IDEMPOTENT, OK, PROMISED

UNKNOWN_END = -1
"""The client has not said when it asked for the end."""


class Done(NamedTuple):
    """The size of a transaction that is completed."""

    sends: int
    polls: int


class Transactions:
    """Takes the lines of transactions. Numbers begin with 1; 0 is none."""

    def __init__(self, partition: Callable[[str], PartitionHistory], consumers: Consumers) -> None:
        self._partition = partition
        self._consumers = consumers
        self._planned: dict[int, list[tuple[PartitionHistory, int, MicroSend]]] = {}
        """Transaction that is open -> its sends, by partition and row."""
        self.begin_lines = array("I", (0,))
        self.end_lines = array("I", (0,))
        self.ending_at = array("q", (UNKNOWN_END,))
        """When the client asked for the end, as far as it says so."""
        self.failed = bytearray((0,))
        """Its end was an abort, or it certainly had no effect."""
        self.outcomes: Counter[str] = Counter()
        """committed, aborted, failed, unknown (completed or not)."""

    def __len__(self) -> int:
        return len(self.begin_lines) - 1

    def lines(self, transaction: int) -> tuple[int, ...]:
        begin, end = self.begin_lines[transaction], self.end_lines[transaction]
        return (begin,) if begin == end else (begin, end)

    def invoke(self, process: Process, operation: Operation, now: int, line: int) -> Invoked:
        """Its sends, if it names them, may be in the log from now on."""
        process.send_begins(now, line)
        sends, polls = sends_and_polls(operation, Span(now, now, line, line))
        if any(poll.operation.get("records") for poll in polls):
            raise HistoryError("a transaction that begins has no records yet", line)
        transaction = self._new(line)
        self._planned[transaction] = self._begin(process, sends, transaction, now, line)
        self.outcomes["unknown"] += 1
        return Invoked(fields.TXN, line, now, transaction=transaction)

    def complete(self, process: Process, kind: str, operation: Operation, invoked: Invoked | None, span: Span) -> Done:
        line = span.line
        aborted = fields.flag_of(operation, "aborted", line, default=False)
        if aborted and kind != fields.FAIL:
            raise HistoryError("it is aborted, but not failed", line)
        committed_reads = fields.is_committed_read(operation, line)
        sends, polls = sends_and_polls(operation, span)
        ending_at = self._ending(operation, span)
        if invoked is None:
            if operation.get("invoked_ns") is not None:
                process.send_begins(span.start_at, line)
            transaction = self._new(line)
            rows = self._begin(process, sends, transaction, span.start_at, line)
        else:
            transaction = invoked.transaction
            rows = self._planned.pop(transaction)
            self.outcomes["unknown"] -= 1
            if not rows:
                rows = self._begin(process, sends, transaction, invoked.start_at, invoked.line)
            elif operation.get("ops") is not None:
                planned = [send for _, _, send in rows]
                agreed(planned, sends, line, invoked.line, all_=kind == fields.OK)
        self.end_lines[transaction] = line
        self.ending_at[transaction] = ending_at
        self.failed[transaction] = kind == fields.FAIL
        offsets = [send.offset for send in sends]
        self._end(kind, rows, offsets, span, aborted=aborted)
        self._consumers.regrouped(process)
        for poll in polls:
            if poll.regrouped:
                self._consumers.regrouped(process)
            self._consumers.polled(
                process, poll.operation, poll.span, committed=committed_reads, transaction=transaction
            )
        return Done(len(rows), len(polls))

    def _new(self, line: int) -> int:
        self.begin_lines.append(line)
        self.end_lines.append(line)
        self.ending_at.append(UNKNOWN_END)
        self.failed.append(0)
        return len(self)

    def _begin(
        self, process: Process, sends: Sequence[MicroSend], transaction: int, start_at: int, line: int
    ) -> list[tuple[PartitionHistory, int, MicroSend]]:
        begun = []
        for send in sends:
            partition = self._partition(send.partition)
            row = partition.sends.begin(
                send.value, process.producer, PROMISED | IDEMPOTENT, start_at, line, transaction
            )
            begun.append((partition, row, send))
        return begun

    def _end(
        self,
        kind: str,
        rows: Sequence[tuple[PartitionHistory, int, MicroSend]],
        offsets: Sequence[int],
        span: Span,
        *,
        aborted: bool,
    ) -> None:
        outcome = 0
        if kind == fields.OK:
            outcome = OK
            self.outcomes["committed"] += 1
        elif kind == fields.FAIL:
            outcome = FAILED | (ABORTED if aborted else 0)
            self.outcomes["aborted" if aborted else "failed"] += 1
        else:
            self.outcomes["unknown"] += 1
        for at, (partition, row, _) in enumerate(rows):
            # Without a promise its offset is where a poll finds it.
            offset = offsets[at] if outcome == OK and at < len(offsets) else -1
            partition.send_completed(row, outcome, offset, span.end_at, span.line)

    def _ending(self, operation: Operation, span: Span) -> int:
        ending = operation.get("ending_ns")
        if ending is None:
            return UNKNOWN_END
        ending_at = fields.time_of(ending, span.line, "ending_ns")
        if not (span.start_at == UNKNOWN_START or span.start_at <= ending_at) or ending_at > span.end_at:
            raise HistoryError("ending_ns is not between its beginning and its end", span.line)
        return ending_at

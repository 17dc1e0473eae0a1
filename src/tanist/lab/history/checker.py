"""The history checker: operations go in, line by line; the anomalies come out at the end.

Owns the reading of operations: the lines of one operation, its beginning and end, and its facts about each partition.
Memory grows by some 80 bytes for a record, time by a few microseconds for a line. Never looks at a clock or a file.
`judgement` has the anomalies that need the whole history.

Time is the `time_ns` of the lines or, if they have none, their order. If the beginning of an operation is unknown,
nothing is concluded from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tanist.lab.history import operation as fields
from tanist.lab.history.atomicity import judge_atomicity
from tanist.lab.history.consumers import Consumers
from tanist.lab.history.dependencies import judge_dependencies
from tanist.lab.history.judgement import judge
from tanist.lab.history.operation import COMPLETIONS, FUNCTIONS, HistoryError, Operation, shown, wrong
from tanist.lab.history.partition import PartitionHistory
from tanist.lab.history.processes import UNKNOWN_START, Invoked, Process, Span
from tanist.lab.history.sends import ABORTED, FAILED, IDEMPOTENT, PROMISED
from tanist.lab.history.sends import OK as ACKNOWLEDGED
from tanist.lab.history.tally import Finding, Tally
from tanist.lab.history.transactions import Transactions

_OUTCOMES = ("committed", "aborted", "failed", "unknown")


@dataclass(slots=True)
class Verdict:
    """The counts of a history, and its anomalies."""

    operations: int = 0
    processes: int = 0
    partitions: int = 0
    acknowledged: int = 0
    """Sends."""
    failed: int = 0
    unknown: int = 0
    polls: int = 0
    records_polled: int = 0
    transactions: dict[str, int] = field(default_factory=dict)
    """committed, aborted, failed and unknown ones; empty if there are none."""
    findings: tuple[Finding, ...] = ()
    expected: tuple[Finding, ...] = ()
    """Cases that Kafka's model allows."""
    not_polled_at_the_end: dict[str, int] = field(default_factory=dict)
    """Partitions without a poll after their last acknowledgement -> acknowledged records that were not polled."""


class Checker:
    """Takes the operations of a history in order; `verdict` ends it."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._partitions: dict[str, PartitionHistory] = {}
        self._processes: dict[str | int, Process] = {}
        self._producers = 0
        self._timed: bool | None = None
        self._counts = Verdict()
        self._consumers = Consumers(self._partition, self._tally)
        self._transactions = Transactions(self._partition, self._consumers)

    def take(self, line: int, operation: Operation) -> None:
        """Take one line. It is checked before it changes anything but its own process."""
        name = operation.get("process")
        if name == fields.NEMESIS:
            return
        process = self._processes.get(name) if type(name) is str or type(name) is int else None
        if process is None:
            process = self._new_process(name, line)
        kind, function = operation.get("type"), operation.get("f")
        if type(function) is not str or function not in FUNCTIONS:
            raise wrong("f", function, f"one of {', '.join(sorted(FUNCTIONS))}", line)
        now = self._time(operation, line)
        identity = operation.get("id")
        if identity is not None and type(identity) is not str and type(identity) is not int:
            raise wrong("id", identity, "a string or an integer", line)
        if kind == fields.INVOKE:
            self._invoke(process, function, identity, operation, now, line)
        elif type(kind) is str and kind in COMPLETIONS:
            self._complete(process, function, kind, identity, operation, now, line)
        else:
            raise wrong("type", kind, "invoke, ok, fail or info", line)

    def verdict(self) -> Verdict:
        """The verdict. Raises `HistoryError` if a value was sent twice to a partition."""
        counts = self._counts
        for process in self._processes.values():
            self._consumers.ended(process)
        lost: dict[str, set[int]] = {}
        for partition in self._partitions.values():
            if len(partition.sends) or len(partition.offsets):
                counts.partitions += 1
            counts.records_polled += partition.records_polled
            unread, lost[partition.name] = judge(partition, self._tally)
            if unread:
                counts.not_polled_at_the_end[partition.name] = unread
        if len(self._transactions):
            partitions = list(self._partitions.values())
            for name in judge_atomicity(self._transactions, partitions, lost, self._tally):
                counts.not_polled_at_the_end.pop(name, None)
            judge_dependencies(self._transactions, partitions, self._tally)
            counts.transactions = {outcome: self._transactions.outcomes[outcome] for outcome in _OUTCOMES}
        counts.processes = len(self._processes)
        counts.unknown = (
            sum(len(each.sends) for each in self._partitions.values()) - counts.acknowledged - counts.failed
        )
        counts.findings = self._tally.findings()
        counts.expected = self._tally.expected()
        return counts

    # -- lines

    def _new_process(self, name: object, line: int) -> Process:
        if type(name) is not str and type(name) is not int:
            raise wrong("process", name, "a name or a number", line)
        self._producers += 1
        process = self._processes[name] = Process(name, self._producers)
        return process

    def _time(self, operation: Operation, line: int) -> int:
        time = operation.get("time_ns")
        if self._timed is None:
            self._timed = time is not None
        if not self._timed:
            if time is not None or operation.get("invoked_ns") is not None:
                raise HistoryError("it has a time, which the first operation has not: all have one, or none", line)
            return line
        if time is None:
            raise HistoryError("time_ns is missing, which the first operation has: all have one, or none", line)
        return fields.time_of(time, line, "time_ns")

    def _invoke(
        self, process: Process, function: str, identity: str | int | None, operation: Operation, now: int, line: int
    ) -> None:
        if function == fields.CRASH:
            # All open operations crash with the process, when the crash completes.
            return
        if function == fields.SEND:
            process.send_begins(now, line)
            partition, row = self._send_begun(process, operation, now, line)
            invoked = Invoked(function, line, now, partition.name, row)
        elif function == fields.TXN:
            invoked = self._transactions.invoke(process, operation, now, line)
        else:
            invoked = Invoked(function, line, now)
        process.invoke(function, identity, invoked, line)

    def _complete(
        self,
        process: Process,
        function: str,
        kind: str,
        identity: str | int | None,
        operation: Operation,
        now: int,
        line: int,
    ) -> None:
        invoked = None if function == fields.CRASH else process.complete(function, identity, line)
        began = operation.get("invoked_ns")
        if invoked is not None:
            if began is not None:
                raise HistoryError(f"invoked_ns stands beside an invocation of its own, in line {invoked.line}", line)
            start_at, begin_line = invoked.start_at, invoked.line
        elif began is not None:
            start_at, begin_line = fields.time_of(began, line, "invoked_ns"), line
            if function == fields.SEND:
                process.send_begins(start_at, line)
        elif function != fields.SEND and process.read_until_line:
            start_at, begin_line = process.read_until_at, process.read_until_line
        else:
            start_at, begin_line = UNKNOWN_START, line
        if start_at > now:
            raise HistoryError(f"it ends before it begins, or before what was before it, in line {begin_line}", line)
        if function != fields.SEND and start_at < process.read_until_at:
            raise HistoryError(
                f"process {process.name} began this before the end of what it did in line {process.read_until_line}: "
                "a consumer does one thing at a time",
                line,
            )
        self._counts.operations += 1
        span = Span(start_at, now, begin_line, line)
        if function == fields.SEND:
            self._send_completed(process, kind, operation, invoked, span)
            return
        if function == fields.TXN:
            done = self._transactions.complete(process, kind, operation, invoked, span)
            self._counts.polls += done.polls
            self._counts.acknowledged += done.sends if kind == fields.OK else 0
            self._counts.failed += done.sends if kind == fields.FAIL else 0
        else:
            self._consumers.completed(process, function, kind, operation, span)
        process.read_until_at, process.read_until_line = now, line
        if function == fields.POLL and kind == fields.OK:
            self._counts.polls += 1
        elif function == fields.CRASH:
            self._producers += 1
            process.crash(self._producers)

    def _partition(self, name: str) -> PartitionHistory:
        partition = self._partitions.get(name)
        if partition is None:
            partition = self._partitions[name] = PartitionHistory(name)
        return partition

    # -- producers

    def _send_begun(
        self, process: Process, operation: Operation, start_at: int, line: int
    ) -> tuple[PartitionHistory, int]:
        partition = self._partition(fields.partition_of(operation.get("partition"), line))
        value = fields.value_hash(fields.value_text(operation.get("value"), line))
        flags = PROMISED if fields.is_promise(operation, line) else 0
        # Without acks=all there is no idempotence: Kafka's clients refuse the two together.
        if flags and fields.flag_of(operation, "idempotent", line, default=True):
            flags |= IDEMPOTENT
        return partition, partition.sends.begin(value, process.producer, flags, start_at, line)

    def _send_completed(
        self,
        process: Process,
        kind: str,
        operation: Operation,
        invoked: Invoked | None,
        span: Span,
    ) -> None:
        line = span.line
        offset = operation.get("offset")
        offset = -1 if offset is None else fields.offset_of(offset, line)
        aborted = fields.flag_of(operation, "aborted", line, default=False)
        if aborted and kind != fields.FAIL:
            raise HistoryError("it is aborted, but not failed", line)
        if invoked is None:
            partition, row = self._send_begun(process, operation, span.start_at, line)
        else:
            partition, row = self._partitions[invoked.partition], invoked.row
            self._same_send(partition, row, operation, invoked, line)
        outcome = 0
        if kind == fields.OK:
            self._counts.acknowledged += 1
            outcome = ACKNOWLEDGED if partition.sends.flags[row] & PROMISED else 0
        elif kind == fields.FAIL:
            self._counts.failed += 1
            outcome = FAILED | (ABORTED if aborted else 0)
        if not outcome & ACKNOWLEDGED:
            # Its offset is where a poll finds it.
            offset = -1
        partition.send_completed(row, outcome, offset, span.end_at, line)

    def _same_send(
        self, partition: PartitionHistory, row: int, operation: Operation, invoked: Invoked, line: int
    ) -> None:
        """A completion need not repeat the sent record. If it does, both must be equal."""
        name, value = operation.get("partition"), operation.get("value")
        if name is not None and fields.partition_of(name, line) != partition.name:
            raise HistoryError(f"partition is {shown(name)}, but {partition.name} in line {invoked.line}", line)
        if value is not None and fields.value_hash(fields.value_text(value, line)) != partition.sends.values[row]:
            raise HistoryError(f"value is {shown(value)}, but another one in line {invoked.line}", line)

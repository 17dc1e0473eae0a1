"""The operations within a transaction: the sends and polls of its `ops`.

Owns their fields, which are those of single operations, and their agreement between the two lines of a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tanist.lab.history import operation as fields
from tanist.lab.history.operation import POLL, SEND, HistoryError, Operation, shown, wrong
from tanist.lab.history.processes import Span


class MicroSend(NamedTuple):
    """A record that the transaction sends."""

    partition: str
    value: int
    """Its hash."""
    offset: int
    """-1 if it is not known."""


class MicroPoll(NamedTuple):
    """A poll of the transaction."""

    operation: Operation
    span: Span
    regrouped: bool
    """The group has given or taken partitions meanwhile."""


def sends_and_polls(operation: Operation, span: Span) -> tuple[list[MicroSend], list[MicroPoll]]:
    """The `ops` of a line, in their order; nothing if it has none. Polls get the transaction's span, or their own."""
    line = span.line
    found = operation.get("ops")
    if found is None:
        return [], []
    if not isinstance(found, list):
        raise wrong("ops", found, "an array", line)
    sends: list[MicroSend] = []
    polls: list[MicroPoll] = []
    for each in found:
        if not isinstance(each, Mapping):
            raise wrong("one of ops", each, "an object", line)
        function = each.get("f")
        if function == SEND:
            sends.append(_send(each, line))
        elif function == POLL:
            span_of_it = _span(each, span)
            polls.append(MicroPoll(each, span_of_it, fields.flag_of(each, "rebalanced", line, default=False)))
            span = span._replace(start_at=span_of_it.end_at if each.get("time_ns") is not None else span.start_at)
        else:
            raise wrong("f of one of ops", function, "send or poll", line)
    return sends, polls


def agreed(planned: Sequence[MicroSend], done: Sequence[MicroSend], line: int, begin_line: int, *, all_: bool) -> None:
    """The line that completes a transaction repeats its sends, from the first on; `all_` of them if it is committed."""
    same = [(send.partition, send.value) for send in planned[: len(done)]]
    if [(send.partition, send.value) for send in done] != same:
        raise HistoryError(f"its sends are not those of line {begin_line}", line)
    if all_ and len(done) < len(planned):
        raise HistoryError(
            f"it is committed, and has {len(done)} of the {len(planned)} sends of line {begin_line}", line
        )


def _send(operation: Mapping[str, Any], line: int) -> MicroSend:
    offset = operation.get("offset")
    return MicroSend(
        fields.partition_of(operation.get("partition"), line),
        fields.value_hash(fields.value_text(operation.get("value"), line)),
        -1 if offset is None else fields.offset_of(offset, line),
    )


def _span(operation: Mapping[str, Any], span: Span) -> Span:
    """The start and end of a poll lie within those of its transaction."""
    began, ended = operation.get("invoked_ns"), operation.get("time_ns")
    start_at = span.start_at if began is None else fields.time_of(began, span.line, "invoked_ns")
    end_at = span.end_at if ended is None else fields.time_of(ended, span.line, "time_ns")
    if not span.start_at <= start_at <= end_at <= span.end_at:
        times = f"{shown(began)} to {shown(ended)}"
        raise HistoryError(f"a poll of it is not within its time, or before one that precedes it: {times}", span.line)
    return span._replace(start_at=start_at, end_at=end_at)

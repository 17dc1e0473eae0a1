"""The operator's lines of `events.coordination`."""

from __future__ import annotations

from tanist.events.coordination import (
    CoordinatorGivenUp,
    CoordinatorLoaded,
    CoordinatorRecordUnreadable,
    CoordinatorUnreadable,
    DeadLettersNotWritten,
    HangingMarkerRefused,
    HangingTransactionEnded,
)
from tanist.events.text.line import Line, Lines, and_more


def _loaded(event: CoordinatorLoaded) -> Line:
    return (
        "INFO",
        f"{event.partition}: {event.entries} {event.kind} of {event.records} records, "
        f"{event.took_ms} ms after the election",
    )


def _given_up(event: CoordinatorGivenUp) -> Line:
    return "WARN", f"{event.partition} is read anew, after an unexpected error"


def _unreadable(event: CoordinatorUnreadable) -> Line:
    return "ERROR", f"{event.partition} can't be served, its log can't be read: {event.problem}"


def _record_unreadable(event: CoordinatorRecordUnreadable) -> Line:
    return "WARN", f"{event.partition} at {event.offset}: {event.problem}"


def _hanging_ended(event: HangingTransactionEnded) -> Line:
    outcome = "it is committed" if event.committed else "it is aborted, and no reader of committed records gets it"
    return (
        "WARN",
        f"{event.partition}: the transaction of producer {event.producer_id} in epoch {event.producer_epoch} has no "
        f"marker and gets none, as after an unclean election: {event.reason}; {outcome} "
        f"(offsets {event.first_offset} to {event.last_offset})",
    )


def _marker_refused(event: HangingMarkerRefused) -> Line:
    return (
        "WARN",
        f"{event.partition}: the marker of a transaction that has none was refused with error {event.error}: "
        "it stays open for now",
    )


def _dead_letters_not_written(event: DeadLettersNotWritten) -> Line:
    more = and_more(event.left_out)
    return "WARN", f"dead letters of {event.group} from {event.partition} are not written: {event.reason}{more}"


LINES: Lines = {
    CoordinatorLoaded: _loaded,
    CoordinatorGivenUp: _given_up,
    CoordinatorUnreadable: _unreadable,
    CoordinatorRecordUnreadable: _record_unreadable,
    HangingTransactionEnded: _hanging_ended,
    HangingMarkerRefused: _marker_refused,
    DeadLettersNotWritten: _dead_letters_not_written,
}

"""The operator's lines of `events.replication`. A kind that is not in `LINES` has none."""

from __future__ import annotations

from typing import Final

from tanist.events.replication import (
    FetchResponseMalformed,
    IsrChanged,
    LogTruncated,
    RecordsRefused,
    ReplicaDeleted,
    ReplicaFoundTwice,
    ReplicaMoved,
    ReplicaMoveEnded,
    ReplicaMoves,
    ReplicaOfDeletedTopic,
    ReplicasWait,
    ReplicasWaitNoMore,
    ReplicaUnknown,
)
from tanist.events.text.line import Line, Lines


def _isr_changed(event: IsrChanged) -> Line:
    return "INFO", f"{event.partition}: ISR is now {list(event.isr)}"


def _records_refused(event: RecordsRefused) -> Line:
    return "ERROR", f"{event.partition}: records of broker {event.leader}: {event.reason}"


def _fetch_response_malformed(event: FetchResponseMalformed) -> Line:
    return "ERROR", f"malformed fetch response from broker {event.leader}: {event.reason}"


def _log_truncated(event: LogTruncated) -> Line | None:
    lost = event.previous_end_offset - event.offset
    if not lost and not event.fully:
        return None
    if lost < 0:  # it begins beyond its old end, and how much it had is not known
        return "INFO", f"{event.partition}: dropped all records, begins at offset {event.offset}"
    what = f"{event.partition}: truncated {lost} records, from offset {event.offset}"
    if event.offset >= event.previous_high_watermark:
        return "INFO", what
    return "WARN", f"{what}, BELOW the high watermark {event.previous_high_watermark}"


def _replica_deleted(event: ReplicaDeleted) -> Line | None:
    return ("INFO", f"{event.partition} is not ours any more: deleting its log") if event.at_start else None


def _replica_unknown(event: ReplicaUnknown) -> Line:
    return "WARN", f"{event.partition} has no topic id and is in no use: left where it lies"


def _replica_of_deleted_topic(event: ReplicaOfDeletedTopic) -> Line:
    return "INFO", f"{event.partition}: the log on disk belongs to a deleted topic of that name"


def _replica_found_twice(event: ReplicaFoundTwice) -> Line:
    return "WARN", f"{event.partition} lies in two log directories: {event.older_directory} has the older"


def _replica_moves(event: ReplicaMoves) -> Line:
    return "INFO", f"{event.partition}: moving from {event.source} to {event.target}"


def _replica_moved(event: ReplicaMoved) -> Line:
    return "INFO", f"{event.partition}: moved from {event.source} to {event.target}"


def _replica_move_ended(event: ReplicaMoveEnded) -> Line:
    return "WARN", f"{event.partition} does not move to {event.target}: {event.reason}"


def _replicas_wait(event: ReplicasWait) -> Line:
    return "WARN", f"too many open files: {event.partition} and later replicas must wait"


def _replicas_wait_no_more(event: ReplicasWaitNoMore) -> Line:
    return "INFO", f"files can be opened again: the {event.replicas} replicas that waited are here"


LINES: Final[Lines] = {
    IsrChanged: _isr_changed,
    RecordsRefused: _records_refused,
    FetchResponseMalformed: _fetch_response_malformed,
    LogTruncated: _log_truncated,
    ReplicaDeleted: _replica_deleted,
    ReplicaUnknown: _replica_unknown,
    ReplicaOfDeletedTopic: _replica_of_deleted_topic,
    ReplicaFoundTwice: _replica_found_twice,
    ReplicaMoves: _replica_moves,
    ReplicaMoved: _replica_moved,
    ReplicaMoveEnded: _replica_move_ended,
    ReplicasWait: _replicas_wait,
    ReplicasWaitNoMore: _replicas_wait_no_more,
}

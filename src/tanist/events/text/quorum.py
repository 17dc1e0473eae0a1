"""The operator's lines of `events.quorum`: who leads, and what becomes of the metadata log."""

from __future__ import annotations

from tanist.events.quorum import (
    MetadataLogNotClosed,
    MetadataLogTruncated,
    QuorumLeaderChanged,
    QuorumLeaderGone,
    SnapshotWritten,
)
from tanist.events.text.line import Line, Lines


def _leader_changed(event: QuorumLeaderChanged) -> Line | None:
    """That there is none says nothing: one is elected in a moment."""
    return None if event.leader_id is None else ("INFO", f"quorum leader is {event.leader_id} in epoch {event.epoch}")


def _leader_gone(event: QuorumLeaderGone) -> Line:
    return "WARN", f"quorum leader {event.leader_id} is gone (connection refused)"


def _truncated(event: MetadataLogTruncated) -> Line:
    return "INFO", f"metadata log truncated to {event.offset}"


def _snapshot_written(event: SnapshotWritten) -> Line:
    return "INFO", f"metadata snapshot at offset {event.end_offset}"


def _not_closed(event: MetadataLogNotClosed) -> Line:
    return "ERROR", f"the metadata log could not be closed, the next start recovers it: {event.problem}"


LINES: Lines = {
    QuorumLeaderChanged: _leader_changed,
    QuorumLeaderGone: _leader_gone,
    MetadataLogTruncated: _truncated,
    SnapshotWritten: _snapshot_written,
    MetadataLogNotClosed: _not_closed,
}

"""The operator's lines of `events.storage`. A kind that is not in `LINES` has none."""

from __future__ import annotations

from typing import Final

from tanist.events.storage import (
    BatchDamaged,
    CheckpointDamaged,
    CleanerCheckpointDamaged,
    FilesNotDeleted,
    LogCompacted,
    LogDirectoryFailed,
    LogDirectoryGone,
    LogLost,
    LogRecovered,
    LogsLoaded,
    LogsLoading,
    LogsLost,
    LogUncleanable,
    NamelessLogDropped,
    QuarantineUnreadable,
    RecordsSalvaged,
    RetentionHeldUp,
    SalvageFailed,
    SalvageIncomplete,
    SalvageNotRemoved,
    SalvageRemoved,
    SalvageTidied,
    SalvageUnbounded,
    ShutdownUnclean,
)
from tanist.events.text.line import Line, Lines
from tanist.text import counted, timestamp_text

_NAMED_MAX: Final = 5
"""Lost logs that one line names. Each has a line of its own when its replica is hosted."""


# ---- a start


def _logs_loading(event: LogsLoading) -> Line:
    return "INFO", f"loading logs: {loading_progress(event)}"


def loading_progress(event: LogsLoading) -> str:
    """How many logs are loaded, and how many segments those at work have to recover."""
    recovers = f", {counted(event.segments_left, 'segment')} to recover" if event.segments_left else ""
    return f"{event.loaded:,} of {event.total:,} loaded{recovers}"


def _logs_loaded(event: LogsLoaded) -> Line:
    return "INFO", f"{counted(event.logs, 'log', separator=',')} loaded in {event.took_ms} ms"


def _log_recovered(event: LogRecovered) -> Line:
    reasons = "; ".join(event.reasons)
    return "WARN", f"{event.partition}: cut {event.bytes_cut} bytes at offset {event.offset} ({reasons})"


def _logs_lost(event: LogsLost) -> Line:
    if event.logs:
        named = "; ".join(f"{partition}: {what}" for partition, what in event.logs[:_NAMED_MAX])
        more = f"; and {len(event.logs) - _NAMED_MAX} more" if len(event.logs) > _NAMED_MAX else ""
        what = f"a part of {counted(len(event.logs), 'log')} ({named}{more})"
    else:
        what = "the list of its logs (the recovery points)"
    return "ERROR", (
        f"the last stop was clean, and {what} is gone since: this start counts as an unclean one, and the broker "
        "leaves every ISR and ELR"
    )


def _log_lost(event: LogLost) -> Line:
    return "ERROR", f"{event.partition}: a part of its log is gone ({event.what})"


def _log_directory_gone(event: LogDirectoryGone) -> Line:
    return "ERROR", (
        f"log directory {event.directory_id} is gone, with {event.partition} and perhaps others: empty logs take their "
        "place"
    )


def _checkpoint_damaged(event: CheckpointDamaged) -> Line:
    return "WARN", event.reason


def _nameless_log_dropped(event: NamelessLogDropped) -> Line:
    return "WARN", f"{event.path}: a loss of power has cost the topic's id, and the records with it"


# ---- disks


def _log_directory_failed(event: LogDirectoryFailed) -> Line:
    return "ERROR", f"log directory {event.directory} is offline: {event.reason}"


def _shutdown_unclean(event: ShutdownUnclean) -> Line:
    return "ERROR", f"{event.directory}: unclean shutdown: {event.reason}"


def _files_not_deleted(event: FilesNotDeleted) -> Line:
    return "WARN", f"could not delete {list(event.paths)}: {event.reason}"


def _batch_damaged(event: BatchDamaged) -> Line:
    return "ERROR", f"{event.partition}: {event.reason}"


# ---- salvage


def _entry(event: RecordsSalvaged | SalvageRemoved) -> str:
    end = f" to {event.to_offset}" if event.to_offset >= 0 else ""
    return f"{event.entry_id} ({event.partition}, offset {event.from_offset}{end}, {event.size_bytes} bytes)"


def _records_salvaged(event: RecordsSalvaged) -> Line:
    return "WARN", f"salvage {_entry(event)} is saved before it is dropped ({event.reason})"


def _salvage_incomplete(event: SalvageIncomplete) -> Line:
    return "ERROR", (
        f"{event.partition}: {event.size_bytes} bytes from offset {event.from_offset} to {event.to_offset} are NOT "
        "saved: tanist.salvage.retention.bytes has no space for them"
    )


def _salvage_failed(event: SalvageFailed) -> Line:
    what = "the replica waits" if event.waits else "they are dropped"
    return "ERROR", (
        f"{event.partition}: {event.size_bytes} bytes from offset {event.from_offset} on are NOT saved "
        f"({event.reason}), {what}: {event.failure}"
    )


def _salvage_removed(event: SalvageRemoved) -> Line:
    too_old = event.setting == "tanist.salvage.retention.ms"
    why = "it is older than" if too_old else "the salvage is larger than"
    return "WARN", f"salvage {_entry(event)} is removed: {why} {event.setting}"


def _salvage_not_removed(event: SalvageNotRemoved) -> Line:
    return "WARN", f"salvage {event.entry_id} cannot be removed: {event.reason}"


def _salvage_unbounded(event: SalvageUnbounded) -> Line:
    return "WARN", f"the salvage in {event.directory} cannot be kept within its bounds: {event.reason}"


def _salvage_tidied(event: SalvageTidied) -> Line:
    what = "was complete but for its name" if event.complete else "was not complete: removed"
    return "INFO", f"{event.directory}: salvage {event.entry_id} {what}"


def _quarantine_unreadable(event: QuarantineUnreadable) -> Line:
    return "WARN", f"{event.path} cannot be read: {event.reason}"


# ---- compaction and retention


def _log_compacted(event: LogCompacted) -> Line:
    return "INFO", (
        f"{event.partition} is compacted up to offset {event.end_offset}: {event.records_dropped} records dropped, "
        f"{event.size_before_bytes} bytes are {event.size_after_bytes} now"
    )


def _log_uncleanable(event: LogUncleanable) -> Line:
    return "ERROR", f"{event.partition} cannot be compacted and is left as it is: {event.reason}"


def _cleaner_checkpoint_damaged(event: CleanerCheckpointDamaged) -> Line:
    return "WARN", f"all compacted logs are taken for dirty: {event.reason}"


def _retention_held_up(event: RetentionHeldUp) -> Line:
    return "WARN", (
        f"{event.partition}: the segment of offset {event.base_offset} has a record of "
        f"{timestamp_text(event.timestamp)}, which is to come: until then retention.ms deletes neither it nor what "
        "follows"
    )


LINES: Final[Lines] = {
    LogsLoading: _logs_loading,
    LogsLoaded: _logs_loaded,
    LogRecovered: _log_recovered,
    LogsLost: _logs_lost,
    LogLost: _log_lost,
    LogDirectoryGone: _log_directory_gone,
    CheckpointDamaged: _checkpoint_damaged,
    NamelessLogDropped: _nameless_log_dropped,
    LogDirectoryFailed: _log_directory_failed,
    ShutdownUnclean: _shutdown_unclean,
    FilesNotDeleted: _files_not_deleted,
    BatchDamaged: _batch_damaged,
    RecordsSalvaged: _records_salvaged,
    SalvageIncomplete: _salvage_incomplete,
    SalvageFailed: _salvage_failed,
    SalvageRemoved: _salvage_removed,
    SalvageNotRemoved: _salvage_not_removed,
    SalvageUnbounded: _salvage_unbounded,
    SalvageTidied: _salvage_tidied,
    QuarantineUnreadable: _quarantine_unreadable,
    LogCompacted: _log_compacted,
    LogUncleanable: _log_uncleanable,
    CleanerCheckpointDamaged: _cleaner_checkpoint_damaged,
    RetentionHeldUp: _retention_held_up,
}

"""Events of logs and their directories: what a start finds, failures of disks, salvage, compaction, and retention.

Emitted by `log`, by `broker/storage`, and by what loads logs and reads them in `broker`. A `partition` is "events-0".
Those that say *fine* come with records, and are emitted only if somebody wants them (`stream.Events.fine`).
"""

from __future__ import annotations

from tanist.events.event import Event

# ---- a start


class LogsLoading(Event):
    """Logs are being loaded, for some seconds now."""

    loaded: int
    total: int
    segments_left: int
    """That those at work have to recover."""


class LogsLoaded(Event):
    """All logs of the broker are open."""

    logs: int
    took_ms: int


class LogRecovered(Event):
    """The recovery of a log has cut off what is torn, lost or rotten, and all that follows it."""

    partition: str
    bytes_cut: int
    offset: int
    """The log's end since then."""
    reasons: tuple[str, ...]


class LogsLost(Event):
    """The last stop was clean, and logs are gone since: the start counts as an unclean one (rule 87)."""

    logs: tuple[tuple[str, str], ...]
    """(partition, what is gone). None named: the list of the logs itself is gone."""


class LogLost(Event):
    """A part of a replica's log is gone: what the last run has left is not all there."""

    partition: str
    what: str


class LogDirectoryGone(Event):
    """The directory to which the metadata assigns this replica is not here any more: an empty log takes its place."""

    directory_id: str
    partition: str


class CheckpointDamaged(Event):
    """A checkpoint of a log directory cannot be read: the start goes on without it."""

    reason: str


class NamelessLogDropped(Event):
    """A loss of power has cost a new log its topic's id, and nothing of its records was durable: it is deleted."""

    path: str


# ---- disks


class LogDirectoryFailed(Event):
    """A log directory is offline, with all its replicas (rule 48)."""

    directory: str
    reason: str


class ShutdownUnclean(Event):
    """A stop could not close the logs of a directory in good order: the next start will recover them."""

    directory: str
    reason: str


class FilesNotDeleted(Event):
    """Files or folders that were given up cannot be removed."""

    paths: tuple[str, ...]
    reason: str


# ---- batches and segments


class RecordsAppended(Event):
    """Fine. The log has grown, by records of one leader epoch: a leader's by what it was sent, a follower's by what it
    has fetched."""

    partition: str
    leader_epoch: int
    """Of the records, which a follower may get from a later leader."""
    first_offset: int
    end_offset: int


class BatchRepeated(Event):
    """Fine. A producer's batch is in the log already: the retry is answered, not appended (KIP-98)."""

    partition: str
    first_offset: int
    last_offset: int


class SegmentRolled(Event):
    """Fine. The log goes on in a new segment."""

    partition: str
    base_offset: int


class RecordsCut(Event):
    """A log is about to drop its records from `offset` on, up to its end."""

    partition: str
    offset: int
    end_offset: int


class LogStartMoved(Event):
    """Fine. The log begins later: by retention, DeleteRecords, or its leader's log start."""

    partition: str
    previous: int
    log_start_offset: int


class BatchDamaged(Event):
    """A batch that a client has asked for by time cannot be read."""

    partition: str
    reason: str


# ---- salvage


class RecordsSalvaged(Event):
    """Records are saved that a log is about to drop. `to_offset` -1: where they end is not known."""

    partition: str
    entry_id: str
    from_offset: int
    to_offset: int
    size_bytes: int
    reason: str
    """Of `SalvageReason`: why the log drops them."""


class SalvageIncomplete(Event):
    """A part of what was to be saved has no space within `tanist.salvage.retention.bytes`."""

    partition: str
    from_offset: int
    to_offset: int
    size_bytes: int


class SalvageFailed(Event):
    """Records cannot be saved. The replica `waits`, or they are dropped all the same."""

    partition: str
    from_offset: int
    size_bytes: int
    reason: str
    """Of `SalvageReason`."""
    waits: bool
    failure: str


class SalvageOvertaken(Event):
    """The follower has another role since its records were copied: nothing is cut in the old one's name."""

    partition: str


class SalvageRemoved(Event):
    """An entry is removed: `setting`, a bound of the quarantine, has pushed it out."""

    partition: str
    entry_id: str
    from_offset: int
    to_offset: int
    size_bytes: int
    setting: str


class SalvageNotRemoved(Event):
    """An entry that is of no use cannot be removed."""

    entry_id: str
    reason: str


class SalvageUnbounded(Event):
    """The bounds of a directory's quarantine cannot be enforced for now."""

    directory: str
    reason: str


class SalvageTidied(Event):
    """A start has found an entry that a crash had interrupted: it was `complete` but for its name, or is removed."""

    directory: str
    entry_id: str
    complete: bool


class QuarantineUnreadable(Event):
    """A start cannot read the folder of what was saved."""

    path: str
    reason: str


# ---- compaction and retention


class LogCompacted(Event):
    """A cleaning has ended."""

    partition: str
    end_offset: int
    records_dropped: int
    size_before_bytes: int
    size_after_bytes: int


class LogUncleanable(Event):
    """A log cannot be compacted, and is left as it is until the next start."""

    partition: str
    reason: str


class CleanerCheckpointDamaged(Event):
    """How far the logs of a directory are clean is not known: all are taken for dirty."""

    reason: str


class RetentionHeldUp(Event):
    """A record with a time that is to come keeps `retention.ms` from deleting its segment and those that follow."""

    partition: str
    base_offset: int
    timestamp: int

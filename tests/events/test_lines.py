"""The operator's line of each event of replication and storage, word for word, or none."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from tanist.events import replication, storage
from tanist.events.event import Event, from_json, to_json
from tanist.events.replication import (
    BecameFollower,
    BecameLeader,
    CutAnnounced,
    DivergenceFound,
    FetchAnswerDropped,
    FetchFailed,
    FetchRefused,
    FetchResponseMalformed,
    FollowerFenced,
    FollowerFetched,
    HighWatermarkLearned,
    HighWatermarkMoved,
    HighWatermarkWaits,
    IsrAnswerIgnored,
    IsrChanged,
    IsrJoinDelayed,
    IsrProposalEnded,
    IsrProposalRepeated,
    IsrProposed,
    IsrUpdateFailed,
    LogTruncated,
    ProduceRefused,
    RecordsRefused,
    ReplicaDeleted,
    ReplicaFoundTwice,
    ReplicaMoved,
    ReplicaMoveEnded,
    ReplicaMoves,
    ReplicaOfDeletedTopic,
    ReplicasWait,
    ReplicasWaitNoMore,
    ReplicationThrottled,
    ReplicaUnknown,
    StoppedReplicating,
    SucceededItself,
    TruncationUnfinished,
)
from tanist.events.storage import (
    BatchDamaged,
    BatchRepeated,
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
    LogStartMoved,
    LogUncleanable,
    NamelessLogDropped,
    QuarantineUnreadable,
    RecordsAppended,
    RecordsCut,
    RecordsSalvaged,
    RetentionHeldUp,
    SalvageFailed,
    SalvageIncomplete,
    SalvageNotRemoved,
    SalvageOvertaken,
    SalvageRemoved,
    SalvageTidied,
    SalvageUnbounded,
    SegmentRolled,
    ShutdownUnclean,
)
from tanist.events.text import describe
from tanist.text import host_port

P = "events-0"
LOST = (
    "the last stop was clean, and {} is gone since: this start counts as an unclean one, and the broker leaves every "
    "ISR and ELR"
)

LINES: list[tuple[Event, str | None]] = [
    (BecameLeader(P, 5, 10), None),
    (SucceededItself(P, 6, True), None),
    (BecameFollower(P, 2, 5), None),
    (StoppedReplicating(P, 5), None),
    (IsrProposed(P, 5, 7, (1, 2), (1, 2, 3)), None),
    (IsrChanged(P, (1, 2), (2,), ()), "INFO events-0: ISR is now [1, 2]"),
    (IsrUpdateFailed(P, 74, False), None),
    (IsrProposalRepeated(P, 5, 7), None),
    (IsrProposalEnded(P, 5, 8), None),
    (IsrAnswerIgnored(P, "replaced"), None),
    (IsrJoinDelayed(P, 3, "eligible"), None),
    (FollowerFetched(P, 2, 9, 5, 10, 4), None),
    (HighWatermarkMoved(P, 3, 4, (1, 2), (1, 2, 3)), None),
    (HighWatermarkWaits(P, 3, 4), None),
    (HighWatermarkLearned(P, 5, 4), None),
    (FetchRefused(P, 2, 4, 5, 74, "leader epoch"), None),
    (DivergenceFound(P, 2, 12, 4, 4, 10), None),
    (ProduceRefused(P, (1,), 2), None),
    (FetchAnswerDropped(P, 5, 9), None),
    (FetchFailed(P, 2, 5, 6, 10), None),
    (FollowerFenced(P, 2, 5), None),
    (
        RecordsRefused(P, 2, 5, 2, "its CRC does not match"),
        "ERROR events-0: records of broker 2: its CRC does not match",
    ),
    (FetchResponseMalformed(2, "too short"), "ERROR malformed fetch response from broker 2: too short"),
    (ReplicationThrottled("leader"), None),
    (CutAnnounced(P, 5, 5, 10, 3, False, "clean-election"), None),
    (LogTruncated(P, 5, 10, 5), "INFO events-0: truncated 5 records, from offset 5"),
    (
        LogTruncated(P, 5, 10, 8),
        "WARN events-0: truncated 5 records, from offset 5, BELOW the high watermark 8",
    ),
    (LogTruncated(P, 10, 10, 8), None),
    (LogTruncated(P, 20, 10, 8, fully=True), "INFO events-0: dropped all records, begins at offset 20"),
    (LogTruncated(P, 10, 10, 8, fully=True), "INFO events-0: truncated 0 records, from offset 10"),
    (TruncationUnfinished(P, 3, 6), None),
    (ReplicaDeleted(P, at_start=True), "INFO events-0 is not ours any more: deleting its log"),
    (ReplicaDeleted(P, at_start=False), None),
    (ReplicaUnknown(P), "WARN events-0 has no topic id and is in no use: left where it lies"),
    (ReplicaOfDeletedTopic(P), "INFO events-0: the log on disk belongs to a deleted topic of that name"),
    (ReplicaFoundTwice(P, "/more"), "WARN events-0 lies in two log directories: /more has the older"),
    (ReplicaMoves(P, "/one", "/two"), "INFO events-0: moving from /one to /two"),
    (ReplicaMoved(P, "/one", "/two"), "INFO events-0: moved from /one to /two"),
    (ReplicaMoveEnded(P, "/two", "/two is offline"), "WARN events-0 does not move to /two: /two is offline"),
    (ReplicasWait(P), "WARN too many open files: events-0 and later replicas must wait"),
    (ReplicasWaitNoMore(7), "INFO files can be opened again: the 7 replicas that waited are here"),
    (LogsLoading(1200, 4000, 0), "INFO loading logs: 1,200 of 4,000 loaded"),
    (LogsLoading(0, 1, 1), "INFO loading logs: 0 of 1 loaded, 1 segment to recover"),
    (LogsLoaded(4000, 12), "INFO 4,000 logs loaded in 12 ms"),
    (LogRecovered(P, 70, 5, ("torn", "rotten")), "WARN events-0: cut 70 bytes at offset 5 (torn; rotten)"),
    (LogsLost(()), "ERROR " + LOST.format("the list of its logs (the recovery points)")),
    (LogsLost(((P, "it is gone"),)), "ERROR " + LOST.format("a part of 1 log (events-0: it is gone)")),
    (
        LogsLost(tuple((f"t-{n}", "gone") for n in range(7))),
        "ERROR " + LOST.format("a part of 7 logs (t-0: gone; t-1: gone; t-2: gone; t-3: gone; t-4: gone; and 2 more)"),
    ),
    (LogLost(P, "it is gone"), "ERROR events-0: a part of its log is gone (it is gone)"),
    (
        LogDirectoryGone("AAAAAAAAAAAAAAAAAAAACQ", P),
        "ERROR log directory AAAAAAAAAAAAAAAAAAAACQ is gone, with events-0 and perhaps others: empty logs "
        "take their place",
    ),
    (CheckpointDamaged("/d/points: line 2"), "WARN /d/points: line 2"),
    (
        NamelessLogDropped("/d/events-0"),
        "WARN /d/events-0: a loss of power has cost the topic's id, and the records with it",
    ),
    (LogDirectoryFailed("/d", "[Errno 5] failed"), "ERROR log directory /d is offline: [Errno 5] failed"),
    (ShutdownUnclean("/d", "[Errno 5] failed"), "ERROR /d: unclean shutdown: [Errno 5] failed"),
    (FilesNotDeleted(("/d/a", "/d/b"), "failed"), "WARN could not delete ['/d/a', '/d/b']: failed"),
    (RecordsAppended(P, 5, 10, 12), None),
    (BatchRepeated(P, 3, 5), None),
    (SegmentRolled(P, 7), None),
    (RecordsCut(P, 5, 10), None),
    (LogStartMoved(P, 0, 7), None),
    (BatchDamaged(P, "offset 3"), "ERROR events-0: offset 3"),
    (
        RecordsSalvaged(P, "e1", 5, 10, 700, "clean-election"),
        "WARN salvage e1 (events-0, offset 5 to 10, 700 bytes) is saved before it is dropped (clean-election)",
    ),
    (
        RecordsSalvaged(P, "e1", 5, -1, 700, "recovery-cut"),
        "WARN salvage e1 (events-0, offset 5, 700 bytes) is saved before it is dropped (recovery-cut)",
    ),
    (
        SalvageIncomplete(P, 5, 8, 300),
        "ERROR events-0: 300 bytes from offset 5 to 8 are NOT saved: tanist.salvage.retention.bytes has no space for "
        "them",
    ),
    (
        SalvageFailed(P, 5, 700, "clean-election", True, "the disk is full"),
        "ERROR events-0: 700 bytes from offset 5 on are NOT saved (clean-election), the replica waits: "
        "the disk is full",
    ),
    (
        SalvageFailed(P, 5, 700, "clean-election", False, "the disk is full"),
        "ERROR events-0: 700 bytes from offset 5 on are NOT saved (clean-election), they are dropped: the disk is full",
    ),
    (SalvageOvertaken(P), None),
    (
        SalvageRemoved(P, "e1", 5, 10, 700, "tanist.salvage.retention.ms"),
        "WARN salvage e1 (events-0, offset 5 to 10, 700 bytes) is removed: it is older than "
        "tanist.salvage.retention.ms",
    ),
    (
        SalvageRemoved(P, "e1", 5, 10, 700, "tanist.salvage.retention.bytes"),
        "WARN salvage e1 (events-0, offset 5 to 10, 700 bytes) is removed: the salvage is larger than "
        "tanist.salvage.retention.bytes",
    ),
    (SalvageNotRemoved("e1", "failed"), "WARN salvage e1 cannot be removed: failed"),
    (SalvageUnbounded("/d", "failed"), "WARN the salvage in /d cannot be kept within its bounds: failed"),
    (SalvageTidied("/d", "e1", True), "INFO /d: salvage e1 was complete but for its name"),
    (SalvageTidied("/d", "e1", False), "INFO /d: salvage e1 was not complete: removed"),
    (QuarantineUnreadable("/d/q", "failed"), "WARN /d/q cannot be read: failed"),
    (
        LogCompacted(P, 9, 3, 900, 600),
        "INFO events-0 is compacted up to offset 9: 3 records dropped, 900 bytes are 600 now",
    ),
    (LogUncleanable(P, "damage"), "ERROR events-0 cannot be compacted and is left as it is: damage"),
    (CleanerCheckpointDamaged("/d/c: line 2"), "WARN all compacted logs are taken for dirty: /d/c: line 2"),
    (
        RetentionHeldUp(P, 0, 0),
        "WARN events-0: the segment of offset 0 has a record of 1970-01-01T00:00:00.000Z, which is to come: until then "
        "retention.ms deletes neither it nor what follows",
    ),
]


@pytest.mark.parametrize(("event", "line"), LINES, ids=lambda value: type(value).__name__)
def test_the_operator_reads_it(event: Event, line: str | None) -> None:
    rendered = describe(event)
    assert (None if rendered is None else " ".join(rendered)) == line
    assert from_json(to_json(event)) == event


@pytest.mark.parametrize("module", [replication, storage])
def test_each_kind_has_a_line_or_is_known_to_have_none(module: ModuleType) -> None:
    kinds = {kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__}
    assert kinds == {type(event) for event, _ in LINES if type(event).__module__ == module.__name__}


@pytest.mark.parametrize(("host", "text"), [("kafka-1", "kafka-1:9092"), ("::1", "[::1]:9092")])
def test_an_address_of_ipv6_has_brackets(host: str, text: str) -> None:
    assert host_port(host, 9092) == text

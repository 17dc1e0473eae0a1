"""The operator's line of each event of metadata, quorum, coordinators and process, word for word, or none."""

from __future__ import annotations

from types import ModuleType

import pytest

from tanist.events import coordination, metadata, process, quorum
from tanist.events.coordination import (
    CoordinatorGivenUp,
    CoordinatorLoaded,
    CoordinatorRecordUnreadable,
    CoordinatorUnreadable,
    HangingMarkerRefused,
    HangingTransactionEnded,
    TransactionEnded,
)
from tanist.events.event import Event, from_json, to_json
from tanist.events.metadata import (
    AlterPartitionRefused,
    BrokerFenced,
    BrokerGone,
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnfenced,
    BrokerUnregistered,
    ConfigChanged,
    ControllerActivated,
    ControllerActivationAbandoned,
    ControllerActivationWaits,
    ControllerResigned,
    DirectoriesLost,
    ElrsEmptied,
    FeatureLeftOut,
    FeatureLevelChanged,
    FencingBegun,
    FencingInterrupted,
    FencingLearned,
    ForwardingRefused,
    InternalTopicNotCreated,
    LeaderElected,
    LogEndsAsked,
    LogInfoDropped,
    LogInfoUnanswered,
    LogInfoUnsupported,
    MetadataLogMissing,
    PartitionChanged,
    PartitionCreated,
    QuorumStateMissing,
    RecoveriesBegunAnew,
    RecoveryDecided,
    RecoveryPhaseEntered,
    RegistrationAccepted,
    RegistrationLost,
    RegistrationRefused,
    RegistrationRepeated,
    SessionExpired,
    ShutdownAllowed,
    StaleBrokerEpochRefused,
    TopicCreated,
    TopicDeleted,
    UncleanElection,
    UnfencingLearned,
)
from tanist.events.process import (
    AdvertisedHostNotInCertificate,
    AllFaultsHealed,
    AuthenticationFailed,
    AuthorizationDenied,
    BrokerReady,
    CertificateExpires,
    CertificateRefused,
    CertificateTaken,
    ClusterIdIgnored,
    ConfigWarned,
    ConnectionRefused,
    ConnectionsExhausted,
    Crashed,
    DescriptorLimitLow,
    DescriptorLimitReached,
    FaultApplied,
    FaultHealed,
    FaultsIgnored,
    FaultsNotAcknowledged,
    FolderFormatted,
    FolderMissing,
    FormatFailed,
    LeadershipsNotHandedOver,
    ListenerFailed,
    LogDirectoriesFailed,
    MalformedRequest,
    MetadataLogFailed,
    MetricsNotServed,
    MetricsServed,
    NodeFailed,
    NodeStarted,
    PeerAuthenticationFailed,
    RegistrationFailed,
    ServerStarted,
    ShutdownBegun,
    ShutdownDone,
    SignalReceived,
    StartFailed,
    TlsHandshakeFailed,
    TokenKeysFailed,
    TokenKeysFetched,
    UnexpectedError,
)
from tanist.events.quorum import (
    BecameCandidate,
    BecameQuorumLeader,
    ElectionLost,
    LeaderClaimRefused,
    LeaderDeposed,
    LeaderLeaves,
    LeaderResigned,
    MetadataFetchRefused,
    MetadataLogNotClosed,
    MetadataLogTruncated,
    PreVoteLost,
    QuorumLeaderChanged,
    QuorumLeaderGone,
    SnapshotDownloaded,
    SnapshotLoaded,
    SnapshotOffered,
    SnapshotWritten,
    SteppedDown,
    VoterAdded,
    VoterChangeEnded,
    VoterChangeRefused,
    VoterChangeTruncated,
    VoteRefused,
    VoterRemoved,
)
from tanist.events.text import describe

P = "events-0"
LOSS = (
    "WARN POSSIBLE DATA LOSS: events-0 is led by 2 from leader epoch 5 on, by an unclean election; committed records "
    "that it lacks are lost ({})"
)
CHANGED = PartitionChanged(
    P, 8, 1, -1, 4, 5, (1,), (), (2,), (1, 2), (), (), (1, 2, 3), (1, 2, 3), False, False, False, False, 2, True
)

LINES: list[tuple[Event, str | None]] = [
    # the metadata
    (TopicCreated("events", "id"), None),
    (TopicDeleted("events", "id"), None),
    (PartitionCreated(P, (1, 2), (1, 2), 1, 0), None),
    (CHANGED, None),
    (LeaderElected(P, 2, 5, 1, True, False), None),
    (UncleanElection(P, 2, 5), LOSS.format("nobody eligible is left")),
    (
        UncleanElection(P, 2, 5, asked_for="an unclean election"),
        LOSS.format("an operator asked for an unclean election"),
    ),
    (
        UncleanElection(P, 2, 5, asked_for="a designation", asked_by="User:alice at 10.0.0.1, client 'tanist'"),
        LOSS.format("an operator asked for a designation: User:alice at 10.0.0.1, client 'tanist'"),
    ),
    (
        UncleanElection(P, 2, 5, "Balanced", ((1, 3, 10), (2, 4, 7))),
        LOSS.format("Balanced unclean recovery compared the logs of {1: epoch 3 end 10, 2: epoch 4 end 7}"),
    ),
    (BrokerRegistered(1, 7, "id", True), None),
    (BrokerFenced(1, 7), None),
    (BrokerUnfenced(1, 7), None),
    (BrokerShuttingDown(1, 7), None),
    (BrokerUnregistered(1, 7), None),
    (FeatureLevelChanged("metadata.version", 29, 30), None),
    (ConfigChanged(2, "events", "retention.ms", False), None),
    (ControllerActivated(3, 9), "INFO controller 3 is active in epoch 9"),
    (ControllerResigned(3, 9), "INFO controller 3 resigns epoch 9"),
    (ControllerActivationWaits(9, 100, 200), None),
    (ControllerActivationAbandoned(9), None),
    (AlterPartitionRefused(P, 1, "INELIGIBLE_REPLICA"), None),
    (StaleBrokerEpochRefused("AlterPartition", 1, 6), None),
    (RegistrationRefused(1, "DUPLICATE_BROKER_REGISTRATION"), None),
    (RegistrationRepeated(1, 7), None),
    (SessionExpired(1, 7), None),
    (BrokerGone(2), "WARN broker 2 is gone (connection refused): fenced"),
    (FencingBegun(1, 7), None),
    (FencingInterrupted(1, 7), None),
    (ShutdownAllowed(1, 7, True), None),
    (DirectoriesLost(1, ("id",)), None),
    (ElrsEmptied(3), None),
    (RecoveriesBegunAnew(4), None),
    (RecoveryPhaseEntered(P, "COMPARING", "Balanced"), None),
    (LogInfoDropped(P, 2, 7, 5, True), None),
    (RecoveryDecided(P, 2, "Balanced", (3,)), None),
    (
        LogInfoUnanswered(2, 3, False),
        "WARN broker 2 does not say where its logs end, for the unclean recovery of 3 partitions: it is asked again, "
        "less and less often",
    ),
    (LogInfoUnanswered(2, 3, True), None),
    (
        LogInfoUnsupported(2),
        "INFO broker 2 does not have GetReplicaLogInfo: it is asked for the ends of its logs by ListOffsets and Fetch",
    ),
    (LogEndsAsked(2, 3), None),
    (RegistrationAccepted(1, 7), "INFO registered broker 1 with epoch 7"),
    (RegistrationLost(1, 7), "WARN broker 1: epoch 7 is stale, registering anew"),
    (UnfencingLearned(1), "INFO broker 1 is unfenced"),
    (FencingLearned(1), "WARN broker 1 was fenced"),
    (
        ForwardingRefused("INVALID_REQUEST"),
        "WARN the controller refuses a forwarded request: INVALID_REQUEST",
    ),
    (InternalTopicNotCreated("t", "", 0), "WARN t can't be created: no controller answers"),
    (
        InternalTopicNotCreated("t", "INVALID_REPLICATION_FACTOR", 3),
        "WARN t can't be created: INVALID_REPLICATION_FACTOR (and 3 like it)",
    ),
    (FeatureLeftOut("/d/b", "x", 1), "WARN /d/b: x 1 is left out; tanist does not have it"),
    (QuorumStateMissing("/d/q"), "WARN /d/q is gone: a vote that this node has given may be given again"),
    (
        MetadataLogMissing("/d/m"),
        "WARN /d/m is gone, and records of it that this node has confirmed: it begins without any",
    ),
    # the quorum
    (QuorumLeaderChanged(2, 5), "INFO quorum leader is 2 in epoch 5"),
    (QuorumLeaderChanged(None, 5), None),
    (BecameQuorumLeader(5, 10), None),
    (SteppedDown(5, 2), None),
    (LeaderResigned(5, "SHUTDOWN"), None),
    (LeaderDeposed(5, 6), None),
    (LeaderLeaves(2, 5), None),
    (QuorumLeaderGone(2), "WARN quorum leader 2 is gone (connection refused)"),
    (BecameCandidate(6, True), None),
    (VoteRefused(2, 6, False), None),
    (PreVoteLost(5, 1), None),
    (ElectionLost(6), None),
    (LeaderClaimRefused(2, 5, 6), None),
    (MetadataFetchRefused(2, "NOT_LEADER_OR_FOLLOWER"), None),
    (SnapshotOffered(2, 100, 5), None),
    (MetadataLogTruncated(90), "INFO metadata log truncated to 90"),
    (SnapshotDownloaded(100, 5), None),
    (SnapshotLoaded(100, 5, True), None),
    (SnapshotWritten(100, 5), "INFO metadata snapshot at offset 100"),
    (
        MetadataLogNotClosed("[Errno 5] failed"),
        "ERROR the metadata log could not be closed, the next start recovers it: [Errno 5] failed",
    ),
    (VoterAdded(4, "id"), None),
    (VoterRemoved(4, "id"), None),
    (VoterChangeRefused(4, "UNDER_WAY"), None),
    (VoterChangeEnded("NOT_CAUGHT_UP"), None),
    (VoterChangeTruncated(90), None),
    # coordinators
    (
        CoordinatorLoaded("__consumer_offsets-3", "groups", 2, 40, 7),
        "INFO __consumer_offsets-3: 2 groups of 40 records, 7 ms after the election",
    ),
    (CoordinatorGivenUp("t-3"), "WARN t-3 is read anew, after an unexpected error"),
    (CoordinatorUnreadable("t-3", "damage"), "ERROR t-3 can't be served, its log can't be read: damage"),
    (CoordinatorRecordUnreadable("t-3", 9, "too short"), "WARN t-3 at 9: too short"),
    (TransactionEnded("x", 1, 2, True), None),
    (coordination.ShareStateRead("g", P, 1, 2, 30, False), None),
    (coordination.ShareStateRefused("g", P, 1, 74), None),
    (coordination.ShareRecordsAcquired("g", P, 1, "m", 0, 4, 1), None),
    (coordination.ShareRecordsStored("g", P, 1, 0, 4, 2), None),
    (coordination.ShareLockExpired("g", P, 1, 0, 4, True), None),
    (coordination.DeadLettersWritten("g", P, 0, 4, "dlq.t"), None),
    (coordination.DeadLettersLeftOut("g", P, 0, 4, "no topic"), None),
    (
        coordination.DeadLettersNotWritten("g", P, "no topic", 2),
        f"WARN dead letters of g from {P} are not written: no topic (and 2 like it)",
    ),
    (coordination.ShareSessionEnded("g", "m"), None),
    (coordination.ShareSessionRefused("g", "m", 122), None),
    (
        HangingTransactionEnded(P, 4000, 2, True, "its id says so", 5, 9),
        "WARN events-0: the transaction of producer 4000 in epoch 2 has no marker and gets none, as after an unclean "
        "election: its id says so; it is committed (offsets 5 to 9)",
    ),
    (
        HangingTransactionEnded(P, 4000, 2, False, "nobody knows", 5, 9),
        "WARN events-0: the transaction of producer 4000 in epoch 2 has no marker and gets none, as after an unclean "
        "election: nobody knows; it is aborted, and no reader of committed records gets it (offsets 5 to 9)",
    ),
    (
        HangingMarkerRefused(P, 6),
        "WARN events-0: the marker of a transaction that has none was refused with error 6: it stays open for now",
    ),
    # the process
    (ConfigWarned("x is not obeyed"), "WARN x is not obeyed"),
    (FolderFormatted("/d", 1, "c"), "INFO formatted /d for node 1 of cluster c"),
    (ClusterIdIgnored("/d", "c", "CLUSTER_ID", "e"), "WARN /d belongs to cluster c; CLUSTER_ID=e is ignored"),
    (FolderMissing("/d"), "ERROR /d does not exist: format it first (`tanist format -c FILE -t CLUSTER_ID`)"),
    (FormatFailed(("/d", "/e"), "no space"), "ERROR cannot format /d, /e: no space"),
    (StartFailed(1, "no space"), "ERROR node 1 cannot start: no space"),
    (
        NodeStarted(1, ("broker", "controller"), 99, ("A://h:1", "B://h:2"), 80),
        "INFO node 1 (broker and controller, process 99) is at A://h:1, B://h:2; started in 80 ms",
    ),
    (
        BrokerReady(1),
        "INFO [BrokerLifecycleManager id=1] The broker has been unfenced. Transitioning from RECOVERY to RUNNING.",
    ),
    (ServerStarted(1), "INFO [KafkaRaftServer nodeId=1] Kafka Server started"),
    (MetricsServed("::1", 80), "INFO metrics at http://[::1]:80/metrics"),
    (MetricsNotServed("h", 80, "taken"), "WARN there are no metrics at h:80: taken"),
    (SignalReceived("SIGTERM", False), "INFO SIGTERM: shutting down (once more to end at once)"),
    (SignalReceived("SIGTERM", True), "WARN SIGTERM again: ending at once"),
    (ShutdownBegun(1), "INFO node 1 is shutting down"),
    (LeadershipsNotHandedOver(), "WARN no controller answers: leaderships are not handed over"),
    (ShutdownDone(1), "INFO node 1 has shut down"),
    (NodeFailed("only 0 logs could be opened"), "ERROR only 0 logs could be opened"),
    (
        LogDirectoriesFailed((("/d", "failed"), ("/e", "gone"))),
        "ERROR all log directories are offline (/d: failed; /e: gone)",
    ),
    (MetadataLogFailed("no space", False), "ERROR the metadata log's disk has failed: no space"),
    (MetadataLogFailed("Too many open files", True), "ERROR the metadata log cannot be used: Too many open files"),
    (
        RegistrationFailed(1, "INCONSISTENT_CLUSTER_ID", False),
        "ERROR the controller refuses to register broker 1: INCONSISTENT_CLUSTER_ID",
    ),
    (
        RegistrationFailed(1, "DUPLICATE_BROKER_REGISTRATION", True),
        "ERROR broker 1 cannot register: it is registered elsewhere (DUPLICATE_BROKER_REGISTRATION): is another one "
        "running?",
    ),
    (
        RegistrationFailed(1, "UNKNOWN_SERVER_ERROR", True),
        "ERROR broker 1 cannot register: the controller meets an unexpected error, which its log has",
    ),
    (
        RegistrationFailed(1, "UNSUPPORTED_VERSION", True),
        "ERROR broker 1 cannot register: the cluster has levels of features that it does not support",
    ),
    (ListenerFailed("A", "Address already in use"), "ERROR listener A: Address already in use"),
    (
        UnexpectedError("a timer", "ZeroDivisionError()", 1, "Traceback"),
        "ERROR unexpected error in a timer: ZeroDivisionError()\nTraceback",
    ),
    (
        UnexpectedError("a timer", "ZeroDivisionError()", 4, ""),
        "ERROR unexpected error in a timer, 4 times by now: ZeroDivisionError()",
    ),
    (Crashed("unexpected error", "/d/report.txt"), "ERROR unexpected error; see the crash report /d/report.txt"),
    (Crashed("unexpected error", ""), "ERROR unexpected error"),
    (
        DescriptorLimitLow(500, 4096),
        "WARN the limit of open files is 500: 250 for connections, the rest for log segments and indexes; "
        "`ulimit -n 4096` before the start raises it",
    ),
    (
        DescriptorLimitReached(500),
        "WARN the limit of 500 open files is reached: new connections and new replicas wait until some are closed; "
        "`ulimit -n` before the start raises it",
    ),
    (ConnectionsExhausted(250, "enough"), "WARN accepting no connections for now (250 are open): enough"),
    (ConnectionRefused("10.0.0.1", "too many", 0), "INFO closing a connection from 10.0.0.1: too many"),
    (ConnectionRefused("h", "too fast", 9), "INFO closing a connection from h: too fast (and 9 like it)"),
    (MalformedRequest("h:1", "too short", 0), "WARN closing h:1: malformed request: too short"),
    (MalformedRequest("h:1", "too short", 2), "WARN closing h:1: malformed request: too short (and 2 like it)"),
    (
        AuthenticationFailed("SASL", "h:1", "PLAIN", "Authentication failed", 0),
        "WARN h:1 could not authenticate by PLAIN on listener SASL: Authentication failed",
    ),
    (
        AuthenticationFailed("SASL", "h:1", "", "Unsupported SASL mechanism 'GSSAPI'", 3),
        "WARN h:1 could not authenticate on listener SASL: Unsupported SASL mechanism 'GSSAPI' (and 3 like it)",
    ),
    (PeerAuthenticationFailed("h", 9093, "no", 0), "ERROR cannot authenticate to h:9093: no"),
    (PeerAuthenticationFailed("::1", 9093, "no", 1), "ERROR cannot authenticate to [::1]:9093: no (and 1 like it)"),
    (TokenKeysFetched("file:///keys", 2), "INFO file:///keys has 2 keys to judge tokens by"),
    (
        TokenKeysFailed("https://h/keys", "refused"),
        "ERROR cannot fetch keys to judge tokens by from https://h/keys: refused",
    ),
    (
        AuthorizationDenied("User:a", "10.0.0.1", "WRITE", "TOPIC", "t", "PRODUCE", 0),
        "WARN denied: User:a from 10.0.0.1 may not WRITE TOPIC t (PRODUCE)",
    ),
    (
        AuthorizationDenied("User:CN=a,O=b", "10.0.0.1", "ALTER", "CLUSTER", "kafka-cluster", "CREATE_ACLS", 7),
        "WARN denied: User:CN=a,O=b from 10.0.0.1 may not ALTER CLUSTER kafka-cluster (CREATE_ACLS) (and 7 like it)",
    ),
    (
        CertificateTaken("SSL", "CN=node-1", 1_800_000_000_000),
        "INFO listener SSL shows the certificate of CN=node-1, which is good until 2027-01-15T08:00:00.000Z",
    ),
    (
        CertificateRefused("SSL", "it has expired"),
        "ERROR listener SSL keeps its certificate, the new one is refused: it has expired",
    ),
    (
        CertificateExpires("SSL", "CN=node-1", 1_800_000_000_000, 9 * 86_400_000),
        "WARN the certificate of listener SSL (CN=node-1) expires in 9 days, at 2027-01-15T08:00:00.000Z",
    ),
    (
        CertificateExpires("SSL", "CN=node-1", 1_800_000_000_000, 30 * 3_600_000),
        "WARN the certificate of listener SSL (CN=node-1) expires in 30 hours, at 2027-01-15T08:00:00.000Z",
    ),
    (
        CertificateExpires("SSL", "CN=node-1", 1_800_000_000_000, -1),
        "ERROR the certificate of listener SSL (CN=node-1) has expired at 2027-01-15T08:00:00.000Z: new connections "
        "fail",
    ),
    (
        AdvertisedHostNotInCertificate("SSL", "kafka", ("localhost", "::1")),
        "WARN listener SSL advertises kafka, which its certificate does not name (it names localhost, ::1): clients "
        "that check names do not get in; make a certificate with it as a subject alternative name, or advertise "
        "another host",
    ),
    (
        TlsHandshakeFailed("SSL", "h:1", "no shared cipher", False, 2),
        "WARN no TLS with h:1 on listener SSL: no shared cipher (and 2 like it)",
    ),
    (
        TlsHandshakeFailed("SSL", "h:1", "hostname mismatch", True, 0),
        "WARN no TLS with h:1 (listener SSL): hostname mismatch",
    ),
    (FaultsIgnored("no JSON"), "WARN faults are ignored: no JSON"),
    (FaultApplied("the disk of node 1 fails"), "WARN fault set: the disk of node 1 fails"),
    (FaultHealed("the disk of node 1 fails"), "WARN fault healed: the disk of node 1 fails"),
    (AllFaultsHealed(), "WARN all faults are healed"),
    (FaultsNotAcknowledged("no space"), "WARN cannot report that faults are applied: no space"),
]


@pytest.mark.parametrize(("event", "line"), LINES, ids=lambda value: type(value).__name__)
def test_the_operator_reads_it(event: Event, line: str | None) -> None:
    rendered = describe(event)
    assert (None if rendered is None else " ".join(rendered)) == line
    assert from_json(to_json(event)) == event


@pytest.mark.parametrize("module", [metadata, quorum, coordination, process])
def test_each_kind_has_a_line_or_is_known_to_have_none(module: ModuleType) -> None:
    assert kinds(module) == {type(event) for event, _ in LINES if type(event).__module__ == module.__name__}


def kinds(module: ModuleType) -> set[type[Event]]:
    return {kind for kind in Event.kinds.values() if kind.__module__ == module.__name__}

"""The operator's lines of `events.process`."""

from __future__ import annotations

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
from tanist.events.text.line import Line, Lines, and_more
from tanist.text import host_port, timestamp_text

# -- life


def _config_warned(event: ConfigWarned) -> Line:
    return "WARN", event.warning


def _folder_formatted(event: FolderFormatted) -> Line:
    return "INFO", f"formatted {event.folder} for node {event.node_id} of cluster {event.cluster_id}"


def _cluster_id_ignored(event: ClusterIdIgnored) -> Line:
    return (
        "WARN",
        f"{event.folder} belongs to cluster {event.cluster_id}; {event.variable}={event.wanted} is ignored",
    )


def _folder_missing(event: FolderMissing) -> Line:
    return "ERROR", f"{event.folder} does not exist: format it first (`tanist format -c FILE -t CLUSTER_ID`)"


def _format_failed(event: FormatFailed) -> Line:
    return "ERROR", f"cannot format {', '.join(event.folders)}: {event.problem}"


def _start_failed(event: StartFailed) -> Line:
    return "ERROR", f"node {event.node_id} cannot start: {event.problem}"


def _node_started(event: NodeStarted) -> Line:
    return (
        "INFO",
        f"node {event.node_id} ({' and '.join(event.roles)}, process {event.process_id}) is at "
        f"{', '.join(event.listeners)}; started in {event.took_ms} ms",
    )


def _broker_ready(event: BrokerReady) -> Line:
    return (
        "INFO",
        f"[BrokerLifecycleManager id={event.node_id}] The broker has been unfenced. "
        "Transitioning from RECOVERY to RUNNING.",
    )


def _server_started(event: ServerStarted) -> Line:
    return "INFO", f"[KafkaRaftServer nodeId={event.node_id}] Kafka Server started"


def _metrics_served(event: MetricsServed) -> Line:
    return "INFO", f"metrics at http://{host_port(event.host, event.port)}/metrics"


def _metrics_not_served(event: MetricsNotServed) -> Line:
    return "WARN", f"there are no metrics at {host_port(event.host, event.port)}: {event.problem}"


def _signal_received(event: SignalReceived) -> Line:
    if event.again:
        return "WARN", f"{event.signal} again: ending at once"
    return "INFO", f"{event.signal}: shutting down (once more to end at once)"


def _shutdown_begun(event: ShutdownBegun) -> Line:
    return "INFO", f"node {event.node_id} is shutting down"


def _leaderships_not_handed_over(event: LeadershipsNotHandedOver) -> Line:
    return "WARN", "no controller answers: leaderships are not handed over"


def _shutdown_done(event: ShutdownDone) -> Line:
    return "INFO", f"node {event.node_id} has shut down"


# -- what ends a node


def _node_failed(event: NodeFailed) -> Line:
    return "ERROR", event.reason


def _log_directories_failed(event: LogDirectoriesFailed) -> Line:
    causes = "; ".join(f"{directory}: {reason}" for directory, reason in event.causes)
    return "ERROR", f"all log directories are offline ({causes})"


def _metadata_log_failed(event: MetadataLogFailed) -> Line:
    what = "the metadata log cannot be used" if event.descriptor_shortage else "the metadata log's disk has failed"
    return "ERROR", f"{what}: {event.problem}"


def _registration_failed(event: RegistrationFailed) -> Line:
    if not event.waited:
        return "ERROR", f"the controller refuses to register broker {event.broker_id}: {event.error}"
    reasons = {
        "UNSUPPORTED_VERSION": "the cluster has levels of features that it does not support",
        "UNKNOWN_SERVER_ERROR": "the controller meets an unexpected error, which its log has",
    }
    reason = reasons.get(event.error, f"it is registered elsewhere ({event.error}): is another one running?")
    return "ERROR", f"broker {event.broker_id} cannot register: {reason}"


def _listener_failed(event: ListenerFailed) -> Line:
    return "ERROR", f"listener {event.listener}: {event.problem}"


def _unexpected_error(event: UnexpectedError) -> Line:
    if event.count == 1:
        return "ERROR", f"unexpected error in {event.where}: {event.error}\n{event.traceback}"
    return "ERROR", f"unexpected error in {event.where}, {event.count} times by now: {event.error}"


def _crashed(event: Crashed) -> Line:
    report = f"; see the crash report {event.crash_report}" if event.crash_report else ""
    return "ERROR", f"{event.reason}{report}"


# -- limits


def _descriptor_limit_low(event: DescriptorLimitLow) -> Line:
    return (
        "WARN",
        f"the limit of open files is {event.limit}: {event.limit // 2} for connections, the rest for log segments and "
        f"indexes; `ulimit -n {event.plenty}` before the start raises it",
    )


def _descriptor_limit_reached(event: DescriptorLimitReached) -> Line:
    return (
        "WARN",
        f"the limit of {event.limit} open files is reached: new connections and new replicas wait until some are "
        "closed; `ulimit -n` before the start raises it",
    )


def _connections_exhausted(event: ConnectionsExhausted) -> Line:
    return "WARN", f"accepting no connections for now ({event.open} are open): {event.problem}"


def _connection_refused(event: ConnectionRefused) -> Line:
    more = and_more(event.left_out)
    return "INFO", f"closing a connection from {event.host}: {event.problem}{more}"


def _malformed_request(event: MalformedRequest) -> Line:
    more = and_more(event.left_out)
    return "WARN", f"closing {event.peer}: malformed request: {event.problem}{more}"


def _authentication_failed(event: AuthenticationFailed) -> Line:
    more = and_more(event.left_out)
    how = f" by {event.mechanism}" if event.mechanism else ""
    return "WARN", f"{event.peer} could not authenticate{how} on listener {event.listener}: {event.problem}{more}"


def _peer_authentication_failed(event: PeerAuthenticationFailed) -> Line:
    more = and_more(event.left_out)
    return "ERROR", f"cannot authenticate to {host_port(event.host, event.port)}: {event.problem}{more}"


def _certificate_taken(event: CertificateTaken) -> Line:
    return (
        "INFO",
        f"listener {event.listener} shows the certificate of {event.subject}, "
        f"which is good until {timestamp_text(event.expires_ms)}",
    )


def _certificate_refused(event: CertificateRefused) -> Line:
    return "ERROR", f"listener {event.listener} keeps its certificate, the new one is refused: {event.problem}"


def _certificate_expires(event: CertificateExpires) -> Line:
    whose = f"the certificate of listener {event.listener} ({event.subject})"
    if event.left_ms <= 0:
        return "ERROR", f"{whose} has expired at {timestamp_text(event.expires_ms)}: new connections fail"
    days = event.left_ms // 86_400_000
    left = f"{days} days" if days > 1 else f"{event.left_ms // 3_600_000} hours"
    return "WARN", f"{whose} expires in {left}, at {timestamp_text(event.expires_ms)}"


def _advertised_host_not_in_certificate(event: AdvertisedHostNotInCertificate) -> Line:
    return (
        "WARN",
        f"listener {event.listener} advertises {event.host}, which its certificate does not name (it names "
        f"{', '.join(event.names) or 'nobody'}): clients that check names do not get in; make a certificate with it as "
        "a subject alternative name, or advertise another host",
    )


def _tls_handshake_failed(event: TlsHandshakeFailed) -> Line:
    more = and_more(event.left_out)
    if event.dialled:
        return "WARN", f"no TLS with {event.peer} (listener {event.listener}): {event.problem}{more}"
    return "WARN", f"no TLS with {event.peer} on listener {event.listener}: {event.problem}{more}"


def _token_keys_fetched(event: TokenKeysFetched) -> Line:
    return "INFO", f"{event.url} has {event.keys} keys to judge tokens by"


def _token_keys_failed(event: TokenKeysFailed) -> Line:
    return "ERROR", f"cannot fetch keys to judge tokens by from {event.url}: {event.problem}"


def _authorization_denied(event: AuthorizationDenied) -> Line:
    more = and_more(event.left_out)
    return (
        "WARN",
        f"denied: {event.principal} from {event.host} may not {event.operation} {event.resource_type} "
        f"{event.resource} ({event.api}){more}",
    )


# -- faults of a live cluster


def _faults_ignored(event: FaultsIgnored) -> Line:
    return "WARN", f"faults are ignored: {event.problem}"


def _fault_set(event: FaultApplied) -> Line:
    return "WARN", f"fault set: {event.fault}"


def _fault_healed(event: FaultHealed) -> Line:
    return "WARN", f"fault healed: {event.fault}"


def _all_faults_healed(event: AllFaultsHealed) -> Line:
    return "WARN", "all faults are healed"


def _faults_not_acknowledged(event: FaultsNotAcknowledged) -> Line:
    return "WARN", f"cannot report that faults are applied: {event.problem}"


LINES: Lines = {
    ConfigWarned: _config_warned,
    FolderFormatted: _folder_formatted,
    ClusterIdIgnored: _cluster_id_ignored,
    FolderMissing: _folder_missing,
    FormatFailed: _format_failed,
    StartFailed: _start_failed,
    NodeStarted: _node_started,
    BrokerReady: _broker_ready,
    ServerStarted: _server_started,
    MetricsServed: _metrics_served,
    MetricsNotServed: _metrics_not_served,
    SignalReceived: _signal_received,
    ShutdownBegun: _shutdown_begun,
    LeadershipsNotHandedOver: _leaderships_not_handed_over,
    ShutdownDone: _shutdown_done,
    NodeFailed: _node_failed,
    LogDirectoriesFailed: _log_directories_failed,
    MetadataLogFailed: _metadata_log_failed,
    RegistrationFailed: _registration_failed,
    ListenerFailed: _listener_failed,
    UnexpectedError: _unexpected_error,
    Crashed: _crashed,
    DescriptorLimitLow: _descriptor_limit_low,
    DescriptorLimitReached: _descriptor_limit_reached,
    ConnectionsExhausted: _connections_exhausted,
    ConnectionRefused: _connection_refused,
    MalformedRequest: _malformed_request,
    AuthenticationFailed: _authentication_failed,
    PeerAuthenticationFailed: _peer_authentication_failed,
    CertificateTaken: _certificate_taken,
    CertificateRefused: _certificate_refused,
    CertificateExpires: _certificate_expires,
    AdvertisedHostNotInCertificate: _advertised_host_not_in_certificate,
    TlsHandshakeFailed: _tls_handshake_failed,
    TokenKeysFetched: _token_keys_fetched,
    TokenKeysFailed: _token_keys_failed,
    AuthorizationDenied: _authorization_denied,
    FaultsIgnored: _faults_ignored,
    FaultApplied: _fault_set,
    FaultHealed: _fault_healed,
    AllFaultsHealed: _all_faults_healed,
    FaultsNotAcknowledged: _faults_not_acknowledged,
}

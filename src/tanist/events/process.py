"""Events of a node's process: how it starts and ends, its limits, the faults that are set for it."""

from __future__ import annotations

from typing import Final

from tanist.events.event import Event

# -- life


class ConfigWarned(Event):
    """A property of the node's file is not obeyed."""

    warning: str


class FolderFormatted(Event):
    folder: str
    node_id: int
    cluster_id: str


class ClusterIdIgnored(Event):
    """The environment names another cluster than the one that the folder belongs to."""

    folder: str
    cluster_id: str
    variable: str
    wanted: str


class FolderMissing(Event):
    folder: str


class FormatFailed(Event):
    folders: tuple[str, ...]
    problem: str


class StartFailed(Event):
    node_id: int
    problem: str


class NodeStarted(Event):
    """It listens. Its broker is not registered yet."""

    node_id: int
    roles: tuple[str, ...]
    process_id: int
    listeners: tuple[str, ...]
    took_ms: int


class BrokerReady(Event):
    """In a container: the broker is unfenced for the first time, as Apache Kafka's says it."""

    node_id: int


class ServerStarted(Event):
    """In a container: the node is there, as Apache Kafka's says it."""

    node_id: int


class MetricsServed(Event):
    host: str
    port: int


class MetricsNotServed(Event):
    host: str
    port: int
    problem: str


class SignalReceived(Event):
    signal: str
    again: bool
    """The process ends at once."""


class ShutdownBegun(Event):
    """The node gets a signal to stop."""

    node_id: int


class LeadershipsNotHandedOver(Event):
    """No controller answers while the node shuts down."""


class ShutdownDone(Event):
    node_id: int


# -- what ends a node


class NodeFailed(Event):
    """The node cannot go on, and ends without closing anything."""

    reason: str


class LogDirectoriesFailed(Event):
    """All log directories are offline: the broker has nothing left to do, and ends."""

    causes: tuple[tuple[str, str], ...]
    """(directory, reason)"""


class MetadataLogFailed(Event):
    """The metadata log or the vote could not be written: the node ends, as what it knows may not be on its disk."""

    problem: str
    descriptor_shortage: bool
    """Too few open files, and no failure of the disk."""


class RegistrationFailed(Event):
    """The cluster will not have this broker: it ends."""

    broker_id: int
    error: str
    waited: bool
    """It might have been a former life of its own, so it has asked for a while."""


class ListenerFailed(Event):
    """Another process has the address of a listener: the node ends."""

    listener: str
    problem: str


class UnexpectedError(Event):
    """A bug: an exception that nobody expected. Emitted for the first of its place, and each time they double."""

    where: str
    error: str
    count: int
    """How many this place in the source has raised."""
    traceback: str
    """Of the first one; empty later."""


class Crashed(Event):
    """The process ends by an exception, as by SIGKILL: what that may have torn cannot be given up otherwise."""

    reason: str
    crash_report: str
    """The path of the report; empty where the disk takes none."""


# -- limits


class DescriptorLimitLow(Event):
    limit: int
    plenty: int


class DescriptorLimitReached(Event):
    limit: int


class ConnectionsExhausted(Event):
    """No connection is accepted for now."""

    open: int
    problem: str


class ConnectionRefused(Event):
    """A connection is closed, for there are too many from its address, or they come too fast. One a second at most."""

    host: str
    problem: str
    left_out: int
    """Such events that were not emitted since the last one."""


class MalformedRequest(Event):
    """A connection is closed for what it sent. One a second at most."""

    peer: str
    problem: str
    left_out: int
    """Such events that were not emitted since the last one."""


class AuthenticationFailed(Event):
    """A client could not say who it is, and is refused. One a second at most."""

    listener: str
    peer: str
    mechanism: str
    """Empty: it came to none."""
    problem: str
    left_out: int
    """Such events that were not emitted since the last one."""


class PeerAuthenticationFailed(Event):
    """Another node does not believe this one, or this one does not believe it. One a second at most."""

    host: str
    port: int
    problem: str
    left_out: int


class CertificateTaken(Event):
    """Handshakes of a listener begin with this certificate from now on."""

    listener: str
    subject: str
    expires_ms: int


class CertificateRefused(Event):
    """What is to take the place of a listener's certificate cannot: the present one stays."""

    listener: str
    problem: str


CERTIFICATE_SOON_DAYS: Final = 14
"""A certificate that is good for less expires soon: the log, `tanist status` and the alert rules say so."""


class CertificateExpires(Event):
    """Soon, or it has expired. Said when it comes to that, and once a day from then on."""

    listener: str
    subject: str
    expires_ms: int
    left_ms: int
    """Not above 0: it has expired."""


class AdvertisedHostNotInCertificate(Event):
    """Clients dial a host that the certificate does not name, and those that check names do not get in."""

    listener: str
    host: str
    names: tuple[str, ...]


class TlsHandshakeFailed(Event):
    """One a second at most."""

    listener: str
    peer: str
    problem: str
    dialled: bool
    """This node has dialled the other."""
    left_out: int


class TokenKeysFetched(Event):
    """The keys by which tokens are judged have come for the first time."""

    url: str
    keys: int


class TokenKeysFailed(Event):
    """They could not be fetched, or made no sense; those in use stay."""

    url: str
    problem: str


class AuthorizationDenied(Event):
    """A client may not do what it has asked for; one in a second of each principal, operation and resource."""

    principal: str
    host: str
    operation: str
    resource_type: str
    resource: str
    api: str
    """The request."""
    left_out: int
    """Such denials that had no event since the last one."""


# -- faults of a live cluster


class FaultsIgnored(Event):
    problem: str


class FaultApplied(Event):
    fault: str


class FaultHealed(Event):
    """Others are set still."""

    fault: str


class AllFaultsHealed(Event):
    """No fault is set for this node any more."""


class FaultsNotAcknowledged(Event):
    """The file that says which faults are applied cannot be written."""

    problem: str

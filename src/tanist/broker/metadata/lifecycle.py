"""The broker's standing with the controller: registration, heartbeats, unfencing, controlled shutdown (rules 80-97).

States are Kafka's: STARTING (its logs are not loaded, it is not registered, or not caught up with the metadata),
RECOVERY (caught up: clients are served, roles taken from metadata), RUNNING (unfenced), PENDING_CONTROLLED_SHUTDOWN,
SHUTTING_DOWN. A broker asks to be unfenced only once it has applied the metadata log up to its own registration: before
that, the log may still call it the leader of partitions whose records it lost in a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from uuid import UUID

from tanist.broker.context import NodeContext
from tanist.broker.log_directories import LogDirectories
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.features import NODE_FEATURES
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.view import MetadataView
from tanist.events.metadata import FencingLearned, RegistrationAccepted, RegistrationLost, UnfencingLearned
from tanist.events.process import RegistrationFailed
from tanist.ports import Timer
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tanist.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from tanist.wire.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from tanist.wire.messages.broker_registration_response import BrokerRegistrationResponse

_REGISTRATION_VERSION = 4
_HEARTBEAT_VERSION = 1
_STARTING_PACE_MS = 10  # rule 96
_RETRY_MS = 20
_RETRY_MAX_MS = 500
_REFUSED_FOR_NOW = (
    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNKNOWN_SERVER_ERROR,  # an unexpected exception: the controller resigns, and the next one is asked
    ErrorCode.UNSUPPORTED_VERSION,  # its metadata may not have the cluster's features yet
)


def _nothing() -> None:
    """Nothing waits for the registration."""


class LifecycleState(Enum):
    NOT_RUNNING = "NOT_RUNNING"
    STARTING = "STARTING"
    RECOVERY = "RECOVERY"
    RUNNING = "RUNNING"
    PENDING_CONTROLLED_SHUTDOWN = "PENDING_CONTROLLED_SHUTDOWN"
    SHUTTING_DOWN = "SHUTTING_DOWN"


class Lifecycle:
    """Registers, beats, and shuts down in an orderly way."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        quorum: MetadataQuorum,
        controller_channel: ControllerChannel,
        directories: LogDirectories,
        advertised_listeners: Callable[[], list[tuple[str, str, int, int]]],
    ) -> None:
        """`advertised_listeners`: name, host, port and security protocol of each, once they are open."""
        self._context = context
        self._metadata = metadata
        self._quorum = quorum
        self._controller_channel = controller_channel
        self._directories = directories
        self._advertised_listeners = advertised_listeners
        self.on_registered: Callable[[], None] = _nothing
        self.state = LifecycleState.NOT_RUNNING
        self.incarnation_id = UUID(bytes=context.random.bytes(16), version=4)
        self.broker_epoch = -1
        # As the last clean shutdown left it, or -1 (rules 83, 87).
        self.previous_broker_epoch = -1
        self._loading: Callable[[], str] | None = None
        """Gives the progress of the logs, until all are open."""
        self._timer: Timer | None = None
        self._in_flight = False
        self._retry_ms = _RETRY_MS
        self._shutdown_done: Callable[[], None] | None = None
        self._refused_since_ms: int | None = None
        """Since when a controller has refused the registration for a reason that may pass."""
        self._refused_for = int(ErrorCode.NONE)
        self.last_answer_ms = 0
        """When the controller last answered a heartbeat."""
        self._beat_sent_ms = 0
        self._session_ends_ms = 0

    def starting(self, loading: Callable[[], str]) -> None:
        """The logs are being loaded; `loading` gives their progress. It registers when they are (`start`)."""
        self.state = LifecycleState.STARTING
        self._loading = loading

    def start(self, previous_broker_epoch: int) -> None:
        self.state = LifecycleState.STARTING
        self._loading = None
        self.previous_broker_epoch = previous_broker_epoch
        self._beat_in(0)

    def stop(self) -> None:
        """No more beats."""
        self.state = LifecycleState.SHUTTING_DOWN
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def begin_controlled_shutdown(self, done: Callable[[], None]) -> None:
        """Ask the controller to move the leaderships away; `done` once it lets go of us, or cannot be reached."""
        self._shutdown_done = done
        self.last_answer_ms = self._context.clock.now_ms()
        if self.state in (LifecycleState.NOT_RUNNING, LifecycleState.STARTING) or self.broker_epoch < 0:
            self._shutdown_finished()
            return
        self.state = LifecycleState.PENDING_CONTROLLED_SHUTDOWN
        self._beat_in(0)

    def metadata_applied(self) -> None:
        """The node has applied more metadata: perhaps the registration is in it now."""
        if self.state is LifecycleState.STARTING and self.caught_up:
            self.state = LifecycleState.RECOVERY
            self._beat_in(0)

    def controller_changed(self) -> None:
        """Another controller, which may not know us: make contact at once."""
        if self.state is not LifecycleState.NOT_RUNNING and self.state is not LifecycleState.SHUTTING_DOWN:
            self._retry_ms = _RETRY_MS
            self._beat_in(0)

    def directories_changed(self) -> None:
        """A log directory has failed: the controller must hear of it now, not with the next beat."""
        if self.broker_epoch >= 0 and self.state is not LifecycleState.SHUTTING_DOWN:
            self._beat_in(0)

    @property
    def waits_for(self) -> str | None:
        """The reason why this broker does not take part yet, for people; None if there is none."""
        if self.state not in (LifecycleState.NOT_RUNNING, LifecycleState.STARTING, LifecycleState.RECOVERY):
            return None
        if self._loading is not None:
            return f"its logs ({self._loading()})"
        if self._refused_since_ms is not None and self._refused_for == ErrorCode.UNKNOWN_SERVER_ERROR:
            return "the controller to register it, which meets an unexpected error (its log has it)"
        if self._refused_since_ms is not None:
            seconds = self._context.config.broker_session_timeout_ms / 1000
            return f"the session from before its crash, which ends after {seconds:g} s (broker.session.timeout.ms)"
        if self._quorum.leader_id is None or self._quorum.silence_ms is not None:
            # A leader that is only remembered is none.
            return "a majority of the controllers"
        if self.broker_epoch < 0:
            return "the controller to register it"
        return "the controller to unfence it" if self.caught_up else "its registration in the metadata log"

    @property
    def caught_up(self) -> bool:
        """The metadata holds this incarnation's registration."""
        registration = self._metadata.image.brokers.get(self._context.node_id)
        return (
            registration is not None
            and registration.incarnation_id == self.incarnation_id
            and registration.epoch == self.broker_epoch
        )

    @property
    def in_session(self) -> bool:
        """No controller has fenced this broker yet: it answered a heartbeat that is younger than a session."""
        return self.state is LifecycleState.RUNNING and self._context.clock.now_ms() < self._session_ends_ms

    def _beat_in(self, delay_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._context.clock.call_at(self._context.clock.now_ms() + delay_ms, self._beat)

    def _beat(self) -> None:
        self._timer = None
        if self._in_flight or self._loading is not None:
            return
        if self.state in (LifecycleState.NOT_RUNNING, LifecycleState.SHUTTING_DOWN):
            return
        if self.broker_epoch < 0:
            self._register()
        else:
            self._heartbeat()

    def _register(self) -> None:
        self._in_flight = True
        request = BrokerRegistrationRequest(
            broker_id=self._context.node_id,
            cluster_id=self._context.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=tuple(
                Listener(name=name, host=host, port=port, security_protocol=protocol)
                for name, host, port, protocol in self._advertised_listeners()
            ),
            features=tuple(
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(NODE_FEATURES.items())
            ),
            rack=self._context.config.broker_rack,
            is_migrating_zk_broker=False,
            log_dirs=self._directories.online_ids(),
            previous_broker_epoch=self.previous_broker_epoch,
        )
        timeout_ms = self._context.config.broker_session_timeout_ms
        self._controller_channel.call(request, _REGISTRATION_VERSION, timeout_ms, self._registered)

    def _registered(self, response: BrokerRegistrationResponse | None) -> None:
        self._in_flight = False
        if self.state in (LifecycleState.NOT_RUNNING, LifecycleState.SHUTTING_DOWN):
            return
        if response is None or response.error_code == ErrorCode.NOT_CONTROLLER:
            self._again()
            return
        if response.error_code:
            name = ErrorCode.name_of(response.error_code)
            if response.error_code in _REFUSED_FOR_NOW:
                # The session from before a crash ends by itself. Time without a controller does not count: a new one
                # begins all sessions anew.
                self._refused_for = response.error_code
                if self._refused_since_ms is None:
                    self._refused_since_ms = self._context.clock.now_ms()
                if (
                    self._context.clock.now_ms() - self._refused_since_ms
                    > self._context.config.initial_broker_registration_timeout_ms
                ):
                    self._context.fatal(RegistrationFailed(self._context.node_id, name, waited=True))
                    return
                self._again()
                return
            self._context.fatal(RegistrationFailed(self._context.node_id, name, waited=False))
            return
        self.broker_epoch = response.broker_epoch
        self._refused_since_ms = None
        self._retry_ms = _RETRY_MS
        self._context.events.emit(RegistrationAccepted(self._context.node_id, self.broker_epoch))
        self.on_registered()
        self._beat_in(0)

    def _again(self) -> None:
        # A little randomness in it, so that brokers which lost one controller do not all call at the same instant.
        delay_ms = self._retry_ms + self._context.random.below(self._retry_ms)
        self._retry_ms = min(self._retry_ms * 2, _RETRY_MAX_MS)
        self._beat_in(delay_ms)

    def _heartbeat(self) -> None:
        self._in_flight = True
        self._beat_sent_ms = self._context.clock.now_ms()
        shutting_down = self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN
        request = BrokerHeartbeatRequest(
            broker_id=self._context.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata.applied_offset,
            want_fence=self.state is LifecycleState.STARTING,
            want_shut_down=shutting_down,
            offline_log_dirs=self._directories.offline_ids(),
        )
        timeout_ms = self._context.config.broker_session_timeout_ms
        self._controller_channel.call(request, _HEARTBEAT_VERSION, timeout_ms, self._beaten)

    def _beaten(self, response: BrokerHeartbeatResponse | None) -> None:
        self._in_flight = False
        if self.state in (LifecycleState.NOT_RUNNING, LifecycleState.SHUTTING_DOWN):
            return
        if response is None or response.error_code:
            if response is not None and response.error_code == ErrorCode.STALE_BROKER_EPOCH:
                # Unregistered behind our back, or replaced: a new registration decides (as a new incarnation would).
                if self._shutdown_done is not None:
                    self._shutdown_finished()
                    return
                self._context.events.emit(RegistrationLost(self._context.node_id, self.broker_epoch))
                self.broker_epoch = -1
                self.state = LifecycleState.STARTING
            self._again()
            return
        self._retry_ms = _RETRY_MS
        self.last_answer_ms = self._context.clock.now_ms()
        # The controller's session begins when it hears of us, which is later than when we spoke.
        self._session_ends_ms = (
            0 if response.is_fenced else self._beat_sent_ms + self._context.config.broker_session_timeout_ms
        )
        if self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                self._shutdown_finished()
            else:
                self._beat_in(_STARTING_PACE_MS)
            return
        if self.state is LifecycleState.RECOVERY and not response.is_fenced:
            self.state = LifecycleState.RUNNING
            self._context.events.emit(UnfencingLearned(self._context.node_id))
        elif self.state is LifecycleState.RUNNING and response.is_fenced:
            self.state = LifecycleState.RECOVERY
            self._context.events.emit(FencingLearned(self._context.node_id))
        if self.state is LifecycleState.RUNNING:
            self._beat_in(self._context.config.broker_heartbeat_interval_ms)
        else:
            self._beat_in(_STARTING_PACE_MS)

    def _shutdown_finished(self) -> None:
        done, self._shutdown_done = self._shutdown_done, None
        self.stop()
        if done is not None:
            done()

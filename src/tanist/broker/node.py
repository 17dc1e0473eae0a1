"""`Node`: a broker, a controller, or both, built from four ports.

The node owns the parts and wires them; each part is in a file of its own. It is the only object that the runtime and
the simulator know: `start`, `stop`, `status`. It decides nothing about replication, elections or votes; those are in
the core's state machines, whose effects it carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tanist.broker.api.fetch import handle_fetch
from tanist.broker.api.produce import handle_produce
from tanist.broker.api.table import (
    BROKER_HANDLERS,
    CONTROLLER_HANDLERS,
    INTER_BROKER_HANDLERS,
    unsupported_api_versions,
)
from tanist.broker.assembly import assemble_quorum, identify, open_directories
from tanist.broker.config import NodeConfig
from tanist.broker.endpoints import SECURITY_PROTOCOLS
from tanist.broker.metadata.awaited_topics import AwaitedTopics
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.controller_registration import ControllerRegistration
from tanist.broker.metadata.directory_assignments import DirectoryAssignments
from tanist.broker.metadata.lifecycle import Lifecycle, LifecycleState
from tanist.broker.metadata.producer_ids import ProducerIds
from tanist.broker.metadata.view import MetadataView
from tanist.broker.metrics.counters import Metrics
from tanist.broker.network.client_connection import Call, ClientConnection
from tanist.broker.network.throttled_warnings import Complaints
from tanist.broker.replication.fetch_sessions import FetchSessions
from tanist.broker.replication.fetcher import Fetchers
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.isr_changes import IsrChanges
from tanist.broker.replication.leadership import Leadership
from tanist.broker.replication.purgatory import Purgatory
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.broker.replication.replicas import Replicas
from tanist.broker.storage.housekeeping import Housekeeping
from tanist.broker.storage.salvage import Salvage
from tanist.broker.turn import Turn
from tanist.controller.config_names import PRODUCER_ID_EXPIRATION_MS
from tanist.controller.delta import ImageDelta
from tanist.controller.features import SUPPORTED_FEATURES, TOLERATED_FEATURES
from tanist.controller.image import MetadataImage
from tanist.controller.settings import (
    TOPIC_RESOURCE,
    Levels,
    resolve_broker_config,
    topic_configs,
)
from tanist.log.config import LogConfig
from tanist.ports import Clock, Connection, Disk, Listener, Network, Random
from tanist.replica.leader import LeaderState
from tanist.replica.reads import preferred_read_replica
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import RequestHeader, decode_request

if TYPE_CHECKING:
    from tanist.broker.groups.coordinator import Coordinator

Report = Callable[[str, str], None]
"""(level, message): INFO, WARN, ERROR; for the operator to read."""

_STOP_PATIENCE_MS = 10_000
_STOP_WITHOUT_CONTROLLER_MS = 1_000
_STOP_LOOK_MS = 250
_MALFORMED_INTERVAL_MS = 1_000
_TRANSACTIONAL_INTERVAL_MS = 60_000
_FETCH_SESSION_EVICTION_MS = 120_000


class Node:
    """One tanist node, over folders that `tanist format` has made."""

    def __init__(
        self,
        config: NodeConfig,
        clock: Clock,
        disk: Disk,
        network: Network,
        random: Random,
        report: Report,
        on_fatal: Callable[[str], None],
    ) -> None:
        self.config = config
        self.clock = clock
        self.disk = disk
        self.network = network
        self.random = random
        self.report = report
        self._on_fatal = on_fatal
        self.node_id = config.node_id
        self.is_broker = config.is_broker
        self.is_controller = config.is_controller
        self.stopping_finally = False
        self.metrics = Metrics()
        self.purgatory = Purgatory(clock)
        self.fetch_sessions = FetchSessions(
            random, config.max_incremental_fetch_session_cache_slots, _FETCH_SESSION_EVICTION_MS
        )
        self.turn = Turn(self)
        # The turn's marks are the hot path: reach them in one step.
        self.touch = self.turn.touch
        self.mark_dirty = self.turn.mark_dirty
        self.before_writes = self.turn.before_writes
        self.after_writes = self.turn.after_writes
        self.connections: dict[ClientConnection, None] = {}
        """In order of their coming: a set would be in that of their addresses, another one in every process."""
        self._listeners: dict[str, Listener] = {}
        self.metadata = MetadataView(MetadataImage(config.static), config.inter_broker_listener_name)
        self.awaited_topics = AwaitedTopics(clock, self.metadata)
        self.effects = ReplicaEffects(self.turn.mark_dirty, self.metrics, report)
        self.cluster_id, metas = identify(config, disk, random)
        directories = open_directories(self, metas) if self.is_broker else []
        self.quorum = assemble_quorum(self, metas[config.metadata_log_dir].directory_id)
        self.controller_channel = ControllerChannel(self)
        self.lifecycle = Lifecycle(self)
        self.controller_registration = ControllerRegistration(self) if self.is_controller else None
        self.salvage = Salvage(self, directories)
        self.replicas = Replicas(self, directories)
        self.fetchers = Fetchers(self)
        self.isr_changes = IsrChanges(self)
        self.effects.isr_changes = self.isr_changes
        self.effects.salvage = self.salvage
        self.effects.group_leadership_changed = self._group_leadership_changed
        self.leadership = Leadership(self)
        self.directory_assignments = DirectoryAssignments(self)
        self.producer_ids = ProducerIds(self)
        self.housekeeping = Housekeeping(self)
        self._coordinator: Coordinator | None = None
        self._malformed = Complaints(clock, self.report, _MALFORMED_INTERVAL_MS)
        self._transactional = Complaints(clock, self.report, _TRANSACTIONAL_INTERVAL_MS)
        self.metadata_cache: dict[tuple[int, str, tuple[bool, bool]], tuple[int, bytes]] = {}
        """Encoded Metadata answers for all topics, by (version, listener): the image's version and the frame."""

    # -- life

    def start(self) -> None:
        """Load the logs, open the listeners, join the quorum, register. `OSError` when an address is taken."""
        previous_broker_epoch = -1
        if self.is_broker:
            previous_broker_epoch = self.replicas.read_previous_broker_epoch()
            self.salvage.start()
            self.replicas.load()
            if self.stopping_finally:
                return  # no log directory could be loaded
        for endpoint in self.config.listeners:
            self._listen(endpoint.name, endpoint.host, endpoint.port)
        self.metadata.on_change(self._metadata_changed)
        self.quorum.start()
        if self.is_broker:
            self.housekeeping.start()
            self.lifecycle.start(previous_broker_epoch)

    def stop(self, done: Callable[[], None]) -> None:
        """Controlled shutdown: hand leaderships over, close the logs cleanly, leave the quorum; then call `done`."""
        self.report("INFO", f"node {self.node_id} is shutting down")
        if not self.is_broker:
            self._leave_quorum(done)
            return
        finished = False

        def handed_over() -> None:
            nonlocal finished
            if not finished:
                finished = True
                deadline.cancel()
                self._stop_broker()
                self._leave_quorum(done)

        def look() -> None:
            if finished:
                return
            if self.clock.now_ms() - self.lifecycle.last_answer_ms > _STOP_WITHOUT_CONTROLLER_MS:
                # The last ones of a cluster that goes down as a whole have no quorum left to hand over to.
                self.report("WARN", "no controller answers: leaderships are not handed over")
                handed_over()
                return
            self.clock.call_at(self.clock.now_ms() + _STOP_LOOK_MS, look)

        now_ms = self.clock.now_ms()
        deadline = self.clock.call_at(now_ms + _STOP_PATIENCE_MS, handed_over)
        self.clock.call_at(now_ms + _STOP_WITHOUT_CONTROLLER_MS, look)
        self.lifecycle.begin_controlled_shutdown(handed_over)

    def _stop_broker(self) -> None:
        self.lifecycle.stop()
        self.housekeeping.stop()
        self.salvage.stop()
        self.fetchers.close()
        for hosted in self.replicas:
            hosted.leadership_lost()
        if self._coordinator is not None:
            self._coordinator.close()
        self.leadership.close()
        for name, listener in list(self._listeners.items()):
            if name not in self.config.controller_listener_names:
                listener.close()
                del self._listeners[name]
        for connection in list(self.connections):
            if connection.listener not in self.config.controller_listener_names:
                connection.flush()
                connection.close()
        self.replicas.close(self.lifecycle.broker_epoch)

    def _leave_quorum(self, done: Callable[[], None]) -> None:
        def leave() -> None:
            self.stopping_finally = True
            for listener in self._listeners.values():
                listener.close()
            for connection in list(self.connections):
                connection.close()
            self.purgatory.clear()
            self.controller_channel.close()
            if self.controller_registration is not None:
                self.controller_registration.close()
            self.quorum.close()
            self.report("INFO", f"node {self.node_id} has shut down")
            done()

        self.quorum.shut_down(leave)

    def fatal(self, reason: str) -> None:
        """The node cannot go on, and says why."""
        if not self.stopping_finally:
            self.stopping_finally = True
            self.report("ERROR", reason)
            self._on_fatal(reason)

    def status(self) -> dict[str, Any]:
        """State, for people and tests."""
        return {
            "node_id": self.node_id,
            "state": self.lifecycle.state.value if self.is_broker else "CONTROLLER",
            "waits_for": self.lifecycle.waits_for if self.is_broker else None,
            "broker_epoch": self.lifecycle.broker_epoch,
            "quorum_leader": self.quorum.leader_id,
            "quorum_epoch": self.quorum.raft.epoch,
            "metadata_offset": self.metadata.applied_offset,
            "partitions": sum(1 for _ in self.replicas),
        }

    # -- time of the turn

    @property
    def turn_ms(self) -> int:
        return self.clock.now_ms()

    # -- connections

    def _listen(self, name: str, host: str, port: int) -> None:
        controller = name in self.config.controller_listener_names
        handlers = INTER_BROKER_HANDLERS if name == self.config.inter_broker_listener_name else BROKER_HANDLERS

        def accept(connection: Connection) -> ClientConnection:
            if controller:
                client = ClientConnection(self, connection, name, CONTROLLER_HANDLERS, None, None)
            else:
                client = ClientConnection(self, connection, name, handlers, handle_produce, handle_fetch)
            self.connections[client] = None
            return client

        self._listeners[name] = self.network.listen(
            host, port, accept, max_frame_bytes=self.config.socket_request_max_bytes
        )

    def connection_closed(self, connection: ClientConnection, reason: str) -> None:
        self.connections.pop(connection, None)
        del reason
        identity = connection.broker_identity
        host = self.quorum.controller_host
        if identity is not None and host is not None and not self.stopping_finally:
            host.connection_lost(*identity)

    def malformed_request(self, peer: str, why: str) -> None:
        """A connection is closed for what it sent. One line a second: whoever sends nonsense must not fill the disk."""
        self.metrics.malformed_requests += 1
        self._malformed.add(f"closing {peer}: malformed request: {why}")

    def transaction_refused(self, call: Call, transactional_id: str) -> None:
        """Somebody wants transactions, which are not there; the client's own words for it may not say so."""
        client_id, host = call.client
        self._transactional.add(
            f"client {client_id!r} at {host[1:]} wants transactions (transactional.id {transactional_id!r}), which "
            "tanist does not have: refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, for clients report that at once"
        )

    def flush_later(self, connection: ClientConnection) -> None:
        """A held-back client has not read its answers yet: look again shortly."""
        self.clock.call_at(self.clock.now_ms() + 10, connection.touch)

    def decode(self, header: RequestHeader, frame: memoryview) -> Any:
        return decode_request(header, frame)

    def unsupported_api_versions(self, call: Call) -> None:
        unsupported_api_versions(self, call)

    def port_of(self, listener: str) -> int | None:
        """The port a listener is bound to (it may have been asked for port 0)."""
        bound = self._listeners.get(listener)
        return None if bound is None else bound.port

    def advertised_listeners(self) -> list[tuple[str, str, int, int]]:
        """(name, host, port, security protocol id) of the broker's listeners, as it registers them.

        The one between brokers comes first: a node that is only a controller knows it by that
        (`metadata_view.endpoint_in`).
        """
        found: list[tuple[str, str, int, int]] = []
        between = self.config.inter_broker_listener_name
        for endpoint in sorted(self.config.advertised_listeners, key=lambda each: each.name != between):
            port = endpoint.port or self.port_of(endpoint.name) or 0
            found.append((endpoint.name, endpoint.host, port, SECURITY_PROTOCOLS.index(endpoint.security_protocol)))
        return found

    def supported_features(self) -> dict[str, tuple[int, int]]:
        """What clients are told."""
        return dict(SUPPORTED_FEATURES)

    def registered_features(self) -> dict[str, tuple[int, int]]:
        """What the controller is told: also levels that concern nothing we have, and so cannot hurt us."""
        return {**SUPPORTED_FEATURES, **TOLERATED_FEATURES}

    # -- metadata

    def _metadata_changed(self, delta: ImageDelta) -> None:
        if self.is_broker:
            self.replicas.metadata_changed(delta)
            if delta.brokers:
                self.fetchers.endpoints_changed()
            if self._coordinator is not None:
                if delta.deleted_topics:
                    self._coordinator.topics_deleted(topic.name for topic in delta.deleted_topics.values())
                if delta.created_topics or delta.deleted_topics or delta.grows_topics:
                    self._coordinator.topics_changed()
        self.awaited_topics.metadata_changed(delta)

    def metadata_progress(self) -> None:
        """More metadata was applied, or the broker learned its epoch: perhaps it may take its roles now."""
        if self.is_broker and not self.stopping_finally:
            if self.lifecycle.caught_up:
                self.replicas.activate()
            self.lifecycle.metadata_applied()
        if self.controller_registration is not None:
            self.controller_registration.look()

    def leader_changed(self) -> None:
        """The quorum has another leader, or none."""
        self.controller_channel.leader_changed()
        if self.is_broker and self.quorum.leader_id is not None:
            self.lifecycle.controller_changed()
        if self.controller_registration is not None:
            self.controller_registration.look()

    def produce_absent_error(self, topic: str | UUID, partition: int) -> int:
        """Why a partition that is produced to is not hosted here."""
        topic_id = topic if isinstance(topic, UUID) else self.metadata.topic_id(topic)
        if topic_id is not None and self.replicas.is_offline(topic_id, partition):
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self.metadata.current_leader(topic, partition) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_ID if isinstance(topic, UUID) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    fetch_absent_error = produce_absent_error

    def log_config(self, topic: str) -> LogConfig:
        """The topic's log configuration, resolved from all its sources (settings.py has the order)."""
        configs = self.metadata.image.configs
        levels = Levels.of(configs, self.node_id, self.config.static)
        resolved = topic_configs(configs.get((TOPIC_RESOURCE, topic), {}), levels)
        resolved[PRODUCER_ID_EXPIRATION_MS] = resolve_broker_config(PRODUCER_ID_EXPIRATION_MS, levels).value or ""
        return LogConfig.from_topic_configs(resolved)

    def min_insync_replicas(self, topic: str) -> int:
        return self.metadata.image.min_insync_replicas(topic)

    def preferred_read_replica(self, leader: LeaderState, rack_id: str, fetch_offset: int) -> int:
        """KIP-392: a replica in the consumer's rack that has what it asks for, or -1 for the leader itself."""
        if not self.config.rack_aware_reads:
            return -1
        return preferred_read_replica(rack_id, fetch_offset, leader, self.clock.now_ms())

    # -- replicas

    # -- replicas

    def _group_leadership_changed(self, hosted: HostedPartition) -> None:
        """A partition of `__consumer_offsets` has another role here."""
        if self._coordinator is not None:
            self._coordinator.role_changed(hosted)
        elif hosted.leader is not None and hosted.log.log_end_offset > hosted.log.log_start_offset:
            self.coordinator()  # it finds all that is led here

    @property
    def loaded_coordinator(self) -> Coordinator | None:
        """The coordinator, if there was a group to see to."""
        return self._coordinator

    def coordinator(self) -> Coordinator:
        """The coordinator of the groups that are here, loaded when there is first one to see to."""
        if self._coordinator is None:
            from tanist.broker.groups.coordinator import Coordinator

            self._coordinator = Coordinator(self)
        return self._coordinator

    def disk_failed(self, hosted: HostedPartition, failure: OSError) -> None:
        """I/O on a partition's log failed: its whole directory goes offline."""
        self.replicas.directory_failed(hosted.directory, failure)

    def delete_later(self, paths: Iterable[str]) -> None:
        """Remove files or folders that were renamed for deletion, after `file.delete.delay.ms`, off the loop."""
        doomed = list(paths)
        if not doomed:
            return

        def remove_all() -> None:
            for path in doomed:
                self.disk.remove(path)

        def remove() -> None:
            self.disk.run(remove_all, removed)

        def removed(result: object) -> None:
            if isinstance(result, BaseException):
                self.report("WARN", f"could not delete {doomed}: {result}")

        self.clock.call_at(self.clock.now_ms() + self.config.log_segment_delete_delay_ms, remove)


__all__ = ["LifecycleState", "Node"]

"""A node's static configuration: Kafka's `server.properties`, checked once and then never changed.

Owns `NodeConfig`: every setting that the code reads is an attribute named like Kafka's property, with underscores
(`replica.fetch.max.bytes` is `replica_fetch_max_bytes`). Names, types, defaults and ranges come from
`controller.configs.settings`, so that DescribeConfigs and the node cannot disagree; what must hold *between* settings
is checked here. Every complaint is one line that says what is wrong and what to write instead.

Unknown names are kept (`static`) and reported (`warnings`), as Kafka does. Settings that would promise a safety this
node does not give (a policy, a Java class) are refused instead of ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tanist.broker.authorizer_properties import (
    ALLOW_EVERYONE,
    CLASS_NAME,
    SUPER_USERS,
    AuthorizerConfig,
    authorizer_config,
    own_principal,
    refuse_a_stranger,
)
from tanist.broker.endpoints import (
    ConfigError,
    Endpoint,
    Voter,
    controller_endpoints,
    controller_listener,
    inter_broker_listener,
    network,
    parse_address,
    quorum,
)
from tanist.broker.sasl_properties import SaslConfig, sasl_config
from tanist.broker.tls_properties import TlsConfig, is_of_tls, tls_config
from tanist.controller.configs.catalogue import BROKER_SETTINGS, NO_EFFECT_SETTINGS
from tanist.controller.configs.catalogue.sasl import SASL_SETTINGS
from tanist.controller.configs.definitions import Value, split_list
from tanist.controller.configs.settings import base_name, meant_by, static_text
from tanist.controller.configs.validation import validate_static_configs
from tanist.log.properties import PropertiesError, log_directories, parse_properties, split_paths

__all__ = ["ConfigError", "Endpoint", "NodeConfig", "PropertiesError", "Voter", "parse_properties"]

METRICS_LISTENER = "tanist.metrics.listener"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def _from(name: str) -> Any:
    """An attribute that is the parsed value of one setting."""
    if name not in BROKER_SETTINGS:
        raise KeyError(name)
    return field(metadata={"setting": name})


_LATE_MS = 300_000
"""What Kafka adds to `transaction.max.timeout.ms` before it calls a transaction late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """The configuration of a node. Built by `from_properties`; what has no comment is Kafka's setting of that name."""

    # Identity.
    node_id: int
    roles: frozenset[str]
    add_partitions_to_txn_retry_backoff_max_ms: int = _from("add.partitions.to.txn.retry.backoff.max.ms")
    add_partitions_to_txn_retry_backoff_ms: int = _from("add.partitions.to.txn.retry.backoff.ms")
    broker_rack: str | None = _from("broker.rack")

    # Where it is.
    listeners: tuple[Endpoint, ...]
    """All listeners to bind, the controllers' included."""
    advertised_listeners: tuple[Endpoint, ...]
    """Addresses that brokers register and clients learn. Port 0: the port that the listener of this name was given."""
    controller_listener_names: tuple[str, ...]
    inter_broker_listener_name: str

    # The quorum.
    controller_quorum_voters: tuple[Voter, ...]
    controller_quorum_bootstrap_servers: tuple[tuple[str, int], ...]
    controller_endpoints: tuple[Endpoint, ...]
    """Where other nodes reach this node's controller; none of a broker."""
    controller_quorum_append_linger_ms: int = _from("controller.quorum.append.linger.ms")
    controller_quorum_auto_join_enable: bool = _from("controller.quorum.auto.join.enable")
    controller_quorum_election_backoff_max_ms: int = _from("controller.quorum.election.backoff.max.ms")
    controller_quorum_election_timeout_ms: int = _from("controller.quorum.election.timeout.ms")
    controller_quorum_fetch_max_bytes: int = _from("controller.quorum.fetch.max.bytes")
    controller_quorum_fetch_snapshot_max_bytes: int = _from("controller.quorum.fetch.snapshot.max.bytes")
    controller_quorum_fetch_timeout_ms: int = _from("controller.quorum.fetch.timeout.ms")
    controller_quorum_request_timeout_ms: int = _from("controller.quorum.request.timeout.ms")
    controller_quorum_retry_backoff_ms: int = _from("controller.quorum.retry.backoff.ms")
    metadata_log_max_record_bytes_between_snapshots: int = _from("metadata.log.max.record.bytes.between.snapshots")
    metadata_log_max_snapshot_interval_ms: int = _from("metadata.log.max.snapshot.interval.ms")
    metadata_log_segment_bytes: int = _from("metadata.log.segment.bytes")
    metadata_log_segment_ms: int = _from("metadata.log.segment.ms")
    metadata_max_idle_interval_ms: int = _from("metadata.max.idle.interval.ms")
    metadata_max_retention_bytes: int = _from("metadata.max.retention.bytes")
    metadata_max_retention_ms: int = _from("metadata.max.retention.ms")
    metadata_turn_records_max: int = _from("tanist.metadata.turn.records.max")

    # Disks.
    log_dirs: tuple[str, ...]
    metadata_log_dir: str

    # The controller.
    auto_leader_rebalance_enable: bool = _from("auto.leader.rebalance.enable")
    default_replication_factor: int = _from("default.replication.factor")
    delete_topic_enable: bool = _from("delete.topic.enable")
    leader_imbalance_check_interval_seconds: int = _from("leader.imbalance.check.interval.seconds")
    min_insync_replicas: int = _from("min.insync.replicas")
    num_partitions: int = _from("num.partitions")
    num_recovery_threads_per_data_dir: int = _from("num.recovery.threads.per.data.dir")
    unclean_leader_election_enable: bool = _from("unclean.leader.election.enable")
    unclean_leader_election_interval_ms: int = _from("unclean.leader.election.interval.ms")
    unclean_recovery_manager_enabled: bool = _from("unclean.recovery.manager.enabled")
    unclean_recovery_timeout_ms: int = _from("unclean.recovery.timeout.ms")
    unstable_api_versions_enable: bool = _from("unstable.api.versions.enable")
    unclean_recovery_grace_ms: int = _from("tanist.unclean.recovery.grace.ms")
    events_fine: bool = _from("tanist.events.fine")

    # The broker's standing.
    auto_create_topics_enable: bool = _from("auto.create.topics.enable")
    broker_heartbeat_interval_ms: int = _from("broker.heartbeat.interval.ms")
    broker_session_timeout_ms: int = _from("broker.session.timeout.ms")
    controlled_shutdown_enable: bool = _from("controlled.shutdown.enable")
    initial_broker_registration_timeout_ms: int = _from("initial.broker.registration.timeout.ms")
    max_request_partition_size_limit: int = _from("max.request.partition.size.limit")
    private_requests_enable: bool = _from("tanist.private.requests.enable")

    # Replication.
    new_logs_pause_ms: int = _from("tanist.new.logs.pause.ms")
    new_logs_turn_max: int = _from("tanist.new.logs.turn.max")
    replica_fetch_backoff_ms: int = _from("replica.fetch.backoff.ms")
    replica_fetch_max_bytes: int = _from("replica.fetch.max.bytes")
    replica_fetch_min_bytes: int = _from("replica.fetch.min.bytes")
    replica_fetch_response_max_bytes: int = _from("replica.fetch.response.max.bytes")
    replica_fetch_wait_max_ms: int = _from("replica.fetch.wait.max.ms")
    replica_high_watermark_checkpoint_interval_ms: int = _from("replica.high.watermark.checkpoint.interval.ms")
    replica_lag_time_max_ms: int = _from("replica.lag.time.max.ms")
    replica_selector_class: str | None = _from("replica.selector.class")
    replica_socket_receive_buffer_bytes: int = _from("replica.socket.receive.buffer.bytes")
    replica_socket_timeout_ms: int = _from("replica.socket.timeout.ms")

    # Connections.
    connection_failed_authentication_delay_ms: int = _from("connection.failed.authentication.delay.ms")
    client_metrics_enable: bool = _from("tanist.client.metrics.enable")
    connections_max_idle_ms: int = _from("connections.max.idle.ms")
    fetch_max_bytes: int = _from("fetch.max.bytes")
    max_connections: int = _from("max.connections")
    max_connections_per_ip: int = _from("max.connections.per.ip")
    max_connections_per_ip_overrides: Mapping[str, int]
    max_incremental_fetch_session_cache_slots: int = _from("max.incremental.fetch.session.cache.slots")
    queued_max_requests: int = _from("queued.max.requests")
    request_timeout_ms: int = _from("request.timeout.ms")
    quota_window_num: int = _from("quota.window.num")
    quota_window_size_seconds: int = _from("quota.window.size.seconds")
    controller_quota_window_num: int = _from("controller.quota.window.num")
    controller_quota_window_size_seconds: int = _from("controller.quota.window.size.seconds")
    socket_connection_setup_timeout_ms: int = _from("socket.connection.setup.timeout.ms")
    socket_listen_backlog_size: int = _from("socket.listen.backlog.size")
    socket_receive_buffer_bytes: int = _from("socket.receive.buffer.bytes")
    socket_request_max_bytes: int = _from("socket.request.max.bytes")
    socket_send_buffer_bytes: int = _from("socket.send.buffer.bytes")
    telemetry_max_bytes: int = _from("telemetry.max.bytes")

    # Logs. Settings that topics can override are in `controller.configs.settings.topic_configs(topic, levels)`.
    log_cleaner_backoff_ms: int = _from("log.cleaner.backoff.ms")
    log_cleaner_dedupe_buffer_size: int = _from("log.cleaner.dedupe.buffer.size")
    log_cleaner_enable: bool = _from("log.cleaner.enable")
    log_dir_failure_timeout_ms: int = _from("log.dir.failure.timeout.ms")
    log_flush_offset_checkpoint_interval_ms: int = _from("log.flush.offset.checkpoint.interval.ms")
    log_flush_scheduler_interval_ms: int = _from("log.flush.scheduler.interval.ms")
    log_flush_start_offset_checkpoint_interval_ms: int = _from("log.flush.start.offset.checkpoint.interval.ms")
    log_retention_check_interval_ms: int = _from("log.retention.check.interval.ms")
    log_segment_delete_delay_ms: int = _from("log.segment.delete.delay.ms")
    message_max_bytes: int = _from("message.max.bytes")

    # The coordinators.
    group_consumer_assignors: tuple[str, ...] = _from("group.consumer.assignors")
    group_consumer_heartbeat_interval_ms: int = _from("group.consumer.heartbeat.interval.ms")
    group_consumer_max_size: int = _from("group.consumer.max.size")
    group_consumer_migration_policy: str = _from("group.consumer.migration.policy")
    group_consumer_session_timeout_ms: int = _from("group.consumer.session.timeout.ms")
    group_initial_rebalance_delay_ms: int = _from("group.initial.rebalance.delay.ms")
    group_max_session_timeout_ms: int = _from("group.max.session.timeout.ms")
    group_max_size: int = _from("group.max.size")
    group_min_session_timeout_ms: int = _from("group.min.session.timeout.ms")
    group_share_heartbeat_interval_ms: int = _from("group.share.heartbeat.interval.ms")
    group_share_initialize_retry_interval_ms: int = _from("group.share.initialize.retry.interval.ms")
    group_share_max_share_sessions: int = _from("group.share.max.share.sessions")
    group_share_max_size: int = _from("group.share.max.size")
    group_share_session_timeout_ms: int = _from("group.share.session.timeout.ms")
    group_streams_max_size: int = _from("group.streams.max.size")
    offset_metadata_max_bytes: int = _from("offset.metadata.max.bytes")
    offsets_commit_timeout_ms: int = _from("offsets.commit.timeout.ms")
    offsets_retention_check_interval_ms: int = _from("offsets.retention.check.interval.ms")
    offsets_retention_minutes: int = _from("offsets.retention.minutes")
    offsets_topic_num_partitions: int = _from("offsets.topic.num.partitions")
    offsets_topic_replication_factor: int = _from("offsets.topic.replication.factor")
    offsets_topic_segment_bytes: int = _from("offsets.topic.segment.bytes")
    producer_id_expiration_ms: int = _from("producer.id.expiration.ms")
    share_coordinator_snapshot_update_records_per_snapshot: int = _from(
        "share.coordinator.snapshot.update.records.per.snapshot"
    )
    share_coordinator_state_topic_min_isr: int = _from("share.coordinator.state.topic.min.isr")
    share_coordinator_state_topic_num_partitions: int = _from("share.coordinator.state.topic.num.partitions")
    share_coordinator_state_topic_prune_interval_ms: int = _from("share.coordinator.state.topic.prune.interval.ms")
    share_coordinator_state_topic_replication_factor: int = _from("share.coordinator.state.topic.replication.factor")
    share_coordinator_state_topic_segment_bytes: int = _from("share.coordinator.state.topic.segment.bytes")
    share_coordinator_write_timeout_ms: int = _from("share.coordinator.write.timeout.ms")
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = _from(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    )
    transaction_max_timeout_ms: int = _from("transaction.max.timeout.ms")
    transaction_partition_verification_enable: bool = _from("transaction.partition.verification.enable")
    transaction_remove_expired_transaction_cleanup_interval_ms: int = _from(
        "transaction.remove.expired.transaction.cleanup.interval.ms"
    )
    transaction_two_phase_commit_enable: bool = _from("transaction.two.phase.commit.enable")
    transaction_state_log_min_isr: int = _from("transaction.state.log.min.isr")
    transaction_state_log_num_partitions: int = _from("transaction.state.log.num.partitions")
    transaction_state_log_replication_factor: int = _from("transaction.state.log.replication.factor")
    transaction_state_log_segment_bytes: int = _from("transaction.state.log.segment.bytes")
    transactional_first_epoch: int = _from("tanist.transactional.first.epoch")
    transactional_id_expiration_ms: int = _from("transactional.id.expiration.ms")

    authorizer: AuthorizerConfig | None
    """`authorizer.class.name`, and what is its own; None: every client may do all."""
    metrics_listener: tuple[str, int] | None
    """`tanist.metrics.listener`: where the metrics are served; None: nowhere."""

    sasl: SaslConfig
    """Who may come, and who this node is to others."""

    tls: TlsConfig
    """Which connections are encrypted."""

    static: Mapping[str, str] = field(repr=False)
    """The properties as given: DescribeConfigs' STATIC_BROKER level, and the bottom of the resolution order."""
    warnings: tuple[str, ...]
    """Settings that were ignored, a sentence each."""

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def has_one_controller(self) -> bool:
        """Whether the cluster has no other, as far as the file says."""
        return len(self.controller_quorum_voters) + len(self.controller_quorum_bootstrap_servers) == 1

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def late_transaction_ms(self) -> int:
        """A transaction that is open for longer than this is late: Kafka gives coordinators five minutes more."""
        return self.transaction_max_timeout_ms + _LATE_MS

    def listener(self, name: str) -> Endpoint:
        """The listener of this name. `KeyError` if there is none."""
        for endpoint in self.listeners:
            if endpoint.name == name:
                return endpoint
        raise KeyError(name)

    @property
    def rack_aware_reads(self) -> bool:
        """Whether consumers are sent to a replica in their own rack."""
        return self.replica_selector_class == RACK_AWARE_SELECTOR

    @classmethod
    def from_text(cls, text: str, *, hostname: str = "localhost") -> NodeConfig:
        """The configuration in a properties file's text. Raises `ConfigError` or `PropertiesError`."""
        return cls.from_properties(parse_properties(text), hostname=hostname)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, hostname: str = "localhost") -> NodeConfig:
        """Check and build. `hostname` is advertised where a listener names no host. Raises `ConfigError`."""
        static = dict(properties)
        complaints = validate_static_configs(static)
        if complaints:
            raise ConfigError(complaints[0])
        _refuse_false_promises(static)
        roles = _roles(static)
        node_id = _node_id(static)
        listeners, advertised, controller_names, between_brokers = network(static, roles, hostname)
        to_controllers = controller_listener(static, controller_names)
        to_brokers = inter_broker_listener(static, listeners, between_brokers)
        voters, servers = quorum(static, roles, node_id)
        log_dirs = log_directories(static) or split_paths(static_text(static, "log.dir") or "")
        if not log_dirs or "" in log_dirs:
            raise ConfigError("log.dirs names no folder; write log.dirs=/some/folder (several are separated by commas)")
        if len(set(log_dirs)) != len(log_dirs):
            raise ConfigError("log.dirs names a folder twice; each may stand there once")
        values: dict[str, Any] = {
            attribute.name: _value(static, attribute.metadata["setting"])
            for attribute in fields(cls)
            if "setting" in attribute.metadata
        }
        sasl = sasl_config(
            static,
            listeners,
            controller_listener=to_controllers,
            inter_broker_listener=to_brokers,
            is_broker="broker" in roles,
            controllers=len(voters) or len(servers),
        )
        config = cls(
            node_id=node_id,
            roles=roles,
            listeners=listeners,
            advertised_listeners=advertised,
            controller_listener_names=controller_names,
            inter_broker_listener_name=between_brokers,
            controller_quorum_voters=voters,
            controller_quorum_bootstrap_servers=servers,
            controller_endpoints=controller_endpoints(static, listeners, controller_names, hostname),
            log_dirs=log_dirs,
            metadata_log_dir=(static.get("metadata.log.dir") or "").strip() or log_dirs[0],
            max_connections_per_ip_overrides=_per_ip(static.get("max.connections.per.ip.overrides", "")),
            authorizer=authorizer_config(static),
            sasl=sasl,
            tls=tls_config(static, listeners, controller_listener=to_controllers, inter_broker_listener=to_brokers),
            metrics_listener=parse_address(static.get(METRICS_LISTENER, ""), METRICS_LISTENER),
            static=static,
            warnings=_warnings(static),
            **values,
        )
        ways = [(to_controllers, sasl.to_controllers)]
        if "broker" in roles and to_brokers is not None:
            ways.append((to_brokers, sasl.between_brokers))
        for listener, login in ways:
            own = own_principal(listener, login)
            if own is not None:
                protocol = listener.security_protocol
                refuse_a_stranger(config.authorizer, own, listener.name, protocol, alone=config.has_one_controller)
        _check_relations(config)
        return config


def _value(static: Mapping[str, str], name: str) -> Value:
    text = static_text(static, name)
    return None if text is None else BROKER_SETTINGS[name].parse(text)


def _refuse_false_promises(static: Mapping[str, str]) -> None:
    for name in ("create.topic.policy.class.name", "alter.config.policy.class.name"):
        if static.get(name, "").strip():
            raise ConfigError(f"{name}: tanist has no policies and would not enforce it; remove the line")
    selector = _value(static, "replica.selector.class")
    if selector not in (None, "", RACK_AWARE_SELECTOR, "org.apache.kafka.common.replica.LeaderSelector"):
        raise ConfigError(
            f"replica.selector.class: '{selector}' is not known; use {RACK_AWARE_SELECTOR} or remove the line"
        )


def _roles(static: Mapping[str, str]) -> frozenset[str]:
    roles = split_list(static.get("process.roles", ""))
    if not roles:
        raise ConfigError("process.roles is missing; set it to broker, controller, or broker,controller")
    return frozenset(roles)


def _node_id(static: Mapping[str, str]) -> int:
    named, old = static.get("node.id"), static.get("broker.id")
    if named is None and old is None:
        raise ConfigError("node.id is missing; give this node a number that no other node of the cluster has")
    if named is not None and old is not None and int(named) != int(old):
        raise ConfigError(f"node.id is {named} but broker.id is {old}; they are one thing, remove broker.id")
    node_id = int(named if named is not None else old or -1)
    if node_id < 0:
        raise ConfigError(f"node.id is {node_id}; it must be 0 or more")
    return node_id


def _per_ip(text: str) -> dict[str, int]:
    limits: dict[str, int] = {}
    for item in split_list(text):
        address, separator, count = item.rpartition(":")
        if not separator or not address or not count.isdecimal():
            raise ConfigError(f"max.connections.per.ip.overrides: '{item}' is not address:count")
        limits[address] = int(count)
    return limits


def _warnings(static: Mapping[str, str]) -> tuple[str, ...]:
    warnings = []
    for name in static:
        if name in (SUPER_USERS, ALLOW_EVERYONE) and static.get(CLASS_NAME, "").strip():
            continue
        if base_name(name) not in BROKER_SETTINGS:
            near = meant_by(name)
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            warnings.append(f"{name} is not a known setting and is ignored{meant}")
        elif base_name(name) in NO_EFFECT_SETTINGS or (name not in BROKER_SETTINGS and not _of_listener(name)):
            warnings.append(f"{name} has no effect in tanist")
    return tuple(warnings)


def _of_listener(name: str) -> bool:
    """Whether one listener may have a value of its own of this."""
    return base_name(name) in SASL_SETTINGS or is_of_tls(base_name(name))


def _check_relations(config: NodeConfig) -> None:
    """Check the relations between two settings."""
    static = config.static
    for name, least in (("log.retention.ms", 1), ("log.retention.minutes", 1), ("log.retention.hours", 1)):
        if name in static:
            if int(static[name]) == 0:
                raise ConfigError(f"{name} is 0, which keeps nothing; use {least} or more, or -1 for no limit")
            break  # the finer unit wins, so the coarser ones do not count
    if "log.roll.ms" in static and int(static["log.roll.ms"]) < 1:
        raise ConfigError("log.roll.ms must be 1 or more")
    if config.replica_fetch_wait_max_ms > config.replica_lag_time_max_ms:
        raise ConfigError(
            f"replica.fetch.wait.max.ms ({config.replica_fetch_wait_max_ms}) exceeds replica.lag.time.max.ms "
            f"({config.replica_lag_time_max_ms}), so idle followers would leave the ISR; lower the first"
        )
    if config.replica_fetch_wait_max_ms > config.replica_socket_timeout_ms:
        raise ConfigError(
            f"replica.fetch.wait.max.ms ({config.replica_fetch_wait_max_ms}) exceeds replica.socket.timeout.ms "
            f"({config.replica_socket_timeout_ms}), so every idle fetch would time out; lower the first"
        )
    if config.broker_heartbeat_interval_ms < 1 or config.broker_session_timeout_ms < 1:
        raise ConfigError("broker.heartbeat.interval.ms and broker.session.timeout.ms must be 1 or more")
    if config.broker_heartbeat_interval_ms >= config.broker_session_timeout_ms:
        raise ConfigError(
            f"broker.heartbeat.interval.ms ({config.broker_heartbeat_interval_ms}) must be below "
            f"broker.session.timeout.ms ({config.broker_session_timeout_ms}), or every broker would be fenced"
        )
    if config.default_replication_factor < 1:
        raise ConfigError("default.replication.factor must be 1 or more")
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise ConfigError("max.connections.per.ip is 0, which locks everyone out; add max.connections.per.ip.overrides")

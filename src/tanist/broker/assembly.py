"""Putting a node together from its folders: identity, log directories, the metadata log and the quorum's state.

Owns the order in which things are found on disk and checked against the configuration; it is run once, in the node's
constructor, before anything listens. The other components are put together in `components`.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from tanist.broker.config import NodeConfig
from tanist.broker.context import NodeContext
from tanist.broker.endpoints import ConfigError
from tanist.broker.log_directories import LogDirectories
from tanist.broker.metadata.bootstrap import read_bootstrap
from tanist.broker.metadata.controller_service import ControllerService
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.client_throttles import ClientThrottles
from tanist.controller.controller import Controller
from tanist.controller.decision import ControllerSettings
from tanist.controller.image.image import MetadataImage
from tanist.events.metadata import MetadataLogMissing, QuorumStateMissing
from tanist.log.checkpoints import MetaProperties
from tanist.log.directory import LogDirectory
from tanist.log.names import parse_folder
from tanist.ports import Disk, Random
from tanist.quorum.config import RaftConfig
from tanist.quorum.raft import RaftNode
from tanist.quorum.storage.metadata_log import FOLDER, MetadataLog, MetadataLogConfig
from tanist.quorum.storage.quorum_state_file import FILE_NAME as QUORUM_STATE
from tanist.quorum.storage.quorum_state_file import QuorumStateFile
from tanist.quorum.storage.voter_history import address
from tanist.quorum.voters import Endpoint, Listener, Voter
from tanist.wire.ids import METADATA_TOPIC, ZERO_UUID

META_PROPERTIES = "meta.properties"


def new_uuid(random: Random) -> UUID:
    """A random id, not one of Kafka's reserved ones (the first hundred), and not beginning with a dash in base64."""
    while True:
        value = UUID(bytes=random.bytes(16), version=4)
        if value.bytes[0] >> 2 != 62:
            return value


def format_directory(disk: Disk, path: str, cluster_id: str, node_id: int, random: Random) -> MetaProperties:
    """Make a log directory a node's own: the folder and its `meta.properties`."""
    meta = MetaProperties(cluster_id, node_id, new_uuid(random))
    disk.make_directory(path)
    disk.write_file(f"{path}/{META_PROPERTIES}", meta.encode())
    return meta


def read_meta_properties(disk: Disk, path: str) -> MetaProperties | None:
    """The owner of a folder; None if it was never formatted. `CheckpointError` when the file makes no sense."""
    file = f"{path}/{META_PROPERTIES}"
    if not disk.exists(file):
        return None
    return MetaProperties.decode(disk.read_file(file), file)


def identify(config: NodeConfig, disk: Disk, random: Random) -> tuple[str, dict[str, MetaProperties]]:
    """The cluster id, and the meta.properties of each folder of the context. `ConfigError` when they do not fit.

    A folder without one is not taken for a new one: its disk may not be mounted, and an empty metadata log there would
    vote twice, an empty log take the place of a replica's. As in Apache Kafka, it is formatted by an operator.
    """
    found: dict[str, MetaProperties] = {}
    missing: list[str] = []
    for path in dict.fromkeys((config.metadata_log_dir, *config.log_dirs)):
        meta = read_meta_properties(disk, path)
        if meta is None:
            missing.append(path)
            continue
        cluster_id = next(iter(found.values())).cluster_id if found else None
        meta.require(f"{path}/{META_PROPERTIES}", cluster_id=cluster_id, node_id=config.node_id)
        found[path] = meta
    if not found:
        raise ConfigError(
            f"{missing[0]} is not formatted; run: tanist format --config FILE --cluster-id $(tanist random-uuid)"
        )
    cluster_id = next(iter(found.values())).cluster_id
    if missing:
        raise ConfigError(
            f"{missing[0]} is not formatted, and {next(iter(found))} is: mount the disk that belongs there. For a new "
            f"disk: tanist format --ignore-formatted --config FILE --cluster-id {cluster_id}"
        )
    for path, meta in found.items():
        if meta.directory_id == ZERO_UUID:  # written by Kafka before 3.7
            meta = found[path] = replace(meta, directory_id=new_uuid(random))
            disk.write_file(f"{path}/{META_PROPERTIES}", meta.encode())
    return cluster_id, found


def open_directories(context: NodeContext, metas: dict[str, MetaProperties]) -> LogDirectories:
    """The log directories of a broker, not loaded yet; none of a node that is no broker."""
    paths = context.config.log_dirs if context.config.is_broker else ()
    return LogDirectories(LogDirectory(context.disk, path, metas[path].directory_id, context.events) for path in paths)


def assemble_quorum(
    context: NodeContext, metadata: MetadataView, directory_id: UUID, throttles: ClientThrottles
) -> MetadataQuorum:
    """The metadata log, its Raft replica, and the controller if the node has that role."""
    config = context.config
    log = MetadataLog.open(
        context.disk,
        config.metadata_log_dir,
        MetadataLogConfig(
            segment_bytes=config.metadata_log_segment_bytes,
            segment_ms=config.metadata_log_segment_ms,
            retention_bytes=config.metadata_max_retention_bytes,
            retention_ms=config.metadata_max_retention_ms,
        ),
        context.clock.now_ms(),
    )
    folder = f"{config.metadata_log_dir}/{FOLDER}"
    # Static voters are known by their node ids alone. Where there are none, the metadata log names the voters, or a
    # bootstrap server does.
    static = [Voter(each.node_id, ZERO_UUID, each.host, each.port) for each in config.controller_quorum_voters]
    store = QuorumStateFile(context.disk, folder, [voter.node_id for voter in static])
    _report_forgotten(context, folder, log, store)
    raft = RaftNode(
        config.node_id,
        directory_id,
        context.cluster_id,
        static,
        log,
        store.load(),
        RaftConfig(
            election_timeout_ms=config.controller_quorum_election_timeout_ms,
            fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
            election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
            append_linger_ms=config.controller_quorum_append_linger_ms,
            request_timeout_ms=config.controller_quorum_request_timeout_ms,
            retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
            fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
            fetch_snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
            listener_name=config.controller_listener_names[0],
            auto_join=config.controller_quorum_auto_join_enable,
        ),
        context.random,
        own=_as_voter(config, directory_id),
        bootstrap=() if static else [Endpoint(*server) for server in config.controller_quorum_bootstrap_servers],
        events=context.events,
    )
    quorum = MetadataQuorum(context, metadata, raft, log, store)
    if config.is_controller:
        controller = Controller(
            config.node_id,
            MetadataImage(config.static),
            controller_settings(config),
            context.random,
            cluster_id=context.cluster_id,
            bootstrap=read_bootstrap(context.disk, config.metadata_log_dir, context.events) or context.bootstrap
            if log.end_offset == 0
            else None,
            voter_ids=lambda: raft.voters.ids,
            events=context.events,
        )
        quorum.lead_with(ControllerService(context, metadata, quorum, controller, throttles))
    return quorum


def _report_forgotten(context: NodeContext, folder: str, log: MetadataLog, store: QuorumStateFile) -> None:
    """What this node knew as a member of the quorum, and has lost. As Apache Kafka's, it starts all the same."""
    if log.end_offset > 0 and not store.exists:
        context.events.emit(QuorumStateMissing(f"{folder}/{QUORUM_STATE}"))
    if log.end_offset == 0 and any(_has_logs(context.disk, path) for path in context.config.log_dirs):
        context.events.emit(MetadataLogMissing(folder))


def _has_logs(disk: Disk, path: str) -> bool:
    """Whether a broker has made a log there: it did so because the metadata log said it."""
    folders = map(parse_folder, disk.list(path) if disk.exists(path) else ())
    return any(folder is not None and folder.topic != METADATA_TOPIC for folder in folders)


def _as_voter(config: NodeConfig, directory_id: UUID) -> Voter | None:
    """This node as the metadata log names it if it is a voter; None of a node that is no controller."""
    if not config.is_controller:
        return None
    listeners = tuple(Listener(each.name, each.host, each.port) for each in config.controller_endpoints)
    return Voter(config.node_id, directory_id, *address(listeners, config.controller_listener_names[0]), listeners)


def controller_settings(config: NodeConfig) -> ControllerSettings:
    """The controller's static settings, out of the node's."""
    return ControllerSettings(
        min_insync_replicas=config.min_insync_replicas,
        unclean_leader_election_enable=config.unclean_leader_election_enable,
        default_replication_factor=config.default_replication_factor,
        num_partitions=config.num_partitions,
        delete_topic_enable=config.delete_topic_enable,
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_ms=config.leader_imbalance_check_interval_seconds * 1000,
        unclean_leader_election_interval_ms=config.unclean_leader_election_interval_ms,
        broker_session_timeout_ms=config.broker_session_timeout_ms,
        unclean_recovery_manager_enabled=config.unclean_recovery_manager_enabled,
        unclean_recovery_timeout_ms=config.unclean_recovery_timeout_ms,
        unclean_recovery_grace_ms=config.unclean_recovery_grace_ms,
        fenced_partitions_max=config.metadata_turn_records_max,
        authorizer=config.authorizer is not None,
        node_id=config.node_id,
        static_configs=config.static,
    )

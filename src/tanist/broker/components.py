"""The components of a node, and their wiring: each gets the context and those that it calls, in the order of need.

A node that is only a controller has all of them; those of a broker then have nothing to do. Seen by what puts a node
together, by `build` functions of the API modules and by the metrics; a component itself never gets another by this.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tanist.broker.access import access_of
from tanist.broker.assembly import assemble_quorum, open_directories
from tanist.broker.authentication.gates import Gates
from tanist.broker.context import NodeContext
from tanist.broker.coordinator_runtime.components import CoordinatorComponents
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.awaited_metadata import AwaitedMetadata
from tanist.broker.metadata.configs import ResolvedConfigs
from tanist.broker.metadata.controller_channel import ControllerChannel
from tanist.broker.metadata.controller_registration import ControllerRegistration
from tanist.broker.metadata.directory_assignments import DirectoryAssignments
from tanist.broker.metadata.internal_topics import InternalTopics
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.metadata.producer_ids import ProducerIds
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.tls_profiles import NodeProfiles
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.client_throttles import ClientThrottles
from tanist.broker.network.connections import Connections
from tanist.broker.replication.directory_moves import DirectoryMoves
from tanist.broker.replication.fetch_sessions import FetchSessions
from tanist.broker.replication.fetchers import Fetchers
from tanist.broker.replication.follower_sessions import FollowerSessions
from tanist.broker.replication.isr_changes import IsrChanges
from tanist.broker.replication.leadership import Leadership
from tanist.broker.replication.log_loading import LogLoading
from tanist.broker.replication.purgatory import Purgatory
from tanist.broker.replication.quotas import ReplicationQuotas
from tanist.broker.replication.replica_effects import ReplicaEffects
from tanist.broker.replication.replicas import Replicas
from tanist.broker.share.service import Shares
from tanist.broker.storage.cleaning import LogCleaner
from tanist.broker.storage.deletions import Deletions
from tanist.broker.storage.housekeeping import Housekeeping
from tanist.broker.storage.salvage import Salvage
from tanist.broker.transactions.service import Transactions
from tanist.broker.turn import Turn
from tanist.controller.image.image import MetadataImage
from tanist.log.checkpoints import MetaProperties
from tanist.security.session import Access
from tanist.wire.internal_topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from tanist.broker.groups.group_coordinator import GroupCoordinator
    from tanist.broker.telemetry.client_telemetry import ClientTelemetry

_FETCH_SESSION_EVICTION_MS = 120_000


@dataclass(frozen=True, slots=True)
class NodeComponents:
    """The components of one node."""

    context: NodeContext
    turn: Turn
    purgatory: Purgatory
    metadata: MetadataView
    configs: ResolvedConfigs
    awaited_metadata: AwaitedMetadata
    internal_topics: InternalTopics
    effects: ReplicaEffects
    quorum: MetadataQuorum
    connections: Connections
    gates: Gates
    client_throttles: ClientThrottles
    tls: NodeProfiles
    access: Access
    controller_channel: ControllerChannel
    lifecycle: Lifecycle
    controller_registration: ControllerRegistration | None
    isr_changes: IsrChanges
    directory_assignments: DirectoryAssignments
    producer_ids: ProducerIds
    leadership: Leadership
    quotas: ReplicationQuotas
    fetchers: Fetchers
    fetch_sessions: FetchSessions
    follower_sessions: FollowerSessions
    salvage: Salvage
    replicas: Replicas
    log_loading: LogLoading
    housekeeping: Housekeeping
    groups: Groups
    transactions: Transactions
    shares: Shares
    telemetry: ClientTelemetry | None
    """What takes clients' metrics, where it is enabled."""

    @property
    def enabled_telemetry(self) -> ClientTelemetry:
        """For the requests that are served only then."""
        if self.telemetry is None:
            raise AssertionError("tanist.client.metrics.enable is not set")
        return self.telemetry


def assemble(context: NodeContext, metas: dict[str, MetaProperties]) -> NodeComponents:
    """Make the components of a node over its folders, whose meta.properties are `metas`. Nothing runs yet."""
    config, clock = context.config, context.clock
    turn = Turn(clock, context.disk)
    purgatory = Purgatory(clock)
    metadata = MetadataView(MetadataImage(config.static), config.inter_broker_listener_name)
    access = access_of(context, metadata)
    configs = ResolvedConfigs(metadata, config.node_id, config.static)
    effects = ReplicaEffects(turn.mark_dirty, context.metrics, context.events)
    turn.bind(effects)
    directories = open_directories(context, metas)
    client_throttles = ClientThrottles(context)
    quorum = assemble_quorum(context, metadata, metas[config.metadata_log_dir].directory_id, client_throttles)
    connections = Connections(context, turn.touch, quorum.broker_connection_lost, access)
    client_throttles.on_change(partial(_meter_requests, connections))
    awaited_metadata = AwaitedMetadata(clock, metadata)
    controller_channel = ControllerChannel(context, quorum, awaited_metadata)
    lifecycle = Lifecycle(context, metadata, quorum, controller_channel, directories, connections.advertised_listeners)
    registration = (
        ControllerRegistration(context, metadata, quorum, controller_channel, connections.port_of)
        if config.is_controller
        else None
    )
    isr_changes = IsrChanges(context, metadata, controller_channel, lifecycle, effects)
    directory_assignments = DirectoryAssignments(context, controller_channel, lifecycle)
    leadership = Leadership(context, metadata, lifecycle, purgatory)
    quotas = ReplicationQuotas(context, configs)
    fetchers = Fetchers(context, metadata, lifecycle, effects, turn, quotas.follower)
    follower_sessions = FollowerSessions(context.random, config.max_incremental_fetch_session_cache_slots)
    deletions = Deletions(context)
    moves = DirectoryMoves(context, directories, directory_assignments, quotas.moves, deletions.schedule)
    salvage = Salvage(context, configs, effects, fetchers, deletions, directories)
    replicas = Replicas(
        context,
        directories,
        metadata,
        configs,
        lifecycle,
        directory_assignments,
        effects,
        fetchers,
        follower_sessions,
        moves,
        salvages=salvage.enabled,
        delete_later=deletions.schedule,
    )
    cleaner = LogCleaner(context, configs, replicas, deletions)
    moves.moved = cleaner.moved

    internal_topics = InternalTopics(context, metadata, controller_channel, awaited_metadata)
    coordinator_components = CoordinatorComponents(context, metadata, replicas, leadership, effects, purgatory, turn)

    def make_coordinator() -> GroupCoordinator:
        from tanist.broker.groups.group_coordinator import GroupCoordinator

        return GroupCoordinator(coordinator_components, shares.persister)

    groups = Groups(make_coordinator)
    shares = Shares(coordinator_components, internal_topics)
    producer_ids = ProducerIds(context, controller_channel, lifecycle)
    transactions = Transactions(coordinator_components, controller_channel, lifecycle, producer_ids, groups)
    effects.isr_changes = isr_changes
    effects.salvage = salvage
    effects.coordinators = {
        OFFSETS_TOPIC: groups.role_changed,
        TRANSACTIONS_TOPIC: transactions.role_changed,
        SHARE_STATE_TOPIC: shares.role_changed,
    }
    effects.has_open_transactions = transactions.has_open
    return NodeComponents(
        context=context,
        turn=turn,
        purgatory=purgatory,
        metadata=metadata,
        configs=configs,
        awaited_metadata=awaited_metadata,
        internal_topics=internal_topics,
        effects=effects,
        quorum=quorum,
        connections=connections,
        gates=Gates(context, lambda: metadata.image),
        client_throttles=client_throttles,
        tls=NodeProfiles(context, metadata),
        access=access,
        controller_channel=controller_channel,
        lifecycle=lifecycle,
        controller_registration=registration,
        isr_changes=isr_changes,
        directory_assignments=directory_assignments,
        producer_ids=producer_ids,
        leadership=leadership,
        quotas=quotas,
        fetchers=fetchers,
        fetch_sessions=FetchSessions(
            context.random, config.max_incremental_fetch_session_cache_slots, _FETCH_SESSION_EVICTION_MS
        ),
        follower_sessions=follower_sessions,
        salvage=salvage,
        replicas=replicas,
        log_loading=LogLoading(context, directories, configs.log_config, replicas.found.add, deletions.schedule),
        housekeeping=Housekeeping(context, replicas, effects, salvage, deletions, cleaner),
        groups=groups,
        transactions=transactions,
        telemetry=_telemetry(context, metadata),
        shares=shares,
    )


def _telemetry(context: NodeContext, metadata: MetadataView) -> ClientTelemetry | None:
    if not context.config.client_metrics_enable:
        return None
    from tanist.broker.telemetry.client_telemetry import ClientTelemetry

    return ClientTelemetry(context, metadata)


def _meter_requests(connections: Connections, throttles: ClientThrottles) -> None:
    connections.meter = throttles if throttles.request.active else None

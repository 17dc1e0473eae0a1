"""Metrics of every node: its place in the metadata quorum (rule 132), its requests and connections, and its queues."""

from __future__ import annotations

from collections import Counter

from tanist import __version__
from tanist.broker.authentication.gate import DelayedRefusals
from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metrics.text import Exposition
from tanist.broker.network.channel import Channel
from tanist.broker.network.client_connection import ClientConnection
from tanist.broker.network.client_throttles import ClientThrottles
from tanist.broker.network.connections import Connections
from tanist.wire.apis import ApiKey

_NONE = -1
_QUORUM_ROLES = ("Unattached", "Follower", "Prospective", "Candidate", "Leader", "Resigned", "Observer")


def node_metrics(components: NodeComponents, out: Exposition) -> None:
    context = components.context
    out.add("tanist_node_info", 1, str(context.node_id), "+".join(sorted(context.config.roles)), __version__)
    _quorum(context, components.quorum, out)
    _requests(context, components.connections, out)
    _quotas(components.client_throttles, components.connections, out)
    for queue, depth, limit in queues(components):
        out.add("tanist_queue_depth", depth, queue)
        out.add("tanist_queue_limit", limit, queue)


def _quorum(context: NodeContext, quorum: MetadataQuorum, out: Exposition) -> None:
    raft, now_ms = quorum.raft, context.clock.now_ms()
    prefix = "kafka_server_raftmetrics_"
    role = raft.role if raft.is_voter else "Observer"
    for each in _QUORUM_ROLES:
        out.add(prefix + "current_state", int(each == role), each.lower())
    voted = raft.stored.voted
    out.add(prefix + "current_leader", _NONE if raft.leader_id is None else raft.leader_id)
    out.add(prefix + "current_vote", _NONE if voted is None else voted.node_id)
    out.add(prefix + "current_epoch", raft.epoch)
    out.add(prefix + "high_watermark", raft.high_watermark)
    out.add(prefix + "log_end_offset", raft.log.end_offset)
    out.add(prefix + "log_end_epoch", raft.log.last_epoch)
    out.add(prefix + "number_of_voters", quorum.voter_count)
    if raft.is_leader:
        latency = context.metrics.commit_latency
        out.add(prefix + "number_of_observers", len(raft.describe(now_ms).observers))
        out.add(prefix + "commit_latency_avg", latency.average_ms(now_ms))
        out.add(prefix + "commit_latency_max", latency.max_ms(now_ms))


def _requests(context: NodeContext, connections: Connections, out: Exposition) -> None:
    counts = dict(context.metrics.requests)
    if context.config.is_broker:
        counts[ApiKey.PRODUCE] = context.metrics.produce_requests
        # The metadata log's fetches, on a controller's listener, have no fast path and count with the others.
        counts[ApiKey.FETCH] = counts.get(ApiKey.FETCH, 0) + context.metrics.fetch_requests
    for api_key, count in sorted(counts.items()):
        out.add("kafka_network_requestmetrics_requests_total", count, _api_name(api_key))
    open_connections = Counter(connection.listener for connection in connections)
    for endpoint in context.config.listeners:
        count = open_connections[endpoint.name]
        out.add("kafka_server_socket_server_metrics_connection_count", count, endpoint.name)
    counters = context.metrics
    for endpoint in context.config.listeners:
        name = endpoint.name
        prefix = "kafka_server_socket_server_metrics"
        out.add(f"{prefix}_successful_authentication_total", counters.authentications.get(name, 0), name)
        out.add(f"{prefix}_failed_authentication_total", counters.failed_authentications.get(name, 0), name)
        out.add(f"{prefix}_expired_connections_killed_count", counters.expired_connections.get(name, 0), name)
    for listener, expires_ms in context.metrics.certificates_expire_ms.items():
        out.add("tanist_certificate_expires_seconds", expires_ms // 1000, listener)
    out.add("tanist_authorization_denied_total", context.metrics.authorization_denied)
    out.add("tanist_malformed_requests_total", context.metrics.malformed_requests)
    out.add("tanist_unexpected_errors_total", sum(context.unexpected.counts().values()))


def _quotas(throttles: ClientThrottles, connections: Connections, out: Exposition) -> None:
    for kind, counters in throttles.counters().items():
        out.add("tanist_throttles_total", throttles.throttled[kind], kind)
        out.add("tanist_throttle_time_ms_total", throttles.throttled_ms[kind], kind)
        out.add("tanist_quota_counters", counters, kind)
    out.add("tanist_refused_connections_total", sum(each.refused_count for each in connections.admissions))
    out.add("tanist_accept_rest_ms_total", sum(each.rested_ms for each in connections.admissions))


def queues(components: NodeComponents) -> list[tuple[str, int, int | None]]:
    """(name, what waits in it, its bound) of every queue; None where the bound is that of what fills it."""
    connections = list(components.connections)
    found: list[tuple[str, int, int | None]] = [
        ("unanswered_requests", max((len(each.slots) for each in connections), default=0), MAX_UNANSWERED),
        ("unsent_bytes", max((each.connection.pending_bytes for each in connections), default=0), MAX_UNSENT_BYTES),
        ("delayed_refusals", components.gates.delayed_count, DelayedRefusals.MAX),
        ("held_turns", components.turn.held, None),
        ("late_turns", components.turn.late, None),
        ("purgatory", len(components.purgatory), None),
        ("awaited_metadata", len(components.awaited_metadata), None),
        ("metadata_uncommitted", components.quorum.raft.log.end_offset - components.quorum.raft.high_watermark, None),
        ("requests_to_voters", components.quorum.requests_under_way, Channel.MAX_IN_FLIGHT),
    ]
    if components.context.config.is_broker:
        found += [
            ("requests_to_controller", components.controller_channel.requests_under_way, Channel.MAX_IN_FLIGHT),
            ("requests_to_leaders", components.fetchers.requests_under_way, Channel.MAX_IN_FLIGHT),
            ("requests_to_followers", components.leadership.requests_under_way, Channel.MAX_IN_FLIGHT),
            ("leadership_questions", len(components.leadership), None),
            ("isr_changes", len(components.isr_changes), None),
            ("directory_assignments", len(components.directory_assignments), None),
            ("directory_moves", len(components.replicas.moves), None),
            ("salvage", len(components.salvage), None),
        ]
    host = components.quorum.controller_service
    if host is not None:
        found.append(("controller_pending", host.pending_count, host.PENDING_MAX))
    return found


MAX_UNANSWERED = ClientConnection.MAX_UNANSWERED
MAX_UNSENT_BYTES = ClientConnection.MAX_UNSENT_BYTES


def _api_name(api_key: int) -> str:
    """Kafka's name of an API: FETCH_SNAPSHOT is FetchSnapshot."""
    return "".join(word.capitalize() for word in ApiKey(api_key).name.split("_"))

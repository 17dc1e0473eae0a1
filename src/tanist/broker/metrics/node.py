"""What every node has: its place in the metadata quorum (rule 132), its requests and connections, and its queues."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tanist import __version__
from tanist.broker.metrics.text import Exposition
from tanist.broker.network.channel import Channel
from tanist.broker.network.client_connection import ClientConnection
from tanist.wire.apis import ApiKey

if TYPE_CHECKING:
    from tanist.broker.node import Node

_NONE = -1
_QUORUM_ROLES = ("Unattached", "Follower", "Prospective", "Candidate", "Leader", "Resigned", "Observer")


def node_metrics(node: Node, out: Exposition) -> None:
    out.add("tanist_node_info", 1, str(node.node_id), "+".join(sorted(node.config.roles)), __version__)
    _quorum(node, out)
    _requests(node, out)
    for queue, depth, limit in queues(node):
        out.add("tanist_queue_depth", depth, queue)
        out.add("tanist_queue_limit", limit, queue)


def _quorum(node: Node, out: Exposition) -> None:
    raft, now_ms = node.quorum.raft, node.clock.now_ms()
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
    out.add(prefix + "number_of_voters", node.quorum.voter_count)
    if raft.is_leader:
        latency = node.metrics.commit_latency
        out.add(prefix + "number_of_observers", len(raft.describe(now_ms).observers))
        out.add(prefix + "commit_latency_avg", latency.average_ms(now_ms))
        out.add(prefix + "commit_latency_max", latency.max_ms(now_ms))


def _requests(node: Node, out: Exposition) -> None:
    counts = dict(node.metrics.requests)
    if node.is_broker:
        counts[ApiKey.PRODUCE] = node.metrics.produce_requests
        # The metadata log's fetches, on a controller's listener, are cold ones and counted with the others.
        counts[ApiKey.FETCH] = counts.get(ApiKey.FETCH, 0) + node.metrics.fetch_requests
    for api_key, count in sorted(counts.items()):
        out.add("kafka_network_requestmetrics_requests_total", count, _api_name(api_key))
    connections = Counter(connection.listener for connection in node.connections)
    for endpoint in node.config.listeners:
        count = connections[endpoint.name]
        out.add("kafka_server_socket_server_metrics_connection_count", count, endpoint.name)
    out.add("tanist_malformed_requests_total", node.metrics.malformed_requests)


def queues(node: Node) -> list[tuple[str, int, int | None]]:
    """(name, what waits in it, its bound) of every queue; None where the bound is that of what fills it."""
    connections = list(node.connections)
    found: list[tuple[str, int, int | None]] = [
        ("unanswered_requests", max((len(each.slots) for each in connections), default=0), MAX_UNANSWERED),
        ("unsent_bytes", max((each.connection.pending_bytes for each in connections), default=0), MAX_UNSENT_BYTES),
        ("held_turns", node.turn.held, None),
        ("purgatory", len(node.purgatory), None),
        ("awaited_topics", len(node.awaited_topics), None),
        ("metadata_uncommitted", node.quorum.raft.log.end_offset - node.quorum.raft.high_watermark, None),
        ("requests_to_voters", node.quorum.requests_under_way, Channel.MAX_IN_FLIGHT),
    ]
    if node.is_broker:
        found += [
            ("requests_to_controller", node.controller_channel.requests_under_way, Channel.MAX_IN_FLIGHT),
            ("requests_to_leaders", node.fetchers.requests_under_way, Channel.MAX_IN_FLIGHT),
            ("requests_to_followers", node.leadership.requests_under_way, Channel.MAX_IN_FLIGHT),
            ("leadership_questions", len(node.leadership), None),
            ("isr_changes", len(node.isr_changes), None),
            ("directory_assignments", len(node.directory_assignments), None),
            ("salvage", len(node.salvage), None),
        ]
    host = node.quorum.controller_host
    if host is not None:
        found.append(("controller_pending", host.pending_count, host.PENDING_MAX))
    return found


MAX_UNANSWERED = ClientConnection.MAX_UNANSWERED
MAX_UNSENT_BYTES = ClientConnection.MAX_UNSENT_BYTES


def _api_name(api_key: int) -> str:
    """Kafka's name of an API: FETCH_SNAPSHOT is FetchSnapshot."""
    return "".join(word.capitalize() for word in ApiKey(api_key).name.split("_"))

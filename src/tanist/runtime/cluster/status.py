"""The present status of a cluster of processes on this machine: its nodes, its controller, and how sure that is.

Owns the states of nodes. A broker may answer and still not know what is so: one that hears from no active controller
says for how long (DescribeCluster's `metadata_age_ms`), and what it knows is believed only if nobody knows better. One
that starts refuses its clients; what it waits for stands beside its metrics. That there is no quorum is believed of no
broker: the controllers are asked. It changes nothing and takes no lock.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tanist.client.security import ClientSecurity
from tanist.runtime.client import node_pages
from tanist.runtime.client.admin import quorum_leader
from tanist.runtime.client.client import (
    Address,
    AuthenticationFailed,
    BrokerConnection,
    Client,
    KafkaError,
    Unreachable,
    Unsupported,
)
from tanist.runtime.cluster import layout
from tanist.runtime.cluster.addresses import to_brokers, to_controllers
from tanist.runtime.cluster.cluster_file import ClusterFile, NodeEntry
from tanist.runtime.cluster.exit_reasons import exit_reason
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.cluster.secure_files import CertificateState, SecureFiles
from tanist.text import counted, span
from tanist.wire.errors import WireError
from tanist.wire.ids import KNOWS_NOTHING_MS
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse

RUNNING, STARTING, FENCED, UNREACHABLE = "running", "starting", "fenced", "unreachable"
PAUSED, STOPPED, CRASHED = "paused", "stopped", "crashed"

_BROKERS, _CONTROLLERS = 1, 2
"""The kinds of endpoints of DescribeCluster (KIP-919)."""

_ANSWER_S = 1.5
_CONTROLLER_S = 3.0
_ELECTION_S = 1.5
"""An election takes less: a cluster that has no controller for longer has no quorum."""
_POLL_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node as it is now.

    `state`: running; starting (not in the cluster yet); fenced (it runs, and the cluster does not count it in);
    unreachable (its process runs and does not answer); paused; crashed; stopped (in an orderly way).
    """

    node_id: int
    roles: tuple[str, ...]
    host: str
    port: int
    pid: int | None
    state: str
    rack: str | None
    metrics: str | None
    """host:port of its metrics, if it tells them."""
    why: str | None = None
    """The known cause of a state that is not as it should be."""


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    bootstrap: str
    """Of the running brokers, or of all if none runs."""
    controller: int | None
    """The active controller."""
    nodes: tuple[NodeStatus, ...]
    metadata_age_ms: int | None = None
    """How old is what the brokers know, where none of them hears from an active controller; None: it is current."""
    certificates: tuple[CertificateState, ...] = ()
    """Of a secure cluster."""

    @property
    def controllers(self) -> tuple[NodeStatus, ...]:
        return tuple(node for node in self.nodes if "controller" in node.roles)

    @property
    def without_quorum(self) -> list[str]:
        """Why no controller is active, how old what brokers know is, and what to do; nothing if there is one.

        Nothing as well of a cluster that is down: then there is more to say than that.
        """
        down = {STOPPED, CRASHED, PAUSED, UNREACHABLE}
        up = [node for node in self.controllers if node.state not in down]
        if self.controller is not None or not any(node.state not in (STOPPED, CRASHED) for node in self.nodes):
            return []
        needed = len(self.controllers) // 2 + 1
        have = f"{len(up)} of {counted(len(self.controllers), 'controller')} {'works' if len(up) == 1 else 'work'}"
        if len(up) >= needed:
            line = f"no quorum: {have}, and none is active: `tanist faults` shows what is cut or slow"
        else:
            line = f"no quorum: {have}, and {needed} {'is' if needed == 1 else 'are'} needed"
            paused = next((node for node in self.controllers if node.state == PAUSED), None)
            dead = next((node for node in self.controllers if node.state in (STOPPED, CRASHED)), None)
            if dead is not None:
                line += f": `tanist start {dead.node_id}`"
            elif paused is not None:
                line += f": `tanist resume {paused.node_id}`"
        lines = [line, "no leader can be elected, and no topic or setting can change"]
        if self.metadata_age_ms is not None:
            lines.append(
                "brokers have started without a quorum, and serve no clients until there is one"
                if self.metadata_age_ms == KNOWS_NOTHING_MS
                else f"the brokers' metadata is {span(self.metadata_age_ms)} old"
            )
        return lines


def cluster_status(cluster: ClusterFile, folder: Path, bootstrap: str, askable: Sequence[NodeEntry]) -> ClusterStatus:
    """How the cluster is now; `askable` are the brokers to ask, those first with which least is wrong.

    It answers within seconds, whatever is wrong.
    """
    asking = _Asking(cluster, to_brokers(cluster, folder), to_controllers(cluster, folder))
    asked, controller = _ask(asking, askable), None
    known = _best(asked.values())
    current = known is not None and known.metadata_age_ms < 0
    if current and (controller := _controller(asking, asked)) is None:
        # It has just gone, and was believed in for a moment: by now that moment is over.
        asked = _ask(asking, askable)
        known = _best(asked.values())
        current = known is not None and known.metadata_age_ms < 0
        controller = _controller(asking, asked) if current else None
    if not current and (controller := _by_controllers(asking)) is not None:
        # There is a quorum, and no broker hears from it: none of them counts among the unfenced for long.
        current, known = True, None
    seen = {broker.broker_id for broker in known.brokers if not broker.is_fenced} if known is not None else set()
    # What they say of themselves, of those that are in doubt.
    pages = {node.node_id: _page(cluster, node) for node in askable if not current or node.node_id not in seen}
    nodes = tuple(
        _node_status(cluster, folder, node, current, seen, asked.get(node.node_id), pages.get(node.node_id))
        for node in cluster.nodes
    )
    if known is None:
        ages_ms = [page["metadata_age_ms"] for page in pages.values() if page is not None]
    else:
        ages_ms = [known.metadata_age_ms]
    age_ms = None if current else min((each for each in ages_ms if each is not None), default=None)
    certificates = SecureFiles(folder).certificates() if cluster.secure else ()
    return ClusterStatus(bootstrap, controller, nodes, age_ms, tuple(certificates))


def is_cut_off(folder: Path, node_id: int) -> bool:
    """Whether a fault that was set keeps a node from another one."""
    links = FaultRequests(folder).present().links(node_id)
    return any(forth.cut or back.cut for peer, (forth, back) in links.items() if peer >= 0)


# -- asking -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asking:
    """The cluster, and as whom its nodes are asked."""

    cluster: ClusterFile
    to_brokers: ClientSecurity
    to_controllers: ClientSecurity


def _ask(asking: _Asking, askable: Sequence[NodeEntry]) -> dict[int, DescribeClusterResponse | None]:
    """Ask brokers until one knows how things are; if none does, give an election the time it needs.

    Those that are not asked, because they do not count among the unfenced, are asked at last: do they answer at all?
    """
    deadline = time.monotonic() + _ELECTION_S
    while True:
        answers: dict[int, DescribeClusterResponse | None] = {}
        for node in askable:
            found = answers[node.node_id] = _describe(asking, node)
            if found is not None and found.metadata_age_ms < 0:
                unfenced = {broker.broker_id for broker in found.brokers if not broker.is_fenced}
                for other in askable:
                    if other.node_id not in unfenced and other.node_id not in answers:
                        answers[other.node_id] = _describe(asking, other)
                return answers
        known = _best(answers.values())
        if known is None or known.metadata_age_ms > _ELECTION_S * 1000 or time.monotonic() > deadline:
            return answers
        time.sleep(_POLL_EVERY_S)


def _describe(asking: _Asking, node: NodeEntry, kind: int = _BROKERS) -> DescribeClusterResponse | None:
    """By the node's broker, or by its controller."""
    to_broker = kind == _BROKERS
    port = node.broker_port if to_broker else node.controller_port
    security = asking.to_brokers if to_broker else asking.to_controllers
    try:
        connection = BrokerConnection((asking.cluster.host, port), "tanist", _ANSWER_S, security)
    except (OSError, WireError, KafkaError, AuthenticationFailed):
        return None
    try:
        answer = connection.ask(DescribeClusterRequest(include_fenced_brokers=True, endpoint_type=kind), _ANSWER_S)
    except (OSError, WireError, Unsupported):
        return None
    finally:
        connection.close()
    return answer if isinstance(answer, DescribeClusterResponse) and not answer.error_code else None


def _best(answers: Iterable[DescribeClusterResponse | None]) -> DescribeClusterResponse | None:
    """Of the broker that has heard from a controller last; current answers have an age of -1."""
    return min((each for each in answers if each is not None), key=lambda each: each.metadata_age_ms, default=None)


def _controller(asking: _Asking, asked: dict[int, DescribeClusterResponse | None]) -> int | None:
    ports = [
        (asking.cluster.host, node.broker_port)
        for node in asking.cluster.brokers
        if (found := asked.get(node.node_id)) is not None and found.metadata_age_ms < 0
    ]
    with Client(ports, timeout_s=_CONTROLLER_S, security=asking.to_brokers) as client:
        try:
            return quorum_leader(client)
        except (Unreachable, KafkaError, Unsupported):
            return None


def _by_controllers(asking: _Asking) -> int | None:
    """The active controller, as controllers say it themselves. One that has just gone is still in their minds."""
    running = {node.node_id: node for node in asking.cluster.controllers if node.alive and not node.paused}
    for node in running.values():
        answer = _describe(asking, node, _CONTROLLERS)
        if answer is not None and answer.metadata_age_ms < 0 and answer.controller_id in running:
            return answer.controller_id
    return None


def _page(cluster: ClusterFile, node: NodeEntry) -> dict[str, Any] | None:
    """What a node says of itself to who looks at its metrics; None if it does not."""
    address = layout.metrics_address(cluster, node)
    if address is None:
        return None
    try:
        # No topic has the name "-": the node's own line, without replicas.
        return node_pages.ask(address, "-", 0, patience_s=_ANSWER_S)
    except node_pages.NoAnswer:
        return None


# -- states -----------------------------------------------------------------------------------------------------------


def _node_status(
    cluster: ClusterFile,
    folder: Path,
    node: NodeEntry,
    current: bool,
    seen: set[int],
    answer: DescribeClusterResponse | None,
    page: dict[str, Any] | None,
) -> NodeStatus:
    state, why = _state(cluster, folder, node, current, seen, answer, page)
    return NodeStatus(
        node.node_id,
        node.roles,
        cluster.host,
        node.broker_port or node.controller_port,
        node.process.pid if node.alive and node.process is not None else None,
        state,
        node.rack,
        layout.metrics_address(cluster, node),
        why,
    )


def _state(
    cluster: ClusterFile,
    folder: Path,
    node: NodeEntry,
    current: bool,
    seen: set[int],
    answer: DescribeClusterResponse | None,
    page: dict[str, Any] | None,
) -> tuple[str, str | None]:
    if node.paused:
        return PAUSED, None
    if not node.alive:
        return (STOPPED, None) if node.process is None else (CRASHED, exit_reason(folder, node))
    if not node.is_broker or (current and node.node_id in seen):
        return RUNNING, None
    if answer is None and _listens((cluster.host, node.broker_port)):
        return UNREACHABLE, "its process runs and does not answer"
    if answer is not None and not current:
        return (RUNNING, None) if node.node_id in seen else (STARTING, "it waits for a quorum")
    waits = f"it waits for {page['waits_for']}" if page is not None and page["waits_for"] else None
    if answer is not None:
        age_ms = answer.metadata_age_ms
    else:
        age_ms = -1 if page is None or page["metadata_age_ms"] is None else page["metadata_age_ms"]
    if age_ms < 0:
        return STARTING, waits
    if age_ms == KNOWS_NOTHING_MS:
        silence = "it has heard from no controller since it started"
    else:
        silence = f"it has heard from no controller for {span(age_ms)}"
    fault = ": `tanist faults` shows what cuts it off" if is_cut_off(folder, node.node_id) else ""
    return (FENCED, silence + fault) if waits is None else (STARTING, f"{waits}; {silence}{fault}")


def _listens(address: Address) -> bool:
    """Whether there is somebody: a process that begins does not listen yet. Silence counts as somebody."""
    try:
        connection = BrokerConnection(address, "tanist", _ANSWER_S)
    except ConnectionRefusedError:
        return False
    except (OSError, WireError, KafkaError):  # such as silence, or a listener that wants to know more
        return True
    connection.close()
    return True

"""Whether a cluster is safe for the next step of a roll: one look, and a list of what stands against it.

All in sync, nobody under min.insync.replicas, no reassignment and no move between folders under way, no partition
without a leader, the quorum caught up. And, for a node that is to stop, what is unavailable until it is back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tanist.runtime.client.admin import TopicDescription, describe_topics
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.partition_context import topic_settings
from tanist.runtime.client.reassign import moving
from tanist.runtime.migration.nodes import ClusterDescription, Node, read_quorum
from tanist.runtime.migration.replica_bytes import Compared, compare_replicas
from tanist.text import counted
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import NO_LEADER
from tanist.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from tanist.wire.messages.describe_log_dirs_response import DescribeLogDirsResponse

DOWN, LEADER, UNDER_MIN_ISR, SYNC = "down", "leader", "min-isr", "sync"
UNAVAILABLE = "unavailable"
"""The kind that an operator may always accept: a node's only replicas cannot be served while it is stopped."""
OF_BROKERS = frozenset({DOWN, LEADER, UNDER_MIN_ISR, SYNC})
"""Kinds that an operator may accept where a controller without a broker changes: its stop makes none of them worse.
So a cluster gets other controllers to recover what its own cannot."""

_MIN_ISR = "min.insync.replicas"
_CATCH_UP_S = 10.0
_POLL_EVERY_S = 0.2
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """What makes a step unsafe."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of a cluster, and the min.insync.replicas of their topics."""

    topics: Sequence[TopicDescription]
    min_isr: Mapping[str, int]

    def required(self, topic: str, replicas: int) -> int:
        """The members of the ISR that acks=all needs: never more than there are replicas (KIP-966)."""
        return min(self.min_isr.get(topic, 1), replicas)


def read_partitions(client: Client) -> Partitions:
    topics = describe_topics(client)
    settings = topic_settings(client, [topic.topic for topic in topics], {_MIN_ISR})
    found = {topic: int(entries[_MIN_ISR].value or 1) for topic, entries in settings.items() if _MIN_ISR in entries}
    return Partitions(topics, found)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check. `compared` None: the replicas were not compared, for there were problems before."""

    problems: Sequence[Problem]
    partitions: int
    compared: Compared | None = None

    def unaccepted(self, accepted: Collection[str], node: Node) -> list[Problem]:
        """The problems against a change of the node that the operator does not accept, or may not."""
        return unaccepted(self.problems, accepted, node)


def acceptable(node: Node) -> frozenset[str]:
    """The kinds of problems that an operator may accept where this node changes."""
    return frozenset({UNAVAILABLE}) if node.is_broker else OF_BROKERS | {UNAVAILABLE}


def unaccepted(problems: Sequence[Problem], accepted: Collection[str], node: Node) -> list[Problem]:
    taken = acceptable(node) & set(accepted)
    return [problem for problem in problems if problem.kind not in taken]


def check(client: Client, cluster: ClusterDescription, stopping: Node | None, sample: int) -> Verdict:
    """Everything that stands against stopping the node, or of a cluster that is to be calm (None).

    The quorum is asked first: brokers that have caught up with it know the partitions as the controller does.
    `sample`: of how many partitions the replicas are compared; 0: of none, and without a result.
    """
    behind = _wait_for_quorum(client, cluster)
    partitions = read_partitions(client)
    count = sum(len(topic.partitions) for topic in partitions.topics)
    found = [*of_nodes(cluster), *behind, *of_partitions(partitions), *_under_way(client), *_folders(client)]
    if found or not sample:
        compared = None
    else:
        compared = compare_replicas(client, partitions.topics, sample)
        found += [Problem("bytes", difference) for difference in compared.differences]
    if stopping is not None:
        found += of_stop(cluster, partitions, stopping)
    return Verdict(found, count, compared)


def of_nodes(cluster: ClusterDescription) -> list[Problem]:
    found = []
    for _, node in sorted(cluster.nodes.items()):
        if node.software is None:
            found.append(Problem(DOWN, f"node {node.node_id} ({node.roles}) does not answer"))
        elif node.fenced:
            found.append(Problem(DOWN, f"broker {node.node_id} is fenced"))
    if cluster.quorum.leader_id == NO_LEADER:
        found.append(Problem("quorum", "there is no active controller"))
    return found


def _wait_for_quorum(client: Client, cluster: ClusterDescription) -> list[Problem]:
    """What was committed when this began must come to every node that is up, within seconds."""
    committed = cluster.quorum.high_watermark
    up = {node.node_id for node in cluster.nodes.values() if node.software is not None and not node.fenced}
    deadline = time.monotonic() + _CATCH_UP_S
    while True:
        behind = [node_id for node_id in read_quorum(client).behind(committed) if node_id in up]
        if not behind:
            return []
        if time.monotonic() > deadline:
            return [
                Problem("quorum", f"node {node_id} lacks metadata that is committed below {committed}")
                for node_id in behind
            ]
        time.sleep(_POLL_EVERY_S)


def of_partitions(partitions: Partitions) -> list[Problem]:
    """Those without a leader, under min.insync.replicas, or out of sync, each partition by the worst of these."""
    leaderless, under, out = [], [], []
    for topic in partitions.topics:
        for partition in topic.partitions:
            name = f"{topic.topic}-{partition.partition}"
            isr = f"{name} (ISR {_ids(partition.isr)} of {_ids(partition.replicas)})"
            if partition.leader < 0:
                leaderless.append(name)
            elif len(partition.isr) < partitions.required(topic.topic, len(partition.replicas)):
                under.append(isr)
            elif set(partition.isr) != set(partition.replicas):
                out.append(isr)
    return [
        Problem(kind, _these(names, state))
        for kind, state, names in (
            (LEADER, "without a leader", leaderless),
            (UNDER_MIN_ISR, f"under {_MIN_ISR}", under),
            (SYNC, "not in sync", out),
        )
        if names
    ]


def of_stop(cluster: ClusterDescription, partitions: Partitions, stopping: Node) -> list[Problem]:
    """What nobody can use while the node is stopped; nothing of one that is down already."""
    found: list[Problem] = []
    if stopping.software is None:
        return found
    unserved, unwritten = [], []
    for topic in partitions.topics:
        for partition in topic.partitions:
            if stopping.node_id not in partition.isr:
                continue
            left = len(partition.isr) - 1
            name = f"{topic.topic}-{partition.partition}"
            if not left:
                unserved.append(name)
            elif left < partitions.required(topic.topic, len(partition.replicas)):
                unwritten.append(name)
    if unserved:
        found.append(Problem(UNAVAILABLE, _these(unserved, f"in sync on node {stopping.node_id} only")))
    if unwritten:
        state = f"under {_MIN_ISR} while node {stopping.node_id} is stopped"
        found.append(Problem(UNAVAILABLE, _these(unwritten, state)))
    voters = cluster.quorum.voters
    up = [node for node in cluster.nodes.values() if node.is_voter and node.software is not None]
    if stopping.is_voter and 2 * (len(up) - 1) <= len(voters):
        message = f"of {counted(len(voters), 'voter')} no majority is left while node {stopping.node_id} is stopped"
        found.append(Problem(UNAVAILABLE, message))
    return found


def _under_way(client: Client) -> list[Problem]:
    """Reassignments."""
    found = [f"{topic}-{index}" for topic, index in sorted(moving(client))]
    return [Problem("reassignment", _these(found, "in a reassignment"))] if found else []


def _folders(client: Client) -> list[Problem]:
    """Log directories that have failed, and replicas that move to another one."""
    found = []
    for node_id in sorted(client.metadata(()).brokers):
        answer = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, node_id=node_id)
        if answer.error_code:
            raise KafkaError(answer.error_code, f"the log directories of broker {node_id}")
        for folder in answer.results:
            if folder.error_code:
                name = ErrorCode.name_of(folder.error_code)
                found.append(Problem("log-directory", f"{folder.log_dir} of broker {node_id}: {name}"))
            moving = [
                f"{topic.name}-{each.partition_index}"
                for topic in folder.topics
                for each in topic.partitions
                if each.is_future_key
            ]
            if moving:
                found.append(Problem("reassignment", _these(moving, f"moving to {folder.log_dir} of broker {node_id}")))
    return found


def wait_until_safe(
    problems_now: Callable[[], Sequence[Problem]], timeout_s: float, on_change: Callable[[Sequence[Problem]], None]
) -> bool:
    """Look until there is no problem, or the time is over. `on_change` is given a list that has other kinds."""
    deadline = time.monotonic() + timeout_s
    last: set[str] | None = None
    while True:
        problems = problems_now()
        kinds = {problem.kind for problem in problems}
        if kinds != last:
            on_change(problems)
            last = kinds
        if not problems or time.monotonic() >= deadline:
            return not problems
        time.sleep(_POLL_EVERY_S)


def _these(names: Sequence[str], state: str) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{counted(len(names), 'partition')} {state}: {shown}{more}"


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "-"

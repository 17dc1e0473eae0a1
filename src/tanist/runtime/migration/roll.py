"""The roll itself: in which order nodes change their software, and the wait for one of them.

Nothing here starts or stops a process. `Step` says what the operator's service manager is to do; `await_step` watches
the cluster until the node is back with the other software and all is in sync. It can be begun again at any time: the
node that does not answer is the one whose step is under way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tanist.client.security import ClientSecurity
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.migration.nodes import (
    ClusterDescription,
    Node,
    describe_cluster,
    node_settings,
    read_cluster,
    software_of,
)
from tanist.runtime.migration.safety import Problem, check, unaccepted, wait_until_safe

_POLL_EVERY_S = 0.2

GONE = "gone"
WRONG_SOFTWARE = "wrong-software"
BACK = "back"
OTHER_DOWN = "other-down"
NOT_YET = "not-yet"
IN_SYNC = "in-sync"

Report = Callable[[str, str], None]
"""Is given the kind of an event, and a sentence about it."""


class LateError(Exception):
    """The node was not back, or not in sync, in time. Nothing is undone: the step can be awaited again."""


@dataclass(frozen=True, slots=True)
class Step:
    """One node's change. `under_way`: it is stopped already."""

    node: Node
    target: str
    reason: str
    under_way: bool = False


def steps(cluster: ClusterDescription, target: str) -> list[Step]:
    """The nodes that are still to change, in order: brokers, controllers that follow, the active controller.

    A node that does not answer goes first, for its step is under way, whichever software it had.
    """
    down = [Step(node, target, "it does not answer", under_way=True) for node in cluster.of(None)]
    left = [node for _, node in sorted(cluster.nodes.items()) if node.software not in (None, target)]
    return down + [Step(node, target, _reason(cluster, node)) for node in sorted(left, key=lambda n: _rank(cluster, n))]


def _rank(cluster: ClusterDescription, node: Node) -> tuple[int, int]:
    if node.node_id == cluster.quorum.leader_id:
        return 2, node.node_id
    return int(node.is_controller), node.node_id


def _reason(cluster: ClusterDescription, node: Node) -> str:
    if node.node_id == cluster.quorum.leader_id:
        return "the active controller, last: so the quorum elects once"
    return "a controller that follows" if node.is_controller else "no controller"


def await_step(
    client: Client,
    to_controllers: ClientSecurity,
    step: Step,
    timeout_s: float,
    report: Report,
    accepted: Collection[str] = (),
) -> ClusterDescription:
    """Wait until the node is back with its new software, and everything is in sync; gives the cluster then.

    `accepted`: kinds of problems that were there before, where `safety.acceptable` has them.

    `LateError` after the time. What goes wrong meanwhile is reported: another node that is down, the old software.
    """
    deadline = time.monotonic() + timeout_s
    _await_software(client, to_controllers, step, deadline, report)
    cluster: ClusterDescription | None = None
    found: Sequence[Problem] = ()

    def problems_now() -> Sequence[Problem]:
        nonlocal cluster, found
        try:
            cluster = read_cluster(client, to_controllers)
            found = check(client, cluster, None, 0).problems
        except (KafkaError, Unreachable) as error:
            return [Problem("unreachable", str(error))]
        return unaccepted(found, accepted, step.node)

    def changed(problems: Sequence[Problem]) -> None:
        if problems:
            report(NOT_YET, "; ".join(problem.message for problem in problems))

    if not wait_until_safe(problems_now, max(0.0, deadline - time.monotonic()), changed) or cluster is None:
        raise LateError(f"node {step.node.node_id} is back, and the cluster is not in sync")
    report(IN_SYNC, "nothing else is wrong" if found else "all partitions are in sync, and the quorum has caught up")
    return cluster


def _await_software(
    client: Client, to_controllers: ClientSecurity, step: Step, deadline: float, report: Report
) -> None:
    """Wait for the node to answer as the other software. Each change of its state is reported once."""
    node_id = step.node.node_id
    security = client.security if step.node.is_broker else to_controllers
    if step.node.address is None:
        raise LateError(f"node {node_id} has no address")
    said: str | None = GONE if step.under_way else None
    was_gone = step.under_way
    others_down = [each for each in _fenced(client) if each != node_id]
    while True:
        software = _software_at(step.node, security)
        if software == step.target:
            report(BACK, f"node {node_id} is back, and runs {software}")
            return
        if software is None:
            was_gone = True
            if said != GONE:
                said = GONE
                report(GONE, f"node {node_id} is stopped")
        elif was_gone and said != WRONG_SOFTWARE:
            said = WRONG_SOFTWARE
            report(WRONG_SOFTWARE, f"node {node_id} is back, and still runs {software}")
        down = [each for each in _fenced(client) if each != node_id]
        if down and down != others_down:
            report(OTHER_DOWN, f"node {','.join(map(str, down))} is down as well: start it again first")
        others_down = down
        if time.monotonic() > deadline:
            state = "did not come back" if software is None else f"still runs {software}"
            raise LateError(f"node {node_id} {state}")
        time.sleep(_POLL_EVERY_S)


def _software_at(node: Node, security: ClientSecurity) -> str | None:
    try:
        return software_of(node_settings(node, security, only_own=True))
    except KafkaError:
        return None  # it answers, and is not ready yet


def _fenced(client: Client) -> list[int]:
    try:
        return sorted(broker.broker_id for broker in describe_cluster(client).brokers if broker.is_fenced)
    except (KafkaError, Unreachable):
        return []  # of one broker only this one is there, or the controllers elect

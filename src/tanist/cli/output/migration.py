"""The output of `tanist migrate`: a plan, a verdict, and a step while it is under way; text, or a line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import click

from tanist.cli.output.lines import say
from tanist.cli.output.tables import print_json, print_table
from tanist.runtime.migration.losses import LOST, REFUSED, Finding
from tanist.runtime.migration.nodes import TANIST, ClusterDescription, Node
from tanist.runtime.migration.roll import Step
from tanist.runtime.migration.safety import Problem, Verdict
from tanist.text import counted


@dataclass(frozen=True, slots=True)
class Instructions:
    """The commands for the operator's service manager: texts to print, with {node} for the node's id."""

    target: str
    properties: str | None
    stop: str | None
    start: str | None

    def file(self, step: Step) -> str:
        """The node's properties file."""
        return _filled(self.properties or "server.properties", step)

    def stop_command(self, step: Step) -> str | None:
        return None if self.stop is None else _filled(self.stop, step)

    def start_command(self, step: Step) -> str:
        if self.start is not None:
            return _filled(self.start, step)
        program = "tanist serve" if self.target == TANIST else "kafka-server-start.sh"
        return f"{program} {self.file(step)}"


def show_plan(
    cluster: ClusterDescription, findings: Sequence[Finding], left: Sequence[Step], target: str, *, as_json: bool
) -> None:
    refused = any(finding.severity == REFUSED for finding in findings)
    lost = sorted({finding.kind for finding in findings if finding.severity == LOST})
    if as_json:
        print_json(
            {
                "cluster_id": cluster.cluster_id,
                "controller": cluster.quorum.leader_id,
                "target": target,
                "nodes": [_node_json(node) for _, node in sorted(cluster.nodes.items())],
                "findings": [
                    {"severity": each.severity, "kind": each.kind, "message": each.message, "details": each.details}
                    for each in findings
                ],
                "steps": [
                    {"node": step.node.node_id, "reason": step.reason, "under_way": step.under_way} for step in left
                ],
                "accept": lost,
                "refused": refused,
            }
        )
        return
    click.echo(f"cluster {cluster.cluster_id}")
    rows = [
        (
            f"{node.node_id}{'*' if node.node_id == cluster.quorum.leader_id else ''}",
            node.roles,
            _address(node),
            node.software or "does not answer",
        )
        for _, node in sorted(cluster.nodes.items())
    ]
    print_table(("NODE", "ROLES", "ADDRESS", "SOFTWARE"), rows)
    click.echo("* the active controller")
    for finding in findings:
        say(f"{finding.severity} ({finding.kind}): {finding.message}")
        for line in finding.details:
            say(f"    {line}")
    if not left:
        click.echo(f"all nodes run {target}")
        return
    click.echo(f"to {target}, one node at a time:")
    for number, step in enumerate(left, 1):
        say(f"{number:>3}. node {step.node.node_id}: {step.reason}")
    command = "tanist migrate next" if target == TANIST else "tanist migrate back"
    if refused:
        say(f"Change what is refused first; `{command}` would not begin.")
    else:
        click.echo("  ".join([f"Begin: {command}", *(f"--accept {kind}" for kind in lost)]))


def show_verdict(verdict: Verdict, step: Step | None, *, as_json: bool) -> None:
    if as_json:
        compared = verdict.compared
        print_json(
            {
                "safe": not verdict.problems,
                "node": None if step is None else step.node.node_id,
                "partitions": verdict.partitions,
                "compared": None if compared is None else _compared_json(verdict),
                "problems": [_problem_json(problem) for problem in verdict.problems],
            }
        )
        return
    if verdict.problems:
        click.echo("not safe:" if step is None else f"not safe to stop node {step.node.node_id}:")
        _echo_problems(verdict.problems)
        return
    say(_summary(verdict))
    click.echo("all nodes have changed" if step is None else f"node {step.node.node_id} can be stopped")


class Progress:
    """A step as it goes on. With JSON each call is a line: an object with an `event`."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def step(self, step: Step, how: Instructions) -> None:
        """The instructions. The node waits for nobody: the operator acts on them now."""
        node = step.node
        stop = None if step.under_way else how.stop_command(step)
        start = how.start_command(step)
        if self._as_json:
            self._line(
                "step",
                node=node.node_id,
                target=how.target,
                under_way=step.under_way,
                stop=stop,
                start=start,
                log_dirs=node.log_dirs,
            )
            return
        if step.under_way:
            say(f"node {node.node_id} ({node.roles}, {_address(node)}) is down")
        else:
            say(f"stop {node.software} on node {node.node_id} ({node.roles}, {_address(node)})")
            if stop is not None:
                click.echo(f"    {stop}")
        folders = f": {node.log_dirs}" if node.log_dirs else ""
        say(f"start {how.target} there, on the same folders{folders}")
        click.echo(f"    {start}")
        click.echo(f"waiting for node {node.node_id}")

    def event(self, kind: str, message: str) -> None:
        if self._as_json:
            self._line(kind, message=message)
        else:
            say(message)

    def checked(self, verdict: Verdict) -> None:
        if self._as_json:
            self._line(
                "checked",
                partitions=verdict.partitions,
                compared=_compared_json(verdict),
                accepted=[_problem_json(problem) for problem in verdict.problems],
            )
        else:
            say(_summary(verdict))

    def refused(self, step: Step, problems: Sequence[Problem]) -> None:
        if self._as_json:
            self._line("refused", node=step.node.node_id, problems=[_problem_json(problem) for problem in problems])
            return
        say(f"not safe for node {step.node.node_id}:")
        _echo_problems(problems)

    def late(self, message: str, timeout_s: float) -> None:
        if self._as_json:
            self._line("late", message=message, timeout_s=timeout_s)
        else:
            click.echo(f"not within {timeout_s:g} s: {message}. Begin again to wait on", err=True)

    def done(self, step: Step, cluster: ClusterDescription, left: Sequence[Step]) -> None:
        changed = len(cluster.nodes) - len(left)
        if self._as_json:
            next_id = left[0].node.node_id if left else None
            self._line("done", node=step.node.node_id, changed=changed, nodes=len(cluster.nodes), next=next_id)
            return
        follows = f"next: node {left[0].node.node_id}" if left else "the roll is complete"
        say(f"{changed} of {counted(len(cluster.nodes), 'node')} on {step.target}; {follows}")

    def finished(self, cluster: ClusterDescription, target: str) -> None:
        if self._as_json:
            self._line("finished", nodes=len(cluster.nodes), target=target)
        else:
            click.echo(f"all nodes run {target}: nothing is left to do")

    @staticmethod
    def _line(event: str, **fields: object) -> None:
        click.echo(json.dumps({"event": event, **fields}))


def names(left: Sequence[Step]) -> str:
    return ", ".join(str(step.node.node_id) for step in left) or "none"


def _summary(verdict: Verdict) -> str:
    if verdict.problems:
        kinds = ", ".join(sorted({problem.kind for problem in verdict.problems}))
        return f"{counted(verdict.partitions, 'partition')}; accepted: {kinds}"
    compared = verdict.compared
    same = ""
    if compared is not None:
        same = (
            f"; {counted(compared.batches, 'batch')} of {compared.partitions} of "
            f"{counted(compared.of, 'partition')} the same on all replicas"
        )
    return f"{counted(verdict.partitions, 'partition')} in sync, the quorum has caught up{same}"


def _compared_json(verdict: Verdict) -> dict[str, int] | None:
    compared = verdict.compared
    if compared is None:
        return None
    return {"partitions": compared.partitions, "of": compared.of, "batches": compared.batches}


def _problem_json(problem: Problem) -> dict[str, str]:
    return {"kind": problem.kind, "message": problem.message}


def _node_json(node: Node) -> dict[str, object]:
    return {
        "id": node.node_id,
        "roles": [name for name, held in (("broker", node.is_broker), ("controller", node.is_controller)) if held],
        "voter": node.is_voter,
        "fenced": node.fenced,
        "host": None if node.address is None else node.address[0],
        "port": None if node.address is None else node.address[1],
        "software": node.software,
        "log_dirs": node.log_dirs or None,
    }


def _echo_problems(problems: Sequence[Problem]) -> None:
    for problem in problems:
        say(f"    {problem.kind}: {problem.message}")


def _address(node: Node) -> str:
    return "-" if node.address is None else f"{node.address[0]}:{node.address[1]}"


def _filled(text: str, step: Step) -> str:
    return text.replace("{node}", str(step.node.node_id))

"""`tanist migrate`: a cluster of Apache Kafka rolled over to tanist on its own folders, node by node, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from tanist.cli.options import (
    ClientConfig,
    addresses_given,
    client_options,
    config_given,
    connect,
    json_option,
    read_client_config,
)
from tanist.cli.output import migration as output
from tanist.cli.tree import Group
from tanist.client.security import ClientSecurity
from tanist.runtime.client.client import Address, Client
from tanist.runtime.client.connection import ANYBODY
from tanist.runtime.cluster.addresses import to_controllers
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.migration.losses import LOST, REFUSED, losses
from tanist.runtime.migration.nodes import APACHE, TANIST, ClusterDescription, read_cluster
from tanist.runtime.migration.properties_file import file_problems
from tanist.runtime.migration.roll import LateError, Step, await_step, steps
from tanist.runtime.migration.safety import Problem, acceptable, check
from tanist.runtime.migration.usage import read_usage

F = TypeVar("F", bound=Callable[..., object])

EXIT_LATE = 3
EXIT_UNSAFE = 4
_SAMPLE = 200
_ASK_S = 15.0

_back_option = click.option("--back", is_flag=True, help="The other direction: from tanist to Apache Kafka.")
_sample_option = click.option(
    "--sample",
    type=click.IntRange(1),
    default=_SAMPLE,
    show_default=True,
    metavar="N",
    help="Compare the replicas of at most N partitions, drawn at random.",
)
_node_option = click.option("--node", "node_id", type=int, metavar="ID", help="This node, not the next in order.")


def _cluster_options(command: F) -> F:
    return click.option(
        "--controller-config",
        "controllers",
        type=lambda path: read_client_config(Path(path)),
        metavar="FILE",
        help="As --client-config, for nodes that are only controllers.  [default: --client-config]",
    )(client_options(command))


def _to_controllers(bootstrap: list[Address] | None, folder: Path, controllers: ClientConfig | None) -> ClientSecurity:
    """As whom controllers are asked: in a folder's secure cluster they take certificates only."""
    if controllers is not None:
        return controllers.security
    given = config_given()
    if given is not None:
        return given.security
    return ANYBODY if addresses_given(bootstrap) else to_controllers(load_existing(folder), folder)


@click.group("migrate", cls=Group)
def migrate_command() -> None:
    """Roll a cluster of Apache Kafka over to tanist, or back.

    Nodes change one at a time, on their own folders and properties files; the cluster serves meanwhile. These commands
    start and stop nothing: they say what to do with your service manager, wait, and check. Docs: docs/migrate.md.
    """


@migrate_command.command("plan")
@_back_option
@_cluster_options
@json_option
def plan_command(
    back: bool, bootstrap: list[Address] | None, folder: Path, controllers: ClientConfig | None, as_json: bool
) -> None:
    """Show what a roll would lose, and in which order nodes go.

    refused: tanist does not start with it, or could not serve records; change it first. lost: it is in use and would
    stop working; `next` goes on only with --accept KIND. note: nothing that is in use stops working.
    """
    target = APACHE if back else TANIST
    with connect(bootstrap, folder, timeout_s=_ASK_S) as client:
        cluster = read_cluster(client, _to_controllers(bootstrap, folder, controllers))
        found = losses(cluster, read_usage(client, cluster), target)
    output.show_plan(cluster, found, steps(cluster, target), target, as_json=as_json)


@migrate_command.command("check")
@_back_option
@_node_option
@_sample_option
@_cluster_options
@json_option
@click.pass_context
def check_command(
    ctx: click.Context,
    back: bool,
    node_id: int | None,
    sample: int,
    bootstrap: list[Address] | None,
    folder: Path,
    controllers: ClientConfig | None,
    as_json: bool,
) -> None:
    """Check that the next node can be stopped now.

    Safe is: all nodes are up, all partitions in sync, none under min.insync.replicas, no reassignment under way, the
    quorum caught up, and the replicas' bytes the same, where they were sampled.

    Exit code 0: safe; 4: not safe, and the output says why.
    """
    with connect(bootstrap, folder, timeout_s=_ASK_S) as client:
        cluster = read_cluster(client, _to_controllers(bootstrap, folder, controllers))
        left = steps(cluster, APACHE if back else TANIST)
        step = _chosen(left, node_id) if left or node_id is not None else None
        verdict = check(client, cluster, None if step is None else step.node, sample)
    output.show_verdict(verdict, step, as_json=as_json)
    if verdict.problems:
        ctx.exit(EXIT_UNSAFE)


def _step_options(command: F) -> F:
    for option in (
        click.option(
            "--timeout",
            "timeout_s",
            type=click.FloatRange(0),
            default=900.0,
            show_default=True,
            metavar="SECONDS",
            help="Stop waiting after SECONDS. Nothing is undone: begin again.",
        ),
        click.option(
            "--start", metavar="TEXT", help="The command that starts the new program, to be printed. {node} is the id."
        ),
        click.option(
            "--stop", metavar="TEXT", help="The command that stops the old program, to be printed. {node} is the id."
        ),
        click.option(
            "--properties",
            metavar="FILE",
            help="The node's properties file. {node} is the id. One that is on this machine is checked first.",
        ),
        click.option(
            "--accept",
            "accepted",
            metavar="KIND",
            multiple=True,
            help="Go on though this is lost (see `plan`), or so much is wrong (see `check`). Repeatable.",
        ),
        _sample_option,
        _node_option,
    ):
        command = option(command)
    return command


@migrate_command.command("next")
@_step_options
@_cluster_options
@json_option
@click.pass_context
def next_command(
    ctx: click.Context,
    node_id: int | None,
    sample: int,
    accepted: tuple[str, ...],
    properties: str | None,
    stop: str | None,
    start: str | None,
    timeout_s: float,
    bootstrap: list[Address] | None,
    folder: Path,
    controllers: ClientConfig | None,
    as_json: bool,
) -> None:
    """Move the next node to tanist: check, say how, wait, check again.

    \b
    tanist migrate next --bootstrap kafka1:9092 \\
        --properties /etc/kafka/server.properties \\
        --stop 'systemctl stop kafka' --start 'systemctl start tanist'

    Exit code 0: the node runs tanist, and all is in sync; 4: not safe, so nothing was asked for, or the check
    afterwards failed; 3: not within --timeout. Begin it again at any time: a node that is down is waited for.
    """
    how = output.Instructions(TANIST, properties, stop, start)
    with connect(bootstrap, folder, timeout_s=_ASK_S) as client:
        security = _to_controllers(bootstrap, folder, controllers)
        ctx.exit(_advance(client, security, how, node_id, sample, accepted, timeout_s, as_json=as_json))


@migrate_command.command("back")
@_step_options
@_cluster_options
@json_option
@click.pass_context
def back_command(
    ctx: click.Context,
    node_id: int | None,
    sample: int,
    accepted: tuple[str, ...],
    properties: str | None,
    stop: str | None,
    start: str | None,
    timeout_s: float,
    bootstrap: list[Address] | None,
    folder: Path,
    controllers: ClientConfig | None,
    as_json: bool,
) -> None:
    """Move the next node back to Apache Kafka, in the same way as `next`.

    \b
    tanist migrate back --bootstrap kafka1:9092 \\
        --stop 'systemctl stop tanist' --start 'systemctl start kafka'

    Exit code 0: the node runs Apache Kafka, and all is in sync; 4: not safe; 3: not within --timeout.
    """
    how = output.Instructions(APACHE, properties, stop, start)
    with connect(bootstrap, folder, timeout_s=_ASK_S) as client:
        security = _to_controllers(bootstrap, folder, controllers)
        ctx.exit(_advance(client, security, how, node_id, sample, accepted, timeout_s, as_json=as_json))


def _advance(
    client: Client,
    to_controllers: ClientSecurity,
    how: output.Instructions,
    node_id: int | None,
    sample: int,
    accepted: tuple[str, ...],
    timeout_s: float,
    *,
    as_json: bool,
) -> int:
    """One step; gives the exit code."""
    cluster = read_cluster(client, to_controllers)
    left = steps(cluster, how.target)
    shown = output.Progress(as_json)
    if not left:
        shown.finished(cluster, how.target)
        return 0
    step = _chosen(left, node_id)
    problems = _against(client, cluster, step, how, sample, accepted, shown)
    if problems:
        shown.refused(step, problems)
        return EXIT_UNSAFE
    shown.step(step, how)
    try:
        cluster = await_step(client, to_controllers, step, timeout_s, shown.event, accepted)
    except LateError as error:
        shown.late(str(error), timeout_s)
        return EXIT_LATE
    verdict = check(client, cluster, None, sample)
    if problems := verdict.unaccepted(accepted, step.node):
        shown.refused(step, problems)
        return EXIT_UNSAFE
    shown.checked(verdict)
    shown.done(step, cluster, steps(cluster, how.target))
    return 0


def _against(
    client: Client,
    cluster: ClusterDescription,
    step: Step,
    how: output.Instructions,
    sample: int,
    accepted: tuple[str, ...],
    shown: output.Progress,
) -> list[Problem]:
    """All that stands against the step. A step that is under way has been judged, and only goes on."""
    found = []
    file = None if how.properties is None else Path(how.file(step))
    if file is not None and file.exists() and how.target == TANIST:
        found += file_problems(file, step.node)
    if step.under_way:
        others = [node for node in cluster.of(None) if node.node_id != step.node.node_id]
        return found + [Problem("down", f"node {node.node_id} does not answer either") for node in others]
    for loss in losses(cluster, read_usage(client, cluster), how.target):
        if loss.severity == REFUSED or (loss.severity == LOST and loss.kind not in accepted):
            hint = f" (--accept {loss.kind})" if loss.severity == LOST else ""
            found.append(Problem(loss.kind, f"{loss.message}{hint}"))
    verdict = check(client, cluster, step.node, sample)
    for problem in verdict.unaccepted(accepted, step.node):
        hint = f" (--accept {problem.kind})" if problem.kind in acceptable(step.node) else ""
        found.append(Problem(problem.kind, f"{problem.message}{hint}"))
    if not found:
        shown.checked(verdict)
    return found


def _chosen(left: list[Step], node_id: int | None) -> Step:
    if node_id is None:
        return left[0]
    for step in left:
        if step.node.node_id == node_id:
            return step
    raise click.UsageError(f"node {node_id} is not among those that are left: {output.names(left)}")

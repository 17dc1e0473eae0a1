"""`tanist pause`, `resume`, `partition`, `slow`, `disk`, `heal`: breaking a live cluster, and mending it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import click

from tanist.cli.fault_options import fault_command, nodes_argument
from tanist.cli.options import data_option, json_option
from tanist.cli.output.lines import say
from tanist.cli.output.tables import print_json
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.faults.settings import CLIENTS, BadDisk, DiskState, Fault, Partition, Side, Slow, side


def _members(text: str) -> Side:
    """A side: node ids and `clients`, with commas between them."""
    found = []
    for word in text.split(","):
        if word.strip() == "clients":
            found.append(CLIENTS)
        elif word.strip().isdecimal():
            found.append(int(word))
        else:
            raise click.UsageError(f"{word.strip()!r} in {text!r} is neither a node id nor `clients`")
    return side(found)


def _sides(requests: FaultRequests, groups: tuple[str, ...], *, clients: bool) -> tuple[Side, Side]:
    """The two ends of a link: `'1,2|3'`, or `1,2 3`, or `3` for it and all other nodes."""
    sides = [_members(word) for group in groups for word in group.split("|")]
    if len(sides) > 2:
        raise click.UsageError("a link has two sides, like '1,2|3' (quoted) or 1,2 3")
    return requests.sides(sides[0], sides[1] if sides[1:] else None, clients=clients)


groups_argument = click.argument("groups", metavar="A|B", nargs=-1, required=True)


@fault_command("partition")
@groups_argument
def partition_command(groups: tuple[str, ...], one_way: bool, clients: bool, folder: Path, as_json: bool) -> None:
    """Packets are dropped: open connections stay open but silent; new ones are not answered.

    '1,2|3' (quoted, or 1,2 3) cuts node 3 off from 1 and 2; a single group is cut off from all other nodes. `clients`
    in a group means everything that is not a node. Links stay cut until `tanist heal`, also when nodes restart.
    """
    requests = FaultRequests(folder)
    _set(Partition(*_sides(requests, groups, clients=clients), one_way), requests, as_json)


@fault_command("slow")
@groups_argument
def slow_command(
    groups: tuple[str, ...],
    latency: int,
    jitter: int,
    rate: int | None,
    one_way: bool,
    clients: bool,
    folder: Path,
    as_json: bool,
) -> None:
    """Groups are as in `tanist partition`."""
    if not (latency or jitter or rate):
        raise click.UsageError("give --latency, --jitter or --rate")
    requests = FaultRequests(folder)
    ends = _sides(requests, groups, clients=clients)
    _set(Slow(*ends, one_way, latency, jitter, rate or 0), requests, as_json)


@fault_command("disk", *(f"disk-{state}" for state in get_args(DiskState)))
@click.argument("node_id", metavar="ID", type=int)
@click.argument("state", type=click.Choice(get_args(DiskState)))
@click.pass_context
def disk_command(
    ctx: click.Context,
    node_id: int,
    state: DiskState,
    log_dir: str | None,
    latency: int,
    writes: bool,
    folder: Path,
    as_json: bool,
) -> None:
    """Make a node's disk full, slow, failed or read-only.

    As in Kafka, a node takes a log directory offline whose disk is full, failing or read-only. A node that has lost its
    last log directory, or the one with the metadata log, goes down. To bring it back: `tanist heal`, then
    `tanist start ID` (`tanist stop ID` first if it still runs).
    """
    slow = state == "slow"
    if not slow and (writes or ctx.get_parameter_source("latency") is click.core.ParameterSource.COMMANDLINE):
        raise click.UsageError("--latency and --writes go with `slow` only")
    requests = FaultRequests(folder)
    path = None if log_dir is None else requests.log_dir(node_id, log_dir)
    _set(BadDisk(node_id, state, path, latency if slow else 0, writes), requests, as_json)


@fault_command("pause")
@nodes_argument
def pause_command(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """A paused node sends nothing and reads nothing."""
    _each(node_ids, FaultRequests(folder).pause, "paused", as_json)


@click.command("resume")
@nodes_argument
@data_option
@json_option
def resume_command(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """Let a paused node go on (SIGCONT). It does not notice the pause."""
    _each(node_ids, FaultRequests(folder).resume, "resumed", as_json)


def _each(node_ids: tuple[int, ...], act: Callable[[int], None], what: str, as_json: bool) -> None:
    for node_id in node_ids:
        act(node_id)
        if not as_json:
            click.echo(f"node {node_id}: {what}")
    if as_json:
        print_json({what: list(node_ids)})


@click.command("heal")
@click.argument("members", metavar="[ID]...", nargs=-1)
@data_option
@json_option
def heal_command(members: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """End all faults, or those of some nodes: links, disks, pauses.

    `clients` among the ids means everything that is not a node. Without ids, faults by request end too.

    Open connections continue. A node that is down stays down until `tanist start`. A node that has taken a log
    directory offline uses it again only after `tanist stop` and `tanist start`.
    """
    chosen = {member for word in members for member in _members(word)} if members else None
    requests = FaultRequests(folder)
    left, resumed = requests.heal(chosen)
    if as_json:
        print_json({"resumed": resumed, "faults": left.described() + requests.described_requests()})
        return
    for node_id in resumed:
        click.echo(f"node {node_id}: resumed")
    if left.faults or left.requests:
        click.echo("healed; these faults are still set:")
        for fault in (*left.faults, *left.requests):
            say(f"  {fault}")
    else:
        click.echo("healed; no faults are set now")
    for node in load_existing(folder).nodes:
        if not node.alive and (chosen is None or node.node_id in chosen):
            click.echo(f"node {node.node_id} is down: `tanist start {node.node_id}`")


def _set(fault: Fault, requests: FaultRequests, as_json: bool) -> None:
    requests.set(fault)
    if as_json:
        print_json({"faults": requests.present().described()})
    else:
        say(f"{fault}. `tanist heal` ends it")

"""`tanist pause`, `resume`, `partition`, `slow`, `disk`, `heal`: breaking a live cluster, and mending it."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tanist.cli.options import data_option, json_option
from tanist.cli.output.lines import say
from tanist.cli.output.tables import print_json
from tanist.runtime.cluster.cluster_file import ClusterFile, load_existing
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.cluster.layout import log_directories
from tanist.runtime.faults.settings import CLIENTS, DISK_STATES, BadDisk, Fault, Partition, Side, Slow, names, side

_DURATIONS = {"ms": 1, "s": 1000, "m": 60_000}
_RATES = {"B": 1, "kB": 1000, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LATENCY_MAX_MS = 600_000
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)(?:/s)?")


def _measure(value: str, units: dict[str, int], example: str) -> int:
    found = _NUMBER.fullmatch(value.strip())
    if found is None or found[2] not in units:
        raise click.BadParameter(f"{value!r} is not like {example}; units are {', '.join(units)}")
    return round(float(found[1]) * units[found[2]])


def duration(value: str) -> int:
    time_ms = _measure(value, _DURATIONS, "200ms")
    if time_ms > _LATENCY_MAX_MS:
        raise click.BadParameter(f"{value!r} is more than {_LATENCY_MAX_MS // 60_000} minutes")
    return time_ms


def _rate(value: str) -> int:
    rate_bytes = _measure(value, _RATES, "1MB")
    if not rate_bytes:
        raise click.BadParameter("the rate must be more than 0; `tanist partition` cuts links")
    return rate_bytes


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


def _sides(groups: tuple[str, ...], cluster: ClusterFile, clients: bool) -> tuple[Side, Side]:
    """The two ends of a link: `'1,2|3'`, or `1,2 3`, or `3` for it and all other nodes."""
    words = [word for group in groups for word in group.split("|")]
    if len(words) > 2:
        raise click.UsageError("a link has two sides, like '1,2|3' (quoted) or 1,2 3")
    source = _members(words[0])
    if len(words) == 2:
        target = _members(words[1])
        if clients:
            source = side((*source, CLIENTS))
    else:
        others = [node.node_id for node in cluster.nodes if node.node_id not in source]
        target = side([*others, CLIENTS] if clients else others)
        if not target:
            raise click.UsageError(f"there is no node besides {names(source)}: name the other side")
    return source, target


groups_argument = click.argument("groups", metavar="A|B", nargs=-1, required=True)
one_way_option = click.option("--one-way", is_flag=True, help="Only from A to B; the other direction works.")
clients_option = click.option(
    "--clients", is_flag=True, help="Clients join A's side or, if only one side is named, the other side."
)


@click.command("partition")
@groups_argument
@one_way_option
@clients_option
@data_option
@json_option
def partition_command(groups: tuple[str, ...], one_way: bool, clients: bool, folder: Path, as_json: bool) -> None:
    """Cut the links between two groups of nodes: packets are dropped.

    '1,2|3' (quoted, or 1,2 3) cuts node 3 off from 1 and 2; a single group is cut off from all other nodes. `clients`
    in a group means everything that is not a node. Open connections stay open but silent; new ones are not answered.
    Links stay cut until `tanist heal`, also when nodes restart.
    """
    source, target = _sides(groups, load_existing(folder), clients)
    _set(Partition(source, target, one_way), folder, as_json)


@click.command("slow")
@groups_argument
@click.option("--latency", type=duration, default="0ms", metavar="TIME", help="Each way, such as 200ms or 1.5s.")
@click.option("--jitter", type=duration, default="0ms", metavar="TIME", help="Add a random time from 0 to this.")
@click.option(
    "--rate", type=_rate, metavar="SIZE", help="Bytes a second for each connection, each way, such as 1MB or 512KiB."
)
@one_way_option
@clients_option
@data_option
@json_option
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
    """Make the links between two groups of nodes slow.

    Groups are as in `tanist partition`.
    """
    if not (latency or jitter or rate):
        raise click.UsageError("give --latency, --jitter or --rate")
    source, target = _sides(groups, load_existing(folder), clients)
    _set(Slow(source, target, one_way, latency, jitter, rate or 0), folder, as_json)


@click.command("disk")
@click.argument("node_id", metavar="ID", type=int)
@click.argument("trouble", type=click.Choice(tuple(DISK_STATES)))
@click.option("--log-dir", metavar="DIR", help="Only one of the node's log directories: its path, or its last part.")
@click.option("--latency", type=duration, metavar="TIME", help="How slow each sync is.  [default: 100ms]")
@click.option(
    "--writes", is_flag=True, help="Slow down writes, too, not only syncs; the whole node waits for each below 128 KB."
)
@data_option
@json_option
def disk_command(
    node_id: int, trouble: str, log_dir: str | None, latency: int | None, writes: bool, folder: Path, as_json: bool
) -> None:
    """Make a node's disk full, slow, failed or read-only.

    As in Kafka, a node takes a log directory offline whose disk is full, failing or read-only. A node that has lost its
    last log directory, or the one with the metadata log, goes down. To bring it back: `tanist heal`, then
    `tanist start ID` (`tanist stop ID` first if it still runs).
    """
    if trouble != "slow" and (latency is not None or writes):
        raise click.UsageError("--latency and --writes go with `slow` only")
    path = None if log_dir is None else _log_dir(folder, node_id, log_dir)
    late_ms = 0 if trouble != "slow" else 100 if latency is None else latency
    _set(BadDisk(node_id, DISK_STATES[trouble], path, late_ms, writes), folder, as_json)


def _log_dir(folder: Path, node_id: int, wanted: str) -> str:
    load_existing(folder).node(node_id)
    paths = log_directories(folder.absolute(), node_id)
    for path in paths:
        if wanted in (path, Path(path).name) or Path(wanted).absolute() == Path(path):
            return path
    raise click.UsageError(f"node {node_id} has no log directory {wanted}; it has {', '.join(paths)}")


@click.command("pause")
@click.argument("node_ids", metavar="ID...", type=int, nargs=-1, required=True)
@data_option
@json_option
def pause_command(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """Freeze a node's process (SIGSTOP).

    It sends nothing and reads nothing, but its connections stay open.
    """
    requests = FaultRequests(folder)
    for node_id in node_ids:
        requests.pause(node_id)
        if not as_json:
            click.echo(f"node {node_id}: paused")
    if as_json:
        print_json({"paused": list(node_ids)})


@click.command("resume")
@click.argument("node_ids", metavar="ID...", type=int, nargs=-1, required=True)
@data_option
@json_option
def resume_command(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """Let a paused node go on (SIGCONT). It does not notice the pause."""
    requests = FaultRequests(folder)
    for node_id in node_ids:
        requests.resume(node_id)
        if not as_json:
            click.echo(f"node {node_id}: resumed")
    if as_json:
        print_json({"resumed": list(node_ids)})


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


def _set(fault: Fault, folder: Path, as_json: bool) -> None:
    requests = FaultRequests(folder)
    requests.set(fault)
    if as_json:
        print_json({"faults": requests.present().described()})
    else:
        say(f"{fault}. `tanist heal` ends it")

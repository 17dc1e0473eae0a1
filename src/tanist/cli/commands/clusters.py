"""`tanist up`, `down`, `crash`, `stop`, `start`: a cluster of processes on this machine."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import click
from click.core import ParameterSource

from tanist.cli import closed_output
from tanist.cli.fault_options import fault_command, nodes_argument
from tanist.cli.options import config_option, data_option, feature_option, json_option
from tanist.cli.output.cluster_status import status_json
from tanist.cli.output.lines import say
from tanist.cli.output.tables import print_json
from tanist.cli.settings import unknown_setting
from tanist.runtime.cluster.cluster import HOST, PORT, LocalCluster
from tanist.runtime.cluster.cluster_file import ClusterFile, is_locked, load, load_existing
from tanist.runtime.cluster.exit_reasons import exit_reason
from tanist.runtime.cluster.secure_files import ADMIN, APP, SecureFiles
from tanist.runtime.cluster.wiping import size_of
from tanist.text import counted

_POLL_EVERY_S = 0.2


def _cluster(folder: Path, as_json: bool = False) -> LocalCluster:
    return LocalCluster(folder, lambda line: click.echo(line, err=as_json))


def _controllers(value: str) -> int:
    """How many controllers have processes of their own: none when they are combined with brokers."""
    if value == "combined":
        return 0
    if not value.isdecimal() or not 0 < int(value) < 100:
        raise click.BadParameter(f"{value!r} is neither `combined` nor a number")
    return int(value)


@click.command("up")
@click.option("--brokers", type=click.IntRange(1, 100), help="How many brokers a new cluster gets.  [default: 3]")
@click.option(
    "--controllers",
    type=_controllers,
    metavar="combined|N",
    help="N controllers in processes of their own, or `combined`: brokers are controllers too.  [default: combined]",
)
@data_option
@click.option("--host", help=f"The address that a new cluster listens on.  [default: {HOST}]")
@click.option(
    "--port",
    type=click.IntRange(0, 65000),
    help=f"The first broker's port in a new cluster; the others follow. 0: any free ports.  [default: {PORT}]",
)
@click.option("--log-dirs", type=click.IntRange(1, 20), help="Log directories of each node.  [default: 1]")
@config_option("A Kafka setting for every node, for instance min.insync.replicas=1. Repeatable.")
@feature_option("A feature and its level in a new cluster; 0: off. Repeatable.")
@click.option(
    "--secure", is_flag=True, help="A new cluster with TLS, users (SCRAM) and ACLs; the folder has all files."
)
@click.option("--detach", is_flag=True, help="Return when the cluster is ready, and leave it running.")
@click.option(
    "--ephemeral",
    is_flag=True,
    help="Create the cluster in a temporary folder, and remove the folder when it stops.",
)
@json_option
@click.pass_context
def up_command(
    ctx: click.Context,
    brokers: int | None,
    controllers: int | None,
    folder: Path,
    host: str | None,
    port: int | None,
    log_dirs: int | None,
    config: tuple[tuple[str, str], ...],
    features: tuple[tuple[str, int], ...],
    secure: bool,
    detach: bool,
    ephemeral: bool,
    as_json: bool,
) -> None:
    """Start a cluster on this machine, and say when it is ready.

    In a new --data folder this creates a cluster: one process for each node, with its server.properties, log and data
    in DIR/node-ID. In the folder of a stopped cluster it starts that cluster again, with its data.

    The cluster ends with this command: Ctrl-C, SIGTERM, a closed terminal or a kill of this process shuts all nodes
    down cleanly, nodes that `tanist start` started included. With --detach the cluster runs until `tanist down`.

    For a test or an experiment, `tanist up --ephemeral --port 0` runs beside any other cluster and leaves nothing
    behind, however it ends.
    """
    if (unknown := unknown_setting([name for name, _ in config])) is not None:
        raise click.UsageError(f"--config {unknown}")
    if ephemeral:
        folder = _temporary_folder(ctx)
    _interrupt_on_signals()
    cluster = LocalCluster(folder, lambda line: _say(line, err=as_json))
    began = time.monotonic()
    ours = False
    try:
        entries = cluster.up(
            brokers=brokers,
            controllers=controllers,
            host=host,
            port=port,
            log_dirs=log_dirs,
            config=dict(config),
            features=dict(features),
            secure=secure,
            ends_with_us=not detach,
            ephemeral=ephemeral,
        )
        ours = True
        took_s = round(time.monotonic() - began, 2)
        status = cluster.status()
        if as_json:
            data = {"data": str(cluster.folder), "ephemeral": entries.ephemeral}
            print_json({"ready_s": took_s} | data | status_json(status))
        else:
            say(
                f"ready in {took_s} s: {counted(len(entries.brokers), 'broker')} at {status.bootstrap}, "
                f"controller {status.controller}, data in {cluster.folder}"
            )
        if entries.secure and not as_json:
            _say_how_to_connect(SecureFiles(cluster.folder))
        if ephemeral and not as_json:
            _say(f"For other commands: export TANIST_DATA={cluster.folder}")
        if detach:
            return
        if not as_json:
            _say("Ctrl-C stops it. In another terminal: tanist status, tanist topics create NAME, tanist crash ID")
        _attend(cluster, err=as_json)
    except KeyboardInterrupt:
        if not ours:
            raise click.ClickException("interrupted; nothing is left running") from None
        _stop_all(cluster, err=as_json)


def _say_how_to_connect(files: SecureFiles) -> None:
    """The files that clients take: a password is in each, and on no screen."""
    for user, may in ((APP, f"topics, groups and transactional ids that begin with {APP}"), (ADMIN, "everything")):
        _say(f"User {user} ({may}):")
        _say(f"  tanist, Java, kafka-*.sh  {files.client_config(user)}")
        _say(f"  librdkafka, kcat -F       {files.folder / f'{user}.librdkafka.conf'}")
        _say(f"  kafka-python, aiokafka    {files.folder / f'{user}.py'}")
    _say("Commands with --data ask as admin. More: tanist acls, users, tokens, certs")


def _temporary_folder(ctx: click.Context) -> Path:
    if ctx.get_parameter_source("folder") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--ephemeral creates a temporary folder: leave out --data or --ephemeral")
    return Path(tempfile.mkdtemp(prefix="tanist-"))


def _interrupt_on_signals() -> None:
    """SIGTERM and a closed terminal are as Ctrl-C, but a `nohup` is respected."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGHUP:
            # The kernel and the shell may each send one: the second is no wish to have the nodes killed.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)


def _say(line: str, err: bool = False) -> None:
    """The terminal may be closed by now, and the pipe's reader gone: the cluster matters more."""
    try:
        if err:
            click.echo(line, err=True)
        else:
            say(line)
    except OSError:
        closed_output.forsake(sys.stderr if err else sys.stdout)


def _attend(cluster: LocalCluster, *, err: bool) -> None:
    """Stay until another command has stopped the cluster, and say which nodes come and go."""
    began_with = load_existing(cluster.folder)
    alive = {node.node_id for node in began_with.running}
    entries: ClusterFile | None = began_with
    all_down = False
    while entries is not None and entries.owner == began_with.owner:
        now = {node.node_id for node in entries.running}
        for node_id in sorted(alive - now):
            reason = exit_reason(cluster.folder, entries.node(node_id))
            _say(f"node {node_id} is down{f': {reason}' if reason else ''}", err)
        for node_id in sorted(now - alive):
            _say(f"node {node_id} is up", err)
        # A `reset` stops all nodes, too, and starts them again.
        all_down = (all_down or bool(alive)) and not now
        if all_down and not is_locked(cluster.folder):
            all_down = False
            _say("all nodes are down: `tanist start ID` starts one, Ctrl-C here ends the cluster", err)
        alive = now
        time.sleep(_POLL_EVERY_S)
        entries = load(cluster.folder)
    cluster.let_go()
    _say("another command has stopped the cluster", err)


def _stop_all(cluster: LocalCluster, *, err: bool) -> None:
    """In an orderly way, unless Ctrl-C comes again."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _say("stopping (Ctrl-C again kills)", err)
    try:
        cluster.down()
    except KeyboardInterrupt:
        for node in load_existing(cluster.folder).running:
            if node.process is not None:
                node.process.kill()
        cluster.let_go()
        raise click.ClickException("killed: the next start has to recover the logs") from None
    _say("stopped", err)


_yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command("down")
@click.option("--wipe", is_flag=True, help="Also remove the cluster: data, metadata, salvage, logs. Asks first.")
@_yes_option
@data_option
@json_option
def down_command(wipe: bool, yes: bool, folder: Path, as_json: bool) -> None:
    """Shut every node down cleanly. The data stays: `tanist up` starts the cluster again.

    With --wipe the data goes, too. An ephemeral cluster is always removed, without asking.
    """
    entries = load_existing(folder)
    if wipe and not entries.ephemeral:
        _ask_to_remove(folder, entries, "--wipe", yes=yes, as_json=as_json)
    stopped = _cluster(folder, as_json).down(wipe=wipe)
    wiped = wipe or entries.ephemeral
    if as_json:
        print_json({"stopped": stopped, "wiped": wiped})
        return
    if stopped:
        click.echo(f"stopped {counted(len(stopped), 'node')}: {', '.join(map(str, stopped))}")
    elif not wiped:
        click.echo("nothing was running")
    if wiped:
        click.echo(f"removed the cluster in {folder}")


@click.command("reset")
@_yes_option
@data_option
@json_option
def reset_command(yes: bool, folder: Path, as_json: bool) -> None:
    """Empty the cluster: same nodes, ports and settings, no topics. Asks first.

    Stops every node, removes its data, metadata, salvage and logs, and creates the cluster again as `tanist up` did,
    with a new cluster id. A running cluster is running again when this returns (a `tanist up` in another terminal stays
    its owner); a stopped one stays stopped.
    """
    _ask_to_remove(folder, load_existing(folder), "a reset", yes=yes, as_json=as_json)
    cluster = _cluster(folder, as_json)
    began = time.monotonic()
    runs = cluster.reset()
    took_s = round(time.monotonic() - began, 2)
    entries = load_existing(folder)
    if as_json:
        print_json(
            {"running": runs, "took_s": took_s, "cluster_id": entries.cluster_id} | status_json(cluster.status())
        )
    elif runs:
        brokers = counted(len(entries.brokers), "broker")
        click.echo(f"empty and ready after {took_s} s: {brokers} at {cluster.status().bootstrap}")
    else:
        click.echo("the cluster is empty; `tanist up` starts it")


def _ask_to_remove(folder: Path, entries: ClusterFile, what: str, *, yes: bool, as_json: bool) -> None:
    """`Abort` unless the operator agrees."""
    if yes:
        return
    if as_json:
        raise click.UsageError(f"{what} removes data, and --json cannot ask: add --yes")
    size = size_of(folder, entries)
    nodes = counted(len(entries.nodes), "node")
    where = f"{nodes} in {folder} ({_megabytes(size)}, cluster {entries.cluster_id})"
    click.confirm(f"This removes all topics and records of {where}. Go on?", abort=True, err=True)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


@fault_command("crash")
@click.option(
    "--lose",
    type=click.Choice(["page-cache", "nothing"]),
    default="nothing",
    show_default=True,
    help="page-cache: cut each file to its synced length, as a power loss would.",
)
@nodes_argument
def crash_command(node_ids: tuple[int, ...], lose: str, folder: Path, as_json: bool) -> None:
    """`tanist start ID` brings one back.

    A killed process loses nothing that it had written: the operating system's page cache still has it. --lose
    page-cache acts like a power loss: all bytes that were not synced are gone. With Kafka's defaults, that is most.
    A checkpoint that was replaced within half a minute may be empty.
    """
    cuts = _cluster(folder, as_json).crash(*node_ids, lose_page_cache=lose == "page-cache")
    lost = [{"path": cut.path, "lost_bytes": cut.lost_bytes} for cut in cuts]
    _tell(node_ids, "crashed", as_json, **({"lost": lost} if lose == "page-cache" else {}))
    if as_json:
        return
    if lose == "page-cache":
        lost_bytes = counted(sum(cut.lost_bytes for cut in cuts), "byte")
        click.echo(f"{lost_bytes} in {counted(len(cuts), 'file')} were not synced and are lost")


@fault_command("stop")
@nodes_argument
def stop_command(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """The command returns when the processes have ended."""
    _cluster(folder, as_json).stop(*node_ids)
    _tell(node_ids, "stopped", as_json)


@click.command("start")
@nodes_argument
@data_option
@json_option
def start_command(node_ids: tuple[int, ...], folder: Path, as_json: bool) -> None:
    """Start nodes that are down. Returns when they have joined the cluster."""
    _cluster(folder, as_json).start(*node_ids)
    _tell(node_ids, "started", as_json)


def _tell(node_ids: Sequence[int], what: str, as_json: bool, **more: object) -> None:
    """One node as `id`, several as `ids`."""
    node_ids = list(dict.fromkeys(node_ids))
    if as_json:
        which = {"id": node_ids[0]} if len(node_ids) == 1 else {"ids": node_ids}
        print_json({**which, "state": what, **more})
        return
    for node_id in node_ids:
        click.echo(f"node {node_id}: {what}")

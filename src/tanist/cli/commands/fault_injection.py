"""`tanist faults`: which faults are set, and faults by request in the words of Apache Kafka's proxy (KAFKA-21074)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from tanist.cli.fault_options import duration, fault_command
from tanist.cli.options import data_option, json_option
from tanist.cli.output.lines import say
from tanist.cli.output.tables import print_json
from tanist.cli.tree import Group
from tanist.runtime.cluster.fault_requests import FaultRequests
from tanist.runtime.faults.request_rules import RequestFault, UnknownName, api_key_of, error_code_of, error_fault

F = TypeVar("F", bound=Callable[..., Any])


def trigger_options(command: F) -> F:
    """When it happens, and to whose requests."""
    for option in (
        click.option("--nodes", is_flag=True, help="Also requests between nodes, and of tanist's own tools."),
        click.option("--client", default="", metavar="TEXT", help="Only clients whose id has this in it."),
        click.option(
            "--probability",
            "with_probability",
            type=click.FloatRange(0, 1, min_open=True),
            help="At each call, this likely.",
        ),
        click.option("--every-time", is_flag=True, help="At each call."),
        click.option("--times", type=click.IntRange(1), metavar="N", help="At each of the next N calls."),
        click.option("--on-call", type=click.IntRange(1), metavar="N", help="At the Nth call from now on."),
        click.option("--once", is_flag=True, help="At the next call."),
    ):
        command = option(command)
    return command


def _named(find: Callable[[str], int]) -> Callable[[str], int]:
    """The type of an argument that is a name of Kafka's."""

    def found(value: str) -> int:
        try:
            return find(value)
        except UnknownName as error:
            raise click.BadParameter(str(error)) from None

    return found


@click.group("faults", cls=Group, invoke_without_command=True)
@data_option
@json_option
@click.pass_context
def faults_command(ctx: click.Context, folder: Path, as_json: bool) -> None:
    """Show what faults are set, or make requests fail. `tanist status` shows which nodes are down."""
    if ctx.invoked_subcommand is None:
        _list(folder, as_json)


@faults_command.command("list")
@data_option
@json_option
def list_command(folder: Path, as_json: bool) -> None:
    """Show what faults are set; of those by request, the calls and the hits."""
    _list(folder, as_json)


def _list(folder: Path, as_json: bool) -> None:
    orders = FaultRequests(folder)
    present, paused = orders.present(), orders.paused()
    if as_json:
        frozen: list[dict[str, Any]] = [{"kind": "pause", "node": node_id} for node_id in paused]
        print_json({"faults": present.described() + orders.described_requests() + frozen})
        return
    for fault in present.faults:
        say(str(fault))
    for rule in present.requests:
        say(f"{rule} ({orders.hits_of(rule)})")
    for node_id in paused:
        click.echo(f"node {node_id} is paused")
    if not present.faults and not present.requests and not paused:
        click.echo("no faults are set")


@faults_command.group("inject", cls=Group)
def inject_group() -> None:
    """Make requests of clients fail.

    \b
    tanist faults inject error PRODUCE NOT_ENOUGH_REPLICAS --once
    tanist faults inject delay FETCH 500ms --times 3
    tanist faults inject disconnect END_TXN --every-time
    tanist faults inject blackhole CLIENT --every-time

    An error refuses the request, or takes the place of the answer to one that is carried out, as Kafka does with that
    error. Before a delay or a disconnect the request is carried out; a blackhole drops it. Calls are counted over all
    brokers.
    """


@fault_command("error", command=inject_group.command)
@click.argument("api", type=_named(api_key_of))
@click.argument("error", type=_named(error_code_of))
@trigger_options
def error_command(api: int, error: int, after: bool | None, **options: Any) -> None:
    """Nearly all errors refuse the request, which then has no effect. Kafka gives some when it is carried out:
    REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND.
    """
    _inject(error_fault(api, error, after), **options)


@fault_command("delay", command=inject_group.command)
@click.argument("api", type=_named(api_key_of))
@click.argument("delay_ms", metavar="TIME", type=duration)
@trigger_options
def delay_command(api: int, delay_ms: int, **options: Any) -> None:
    """TIME is such as 500ms or 2s."""
    if not delay_ms:
        raise click.UsageError("a delay of nothing is none")
    _inject(RequestFault("delay", api, delay_ms=delay_ms), **options)


@fault_command("disconnect", command=inject_group.command)
@click.argument("api", type=_named(api_key_of))
@trigger_options
def disconnect_command(api: int, **options: Any) -> None:
    _inject(RequestFault("disconnect", api), **options)


@fault_command("blackhole", command=inject_group.command)
@click.argument("client_id", metavar="CLIENT")
@trigger_options
def blackhole_command(client_id: str, **options: Any) -> None:
    """CLIENT is a part of the client's id."""
    if not client_id:
        raise click.UsageError("name a part of the client's id")
    _inject(RequestFault("blackhole"), **(options | {"client": client_id}))


def _inject(
    rule: RequestFault, *, client: str, nodes: bool, folder: Path, as_json: bool, **triggers: float | None
) -> None:
    """`triggers`: values by the names of the rule's methods, one of them given."""
    given = [(name, value) for name, value in triggers.items() if value]
    if len(given) != 1:
        raise click.UsageError("say when, with one of --once, --on-call, --times, --every-time and --probability")
    ((name, value),) = given
    triggered = getattr(replace(rule, client_id=client, nodes=nodes), name)
    found = FaultRequests(folder).inject(triggered() if value is True else triggered(value))
    if as_json:
        print_json(found.as_json(0, 0))
    else:
        say(f"{found}. `tanist faults` counts its hits, `tanist heal` ends it")

"""`tanist topics`: list, create, describe, alter and delete topics of any Kafka cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tanist.cli.commands.topic_states import describe
from tanist.cli.options import client_options, config_option, connect, json_option
from tanist.cli.output.alerts import warn_of_age
from tanist.cli.output.lines import say
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.output.topic_description import topic_json, topic_lines
from tanist.cli.tree import Group
from tanist.client.admin import TOPIC_RESOURCE
from tanist.runtime.client import admin
from tanist.runtime.client.client import Address, Client
from tanist.runtime.client.quorum import metadata_age_ms
from tanist.runtime.client.reassign import present_assignment, reassign
from tanist.text import counted
from tanist.wire.ids import id_text


def _assignment(value: str) -> list[tuple[int, ...]]:
    try:
        return [tuple(int(broker) for broker in replicas.split(":")) for replicas in value.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not like 1:2:3,2:3:1 (brokers of partition 0, of partition 1)"
        ) from None


assignment_option = click.option(
    "--replica-assignment",
    "assignment",
    type=_assignment,
    metavar="B:B:B,...",
    help="Brokers of each partition, like 1:2:3,2:3:1. The first of each is the preferred leader.",
)


_FILTERS = {
    "under_replicated": "Only partitions with fewer replicas in sync than replicas.",
    "under_min_isr": "Only partitions with fewer replicas in sync than min.insync.replicas.",
    "at_min_isr": "Only partitions with exactly min.insync.replicas replicas in sync.",
    "unavailable": "Only partitions without a live leader.",
}


def _filter_options(command: Callable[..., None]) -> Callable[..., None]:
    for name, text in reversed(_FILTERS.items()):
        option = f"--{name.replace('_', '-')}-partitions"
        command = click.option(option, name, is_flag=True, help=text)(command)
    return command


@click.group("topics", cls=Group)
def topics_command() -> None:
    """List, create, describe, alter and delete topics."""


@topics_command.command("list")
@client_options
@json_option
def list_command(bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """List all topics."""
    with connect(bootstrap, folder) as client:
        warn_of_age(metadata_age_ms(client), as_json)
        found = admin.list_topics(client)
    if as_json:
        print_json([{"topic": name, "partitions": count, "internal": internal} for name, count, internal in found])
        return
    if not found:
        click.echo("there are no topics: `tanist topics create NAME` makes one")
        return
    print_table(("TOPIC", "PARTITIONS"), [(name, count) for name, count, _ in found])


@topics_command.command("create")
@click.argument("name")
@click.option("--partitions", type=click.IntRange(1), help="How many partitions.  [default: the cluster's]")
@click.option("--replication-factor", type=click.IntRange(1), help="Replicas of each.  [default: the cluster's]")
@assignment_option
@config_option("A setting of the topic, for instance min.insync.replicas=2. Repeatable.")
@client_options
@json_option
def create_command(
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    assignment: list[tuple[int, ...]] | None,
    config: tuple[tuple[str, str], ...],
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Create a topic."""
    if assignment and (partitions or replication_factor):
        raise click.UsageError(
            "--replica-assignment sets the numbers of partitions and replicas: leave out the other options"
        )
    with connect(bootstrap, folder) as client:
        topic_id = admin.create_topic(
            client,
            name,
            partitions=partitions or -1,
            replication_factor=replication_factor or -1,
            assignment=assignment or (),
            config=dict(config),
        )
    if as_json:
        print_json({"topic": name, "topic_id": id_text(topic_id)})
    else:
        click.echo(f"created {name}")


@topics_command.command("describe")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_filter_options
@click.option("--explain", "explained", is_flag=True, help="Explain each partition's state, with the rule of KIP-966.")
@client_options
@json_option
def describe_command(
    names: tuple[str, ...],
    explained: bool,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
    **filters: bool,
) -> None:
    """Show each partition's leader, replicas, ISR and ELR.

    Prints all topics, or those named, in the format of `kafka-topics --describe`. ELR are the eligible leader replicas
    (KIP-966): they left the ISR but still have every committed record, so any of them can lead without losing one.
    A min.insync.replicas above a partition's number of replicas counts as that number.
    """
    chosen = [name for name, wanted in filters.items() if wanted]
    if len(chosen) > 1:
        raise click.UsageError("give one filter only")
    with connect(bootstrap, folder) as client:
        age_ms = metadata_age_ms(client)
        warn_of_age(age_ms, as_json)
        found = describe(
            client,
            names,
            only=chosen[0] if chosen else None,
            explained=explained,
            controlled=age_ms is None,
            data=None if bootstrap else folder,
        )
    if as_json:
        print_json([topic_json(topic) for topic in found])
        return
    for topic in found:
        for line in topic_lines(topic):
            if line.startswith("\t\t"):
                say(line, hang=16)
            else:
                click.echo(line)  # as `kafka-topics` has it


@topics_command.command("alter")
@click.argument("name")
@click.option("--partitions", type=click.IntRange(1), help="Grow the topic to this many partitions.")
@assignment_option
@config_option("Set a setting of the topic. Repeatable.")
@click.option("--unset", multiple=True, metavar="KEY", help="Take a setting back to its default. Repeatable.")
@client_options
@json_option
def alter_command(
    name: str,
    partitions: int | None,
    assignment: list[tuple[int, ...]] | None,
    config: tuple[tuple[str, str], ...],
    unset: tuple[str, ...],
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Change a topic's partitions, replicas and settings.

    With --partitions, --replica-assignment places the new partitions. Alone it moves all partitions, as `tanist
    reassign` does: brokers of partition 0, of partition 1, and so on.
    """
    if partitions is None and not config and not unset and not assignment:
        raise click.UsageError("nothing to change: give --partitions, --replica-assignment, --config or --unset")
    changes: dict[str, str | None] = dict(config)
    changes.update(dict.fromkeys(unset))
    with connect(bootstrap, folder) as client:
        if partitions is not None:
            admin.add_partitions(client, name, partitions, assignment or ())
        elif assignment:
            _move(client, name, assignment)
        if changes:
            admin.alter_configs(client, TOPIC_RESOURCE, name, changes)
    if as_json:
        print_json({"topic": name, "altered": True})
    else:
        moving = "; `tanist reassign list` shows how far its replicas have moved"
        click.echo(f"altered {name}{moving if assignment and partitions is None else ''}")


def _move(client: Client, name: str, assignment: Sequence[tuple[int, ...]]) -> None:
    present = present_assignment(client, [name])
    if len(present) != len(assignment):
        raise click.ClickException(
            f"{name} has {counted(len(present), 'partition')}, but --replica-assignment has {len(assignment)}: give "
            "brokers for each, or use `tanist reassign` for some of them"
        )
    refused = reassign(client, {(name, index): replicas for index, replicas in enumerate(assignment)})
    if refused:
        raise click.ClickException("; ".join(map(str, refused)))


@topics_command.command("delete")
@click.argument("name")
@client_options
@json_option
def delete_command(name: str, bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Delete a topic and its records."""
    with connect(bootstrap, folder) as client:
        admin.delete_topic(client, name)
    if as_json:
        print_json({"topic": name, "deleted": True})
    else:
        click.echo(f"deleted {name}")

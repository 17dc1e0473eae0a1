"""`tanist configs`: settings of topics, brokers and consumer groups of any Kafka cluster."""

from __future__ import annotations

from pathlib import Path

import click

from tanist.cli.options import client_options, config_option, connect, json_option
from tanist.cli.output.alerts import warn_of_age
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.client.admin import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from tanist.runtime.client import admin
from tanist.runtime.client.client import Address
from tanist.runtime.client.quorum import metadata_age_ms


@click.group("configs", cls=Group)
def configs_command() -> None:
    """Show and change settings of topics, groups and brokers."""


def _resource(topic: str | None, broker: str | None, group: str | None) -> tuple[int, str]:
    if [topic, broker, group].count(None) != 2:
        raise click.UsageError("give one of --topic NAME, --group NAME and --broker ID (--broker all: the cluster)")
    if topic is not None:
        return TOPIC_RESOURCE, topic
    if group is not None:
        return GROUP_RESOURCE, group
    if broker == "all":
        return BROKER_RESOURCE, ""
    if broker is None or not broker.isdecimal():
        raise click.UsageError(f"--broker takes an id or `all`, not {broker!r}")
    return BROKER_RESOURCE, broker


topic_option = click.option("--topic", help="The settings of this topic.")
group_option = click.option("--group", metavar="NAME", help="The settings of this consumer group.")
broker_option = click.option("--broker", metavar="ID|all", help="The settings of this broker, or of the whole cluster.")


@configs_command.command("describe")
@topic_option
@group_option
@broker_option
@click.option("--all", "everything", is_flag=True, help="Defaults too, not only what was set.")
@client_options
@json_option
def describe_command(
    topic: str | None,
    group: str | None,
    broker: str | None,
    everything: bool,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Show settings, and where each comes from."""
    kind, name = _resource(topic, broker, group)
    with connect(bootstrap, folder) as client:
        warn_of_age(metadata_age_ms(client), as_json)
        found = [entry for entry in admin.describe_configs(client, kind, name) if everything or not entry.is_default]
    if as_json:
        print_json([{"name": entry.name, "value": entry.value, "source": entry.source} for entry in found])
        return
    rows = [(entry.name, "(hidden)" if entry.sensitive else entry.value, entry.source) for entry in found]
    print_table(("NAME", "VALUE", "SOURCE"), rows)


@configs_command.command("alter")
@topic_option
@group_option
@broker_option
@config_option("Set a setting. Repeatable.")
@click.option("--unset", multiple=True, metavar="KEY", help="Take a setting back to its default. Repeatable.")
@client_options
@json_option
def alter_command(
    topic: str | None,
    group: str | None,
    broker: str | None,
    config: tuple[tuple[str, str], ...],
    unset: tuple[str, ...],
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Set settings, or take them back to their defaults."""
    kind, name = _resource(topic, broker, group)
    changes: dict[str, str | None] = dict(config)
    changes.update(dict.fromkeys(unset))
    if not changes:
        raise click.UsageError("nothing to change: give --config or --unset")
    with connect(bootstrap, folder) as client:
        admin.alter_configs(client, kind, name, changes)
    if as_json:
        print_json({"altered": sorted(changes)})
    else:
        of = "the whole cluster" if not name else f"{'topic' if topic else 'group' if group else 'broker'} {name}"
        click.echo(f"altered {', '.join(sorted(changes))} of {of}")

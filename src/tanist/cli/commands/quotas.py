"""`tanist quotas`: quotas of clients of any Kafka cluster. Options are named as those of `kafka-configs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tanist.cli.options import client_options, connect, json_option, key_value
from tanist.cli.output.alerts import warn_of_age
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.runtime.client.client import Address
from tanist.runtime.client.client_quotas import KINDS, Entity, alter_quotas, describe_quotas
from tanist.runtime.client.quorum import metadata_age_ms

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = {"user": "user", "client-id": "client", "ip": "ip"}
"""By the type of an entity: its option."""


@click.group("quotas", cls=Group)
def quotas_command() -> None:
    """Show and change how much clients may do.

    \b
    producer_byte_rate        bytes a second that a client may produce
    consumer_byte_rate        and fetch
    request_percentage        the broker's time for its requests; 100 is all of it
    controller_mutation_rate  partitions a second that it may create and delete
    connection_creation_rate  connections a second from an address (with --ip)
    """


def _entity_options(command: F) -> F:
    """Those of `kafka-configs`, from the last to the first."""
    for option, what in (("ip", "address"), ("client", "client id"), ("user", "user")):
        command = click.option(f"--{option}-defaults", is_flag=True, help=f"Of each {what} without a quota.")(command)
        command = click.option(f"--{option}", metavar="NAME", help=f"Of this {what}.")(command)
    return command


def _entity(options: Mapping[str, Any]) -> Entity:
    parts: dict[str, str | None] = {}
    for kind in KINDS:
        option = _OPTIONS[kind]
        name, default = options[option], options[f"{option}_defaults"]
        if name is not None and default:
            raise click.UsageError(f"give --{option} or --{option}-defaults, not both")
        if name is not None or default:
            parts[kind] = name
    return parts


def _text(entity: Entity) -> str:
    named = ((_OPTIONS[kind], entity[kind]) for kind in KINDS if kind in entity)
    return ", ".join(f"{option} {'(default)' if name is None else name}" for option, name in named)


def _shown(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


@quotas_command.command("describe")
@_entity_options
@client_options
@json_option
def describe_command(bootstrap: list[Address] | None, folder: Path, as_json: bool, **options: Any) -> None:
    """Show quotas: all, or those of an entity and of what it is a part of."""
    with connect(bootstrap, folder) as client:
        warn_of_age(metadata_age_ms(client), as_json)
        found = describe_quotas(client, _entity(options), only=False)
    if as_json:
        print_json([{"entity": dict(each.entity), "quotas": dict(each.values)} for each in found])
        return
    print_table(
        ("ENTITY", "QUOTA", "VALUE"),
        [(_text(each.entity), key, _shown(value)) for each in found for key, value in sorted(each.values.items())],
    )


@quotas_command.command("alter")
@_entity_options
@click.option(
    "--add-config", "--config", "config", type=key_value, metavar="QUOTA=VALUE", multiple=True, help="Set a quota."
)
@click.option("--delete-config", "--unset", "unset", multiple=True, metavar="QUOTA", help="Remove a quota.")
@client_options
@json_option
def alter_command(
    config: tuple[tuple[str, str], ...],
    unset: tuple[str, ...],
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Set quotas of one entity, or remove them."""
    entity = _entity(options)
    if not entity:
        raise click.UsageError("whose? Give --user, --client or --ip, or their -defaults")
    changes: dict[str, float | None] = {key: _number(key, value) for key, value in config}
    changes.update(dict.fromkeys(unset))
    if not changes:
        raise click.UsageError("nothing to change: give --add-config or --delete-config")
    with connect(bootstrap, folder) as client:
        alter_quotas(client, entity, changes)
    if as_json:
        print_json({"altered": sorted(changes)})
    else:
        click.echo(f"altered {', '.join(sorted(changes))} of {_text(entity)}")


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{key} takes a number, not {value!r}") from None

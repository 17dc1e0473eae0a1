"""`tanist users`: who authenticates by SCRAM, as `kafka-configs.sh --entity-type users`."""

from __future__ import annotations

from pathlib import Path

import click

from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.alerts import warn_of_age
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.runtime.client.client import Address
from tanist.runtime.client.quorum import metadata_age_ms
from tanist.runtime.client.users import describe_users, remove_user, set_password
from tanist.security.sasl.scram import HASHES, MIN_ITERATIONS

_mechanism_option = click.option(
    "--mechanism", type=click.Choice(list(HASHES)), default="SCRAM-SHA-512", show_default=True
)


@click.group("users", cls=Group)
def users_command() -> None:
    """Show and change the users who authenticate by SCRAM."""


@users_command.command("list")
@client_options
@json_option
def list_command(bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Show the users, and by which mechanisms they authenticate."""
    with connect(bootstrap, folder) as client:
        warn_of_age(metadata_age_ms(client), as_json)
        found = describe_users(client)
    if as_json:
        print_json([{"user": each.name, "mechanism": each.mechanism, "iterations": each.iterations} for each in found])
    elif not found:
        click.echo("there are no users: `tanist users add NAME` makes one")
    else:
        print_table(
            ("USER", "MECHANISM", "ITERATIONS"), [(each.name, each.mechanism, each.iterations) for each in found]
        )


@users_command.command("add")
@click.argument("name")
@click.option(
    "--password",
    envvar="TANIST_PASSWORD",
    show_envvar=True,
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="Asked for where it is not given.",
)
@_mechanism_option
@client_options
@json_option
def add_command(
    name: str, password: str, mechanism: str, bootstrap: list[Address] | None, folder: Path, as_json: bool
) -> None:
    """Make a user, or give one another password. What it may do says `tanist acls`."""
    with connect(bootstrap, folder) as client:
        try:
            set_password(client, name, mechanism, password, MIN_ITERATIONS)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if as_json:
        print_json({"user": name, "mechanism": mechanism})
        return
    click.echo(f"{name} authenticates by {mechanism} with this password from now on")


@users_command.command("remove")
@click.argument("name")
@_mechanism_option
@client_options
@json_option
def remove_command(name: str, mechanism: str, bootstrap: list[Address] | None, folder: Path, as_json: bool) -> None:
    """Remove a user's password. Its connections stay until they end, or authenticate again."""
    with connect(bootstrap, folder) as client:
        found = remove_user(client, name, mechanism)
    if not found:
        raise click.ClickException(f"there is no user {name} with {mechanism}: `tanist users list` shows them")
    if as_json:
        print_json({"user": name, "mechanism": mechanism, "removed": True})
        return
    click.echo(f"{name} can no longer authenticate by {mechanism}")

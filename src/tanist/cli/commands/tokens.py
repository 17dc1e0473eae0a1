"""`tanist tokens`: delegation tokens, as `kafka-delegation-tokens.sh`.

Must print a token's HMAC once, when it is made: who has it is the token's owner.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from tanist.cli.options import client_options, connect, json_option
from tanist.cli.output.alerts import warn_of_age
from tanist.cli.output.tables import print_json, print_table
from tanist.cli.tree import Group
from tanist.runtime.client.client import Address, Client
from tanist.runtime.client.quorum import metadata_age_ms
from tanist.runtime.client.tokens import (
    AT_ONCE,
    Principal,
    Token,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)
from tanist.text import timestamp_text

F = TypeVar("F", bound=Callable[..., Any])
_HEADER = ("TOKEN", "OWNER", "REQUESTER", "RENEWERS", "EXPIRES", "ENDS")


def _principal(value: str) -> Principal:
    kind, colon, name = value.partition(":")
    if not kind or not colon or not name:
        raise click.BadParameter(f"{value!r} is no principal; write User:{value or 'NAME'}")
    return kind, name


def _hmac(value: str) -> bytes:
    try:
        return base64.b64decode(value.strip(), validate=True)
    except binascii.Error:
        raise click.BadParameter("it is not in base64, as `tanist tokens create` has printed it") from None


def _which(command: F) -> F:
    """The token: by its id, or by itself."""
    option = click.option(
        "--hmac",
        type=_hmac,
        metavar="HMAC",
        envvar="TANIST_TOKEN_HMAC",
        show_envvar=True,
        help="The token itself, in place of its id: for who may not describe it.",
    )
    return click.argument("token_id", metavar="[TOKEN]", required=False)(option(command))


@click.group("tokens", cls=Group)
def tokens_command() -> None:
    """Make, renew and end delegation tokens.

    Who has a token is its owner until it ends, and needs no password. `tanist up --secure` makes a cluster that has
    tokens; in others the nodes need delegation.token.secret.key.
    """


@tokens_command.command("create")
@click.option("--owner-principal", "owner", type=_principal, metavar="User:NAME", help="Whose.  [default: your own]")
@click.option(
    "--renewer-principal",
    "renewers",
    type=_principal,
    multiple=True,
    metavar="User:NAME",
    help="Who else may renew and end it. Repeatable.",
)
@click.option(
    "--max-life-time-period",
    "lifetime_ms",
    type=click.IntRange(-1),
    default=-1,
    metavar="MS",
    help="How long it may live, however often it is renewed.  [default: what the brokers allow]",
)
@client_options
@json_option
def create_command(
    owner: Principal | None,
    renewers: tuple[Principal, ...],
    lifetime_ms: int,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Make a token, and print its HMAC: this once, and nowhere else.

    A client authenticates by it with SCRAM: its user is the token's id, its password the HMAC, and its login module
    has tokenauth=true.
    """
    with connect(bootstrap, folder) as client:
        made = create_token(client, owner, renewers, lifetime_ms)
    hmac = base64.b64encode(made.hmac).decode()
    if as_json:
        print_json(_json(made) | {"hmac": hmac})
        return
    _print([made])
    click.echo(f"HMAC, which is not shown again: {hmac}")


@tokens_command.command("renew")
@_which
@click.option(
    "--renew-time-period",
    "period_ms",
    type=click.IntRange(-1),
    default=-1,
    metavar="MS",
    help="For how long from now on.  [default: delegation.token.expiry.time.ms of the brokers]",
)
@client_options
@json_option
def renew_command(
    token_id: str | None,
    hmac: bytes | None,
    period_ms: int,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Let a token live longer."""
    with connect(bootstrap, folder) as client:
        expires_ms = renew_token(client, _found(client, token_id, hmac), period_ms)
    _tell(token_id, expires_ms, as_json)


@tokens_command.command("expire")
@_which
@click.option(
    "--expiry-time-period",
    "period_ms",
    type=click.IntRange(-1),
    default=AT_ONCE,
    metavar="MS",
    help="After how long.  [default: at once]",
)
@client_options
@json_option
def expire_command(
    token_id: str | None,
    hmac: bytes | None,
    period_ms: int,
    bootstrap: list[Address] | None,
    folder: Path,
    as_json: bool,
) -> None:
    """End a token. Connections that it has made stay until they authenticate again."""
    with connect(bootstrap, folder) as client:
        expires_ms = expire_token(client, _found(client, token_id, hmac), period_ms)
    _tell(token_id, expires_ms, as_json)


@tokens_command.command("describe")
@click.option(
    "--owner-principal",
    "owners",
    type=_principal,
    multiple=True,
    metavar="User:NAME",
    help="Only of these. Repeatable.",
)
@client_options
@json_option
def describe_command(
    owners: tuple[Principal, ...], bootstrap: list[Address] | None, folder: Path, as_json: bool
) -> None:
    """Show the tokens that you may see."""
    with connect(bootstrap, folder) as client:
        warn_of_age(metadata_age_ms(client), as_json)
        found = describe_tokens(client, owners or None)
    if as_json:
        print_json([_json(each) for each in found])
    elif not found:
        click.echo("there are no such tokens: `tanist tokens create` makes one")
    else:
        _print(found)


def _found(client: Client, token_id: str | None, hmac: bytes | None) -> bytes:
    """The HMAC of the token that is meant."""
    if token_id is None:
        if hmac is None:
            raise click.UsageError("which token? Name its id, as `tanist tokens describe` shows it, or give --hmac")
        return hmac
    for each in describe_tokens(client, None):
        if each.token_id == token_id:
            return each.hmac
    raise click.ClickException(f"there is no token {token_id} that you may see: `tanist tokens describe` shows those")


def _tell(token_id: str | None, expires_ms: int | None, as_json: bool) -> None:
    if as_json:
        print_json({"token_id": token_id, "expires_ms": expires_ms})
        return
    name = "the token" if token_id is None else f"token {token_id}"
    click.echo(f"{name} {'has ended' if expires_ms is None else f'ends {timestamp_text(expires_ms)}'}")


def _print(tokens: Iterable[Token]) -> None:
    print_table(
        _HEADER,
        [
            (
                each.token_id,
                each.owner,
                each.requester,
                ",".join(each.renewers) or None,
                timestamp_text(each.expires_ms),
                timestamp_text(each.ends_ms),
            )
            for each in tokens
        ],
    )


def _json(token: Token) -> dict[str, Any]:
    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "ends_ms": token.ends_ms,
    }

"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from tanist.cli.output.warning import warn
from tanist.client.security import ClientSecurity
from tanist.log.properties import parse_properties
from tanist.runtime.client.client import Address, Client, parse_bootstrap
from tanist.runtime.client.identity import security_by
from tanist.runtime.client.quorum import watching
from tanist.runtime.cluster.addresses import addresses_of, properties_to_brokers
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.layout import DEFAULT_DATA

F = TypeVar("F", bound=Callable[..., Any])

_FIRST_ANSWER_S = 2.0
"""As long as a broker takes to start."""

_LEVEL_MAX = 2**15 - 1

data_option = click.option(
    "--data",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_DATA,
    show_default=True,
    envvar="TANIST_DATA",
    show_envvar=True,
    help="The folder of a cluster that `tanist up` made.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def _bootstrap(value: str) -> list[Address]:
    try:
        return parse_bootstrap(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_CLIENT_CONFIG = "tanist.client-config"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """As whom a client connects, and where."""

    properties: Mapping[str, str] = field(repr=False)
    """Of a Kafka client."""
    bootstrap: list[Address]
    """Empty: the properties do not say it."""

    @property
    def security(self) -> ClientSecurity:
        return security_by(self.properties)


def read_client_config(path: Path) -> ClientConfig:
    """What a file says. As the type of an option."""
    try:
        properties = parse_properties(path.read_text(encoding="utf-8"))
        servers = properties.get("bootstrap.servers", "")
        security_by(properties)
        return ClientConfig(properties, parse_bootstrap(servers) if servers else [])
    except ValueError as error:  # of the file, or of what it says
        raise click.BadParameter(f"{path}: {error}") from None


def _client_config(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> None:
    """Keep what the file says for the command's clients."""
    if path is not None:
        ctx.meta[_CLIENT_CONFIG] = read_client_config(path)


def config_given() -> ClientConfig | None:
    """What `--client-config` says."""
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(_CLIENT_CONFIG)


client_config_option = click.option(
    "--client-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    envvar="TANIST_CLIENT_CONFIG",
    show_envvar=True,
    expose_value=False,
    callback=_client_config,
    help="Properties of a Kafka client: security.protocol, ssl.*, sasl.mechanism, sasl.jaas.config, bootstrap.servers.",
)


def client_options(command: F) -> F:
    """`--bootstrap` or `--data`: which cluster to talk to; `--client-config`: as whom."""
    command = client_config_option(data_option(command))
    return click.option(
        "--bootstrap",
        type=_bootstrap,
        metavar="HOST:PORT,...",
        envvar="TANIST_BOOTSTRAP",
        show_envvar=True,
        help="Brokers of any Kafka cluster. Without it, the cluster of --data.",
    )(command)


def addresses_given(bootstrap: list[Address] | None) -> list[Address]:
    """Those of `--bootstrap`, or of the client's properties; none: it is about the cluster of `--data`."""
    given = config_given()
    return bootstrap or ([] if given is None else given.bootstrap)


def cluster_given(bootstrap: list[Address] | None, folder: Path) -> ClientConfig:
    """The cluster that the options name: by `--bootstrap`, by the brokers of the client's properties, or by the folder;
    as whom `--client-config` says, or else as the administrator of a secure cluster in the folder.
    """
    given, addresses = config_given(), addresses_given(bootstrap)
    properties: Mapping[str, str] = {} if given is None else given.properties
    if not addresses:
        cluster = load_existing(folder)
        addresses = addresses_of(cluster, folder)
        if given is None:
            properties = properties_to_brokers(cluster, folder)
    return ClientConfig(properties, addresses)


def client_given(
    bootstrap: list[Address] | None, folder: Path, *, timeout_s: float = 30.0, first_answer_s: float = math.inf
) -> Client:
    """A client of `cluster_given`."""
    found = cluster_given(bootstrap, folder)
    return Client(found.bootstrap, timeout_s=timeout_s, first_answer_s=first_answer_s, security=found.security)


def connect(bootstrap: list[Address] | None, folder: Path, *, timeout_s: float = 30.0) -> Client:
    """The client of every command. It says on standard error if it waits in vain, for want of a quorum.

    Where no broker answers, all commands give up after the same few seconds.
    """
    ctx = click.get_current_context(silent=True)
    as_json = ctx is not None and bool(ctx.params.get("as_json"))
    client = client_given(bootstrap, folder, timeout_s=timeout_s, first_answer_s=_FIRST_ANSWER_S)
    return watching(client, lambda trouble: warn(f"{trouble}; waiting. See `tanist status`", as_json))


def key_value(value: str) -> tuple[str, str]:
    """The type of an option that takes KEY=VALUE."""
    key, equals, setting = value.partition("=")
    if not equals or not key.strip():
        raise click.BadParameter(f"{value!r} is not KEY=VALUE")
    return key.strip(), setting.strip()


def config_option(help_text: str) -> Callable[[F], F]:
    return click.option("--config", "config", type=key_value, metavar="KEY=VALUE", multiple=True, help=help_text)


def _feature_level(value: str) -> tuple[str, int]:
    """The type of `--feature NAME=LEVEL`; metadata.version may also be given by name, like 4.1 or 4.1-IV1."""
    name, level = key_value(value)
    if name == "metadata.version" and not level.isdecimal():
        from tanist.controller.features import metadata_version_level

        try:
            return name, metadata_version_level(level)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    if not level.isdecimal() or int(level) > _LEVEL_MAX:
        raise click.BadParameter(f"{value!r}: a level is a number from 0 to {_LEVEL_MAX}")
    return name, int(level)


def feature_option(help_text: str, *, required: bool = False) -> Callable[[F], F]:
    return click.option(
        "--feature",
        "features",
        type=_feature_level,
        metavar="NAME=LEVEL",
        multiple=True,
        required=required,
        help=help_text,
    )

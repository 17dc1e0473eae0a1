"""`TANIST_SECURE=1` in a container: a cluster of one node with TLS, users and ACLs, as `tanist up --secure` makes them.

Owns which of the environment's listeners become what. Certificates, users and clients' settings lie in the folder that
`TANIST_SECRETS` names; it has to stay together with the log folders, which know the users' passwords.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tanist.broker.config import ConfigError
from tanist.controller.configs.definitions import split_list
from tanist.runtime.client.client import format_bootstrap
from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.runtime.cluster.secure_files import CLIENT_LISTENER, SecureFiles
from tanist.runtime.format import FormatError

SECURE: Final = "TANIST_SECURE"
SECRETS: Final = "TANIST_SECRETS"
_OF_SECURITY: Final = ("ssl.", "sasl.", "listener.name.", "authorizer.class.name", "super.users")
_FORMATTED: Final = "formatted-for"


def is_secure(environment: Mapping[str, str]) -> bool:
    return environment.get(SECURE, "") == "1"


def secured(properties: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """A node's properties, with security; makes the files that are missing. `ConfigError`.

    The controllers' listeners get TLS with certificates of clients, all others TLS and SCRAM.
    """
    controllers = [name.upper() for name in split_list(properties.get("controller.listener.names", ""))]
    listeners = _addresses(properties.get("listeners", ""))
    _refuse(properties, controllers)
    clients = [name for name in listeners if name not in controllers]
    node_id = properties.get("node.id") or properties.get("broker.id") or ""
    if not clients or not node_id.isdecimal():
        raise ConfigError(f"{SECURE}=1 needs node.id, and listeners for clients and controllers")
    between = (properties.get("inter.broker.listener.name") or clients[0]).upper()
    advertised = _addresses(properties.get("advertised.listeners", "")) or listeners
    voters = [each.partition("@")[2] for each in split_list(properties.get("controller.quorum.voters", ""))]
    dialled = [address for name, address in advertised.items() if name not in controllers]
    outside = [address for name, address in advertised.items() if name not in (*controllers, between)] or dialled
    files = _files(environment)
    try:
        files.make(
            environment.get("CLUSTER_ID") or "in a container",
            [int(node_id)],
            [host for host in map(_host, (*dialled, *voters)) if host],
            format_bootstrap((_host(address) or "localhost", int(address.rpartition(":")[2])) for address in outside),
        )
        security = files.node_properties(int(node_id), [int(node_id)], listeners=clients, controllers=controllers)
    except (ClusterError, ValueError, OSError) as error:
        raise ConfigError(f"{SECURE}=1: {error}") from None
    protocols = dict.fromkeys((*clients, *advertised), CLIENT_LISTENER) | dict.fromkeys(controllers, "SSL")
    return {
        **properties,
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": between,
        **security,
    }


def users_of(environment: Mapping[str, str], formatted_for: str | None, cluster_id: str) -> SecureFiles:
    """The users with which new folders are formatted. `FormatError` for folders that are formatted without them.

    `formatted_for`: the cluster that they are formatted for, None if they are new.
    """
    files = _files(environment)
    marker = files.folder / _FORMATTED
    if formatted_for is None:
        marker.write_text(cluster_id)
    elif not marker.exists() or marker.read_text() != formatted_for:
        raise FormatError(
            f"the log folders are formatted without the users in {files.folder}: with {SECURE}=1 the node has to "
            "format them itself (modules of Testcontainers for Go and Python do it before), and both have to be kept"
        )
    return files


def _files(environment: Mapping[str, str]) -> SecureFiles:
    folder = environment.get(SECRETS)
    if not folder:
        raise ConfigError(f"{SECURE}=1 needs {SECRETS}: the folder for certificates and users")
    return SecureFiles(Path(folder), portable=True)


def _refuse(properties: Mapping[str, str], controllers: Iterable[str]) -> None:
    if set(split_list(properties.get("process.roles", ""))) != {"broker", "controller"} or not controllers:
        raise ConfigError(f"{SECURE}=1 is for a node that is broker and controller: others need certificates of one CA")
    if len(split_list(properties.get("controller.quorum.voters", ""))) != 1:
        raise ConfigError(f"{SECURE}=1 is for a cluster of one node: others need certificates of one CA")
    own = next((name for name in sorted(properties) if name.startswith(_OF_SECURITY)), None)
    protocols = split_list(properties.get("listener.security.protocol.map", ""))
    if own is None and any(not each.endswith(":PLAINTEXT") for each in protocols):
        own = "listener.security.protocol.map"
    if own is not None:
        raise ConfigError(f"{own} is security of your own: leave it out, or {SECURE}=1")


def _addresses(listeners: str) -> dict[str, str]:
    """By name: `host:port`; the host may be missing."""
    pairs = (each.partition("://") for each in split_list(listeners))
    return {name.upper(): address for name, _, address in pairs}


def _host(address: str) -> str:
    host = address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    return "" if host in ("0.0.0.0", "::") else host

"""Addresses as they are written in a properties file: listeners, advertised listeners, voters, bootstrap servers.

Owns the parsing of these four lists and nothing else; what must hold between them is checked in `config`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tanist.controller.definitions import split_list


class ConfigError(ValueError):
    """A configuration that no node can start from. The message says what is wrong and what to write instead."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener. `host` "" means every address of the machine, `port` 0 that the system is to pick one."""

    name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        return f"{self.name}://{_bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class Voter:
    """A controller of the quorum and where the others find it."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.node_id}@{_bracketed(self.host)}:{self.port}"


SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_LISTENER = re.compile(r"([A-Za-z0-9_.-]+)://(.*)")
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^\[\]:]*)):([0-9]{1,5})")
_VOTER = re.compile(r"([0-9]{1,10})@(.*)")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _address(text: str, what: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match[3]) > 65535:
        raise ConfigError(f"{what}: '{text}' is not an address; write host:port, or [host]:port for IPv6")
    return match[1] or match[2], int(match[3])


def parse_protocol_map(text: str) -> dict[str, str]:
    """`listener.security.protocol.map`: NAME:PROTOCOL,... ."""
    protocols: dict[str, str] = {}
    for pair in split_list(text):
        name, separator, protocol = (part.strip() for part in pair.partition(":"))
        if not separator or not name or protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: '{pair}' is not NAME:PROTOCOL; "
                f"the protocols are {', '.join(SECURITY_PROTOCOLS)}"
            )
        if name.upper() in protocols:
            raise ConfigError(f"listener.security.protocol.map: {name} stands there twice; keep one")
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_listeners(text: str, protocols: Mapping[str, str], setting: str) -> tuple[Endpoint, ...]:
    """`listeners` and `advertised.listeners`: NAME://host:port,... with each name once."""
    endpoints: list[Endpoint] = []
    for item in split_list(text):
        match = _LISTENER.fullmatch(item)
        if match is None:
            raise ConfigError(f"{setting}: '{item}' is not a listener; write NAME://host:port")
        name = match[1].upper()
        host, port = _address(match[2], setting)
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(
                f"{setting}: listener {name} has no security protocol; add {name}:PLAINTEXT to "
                "listener.security.protocol.map"
            )
        if any(endpoint.name == name for endpoint in endpoints):
            raise ConfigError(f"{setting}: listener {name} stands there twice; give each listener its own name")
        endpoints.append(Endpoint(name, host, port, protocol))
    return tuple(endpoints)


def parse_voters(text: str) -> tuple[Voter, ...]:
    """`controller.quorum.voters`: id@host:port,... ."""
    voters: list[Voter] = []
    for item in split_list(text):
        match = _VOTER.fullmatch(item)
        if match is None:
            raise ConfigError(f"controller.quorum.voters: '{item}' is not a voter; write id@host:port")
        node_id = int(match[1])
        host, port = _address(match[2], "controller.quorum.voters")
        if not host or not port:
            raise ConfigError(f"controller.quorum.voters: '{item}' needs a host and a port that others can connect to")
        if any(voter.node_id == node_id for voter in voters):
            raise ConfigError(f"controller.quorum.voters: node {node_id} stands there twice; ids are unique")
        voters.append(Voter(node_id, host, port))
    return tuple(voters)


def parse_servers(text: str) -> tuple[tuple[str, int], ...]:
    """`controller.quorum.bootstrap.servers`: host:port,... ."""
    servers = []
    for item in split_list(text):
        host, port = _address(item, "controller.quorum.bootstrap.servers")
        if not host or not port:
            raise ConfigError(f"controller.quorum.bootstrap.servers: '{item}' needs a host and a port")
        servers.append((host, port))
    return tuple(servers)

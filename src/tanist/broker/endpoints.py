"""Addresses as they are written in a properties file: listeners, advertised listeners, voters, bootstrap servers.

Owns the parsing of these lists, and what must hold between them and the node's roles. Knows no other setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tanist.controller.configs.definitions import split_list
from tanist.controller.configs.settings import static_text
from tanist.text import host_port


class ConfigError(ValueError):
    """A configuration that no node can start from. The message says what is wrong and what to write instead."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener. `host` "" means every address of the machine, `port` 0 that the system is to pick one."""

    name: str
    host: str
    port: int
    security_protocol: str

    @property
    def has_sasl(self) -> bool:
        """Whether its clients authenticate by SASL."""
        return self.security_protocol.startswith("SASL_")

    @property
    def has_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    def __str__(self) -> str:
        return f"{self.name}://{host_port(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class Voter:
    """A controller of the quorum and where the others find it."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.node_id}@{host_port(self.host, self.port)}"


SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_LISTENER = re.compile(r"([A-Za-z0-9_.-]+)://(.*)")
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^\[\]:]*)):([0-9]{1,5})")
_VOTER = re.compile(r"([0-9]{1,10})@(.*)")


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


def parse_address(text: str, setting: str) -> tuple[str, int] | None:
    """host:port of a setting that may be empty; the empty host is every interface."""
    return _address(text.strip(), setting) if text.strip() else None


# -- what a node makes of them


def network(
    static: Mapping[str, str], roles: frozenset[str], hostname: str
) -> tuple[tuple[Endpoint, ...], tuple[Endpoint, ...], tuple[str, ...], str]:
    """Listeners, advertised listeners, controller listener names, and the listener between brokers."""
    controller_names = tuple(name.upper() for name in split_list(static.get("controller.listener.names", "")))
    if not controller_names:
        raise ConfigError(
            "controller.listener.names is missing; name the controllers' listener, for example CONTROLLER"
        )
    # Kafka lets the controllers' listener do without an entry in the map if the map was left alone.
    protocols = parse_protocol_map(static_text(static, "listener.security.protocol.map") or "")
    if "listener.security.protocol.map" not in static:
        for name in controller_names:
            protocols.setdefault(name, "PLAINTEXT")
    for name in controller_names:
        if name not in protocols:
            raise ConfigError(
                f"controller.listener.names: listener {name} has no security protocol; add {name}:PLAINTEXT to "
                "listener.security.protocol.map"
            )
    listeners = parse_listeners(static_text(static, "listeners") or "", protocols, "listeners")
    if not listeners:
        raise ConfigError("listeners names no address; write for example listeners=PLAINTEXT://:9092")
    taken: dict[int, str] = {}
    for endpoint in listeners:
        if endpoint.port and taken.setdefault(endpoint.port, endpoint.name) != endpoint.name:
            raise ConfigError(
                f"listeners: {taken[endpoint.port]} and {endpoint.name} both use port {endpoint.port}; "
                "each listener needs its own port"
            )
    ours = [endpoint.name for endpoint in listeners if endpoint.name in controller_names]
    if "controller" in roles and not ours:
        raise ConfigError(
            f"controller.listener.names is {','.join(controller_names)} but listeners has none of them; "
            "add one, for example CONTROLLER://:9093"
        )
    if "controller" not in roles and ours:
        raise ConfigError(f"listeners has the controllers' {ours[0]} but process.roles has no controller; remove it")
    if roles == {"controller"} and len(ours) != len(listeners):
        raise ConfigError(
            "listeners may only have listeners of controller.listener.names when process.roles=controller"
        )
    if "broker" not in roles:
        return listeners, (), controller_names, ""
    advertised = _advertised(static, protocols, listeners, controller_names, hostname)
    return listeners, advertised, controller_names, _inter_broker(static, advertised)


def controller_listener(static: Mapping[str, str], controller_names: tuple[str, ...]) -> Endpoint:
    """The listener by which this node reaches controllers: its name and protocol; they know their addresses."""
    protocols = parse_protocol_map(static_text(static, "listener.security.protocol.map") or "")
    return Endpoint(controller_names[0], "", 0, protocols.get(controller_names[0], "PLAINTEXT"))


def inter_broker_listener(static: Mapping[str, str], listeners: tuple[Endpoint, ...], name: str) -> Endpoint | None:
    """The listener by which this node reaches brokers. One that is only a controller need not know it."""
    for endpoint in listeners:
        if endpoint.name == name:
            return endpoint
    protocols = parse_protocol_map(static_text(static, "listener.security.protocol.map") or "")
    named = (static.get("inter.broker.listener.name") or static.get("security.inter.broker.protocol") or "").strip()
    return Endpoint(named.upper(), "", 0, protocols[named.upper()]) if named.upper() in protocols else None


def controller_endpoints(
    static: Mapping[str, str], listeners: tuple[Endpoint, ...], controller_names: tuple[str, ...], hostname: str
) -> tuple[Endpoint, ...]:
    """Where the other nodes reach this node's controller: as `advertised.listeners` says, else as `listeners` does."""
    given = {}
    for item in split_list(static.get("advertised.listeners", "")):
        match = _LISTENER.fullmatch(item)
        if match is not None:
            given[match[1].upper()] = _address(match[2], "advertised.listeners")
    found = []
    for name in controller_names:
        for endpoint in listeners:
            if endpoint.name == name:
                host, port = given.get(name, (endpoint.host, endpoint.port))
                reachable = hostname if host in ("", "0.0.0.0", "::") else host
                found.append(Endpoint(name, reachable, port, endpoint.security_protocol))
    return tuple(found)


def _advertised(
    static: Mapping[str, str],
    protocols: Mapping[str, str],
    listeners: tuple[Endpoint, ...],
    controller_names: tuple[str, ...],
    hostname: str,
) -> tuple[Endpoint, ...]:
    given = static.get("advertised.listeners")
    source = listeners if given is None else parse_listeners(given, protocols, "advertised.listeners")
    advertised = []
    for endpoint in source:
        if endpoint.name in controller_names:
            continue
        if endpoint.host in ("0.0.0.0", "::"):
            raise ConfigError(
                f"advertised.listeners: nobody can connect to {endpoint.host}; set advertised.listeners to "
                f"{endpoint.name}://the-name-of-this-host:{endpoint.port}"
            )
        if all(endpoint.name != bound.name for bound in listeners):
            raise ConfigError(
                f"advertised.listeners: {endpoint.name} is not among listeners; add it there or remove it here"
            )
        advertised.append(Endpoint(endpoint.name, endpoint.host or hostname, endpoint.port, endpoint.security_protocol))
    if not advertised:
        raise ConfigError("a broker needs a listener that is not the controllers'; add for example PLAINTEXT://:9092")
    return tuple(advertised)


def _inter_broker(static: Mapping[str, str], advertised: tuple[Endpoint, ...]) -> str:
    name = static.get("inter.broker.listener.name", "").strip().upper()
    if name and "security.inter.broker.protocol" in static:
        raise ConfigError(
            "inter.broker.listener.name and security.inter.broker.protocol exclude each other; keep the first"
        )
    names = [endpoint.name for endpoint in advertised]
    if not name:
        name = (static_text(static, "security.inter.broker.protocol") or "").strip().upper()
        if name not in names and len(names) == 1 and "security.inter.broker.protocol" not in static:
            # Kafka would insist on a listener called PLAINTEXT; with one broker listener there is nothing to choose.
            return names[0]
    if name not in names:
        raise ConfigError(f"inter.broker.listener.name: {name} is not advertised; use one of {', '.join(names)}")
    return name


def quorum(
    static: Mapping[str, str], roles: frozenset[str], node_id: int
) -> tuple[tuple[Voter, ...], tuple[tuple[str, int], ...]]:
    voters = parse_voters(static.get("controller.quorum.voters", ""))
    servers = parse_servers(static.get("controller.quorum.bootstrap.servers", ""))
    if not voters and not servers:
        raise ConfigError("controller.quorum.voters is missing; list the controllers as id@host:port,id@host:port")
    if voters:
        listed = any(voter.node_id == node_id for voter in voters)
        if "controller" in roles and not listed:
            raise ConfigError(
                f"controller.quorum.voters lacks node {node_id}, which is a controller; add {node_id}@host:port"
            )
        if "controller" not in roles and listed:
            raise ConfigError(
                f"controller.quorum.voters has node {node_id}, which is only a broker; "
                "remove it, or add controller to process.roles"
            )
    return voters, servers

"""TLS in a properties file: which listeners have it, and by which profile a node dials others.

Owns the choice of the `ssl.*` properties of one listener: `listener.name.NAME.` (NAME in any case) comes before those
of all listeners, whatever level either stands on, as with Apache Kafka. The values are the runtime's to judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.broker.endpoints import ConfigError, Endpoint
from tanist.controller.configs.catalogue import TLS_SETTINGS
from tanist.controller.configs.settings import Levels, own_of_listener
from tanist.security.ssl_principal import PrincipalMapping

_RULES: Final = "ssl.principal.mapping.rules"
_CLIENT_AUTH: Final = "ssl.client.auth"


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """Of one node. A profile has the name of the listener that it is for."""

    profiles: tuple[str, ...]
    """Of the node's listeners, and those by which it dials others."""
    mappings: Mapping[str, PrincipalMapping] = field(repr=False)
    """Of listeners whose clients are known by their certificates alone; also of those that this node dials."""
    to_brokers: str | None
    """The profile by which this node dials brokers; None: without TLS."""
    to_controllers: str | None
    has_sasl: frozenset[str]
    """Those of the listeners, and of those that are dialled, where SASL says who comes."""


def tls_config(
    static: Mapping[str, str],
    listeners: Iterable[Endpoint],
    *,
    controller_listener: Endpoint,
    inter_broker_listener: Endpoint | None,
) -> TlsConfig:
    """What a properties file says. ConfigError."""
    own = [endpoint for endpoint in listeners if endpoint.has_tls]
    to_controllers = controller_listener.name if controller_listener.has_tls else None
    if inter_broker_listener is None:
        # A node that is only a controller, whose file need not say how brokers talk: it shows them the same one.
        to_brokers = to_controllers
    else:
        to_brokers = inter_broker_listener.name if inter_broker_listener.has_tls else None
    dialled = [name for name in (to_brokers, to_controllers) if name is not None]
    known = (*own, controller_listener, *(() if inter_broker_listener is None else (inter_broker_listener,)))
    mappings = {}
    for endpoint in known:
        if endpoint.has_tls and not endpoint.has_sasl:
            rules = own_of_listener(static, endpoint.name).get(_RULES, static.get(_RULES)) or "DEFAULT"
            try:
                mappings[endpoint.name] = PrincipalMapping(rules)
            except ValueError as error:
                raise ConfigError(f"{_RULES}: {error}") from None
    return TlsConfig(
        tuple(dict.fromkeys([*(endpoint.name for endpoint in own), *dialled])),
        mappings,
        to_brokers,
        to_controllers,
        frozenset(endpoint.name for endpoint in known if endpoint.has_sasl),
    )


def is_of_tls(name: str) -> bool:
    """Whether a property's name, without the prefix of a listener, is of TLS."""
    return name in TLS_SETTINGS or name.startswith("ssl.")


def profile_properties(levels: Levels, profile: str, *, has_sasl: bool) -> dict[str, str]:
    """The `ssl.*` properties of a listener, of all levels."""
    bare: dict[str, str] = {}
    own: dict[str, str] = {}
    for _, configs in reversed(levels.in_order()):
        bare |= {name: value for name, value in configs.items() if is_of_tls(name)}
        own |= {name: value for name, value in own_of_listener(configs, profile).items() if is_of_tls(name)}
    if has_sasl:
        bare.pop(
            _CLIENT_AUTH, None
        )  # as with Apache Kafka: there SASL says who comes, unless the listener's own says so
    return {**bare, **own}


def names_of(configs: Iterable[str], profile: str) -> bool:
    """Whether one of these names is a property of this listener's TLS."""
    return any(map(is_of_tls, own_of_listener(dict.fromkeys(configs, ""), profile)))

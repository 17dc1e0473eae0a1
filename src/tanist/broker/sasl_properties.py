"""SASL in a properties file: which mechanisms a listener has, and by which a node says to others who it is.

Owns the names of these properties in all their forms: `listener.name.NAME.`, with NAME in any case, before
`MECHANISM.` in lower case, before the base. A listener that nobody could authenticate on is refused here, before
anything starts, with the line to add. Must never put a password into a message or a `repr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.broker.endpoints import ConfigError, Endpoint
from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.configs.definitions import split_list
from tanist.security.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE, JaasEntry, JaasError, parse_jaas
from tanist.security.sasl.outcome import MECHANISMS, OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512

BUILT: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512)
_MODULES: Final = {
    PLAIN: PLAIN_MODULE,
    SCRAM_SHA_256: SCRAM_MODULE,
    SCRAM_SHA_512: SCRAM_MODULE,
    OAUTHBEARER: OAUTH_MODULE,
}
_EXAMPLES: Final = {
    PLAIN: 'username="NAME" password="SECRET" user_NAME="SECRET"',
    SCRAM_SHA_256: 'username="NAME" password="SECRET"',
    SCRAM_SHA_512: 'username="NAME" password="SECRET"',
    OAUTHBEARER: 'unsecuredLoginStringClaim_sub="NAME"',
}
BETWEEN_BROKERS: Final = "sasl.mechanism.inter.broker.protocol"
TO_CONTROLLERS: Final = "sasl.mechanism.controller.protocol"


@dataclass(frozen=True, slots=True)
class SaslListener:
    """A listener on which clients authenticate."""

    name: str
    entries: Mapping[str, JaasEntry] = field(repr=False)
    """By enabled mechanism, in the order of the configuration."""
    max_reauth_ms: Mapping[str, int]
    """By mechanism: how long an authentication is good (KIP-368); 0: for ever."""
    max_receive_bytes: int
    """Of a frame before its client has authenticated."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return tuple(self.entries)


@dataclass(frozen=True, slots=True)
class Login:
    """By what this node says to others who it is."""

    mechanism: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SaslConfig:
    """Of one node."""

    listeners: Mapping[str, SaslListener]
    """Those that have SASL, by name."""
    between_brokers: Login | None
    to_controllers: Login | None


class ListenerProperties:
    """The properties of a file as one listener sees them: its own before those of all."""

    def __init__(self, static: Mapping[str, str], listener: str) -> None:
        self._static = static
        self._prefix = f"listener.name.{listener.lower()}."
        own = ((name.lower(), value) for name, value in static.items() if name.lower().startswith(self._prefix))
        self._own = {name.removeprefix(self._prefix): value for name, value in own}

    def get(self, name: str) -> str | None:
        """A value of this listener, of all, or the default."""
        found = self._own.get(name)
        if found is None:
            found = self._static.get(name, BROKER_SETTINGS[name].default)
        return found

    def of_mechanism(self, mechanism: str, name: str) -> str | None:
        """A value of this listener and mechanism; else as `get`."""
        found = self._own.get(f"{mechanism.lower()}.{name}")
        return self.get(name) if found is None else found

    def jaas(self, mechanism: str) -> JaasEntry:
        """The login module of a mechanism. ConfigError."""
        name = f"{self._prefix}{mechanism.lower()}.sasl.jaas.config"
        text = self._own.get(f"{mechanism.lower()}.sasl.jaas.config")
        module = _MODULES[mechanism]
        if text is None:
            unprefixed = any(each in self._static for each in ("sasl.jaas.config", "KafkaServer.sasl.jaas.config"))
            why = "; sasl.jaas.config without listener and mechanism is not read" if unprefixed else ""
            raise ConfigError(f"{name} is missing{why}; add {name}={module} required {_EXAMPLES[mechanism]};")
        try:
            entry = parse_jaas(text)
        except JaasError as error:
            raise ConfigError(f"{name}: {error}") from None
        if entry.module != module:
            raise ConfigError(f"{name}: the login module of {mechanism} is {module}, and {entry.module} cannot be had")
        return entry


def sasl_config(
    static: Mapping[str, str],
    listeners: Iterable[Endpoint],
    *,
    controller_listener: Endpoint,
    inter_broker_listener: Endpoint | None,
    is_broker: bool,
    controllers: int,
) -> SaslConfig:
    """What a properties file says. `controllers`: how many there are. ConfigError.

    A node that is only a controller asks brokers for their logs in an unclean recovery, which Apache Kafka's does not:
    it is not refused for what its file does not say of their listener.
    """
    found = {endpoint.name: _listener(static, endpoint.name) for endpoint in listeners if endpoint.has_sasl}
    return SaslConfig(
        found,
        _login(static, inter_broker_listener, BETWEEN_BROKERS, found)
        if is_broker or _has_jaas(static, inter_broker_listener)
        else None,
        _login(static, controller_listener, TO_CONTROLLERS, found, controllers),
    )


def _listener(static: Mapping[str, str], name: str) -> SaslListener:
    properties = ListenerProperties(static, name)
    enabled = split_list(properties.get("sasl.enabled.mechanisms") or "")
    setting = f"listener.name.{name.lower()}.sasl.enabled.mechanisms"
    if not enabled:
        raise ConfigError(f"listener {name} has SASL but no mechanism; add {setting}=SCRAM-SHA-512")
    for mechanism in enabled:
        if mechanism not in BUILT:
            default = " (the default)" if enabled == ("GSSAPI",) else ""
            raise ConfigError(
                f"listener {name} has the mechanism {mechanism}{default}, which tanist does not have; add "
                f"{setting}=SCRAM-SHA-512, or one of {', '.join(BUILT)}"
            )
    _refuse_handlers(properties, name, enabled)
    return SaslListener(
        name,
        {mechanism: properties.jaas(mechanism) for mechanism in enabled},
        {mechanism: _number(properties, mechanism, "connections.max.reauth.ms") for mechanism in enabled},
        max(_number(properties, mechanism, "sasl.server.max.receive.size") for mechanism in enabled),
    )


def _number(properties: ListenerProperties, mechanism: str, name: str) -> int:
    text = properties.of_mechanism(mechanism, name) or "0"
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{name}: '{text}' of {mechanism} is not a number") from None


def _refuse_handlers(properties: ListenerProperties, name: str, enabled: Iterable[str]) -> None:
    for mechanism in enabled:
        for setting in ("sasl.server.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class"):
            if properties.of_mechanism(mechanism, setting):
                raise ConfigError(
                    f"{setting} of listener {name}: tanist runs no Java classes and would not ask it; remove the line"
                )


def _has_jaas(static: Mapping[str, str], listener: Endpoint | None) -> bool:
    if listener is None:
        return False
    prefix = f"listener.name.{listener.name.lower()}."
    return any(name.lower().startswith(prefix) and name.endswith(".sasl.jaas.config") for name in static)


def _login(
    static: Mapping[str, str],
    listener: Endpoint | None,
    setting: str,
    found: Mapping[str, SaslListener],
    controllers: int = 0,
) -> Login | None:
    """As what this node connects to a listener; None: without SASL."""
    if listener is None or not listener.has_sasl:
        return None
    properties = ListenerProperties(static, listener.name)
    mechanism = properties.get(setting) or ""
    if mechanism not in BUILT:
        raise ConfigError(
            f"listener {listener.name} has SASL, and {setting} is {mechanism}, which tanist does not have; add "
            f"{setting}=PLAIN, or one of {', '.join(each for each in MECHANISMS if each in BUILT)}"
        )
    if controllers > 1 and mechanism.startswith("SCRAM"):
        raise ConfigError(
            f"{setting} is {mechanism}, and the {controllers} controllers would need each other to read the log that "
            f"has the credentials; write {setting}=PLAIN, or give the listener {listener.name} SSL with client "
            "certificates"
        )
    own = found.get(listener.name)
    if own is not None and mechanism not in own.mechanisms:
        raise ConfigError(
            f"{setting} is {mechanism}, which listener {listener.name} does not have; add it to "
            f"listener.name.{listener.name.lower()}.sasl.enabled.mechanisms"
        )
    entry = properties.jaas(mechanism)
    for option in ("username", "password"):
        if not entry.options.get(option):
            raise ConfigError(
                f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config has no {option}, by which "
                f'this node says to others who it is; add {option}="..."'
            )
    return Login(mechanism, entry.options)

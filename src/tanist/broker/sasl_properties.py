"""SASL in a properties file: which mechanisms a listener has, and by which a node says to others who it is.

Owns the names of these properties in all their forms: `listener.name.NAME.`, with NAME in any case, before
`MECHANISM.` in lower case, before the base. A listener that nobody could authenticate on is refused here, before
anything starts, with the line to add. Must never put a password into a message or a `repr`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.broker.endpoints import ConfigError, Endpoint
from tanist.controller.configs.catalogue import BROKER_SETTINGS
from tanist.controller.configs.definitions import split_list
from tanist.controller.configs.settings import own_of_listener
from tanist.security.jaas import LOGIN_MODULES, JaasEntry, JaasError, parse_jaas
from tanist.security.principal import USER, Principal
from tanist.security.sasl.oauthbearer import TokenRules, path_of
from tanist.security.sasl.outcome import MECHANISMS, OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512

_BETWEEN_NODES: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512)
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer"
SECURED: Final = f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
UNSECURED: Final = f"{_OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_SECURED: Final = (SECURED, f"{_OAUTH}.secured.OAuthBearerValidatorCallbackHandler")
_HANDLER: Final = "sasl.server.callback.handler.class"
_SCOPE: Final = re.compile(r"[!\x23-\x5B\x5D-\x7E]+")
_JWKS: Final = "sasl.oauthbearer.jwks.endpoint.url"
_VALIDATORS: Final = (f"{_OAUTH}.DefaultJwtValidator", f"{_OAUTH}.BrokerJwtValidator")
_EXAMPLES: Final = {
    PLAIN: 'username="NAME" password="SECRET" user_NAME="SECRET"',
    SCRAM_SHA_256: 'username="NAME" password="SECRET"',
    SCRAM_SHA_512: 'username="NAME" password="SECRET"',
    OAUTHBEARER: 'unsecuredLoginStringClaim_sub="NAME"',
}
BETWEEN_BROKERS: Final = "sasl.mechanism.inter.broker.protocol"
TO_CONTROLLERS: Final = "sasl.mechanism.controller.protocol"


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the keys come from by which tokens are judged."""

    url: str
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


@dataclass(frozen=True, slots=True)
class Bearer:
    """How tokens of OAUTHBEARER are judged."""

    rules: TokenRules
    keys: KeySource | None
    """None: tokens have no signature, and everybody is believed."""


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
    bearer: Bearer | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return tuple(self.entries)


@dataclass(frozen=True, slots=True)
class Login:
    """By what this node says to others who it is."""

    mechanism: str
    options: Mapping[str, str] = field(repr=False)
    listener: str
    """Theirs."""

    @property
    def principal(self) -> Principal:
        """As whom they know this node."""
        return Principal(USER, self.options["username"])


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
        self._own = own_of_listener(static, listener)

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
        module = LOGIN_MODULES[mechanism]
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
    it is not refused for what its file does not say of their listener, and shows them then what it shows controllers.
    """
    found = {endpoint.name: _listener(static, endpoint.name) for endpoint in listeners if endpoint.has_sasl}
    to_controllers = _login(static, controller_listener, TO_CONTROLLERS, found, controllers)
    if is_broker or _has_jaas(static, inter_broker_listener):
        to_brokers = _login(static, inter_broker_listener, BETWEEN_BROKERS, found)
    else:
        to_brokers = to_controllers
    return SaslConfig(found, to_brokers, to_controllers)


def _listener(static: Mapping[str, str], name: str) -> SaslListener:
    properties = ListenerProperties(static, name)
    enabled = split_list(properties.get("sasl.enabled.mechanisms") or "")
    setting = f"listener.name.{name.lower()}.sasl.enabled.mechanisms"
    if not enabled:
        raise ConfigError(f"listener {name} has SASL but no mechanism; add {setting}=SCRAM-SHA-512")
    for mechanism in enabled:
        if mechanism not in MECHANISMS:
            default = " (the default)" if enabled == ("GSSAPI",) else ""
            raise ConfigError(
                f"listener {name} has the mechanism {mechanism}{default}, which tanist does not have; add "
                f"{setting}=SCRAM-SHA-512, or one of {', '.join(MECHANISMS)}"
            )
    _refuse_handlers(properties, name, enabled)
    return SaslListener(
        name,
        {mechanism: properties.jaas(mechanism) for mechanism in enabled},
        {mechanism: _number(properties, mechanism, "connections.max.reauth.ms") for mechanism in enabled},
        max(_number(properties, mechanism, "sasl.server.max.receive.size") for mechanism in enabled),
        _bearer(properties, name) if OAUTHBEARER in enabled else None,
    )


def _bearer(properties: ListenerProperties, name: str) -> Bearer:
    """Tokens without a signature are taken only where somebody has written that they are."""

    def of(setting: str) -> str:
        return (properties.of_mechanism(OAUTHBEARER, setting) or "").strip()

    prefix = f"listener.name.{name.lower()}.oauthbearer"
    handler, url = of(_HANDLER), of(_JWKS)
    if handler == UNSECURED:
        return Bearer(_unsecured_rules(properties.jaas(OAUTHBEARER).options, f"{prefix}.sasl.jaas.config"), None)
    if handler not in _SECURED:
        raise ConfigError(
            f"{prefix}.{_HANDLER} is {handler or 'missing'}: without it Apache Kafka takes tokens that nobody has "
            f"signed; add {prefix}.{_HANDLER}={SECURED}, or, for tests, {UNSECURED}"
        )
    if path_of(url) is None and not re.fullmatch(r"https?://.+", url):
        raise ConfigError(
            f"{_JWKS} is {url or 'missing'}; add {_JWKS}=https://HOST/PATH, or file:///PATH, where the keys are"
        )
    validator = of("sasl.oauthbearer.jwt.validator.class")
    if validator not in _VALIDATORS:
        raise ConfigError(f"sasl.oauthbearer.jwt.validator.class: tanist runs no Java classes; use {_VALIDATORS[0]}")
    rules = TokenRules(
        subject_claim=of("sasl.oauthbearer.sub.claim.name"),
        scope_claim=of("sasl.oauthbearer.scope.claim.name"),
        audiences=frozenset(split_list(of("sasl.oauthbearer.expected.audience"))),
        issuer=of("sasl.oauthbearer.expected.issuer") or None,
        clock_skew_ms=_number(properties, OAUTHBEARER, "sasl.oauthbearer.clock.skew.seconds") * 1000,
    )
    keys = KeySource(
        url,
        _number(properties, OAUTHBEARER, "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        _number(properties, OAUTHBEARER, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        _number(properties, OAUTHBEARER, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
    )
    return Bearer(rules, keys)


def _unsecured_rules(options: Mapping[str, str], setting: str) -> TokenRules:
    """Of the login module's options, as Java's class for tokens without a signature takes them. ConfigError."""

    def of(option: str) -> str:
        return options.get(f"unsecuredValidator{option}", "").strip()

    skew, scope = of("AllowableClockSkewMs") or "0", of("RequiredScope").split()
    if not (skew.isascii() and skew.isdecimal()):
        raise ConfigError(f"{setting}: unsecuredValidatorAllowableClockSkewMs is no number of milliseconds")
    if not all(map(_SCOPE.fullmatch, scope)):
        raise ConfigError(f"{setting}: unsecuredValidatorRequiredScope is no list of scopes with spaces between them")
    return TokenRules(
        subject_claim=of("PrincipalClaimName") or "sub",
        scope_claim=of("ScopeClaimName") or "scope",
        clock_skew_ms=int(skew),
        needs_issue_time=False,
        issued_by_now=True,
        required_scope=tuple(scope),
    )


def _number(properties: ListenerProperties, mechanism: str, name: str) -> int:
    text = properties.of_mechanism(mechanism, name) or "0"
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{name}: '{text}' of {mechanism} is not a number") from None


def _refuse_handlers(properties: ListenerProperties, name: str, enabled: Iterable[str]) -> None:
    for mechanism in enabled:
        for setting in (_HANDLER, "sasl.login.callback.handler.class", "sasl.login.class"):
            if mechanism == OAUTHBEARER and setting == _HANDLER:
                continue  # `_bearer` knows two
            if properties.of_mechanism(mechanism, setting):
                raise ConfigError(
                    f"{setting} of listener {name}: tanist runs no Java classes and would not ask it; remove the line"
                )


def _has_jaas(static: Mapping[str, str], listener: Endpoint | None) -> bool:
    if listener is None:
        return False
    return any(name.endswith(".sasl.jaas.config") for name in own_of_listener(static, listener.name))


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
    if mechanism not in _BETWEEN_NODES:
        raise ConfigError(
            f"listener {listener.name} has SASL, and {setting} is {mechanism}, by which tanist's nodes do not log in; "
            f"add {setting}=PLAIN, or one of {', '.join(_BETWEEN_NODES)}"
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
    return Login(mechanism, entry.options, listener.name)

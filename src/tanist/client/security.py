"""How a client says who it is: the security properties of Kafka's clients, and those of librdkafka.

Owns their names. A property that would promise a safety that is not there is refused instead of ignored. Must never
show a password in an error or a `repr`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.security.jaas import LOGIN_MODULES, JaasError, parse_jaas
from tanist.security.sasl.client import Credentials
from tanist.security.sasl.oauthbearer import path_of
from tanist.security.sasl.outcome import OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, SaslError

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_BUILT: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)
_TOKEN: Final = "sasl.oauthbearer.token.endpoint.url"
_PROTOCOL: Final = "security.protocol"
_VERIFIES: Final = "enable.ssl.certificate.verification"
_SASL: Final = ("sasl.mechanism", "sasl.mechanisms", "sasl.jaas.config", "sasl.username", "sasl.password", _TOKEN)


class ClientConfigError(ValueError):
    """Properties that no client can connect by. The message says what to write instead."""


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """As whom a client connects."""

    credentials: Credentials | None = field(default=None, repr=False)
    """None: it does not say who it is."""
    tls: Mapping[str, str] | None = field(default=None, repr=False)
    """Its `ssl.*` properties; None: it dials without TLS."""


def is_of_security(name: str) -> bool:
    """Whether `client_security` looks at a property of this name."""
    return name in (_PROTOCOL, _VERIFIES, *_SASL) or name.startswith("ssl.")


def client_security(
    properties: Mapping[str, str],
    random: Callable[[int], bytes],
    read_file: Callable[[str], bytes] | None = None,
) -> ClientSecurity:
    """What a client's properties say. `read_file` gives the token of OAUTHBEARER, each time anew. ClientConfigError."""
    lost = next((name for name in sorted(properties) if name != _PROTOCOL and is_of_security(name)), None)
    if lost is not None and _PROTOCOL not in properties:
        raise ClientConfigError(
            f"{_PROTOCOL} is missing, so that {lost} would have no effect; add {_PROTOCOL}="
            f"{'SASL_SSL' if any(name in properties for name in _SASL) else 'SSL'}"
        )
    protocol = properties.get(_PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise ClientConfigError(f"{_PROTOCOL} is {protocol}; tanist's clients have {' and '.join(_PROTOCOLS)}")
    tls = _tls(properties) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL_"):
        return ClientSecurity(tls=tls)
    mechanism = (properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "").strip()
    if mechanism not in _BUILT:
        default = "" if mechanism else " (the default)"
        raise ClientConfigError(
            f"sasl.mechanism is {mechanism or 'GSSAPI'}{default}, which tanist's clients do not have; "
            f"write one of {', '.join(_BUILT)}"
        )
    bearer = _bearer(properties, read_file) if mechanism == OAUTHBEARER else None
    options = {} if bearer is not None else _options(properties, mechanism)
    try:
        return ClientSecurity(Credentials(mechanism, options, random, bearer), tls)
    except SaslError as error:
        raise ClientConfigError(str(error)) from None


def _tls(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Kafka's properties; librdkafka's for the authority's certificates is one of them by another name."""
    tls = {name: value for name, value in properties.items() if name.startswith("ssl.")}
    if properties.get(_VERIFIES, "true").strip().lower() == "false":
        raise ClientConfigError(
            f"{_VERIFIES}=false would let anybody answer in the broker's place; name the authority "
            "by ssl.ca.location (or ssl.truststore.location)"
        )
    trusted = tls.pop("ssl.ca.location", None)
    if trusted is not None:
        tls |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": trusted}
    if tls.keys() & {"ssl.certificate.location", "ssl.key.location"}:
        raise ClientConfigError(
            "ssl.certificate.location and ssl.key.location are librdkafka's; put key and certificates into one PEM "
            "file, and write ssl.keystore.type=PEM and ssl.keystore.location=FILE"
        )
    return tls


def _bearer(properties: Mapping[str, str], read_file: Callable[[str], bytes] | None) -> Callable[[], str]:
    """What gives the token, which somebody else renews in a file."""
    url = properties.get(_TOKEN, "").strip()
    path = path_of(url)
    if path is None or read_file is None:
        raise ClientConfigError(
            f"{_TOKEN} is {url or 'missing'}: tanist's clients take a token from a file; add {_TOKEN}=file:///PATH"
        )

    def token() -> str:
        try:
            return str(read_file(path), "ascii").strip()
        except OSError as error:
            raise SaslError(f"no token in {path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise SaslError(f"no token in {path}: it is no text") from None

    return token


def _options(properties: Mapping[str, str], mechanism: str) -> Mapping[str, str]:
    text = properties.get("sasl.jaas.config")
    if text is None:
        user, password = properties.get("sasl.username", ""), properties.get("sasl.password", "")
        if not user or not password:
            raise ClientConfigError(
                f"sasl.jaas.config is missing; add sasl.jaas.config={LOGIN_MODULES[mechanism]} required "
                'username="NAME" password="SECRET"; or sasl.username and sasl.password'
            )
        return {"username": user, "password": password}
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise ClientConfigError(f"sasl.jaas.config: {error}") from None
    if entry.module != LOGIN_MODULES[mechanism]:
        raise ClientConfigError(f"sasl.jaas.config: the login module of {mechanism} is {LOGIN_MODULES[mechanism]}")
    return entry.options

"""How a client says who it is: the security properties of Kafka's clients, and those of librdkafka.

Owns their names. A property that would promise a safety that is not there is refused instead of ignored. Must never
show a password in an error or a `repr`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.security.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE, JaasError, parse_jaas
from tanist.security.sasl.client import Credentials
from tanist.security.sasl.outcome import OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, SaslError

_PROTOCOLS: Final = ("PLAINTEXT", "SASL_PLAINTEXT")
_MODULES: Final = {
    PLAIN: PLAIN_MODULE,
    SCRAM_SHA_256: SCRAM_MODULE,
    SCRAM_SHA_512: SCRAM_MODULE,
    OAUTHBEARER: OAUTH_MODULE,
}
_BUILT: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512)


class ClientConfigError(ValueError):
    """Properties that no client can connect by. The message says what to write instead."""


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """As whom a client connects."""

    credentials: Credentials | None = field(default=None, repr=False)
    """None: it does not say who it is."""


def client_security(properties: Mapping[str, str], random: Callable[[int], bytes]) -> ClientSecurity:
    """What a client's properties say. ClientConfigError."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise ClientConfigError(f"security.protocol is {protocol}; tanist's clients have {' and '.join(_PROTOCOLS)}")
    if protocol == "PLAINTEXT":
        return ClientSecurity()
    mechanism = (properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or "").strip()
    if mechanism not in _BUILT:
        default = "" if mechanism else " (the default)"
        raise ClientConfigError(
            f"sasl.mechanism is {mechanism or 'GSSAPI'}{default}, which tanist's clients do not have; "
            f"write one of {', '.join(_BUILT)}"
        )
    try:
        return ClientSecurity(Credentials(mechanism, _options(properties, mechanism), random))
    except SaslError as error:
        raise ClientConfigError(str(error)) from None


def _options(properties: Mapping[str, str], mechanism: str) -> Mapping[str, str]:
    text = properties.get("sasl.jaas.config")
    if text is None:
        user, password = properties.get("sasl.username", ""), properties.get("sasl.password", "")
        if not user or not password:
            raise ClientConfigError(
                f'sasl.jaas.config is missing; add sasl.jaas.config={_MODULES[mechanism]} required username="NAME" '
                'password="SECRET"; or sasl.username and sasl.password'
            )
        return {"username": user, "password": password}
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise ClientConfigError(f"sasl.jaas.config: {error}") from None
    if entry.module != _MODULES[mechanism]:
        raise ClientConfigError(f"sasl.jaas.config: the login module of {mechanism} is {_MODULES[mechanism]}")
    return entry.options

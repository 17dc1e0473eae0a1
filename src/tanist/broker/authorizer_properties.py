"""The authorizer in a properties file: `authorizer.class.name`, `super.users`, `allow.everyone.if.no.acl.found`.

Owns their syntax, which is Apache Kafka's, and that a node starts only if its peers will let it do its work. The last
two properties are the authorizer's own, and no settings of a broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tanist.broker.endpoints import ConfigError, Endpoint
from tanist.broker.sasl_properties import Login
from tanist.security.principal import ANONYMOUS, Principal, parse_principal

CLASS_NAME: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True)
class AuthorizerConfig:
    """Of a node that has an authorizer."""

    super_users: frozenset[str]
    allow_everyone: bool


def authorizer_config(static: Mapping[str, str]) -> AuthorizerConfig | None:
    """None: there is no authorizer. ConfigError for what makes no sense."""
    name = static.get(CLASS_NAME, "").strip()
    if not name:
        return None
    if name != STANDARD_AUTHORIZER:
        raise ConfigError(f"{CLASS_NAME}: '{name}' is not known; use {STANDARD_AUTHORIZER} or remove the line")
    users = [each.strip() for each in static.get(SUPER_USERS, "").split(";")]
    try:
        super_users = frozenset(str(parse_principal(each)) for each in users if each)
    except ValueError as error:
        raise ConfigError(f"{SUPER_USERS}: {error}; several are separated by semicolons") from None
    everyone = static.get(ALLOW_EVERYONE, "false").strip().lower()
    if everyone not in ("true", "false"):
        raise ConfigError(f"{ALLOW_EVERYONE} must be true or false, not '{everyone}'")
    return AuthorizerConfig(super_users, everyone == "true")


def refuse_a_stranger(
    authorizer: AuthorizerConfig | None, own: Principal, listener: str, protocol: str, *, alone: bool, remedy: str = ""
) -> None:
    """Nodes are clients of each other: one that its peers deny neither registers nor replicates. ConfigError.

    `own`: as whom they know it by the listener. `alone`: it is the only controller. `remedy`: what else to write.
    """
    if authorizer is None or str(own) in authorizer.super_users or (authorizer.allow_everyone and alone):
        return
    users = ";".join(sorted({*authorizer.super_users, str(own)}))
    raise ConfigError(
        f"{SUPER_USERS} lacks {own}, which this node is to the others by listener {listener} ({protocol}): they would "
        f"deny all that it asks; write {SUPER_USERS}={users}{remedy}"
    )


def own_principal(listener: Endpoint, login: Login | None) -> Principal | None:
    """As whom the others know this node, with this login; None where the file does not say it."""
    if login is not None:
        return login.principal
    return ANONYMOUS if listener.security_protocol == "PLAINTEXT" else None

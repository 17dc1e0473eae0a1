"""The properties of the authorizer: `authorizer.class.name`, `super.users`, `allow.everyone.if.no.acl.found`.

Owns their syntax, which is Apache Kafka's. The last two are the authorizer's own, and no settings of a broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tanist.security.principal import parse_principal

CLASS_NAME: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """Of a node that has an authorizer."""

    super_users: frozenset[str]
    allow_everyone: bool


def authorizer_settings(properties: Mapping[str, str]) -> AuthorizerSettings | None:
    """None: there is no authorizer. ValueError, with what to write instead, for what makes no sense."""
    name = properties.get(CLASS_NAME, "").strip()
    if not name:
        return None
    if name != STANDARD_AUTHORIZER:
        raise ValueError(f"{CLASS_NAME}: '{name}' is not known; use {STANDARD_AUTHORIZER} or remove the line")
    users = [each.strip() for each in properties.get(SUPER_USERS, "").split(";")]
    try:
        super_users = frozenset(str(parse_principal(each)) for each in users if each)
    except ValueError as error:
        raise ValueError(f"{SUPER_USERS}: {error}; several are separated by semicolons") from None
    everyone = properties.get(ALLOW_EVERYONE, "false").strip().lower()
    if everyone not in ("true", "false"):
        raise ValueError(f"{ALLOW_EVERYONE} must be true or false, not '{everyone}'")
    return AuthorizerSettings(super_users, everyone == "true")

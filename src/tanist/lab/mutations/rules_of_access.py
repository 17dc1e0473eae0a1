"""Rules of access, broken: who is believed, and what access control entries allow.

Owns patches of `tanist.security`, of the broker's gate, envelopes and plans, and of the reading of snapshots; and
`ACCESS_MUTANTS`. All of them show in secured runs (`sim.secured`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tanist.broker.api import envelope
from tanist.broker.api.fetch import Fetch
from tanist.broker.authentication import gates
from tanist.broker.authentication.delegation_tokens import TokenCredentials
from tanist.broker.authentication.gate import ExpiringConnection, GuardedConnection, SaslGate, guard
from tanist.broker.authentication.listener import Mechanisms
from tanist.broker.metadata import replay
from tanist.broker.network.client_connection import ClientConnection
from tanist.controller.image.image import MetadataImage
from tanist.controller.image.snapshot import from_records
from tanist.lab.mutations.patching import Breaks, Patch, always, fixed
from tanist.lab.mutations.simulator import Mutation, drawn
from tanist.lab.mutations.situations import secured
from tanist.security import acls
from tanist.security.acls import AclImage
from tanist.security.authorizer import Authorizer
from tanist.security.sasl.scram import ScramHash
from tanist.security.session import Access
from tanist.wire.acls import AclOperation, AclPermission
from tanist.wire.apis import ApiKey

_OF_GATES = (ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE)

# -- who is believed


def gates_are_open() -> tuple[Patch, ...]:
    """The gate takes what is its own, and everything else goes past it."""
    stops = GuardedConnection.on_frame

    def lets_pass(connection: ClientConnection, gate: SaslGate, max_frame_bytes: int) -> None:
        guard(connection, gate, max_frame_bytes)
        connection.serve(gate._apis)

    def on_frame(connection: Any, frame: memoryview) -> None:
        own = int.from_bytes(frame[:2], "big", signed=True) in _OF_GATES
        (stops if own else ClientConnection.on_frame)(connection, frame)

    return (Patch(gates, "guard", lets_pass), Patch(GuardedConnection, "on_frame", on_frame))


inner_requests_are_the_brokers = fixed(envelope, "client_session", lambda request, broker: broker)
sessions_outlive_tokens = fixed(ExpiringConnection, "on_frame", ClientConnection.on_frame)


def revoked_tokens_go_on() -> tuple[Patch, ...]:
    """A broker believes a token that it has known once."""
    find = TokenCredentials.find

    def finds(credentials: Any, hash_: ScramHash, token_id: str) -> Any:
        known = vars(credentials).setdefault("known_once", {})
        found = find(credentials, hash_, token_id)
        if found is not None:
            known[token_id] = found
        return known.get(token_id)

    return (Patch(TokenCredentials, "find", finds),)


def first_passwords_stay() -> tuple[Patch, ...]:
    """A broker goes on with the password that it has known first. (The metadata is right.)"""
    credential = Mechanisms._credential

    def finds(mechanisms: Any, hash_: ScramHash, user: str) -> Any:
        known = vars(mechanisms).setdefault("known_once", {})
        found = credential(mechanisms, hash_, user)
        return found if found is None else known.setdefault(user, found)

    return (Patch(Mechanisms, "_credential", finds),)


def users_are_not_in_snapshots() -> tuple[Patch, ...]:
    """Who reads a snapshot leaves them out."""

    def reads(*arguments: Any, **more: Any) -> MetadataImage:
        image = from_records(*arguments, **more)
        image.scram.clear()
        return image

    return (Patch(replay, "from_records", reads),)


# -- what entries allow


def decisions_stay() -> tuple[Patch, ...]:
    """What was decided once holds for ever."""
    return (Patch(Authorizer, "_forget", always(None)),)


def plans_are_not_asked_about() -> tuple[Patch, ...]:
    """A consumer that asks the same again is answered as planned."""
    planned = Fetch._respond_as_planned

    def respond(fetch: Any, *arguments: Any) -> bool:
        access, fetch._access = fetch._access, None
        try:
            return planned(fetch, *arguments)
        finally:
            fetch._access = access

    return (Patch(Fetch, "_respond_as_planned", respond),)


lists_are_everybodys = fixed(Authorizer, "visible", Access.visible)


def allowed_before_denied() -> tuple[Patch, ...]:
    """An entry that allows it is enough."""
    decide = AclImage.decide

    def decides(image: Any, principal: str, host: str, operation: int, kind: int, name: str) -> bool:
        resources = image._types.get(kind)
        for pattern in () if resources is None else resources.matching(name):
            for acl in pattern.about(principal, host):
                if acl.permission == AclPermission.ALLOW and acl.operation in (operation, AclOperation.ALL):
                    return True
        return decide(image, principal, host, operation, kind, name)

    return (Patch(AclImage, "decide", decides),)


def _prefixes(lengths: Any) -> Breaks:
    """Other names for which a prefix stands: `lengths(prefix)` of its letters, of a name that may be so short."""

    def matching(resources: Any, name: str) -> Iterator[Any]:
        for literal, pattern in resources.literal.items():
            if literal == name or (literal == "*" and not name.startswith("*")):
                yield pattern
        for prefix, pattern in resources.prefixed.items():
            if lengths(prefix, name):
                yield pattern

    return fixed(acls._Resources, "matching", matching)


prefixes_are_longer = _prefixes(lambda prefix, name: name.startswith(prefix) and len(name) > len(prefix))
prefixes_are_shorter = _prefixes(lambda prefix, name: name.startswith(prefix[:-1]))
nothing_is_implied = fixed(acls, "_IMPLYING", {})
reading_is_implied = fixed(
    acls, "_IMPLYING", {**acls._IMPLYING, AclOperation.READ: frozenset((AclOperation.READ, AclOperation.DESCRIBE))}
)


ACCESS_MUTANTS: Mapping[str, Mutation] = {
    "access-gate": drawn("a request before the authentication is handed on", gates_are_open, secured),
    "access-inner": drawn(
        "a request in an envelope is that of the broker that has sent it", inner_requests_are_the_brokers, secured
    ),
    "access-token": drawn("a token is believed that was revoked, or has expired", revoked_tokens_go_on, secured),
    "access-session": drawn("a session outlives the token that began it", sessions_outlive_tokens, secured),
    "access-password": drawn("a broker believes the password that it has known first", first_passwords_stay, secured),
    "access-snapshot": drawn("users of SCRAM in a snapshot are not read", users_are_not_in_snapshots, secured),
    "access-decisions": drawn("a decision outlives a change of the entries", decisions_stay, secured),
    "access-plan": drawn(
        "a planned fetch is answered whatever the entries say by now", plans_are_not_asked_about, secured
    ),
    "access-lists": drawn("an encoded list of all topics is everybody's", lists_are_everybodys, secured),
    "access-deny": drawn("an entry that allows wins over one that denies", allowed_before_denied, secured),
    "access-prefix": drawn("a prefix does not stand for the name that equals it", prefixes_are_longer, secured),
    "access-prefix-wide": drawn("a prefix stands for names without its last letter", prefixes_are_shorter, secured),
    "access-implied": drawn("READ does not allow DESCRIBE", nothing_is_implied, secured),
    "access-implied-wide": drawn("DESCRIBE allows READ", reading_is_implied, secured),
}

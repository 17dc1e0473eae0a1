"""An operator of access: entries, users of SCRAM and delegation tokens come and go.

Owns the requests of a list of such operations, which go to any broker and may overlap; what they change is judged from
the committed metadata. In the end it puts things in order: entries, a password and a token that stay.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from tanist.client.acls import AclEntry, AclFilter, create_request, delete_request
from tanist.sim.access_oracle import AccessOracle
from tanist.sim.events import AccessRequested
from tanist.sim.secured import BY_PASSWORD, BY_SCRAM, BY_TOKEN, GROUP, SUBJECTS, TOPICS, Keys
from tanist.sim.workload.cluster_client import BACKOFF_MS
from tanist.sim.workload.history import History
from tanist.sim.workload.operations import Operation, Operator
from tanist.sim.world.clock import stream
from tanist.sim.world.world import World
from tanist.wire.acls import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from tanist.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest

_O, _R = AclOperation, ResourceType
_ACLS_VERSION: Final = 3
_TIMEOUT_MS: Final = 5_000
_SHA_256: Final = 1
_ROUNDS: Final = 4_096
_ENTRIES_MAX: Final = 12
_OF_TOPICS: Final = (_O.READ, _O.READ, _O.WRITE, _O.WRITE, _O.DESCRIBE, _O.DESCRIBE, _O.ALL, _O.DELETE)
_LITERAL: Final = (*TOPICS, *TOPICS, "*")
_PREFIXES: Final = ("led", "ledger", "ledger-", "ledger-eu", "l")
_LIFETIMES_MS: Final = (400, 1_500, 6_000, -1)
_NEVER: Final = -1
_LOOKS_MS: Final = 500
_AT_ONCE: Final = -1
ORDER: Final = (
    (BY_SCRAM, _O.WRITE, _R.TOPIC, "ledger", PatternType.PREFIXED, AclPermission.ALLOW),
    (BY_SCRAM, _O.READ, _R.TOPIC, "*", PatternType.LITERAL, AclPermission.ALLOW),
    (BY_SCRAM, _O.READ, _R.TOPIC, "letters", PatternType.LITERAL, AclPermission.DENY),
    (BY_PASSWORD, _O.READ, _R.TOPIC, "ledger-", PatternType.PREFIXED, AclPermission.ALLOW),
    (BY_PASSWORD, _O.DESCRIBE, _R.CLUSTER, CLUSTER_NAME, PatternType.LITERAL, AclPermission.ALLOW),
    (BY_TOKEN, _O.DESCRIBE, _R.TOPIC, "ledger", PatternType.LITERAL, AclPermission.ALLOW),
    (BY_TOKEN, _O.ALL, _R.TOPIC, "letters", PatternType.LITERAL, AclPermission.ALLOW),
)
"""The entries that stay: subject, operation, type and name of the resource, pattern, permission."""

Answered = Callable[[Any | None], None]


class AccessAdmin(Operator):
    """Sends the operations of a list."""

    def __init__(self, world: World, history: History, oracle: AccessOracle, keys: Keys) -> None:
        super().__init__(world, "keeper", history)
        self._oracle = oracle
        self._keys = keys
        self._acknowledged = False
        """All that stays."""

    @property
    def in_order(self) -> bool:
        """Whether what stays is acknowledged, and stands: an older request may have been carried out since."""
        access = self._oracle.newest
        user = access.users.get((BY_SCRAM, _SHA_256))
        return (
            self._acknowledged
            and user is not None
            and bytes(user.salt) == _salt_of(self._keys.passwords[-1])
            and self._keys.tokens[-1][0] in access.tokens
        )

    # -- entries

    def _allow(self, operation: Operation) -> None:
        if len(self._oracle.newest.entries) < _ENTRIES_MAX:
            self._make(self._drawn(operation, AclPermission.ALLOW))
        else:
            self._revoke(operation)

    def _deny(self, operation: Operation) -> None:
        self._make(self._drawn(operation, AclPermission.DENY))

    def _drawn(self, operation: Operation, permission: AclPermission) -> AclEntry:
        rng = stream(self.world.seed, f"access/{operation.at_us}")
        who = rng.choice((*SUBJECTS, *SUBJECTS, "*"))
        host = rng.choice(("*", "*", "*", "*", rng.choice(SUBJECTS)))
        what, pattern = rng.random(), PatternType.LITERAL
        if what < 0.70:
            kind, given, name = _R.TOPIC, rng.choice(_OF_TOPICS), rng.choice(_LITERAL)
            if rng.random() < 0.5:
                pattern, name = PatternType.PREFIXED, rng.choice(_PREFIXES)
        elif what < 0.85:
            kind, given, name = _R.GROUP, rng.choice((_O.READ, _O.DESCRIBE, _O.ALL)), GROUP
        else:
            kind, given, name = _R.CLUSTER, rng.choice((_O.ALTER, _O.DESCRIBE)), CLUSTER_NAME
        return _entry(who, given, kind, name, pattern, permission, host)

    def _make(self, *entries: AclEntry, answered: Answered | None = None) -> None:
        for each in entries:
            verb = "allows" if each.permission == AclPermission.ALLOW else "denies"
            plus = "..." if each.pattern == PatternType.PREFIXED else ""
            what = f"{each.operation.name} of {each.name}{plus}"
            self.world.emit(AccessRequested(f"{verb} {each.principal} {what}, from {each.host}"))
        self._send(create_request(entries), _ACLS_VERSION, answered)

    def _revoke(self, operation: Operation) -> None:
        entries = list(self._oracle.newest.entries.values())
        if not entries:
            return
        entry = entries[int(operation.first * len(entries))]
        self.world.emit(AccessRequested(f"revokes what {entry.principal} has on {entry.resource_name}"))
        if operation.second < 0.3:
            wanted = AclFilter(principal=entry.principal)
        else:
            wanted = AclFilter(
                ResourceType(entry.resource_type),
                entry.resource_name,
                PatternType(entry.pattern_type),
                entry.principal,
                operation=AclOperation(entry.operation),
            )
        self._remove(wanted)

    def _remove(self, wanted: AclFilter, answered: Answered | None = None) -> None:
        self._send(delete_request((wanted,)), _ACLS_VERSION, answered)

    # -- users and tokens

    def _password(self, operation: Operation) -> None:
        self._set_password(f"secret-{operation.at_us}")

    def _set_password(self, password: str, answered: Answered | None = None) -> None:
        self.world.emit(AccessRequested(f"gives {BY_SCRAM} another password"))
        self._keys.passwords.append(password)
        salt = _salt_of(password)
        upsertion = ScramCredentialUpsertion(
            name=BY_SCRAM,
            mechanism=_SHA_256,
            iterations=_ROUNDS,
            salt=salt,
            salted_password=_salted(password, salt),
        )
        self._send(AlterUserScramCredentialsRequest(upsertions=(upsertion,)), 0, answered)

    def _forget_user(self, operation: Operation) -> None:
        self.world.emit(AccessRequested(f"removes the user {BY_SCRAM}"))
        deletion = ScramCredentialDeletion(name=BY_SCRAM, mechanism=_SHA_256)
        self._send(AlterUserScramCredentialsRequest(deletions=(deletion,)), 0)

    def _give_token(self, operation: Operation) -> None:
        self._make_token(_LIFETIMES_MS[int(operation.first * len(_LIFETIMES_MS))])

    def _make_token(self, lifetime_ms: int, answered: Answered | None = None) -> None:
        self.world.emit(AccessRequested(f"has a token made for {BY_TOKEN}, for {lifetime_ms} ms"))

        def keep(response: Any | None) -> None:
            if response is not None and response.error_code == ErrorCode.NONE:
                self._keys.tokens.append((response.token_id, b64encode(bytes(response.hmac)).decode()))
            if answered is not None:
                answered(response)

        request = CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name=BY_TOKEN, max_lifetime_ms=lifetime_ms
        )
        self._send(request, 3, keep)

    def _end_token(self, operation: Operation) -> None:
        tokens = list(self._oracle.newest.tokens)
        if not tokens:
            return
        self.world.emit(AccessRequested(f"ends a token of {BY_TOKEN}"))
        period_ms = _AT_ONCE if operation.second < 0.6 else int(operation.second * 1_000)
        hmac = dict(self._keys.tokens).get(tokens[int(operation.first * len(tokens))])
        if hmac is not None:
            self._send(ExpireDelegationTokenRequest(hmac=b64decode(hmac), expiry_time_period_ms=period_ms), 2)

    # -- what stays

    def put_in_order(self) -> None:
        """Remove all entries, and make those that stay, a password and a token; until each is acknowledged, and once
        more if it does not stand later."""
        self.stopped = self._acknowledged = False
        password = f"secret-{len(self._keys.passwords)}-in-order"
        entries = [_entry(*each) for each in ORDER]
        steps: list[Callable[[Answered], None]] = [
            lambda answered: self._remove(AclFilter(), answered),
            lambda answered: self._make(*entries, answered=answered),
            lambda answered: self._set_password(password, answered),
            lambda answered: self._make_token(_NEVER, answered),
        ]

        def go_on() -> None:
            if not steps:
                self._acknowledged = True
                self.later(_LOOKS_MS, self._keep_in_order)
                return

            def handle_response(response: Any | None) -> None:
                if _is_done(response):
                    del steps[0]
                    go_on()
                else:
                    self.later(BACKOFF_MS, go_on)

            steps[0](handle_response)

        self.run(go_on)

    def _keep_in_order(self) -> None:
        if self.stopped:
            return
        if self.in_order:
            self.later(_LOOKS_MS, self._keep_in_order)
        else:
            self.put_in_order()

    # -- bits

    def _send(self, request: Any, version: int, answered: Answered | None = None) -> None:
        self._under_way += 1

        def handle_response(response: Any | None) -> None:
            self._under_way -= 1
            name = type(request).__name__.removesuffix("Request")
            self.world.counts[f"access: {name} {'acknowledged' if _is_done(response) else 'not carried out'}"] += 1
            if answered is not None:
                answered(response)

        self.any_broker().call(request, version, _TIMEOUT_MS, handle_response)


def _entry(
    who: str,
    operation: AclOperation,
    kind: ResourceType,
    name: str,
    pattern: PatternType,
    permission: AclPermission,
    host: str = "*",
) -> AclEntry:
    return AclEntry(kind, name, pattern, f"User:{who}", host, operation, permission)


def _is_done(response: Any | None) -> bool:
    if response is None:
        return False
    results = getattr(response, "results", None) or getattr(response, "filter_results", None) or (response,)
    return all(each.error_code == ErrorCode.NONE for each in results)


def _salt_of(password: str) -> bytes:
    return f"salt of {password}".encode()


@cache
def _salted(password: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ROUNDS)

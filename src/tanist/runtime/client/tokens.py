"""The delegation tokens of any Kafka cluster (KIP-48): made, renewed, ended and described.

Must never put a token's HMAC into a `repr` or an error: who has it is the token's owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tanist.runtime.client.changes import ask_once, carry_out
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.quorum import ask_controller
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from tanist.wire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from tanist.wire.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from tanist.wire.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from tanist.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from tanist.wire.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from tanist.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tanist.wire.messages.renew_delegation_token_response import RenewDelegationTokenResponse

AT_ONCE = -1
"""The period after which a token ends that is to be removed now; of the others, the brokers' default."""

Principal: TypeAlias = tuple[str, str]
"""Its type and name: `("User", "alice")`."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and for whom it speaks. Principals are in the form `User:alice`."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    """When it ends, unless it is renewed."""
    ends_ms: int
    """When it ends in any case."""


def create_token(client: Client, owner: Principal | None, renewers: Sequence[Principal], lifetime_ms: int) -> Token:
    """Make a token; without an owner it is the client's own. `KafkaError`.

    One whose answer is lost is made again: nobody has the first, and it ends by itself.
    """
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else owner[0],
        owner_principal_name=None if owner is None else owner[1],
        renewers=tuple(CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers),
        max_lifetime_ms=lifetime_ms,
    )

    def attempt() -> Token:
        made = ask_controller(client, request, CreateDelegationTokenResponse)
        _raise_error(made.error_code)
        return Token(
            made.token_id,
            bytes(made.hmac),
            *_owner_and_requester(made),
            tuple(f"{kind}:{name}" for kind, name in renewers),
            made.issue_timestamp_ms,
            made.expiry_timestamp_ms,
            made.max_timestamp_ms,
        )

    return client.persist(attempt)


def renew_token(client: Client, hmac: bytes, period_ms: int) -> int:
    """Let a token live for so long from now on; gives when it ends then. `KafkaError`."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)

    def attempt() -> int:
        answer = ask_controller(client, request, RenewDelegationTokenResponse)
        _raise_error(answer.error_code)
        return answer.expiry_timestamp_ms

    return client.persist(attempt)


def expire_token(client: Client, hmac: bytes, period_ms: int) -> int | None:
    """Let a token end after so long; gives when, None for one that is removed (`AT_ONCE`). `KafkaError`."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    removes = period_ms < 0

    def attempt(patience_s: float) -> tuple[int | None]:
        answer = ask_once(client, request, ExpireDelegationTokenResponse, patience_s)
        _raise_error(answer.error_code)
        return (None if removes else answer.expiry_timestamp_ms,)

    def find_result() -> tuple[int | None] | None:
        return (None,) if removes and not any(each.hmac == hmac for each in describe_tokens(client, None)) else None

    already = (ErrorCode.DELEGATION_TOKEN_NOT_FOUND,)
    return carry_out(client, "expire a delegation token", attempt, find_result, already=already)[0]


def describe_tokens(client: Client, owners: Iterable[Principal] | None) -> list[Token]:
    """The tokens of these owners, or of all, that the client may see: the oldest first. `KafkaError`."""
    request = DescribeDelegationTokenRequest(
        owners=None
        if owners is None
        else tuple(DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in owners)
    )

    def attempt() -> list[Token]:
        answer = client.ask(request, DescribeDelegationTokenResponse)
        _raise_error(answer.error_code)
        found = [
            Token(
                each.token_id,
                bytes(each.hmac),
                *_owner_and_requester(each),
                tuple(f"{one.principal_type}:{one.principal_name}" for one in each.renewers),
                each.issue_timestamp,
                each.expiry_timestamp,
                each.max_timestamp,
            )
            for each in answer.tokens
        ]
        return sorted(found, key=lambda each: (each.issued_ms, each.token_id))

    return client.persist(attempt)


def _owner_and_requester(answered: CreateDelegationTokenResponse | DescribedDelegationToken) -> tuple[str, str]:
    """A broker before 3.3 names no requester: it is the owner."""
    owner = f"{answered.principal_type}:{answered.principal_name}"
    requester = f"{answered.token_requester_principal_type}:{answered.token_requester_principal_name}"
    return owner, owner if requester == ":" else requester


def _raise_error(code: int) -> None:
    if code:
        raise KafkaError(code)

"""Requests about delegation tokens as the controller decides them: with who asks, and the time of day."""

from __future__ import annotations

from dataclasses import dataclass

from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from tanist.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from tanist.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request about a token, who asks, and what time it is: tokens end by the time of day."""

    request: CreateDelegationTokenRequest | RenewDelegationTokenRequest | ExpireDelegationTokenRequest
    requester: tuple[str, str]
    """Kind and name of a principal."""
    wall_ms: int


@dataclass(frozen=True, slots=True)
class TokenSweep:
    """Tokens that have expired are to go."""

    wall_ms: int

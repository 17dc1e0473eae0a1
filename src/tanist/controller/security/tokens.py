"""Delegation tokens (KIP-48, KIP-900): Create-, Renew- and ExpireDelegationToken as records, and the end of old ones.

Owns what may be done with a token and by whom, and its HMAC: of the token's id, by a secret that all nodes have. The
HMAC is the token: it goes to the client that has made it, and never into a record, an event or a message of an error.
Owners, requesters and renewers are principals in the form `User:alice`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from tanist.controller.configs.settings import static_text
from tanist.controller.decision import Decision
from tanist.controller.image.image import MetadataImage
from tanist.controller.token_request import TokenRequest
from tanist.ports import Random
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import id_text
from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from tanist.wire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from tanist.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from tanist.wire.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from tanist.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tanist.wire.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from tanist.wire.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord

TOKENS_FROM: Final = 14
"""The metadata.version (3.6-IV2) from which the log may have such records."""
SECRET: Final = "delegation.token.secret.key"
_SWEPT_MAX: Final = 1_000
_USER: Final = "User"


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """Of a cluster; all nodes have the same."""

    secret: str | None = field(repr=False)
    """None: there are no tokens."""
    max_lifetime_ms: int
    expiry_time_ms: int
    check_interval_ms: int

    @classmethod
    def of(cls, static: Mapping[str, str]) -> TokenSettings:
        return cls(
            static_text(static, SECRET) or None,
            int(static_text(static, "delegation.token.max.lifetime.ms") or 0),
            int(static_text(static, "delegation.token.expiry.time.ms") or 0),
            int(static_text(static, "delegation.token.expiry.check.interval.ms") or 0),
        )

    def hmac_of(self, token_id: str) -> bytes:
        """The token itself, of its id."""
        return hmac.digest((self.secret or "").encode(), token_id.encode(), "sha512")


def text_of(principal: tuple[str, str]) -> str:
    return f"{principal[0]}:{principal[1]}"


def owner_of(request: CreateDelegationTokenRequest, requester: tuple[str, str]) -> tuple[str, str]:
    """Whose token it is to be."""
    if not request.owner_principal_name:
        return requester
    return request.owner_principal_type or "", request.owner_principal_name


def belongs_to(token: DelegationTokenRecord, principal: str) -> bool:
    """Whether a principal may renew, expire and see a token."""
    return principal in (token.owner, token.requester or token.owner) or principal in token.renewers


def has_expired(token: DelegationTokenRecord, wall_ms: int) -> bool:
    return min(token.expiration_timestamp, token.max_timestamp) < wall_ms


def not_created(
    code: ErrorCode, owner: tuple[str, str], requester: tuple[str, str], *, timestamp: int = 0
) -> CreateDelegationTokenResponse:
    """The answer to a request that has made none."""
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[1],
        issue_timestamp_ms=timestamp,
        expiry_timestamp_ms=timestamp,
        max_timestamp_ms=timestamp,
    )


def decide_token(image: MetadataImage, asked: TokenRequest, settings: TokenSettings, random: Random) -> Decision:
    """Make, renew or expire a token."""
    request = asked.request
    if isinstance(request, CreateDelegationTokenRequest):
        return _create(image, request, asked, settings, random)
    code = _disabled(image, settings)
    token = None if code is not None else _find(image, bytes(request.hmac), settings)
    if code is None and token is None:
        code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    if token is None:
        return _refused(request, code)
    return _renew(token, request, asked, settings) if isinstance(request, RenewDelegationTokenRequest) else _expire(
        token, request, asked
    )  # fmt: skip


def sweep_tokens(image: MetadataImage, wall_ms: int) -> Decision:
    """Remove tokens that have expired, so many at a time."""
    old = [token.token_id for token in image.tokens.values() if has_expired(token, wall_ms)]
    return Decision(tuple(RemoveDelegationTokenRecord(token_id=each) for each in old[:_SWEPT_MAX]), atomic=False)


def _disabled(image: MetadataImage, settings: TokenSettings) -> ErrorCode | None:
    if settings.secret is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    return ErrorCode.UNSUPPORTED_VERSION if image.metadata_version < TOKENS_FROM else None


def _create(
    image: MetadataImage,
    request: CreateDelegationTokenRequest,
    asked: TokenRequest,
    settings: TokenSettings,
    random: Random,
) -> Decision:
    owner = owner_of(request, asked.requester)
    code = _disabled(image, settings)
    if code is None and any(kind != _USER for kind in (owner[0], *(each.principal_type for each in request.renewers))):
        code = ErrorCode.INVALID_PRINCIPAL_TYPE
    if code is not None:
        return Decision(response=not_created(code, owner, asked.requester))
    now_ms = asked.wall_ms
    lifetime_ms = settings.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    token = DelegationTokenRecord(
        owner=text_of(owner),
        requester=text_of(asked.requester),
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issue_timestamp=now_ms,
        max_timestamp=now_ms + lifetime_ms,
        expiration_timestamp=now_ms + min(lifetime_ms, settings.expiry_time_ms),
        token_id=id_text(UUID(bytes=random.bytes(16), version=4)),
    )
    response = not_created(ErrorCode.NONE, owner, asked.requester)
    response.issue_timestamp_ms = token.issue_timestamp
    response.expiry_timestamp_ms = token.expiration_timestamp
    response.max_timestamp_ms = token.max_timestamp
    response.token_id = token.token_id
    response.hmac = settings.hmac_of(token.token_id)
    return Decision((token,), response)


def _find(image: MetadataImage, given: bytes, settings: TokenSettings) -> DelegationTokenRecord | None:
    for token in image.tokens.values():
        if hmac.compare_digest(settings.hmac_of(token.token_id), given):
            return token
    return None


def _renew(
    token: DelegationTokenRecord, request: RenewDelegationTokenRequest, asked: TokenRequest, settings: TokenSettings
) -> Decision:
    if has_expired(token, asked.wall_ms):
        return _refused(request, ErrorCode.DELEGATION_TOKEN_EXPIRED)
    if not belongs_to(token, text_of(asked.requester)):
        return _refused(request, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    period_ms = settings.expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    changed = _until(token, asked.wall_ms + period_ms)
    return Decision((changed,), RenewDelegationTokenResponse(expiry_timestamp_ms=changed.expiration_timestamp))


def _expire(token: DelegationTokenRecord, request: ExpireDelegationTokenRequest, asked: TokenRequest) -> Decision:
    if not belongs_to(token, text_of(asked.requester)):
        return _refused(request, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    if request.expiry_time_period_ms < 0:
        removed = RemoveDelegationTokenRecord(token_id=token.token_id)
        return Decision((removed,), ExpireDelegationTokenResponse(expiry_timestamp_ms=asked.wall_ms))
    if has_expired(token, asked.wall_ms):
        return _refused(request, ErrorCode.DELEGATION_TOKEN_EXPIRED)
    changed = _until(token, asked.wall_ms + request.expiry_time_period_ms)
    return Decision((changed,), ExpireDelegationTokenResponse(expiry_timestamp_ms=changed.expiration_timestamp))


def _until(token: DelegationTokenRecord, wall_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=min(token.max_timestamp, wall_ms),
        token_id=token.token_id,
    )


def _refused(request: Any, code: ErrorCode | None) -> Decision:
    kind = (
        RenewDelegationTokenResponse
        if isinstance(request, RenewDelegationTokenRequest)
        else ExpireDelegationTokenResponse
    )
    return Decision(response=kind(error_code=code or ErrorCode.NONE, expiry_timestamp_ms=-1))

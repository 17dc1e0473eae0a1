"""DescribeDelegationToken (key 41), versions 1-3: the tokens that a client may see, themselves included (KIP-48).

Those are its own, those that it has made and those that it may renew; others by DESCRIBE on the token or
DESCRIBE_TOKENS on their owner.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.controller.security.tokens import TokenSettings, belongs_to
from tanist.security import requirements
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from tanist.wire.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from tanist.wire.metadata import DelegationTokenRecord


@dataclass(frozen=True, slots=True)
class DescribeDelegationToken:
    """The handler of DescribeDelegationToken."""

    metadata: MetadataView
    settings: TokenSettings

    def handle(self, request: DescribeDelegationTokenRequest, call: Call) -> None:
        """Describe the tokens of the owners that are named; None means all."""
        if not call.session.may_ask_for_tokens:
            call.reply(DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
            return
        if self.settings.secret is None:
            call.reply(DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED))
            return
        owners = (
            None
            if request.owners is None
            else [f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners]
        )
        tokens = tuple(
            self._described(token)
            for token in self.metadata.image.tokens.values()
            if (owners is None or any(belongs_to(token, owner) for owner in owners)) and _visible(token, call)
        )
        call.reply(DescribeDelegationTokenResponse(tokens=tokens))

    def _described(self, token: DelegationTokenRecord) -> DescribedDelegationToken:
        owner_kind, _, owner = token.owner.partition(":")
        requester_kind, _, requester = (token.requester or token.owner).partition(":")
        return DescribedDelegationToken(
            principal_type=owner_kind,
            principal_name=owner,
            token_requester_principal_type=requester_kind,
            token_requester_principal_name=requester,
            issue_timestamp=token.issue_timestamp,
            expiry_timestamp=token.expiration_timestamp,
            max_timestamp=token.max_timestamp,
            token_id=token.token_id,
            hmac=self.settings.hmac_of(token.token_id),
            renewers=tuple(
                DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
                for kind, _, name in (each.partition(":") for each in token.renewers)
            ),
        )


def _visible(token: DelegationTokenRecord, call: Call) -> bool:
    return (
        belongs_to(token, str(call.session.principal))
        or call.may(requirements.DESCRIBE_TOKEN, token.token_id)
        or call.may(requirements.DESCRIBE_TOKEN_OWNER, token.owner)
    )


def build(components: NodeComponents) -> Handler:
    return DescribeDelegationToken(components.metadata, TokenSettings.of(components.context.config.static)).handle

"""DescribeDelegationToken (key 41), versions 1-3, and CreateDelegationToken (key 38), versions 1-3,
RenewDelegationToken (key 39), versions 1-2, and ExpireDelegationToken (key 40), versions 1-2.

A client that has not said who it is gets no token: Apache Kafka's answer on PLAINTEXT, the only protocol there is here.
"""

from __future__ import annotations

from typing import Final

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.wire.apis import ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_delegation_token_response import CreateDelegationTokenResponse
from tanist.wire.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from tanist.wire.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from tanist.wire.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from tanist.wire.schema import Request, Response

_NOT_ALLOWED: Final = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
_ANSWERS: Final[dict[int, Response]] = {
    ApiKey.CREATE_DELEGATION_TOKEN: CreateDelegationTokenResponse(
        error_code=_NOT_ALLOWED,
        principal_type="User",
        principal_name="ANONYMOUS",
        token_requester_principal_type="User",
        token_requester_principal_name="ANONYMOUS",
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: RenewDelegationTokenResponse(error_code=_NOT_ALLOWED, expiry_timestamp_ms=-1),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ExpireDelegationTokenResponse(error_code=_NOT_ALLOWED, expiry_timestamp_ms=-1),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: DescribeDelegationTokenResponse(error_code=_NOT_ALLOWED),
}


def build(components: NodeComponents) -> Handler:
    def handle(request: Request, call: Call) -> None:
        call.reply(_ANSWERS[request.API_KEY])

    return handle

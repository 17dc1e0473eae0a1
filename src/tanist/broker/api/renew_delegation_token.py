"""RenewDelegationToken (key 39), versions 1-2: a token lives longer (KIP-48).

Its owner, who has made it and its renewers may ask for that, and have to have the token itself.
"""

from __future__ import annotations

from tanist.broker.api.controller_apis import ControllerApis
from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.controller.token_request import TokenRequest
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from tanist.wire.messages.renew_delegation_token_response import RenewDelegationTokenResponse


def build(components: NodeComponents) -> Handler:
    """On a broker's listener."""
    forward = components.controller_channel.forward

    def handle(request: RenewDelegationTokenRequest, call: Call) -> None:
        if call.session.may_ask_for_tokens:
            forward(call, request)
        else:
            _refuse(call)

    return handle


def build_decide(components: NodeComponents) -> Handler:
    """On the controller's listener."""
    decide, wall_ms = ControllerApis(components.quorum).decide, components.context.clock.wall_ms

    def handle(request: RenewDelegationTokenRequest, call: Call) -> None:
        if call.session.may_ask_for_tokens:
            decide(TokenRequest(request, call.session.principal.parts, wall_ms()), call)
        else:
            _refuse(call)

    return handle


def _refuse(call: Call) -> None:
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    call.reply(RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1))

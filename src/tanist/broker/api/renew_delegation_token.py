"""RenewDelegationToken (key 39), versions 1-2, and ExpireDelegationToken (key 40), versions 1-2: the life of a token.

It lives longer, shorter, or no longer (KIP-48). Its owner, who has made it and its renewers may ask for that, and have
to have the token itself.
"""

from __future__ import annotations

from typing import Any

from tanist.broker.api.controller_apis import ControllerApis
from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.controller.token_request import TokenRequest
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from tanist.wire.messages.renew_delegation_token_response import RenewDelegationTokenResponse

_Response = type[ExpireDelegationTokenResponse] | type[RenewDelegationTokenResponse]


def build_renew(components: NodeComponents) -> Handler:
    return _forwarding(components, RenewDelegationTokenResponse)


def build_expire(components: NodeComponents) -> Handler:
    return _forwarding(components, ExpireDelegationTokenResponse)


def build_decide_renew(components: NodeComponents) -> Handler:
    return _deciding(components, RenewDelegationTokenResponse)


def build_decide_expire(components: NodeComponents) -> Handler:
    return _deciding(components, ExpireDelegationTokenResponse)


def _forwarding(components: NodeComponents, response: _Response) -> Handler:
    """On a broker's listener."""
    forward = components.controller_channel.forward

    def handle(request: Any, call: Call) -> None:
        if call.session.may_ask_for_tokens:
            forward(call, request)
        else:
            _refuse(call, response)

    return handle


def _deciding(components: NodeComponents, response: _Response) -> Handler:
    """On the controller's listener."""
    decide, wall_ms = ControllerApis(components.quorum).decide, components.context.clock.wall_ms

    def handle(request: Any, call: Call) -> None:
        if call.session.may_ask_for_tokens:
            decide(TokenRequest(request, call.session.principal.parts, wall_ms()), call)
        else:
            _refuse(call, response)

    return handle


def _refuse(call: Call, response: _Response) -> None:
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    call.reply(response(error_code=code, expiry_timestamp_ms=-1))

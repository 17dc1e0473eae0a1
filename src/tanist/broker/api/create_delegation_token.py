"""CreateDelegationToken (key 38), versions 1-3: a token by which somebody else may be the owner for a while (KIP-48).

Who has not said who he is gets none, nor does who has come by a token himself. The owner is the one who asks; a token
for another owner needs CREATE_TOKENS on that user.
"""

from __future__ import annotations

from tanist.broker.api.controller_apis import ControllerApis
from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.controller.security.tokens import not_created, owner_of, text_of
from tanist.controller.token_request import TokenRequest
from tanist.security import controller_requirements
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest


def build(components: NodeComponents) -> Handler:
    """On a broker's listener."""
    forward = components.controller_channel.forward

    def handle(request: CreateDelegationTokenRequest, call: Call) -> None:
        if call.session.may_ask_for_tokens:
            forward(call, request)
        else:
            _refuse(request, call, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)

    return handle


def build_decide(components: NodeComponents) -> Handler:
    """On the controller's listener."""
    decide, wall_ms = ControllerApis(components.quorum).decide, components.context.clock.wall_ms

    def handle(request: CreateDelegationTokenRequest, call: Call) -> None:
        if not call.session.may_ask_for_tokens:
            _refuse(request, call, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
            return
        requester = call.session.principal.parts
        owner = owner_of(request, requester)
        if owner != requester and not call.may(controller_requirements.CREATE_TOKEN_OWNER, text_of(owner)):
            _refuse(request, call, controller_requirements.CREATE_TOKEN_OWNER.code)
            return
        decide(TokenRequest(request, requester, wall_ms()), call)

    return handle


def _refuse(request: CreateDelegationTokenRequest, call: Call, code: ErrorCode) -> None:
    requester = call.session.principal.parts
    call.reply(not_created(code, owner_of(request, requester), requester, timestamp=-1))

"""SaslAuthenticate (key 36), versions 0-2, where it is out of place: `authentication.gate` takes the others.

That is on a listener without SASL, and of a client that has authenticated. The connection stays.
"""

from __future__ import annotations

from typing import Any

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse

_TEXT = "SaslAuthenticate request received after successful authentication"


def build(components: NodeComponents) -> Handler:
    def handle(request: Any, call: Call) -> None:
        call.reply(SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_TEXT))

    return handle

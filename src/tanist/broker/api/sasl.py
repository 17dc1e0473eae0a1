"""SaslHandshake (key 17), versions 0-1, and SaslAuthenticate (key 36), versions 0-2, where they are out of place.

On a listener with SASL they come to `authentication.gate` first. Here are those of a listener without it, and of a
client that has authenticated and need not again. The connection stays.
"""

from __future__ import annotations

from typing import Any

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from tanist.wire.messages.sasl_handshake_response import SaslHandshakeResponse


def build_handshake(components: NodeComponents) -> Handler:
    def handle(request: Any, call: Call) -> None:
        call.reply(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))

    return handle


def build_authenticate(components: NodeComponents) -> Handler:
    def handle(request: Any, call: Call) -> None:
        call.reply(
            SaslAuthenticateResponse(
                error_code=ErrorCode.ILLEGAL_SASL_STATE,
                error_message="SaslAuthenticate request received after successful authentication",
            )
        )

    return handle

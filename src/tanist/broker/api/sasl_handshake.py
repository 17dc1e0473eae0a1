"""SaslHandshake (key 17), versions 0-1, where it is out of place: `authentication.gate` takes the others.

That is on a listener without SASL, and of a client that has authenticated and need not again. The connection stays.
"""

from __future__ import annotations

from typing import Any

from tanist.broker.components import NodeComponents
from tanist.broker.network.call import Call, Handler
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.sasl_handshake_response import SaslHandshakeResponse


def build(components: NodeComponents) -> Handler:
    def handle(request: Any, call: Call) -> None:
        call.reply(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))

    return handle

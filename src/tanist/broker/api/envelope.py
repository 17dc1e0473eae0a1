"""Envelope (key 58), version 0: a client's request that a broker forwards (KIP-590), on the controller's listener.

Only requests that a broker may pass on are taken, and they are the client's: what they may do is decided by the
principal and the address in the envelope, never by those of the broker that has sent it.

An answer comes when the change is committed, and says up to which offset the metadata log is (in a tag of ours, 966):
the forwarding broker answers its client when it has applied as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.envelopes import EnvelopeError, client_session
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler, Handlers
from tanist.wire.apis import FORWARDABLE
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.frames import RequestHeader, decode_request, encode_response, parse_request_header
from tanist.wire.messages.envelope_request import EnvelopeRequest
from tanist.wire.messages.envelope_response import EnvelopeResponse


@dataclass(frozen=True, slots=True)
class Envelope:
    """The handler of Envelope."""

    metadata: MetadataView
    quorum: MetadataQuorum

    def handle(self, request: EnvelopeRequest, call: Call) -> None:
        """Unpack, have the inner request handled, and pack its answer."""
        host = self.quorum.controller_service
        if host is None or not host.active:
            call.reply(EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER))
            return
        frame = memoryview(bytes(request.request_data))
        try:
            session = client_session(request, call.session)
            header, handle = _forwarded(frame, call.connection.handlers)
            inner_request = decode_request(header, frame)
        except EnvelopeError as error:
            call.reply(EnvelopeResponse(error_code=error.code))
            return
        except WireError:
            call.reply(EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
            return
        call.wait()
        inner = Call(call.connection, header, frame, inner_request, session)

        def answer(response: Any) -> None:
            if getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
                # The asking broker looks for the new controller; its client never hears of it.
                call.reply(EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER))
                return
            data = encode_response(response, header.api_version, header.correlation_id)[4:]
            call.reply(EnvelopeResponse(response_data=data, committed_offset=self.metadata.applied_offset))

        inner.reply_with = answer
        inner.meter = call.meter
        inner.go_on(handle, inner_request, inner)


def _forwarded(frame: memoryview, handlers: Handlers) -> tuple[RequestHeader, Handler]:
    """The header of the request in an envelope, and its handler.

    EnvelopeError if no broker may pass it on; WireError if it cannot be read or has a version that is not served.
    """
    header = parse_request_header(frame)
    if header.api_key not in FORWARDABLE:
        raise EnvelopeError(ErrorCode.INVALID_REQUEST)
    entry = handlers.get(header.api_key)
    if entry is None or not entry[0] <= header.api_version <= entry[1]:
        raise WireError(f"api {header.api_key} version {header.api_version} is not served")
    return header, entry[2]


def build(components: NodeComponents) -> Handler:
    return Envelope(components.metadata, components.quorum).handle

"""Envelope (key 58), version 0: a client's request that a broker forwards (KIP-590), on the controller's listener.

An answer comes when the change is committed, and says up to which offset the metadata log is (in a tag of ours, 966):
the forwarding broker answers its client when it has applied as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tanist.broker.components import NodeComponents
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.view import MetadataView
from tanist.broker.network.call import Call, Handler
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.frames import decode_request, encode_response, parse_request_header
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
            header = parse_request_header(frame)
            entry = call.connection.handlers.get(header.api_key)
            if entry is None or header.api_key == request.API_KEY or not entry[0] <= header.api_version <= entry[1]:
                call.reply(EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST))
                return
            inner_request = decode_request(header, frame)
        except WireError:
            call.reply(EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        call.wait()
        inner = Call(call.connection, header, frame, inner_request)

        def answer(response: Any) -> None:
            if getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
                # The asking broker looks for the new controller; its client never hears of it.
                call.reply(EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER))
                return
            data = encode_response(response, header.api_version, header.correlation_id)[4:]
            call.reply(EnvelopeResponse(response_data=data, committed_offset=self.metadata.applied_offset))

        inner.reply_with = answer
        inner.go_on(entry[2], inner_request, inner)


def build(components: NodeComponents) -> Handler:
    return Envelope(components.metadata, components.quorum).handle

"""A client's request on its way to the controller: the envelope that a broker puts it into, and what it says (KIP-590).

Owns the fields that say whose request it is: the client's principal and its address. A controller of Apache Kafka
refuses an envelope without them.
"""

from __future__ import annotations

from tanist.security.principal import decode_principal, encode_principal
from tanist.security.session import Session, host_text, packed_host
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.messages.envelope_request import EnvelopeRequest


class EnvelopeError(Exception):
    """An envelope that says for nobody, or for nobody who can be named, what is to be done."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


def envelope(request: bytes, session: Session) -> EnvelopeRequest:
    """A request, header included and length not, of the client of a session."""
    return EnvelopeRequest(
        request_data=request,
        request_principal=encode_principal(session.principal, by_token=session.by_token),
        client_host_address=packed_host(session.host),
    )


def client_session(request: EnvelopeRequest, broker: Session) -> Session:
    """The session of the client whose request is in an envelope that came by a broker's. EnvelopeError."""
    try:
        host = host_text(bytes(request.client_host_address))
    except ValueError:
        raise EnvelopeError(ErrorCode.INVALID_REQUEST) from None
    try:
        principal, by_token = decode_principal(request.request_principal or b"")
    except WireError:
        raise EnvelopeError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from None
    return Session(broker.listener, broker.security_protocol, host, principal, by_token, access=broker.access)

"""A client's request on its way to the controller: the envelope that a broker puts it into (KIP-590).

Owns the fields that say whose request it is: the principal, in the form of Apache Kafka's default principal builder
(DefaultPrincipalData, version 0), and the client's address. A controller of Apache Kafka refuses an envelope without
them. There is no authentication here, so every client is `User:ANONYMOUS`.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from tanist.wire.messages.envelope_request import EnvelopeRequest
from tanist.wire.primitives import write_uvarint

_LOCAL: Final = b"\x7f\0\0\1"
_VERSION: Final = 0


def default_principal(kind: str, name: str, *, token_authenticated: bool = False) -> bytes:
    """DefaultPrincipalData, its version first."""
    data = bytearray(_VERSION.to_bytes(2, "big"))
    for text in (kind, name):
        encoded = text.encode()
        data += write_uvarint(len(encoded) + 1) + encoded
    data.append(token_authenticated)
    data.append(0)  # no tagged fields
    return bytes(data)


ANONYMOUS: Final = default_principal("User", "ANONYMOUS")


def address_of(peer: str) -> bytes:
    """The four or sixteen bytes of a connection's other end, `host:port`; a host that is no address is this one."""
    host = peer.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        return ip_address(host).packed
    except ValueError:
        return _LOCAL


def envelope(request: bytes, peer: str) -> EnvelopeRequest:
    """A request, header included and length not, of the client at `peer`."""
    return EnvelopeRequest(request_data=request, request_principal=ANONYMOUS, client_host_address=address_of(peer))

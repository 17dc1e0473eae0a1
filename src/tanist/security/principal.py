"""A principal: the name that a client has proved to have, and how brokers pass it on to the controller (KIP-590).

Owns both forms of it: the text of ACLs and `super.users` (`User:alice`), and the bytes inside an Envelope, which are
those of Apache Kafka's default principal builder (DefaultPrincipalData).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tanist.wire.errors import WireError
from tanist.wire.primitives import read_uvarint, write_uvarint

USER: Final = "User"
_DATA_VERSION: Final = 0


@dataclass(frozen=True, slots=True)
class Principal:
    """Equal principals have one kind and one name; how they have proved it makes no difference."""

    kind: str
    name: str

    @property
    def parts(self) -> tuple[str, str]:
        return self.kind, self.name

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
"""Everybody on a listener without authentication."""


def parse_principal(text: str) -> Principal:
    """`User:alice`. ValueError if there is no kind or no name; a name may have colons."""
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)


def encode_principal(principal: Principal, *, by_token: bool = False) -> bytes:
    """DefaultPrincipalData, its version first. `by_token`: it has authenticated by a delegation token (KIP-48)."""
    data = bytearray(_DATA_VERSION.to_bytes(2, "big"))
    for text in (principal.kind, principal.name):
        encoded = text.encode()
        data += write_uvarint(len(encoded) + 1) + encoded
    data.append(by_token)
    data.append(0)  # no tagged fields
    return bytes(data)


def decode_principal(data: bytes | memoryview) -> tuple[Principal, bool]:
    """(principal, whether it has authenticated by a token). WireError if these are not DefaultPrincipalData."""
    view = memoryview(data)
    if len(view) < 2 or int.from_bytes(view[:2], "big", signed=True) < _DATA_VERSION:
        raise WireError("a principal without a version")
    try:
        kind, offset = _compact_string(view, 2)
        name, offset = _compact_string(view, offset)
        return Principal(kind, name), view[offset] != 0
    except IndexError:
        raise WireError("a principal that ends early") from None


def _compact_string(view: memoryview, offset: int) -> tuple[str, int]:
    length, offset = read_uvarint(view, offset)
    end = offset + length - 1
    if length == 0 or end > len(view):
        raise WireError("a principal that ends early")
    try:
        return str(view[offset:end], "utf-8"), end
    except UnicodeDecodeError:
        raise WireError("a principal whose name is not UTF-8") from None

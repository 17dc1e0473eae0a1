"""The four messages of SCRAM (RFC 5802, section 7): text to fields and back.

Owns the grammar, as strict as Apache Kafka's, and the escapes of user names. Knows no hash and no state.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.security.sasl.outcome import SaslError

_NAME = "(?:[^=,\\0]|=2C|=3D)+"
_VALUE = "[^,\\0]+"
_NONCE = "[\\x21-\\x2B\\x2D-\\x7E]+"
_BASE64 = "(?:[A-Za-z0-9/+]{4})*(?:[A-Za-z0-9/+]{3}=|[A-Za-z0-9/+]{2}==)?"
_EXTENSIONS = f"((?:,[A-Za-z]+={_VALUE})*)"
_RESERVED = f"(?:m={_VALUE},)?"

_CLIENT_FIRST = re.compile(f"(n,(?:a=({_NAME}))?,)({_RESERVED}n=({_NAME}),r=({_NONCE}){_EXTENSIONS})", re.DOTALL)
_SERVER_FIRST = re.compile(f"{_RESERVED}r=({_NONCE}),s=({_BASE64}),i=([0-9]{{1,9}}){_EXTENSIONS}", re.DOTALL)
_CLIENT_FINAL = re.compile(f"(c=({_BASE64}),r=({_NONCE}){_EXTENSIONS}),p=({_BASE64})", re.DOTALL)
_SERVER_FINAL = re.compile(f"(?:e=({_VALUE})|v=({_BASE64})){_EXTENSIONS}", re.DOTALL)

NO_BINDING: Final = "n,,"
"""The GS2 header of a client without channel binding."""


def _match(pattern: re.Pattern[str], token: bytes, what: str) -> re.Match[str]:
    try:
        found = pattern.fullmatch(str(token, "utf-8"))
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise SaslError(f"Invalid SCRAM {what} message format")
    return found


def _extensions(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in text.split(",")[1:]:
        name, _, value = pair.partition("=")
        found[name] = value
    return found


def escape(name: str) -> str:
    """A user name as it stands in a message."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescape(text: str) -> str:
    """The user name that stands in a message."""
    return text.replace("=2C", ",").replace("=3D", "=")


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """Who wants in."""

    user: str
    nonce: str
    authorization_id: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)
    header: str = NO_BINDING
    bare: str = ""
    """What of the message is signed."""

    @classmethod
    def parse(cls, token: bytes) -> ClientFirst:
        header, authorization_id, bare, user, nonce, extensions = _match(_CLIENT_FIRST, token, "client first").groups()
        return cls(unescape(user), nonce, unescape(authorization_id or ""), _extensions(extensions), header, bare)

    @classmethod
    def of(cls, user: str, nonce: str, extensions: Mapping[str, str]) -> ClientFirst:
        more = "".join(f",{name}={value}" for name, value in extensions.items())
        return cls(user, nonce, "", dict(extensions), NO_BINDING, f"n={escape(user)},r={nonce}{more}")

    def encode(self) -> bytes:
        return f"{self.header}{self.bare}".encode()


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """With what the client is to prove itself."""

    nonce: str
    salt: bytes = field(repr=False)
    iterations: int
    text: str = field(default="", repr=False)

    @classmethod
    def parse(cls, token: bytes) -> ServerFirst:
        found = _match(_SERVER_FIRST, token, "server first")
        nonce, salt, iterations, _ = found.groups()
        if int(iterations) < 1:
            raise SaslError("Invalid SCRAM server first message format: invalid iterations")
        return cls(nonce, b64decode(salt), int(iterations), found[0])

    @classmethod
    def of(cls, nonce: str, salt: bytes, iterations: int) -> ServerFirst:
        return cls(nonce, salt, iterations, f"r={nonce},s={b64encode(salt).decode()},i={iterations}")

    def encode(self) -> bytes:
        return self.text.encode()


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """The client's proof."""

    binding: bytes
    nonce: str
    proof: bytes = field(repr=False)
    without_proof: str = ""

    @classmethod
    def parse(cls, token: bytes) -> ClientFinal:
        without_proof, binding, nonce, _, proof = _match(_CLIENT_FINAL, token, "client final").groups()
        return cls(b64decode(binding), nonce, b64decode(proof), without_proof)

    @staticmethod
    def unproved(nonce: str, header: str = NO_BINDING) -> str:
        """What of the message is signed."""
        return f"c={b64encode(header.encode()).decode()},r={nonce}"

    @staticmethod
    def encode(without_proof: str, proof: bytes) -> bytes:
        return f"{without_proof},p={b64encode(proof).decode()}".encode()


@dataclass(frozen=True, slots=True)
class ServerFinal:
    """The server's proof, or its refusal."""

    error: str | None
    signature: bytes = field(repr=False)

    @classmethod
    def parse(cls, token: bytes) -> ServerFinal:
        error, signature, _ = _match(_SERVER_FINAL, token, "server final").groups()
        return cls(error, b64decode(signature or ""))

    @staticmethod
    def encode(signature: bytes) -> bytes:
        return f"v={b64encode(signature).decode()}".encode()

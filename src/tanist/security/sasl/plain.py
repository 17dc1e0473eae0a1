"""PLAIN (RFC 4616): user and password in one token.

The server compares all of a password, whatever differs first. It must never keep one, or tell of a user that there is
none: both sides of a comparison are always there.
"""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest

from tanist.security.principal import USER, Principal
from tanist.security.sasl.outcome import Done, Failed, Outcome, SaslError

_OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"
_INVALID = "Authentication failed: Invalid username or password"


class PlainServer:
    """The server's side. `password_of` gives a user's password; None: there is no such user."""

    __slots__ = ("_password_of",)

    def __init__(self, password_of: Callable[[str], str | None]) -> None:
        self._password_of = password_of

    def step(self, token: bytes) -> Outcome:
        """Judge the client's only token."""
        try:
            parts = str(token, "utf-8").split("\0")
        except UnicodeDecodeError:
            return Failed(reason="a PLAIN token that is no UTF-8")
        if len(parts) != 3:
            return Failed(reason=f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user:
            return Failed("Authentication failed: username not specified")
        if not password:
            return Failed("Authentication failed: password not specified")
        expected = self._password_of(user)
        same = compare_digest(password.encode(), (expected or "").encode())
        if not same or not expected:
            return Failed(_INVALID)
        if authorization_id not in ("", user):
            return Failed(_OTHER_ID)
        return Done(Principal(USER, user))


class PlainClient:
    """The client's side."""

    __slots__ = ("_token",)

    def __init__(self, user: str, password: str) -> None:
        if "\0" in user or "\0" in password:
            raise SaslError("a user name or password of PLAIN cannot have a NUL character in it")
        self._token = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def step(self, token: bytes) -> bytes | None:
        """The server has nothing to say."""
        return None

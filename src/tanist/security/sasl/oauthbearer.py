"""OAUTHBEARER (RFC 7628, KIP-255, KIP-768), both sides: a token says who somebody is, and whose word that is.

Owns the messages, what a token must say (`TokenRules`), and the tokens without a signature, for tests. Signatures are
`jwks`'s matter: `Verify` gives the claims of a token that is genuine. Must never show a token: who has it is believed.

A token that is refused is answered with an error in JSON, to which the client says one byte; then it is refused.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tanist.security.principal import USER, Principal
from tanist.security.sasl.outcome import Challenge, Done, Failed, Outcome, SaslError
from tanist.security.sasl.scram_messages import unescape

_NAME = "(?:[\\x01-\\x2B\\x2D-\\x3C\\x3E-\\x7F]|=2C|=3D)+"
_PAIR = "[A-Za-z]+=[\\x21-\\x7E \\t\\r\\n]+\\x01"
_INITIAL = re.compile(f"n,(?:a=({_NAME}))?,\\x01((?:{_PAIR})*)\\x01")
_AUTHORIZATION = re.compile(r"(?i:bearer) +([-_.a-zA-Z0-9]+)")
_FAREWELL: Final = b"\x01"
_FILE = re.compile(r"file:(?://)?(/.+)")


def path_of(url: str) -> str | None:
    """The path of a file where keys or tokens are, as properties name it; None of what is no file."""
    found = _FILE.fullmatch(url)
    return None if found is None else found[1]


class InvalidToken(ValueError):
    """A token that is not believed. The text says why, and nothing of it."""


class InsufficientScope(InvalidToken):
    """A token that lacks a scope that the listener requires. The answer names them all: `required`."""

    def __init__(self, required: Sequence[str]) -> None:
        super().__init__("its scope lacks one that is required")
        self.required = tuple(required)


Claims = Mapping[str, object]
Verify = Callable[[str], Claims]
"""The claims of a token; `InvalidToken` if it is not genuine."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a genuine token must say."""

    subject_claim: str = "sub"
    scope_claim: str = "scope"
    audiences: frozenset[str] = frozenset()
    """One of these; none: anything."""
    issuer: str | None = None
    clock_skew_ms: int = 30_000
    needs_issue_time: bool = True
    issued_by_now: bool = False
    """A time of issue is not after now, and before the end."""
    required_scope: tuple[str, ...] = ()
    """All of these."""

    def judge(self, claims: Claims, wall_ms: int) -> tuple[str, int]:
        """Who it is, and until when it is so (wall time, ms). `InvalidToken`."""
        expires_ms = _time_ms(claims, "exp")
        if expires_ms is None:
            raise InvalidToken("it has no exp")
        if wall_ms - self.clock_skew_ms >= expires_ms:
            raise InvalidToken("it has expired")
        issued_ms = _time_ms(claims, "iat")
        if issued_ms is None and self.needs_issue_time:
            raise InvalidToken("it has no iat")
        if issued_ms is not None and issued_ms > expires_ms:
            raise InvalidToken("it expires before it was issued")
        if issued_ms is not None and self.issued_by_now:
            if issued_ms > wall_ms + self.clock_skew_ms:
                raise InvalidToken("it was issued after now")
            if issued_ms == expires_ms:
                raise InvalidToken("it expires when it was issued")
        begins_ms = _time_ms(claims, "nbf")
        if begins_ms is not None and begins_ms > wall_ms + self.clock_skew_ms:
            raise InvalidToken("it is not valid yet")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken("its iss is not sasl.oauthbearer.expected.issuer")
        if self.audiences and self.audiences.isdisjoint(_texts(claims, "aud")):
            raise InvalidToken("its aud is none of sasl.oauthbearer.expected.audience")
        scope = {each.strip() for each in _texts(claims, self.scope_claim)}
        subject = claims.get(self.subject_claim)
        if not isinstance(subject, str) or not subject.strip():
            raise InvalidToken(f"its {self.subject_claim} names nobody")
        if not scope.issuperset(self.required_scope):
            raise InsufficientScope(self.required_scope)
        return subject, expires_ms


def _time_ms(claims: Claims, name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 50:
        raise InvalidToken(f"its {name} is no time")
    return int(value * 1000)


def _texts(claims: Claims, name: str) -> tuple[str, ...]:
    value = claims.get(name, ())
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise InvalidToken(f"its {name} is no text, and no list of texts")
    return tuple(value)


class OAuthBearerServer:
    """The server's side."""

    __slots__ = ("_refused", "_rules", "_verify", "_wall_ms")

    def __init__(self, verify: Verify, rules: TokenRules, wall_ms: Callable[[], int]) -> None:
        self._verify = verify
        self._rules = rules
        self._wall_ms = wall_ms
        self._refused: Failed | None = None
        """What follows the client's word that it has read why its token was."""

    def step(self, token: bytes) -> Outcome:
        """Take the client's token, or its word that it has read why it is refused."""
        if self._refused is not None:
            return self._refused if token == _FAREWELL else Failed(reason="a second token")
        try:
            authorization_id, bearer = _initial(token)
        except SaslError as error:
            return Failed(reason=str(error))
        try:
            name, expires_ms = self._rules.judge(self._verify(bearer), self._wall_ms())
        except InvalidToken as error:
            answer = _refusal(error)
            self._refused = Failed(answer, f"the token is refused: {error}")
            return Challenge(answer.encode())
        if authorization_id not in ("", name):
            return Failed(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({name})"
            )
        return Done(Principal(USER, name), expires_ms=expires_ms)


def _refusal(error: InvalidToken) -> str:
    """The answer, in Apache Kafka's text."""
    if isinstance(error, InsufficientScope):
        return f'{{"status":"insufficient_scope", "scope":"[{", ".join(error.required)}]"}}'
    return '{"status":"invalid_token"}'


def _initial(token: bytes) -> tuple[str, str]:
    """The authorization id and the bearer's token of a client's first message. SaslError."""
    try:
        found = _INITIAL.fullmatch(str(token, "utf-8"))
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in found[2].split("\x01") if pair)
    authorization = _AUTHORIZATION.fullmatch(pairs.get("auth", ""))
    if authorization is None:
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' is no bearer's")
    return unescape(found[1] or ""), authorization[1]


class OAuthBearerClient:
    """The client's side."""

    __slots__ = ("_token",)

    def __init__(self, token: str) -> None:
        if re.fullmatch(r"[-_.a-zA-Z0-9]+", token) is None:
            raise SaslError("that is no token")
        self._token = token

    def first(self) -> bytes:
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def step(self, token: bytes) -> bytes | None:
        """The server says nothing if it believes the token, and why it does not if it does not."""
        return _FAREWELL if token else None


# -- tokens without a signature


def unsecured_claims(token: str) -> Claims:
    """`Verify` of a listener that believes everybody: the claims of a token without a signature."""
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidToken("it has not three parts")
    header, claims = json_object(parts[0]), json_object(parts[1])
    if parts[2] or header.get("alg") != "none":
        raise InvalidToken("it has a signature, and this listener takes tokens without one")
    return claims


def json_object(part: str) -> dict[str, object]:
    """The object in one part of a token. `InvalidToken`."""
    try:
        found = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (Base64Error, ValueError, RecursionError):
        raise InvalidToken("a part of it is no JSON") from None
    if not isinstance(found, dict):
        raise InvalidToken("a part of it is no JSON object")
    return found

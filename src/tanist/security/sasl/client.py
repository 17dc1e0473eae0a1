"""How a client of Kafka's protocol authenticates: SaslHandshake, then its tokens in SaslAuthenticate.

Owns the order of the requests, and when to begin again (KIP-368). Sends nothing: it gives the next request, and takes
its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tanist.security.sasl.outcome import OAUTHBEARER, PLAIN, ClientMachine, SaslError
from tanist.security.sasl.plain import PlainClient
from tanist.security.sasl.scram import HASHES, Random, SaltedPasswords, ScramClient
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tanist.wire.messages.sasl_handshake_response import SaslHandshakeResponse
from tanist.wire.schema import Request, Response

HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 2
_RENEWED_AT: Final = 0.85
"""The part of a session's life after which Apache Kafka's clients begin again (they draw up to 0.95)."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The server believes it. `renew_after_ms`: when to begin again; None: never."""

    renew_after_ms: int | None


class SaslDialogue:
    """One authentication. `SaslError` when it fails: why, for people."""

    def __init__(self, mechanism: str, machine: ClientMachine) -> None:
        self._mechanism = mechanism
        self._machine = machine

    def first(self) -> Request:
        """The request to begin with."""
        return SaslHandshakeRequest(mechanism=self._mechanism)

    def handle_response(self, response: Response) -> Request | Authenticated:
        """Take the answer to the last request; the next one, or the end."""
        if isinstance(response, SaslHandshakeResponse):
            if response.error_code != ErrorCode.NONE:
                enabled = ", ".join(response.mechanisms)
                raise SaslError(
                    f"the server does not take the mechanism {self._mechanism} "
                    f"({ErrorCode.name_of(response.error_code)}); it has {enabled or 'none'}"
                )
            return SaslAuthenticateRequest(auth_bytes=self._machine.first())
        if not isinstance(response, SaslAuthenticateResponse):
            raise SaslError(f"the server answers with a {type(response).__name__}")
        if response.error_code != ErrorCode.NONE:
            raise SaslError(response.error_message or ErrorCode.name_of(response.error_code))
        token = self._machine.step(bytes(response.auth_bytes))
        if token is not None:
            return SaslAuthenticateRequest(auth_bytes=token)
        lifetime_ms = response.session_lifetime_ms
        return Authenticated(int(lifetime_ms * _RENEWED_AT) if lifetime_ms > 0 else None)


def version_of(request: Request) -> int:
    """The version in which a request of a dialogue is sent."""
    return HANDSHAKE_VERSION if isinstance(request, SaslHandshakeRequest) else AUTHENTICATE_VERSION


class Credentials:
    """By what a client authenticates, as often as it has to. Never shows what is secret."""

    def __init__(self, mechanism: str, options: Mapping[str, str], random: Random) -> None:
        """`options` are those of the mechanism's login module. SaslError if one is missing."""
        self.mechanism = mechanism
        self._begin = _beginning(mechanism, options, random)
        self._begin()  # says now what is wrong with them

    def begin(self) -> SaslDialogue:
        """A new authentication."""
        return SaslDialogue(self.mechanism, self._begin())


def _beginning(mechanism: str, options: Mapping[str, str], random: Random) -> Callable[[], ClientMachine]:
    user, password = options.get("username", ""), options.get("password", "")
    if mechanism != OAUTHBEARER and not (user and password):
        raise SaslError(f"{mechanism} needs a user name and a password")
    if mechanism == PLAIN:
        return lambda: PlainClient(user, password)
    hash_ = HASHES.get(mechanism)
    if hash_ is None:
        raise SaslError(f"the mechanism {mechanism} is not known here; use PLAIN, {', '.join(HASHES)}")
    salted = SaltedPasswords(hash_, password)
    by_token = options.get("tokenauth", "").lower() == "true"
    return lambda: ScramClient(hash_, user, salted.of, random, token=by_token)

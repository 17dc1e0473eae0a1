"""What a step of a SASL machine says.

Owns these values, and the protocol of the machines on both sides. A machine is for one authentication, and is thrown
away after `Done` or `Failed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from tanist.security.principal import Principal


class SaslError(ValueError):
    """A token that makes no sense, or a server that does not know the password either. The text has no secret in it."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """The client is to answer this."""

    token: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Done:
    """The client is who it says."""

    principal: Principal
    token: bytes = field(default=b"", repr=False)
    """The last one for the client."""
    expires_ms: int | None = None
    """The wall time until which what it has shown is good."""
    by_token: bool = False
    """It has shown a delegation token."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The client is refused."""

    text: str | None = None
    """For the client; None: `invalid_credentials`, which does not tell whether there is such a user."""
    reason: str = ""
    """For the log."""


@dataclass(frozen=True, slots=True)
class Later:
    """`job` takes milliseconds: run it off the loop. What it gives goes to `then`, on the loop."""

    job: Callable[[], Any]
    then: Callable[[Any], Outcome]


Outcome: TypeAlias = Challenge | Done | Failed | Later


class ServerMachine(Protocol):
    """The server's side of one authentication."""

    def step(self, token: bytes) -> Outcome:
        """Take the client's next token."""


class ClientMachine(Protocol):
    """The client's side of one authentication."""

    def first(self) -> bytes:
        """The first token."""

    def step(self, token: bytes) -> bytes | None:
        """The answer to the server's token; None: there is nothing left to say. `SaslError`: that is not the server."""


PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)


def invalid_credentials(mechanism: str, *, again: bool = False) -> str:
    """Kafka's text for a client whose token or proof is not good; `again`: it has authenticated before."""
    during = "re-authentication" if again else "authentication"
    return f"Authentication failed during {during} due to invalid credentials with SASL mechanism {mechanism}"

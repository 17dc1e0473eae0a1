"""TLS of the client that blocks: the handshake, and why it is refused."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache

from tanist.runtime.security.profile import TlsProfile
from tanist.runtime.security.words import alert_of, in_words


class TlsRefused(Exception):
    """One side does not accept the other, or the properties cannot be used: trying again does not help."""


def secured(sock: socket.socket, host: str, properties: Mapping[str, str]) -> ssl.SSLSocket:
    """The socket, by TLS from here on. `TlsRefused`, or `OSError` of the connection."""
    try:
        profile = _profile(tuple(sorted(properties.items())), _written(properties))
    except ValueError as problem:
        raise TlsRefused(str(problem)) from None
    made: list[ssl.SSLSocket] = []
    with_refusals_named(lambda: made.append(profile.dial(sock, host)))
    return made[0]


def with_refusals_named(step: Callable[[], object]) -> None:
    """Do what reads from the other side. With TLS 1.3 it refuses a client after the handshake of that."""
    try:
        step()
    except ssl.SSLCertVerificationError as error:
        raise TlsRefused(f"the broker's certificate is not accepted: {error.verify_message}") from None
    except ssl.SSLEOFError:
        raise
    except ssl.SSLError as error:
        said = alert_of(error)
        if said is not None:
            raise TlsRefused(f"the broker does not accept this client: {said}") from None
        raise TlsRefused(f"no TLS with it: {in_words(error)}; is security.protocol right?") from None


@lru_cache(maxsize=8)
def _profile(properties: tuple[tuple[str, str], ...], _: tuple[float, ...]) -> TlsProfile:
    return TlsProfile(dict(properties))


def _written(properties: Mapping[str, str]) -> tuple[float, ...]:
    """When the stores were written: a job of months takes those that have been exchanged meanwhile."""
    paths = (properties.get(f"ssl.{store}.location", "") for store in ("keystore", "truststore"))
    return tuple(os.stat(path).st_mtime_ns if os.path.exists(path) else 0.0 for path in paths)

"""What a network needs for TLS, loaded with the first profile: the profiles, the handshakes, the connections' class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tanist.ports import TlsIdentity
from tanist.runtime.ports.connection import ConnectionOwner, SocketConnection
from tanist.runtime.ports.handshakes import Handshakes
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.tls import TlsConnection
from tanist.runtime.security.profiles import TlsProfiles


class TlsReports(Protocol):
    """Who hears what happens to TLS."""

    def handshake_failed(self, profile: str, peer: str, reason: str, dialled: bool) -> None:
        """A connection came to nothing. Strangers can make it happen at will."""

    def reloaded(self, profile: str, identity: TlsIdentity | None, problem: str | None) -> None:
        """The files of a profile have changed: whom the certificate names now, or why they are not used."""


class Tls:
    """Of one network."""

    def __init__(self, loop: Loop, reports: TlsReports | None) -> None:
        self.profiles = TlsProfiles(loop, _unheard if reports is None else reports.reloaded)
        failed = _unheard if reports is None else reports.handshake_failed
        self.handshakes = Handshakes(loop, self.profiles.__getitem__, failed)

    def accepted(
        self,
        network: ConnectionOwner,
        peer: Any,
        max_frame_bytes: int,
        profile: str,
        opened: Callable[[SocketConnection], None],
    ) -> TlsConnection:
        return TlsConnection(network, self.handshakes, peer, max_frame_bytes, profile, opened=opened)

    def dialling(
        self, network: ConnectionOwner, peer: str, max_frame_bytes: int, profile: str, host: str
    ) -> TlsConnection:
        return TlsConnection(network, self.handshakes, peer, max_frame_bytes, profile, host=host)

    def close(self) -> None:
        self.handshakes.close()


def _unheard(*_: object) -> None:
    """Nobody hears of it."""

"""TLS in the simulator: who a host proves to be is a fact of the world, and no bytes are encrypted.

Owns which host has which certificate, and which hosts have one that nobody accepts. A connection opens if both sides
use TLS and accept each other, by the properties of their profiles; else it ends as a real one does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tanist.ports import TlsIdentity, TlsProblem

_FOREVER_MS: Final = 1 << 52


class Certificates:
    """Of all hosts."""

    def __init__(self) -> None:
        self.subjects: dict[str, str] = {}
        """By host; one that is not here has its name as the common name."""
        self.distrusted: set[str] = set()
        """Hosts whose certificates are accepted by nobody: expired, or of another authority."""
        self.expires_ms = _FOREVER_MS
        """When all certificates do that are read from now on."""
        self.unreadable: set[str] = set()
        """Files of stores that cannot be read."""
        self._profiles: dict[tuple[str, str], Mapping[str, str]] = {}

    def set(self, host: str, profile: str, properties: Mapping[str, str], *, only_try: bool) -> TlsIdentity:
        """`TlsProblem` if a file of it cannot be read."""
        path = properties.get("ssl.keystore.location", "")
        if path in self.unreadable:
            raise TlsProblem(f"ssl.keystore.location={path} cannot be read")
        if not only_try:
            self._profiles[(host, profile)] = dict(properties)
        return TlsIdentity(self.subject(host), (host,), self.expires_ms)

    def known(self, host: str, profile: str) -> bool:
        return (host, profile) in self._profiles

    def subject(self, host: str) -> str:
        return self.subjects.get(host, f"CN={host}")

    def shown(self, dialling: str, dialled: str, profile: str) -> str | None:
        """The subject that the host that dials shows to the other one, which is asked by that profile."""
        return None if self._asks(dialled, profile) == "none" else self.subject(dialling)

    def refusal(self, dialling: str, dialled: str, profile: str) -> str | None:
        """Why the handshake fails; None: it succeeds."""
        if dialled in self.distrusted:
            return "TLS handshake failed: certificate not accepted"
        if dialling in self.distrusted and self._asks(dialled, profile) != "none":
            return "TLS handshake failed: the other side says: unknown ca"
        return None

    def _asks(self, host: str, profile: str) -> str:
        return self._profiles[(host, profile)].get("ssl.client.auth", "none").strip().lower()

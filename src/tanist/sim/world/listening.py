"""A listener, as a connection that is being opened sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tanist.ports import Connection, ConnectionHandler
from tanist.sim.world.scheduler import Process


class Listening(Protocol):
    """A listener at an address."""

    @property
    def process(self) -> Process:
        """The process that owns the socket."""

    @property
    def closed(self) -> bool:
        """Whether it is closed: the kernel resets connections that its process has not accepted yet."""

    @property
    def paused(self) -> bool:
        """Whether its process accepts nobody for now."""

    @property
    def waiting(self) -> list[Callable[[], None]]:
        """What accepts the connections that have come while it was paused."""

    @property
    def max_frame_bytes(self) -> int:
        """Larger frames end a connection."""

    @property
    def accept(self) -> Callable[[Connection], ConnectionHandler]:
        """The function that takes a new connection."""

    @property
    def tls(self) -> str | None:
        """The profile of its TLS, if it has that."""

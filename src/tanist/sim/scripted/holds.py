"""Holds: connections that a process does not read for a while, by which a script makes messages late.

Owns the selection of connections: those between two hosts, with a certain client id if one is given, including later
ones. Their bytes wait in the reader's kernel, in order, and nothing is lost.
"""

from __future__ import annotations

from tanist.sim.world.connection import SimConnection
from tanist.sim.world.world import Host, Watcher, World


class Hold(Watcher):
    """A hold, from its creation until `release`."""

    def __init__(self, world: World, reader: str, sender: str, client: str) -> None:
        self._world = world
        self._reader = reader
        self._sender = sender
        self._client = client
        self._held: dict[SimConnection, None] = {}
        self._hold_new()
        world.watchers.append(self)

    def turn_ended(self, host: Host) -> None:
        self._hold_new()

    def _hold_new(self) -> None:
        for end in list(self._world.network.connections.values()):
            is_theirs = end.host == self._reader and end.peer_host == self._sender
            if is_theirs and end not in self._held and self._client in _client_of(end):
                self._held[end] = None
                end.hold()

    def senders(self) -> list[SimConnection]:
        """The other ends."""
        return [end.other for end in self._held if end.other is not None and not end.other.closed]

    def release(self) -> None:
        """Let the process read them."""
        if self in self._world.watchers:
            self._world.watchers.remove(self)
            for end in self._held:
                if not end.closed:
                    end.let_go()


def _client_of(end: SimConnection) -> str:
    """The client id of the channel that the connection belongs to, whichever of its ends this is."""
    for each in (end, end.other):
        channel = getattr(getattr(each, "handler", None), "channel", None)
        if channel is not None:
            return str(channel._client_id)
    return ""

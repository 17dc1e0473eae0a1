"""Log directories that go offline (S30): only those whose disk has failed, or where something may be torn.

A node gives a whole directory up for one failure, and ends with its last one. So a failure that counts for another
directory than its own is dear, and nothing else sees it: the node starts again, and is whole.
"""

from __future__ import annotations

from tanist.sim.checkers.violation import Violation
from tanist.sim.events import BitRotted, DirectoryFailed, DiskFailed, DiskFilled, Event, LifeBegan
from tanist.sim.world.world import Host, World


class DirectoryChecks:
    """The log directories of all nodes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._struck: dict[int, set[str]] = {}
        """By node: directories that a fault of this life may have struck, or one that has not ended."""
        self._rotten: set[tuple[int, str]] = set()
        """(node, directory) that has, or had, a damaged log."""

    def happened(self, event: Event) -> None:
        """Faults, and starts."""
        match event:
            case LifeBegan(node_id):
                host = self._world.hosts[node_id]
                self._struck[node_id] = set(host.directories) if host.disk.fails else set()
            case DirectoryFailed(node_id, path):
                self._strike(node_id, path)
            case DiskFilled(node_id, paths):
                self._strike(node_id, *paths)
            case DiskFailed(node_id):
                self._strike(node_id, *self._world.hosts[node_id].directories)
            case BitRotted(node_id, _, path):
                self._rotten |= {
                    (node_id, each) for each in self._world.hosts[node_id].directories if path.startswith(f"{each}/")
                }

    def _strike(self, node_id: int, *paths: str) -> None:
        self._struck.setdefault(node_id, set()).update(paths)

    def check_offline(self, host: Host, path: str) -> None:
        """The node has given a log directory up."""
        if path not in self._struck.get(host.node_id, ()) and (host.node_id, path) not in self._rotten:
            raise Violation("S30", self._world.now_us, f"{host.name}: {path} is offline, and nothing was wrong with it")

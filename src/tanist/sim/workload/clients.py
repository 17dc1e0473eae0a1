"""The base of clients in the virtual world: real requests over virtual connections, as a client library sends them.

The clients' actions are in `producer`, `readers` and `operations`.
"""

from __future__ import annotations

from collections.abc import Callable

from tanist.broker.logins import ChannelLogin
from tanist.sim.workload.cluster_client import ClusterClient
from tanist.sim.workload.history import History
from tanist.sim.world.clock import SimClock, stream
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import BROKER_PORT, World


class SimClient(ClusterClient):
    """A client with a process that lives as long as the run."""

    def __init__(
        self, world: World, name: str, history: History, login: ChannelLogin | None = None, *, tls: bool = False
    ) -> None:
        """`login`: by what it authenticates; None: as the world says. `tls`: it dials by TLS, with the certificate of a
        host of its name."""
        self.world = world
        self.history = history
        self.rng = stream(world.seed, name)
        self.process = Process(name)
        world.clients.append(name)
        self._network = world.network.view(name, self.process)
        if tls:
            self._network.set_tls_profile(name, {}, between_nodes=False)
        bootstrap = [(host.name, BROKER_PORT) for host in world.brokers]
        super().__init__(
            name,
            SimClock(world.scheduler, self.process),
            self._network,
            bootstrap,
            login or world.login_of(name),
            name if tls else None,
        )
        self.stopped = False

    def stop(self) -> None:
        """Begin nothing new; what is open goes on until it is answered."""
        self.stopped = True

    @property
    def now_us(self) -> int:
        return self.world.scheduler.now_us

    def run(self, callback: Callable[[], None]) -> None:
        """Run a callback as this client's process."""
        self.world.scheduler.after(0, callback, self.process)

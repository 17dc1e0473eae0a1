"""Clients of a run that are processes of their own: what each gets to work with, and who comes and goes."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

from tanist.sim.events import ClientAway
from tanist.sim.oracle import PartitionOracle
from tanist.sim.workload.group_client import ClientContext
from tanist.sim.world.clock import SimClock, stream
from tanist.sim.world.scheduler import MICROSECONDS, Process
from tanist.sim.world.world import BROKER_PORT, World
from tanist.wire.internal_topics import INTERNAL_TOPICS

W = TypeVar("W")


class _Named(Protocol):
    name: str


class _Member(_Named, Protocol):
    def start(self) -> None:
        """Join the group."""

    def leave(self) -> None:
        """Leave it in good order."""

    def die(self) -> None:
        """Die without a word."""


class _Churn(Protocol):
    """Settings of a workload."""

    @property
    def churn(self) -> tuple[str, ...]:
        """What befalls members; nothing if it is empty."""

    @property
    def churn_pause_ms(self) -> tuple[int, int]:
        """Until the next time, at least and at most."""

    @property
    def away_ms(self) -> tuple[int, int]:
        """How long a member stays away, likewise."""


class Clients:
    """The clients of one workload."""

    def __init__(self, world: World, workload: str, settings: _Churn) -> None:
        """`workload`: how its situations are called."""
        self._world = world
        self._workload = workload
        self._settings = settings
        self._processes: dict[str, Process] = {}
        self.churning = True
        """Until the run has it settle."""

    def context(self, name: str, witness: W) -> ClientContext[W]:
        """Of a new client."""
        world = self._world
        process = self._processes[name] = Process(name)
        world.clients.append(name)
        return ClientContext(
            clock=SimClock(world.scheduler, process),
            network=world.network.view(name, process),
            bootstrap=[(host.name, BROKER_PORT) for host in world.brokers],
            rng=stream(world.seed, name),
            witness=witness,
            login=world.login_of(name),
        )

    def act(self, client: _Named, act: Callable[[], None]) -> None:
        """Run an action of a client as its own process."""
        self._world.scheduler.after(0, act, self._processes[client.name])

    def resume(self, client: _Named) -> None:
        """It goes on, if it was paused."""
        process = self._processes[client.name]
        if process.frozen:
            self._world.scheduler.thaw(process)

    def churn(self, member: _Member, rng: random.Random, resting: Collection[Any] = ()) -> None:
        """From now on the member leaves, dies or pauses, and comes back. Not while it is among those that rest."""
        settings, world = self._settings, self._world
        if not settings.churn:
            return

        def strike() -> None:
            if not self.churning:
                return
            if member in resting:
                again()
                return
            kind, away_ms = rng.choice(settings.churn), rng.randint(*settings.away_ms)
            world.counts[f"{self._workload}: members {kind}"] += 1
            world.emit(ClientAway(member.name, kind, away_ms))
            if kind == "pause":
                self._processes[member.name].frozen = True
            else:
                self.act(member, member.leave if kind == "leave" else member.die)
            world.scheduler.after(away_ms * MICROSECONDS, back)

        def back() -> None:
            if self.churning:
                self.resume(member)
                if member not in resting:
                    self.act(member, member.start)
                again()

        def again() -> None:
            world.scheduler.after(rng.randint(*settings.churn_pause_ms) * MICROSECONDS, strike)

        again()


def but_for_internal_topics(callback: Callable[..., None]) -> Callable[..., None]:
    """The same callback of a partition's checker, for topics of applications: only coordinators write to the others."""

    def tell(oracle: PartitionOracle, *rest: Any) -> None:
        if oracle.name.rpartition("-")[0] not in INTERNAL_TOPICS:
            callback(oracle, *rest)

    return tell

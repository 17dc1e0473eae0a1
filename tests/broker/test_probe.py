from __future__ import annotations

import random

from tanist.broker.network.probe import Probe
from tanist.ports import Connection
from tanist.sim.world.clock import SimClock
from tanist.sim.world.network import SimNetwork
from tanist.sim.world.scheduler import Process, Scheduler


class Silent:
    def __init__(self, connection: Connection, *, hang_up: bool) -> None:
        if hang_up:
            connection.close()

    def on_open(self, connection: Connection) -> None: ...

    def on_frame(self, frame: memoryview) -> None: ...

    def on_close(self, reason: str) -> None: ...


class World:
    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.network = SimNetwork(self.scheduler, random.Random(3))
        self.server = Process("server")
        self.process = Process("prober")
        self.hang_up = False
        self.answers: list[bool] = []

    def listen(self) -> None:
        view = self.network.view("s", self.server)
        view.bind("s", 1, lambda c: Silent(c, hang_up=self.hang_up), max_frame_bytes=1024).open()

    def probe(self, refused_for_ms: int = 0) -> Probe:
        view, clock = self.network.view("p", self.process), SimClock(self.scheduler, self.process)
        return Probe(clock, view, "s", 1, self.answers.append, refused_for_ms=refused_for_ms)

    def run(self, ms: int) -> None:
        self.scheduler.run_until(self.scheduler.now_us + ms * 1000)


def test_nobody_listens() -> None:
    world = World()
    world.probe()
    world.run(10)
    assert world.answers == [True]


def test_a_process_that_may_not_listen_yet_is_gone_when_refusals_go_on() -> None:
    world = World()
    world.probe(refused_for_ms=500)
    world.run(450)
    assert world.answers == []
    world.run(150)
    assert world.answers == [True]


def test_a_process_that_listens_a_moment_later_lives() -> None:
    world = World()
    world.probe(refused_for_ms=500)
    world.run(200)
    world.listen()
    world.run(2_000)
    assert world.answers == [False]


def test_somebody_lives_there() -> None:
    world = World()
    world.listen()
    world.probe()
    world.run(500)
    assert world.answers == []
    world.run(1_000)
    assert world.answers == [False]


def test_a_dying_process_accepts_once_more_and_is_gone() -> None:
    """Its sockets close one after the other: the listener may take a connection that is then reset."""
    world = World()
    world.hang_up = True
    world.listen()
    world.probe()
    world.run(12)
    assert world.answers == []
    world.network.killed(world.server)
    world.run(20)
    assert world.answers == [True]


def test_silence_means_nothing() -> None:
    world = World()
    world.listen()
    world.network.block("s", "p")
    world.probe()
    world.run(2_000)
    assert world.answers == [False]


def test_a_probe_that_is_ended_says_nothing() -> None:
    world = World()
    world.probe().end()
    world.run(2_000)
    assert world.answers == []

"""Worlds to hold to the ports' contract. A set of ports joins by an entry in `WORLDS`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from tanist.ports import Chunk, Clock, Connection, ConnectionHandler, Disk, FileRange, Listener, Network, Random
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.network import SocketNetwork
from tanist.runtime.ports.random import SystemRandom
from tanist.sim.world.clock import SimClock, SimRandom, stream
from tanist.sim.world.disk import SimDisk
from tanist.sim.world.network import SimNetwork
from tanist.sim.world.scheduler import Process, Scheduler
from tests.certificates import CertificateAuthority


class World(Protocol):
    """One set of ports, and the power to let its time pass."""

    @property
    def clock(self) -> Clock: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def network(self) -> Network: ...

    @property
    def random(self) -> Random: ...

    @property
    def folder(self) -> str:
        """An existing, empty folder of `disk`."""

    @property
    def host(self) -> str:
        """A host that `network` can listen on and connect to."""

    def run_until(self, condition: Callable[[], bool], what: str = "") -> None:
        """Let time pass until the condition holds; fail the test if it does not come to hold."""


class RealWorld:
    """The ports of `tanist.runtime`."""

    host = "127.0.0.1"
    patience_s = 120.0

    def __init__(self, folder: Path, aio_of: Callable[[], Loop]) -> None:
        self.failures: list[BaseException] = []
        self.clock = self.loop = aio_of()
        self.loop.on_failure = lambda _, error: self.failures.append(error)
        self.disk = RealDisk(self.loop)
        self.network = SocketNetwork(self.loop)
        self.random = SystemRandom()
        self.folder = str(folder)

    def run_until(self, condition: Callable[[], bool], what: str = "") -> None:
        deadline = time.monotonic() + self.patience_s

        def look() -> None:
            if condition() or self.failures or time.monotonic() > deadline:
                self.loop.stop()
            else:
                self.loop.call_at(self.loop.now_ms() + 1, look)

        self.loop.post(look)
        self.loop.run()
        if self.failures:
            raise self.failures.pop(0)
        if not condition():
            pytest.fail(f"did not come to pass: {what or condition}")

    def close(self) -> None:
        self.network.close()
        turns: list[int] = []
        self.loop.post(lambda: self.loop.post(lambda: turns.append(1)))
        self.run_until(lambda: bool(turns), "the connections' ends are reported")
        self.disk.close()
        self.loop.close()


@contextmanager
def real_on_uvloop(folder: Path) -> Iterator[World]:
    world = RealWorld(folder, Loop)
    yield world
    world.close()


@contextmanager
def real_on_asyncio(folder: Path) -> Iterator[World]:
    import asyncio

    world = RealWorld(folder, lambda: Loop(aio=asyncio.new_event_loop()))
    yield world
    world.close()


class TlsNetwork:
    """A network whose connections all use TLS."""

    def __init__(self, network: SocketNetwork, folder: Path) -> None:
        self._network = network
        properties = CertificateAuthority().issue("node").pem_files(folder)
        network.set_tls_profile("TEST", {**properties, "ssl.client.auth": "required"}, between_nodes=True)

    def bind(self, *address: Any, **options: Any) -> Listener:
        return self._network.bind(*address, tls="TEST", **options)

    def connect(self, *address: Any, **options: Any) -> Connection:
        return self._network.connect(*address, tls="TEST", **options)


@contextmanager
def real_with_tls(folder: Path) -> Iterator[Any]:
    own, stores = folder / "world", folder / "stores"
    own.mkdir()
    stores.mkdir()
    world: Any = RealWorld(own, Loop)
    network = world.network
    world.network = TlsNetwork(network, stores)
    yield world
    world.network = network
    world.close()


class VirtualWorld:
    """The ports of `tanist.sim`: one process on one host, in virtual time."""

    host = "host"
    patience_us = 600_000_000

    def __init__(self) -> None:
        self._scheduler = Scheduler()
        self._process = Process("test")
        self.clock = SimClock(self._scheduler, self._process)
        self.disk = SimDisk(self._scheduler, stream(7, "disk")).view(self._process)
        self.network = SimNetwork(self._scheduler, stream(7, "network")).view(self.host, self._process)
        self.random = SimRandom(stream(7, "node"))
        self.folder = "/data"
        self.disk.make_directory(self.folder)

    def run_until(self, condition: Callable[[], bool], what: str = "") -> None:
        # In steps, because a condition may be about the time alone.
        deadline_us = self._scheduler.now_us + self.patience_us
        while not condition():
            if self._scheduler.now_us > deadline_us:
                pytest.fail(f"did not come to pass: {what or condition}")
            self._scheduler.run_until(self._scheduler.now_us + 1000)


@contextmanager
def virtual(folder: Path) -> Iterator[World]:
    del folder
    yield VirtualWorld()


WORLDS: dict[str, Callable[[Path], AbstractContextManager[World]]] = {
    "uvloop": real_on_uvloop,
    "asyncio": real_on_asyncio,
    "tls": real_with_tls,
    "virtual": virtual,
}


@pytest.fixture(params=list(WORLDS))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with WORLDS[request.param](tmp_path) as world:
        yield world


class Recorder:
    """A handler that keeps its calls; `on` decides what else happens to a frame."""

    def __init__(self, on: Callable[[Recorder, bytes], None] | None = None) -> None:
        self.connection: Connection | None = None
        self.opened = 0
        self.frames: list[bytes] = []
        self.closed: list[str] = []
        self._on = on

    def on_open(self, connection: Connection) -> None:
        self.connection = connection
        self.opened += 1

    def on_frame(self, frame: memoryview) -> None:
        assert not frame.readonly
        self.frames.append(bytes(frame))
        if self._on is not None:
            self._on(self, self.frames[-1])

    def on_close(self, reason: str) -> None:
        self.closed.append(reason)

    def send(self, chunks: Sequence[Chunk]) -> None:
        assert self.connection is not None
        self.connection.send(chunks)


def framed(*chunks: Chunk) -> list[Chunk]:
    """The chunks with the length of all of them in front."""
    length = sum(chunk.length if isinstance(chunk, FileRange) else len(chunk) for chunk in chunks)
    return [length.to_bytes(4, "big"), *chunks]


class Pair:
    """A server that records every connection, and one client."""

    def __init__(
        self, world: World, on: Callable[[Recorder, bytes], None] | None = None, max_frame_bytes: int = 1 << 24
    ) -> None:
        self.world = world
        self.servers: list[Recorder] = []
        self._on = on
        self._max_frame_bytes = max_frame_bytes
        self.listener = world.network.bind(world.host, 0, self._accept, max_frame_bytes=max_frame_bytes)
        self.listener.open()
        self.client = Recorder()
        self.connection = self.connect(self.client)

    def connect(self, handler: ConnectionHandler) -> Connection:
        return self.world.network.connect(
            self.world.host, self.listener.port, handler, max_frame_bytes=self._max_frame_bytes
        )

    def opened(self) -> Recorder:
        """The server's side, once both sides are open."""
        self.world.run_until(lambda: self.client.opened == 1 and len(self.servers) >= 1, "connected")
        return self.servers[0]

    def _accept(self, connection: Connection) -> ConnectionHandler:
        server = Recorder(self._on)
        server.connection = connection
        self.servers.append(server)
        return server


@pytest.fixture
def pair(world: World) -> Pair:
    """A connected pair whose server only records."""
    pair = Pair(world)
    pair.opened()
    return pair


@pytest.fixture
def make_pair(world: World) -> Callable[..., Pair]:
    def make(on: Callable[[Recorder, bytes], None] | None = None, **options: int) -> Pair:
        return Pair(world, on, **options)

    return make


@pytest.fixture
def make_recorder() -> Callable[..., Recorder]:
    return Recorder


@pytest.fixture
def frame_of() -> Callable[..., list[Chunk]]:
    return framed

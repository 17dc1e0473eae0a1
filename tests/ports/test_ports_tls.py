"""What `Network` promises of TLS, by any that implements it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tanist.ports import TLS_CLIENT
from tanist.runtime.ports.loop import Loop
from tests.certificates import CertificateAuthority
from tests.ports.conftest import RealWorld, Recorder, VirtualWorld, framed


class Side:
    """A world, and profiles in it: SERVER asks for certificates, OPEN does not; ALICE has a certificate."""

    def __init__(self, world: Any, server: dict[str, str], alice: dict[str, str], identity: str) -> None:
        self.world = world
        self.identity = identity
        network = world.network
        network.set_tls_profile("SERVER", {**server, "ssl.client.auth": "required"}, between_nodes=False)
        network.set_tls_profile("OPEN", server, between_nodes=False)
        network.set_tls_profile("ALICE", alice, between_nodes=False)
        self.servers: list[Recorder] = []

    def listen(self, tls: str | None) -> int:
        listener = self.world.network.bind(self.world.host, 0, self._accept, max_frame_bytes=1000, tls=tls)
        listener.open()
        return int(listener.port)

    def dial(self, port: int, tls: str | None) -> Recorder:
        client = Recorder()
        client.connection = self.world.network.connect(self.world.host, port, client, max_frame_bytes=1000, tls=tls)
        return client

    def _accept(self, connection: Any) -> Recorder:
        server = Recorder(lambda recorder, frame: recorder.send(framed(frame)))
        server.connection = connection
        self.servers.append(server)
        return server


@contextmanager
def real(folder: Path) -> Iterator[Side]:
    world = RealWorld(folder, Loop)
    authority = CertificateAuthority()
    stores = [folder / "server", folder / "alice"]
    for each in stores:
        each.mkdir()
    server, alice = (
        authority.issue(name).pem_files(store) for name, store in zip(("server", "alice"), stores, strict=True)
    )
    yield Side(world, server, alice, "CN=alice,O=tanist\\, tests")
    world.close()


@contextmanager
def virtual(folder: Path) -> Iterator[Side]:
    del folder
    yield Side(VirtualWorld(), {}, {}, "CN=host")


SIDES: dict[str, Callable[[Path], Any]] = {"real": real, "virtual": virtual}


@pytest.fixture(params=list(SIDES))
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    with SIDES[request.param](tmp_path) as side:
        yield side


def test_the_server_learns_whose_certificate_it_is_before_the_first_frame(side: Side) -> None:
    client = side.dial(side.listen("SERVER"), "ALICE")
    assert client.connection is not None
    client.send(framed(b"early"))
    side.world.run_until(lambda: client.frames == [b"early"], "the echo")
    assert side.servers[0].connection is not None
    assert side.servers[0].connection.peer_identity == side.identity
    assert client.connection.peer_identity is not None
    assert client.opened == 1


def test_one_that_is_not_asked_for_a_certificate_is_nobody(side: Side) -> None:
    client = side.dial(side.listen("OPEN"), "ALICE")
    client.send(framed(b"hi"))
    side.world.run_until(lambda: client.frames == [b"hi"], "the echo")
    assert side.servers[0].connection is not None
    assert side.servers[0].connection.peer_identity is None


def test_without_tls_nobody_has_an_identity(side: Side) -> None:
    client = side.dial(side.listen(None), None)
    side.world.run_until(lambda: bool(client.opened and side.servers), "connected")
    for each in (client, side.servers[0]):
        assert each.connection is not None
        assert each.connection.peer_identity is None


def test_a_client_without_tls_gets_nothing_and_no_handler_hears_of_it(side: Side) -> None:
    client = side.dial(side.listen("OPEN"), None)
    client.send(framed(b"hello?"))
    side.world.run_until(lambda: bool(client.closed), "the end")
    assert client.frames == []
    assert side.servers == []


def test_a_tls_client_at_a_port_without_tls_is_recognised(side: Side) -> None:
    client = side.dial(side.listen(None), "ALICE")
    side.world.run_until(lambda: bool(client.closed and side.servers and side.servers[0].closed), "both ends")
    assert client.opened == 0
    assert TLS_CLIENT in side.servers[0].closed[0]
    assert "refused" not in client.closed[0]


def test_a_profile_that_there_is_not(side: Side) -> None:
    with pytest.raises(ValueError, match="there is no TLS profile NOBODY"):
        side.listen("NOBODY")
    with pytest.raises(ValueError, match="there is no TLS profile NOBODY"):
        side.dial(1, "NOBODY")


def test_a_connection_that_was_open_outlives_the_exchange_of_its_profile(side: Side) -> None:
    port = side.listen("OPEN")
    client = side.dial(port, "ALICE")
    side.world.run_until(lambda: client.opened == 1, "open")
    properties = {} if isinstance(side.world, VirtualWorld) else CertificateAuthority().issue("server").pem_values()
    side.world.network.set_tls_profile("OPEN", properties, between_nodes=False)
    client.send(framed(b"still here"))
    side.world.run_until(lambda: client.frames == [b"still here"], "the echo")

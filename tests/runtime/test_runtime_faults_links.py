"""Links that are cut or slow, on real sockets: what comes through, what does not, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tanist.ports import FileRange
from tanist.runtime.faults.links import LinkFaults
from tanist.runtime.faults.settings import CLIENTS, Fault, FaultSet, Partition, Slow
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.loop import Loop
from tanist.runtime.ports.network import SocketNetwork
from tests.certificates import CertificateAuthority


class Handler:
    """Notes what it hears; answers each frame with it if it `echoes`."""

    def __init__(self, echoes: bool = False) -> None:
        self.connection: Any = None
        self.opened = False
        self.frames: list[bytes] = []
        self.closed: list[str] = []
        self.echoes = echoes

    def on_open(self, connection: Any) -> None:
        self.opened = True

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        if self.echoes:
            self.connection.send([packed(bytes(frame))])

    def on_close(self, reason: str) -> None:
        self.closed.append(reason)


class Node:
    """A node's network, and the faults of its links."""

    def __init__(self, loop: Loop, node_id: int, folder: Path, **options: Any) -> None:
        self.node_id = node_id
        self.loop = loop
        properties = options.pop("tls", None)
        self.network = SocketNetwork(loop, **options)
        self._tls = None if properties is None else "NODES"
        if properties is not None:
            self.network.set_tls_profile("NODES", properties, between_nodes=True)
        self.accepted: list[Handler] = []
        self.listener = self.network.bind("127.0.0.1", 0, self._accept, max_frame_bytes=1 << 26, tls=self._tls)
        self.listener.open()
        self.faults = LinkFaults(loop, self.network, node_id, folder)

    @property
    def port(self) -> int:
        return self.listener.port

    def _accept(self, connection: Any) -> Handler:
        handler = Handler(echoes=True)
        handler.connection = connection
        self.accepted.append(handler)
        return handler

    def dial(self, other: Node) -> Handler:
        handler = Handler()
        handler.connection = self.network.connect(
            "127.0.0.1", other.port, handler, max_frame_bytes=1 << 26, tls=self._tls
        )
        return handler


class Client:
    """A plain socket."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._sock.setblocking(False)
        self._heard = b""

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    @property
    def heard(self) -> bytes:
        """All that has come so far."""
        with contextlib.suppress(BlockingIOError):
            self._heard += self._sock.recv(1 << 20)
        return self._heard

    def close(self) -> None:
        self._sock.close()


class Pair:
    """Nodes 1 and 2, and clients."""

    def __init__(self, runner: Any, folder: Path, **options: Any) -> None:
        self.runner = runner
        self.loop: Loop = runner.loop
        self.one, self.two = (Node(runner.loop, node_id, folder, **options) for node_id in (1, 2))
        self.set = FaultSet(ports={1: (self.one.port,), 2: (self.two.port,)})

    def order(self, *faults: Fault) -> None:
        self.set = FaultSet(self.set.number + 1, self.set.ports, faults)
        for node in (self.one, self.two):
            node.faults.apply(self.set)

    def heal(self) -> None:
        self.order()

    def until(self, condition: Callable[[], bool]) -> None:
        self.runner.until(condition)
        assert self.runner.failures == []

    def wait_ms(self, time_ms: int) -> None:
        """For what must not happen."""
        due: list[bool] = []
        self.loop.call_at(self.loop.now_ms() + time_ms, lambda: due.append(True))
        self.until(lambda: bool(due))

    def client(self, node: Node) -> Client:
        return Client(node.port)

    def is_as_before(self) -> bool:
        """No proxy is left, and the networks ask nobody."""
        return all(node.network.faults is None and not node.faults._relays for node in (self.one, self.two))


@pytest.fixture
def plain_pair(runner: Any, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(runner, tmp_path, connect_timeout_ms=300)
    yield pair
    pair.one.network.close()
    pair.two.network.close()


@pytest.fixture(params=["plain", "tls", "mutual"])
def pair(
    runner: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Pair]:
    options: dict[str, Any] = {"connect_timeout_ms": 300}
    if request.param != "plain":
        stores = tmp_path_factory.mktemp("stores")
        auth = "required" if request.param == "mutual" else "none"
        options["tls"] = {**CertificateAuthority().issue("node").pem_files(stores), "ssl.client.auth": auth}
    pair = Pair(runner, tmp_path, **options)
    yield pair
    pair.one.network.close()
    pair.two.network.close()


def packed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


PARTITION = Partition((1,), (2,))


def test_a_link_that_is_cut_is_silent_and_goes_on_where_it_was(pair: Pair) -> None:
    caller = pair.one.dial(pair.two)
    caller.connection.send([packed(b"before")])
    pair.until(lambda: caller.frames == [b"before"])
    pair.order(PARTITION)
    caller.connection.send([packed(b"into"), packed(b"nothing")])
    pair.two.accepted[0].connection.send([packed(b"nor back")])
    pair.wait_ms(60)
    assert caller.frames == [b"before"]
    assert pair.two.accepted[0].frames == [b"before"]
    assert caller.closed == pair.two.accepted[0].closed == []
    pair.heal()
    pair.until(lambda: caller.frames == [b"before", b"nor back", b"into", b"nothing"])
    pair.until(pair.is_as_before)
    caller.connection.send([packed(b"after")])
    pair.until(lambda: caller.frames[-1] == b"after")


def test_one_way(pair: Pair) -> None:
    """What 1 sends to 2 vanishes, on the connections that either of them has dialled; 2 reaches 1."""
    ours, theirs = pair.one.dial(pair.two), pair.two.dial(pair.one)
    pair.until(lambda: ours.opened and theirs.opened and bool(pair.one.accepted) and bool(pair.two.accepted))
    pair.order(Partition((1,), (2,), one_way=True))
    ours.connection.send([packed(b"lost")])
    theirs.connection.send([packed(b"arrives")])
    pair.until(lambda: pair.one.accepted[0].frames == [b"arrives"])
    pair.two.accepted[0].connection.send([packed(b"arrives too")])
    pair.until(lambda: ours.frames == [b"arrives too"])
    pair.wait_ms(60)
    assert theirs.frames == []  # the echo
    assert pair.two.accepted[0].frames == []
    pair.heal()
    pair.until(lambda: theirs.frames == [b"arrives"] and ours.frames == [b"arrives too", b"lost"])
    pair.until(pair.is_as_before)


@pytest.mark.parametrize("one_way", [False, True])
def test_a_connection_cannot_be_made_over_a_link_that_is_cut_either_way(pair: Pair, one_way: bool) -> None:
    """A handshake needs both directions."""
    pair.order(Partition((1,), (2,), one_way=one_way))
    callers = [pair.one.dial(pair.two), pair.two.dial(pair.one)]
    for caller in callers:
        caller.connection.send([packed(b"queued")])
    pair.until(lambda: all(caller.closed for caller in callers))
    assert {caller.closed[0] for caller in callers} == {"no answer within 300 ms"}
    assert not pair.one.accepted
    assert not pair.two.accepted


def test_an_attempt_to_connect_succeeds_if_the_link_heals_in_time(pair: Pair) -> None:
    pair.order(PARTITION)
    caller = pair.one.dial(pair.two)
    caller.connection.send([packed(b"patient")])
    pair.wait_ms(30)
    assert not caller.opened
    pair.heal()
    pair.until(lambda: caller.frames == [b"patient"])
    pair.until(pair.is_as_before)


def test_an_attempt_that_its_node_has_given_up_is_not_made_when_the_link_heals(pair: Pair) -> None:
    pair.order(PARTITION)
    caller = pair.one.dial(pair.two)
    pair.wait_ms(10)
    caller.connection.close()
    pair.heal()
    pair.until(lambda: bool(caller.closed))
    pair.wait_ms(30)
    assert pair.two.accepted == []


def test_the_other_side_hears_of_a_close_only_when_the_link_is_healed(pair: Pair) -> None:
    caller = pair.one.dial(pair.two)
    caller.connection.send([packed(b"before")])
    pair.until(lambda: caller.frames == [b"before"])
    pair.order(PARTITION)
    caller.connection.send([packed(b"last words")])
    pair.wait_ms(10)
    caller.connection.close()
    pair.wait_ms(60)
    there = pair.two.accepted[0]
    assert there.closed == []
    pair.heal()
    pair.until(lambda: there.closed != [])
    assert there.frames == [b"before", b"last words"]
    pair.until(pair.is_as_before)


def test_a_node_does_not_hear_that_the_other_has_died(pair: Pair) -> None:
    caller = pair.one.dial(pair.two)
    pair.until(lambda: caller.opened and bool(pair.two.accepted))
    pair.order(PARTITION)
    pair.two.network.close()
    pair.wait_ms(60)
    assert caller.closed == []
    pair.heal()
    pair.until(lambda: caller.closed == ["closed by the other side"])


def test_other_links_are_as_they_were(plain_pair: Pair, runner: Any, tmp_path: Path) -> None:
    pair = plain_pair
    third = Node(runner.loop, 3, tmp_path)
    pair.set = FaultSet(0, {**(pair.set.ports or {}), 3: (third.port,)})
    pair.order(PARTITION)
    third.faults.apply(pair.set)
    callers = [pair.one.dial(third), third.dial(pair.two)]
    for caller in callers:
        caller.connection.send([packed(b"through")])
    pair.until(lambda: all(caller.frames == [b"through"] for caller in callers))
    client = pair.client(pair.two)
    client.send(packed(b"from a client"))
    pair.until(lambda: client.heard == packed(b"from a client"))
    client.close()
    third.network.close()


def test_latency_holds_in_each_direction(pair: Pair) -> None:
    caller = pair.one.dial(pair.two)
    pair.until(lambda: caller.opened)
    pair.order(Slow((1,), (2,), latency_ms=40))
    began_ms = pair.loop.now_ms()
    caller.connection.send([packed(b"there")])
    pair.until(lambda: bool(pair.two.accepted) and pair.two.accepted[0].frames == [b"there"])
    assert pair.loop.now_ms() - began_ms >= 40
    pair.until(lambda: caller.frames == [b"there"])
    assert pair.loop.now_ms() - began_ms >= 80
    began_ms = pair.loop.now_ms()
    again = pair.one.dial(pair.two)
    pair.until(lambda: again.opened)
    assert pair.loop.now_ms() - began_ms >= 80
    pair.heal()
    pair.until(pair.is_as_before)


def test_latency_one_way(pair: Pair) -> None:
    caller = pair.one.dial(pair.two)
    pair.until(lambda: caller.opened)
    pair.order(Slow((2,), (1,), one_way=True, latency_ms=60_000))
    caller.connection.send([packed(b"quick there")])
    pair.until(lambda: bool(pair.two.accepted) and pair.two.accepted[0].frames == [b"quick there"])
    pair.wait_ms(30)
    assert caller.frames == []
    pair.heal()
    pair.until(lambda: caller.frames == [b"quick there"])


def test_rate(pair: Pair) -> None:
    caller = pair.one.dial(pair.two)
    pair.until(lambda: caller.opened)
    pair.order(Slow((1,), (2,), one_way=True, rate_bytes=1_000_000))
    began_ms = pair.loop.now_ms()
    caller.connection.send([packed(bytes(200_000))])
    pair.until(lambda: bool(caller.frames))
    assert pair.loop.now_ms() - began_ms >= 195


def test_jitter_keeps_the_order(pair: Pair) -> None:
    caller = pair.one.dial(pair.two)
    pair.until(lambda: caller.opened)
    pair.order(Slow((1,), (2,), jitter_ms=10))
    for number in range(200):
        caller.connection.send([packed(b"%d" % number)])
        if number % 20 == 0:
            pair.wait_ms(1)
    pair.until(lambda: len(caller.frames) == 200)
    assert caller.frames == [b"%d" % number for number in range(200)]


def test_what_a_very_slow_link_holds_comes_at_once_when_it_heals(pair: Pair) -> None:
    caller = pair.one.dial(pair.two)
    pair.until(lambda: caller.opened)
    pair.order(Slow((1,), (2,), rate_bytes=10))
    caller.connection.send([packed(bytes(5_000))])
    pair.wait_ms(30)
    pair.heal()
    pair.until(lambda: caller.frames == [bytes(5_000)])
    pair.until(pair.is_as_before)


def test_a_slow_link_takes_no_more_than_a_window(pair: Pair) -> None:
    """Beyond it the sender notices, as with TCP."""
    caller = pair.one.dial(pair.two)
    pair.until(lambda: caller.opened)
    pair.order(Slow((1,), (2,), latency_ms=60_000))
    for _ in range(30):
        caller.connection.send([packed(bytes(1 << 20))])
    pair.until(lambda: caller.connection.pending_bytes < 26 << 20)
    pair.wait_ms(50)
    assert caller.connection.pending_bytes > 20 << 20
    pair.heal()
    pair.until(lambda: len(caller.frames) == 30)
    assert all(frame == bytes(1 << 20) for frame in caller.frames)
    pair.until(pair.is_as_before)


def test_files_are_sent_through_a_slow_link(pair: Pair, tmp_path: Path) -> None:
    disk = RealDisk(pair.loop)
    data = os.urandom(3_000_000)
    file = disk.open(str(tmp_path / "log"))
    file.write(0, [struct.pack(">i", len(data)), data])
    caller = pair.one.dial(pair.two)
    pair.until(lambda: caller.opened)
    pair.order(Slow((1,), (2,), latency_ms=5))
    caller.connection.send([FileRange(file, 0, len(data) + 4)])
    pair.until(lambda: caller.frames == [data])
    pair.heal()
    pair.until(pair.is_as_before)
    caller.connection.send([FileRange(file, 0, len(data) + 4)])
    pair.until(lambda: caller.frames == [data, data])
    file.close()
    disk.close()


def test_what_waits_for_a_slow_reader_survives_the_fault(pair: Pair) -> None:
    """The connection has frames queued for a full socket when its socket is taken away, and when it comes back."""
    caller = pair.one.dial(pair.two)
    caller.connection.send([packed(b"hello")])
    pair.until(lambda: caller.frames == [b"hello"])
    there = pair.two.accepted[0]
    there.echoes = False
    there.connection.pause()
    for number in range(40):
        caller.connection.send([packed(bytes([number]) * (1 << 20))])
    pair.wait_ms(20)
    assert caller.connection.pending_bytes
    pair.order(Slow((1,), (2,), latency_ms=2))
    pair.wait_ms(20)
    there.connection.resume()
    pair.until(lambda: len(there.frames) > 2)
    there.connection.pause()  # now the proxy has to wait for the socket as well
    pair.wait_ms(30)
    there.connection.resume()
    pair.until(lambda: len(there.frames) > 10)
    pair.heal()
    pair.until(lambda: len(there.frames) == 41)
    assert [frame[:1] for frame in there.frames[1:]] == [bytes([number]) for number in range(40)]
    pair.until(pair.is_as_before)


# -- clients


def test_clients_are_cut_off_and_nodes_are_not(plain_pair: Pair) -> None:
    pair = plain_pair
    """Node 2 tells them apart though it has accepted both, those from before and new ones."""
    caller = pair.one.dial(pair.two)
    client = pair.client(pair.two)
    client.send(packed(b"before"))
    pair.until(lambda: client.heard == packed(b"before") and caller.opened)
    pair.order(Partition((CLIENTS,), (2,)))
    client.send(packed(b"lost"))
    caller.connection.send([packed(b"a node's")])
    pair.until(lambda: caller.frames == [b"a node's"])
    later = pair.one.dial(pair.two)
    later.connection.send([packed(b"another")])
    newcomer = pair.client(pair.two)  # the kernel accepts it, and then there is silence
    newcomer.send(packed(b"anybody there?"))
    pair.until(lambda: later.frames == [b"another"])
    pair.wait_ms(60)
    assert client.heard == packed(b"before")
    assert newcomer.heard == b""
    pair.heal()
    pair.until(lambda: client.heard == packed(b"before") + packed(b"lost"))
    pair.until(lambda: newcomer.heard == packed(b"anybody there?"))
    pair.until(pair.is_as_before)
    client.close()
    newcomer.close()


def test_a_client_that_gives_up_was_never_there(plain_pair: Pair) -> None:
    pair = plain_pair
    """Nothing that it had sent is acted on, and its connection does not stay behind."""
    pair.order(Partition((CLIENTS,), (2,)))
    client = pair.client(pair.two)
    client.send(packed(b"produce!"))
    pair.until(lambda: bool(pair.two.accepted))
    client.close()
    pair.until(lambda: pair.two.accepted[0].closed != [])
    assert pair.two.network.accepted == 0
    pair.heal()
    pair.until(pair.is_as_before)
    assert pair.two.accepted[0].frames == []


def test_slow_clients(plain_pair: Pair) -> None:
    pair = plain_pair
    pair.order(Slow((CLIENTS,), (2,), latency_ms=30))
    client = pair.client(pair.two)
    began_ms = pair.loop.now_ms()
    client.send(packed(b"late"))
    pair.until(lambda: client.heard == packed(b"late"))
    assert pair.loop.now_ms() - began_ms >= 60
    caller = pair.one.dial(pair.two)
    pair.until(lambda: caller.opened)
    pair.until(lambda: len(pair.two.faults._relays) == 1)  # claimed by its node, it is its own again
    client.close()


def test_claims_are_cleared_away(pair: Pair, tmp_path: Path) -> None:
    pair.order(Partition((CLIENTS,), (1, 2)))
    caller = pair.one.dial(pair.two)
    caller.connection.send([packed(b"claimed")])
    pair.until(lambda: caller.frames == [b"claimed"])
    assert list((tmp_path / "claims-2").iterdir()) == []
    pair.heal()
    pair.until(pair.is_as_before)
    assert list(tmp_path.iterdir()) == []


# -- anything

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 200_000)),
        st.tuples(st.just("answer"), st.integers(1, 200_000)),
        st.tuples(st.just("wait"), st.integers(1, 5)),
        st.tuples(st.just("fault"), st.integers(0, 5)),
    ),
    max_size=25,
)
_FAULTS: list[tuple[Fault, ...]] = [
    (),
    (PARTITION,),
    (Partition((1,), (2,), one_way=True),),
    (Partition((2,), (1,), one_way=True), Slow((1,), (2,), latency_ms=1)),
    (Slow((1,), (2,), latency_ms=2, jitter_ms=2),),
    (Slow((1,), (2,), rate_bytes=50_000_000),),
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([*[("send", 5_000)] * 4, ("answer", 123_819), ("send", 8_415), ("answer", 123_819), ("fault", 4)])
@given(_STEPS)
def test_a_connection_that_lives_on_loses_nothing(pair: Pair, steps: list[tuple[str, int]]) -> None:
    """Whatever happens to its link, each side gets exactly what the other has sent, in order, once all is healed."""
    caller = pair.one.dial(pair.two)
    caller.connection.send([packed(b"first")])
    pair.until(lambda: caller.frames == [b"first"])
    there = pair.two.accepted[-1]
    there.echoes = False
    caller.frames.clear()
    there.frames.clear()
    sent: list[bytes] = []
    answered: list[bytes] = []
    for what, size in steps:
        if what == "send":
            sent.append(bytes([len(sent)]) * size)
            caller.connection.send([packed(sent[-1])])
        elif what == "answer":
            answered.append(bytes([len(answered)]) * size)
            there.connection.send([packed(answered[-1])])
        elif what == "wait":
            pair.wait_ms(size)
        else:
            pair.order(*_FAULTS[size])
    pair.heal()
    pair.until(lambda: len(there.frames) >= len(sent) and len(caller.frames) >= len(answered))
    assert there.frames == sent
    assert caller.frames == answered
    pair.until(pair.is_as_before)
    caller.connection.close()
    pair.until(lambda: there.closed != [])

"""What `Network`, `Connection` and `ConnectionHandler` promise, by any that implements them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from tanist.ports import REFUSED, FileRange


def echo(server: Any, frame: bytes) -> None:
    server.send([len(frame).to_bytes(4, "big"), frame])


def test_both_sides_open_once_and_frames_flow_both_ways(world: Any, make_pair: Any, frame_of: Any) -> None:
    pair = make_pair(echo)
    server = pair.opened()
    pair.client.send(frame_of(b"to the server"))
    world.run_until(lambda: pair.client.frames == [b"to the server"], "the echo")
    assert server.frames == [b"to the server"]
    assert (pair.client.opened, server.opened) == (1, 0)
    assert ":" in server.connection.peer


def test_what_is_sent_before_the_connection_is_open_follows(world: Any, make_pair: Any, frame_of: Any) -> None:
    pair = make_pair(echo)
    memory = bytearray(b"early")
    pair.connection.send([(5).to_bytes(4, "big"), memoryview(memory)])
    memory[:] = b"later"  # a frame's memory is valid for its turn only: the connection has to have kept a copy
    pair.connection.send(frame_of(b"second"))
    world.run_until(lambda: len(pair.client.frames) == 2, "both echoes")
    assert pair.client.frames == [b"early", b"second"]


def test_refused(world: Any, make_recorder: Any) -> None:
    listener = world.network.bind(world.host, 0, lambda _: make_recorder(), max_frame_bytes=100)
    listener.open()
    port = listener.port
    listener.close()
    client = make_recorder()
    connection = world.network.connect(world.host, port, client, max_frame_bytes=100)
    assert client.closed == []  # never from inside the call
    connection.send([b"to nobody"])
    world.run_until(lambda: bool(client.closed), "refused")
    assert client.opened == 0
    assert len(client.closed) == 1
    assert REFUSED in client.closed[0]


def test_an_address_that_is_taken_and_does_not_listen_yet_refuses(world: Any, make_recorder: Any) -> None:
    server, clients = make_recorder(), [make_recorder(), make_recorder()]
    listener = world.network.bind(world.host, 0, lambda _: server, max_frame_bytes=100)
    world.network.connect(world.host, listener.port, clients[0], max_frame_bytes=100)
    world.run_until(lambda: bool(clients[0].closed), "refused")
    assert REFUSED in clients[0].closed[0]
    listener.open()
    listener.open()
    world.network.connect(world.host, listener.port, clients[1], max_frame_bytes=100)
    world.run_until(lambda: bool(clients[1].opened), "accepted")
    listener.close()
    listener.open()  # late: it stays closed
    client = make_recorder()
    world.network.connect(world.host, listener.port, client, max_frame_bytes=100)
    world.run_until(lambda: bool(client.closed), "refused again")
    assert REFUSED in client.closed[0]


def test_a_taken_port_is_an_os_error(world: Any, make_recorder: Any) -> None:
    listener = world.network.bind(world.host, 0, lambda _: make_recorder(), max_frame_bytes=100)
    listener.open()
    with pytest.raises(OSError, match=str(listener.port)) as caught:
        world.network.bind(world.host, listener.port, lambda _: make_recorder(), max_frame_bytes=100)
    assert caught.value.errno == errno.EADDRINUSE
    listener.close()


def test_close_is_reported_once_on_both_sides_and_never_from_inside(world: Any, pair: Any, frame_of: Any) -> None:
    server = pair.servers[0]
    pair.connection.close()
    pair.connection.close()
    assert pair.client.closed == []
    pair.connection.send(frame_of(b"dropped"))
    assert pair.connection.pending_bytes == 0
    world.run_until(lambda: bool(pair.client.closed and server.closed), "both ends are reported")
    assert (len(pair.client.closed), len(server.closed)) == (1, 1)
    assert server.frames == []


def test_what_was_sent_before_a_close_still_arrives(world: Any, make_pair: Any, frame_of: Any) -> None:
    def answer_and_close(server: Any, _: bytes) -> None:
        server.send(frame_of(b"goodbye"))
        server.connection.close()

    pair = make_pair(answer_and_close)
    pair.opened()
    pair.client.send(frame_of(b"hello"))
    world.run_until(lambda: bool(pair.client.closed), "the end")
    assert pair.client.frames == [b"goodbye"]


def test_no_frame_after_the_handler_has_closed(world: Any, make_pair: Any, frame_of: Any) -> None:
    pair = make_pair(lambda server, _: server.connection.close())
    server = pair.opened()
    pair.client.send(frame_of(b"one") + frame_of(b"two"))
    world.run_until(lambda: bool(server.closed and pair.client.closed), "the end")
    assert server.frames == [b"one"]


def test_connections_outlive_their_listener(world: Any, make_pair: Any, make_recorder: Any, frame_of: Any) -> None:
    pair = make_pair(echo)
    pair.opened()
    pair.listener.close()
    pair.client.send(frame_of(b"still here"))
    world.run_until(lambda: pair.client.frames == [b"still here"], "the echo")
    late = make_recorder()
    pair.connect(late)
    world.run_until(lambda: bool(late.closed), "the late one is refused")


def test_who_connects_to_a_paused_listener_waits(world: Any, make_recorder: Any, frame_of: Any) -> None:
    servers: list[Any] = []

    def accept(connection: Any) -> Any:
        server = make_recorder()
        server.connection = connection
        servers.append(server)
        listener.pause()
        return server

    listener = world.network.bind(world.host, 0, accept, max_frame_bytes=1000)
    listener.open()
    clients = [make_recorder() for _ in range(3)]
    for number, client in enumerate(clients):
        connection = world.network.connect(world.host, listener.port, client, max_frame_bytes=1000)
        connection.send(frame_of(b"%d" % number))
        world.run_until(lambda: bool(servers and servers[0].frames), "the first is heard")
    for accepted in (2, 3):
        _let_pass(world, 50)
        assert len(servers) == accepted - 1
        listener.resume()
        world.run_until(lambda accepted=accepted: len(servers) == accepted and bool(servers[-1].frames), "the next")
    assert servers[0].frames == [b"0"]
    assert sorted(server.frames[0] for server in servers) == [b"0", b"1", b"2"]  # handshakes end in any order
    listener.resume()
    listener.resume()
    listener.close()


def _let_pass(world: Any, time_ms: int) -> None:
    until_ms = world.clock.now_ms() + time_ms
    world.run_until(lambda: world.clock.now_ms() > until_ms, "time passes")


def test_those_who_wait_at_a_paused_listener_that_closes_are_reset(world: Any, make_recorder: Any) -> None:
    listener = world.network.bind(world.host, 0, lambda _: make_recorder(), max_frame_bytes=1000)
    listener.pause()
    listener.open()
    client = make_recorder()
    world.network.connect(world.host, listener.port, client, max_frame_bytes=1000)
    _let_pass(world, 50)  # it is in the system's backlog by now
    listener.close()
    world.run_until(lambda: bool(client.closed), "it is reset")
    listener.resume()  # late: it stays closed


def test_many_pipelined_frames_of_all_sizes_arrive_whole_and_in_order(
    world: Any, make_pair: Any, frame_of: Any
) -> None:
    pair = make_pair(echo)
    pair.opened()
    sizes = [0, 1, 3, 4, 4091, 4092, 4093, 5, 70_000, 2, 300_000, 9, 65_532, 65_536, 1_500_000, 7, 0]
    sent = [bytes([index]) * size for index, size in enumerate(sizes)] * 2
    for frame in sent:
        pair.client.send(frame_of(frame))
    world.run_until(lambda: len(pair.client.frames) == len(sent), "all echoes")
    assert pair.client.frames == sent
    assert pair.servers[0].frames == sent
    world.run_until(lambda: pair.connection.pending_bytes == 0, "nothing is pending")


def test_many_small_frames(world: Any, make_pair: Any, frame_of: Any) -> None:
    pair = make_pair(echo)
    pair.opened()
    sent = [index.to_bytes(4, "big") for index in range(5000)]
    for frame in sent:
        pair.client.send(frame_of(frame))
    world.run_until(lambda: len(pair.client.frames) == len(sent), "all echoes")
    assert pair.client.frames == sent


def test_a_frame_that_comes_in_small_pieces(world: Any, pair: Any) -> None:
    wire = (10).to_bytes(4, "big") + b"0123456789" + (3).to_bytes(4, "big") + b"abc"
    arrived = pair.servers[0].frames
    for index in range(len(wire)):
        pair.client.send([wire[index : index + 1]])
        world.run_until(lambda: pair.connection.pending_bytes == 0, "the byte is gone")
    world.run_until(lambda: len(arrived) == 2, "both frames")
    assert arrived == [b"0123456789", b"abc"]


@pytest.mark.parametrize("length", [101, 1 << 30, -1, -(1 << 31)])
def test_an_oversized_or_negative_frame_closes_its_connection_unread(world: Any, make_pair: Any, length: int) -> None:
    pair = make_pair(max_frame_bytes=100)
    server = pair.opened()
    pair.client.send([(100).to_bytes(4, "big"), bytes(100), length.to_bytes(4, "big", signed=True), b"rest"])
    world.run_until(lambda: bool(server.closed and pair.client.closed), "the end")
    assert server.frames == [bytes(100)]
    assert len(server.closed) == 1
    if length > 0:
        assert str(length) in server.closed[0]


def test_a_connection_may_be_given_another_bound_while_it_is_open(world: Any, make_pair: Any) -> None:
    """A client that has not authenticated yet may send little; then the broker takes more from it, or less again."""
    pair = make_pair(max_frame_bytes=100)
    server = pair.opened()
    accepted = pair.servers[0].connection
    accepted.set_max_frame_bytes(1000)
    pair.client.send([(1000).to_bytes(4, "big"), bytes(1000)])
    world.run_until(lambda: server.frames == [bytes(1000)], "the large frame")
    accepted.set_max_frame_bytes(10)
    pair.client.send([(10).to_bytes(4, "big"), bytes(10), (11).to_bytes(4, "big"), bytes(11)])
    world.run_until(lambda: bool(server.closed), "the end")
    assert server.frames[1:] == [bytes(10)]


def test_frame_memory_is_valid_until_the_callbacks_scheduled_by_then_have_run(
    world: Any, make_recorder: Any, frame_of: Any
) -> None:
    """A burst that comes in many reads: at each callback, the memory of its frame must still hold what it held."""
    kept: list[bytes] = []

    class Lender:
        def on_open(self, connection: Any) -> None: ...

        def on_close(self, reason: str) -> None: ...

        def on_frame(self, frame: memoryview) -> None:
            world.clock.call_soon(lambda: kept.append(bytes(frame)))

    listener = world.network.bind(world.host, 0, lambda _: Lender(), max_frame_bytes=1 << 24)
    listener.open()
    client = make_recorder()
    connection = world.network.connect(world.host, listener.port, client, max_frame_bytes=100)
    sent = [bytes([index % 251]) * (1 + index * 37 % 6000) for index in range(600)]
    for frame in sent:
        connection.send(frame_of(frame))
    world.run_until(lambda: len(kept) == len(sent), "every frame")
    assert kept == sent


class Keeper:
    """Pauses its connection with each turn that has frames, and keeps their memory until it resumes."""

    connection: Any = None

    def __init__(self, clock: Any, *, at_once: bool) -> None:
        self._clock = clock
        self._at_once = at_once
        """Pause inside `on_frame`, not in the callback that the frame has scheduled."""
        self.frames: list[bytes] = []
        self.kept: list[tuple[memoryview, bytes]] = []
        """The frames since the last pause: their memory, and what they held."""
        self.paused = False

    def on_open(self, connection: Any) -> None: ...

    def on_close(self, reason: str) -> None: ...

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        self.kept.append((frame, self.frames[-1]))
        if self._at_once:
            self._pause()
        else:
            self._clock.call_soon(self._pause)

    def _pause(self) -> None:
        self.paused = True
        self.connection.pause()

    def resume(self) -> None:
        self.paused = False
        self.kept = []
        self.connection.resume()

    @property
    def whole(self) -> bool:
        """Is everything in the kept memory that was in it?"""
        return all(memory == content for memory, content in self.kept)


@pytest.fixture
def make_keeper(world: Any, make_recorder: Any) -> Callable[..., tuple[Keeper, Any]]:
    """A keeper that has accepted, and the connection to it."""

    def make(*, at_once: bool) -> tuple[Keeper, Any]:
        keeper = Keeper(world.clock, at_once=at_once)

        def accept(connection: Any) -> Keeper:
            keeper.connection = connection
            return keeper

        listener = world.network.bind(world.host, 0, accept, max_frame_bytes=1 << 24)
        listener.open()
        connection = world.network.connect(world.host, listener.port, make_recorder(), max_frame_bytes=100)
        return keeper, connection

    return make


def pass_time(world: Any, ms: int) -> None:
    later = world.clock.now_ms() + ms
    world.run_until(lambda: world.clock.now_ms() >= later, "time passes")


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("size", [5, 5000, 65_532, 131_072, 300_000])
def test_the_memory_of_a_frame_stays_as_it_is_while_its_handler_pauses_the_connection(
    world: Any, make_keeper: Any, frame_of: Any, size: int, at_once: bool
) -> None:
    keeper, connection = make_keeper(at_once=at_once)
    first = b"a" * size
    connection.send(frame_of(first))
    world.run_until(lambda: keeper.paused, "the pause")
    rest = [b"b" * size, b"c", b"d" * 300_000, b"e" * size, b"f" * 70_000]
    for frame in rest:
        connection.send(frame_of(frame))
    pass_time(world, 10)
    assert keeper.frames == [first]
    assert keeper.whole
    while len(keeper.frames) < 6:
        keeper.resume()
        world.run_until(lambda: keeper.paused, "more frames")
        assert keeper.whole
    assert keeper.frames == [first, *rest]


@pytest.mark.parametrize("at_once", [True, False])
def test_all_frames_of_a_turn_stay_as_they_are_while_the_connection_is_paused(
    world: Any, make_keeper: Any, frame_of: Any, at_once: bool
) -> None:
    """A burst of all sizes, of which the other side has sent more than is delivered."""
    keeper, connection = make_keeper(at_once=at_once)
    sizes = [1, 0, 4091, 4092, 4093, 70_000, 2, 300_000, 9, 65_532, 65_536, 131_072, 131_073, 3, 3, 300_000]
    sent = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    for frame in sent:
        connection.send(frame_of(frame))
    pauses = 0
    while len(keeper.frames) < len(sent):
        world.run_until(lambda: keeper.paused, "a pause")
        delivered = len(keeper.frames)
        pass_time(world, 2)
        assert len(keeper.frames) == delivered
        assert keeper.whole
        pauses += 1
        keeper.resume()
    assert keeper.frames == sent
    assert pauses == len(sent) or not at_once


def test_the_memory_of_a_frame_outlives_a_connection_that_ends_while_it_is_paused(
    world: Any, make_keeper: Any, frame_of: Any
) -> None:
    keeper, connection = make_keeper(at_once=False)
    connection.send(frame_of(b"a" * 300_000))
    world.run_until(lambda: keeper.paused, "the pause")
    connection.send(frame_of(b"b" * 300_000))
    keeper.connection.close()
    pass_time(world, 10)
    assert keeper.whole
    keeper.connection.resume()  # of no effect
    pass_time(world, 2)
    assert keeper.frames == [b"a" * 300_000]


def test_a_frame_may_be_sent_on_from_its_own_memory(world: Any, make_recorder: Any, frame_of: Any) -> None:
    """Within its turn a frame's memory may be handed to `send`, also when the network does not take it all at once."""

    class Echo:
        connection: Any = None

        def on_open(self, connection: Any) -> None: ...

        def on_close(self, reason: str) -> None: ...

        def on_frame(self, frame: memoryview) -> None:
            self.connection.send([len(frame).to_bytes(4, "big"), frame])

    def accept(connection: Any) -> Echo:
        handler = Echo()
        handler.connection = connection
        return handler

    listener = world.network.bind(world.host, 0, accept, max_frame_bytes=1 << 24)
    listener.open()
    client = make_recorder()
    connection = world.network.connect(world.host, listener.port, client, max_frame_bytes=1 << 24)
    sent = [bytes([index % 251]) * 200_000 for index in range(60)]
    for frame in sent:
        connection.send(frame_of(frame))
    world.run_until(lambda: len(client.frames) == len(sent), "every echo")
    assert client.frames == sent


def test_a_paused_connection_delivers_nothing_and_loses_nothing(world: Any, make_pair: Any, frame_of: Any) -> None:
    pair = make_pair(lambda server, frame: server.connection.pause() if frame == b"stop" else None)
    server = pair.opened()
    pair.client.send(frame_of(b"one") + frame_of(b"stop") + frame_of(b"two"))
    world.run_until(lambda: len(server.frames) == 2, "up to the stop")
    pair.client.send(frame_of(b"three"))
    later = world.clock.now_ms() + 30
    world.run_until(lambda: world.clock.now_ms() >= later, "time passes")
    assert server.frames == [b"one", b"stop"]
    server.connection.resume()
    server.connection.resume()
    assert server.frames == [b"one", b"stop"]  # not from inside the call
    world.run_until(lambda: len(server.frames) == 4, "the rest")
    assert server.frames == [b"one", b"stop", b"two", b"three"]


def test_a_receiver_that_does_not_read_holds_the_sender_back(world: Any, make_pair: Any, frame_of: Any) -> None:
    pair = make_pair(lambda server, frame: server.connection.pause() if frame == b"stop" else None)
    server = pair.opened()
    pair.client.send(frame_of(b"stop"))
    world.run_until(lambda: server.frames == [b"stop"], "the stop")
    big = bytes(1 << 20)
    for _ in range(24):
        pair.client.send(frame_of(big))
    later = world.clock.now_ms() + 30
    world.run_until(lambda: world.clock.now_ms() >= later, "time passes")
    assert pair.connection.pending_bytes > 1 << 20
    assert server.frames == [b"stop"]
    server.connection.resume()
    world.run_until(lambda: len(server.frames) == 25, "everything arrives")
    assert server.frames[1:] == [big] * 24
    world.run_until(lambda: pair.connection.pending_bytes == 0, "nothing is pending")


def test_closing_a_connection_that_is_held_back_drops_the_rest(world: Any, make_pair: Any, frame_of: Any) -> None:
    pair = make_pair(lambda server, _: server.connection.pause())
    server = pair.opened()
    pair.client.send(frame_of(b"stop"))
    world.run_until(lambda: bool(server.frames), "the stop")
    for _ in range(24):
        pair.client.send(frame_of(bytes(1 << 20)))
    world.run_until(lambda: True)
    pair.connection.close()
    assert pair.connection.pending_bytes == 0
    world.run_until(lambda: bool(pair.client.closed), "reported")
    assert len(pair.client.closed) == 1


def test_ranges_of_files_are_sent_between_bytes(world: Any, make_pair: Any, frame_of: Any) -> None:
    file = world.disk.open(f"{world.folder}/segment.log")
    content = b"".join(index.to_bytes(4, "big") for index in range(600_000))
    file.write(0, [content])
    ranges = [FileRange(file, 10, 100), FileRange(file, 0, len(content)), FileRange(file, 1_000_001, 0)]
    pair = make_pair()
    server = pair.opened()
    pair.client.send(frame_of(b"head", ranges[0], b"middle", ranges[1], ranges[2], b"end"))
    pair.client.send(frame_of(ranges[0]))
    file.close()  # what is queued is still sent
    world.run_until(lambda: len(server.frames) == 2, "both frames")
    assert server.frames[0] == b"head" + content[10:110] + b"middle" + content + b"end"
    assert server.frames[1] == content[10:110]


def test_a_range_beyond_the_file_ends_the_connection(world: Any, pair: Any, frame_of: Any) -> None:
    file = world.disk.open(f"{world.folder}/short.log")
    file.write(0, [b"short"])
    pair.client.send(frame_of(FileRange(file, 0, 100)))
    world.run_until(lambda: bool(pair.client.closed and pair.servers[0].closed), "the end")
    assert pair.servers[0].frames == []


def test_a_range_of_a_file_that_is_closed_ends_the_connection(world: Any, pair: Any, frame_of: Any) -> None:
    file = world.disk.open(f"{world.folder}/closed.log")
    file.write(0, [b"content"])
    file.close()
    pair.client.send(frame_of(FileRange(file, 0, 7)))
    world.run_until(lambda: bool(pair.client.closed and pair.servers[0].closed), "the end")
    assert pair.servers[0].frames == []


def test_more_chunks_than_a_system_call_takes(world: Any, pair: Any) -> None:
    chunks = [bytes([index % 256]) for index in range(5000)]
    pair.client.send([(5000).to_bytes(4, "big"), *chunks])
    world.run_until(lambda: bool(pair.servers[0].frames), "the frame")
    assert pair.servers[0].frames == [b"".join(chunks)]


def test_many_clients_at_once(world: Any, make_pair: Any, make_recorder: Callable[..., Any], frame_of: Any) -> None:
    pair = make_pair(echo)
    clients = [make_recorder() for _ in range(200)]
    for index, client in enumerate(clients):
        pair.connect(client).send(frame_of(b"%d" % index))
    world.run_until(lambda: all(client.frames for client in clients), "every echo")
    assert [client.frames for client in clients] == [[b"%d" % index] for index in range(200)]

"""What the sockets do beyond the contract: limits, descriptors, buffers, slow and broken peers."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tanist.ports import FileRange
from tanist.runtime.ports import receive_buffer
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.network import SocketNetwork
from tests.runtime.network_rig import Handler, frame, sending


def test_at_the_limit_of_connections_the_next_waits_until_one_closes(runner: Any, serve: Any) -> None:
    server = serve(max_connections=2)
    clients = [server.client() for _ in range(4)]
    for client in clients:
        client.sendall(frame(b"here"))
    runner.until(lambda: [handler.frames for handler in server.handlers] == [[b"here"]] * 2)
    runner.until(lambda: server.exhausted != [])
    assert server.network.accepted == 2
    clients[0].close()
    runner.until(lambda: len(server.handlers) == 3 and bool(server.handlers[2].frames))
    clients[1].close()
    runner.until(lambda: len(server.handlers) == 4 and bool(server.handlers[3].frames))
    assert server.network.accepted == 2


@contextmanager
def few_descriptors() -> Iterator[Callable[[int], None]]:
    """A function that leaves the process so many descriptors; call it on the loop, which opens some when it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def leave(spare: int) -> None:
        probe = os.dup(0)
        os.close(probe)
        resource.setrlimit(resource.RLIMIT_NOFILE, (probe + spare, hard))

    try:
        yield leave
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_out_of_descriptors_accepting_rests_and_then_goes_on(runner: Any, serve: Any) -> None:
    server = serve()
    clients = [server.client() for _ in range(3)]
    for client in clients:
        client.sendall(frame(b"here"))
    with few_descriptors() as leave:
        server.listener.rest()
        runner.loop.post(lambda: (leave(1), server.listener.watch()))
        runner.until(lambda: server.exhausted != [])
        assert len(server.handlers) <= 1
        assert "Too many open files" in server.exhausted[0][1]
    runner.until(lambda: len(server.handlers) == 3 and all(handler.frames for handler in server.handlers))
    assert len(server.exhausted) == 1
    assert runner.failures == []


def test_out_of_descriptors_a_connect_ends_with_a_reason(runner: Any, serve: Any) -> None:
    server = serve()
    handler = Handler()
    with few_descriptors() as leave:
        runner.loop.post(lambda: leave(0))
        server.network.connect("127.0.0.1", server.listener.port, handler, max_frame_bytes=100)
        runner.until(lambda: handler.closed != [])
    assert "Too many open files" in handler.closed[0]


def test_opening_a_file_out_of_descriptors_says_what_to_do(runner: Any, tmp_path: Any) -> None:
    disk = RealDisk(runner.loop)
    disk.open(f"{tmp_path}/a").close()
    with few_descriptors() as leave:
        leave(0)
        with pytest.raises(OSError, match="ulimit -n") as caught:
            disk.open(f"{tmp_path}/a")
    assert caught.value.errno == errno.EMFILE


def test_a_reset_by_the_peer_is_reported(runner: Any, serve: Any) -> None:
    server = serve()
    client = server.client()
    runner.until(lambda: len(server.handlers) == 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    runner.until(lambda: server.handlers[0].closed != [])
    assert "reset" in server.handlers[0].closed[0].lower()
    assert server.network.accepted == 0


def test_an_error_in_a_handler_closes_its_connection_only(runner: Any, serve: Any) -> None:
    def on(_: Handler, body: bytes) -> None:
        if body == b"bad":
            raise ValueError("cannot")

    server = serve(on)
    good, bad = server.client(), server.client()
    bad.sendall(frame(b"bad") + frame(b"after"))
    good.sendall(frame(b"good"))
    runner.until(lambda: len(server.handlers) == 2 and any(handler.closed for handler in server.handlers))
    runner.until(lambda: any(handler.frames == [b"good"] for handler in server.handlers))
    assert [where for where, _ in runner.failures] == ["on_frame"]
    assert bad.recv(1) == b""
    assert sorted(handler.frames for handler in server.handlers) == [[b"bad"], [b"good"]]


def test_a_declared_length_alone_takes_no_memory(runner: Any, serve: Any) -> None:
    server = serve()
    client = server.client()
    client.sendall(struct.pack(">i", 1 << 24) + b"x" * 10)
    runner.until(lambda: len(server.handlers) == 1 and server.handlers[0].connection._received.written == 14)
    client.sendall(b"y")
    runner.until(lambda: server.handlers[0].connection._received.written == 15)
    assert len(server.handlers[0].connection._received.view) <= receive_buffer.RECEIVE_BYTES_KEPT


def test_a_buffer_grows_for_a_big_frame_and_is_given_back_when_idle(runner: Any, serve: Any) -> None:
    server = serve()
    server.network.sweep_ms = 10
    client = server.client()
    body = os.urandom(5_000_000)
    all_sent = sending(client, frame(body))
    runner.until(lambda: all_sent() and bool(server.handlers and server.handlers[0].frames))
    assert server.handlers[0].frames == [body]
    served = server.handlers[0].connection
    runner.until(lambda: served._received.view is None)
    client.setblocking(True)
    client.sendall(frame(b"small"))
    runner.until(lambda: len(server.handlers[0].frames) == 2)
    assert len(served._received.view) == receive_buffer.RECEIVE_BYTES_MIN


def test_a_busy_connection_of_small_frames_gives_back_what_a_big_one_took(runner: Any, serve: Any) -> None:
    server = serve()
    client = server.client()
    client.sendall(frame(bytes(60_000)))
    runner.until(lambda: bool(server.handlers and server.handlers[0].frames))
    served = server.handlers[0].connection
    assert len(served._received.view) >= 60_004
    served.shrink()
    client.sendall(frame(b"small"))
    runner.until(lambda: len(server.handlers[0].frames) == 2)
    assert served.shrink()
    assert len(served._received.view) == receive_buffer.RECEIVE_BYTES_MIN


def test_the_sizes_of_a_sockets_buffers_are_the_kernels_unless_they_are_set(runner: Any, serve: Any) -> None:
    def sizes(**options: int) -> tuple[int, int]:
        server = serve(**options)
        client = server.client()
        runner.until(lambda: len(server.handlers) == 1)
        accepted = server.handlers[0].connection._sock
        client.close()
        return tuple(accepted.getsockopt(socket.SOL_SOCKET, name) for name in (socket.SO_SNDBUF, socket.SO_RCVBUF))

    left_alone = sizes()
    sends, receives = sizes(send_buffer_bytes=30_000, receive_buffer_bytes=40_000)
    assert (sends, receives) != left_alone
    assert 30_000 <= sends <= 60_000, "Linux doubles it, for its own bookkeeping"
    assert 40_000 <= receives <= 80_000


def test_an_idle_connection_costs_little(runner: Any, serve: Any) -> None:
    server = serve()
    clients = [server.client() for _ in range(20)]
    runner.until(lambda: len(server.handlers) == 20)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    clients += [server.client() for _ in range(200)]
    for client in clients:
        client.sendall(frame(b"hello"))
    runner.until(lambda: sum(len(handler.frames) for handler in server.handlers) == 220)
    cost = (tracemalloc.get_traced_memory()[0] - before) / 200
    tracemalloc.stop()
    for client in clients:
        client.close()
    assert cost < 10_000


def test_a_slow_reader_of_a_file_keeps_it_open_and_gets_all(runner: Any, serve: Any, tmp_path: Any) -> None:
    disk = RealDisk(runner.loop)
    file = disk.open(f"{tmp_path}/segment")
    content = os.urandom(1 << 20) * 20
    file.write(0, [content])

    def on(handler: Handler, _: bytes) -> None:
        handler.connection.send([struct.pack(">i", len(content)), FileRange(file, 0, len(content))])
        file.close()

    server = serve(on)
    client = server.client()
    client.sendall(frame(b"fetch"))
    runner.until(lambda: bool(server.handlers and server.handlers[0].frames))
    assert file.fd >= 0
    got = bytearray()
    client.setblocking(False)

    def read_all() -> bool:
        try:
            while chunk := client.recv(1 << 16):
                got.extend(chunk)
                if len(got) % 7 == 0:
                    break
        except BlockingIOError:
            return len(got) == len(content) + 4
        return False

    runner.until(read_all)
    assert got[4:] == content
    assert file.fd == -1


def test_a_connection_that_ends_lets_go_of_its_files(runner: Any, serve: Any, tmp_path: Any) -> None:
    file = RealDisk(runner.loop).open(f"{tmp_path}/segment")
    file.write(0, [bytes(20 << 20)])

    def on(handler: Handler, _: bytes) -> None:
        handler.connection.send([FileRange(file, 0, file.size), FileRange(file, 0, file.size)])
        file.close()

    server = serve(on)
    client = server.client()
    client.sendall(frame(b"fetch"))
    runner.until(lambda: bool(server.handlers and server.handlers[0].frames))
    assert file.fd >= 0
    client.close()
    runner.until(lambda: server.handlers[0].closed != [])
    assert file.fd == -1


def test_small_answers_leave_in_one_system_call_and_so_do_small_records(runner: Any, serve: Any, tmp_path: Any) -> None:
    disk = RealDisk(runner.loop)
    file = disk.open(f"{tmp_path}/segment")
    file.write(0, [b"_records_"])
    sent: list[int] = []

    def on(handler: Handler, body: bytes) -> None:
        connection = handler.connection
        send = connection._sock_send

        def counted(chunk: Any, flags: int = 0) -> int:
            sent.append(send(chunk, flags))
            return sent[-1]

        connection._sock_send = counted
        connection.send([frame(b"%d" % index) for index in range(10)])
        connection.send([struct.pack(">i", 11), b"head", FileRange(file, 1, 7)])
        connection.send([struct.pack(">i", 9), memoryview(bytearray(b"tail")), b"", FileRange(file, 4, 5)])

    server = serve(on)
    client = server.client()
    client.sendall(frame(b"ask"))
    runner.until(lambda: len(sent) == 3)
    expected = b"".join(frame(b"%d" % index) for index in range(10)) + frame(b"headrecords") + frame(b"tailords_")
    assert sum(sent) == len(expected)
    assert client.recv(1000) == expected


def test_a_file_that_is_shorter_than_what_is_sent_of_it_ends_the_connection(
    runner: Any, serve: Any, tmp_path: Any
) -> None:
    """The frame that was begun can't be finished: its reader must not wait for the rest."""
    disk = RealDisk(runner.loop)
    file = disk.open(f"{tmp_path}/segment")
    file.write(0, [bytes(100)])

    def on(handler: Handler, body: bytes) -> None:
        handler.connection.send([struct.pack(">i", int(body)), FileRange(file, 0, int(body))])

    for size in (101, 100_000):
        server = serve(on)
        client = server.client()
        client.sendall(frame(b"%d" % size))
        runner.until(lambda server=server: bool(server.handlers) and server.handlers[0].closed != [])
        assert "shorter" in server.handlers[0].closed[0]


@pytest.mark.parametrize("takes", [0, 1, 5, 6, 7, 11, 12, 13])
def test_what_the_network_takes_in_part_arrives_whole(runner: Any, serve: Any, tmp_path: Any, takes: int) -> None:
    """Head, a range of a file, tail: cut off after any number of bytes, as a full socket buffer does."""
    disk = RealDisk(runner.loop)
    file = disk.open(f"{tmp_path}/segment")
    file.write(0, [b"_records_"])
    left = takes

    def short(size: int) -> int:
        nonlocal left
        size, left = min(size, left), left - min(size, left)
        if size == 0:
            raise BlockingIOError
        return size

    def on(handler: Handler, _: bytes) -> None:
        connection = handler.connection
        whole = connection._sock_send
        connection._sock_send = lambda data: whole(data[: short(len(data))])
        connection.send([frame(b"head" + bytes(8))[:6], FileRange(file, 1, 7), b"tail"])
        assert connection.pending_bytes == 17 - takes
        file.close()

    server = serve(on)
    client = server.client()
    client.sendall(frame(b"fetch"))
    got = bytearray()
    client.setblocking(False)

    def arrived() -> bool:
        with contextlib.suppress(BlockingIOError):
            got.extend(client.recv(100))
        return len(got) == 17

    runner.until(arrived)
    assert bytes(got) == frame(b"head" + bytes(8))[:6] + b"records" + b"tail"
    runner.until(lambda: file.fd == -1)


def test_names_are_looked_up_and_unknown_ones_end_the_connection(runner: Any, serve: Any) -> None:
    server = serve()
    known, unknown = Handler(), Handler()
    server.network.connect("localhost", server.listener.port, known, max_frame_bytes=100)
    server.network.connect("no-such-host.invalid", 1, unknown, max_frame_bytes=100)
    runner.until(lambda: known.connection is not None and unknown.closed != [])
    assert "no-such-host.invalid" in unknown.closed[0]


def test_a_host_that_does_not_answer_times_out(runner: Any) -> None:
    """A full backlog drops the handshake, as a dead host would."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
            fillers.append(filler)
        network = SocketNetwork(runner.loop, connect_timeout_ms=50)
        handler = Handler()
        network.connect("127.0.0.1", deaf.getsockname()[1], handler, max_frame_bytes=100)
        runner.until(lambda: handler.closed != [])
        for filler in fillers:
            filler.close()
    assert "50 ms" in handler.closed[0]


def test_listening_on_every_interface(runner: Any, serve: Any) -> None:
    server = serve()
    listener = server.network.bind("", 0, Handler, max_frame_bytes=100)
    listener.open()
    handler = Handler()
    server.network.connect("127.0.0.1", listener.port, handler, max_frame_bytes=100)
    runner.until(lambda: handler.connection is not None)


def test_timers_and_callbacks_that_ask_for_themselves_do_not_starve_input(runner: Any, serve: Any) -> None:
    server = serve()
    loop = runner.loop
    stop: list[bool] = []

    def soon_again() -> None:
        if not stop:
            loop.call_soon(soon_again)

    def timer_again() -> None:
        if not stop:
            loop.call_at(loop.now_ms(), timer_again)

    soon_again()
    timer_again()
    client = server.client()
    client.sendall(frame(b"hello"))
    runner.until(lambda: bool(server.handlers) and server.handlers[0].frames == [b"hello"])
    stop.append(True)

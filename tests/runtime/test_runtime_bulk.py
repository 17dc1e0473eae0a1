"""Large transfers take part of a pass of the loop: what small requests wait for; nothing is lost or reordered."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tanist.ports import Connection, FileRange
from tanist.runtime.ports.bulk import BULK_BYTES, LARGE_WRITE_BYTES, SENT_PER_PASS, Bulk
from tanist.runtime.ports.disk import RealDisk
from tests.runtime.network_rig import Handler, frame, sending

LARGE = BULK_BYTES + 1


def test_a_pass_sends_so_much_of_large_ranges_and_no_more(
    runner: Any, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(1 << 20)
    (tmp_path / "log").write_bytes(data)
    file = RealDisk(runner.loop).open(str(tmp_path / "log"))
    client = serve(lambda handler, _: handler.connection.send([FileRange(file, 0, len(data))])).client
    passes = [0]
    sendfile = os.sendfile

    def counted(out: int, source: int, offset: int, count: int) -> int:
        sent = sendfile(out, source, offset, count)
        passes[-1] += sent
        return sent

    def next_pass() -> None:
        passes.append(0)
        runner.loop.post(next_pass)

    monkeypatch.setattr(os, "sendfile", counted)
    readers = [client() for _ in range(12)]
    runner.loop.post(next_pass)
    for reader in readers:
        reader.sendall(frame(b"all of it"))
        reader.setblocking(False)
    got = {reader: bytearray() for reader in readers}

    def all_read() -> bool:
        for reader, found in got.items():
            try:
                found += reader.recv(1 << 20)
            except BlockingIOError:
                continue
        return all(len(found) == len(data) for found in got.values())

    runner.until(all_read)
    assert all(found == data for found in got.values())
    assert max(passes) <= 2 * SENT_PER_PASS  # what was asked for at once is twelve times as much


class PlainLoop:
    """Callbacks by hand, and a record of the turns."""

    def __init__(self) -> None:
        self.posted: list[Callable[[], None]] = []
        self.events: list[str] = []

    def post(self, callback: Callable[[], None]) -> None:
        self.posted.append(callback)

    def finish_turn(self) -> None:
        self.events.append("turn")

    def run_pass(self) -> None:
        posted, self.posted = self.posted, []
        for callback in posted:
            callback()


def test_large_frames_have_turns_of_their_own_one_a_pass() -> None:
    loop = PlainLoop()
    bulk = Bulk(loop)
    for name in ("first", "second"):
        bulk.deliver_later(lambda name=name: loop.events.append(name))  # type: ignore[misc]
    loop.run_pass()
    assert loop.events == ["turn", "first", "turn"]
    loop.run_pass()
    assert loop.events[3:] == ["turn", "second", "turn"]
    loop.run_pass()
    assert len(loop.events) == 6


def test_a_frame_that_cannot_be_handled_holds_no_other_up() -> None:
    loop = PlainLoop()
    bulk = Bulk(loop)

    def fails() -> None:
        raise ValueError("cannot")

    bulk.deliver_later(fails)
    bulk.deliver_later(lambda: loop.events.append("second"))
    with pytest.raises(ValueError, match="cannot"):
        loop.run_pass()
    loop.run_pass()
    assert "second" in loop.events


def test_small_requests_are_answered_while_large_ones_wait(runner: Any, serve: Any) -> None:
    """All are at hand in one pass: without a share, three large ones would be handled first."""
    order: list[int] = []
    client = serve(lambda _, body: order.append(len(body))).client
    large = [client() for _ in range(3)]
    for each in large:
        each.sendall(frame(bytes(LARGE)))  # their buffers have grown from here on: one `recv` brings a whole frame
    runner.until(lambda: len(order) == 3)
    small = client()
    small.sendall(frame(b"1"))
    runner.until(lambda: order[3:] == [1])
    for each in large:
        each.sendall(frame(bytes(LARGE)))
    small.sendall(frame(b"1"))
    runner.until(lambda: len(order) == 8)
    assert order[4:] == [1, LARGE, LARGE, LARGE]


def test_a_frame_that_may_be_lent_to_a_late_write_has_a_turn_of_its_own(runner: Any, serve: Any) -> None:
    """In its turn nothing is appended that lies in the frames of others, which are not held."""
    turns: list[tuple[int, int]] = []
    client = serve(lambda _, body: turns.append((len(body), runner.loop.turn))).client
    large, small = client(), client()
    for count in (1, 2):  # by the second time its buffer has grown: one `recv` brings a whole frame
        large.sendall(frame(bytes(LARGE_WRITE_BYTES)))
        small.sendall(frame(b"1"))
        runner.until(lambda count=count: len(turns) == 2 * count)
    by_size = dict(turns[2:])
    assert by_size[LARGE_WRITE_BYTES] != by_size[1]


def test_frames_of_one_connection_keep_their_order(runner: Any, serve: Any) -> None:
    sizes = [10, LARGE, 20, LARGE + 5, LARGE, 0, 3 * LARGE, 30]
    order: list[int] = []
    client = serve(lambda _, body: order.append(len(body))).client()
    all_sent = sending(client, b"".join(frame(bytes(size)) for size in sizes))
    runner.until(lambda: all_sent() and len(order) == len(sizes))
    assert order == sizes


def test_a_paused_connection_keeps_a_large_frame_until_it_is_resumed(runner: Any, serve: Any) -> None:
    order: list[int] = []
    held: list[Connection] = []

    def on(handler: Handler, body: bytes) -> None:
        order.append(len(body))
        if not held:
            held.append(handler.connection)
            handler.connection.pause()

    client = serve(on).client()
    client.sendall(frame(b"first") + frame(bytes(LARGE)))
    runner.until(lambda: order == [5])
    passed = runner.loop.now_ms() + 30
    runner.until(lambda: runner.loop.now_ms() > passed)
    assert order == [5]
    runner.loop.post(held[0].resume)
    runner.until(lambda: order == [5, LARGE])


def test_a_connection_that_ends_while_its_large_frame_waits_delivers_nothing(runner: Any, serve: Any) -> None:
    order: list[int] = []
    connections: list[Connection] = []

    def on(handler: Handler, body: bytes) -> None:
        order.append(len(body))
        connections.append(handler.connection)
        if body == b"end it":
            connections[0].close()

    client = serve(on).client
    large, small = client(), client()
    large.sendall(frame(bytes(LARGE)))
    runner.until(lambda: order == [LARGE])
    large.sendall(frame(bytes(LARGE)))
    small.sendall(frame(b"end it"))
    passed = runner.loop.now_ms() + 30
    runner.until(lambda: len(order) > 1 and runner.loop.now_ms() > passed)
    assert order == [LARGE, 6]
    assert runner.failures == []

"""Links that break, machines that fall silent, processes that do not read: what the other side gets to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from tanist.ports import Connection
from tanist.sim.world.clock import stream
from tanist.sim.world.connection import SimConnection
from tanist.sim.world.disk import SimDisk
from tanist.sim.world.link_conditions import NetworkConditions
from tanist.sim.world.network import SimNetwork
from tanist.sim.world.scheduler import Process, Scheduler

SECOND = 1_000_000


@dataclass
class End:
    """A handler that keeps all that it receives, with the times."""

    scheduler: Scheduler
    connection: Connection | None = None
    frames: list[bytes] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    opened_us: int = -1
    kept: list[memoryview] = field(default_factory=list)

    def on_open(self, connection: Connection) -> None:
        self.connection = connection
        self.opened_us = self.scheduler.now_us

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        self.kept.append(frame)

    def on_close(self, reason: str) -> None:
        self.closed.append(reason)

    def send(self, data: bytes) -> None:
        assert self.connection is not None
        self.connection.send([len(data).to_bytes(4, "big"), data])


class Net:
    """Two hosts, a listener on `b`."""

    def __init__(self, **conditions: Any) -> None:
        self.scheduler = Scheduler()
        self.network = SimNetwork(self.scheduler, stream(5, "network"), NetworkConditions(**conditions))
        self.a, self.b = Process("a"), Process("b")
        self.accepted: list[End] = []
        self.listen()

    def listen(self) -> None:
        def accept(connection: Connection) -> End:
            end = End(self.scheduler, connection)
            self.accepted.append(end)
            return end

        self.listener = self.network.view("b", self.b).bind("b", 9092, accept, max_frame_bytes=1 << 20)
        self.listener.open()

    def dial(self) -> End:
        end = End(self.scheduler)
        end.connection = self.network.view("a", self.a).connect("b", 9092, end, max_frame_bytes=1 << 20)
        return end

    def connect(self) -> tuple[End, End]:
        client = self.dial()
        self.wait(0.1)
        assert client.opened_us >= 0
        return client, self.accepted[-1]

    def wait(self, seconds: float) -> None:
        self.scheduler.run_until(self.scheduler.now_us + int(seconds * SECOND))

    def kill(self, process: Process) -> None:
        process.end()
        self.network.killed(process)


@pytest.fixture
def net() -> Net:
    return Net()


def test_a_killed_process_ends_its_connections_after_what_it_had_sent(net: Net) -> None:
    client, server = net.connect()
    server.send(b"last words")
    net.kill(net.b)
    net.wait(0.1)
    assert client.frames == [b"last words"]
    assert client.closed == ["closed by peer"]
    late = net.dial()
    net.wait(0.1)
    assert late.closed == ["connection refused"]


def test_what_a_killed_process_has_not_read_makes_a_reset_of_it(net: Net) -> None:
    client, server = net.connect()
    net.b.frozen = True
    client.send(b"unread")
    net.wait(0.1)
    server.send(b"on its way, but the reset is faster")
    net.kill(net.b)
    net.wait(0.1)
    assert client.closed == ["connection reset by peer"]
    assert server.frames == []


def test_a_frozen_process_has_a_kernel_that_accepts_and_takes_in(net: Net) -> None:
    net.b.frozen = True
    client = net.dial()
    client.send(b"early")
    net.wait(5)
    assert client.opened_us >= 0
    assert client.closed == []
    assert net.accepted == []
    net.scheduler.thaw(net.b)
    net.wait(0.1)
    assert net.accepted[0].frames == [b"early"]


def test_a_connection_that_is_not_accepted_yet_is_reset_when_its_listener_closes(net: Net) -> None:
    net.b.frozen = True
    client = net.dial()
    net.wait(5)
    assert client.opened_us >= 0
    net.listener.close()
    net.scheduler.thaw(net.b)
    net.wait(0.1)
    assert client.closed == ["connection reset by peer"]
    assert net.accepted == []


def test_a_frozen_process_takes_in_a_window_and_no_more() -> None:
    net = Net(window_bytes=10_000)
    client, server = net.connect()
    net.b.frozen = True
    for _ in range(30):
        client.send(bytes(996))
    net.wait(60)
    assert client.connection is not None
    assert client.connection.pending_bytes == 20_000
    assert client.closed == [], "a receiver that says it is full is alive"
    net.scheduler.thaw(net.b)
    net.wait(0.1)
    assert len(server.frames) == 30
    assert client.connection.pending_bytes == 0


def test_a_machine_without_power_says_nothing(net: Net) -> None:
    client, _ = net.connect()
    net.b.end()
    net.network.lost_power("b", net.b)
    net.wait(60)
    assert client.closed == [], "half open: nothing to send, so nothing to find out"
    client.send(b"are you there?")
    net.wait(10)
    assert client.closed == []
    net.wait(15)
    assert client.closed == ["connection timed out"]


def test_a_machine_that_is_back_resets_what_it_hears_of(net: Net) -> None:
    idle, _ = net.connect()
    busy, _ = net.connect()
    net.b.end()
    net.network.lost_power("b", net.b)
    net.wait(1)
    busy.send(b"into the dark")
    net.wait(4)
    net.b = Process("b again")
    net.network.got_power("b")
    net.listen()
    net.wait(5)
    assert busy.closed == ["connection reset by peer"]
    assert idle.closed == []
    idle.send(b"remember me?")
    net.wait(0.1)
    assert idle.closed == ["connection reset by peer"]
    again, server = net.connect()
    again.send(b"hello")
    net.wait(0.1)
    assert server.frames == [b"hello"]


def test_what_was_under_way_when_the_machine_went_dark_is_sent_again_to_a_stranger(net: Net) -> None:
    client, _ = net.connect()
    client.send(b"on its way")
    net.b.end()
    net.network.lost_power("b", net.b)
    net.wait(1)
    net.b = Process("b again")
    net.network.got_power("b")
    net.wait(2)
    assert client.closed == ["connection reset by peer"]


def test_a_blocked_link_holds_back_and_keeps_the_order(net: Net) -> None:
    client, server = net.connect()
    net.network.block("a", "b")
    client.send(b"one")
    server.send(b"the other way is open")
    net.wait(4)
    client.send(b"two")
    assert server.frames == []
    assert client.frames == [b"the other way is open"]
    healed_us = net.scheduler.now_us
    net.network.heal("a", "b")
    client.send(b"three")
    net.wait(3)
    assert server.frames == [b"one", b"two", b"three"]
    assert client.closed == server.closed == []
    assert net.scheduler.now_us > healed_us


def test_a_sender_without_acknowledgements_gives_up_and_leaves_the_other_side_half_open(net: Net) -> None:
    client, server = net.connect()
    net.network.block("b", "a")
    client.send(b"arrives, and nobody can say so")
    net.wait(0.1)
    assert server.frames == [b"arrives, and nobody can say so"]
    net.wait(21)
    assert client.closed == ["connection timed out"]
    assert server.closed == []
    net.network.heal()
    server.send(b"hello?")
    net.wait(0.1)
    assert server.closed == ["connection reset by peer"]


def test_what_is_read_behind_a_blocked_link_is_acknowledged_when_it_heals() -> None:
    net = Net(window_bytes=10_000)
    client, server = net.connect()
    net.network.block("b", "a")
    for _ in range(20):
        client.send(bytes(996))
    net.wait(1)
    assert len(server.frames) == 10, "a window of them"
    net.network.heal("b", "a")
    net.wait(2)
    assert len(server.frames) == 20
    assert client.closed == []


def test_connecting_waits_for_the_link_and_loses_patience(net: Net) -> None:
    net.network.block("b", "a")  # the answer would be lost
    patient = net.dial()
    net.wait(4)
    assert patient.opened_us < 0
    net.network.heal("b", "a")
    net.wait(4)
    assert patient.opened_us > 0
    net.network.block("a", "b")
    late = net.dial()
    net.wait(11)
    assert late.closed == ["connection timed out"]


def test_giving_up_a_connection_while_it_opens_ends_it_on_the_other_side(net: Net) -> None:
    client = net.dial()
    while not net.accepted:
        net.scheduler.run_until(net.scheduler.now_us + 10)
    assert client.connection is not None
    assert client.opened_us < 0
    client.connection.close()
    net.wait(0.1)
    assert client.opened_us < 0
    assert len(client.closed) == 1
    assert net.accepted[0].closed == ["connection reset by peer"]


def test_a_reset_in_between_breaks_both_sides(net: Net) -> None:
    client, server = net.connect()
    net.network.reset_some("b", "a")
    net.wait(0.1)
    assert client.closed == server.closed == ["connection reset by peer"]


def test_a_reset_over_a_blocked_link_is_lost(net: Net) -> None:
    client, server = net.connect()
    net.b.frozen = True
    client.send(b"unread")
    net.wait(0.1)
    net.network.block("b", "a")
    net.kill(net.b)
    net.wait(0.1)
    assert client.closed == []
    net.network.heal()
    client.send(b"still there?")
    net.wait(0.1)
    assert client.closed == ["connection reset by peer"]
    assert server.frames == []


def test_a_frames_memory_is_overwritten_after_its_turn(net: Net) -> None:
    client, server = net.connect()
    client.send(b"do not keep this")
    client.send(bytes(200_000))
    net.wait(0.1)
    assert server.frames[0] == b"do not keep this"
    assert all(set(bytes(kept)) == {0xDB} for kept in server.kept)


def test_the_other_side_of_a_link_that_is_slow_is_late(net: Net) -> None:
    client, server = net.connect()
    net.network.conditions.slow_links[("a", "b")] = 400_000
    client.send(b"late")
    net.wait(0.3)
    assert server.frames == []
    net.wait(0.2)
    assert server.frames == [b"late"]


def test_small_receive_buffers_take_an_answer_piece_by_piece() -> None:
    net = Net(receive_bytes={"b": 3})
    here, there = net.connect()
    there.send(b"x" * 40)
    there.send(b"y" * 5)
    turns: list[Process] = []
    net.scheduler.after_turn = turns.append
    connection = there.connection
    assert isinstance(connection, SimConnection)
    waiting = [connection.pending_bytes]
    while connection.pending_bytes:
        net.scheduler.run_until(net.scheduler.now_us + 10)
        waiting.append(connection.pending_bytes)
    net.wait(5)
    assert here.frames == [b"x" * 40, b"y" * 5]
    assert waiting[0] == 4 + 40 + 4 + 5 - 3
    assert {before - after for before, after in pairwise(waiting)} <= {0, 2, 3}
    assert len(turns) < 5, "a process has no turn for a part of a frame"
    here.send(b"z" * 40)
    assert isinstance(here.connection, SimConnection)
    assert here.connection.pending_bytes == 0, "the other direction is as before"


def test_what_is_half_sent_stalls_once_when_a_log_of_its_sender_changes() -> None:
    net = Net(receive_bytes={"b": 3}, stall_us=100_000)
    here, there = net.connect()
    net.network.log_changed("b")
    there.send(b"x" * 40)
    connection = there.connection
    assert isinstance(connection, SimConnection)
    net.scheduler.run_until(net.scheduler.now_us + 1_000)
    half = connection.pending_bytes
    assert 0 < half < 41
    net.network.log_changed("a")
    net.network.log_changed("b")
    resumes_us = connection._resumes_us
    assert 1_000 < resumes_us - net.scheduler.now_us <= 100_000
    net.network.log_changed("b")
    assert connection._resumes_us == resumes_us
    net.scheduler.run_until(resumes_us - 1)
    assert connection.pending_bytes >= half - 3
    net.wait(5)
    assert here.frames == [b"x" * 40]
    there.send(b"y" * 40)
    net.network.log_changed("b")
    assert connection._resumes_us > resumes_us
    net.network.conditions.end_faults()
    net.wait(5)
    assert here.frames == [b"x" * 40, b"y" * 40]
    assert net.network.conditions == NetworkConditions()


def test_a_disk_says_when_a_log_changes() -> None:
    disk = SimDisk(Scheduler(), stream(1, "disk"))
    view, said = disk.view(Process("p")), list[str]()
    view.make_directory("/data/t-0")
    changes: dict[str, Callable[[], object]] = {
        "made": lambda: view.open("/data/t-0/00.log"),
        "written": lambda: view.open("/data/t-0/00.log").write(0, [b"abc"]),
        "truncated": lambda: view.open("/data/t-0/00.log").truncate(1),
        "swapped": lambda: view.rename("/data/t-0/00.log", "/data/t-0/00.log.deleted"),
        "removed": lambda: view.remove("/data/t-0/00.log.deleted"),
        "checkpoint": lambda: view.write_file("/data/recovery-point-offset-checkpoint", b"0"),
        "deleted": lambda: view.rename("/data/t-0", "/data/t-0.0f-delete"),
    }
    for what, change in changes.items():
        disk.on_log_change = partial(said.append, what)
        change()
    assert said == ["made", "truncated", "swapped", "removed", "deleted"]

"""Faults of links: whom they cut off, that they can be mended, and bytes that come after those sent later."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tanist.ports import Connection
from tanist.sim.faults.links import LINK_FAULTS, cut
from tanist.sim.world.network import SimNetworkView
from tanist.sim.world.scheduler import Process
from tanist.sim.world.world import World

CLIENTS = ["reader", "writer"]


def world() -> World:
    made = World(3)
    made.clients.extend(CLIENTS)
    return made


def blocked(made: World) -> set[tuple[str, str]]:
    names = [*(host.name for host in made.hosts.values()), *CLIENTS]
    return {(one, two) for one in names for two in names if made.network.blocked(one, two)}


@pytest.mark.parametrize("detail", [0.0, 0.35, 0.5, 0.99])
@pytest.mark.parametrize("kind", list(LINK_FAULTS))
def test_what_breaks_can_be_mended(kind: str, detail: float) -> None:
    made = world()
    mend = LINK_FAULTS[kind](made, made.hosts[1], made.hosts[2], detail)
    made.run_for(4_000)
    mend()
    made.run_for(4_000)
    assert blocked(made) == set()
    assert not made.network.conditions.slow_links
    assert not made.network.conditions.lossy_links


def test_who_does_not_hear_whom() -> None:
    made = world()
    one, two = made.hosts[1], made.hosts[2]
    everybody = {"node2", "node3", *CLIENTS}
    mend = LINK_FAULTS["mute"](made, one, two, 0.0)
    assert blocked(made) == {("node1", name) for name in everybody}
    mend()
    mend = LINK_FAULTS["deaf"](made, one, two, 0.0)
    assert blocked(made) == {(name, "node1") for name in everybody}
    mend()
    mend = LINK_FAULTS["partition"](made, one, two, 0.5)
    assert blocked(made) == {("node1", "node2"), ("node2", "node1")}, "both still reach node 3"
    mend()
    mend = LINK_FAULTS["partition-clients"](made, one, two, 0.45)
    assert {frozenset(link) - {"node1"} for link in blocked(made)} <= {frozenset({name}) for name in CLIENTS}
    assert blocked(made)
    mend()
    mend = cut(made, [one, two])
    assert blocked(made) == {("node1", "node2"), ("node2", "node1")}
    mend()


def test_a_link_flaps() -> None:
    made = world()
    mend = LINK_FAULTS["flap"](made, made.hosts[1], made.hosts[2], 0.0)
    seen: list[bool] = []
    for _ in range(40):
        seen.append(made.network.blocked("node1", "node2"))
        made.run_for(30)
    assert 10 < sum(seen) < 30
    mend()


@dataclass
class End:
    """A handler that keeps all that it receives."""

    frames: list[bytes] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    connection: Connection | None = None

    def on_open(self, connection: Connection) -> None:
        self.connection = connection

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def on_close(self, reason: str) -> None:
        self.closed.append(reason)


def dial(view: SimNetworkView) -> End:
    end = End()
    end.connection = view.connect("node2", 9092, end, max_frame_bytes=1000)
    return end


def say(end: End, data: bytes) -> None:
    assert end.connection is not None
    end.connection.send([len(data).to_bytes(4, "big"), data])


def test_bytes_of_an_old_connection_come_after_those_of_the_new_one() -> None:
    made = world()
    heard: list[bytes] = []
    ends: list[End] = []

    def accept(connection: Connection) -> End:
        end = End(frames=heard, connection=connection)
        ends.append(end)
        return end

    made.network.view("node2", Process("two")).bind("node2", 9092, accept, max_frame_bytes=1000).open()
    view = made.network.view("node1", Process("one"))
    first = dial(view)
    made.run_for(10)
    detail = 0.4  # 997 * 0.4 % 3 = 2: three seconds late, towards node 2
    LINK_FAULTS["strand"](made, made.hosts[1], made.hosts[2], detail)
    say(first, b"old")
    made.run_for(1_600)
    assert (first.closed, ends[0].closed) == (["connection reset by peer"], [])
    second = dial(view)
    say(second, b"new")
    made.run_for(100)
    assert heard == [b"new"]
    made.run_for(2_000)
    assert heard == [b"new", b"old"]
    say(ends[0], b"answer to nobody")
    made.run_for(100)
    assert ends[0].closed == ["connection reset by peer"]
    assert (second.frames, second.closed) == ([], [])


def test_lost_packets_come_late_and_in_order() -> None:
    made = world()
    heard: list[bytes] = []
    made.network.view("node2", Process("two")).bind(
        "node2", 9092, lambda connection: End(frames=heard, connection=connection), max_frame_bytes=1000
    ).open()
    end = dial(made.network.view("node1", Process("one")))
    made.run_for(10)
    made.network.conditions.lossy_links[("node1", "node2")] = 0.5
    sent = [str(number).encode() for number in range(20)]
    for data in sent:
        say(end, data)
    made.run_for(10)
    assert heard != sent, "twenty packets without a loss"
    made.run_for(30_000)
    assert heard == sent

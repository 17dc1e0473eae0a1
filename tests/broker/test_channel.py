"""The RPC channel: matching, failure of everything under way, late answers of an old connection."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tanist.broker.network.channel import Channel
from tanist.ports import Connection
from tanist.sim.world.clock import SimClock
from tanist.sim.world.network import SimNetwork
from tanist.sim.world.scheduler import Process, Scheduler
from tanist.wire.frames import encode_response, parse_request_header
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tests.api_versions import API_VERSIONS


class Server:
    """Answers each request by `respond(correlation id)`, or not at all when that gives None."""

    def __init__(self, respond: Callable[[int], bytes | None]) -> None:
        self.respond = respond
        self.connections: list[Connection] = []

    def accept(self, connection: Connection) -> Handler:
        self.connections.append(connection)
        return Handler(self, connection)


class Handler:
    def __init__(self, server: Server, connection: Connection) -> None:
        self.server = server
        self.connection = connection

    def on_open(self, connection: Connection) -> None: ...

    def on_frame(self, frame: memoryview) -> None:
        answer = self.server.respond(parse_request_header(frame).correlation_id)
        if answer is not None:
            self.connection.send([answer])

    def on_close(self, reason: str) -> None: ...


def good(correlation_id: int) -> bytes:
    return encode_response(ApiVersionsResponse(), 3, correlation_id)


class World:
    def __init__(self, respond: Callable[[int], bytes | None]) -> None:
        self.scheduler = Scheduler()
        self.network = SimNetwork(self.scheduler, random.Random(7))
        self.server = Server(respond)
        self.server_process = Process("server")
        self.network.view("s", self.server_process).bind("s", 1, self.server.accept, max_frame_bytes=1 << 20).open()
        self.process = process = Process("client")
        self.lost: list[str] = []
        self.channel = Channel(
            SimClock(self.scheduler, process),
            self.network.view("c", process),
            "s",
            1,
            client_id="test",
            max_frame_bytes=1 << 20,
            on_lost=self.lost.append,
        )
        self.answers: list[Any] = []

    def call(self, timeout_ms: int = 1000) -> None:
        self.channel.call(API_VERSIONS, 3, timeout_ms, self.answers.append)

    def run(self, ms: int = 5_000) -> None:
        self.scheduler.run_until(self.scheduler.now_us + ms * 1000)


def test_answers_reach_their_askers() -> None:
    world = World(good)
    world.call()
    world.call()
    world.run()
    assert [type(answer) for answer in world.answers] == [ApiVersionsResponse, ApiVersionsResponse]
    assert len(world.server.connections) == 1


def test_a_request_that_times_out_spends_the_connection() -> None:
    world = World(lambda correlation_id: good(correlation_id) if correlation_id > 2 else None)
    world.call()
    world.call()
    world.run()
    assert world.answers == [None, None]
    assert world.lost == ["request timed out"]
    world.call()
    world.run()
    assert type(world.answers[-1]) is ApiVersionsResponse
    assert len(world.server.connections) == 2


def test_a_server_that_dies_fails_what_is_under_way() -> None:
    world = World(lambda _: None)
    world.call(timeout_ms=60_000)
    world.run(10)
    world.server_process.alive = False
    world.network.killed(world.server_process)
    world.run(10)
    assert world.answers == [None]
    assert len(world.lost) == 1


def test_nobody_listens() -> None:
    world = World(good)
    world.network.killed(world.server_process)
    world.call()
    world.run(10)
    assert world.answers == [None]
    assert world.lost == ["connection refused"]


def test_an_answer_nobody_asked_for_is_not_believed() -> None:
    world = World(lambda correlation_id: good(correlation_id + 5))
    world.call()
    world.run()
    assert world.answers == [None]


def test_after_close_every_request_fails() -> None:
    world = World(good)
    world.channel.close()
    seen: list[int] = []

    def turn() -> None:
        world.call()
        seen.append(len(world.answers))

    world.scheduler.dispatch(world.process, turn)
    assert seen == [0]  # never from within the call
    assert world.answers == [None]

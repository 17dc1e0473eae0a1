"""Fixtures of the real ports alone; what any set of ports must do is tested in `tests/ports`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tanist.runtime.ports.loop import Loop
from tests.runtime.network_rig import Handler, Server


class Runner:
    """A loop, what failed on it, and a way to let it run until something is so."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, BaseException]] = []
        self.loop = Loop(on_failure=lambda where, error: self.failures.append((where, error)))

    def until(self, condition: Callable[[], bool], patience_s: float = 120.0) -> None:
        deadline = time.monotonic() + patience_s

        def look() -> None:
            if condition() or time.monotonic() > deadline:
                self.loop.stop()
            else:
                self.loop.call_at(self.loop.now_ms() + 1, look)

        self.loop.post(look)
        self.loop.run()
        assert condition()


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.loop.close()


@pytest.fixture
def serve(runner: Any) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def make(on: Callable[[Handler, bytes], None] | None = None, **options: Any) -> Server:
        servers.append(Server(runner, on, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.network.close()

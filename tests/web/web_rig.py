"""A server with a source of our own, on a port of its own."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.web import serving
from tanist.web.hub import Hub
from tanist.web.source import Watched
from tanist.web.state import Json


class FakeSource:
    """Gives the states that a test puts in."""

    def __init__(self) -> None:
        self.state: dict[str, Json] = {"cluster": {"source": "simulator", "nodes": []}}
        self.watched: list[Watched] = []
        self.acts: list[tuple[str, int | None]] = []
        self.reads = 0
        self.broken: Exception | None = None

    def read_state(self, watched: Watched) -> Mapping[str, Json]:
        self.reads += 1
        self.watched.append(list(watched))
        if self.broken is not None:
            raise self.broken
        return dict(self.state)

    def read_groups_and_salvage(self) -> Mapping[str, Json]:
        return {}

    def price(self, action: str, node: int) -> Json:
        return {"lines": [f"{action} {node}"], "destroys": 0}

    def act(self, action: str, node: int | None) -> str:
        if action == "nonsense":
            raise ClusterError("there is no fault 'nonsense' here")
        self.acts.append((action, node))
        return "done"

    def salvaged(self, topic: str, partition: int, most: int) -> Json:
        return {"records": [], "count": 0, "commands": []}

    def close(self) -> None:
        pass


class Served:
    """A running server, its hub, and requests to it."""

    def __init__(self, url: str, hub: Hub) -> None:
        self.url = url
        self.hub = hub
        self.host, _, self.token = url.removeprefix("http://").partition("/?token=")

    def ask(
        self, method: str, path: str, body: Json = None, *, token: bool = True, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection(self.host, timeout=120)
        if token:
            headers["X-Tanist-Token"] = self.token
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    @contextmanager
    def events(self) -> Iterator[Callable[[], tuple[str, Any]]]:
        """The stream: each call gives the next event, by name and content."""
        connection = http.client.HTTPConnection(self.host, timeout=120)
        connection.request("GET", "/api/events")
        response = connection.getresponse()

        def following() -> tuple[str, Any]:
            name, data = "", ""
            while True:
                line = response.readline().decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    data += line.removeprefix("data: ") + "\n"
                elif not line and data:
                    return name, json.loads(data)

        try:
            yield following
        finally:
            response.close()
            connection.close()


@contextmanager
def served(source: Any) -> Iterator[Served]:
    """The server in a thread of this process."""
    ready = threading.Event()
    reported: list[str] = []
    servers: list[Any] = []

    def began(url: str, server: Any) -> None:
        reported.append(url)
        servers.append(server)
        ready.set()

    thread = threading.Thread(target=serving.serve, args=(source, 0, lambda _: None), kwargs={"began": began})
    thread.start()
    try:
        assert ready.wait(120)
        yield Served(reported[0], servers[0].hub)
    finally:
        for server in servers:
            server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()

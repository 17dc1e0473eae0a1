"""The little HTTP server: what it answers, and what it does not let peers do to the node."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.runtime.process import metrics_http
from tanist.runtime.process.metrics_http import (
    CONNECTIONS_MAX,
    HEAD_BYTES_MAX,
    Body,
    MetricsServer,
    NodePages,
    answer,
)

PAGES = {"/metrics": lambda: "up 1\n", "/metrics/partitions": lambda: "many 2\n"}


def parsed(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, fields and body; nothing but what RFC 9112 allows."""
    head, separator, body = raw.partition(b"\r\n\r\n")
    assert separator
    status, *fields = head.decode("ascii").split("\r\n")
    version, code, _ = status.split(" ", 2)
    assert version == "HTTP/1.1"
    found = dict(field.split(": ", 1) for field in fields)
    assert len(found) == len(fields)
    return int(code), found, body


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /metrics HTTP/1.1\r\nHost: a", 200),
        ("GET /metrics HTTP/1.0", 200),
        ("GET /metrics?x=y HTTP/1.1\r\nhost:a\r\nAccept: */*", 200),
        ("GET http://a:1/metrics HTTP/1.1\r\nHost: a", 200),
        ("GET /metrics/partitions HTTP/1.1\r\nHost: a", 200),
        ("HEAD /metrics HTTP/1.1\r\nHost: a", 200),
        ("GET / HTTP/1.1\r\nHost: a", 404),
        ("POST /nothing HTTP/1.1\r\nHost: a", 404),
        ("GET /metrics/ HTTP/1.1\r\nHost: a", 404),
        ("GET http://a HTTP/1.1\r\nHost: a", 404),
        ("POST /metrics HTTP/1.1\r\nHost: a", 405),
        ("get /metrics HTTP/1.1\r\nHost: a", 405),
        ("GET /metrics HTTP/1.1", 400),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b", 400),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nnonsense", 400),
        ("GET /metrics HTTP/1.1\r\nHost : a", 400),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\n folded: b", 400),
        ("GET  /metrics HTTP/1.1\r\nHost: a", 400),
        ("GET /metrics", 400),
        ("", 400),
        ("GET /m\u00e9trics HTTP/1.1\r\nHost: a", 400),
        ("GET /metrics FTP/1.1\r\nHost: a", 400),
        ("GET /metrics HTTP/2.0\r\nHost: a", 505),
    ],
)
def test_what_is_answered(head: str, status: int) -> None:
    found, fields, body = parsed(answer(head.encode(), PAGES))
    assert found == status
    assert fields["Connection"] == "close"
    if head.startswith("HEAD"):
        assert (body, fields["Content-Length"]) == (b"", "5")
    else:
        assert len(body) == int(fields["Content-Length"])
    if status == 200:
        assert fields["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    if status == 405:
        assert fields["Allow"] == "GET, HEAD"
    if status == 404:
        assert b"/metrics, /metrics/partitions" in body


@given(st.binary(max_size=300))
def test_nothing_a_peer_says_is_more_than_a_bad_request(head: bytes) -> None:
    assert parsed(answer(head, PAGES))[0] in (400, 404, 405, 505)


def _no_failure(where: str, error: Exception) -> None:
    raise error


class Served:
    """A server on a loop that runs while somebody waits for its answers."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.asked = 0
        self.failures: list[str] = []
        pages = {"/metrics": self._page, "/broken": self._broken}
        self.server = MetricsServer(runner.loop, "127.0.0.1", 0, pages, self._failed)

    def _failed(self, where: str, error: Exception) -> None:
        self.failures.append(f"{where}: {error}")

    def _page(self) -> str:
        self.asked += 1
        return "x" * 100_000

    def _broken(self) -> str:
        raise RuntimeError("a page that fails")

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=120)

    def read(self, sock: socket.socket) -> bytes:
        """All that comes until the other side closes."""
        sock.setblocking(False)
        got = bytearray()
        ended = False

        def look() -> bool:
            nonlocal ended
            while not ended:
                try:
                    piece = sock.recv(65536)
                except BlockingIOError:
                    return False
                except ConnectionResetError:
                    piece = b""
                ended = not piece
                got.extend(piece)
            return True

        self.runner.until(look)
        sock.close()
        return bytes(got)


@pytest.fixture
def served(runner: Any) -> Iterator[Served]:
    found = Served(runner)
    yield found
    found.server.close()


REQUEST = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"


def test_a_client_of_the_standard_library_is_served(served: Served, runner: Any) -> None:
    sock = served.connect()
    sock.sendall(REQUEST)
    raw = served.read(sock)

    class Replay:
        def makefile(self, *_: Any) -> Any:
            import io

            return io.BytesIO(raw)

    reply = http.client.HTTPResponse(Replay())  # type: ignore[arg-type]
    reply.begin()
    assert (reply.status, reply.read()) == (200, b"x" * 100_000)
    assert runner.failures == []


def test_a_request_may_come_in_pieces_and_what_follows_it_is_not_read(served: Served) -> None:
    sock = served.connect()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for position in range(0, len(REQUEST), 7):
        sock.sendall(REQUEST[position : position + 7])
        served.runner.until(lambda: True)
    assert parsed(served.read(sock))[0] == 200
    sock = served.connect()
    sock.sendall(REQUEST + REQUEST)
    assert len(parsed(served.read(sock))[2]) == 100_000
    assert served.asked == 2


@pytest.mark.parametrize("ending", [b"", b"\r\n\r\n"])
def test_a_head_has_a_limit(served: Served, ending: bytes) -> None:
    sock = served.connect()
    sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + b"y" * HEAD_BYTES_MAX + ending)
    assert parsed(served.read(sock))[0] == 431
    assert served.asked == 0


def test_a_page_that_fails_is_reported_and_the_server_lives_on(served: Served, runner: Any) -> None:
    sock = served.connect()
    sock.sendall(REQUEST.replace(b"/metrics", b"/broken"))
    assert parsed(served.read(sock))[0] == 500
    assert served.failures == ["the metrics: a page that fails"]
    sock = served.connect()
    sock.sendall(REQUEST)
    assert parsed(served.read(sock))[0] == 200


def test_who_says_nothing_or_does_not_read_is_cut_off(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_http, "CONNECTION_MS_MAX", 100)
    big = "x" * 50_000_000
    asked: list[bool] = []

    def page() -> str:
        asked.append(True)
        return big

    server = MetricsServer(runner.loop, "127.0.0.1", 0, {"/metrics": page}, _no_failure)
    silent = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    deaf = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    deaf.sendall(REQUEST)
    runner.until(lambda: bool(asked))
    runner.until(lambda: not server._exchanges)
    assert silent.recv(1) == b""
    got = 0
    try:
        while piece := deaf.recv(1 << 20):
            got += len(piece)
    except ConnectionResetError:
        pass
    assert 0 < got < len(big)
    silent.close()
    deaf.close()
    server.close()


def test_only_so_many_at_a_time(served: Served) -> None:
    idle = [served.connect() for _ in range(CONNECTIONS_MAX)]
    served.runner.until(lambda: len(served.server._exchanges) == CONNECTIONS_MAX)
    assert parsed(served.read(served.connect()))[0] == 503
    idle[0].close()
    served.runner.until(lambda: len(served.server._exchanges) < CONNECTIONS_MAX)
    sock = served.connect()
    sock.sendall(REQUEST)
    assert parsed(served.read(sock))[0] == 200
    for each in idle[1:]:
        each.close()


def test_an_address_that_is_taken(served: Served, runner: Any) -> None:
    with pytest.raises(OSError, match="in use"):
        MetricsServer(runner.loop, "127.0.0.1", served.server.port, {}, _no_failure)


def test_closing_ends_what_is_open(runner: Any) -> None:
    server = MetricsServer(runner.loop, "127.0.0.1", 0, {}, _no_failure)
    waiting = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    runner.until(lambda: bool(server._exchanges))
    server.close()
    runner.until(lambda: not server._exchanges)
    waiting.close()


def test_replicas_have_a_page_for_each_topic_and_each_partition() -> None:
    def positions(topic: str | None = None, partition: int | None = None) -> Body:
        return Body(f"{topic} {partition}", "application/json")

    pages = NodePages({**PAGES, "/replicas": positions}, positions)
    assert list(pages) == [*PAGES, "/replicas"]
    for path, text in {"": "None None", "/a.b": "a.b None", "/a/0": "a 0", "/a/12": "a 12"}.items():
        status, fields, body = parsed(answer(f"GET /replicas{path} HTTP/1.0".encode(), pages))
        assert (status, fields["Content-Type"], body.decode()) == (200, "application/json", text)
    for path in ("/replicas/", "/replicas//0", "/replicas/a/", "/replicas/a/-1", "/replicas/a/0/1", "/replicas/a/b"):
        assert parsed(answer(f"GET {path} HTTP/1.0".encode(), pages))[0] == 404

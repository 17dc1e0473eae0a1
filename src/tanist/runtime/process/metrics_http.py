"""The node's metrics over HTTP: `GET /metrics` in Prometheus' text format, on the node's own event loop. Beside them
`/replicas`, the positions of its replicas as JSON.

Owns as much of HTTP/1.1 as that takes: one request a connection, answered and closed. `answer` is pure: the head of a
request in, the whole response out. A peer can cost no more than a bounded head, a bounded time and one of a few
connections; and nothing here may ever hold up the node, which is asked for its state and for nothing else.

The `Network` port is no use here, for it carries length-prefixed frames.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from tanist.runtime.ports.loop import HeapTimer, Loop

if TYPE_CHECKING:
    from tanist.broker.metrics.text import Exposition
    from tanist.broker.node import Node
    from tanist.runtime.ports.cold_ranges import ColdReads

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

HEAD_BYTES_MAX = 8192
CONNECTIONS_MAX = 16
CONNECTION_MS_MAX = 10_000
"""As long as a connection may take altogether: the request to come, and the response to be read."""

JSON_TYPE = "application/json"
CLIENTS: Final = "/metrics/clients"
"""Where clients push their metrics (KIP-714)."""
REPLICAS: Final = "/replicas"
"""Alone, or followed by `/TOPIC` or `/TOPIC/PARTITION`."""


class Body(NamedTuple):
    """The text of a page that is not metrics."""

    text: str
    content_type: str


Pages = Mapping[str, Callable[[], str | Body]]
"""The text of each path, made when it is asked for."""

_END_OF_HEAD = b"\r\n\r\n"
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


def node_pages(node: Node, loop: Loop, cold_reads: ColdReads) -> Pages:
    """A node's metrics, and its process's; its replicas one by one on a page of their own, for they may be many."""
    started_s = time.time()

    # The modules that make the pages are loaded at the first request: a node starts faster without them.
    def whole() -> str:
        from tanist.broker.metrics.scrape import scrape

        exposition = scrape(node.components)
        _process_metrics(exposition, loop, cold_reads, started_s)
        return exposition.render()

    def partitions() -> str:
        from tanist.broker.metrics.scrape import scrape_partitions

        return scrape_partitions(node.components).render()

    def positions(topic: str | None = None, partition: int | None = None) -> Body:
        from tanist.broker.metrics.positions import positions

        return Body(positions(node.components, topic, partition), JSON_TYPE)

    pages: dict[str, Callable[[], str | Body]] = {
        "/metrics": whole,
        "/metrics/partitions": partitions,
        REPLICAS: positions,
    }
    telemetry = node.components.telemetry
    if telemetry is not None:
        pages[CLIENTS] = telemetry.page
    return NodePages(pages, positions)


class NodePages(Mapping[str, Callable[[], str | Body]]):
    """Pages by their path, and below `/replicas` one for each topic and each partition."""

    def __init__(
        self, pages: Mapping[str, Callable[[], str | Body]], positions: Callable[[str, int | None], Body]
    ) -> None:
        self._pages = pages
        self._positions = positions

    def __iter__(self) -> Iterator[str]:
        return iter(self._pages)

    def __len__(self) -> int:
        return len(self._pages)

    def __getitem__(self, path: str) -> Callable[[], str | Body]:
        if not path.startswith(f"{REPLICAS}/"):
            return self._pages[path]
        topic, slash, index = path.removeprefix(f"{REPLICAS}/").partition("/")
        if not topic or (slash and not (index.isdecimal() and len(index) < 10)):
            raise KeyError(path)
        return lambda: self._positions(topic, int(index) if slash else None)


def answer(head: bytes, pages: Pages) -> bytes:
    """The response to a request's head, with or without its blank line. An exception of a page comes through."""
    method, path, problem = _parse(head)
    if problem:
        return response(problem)
    page = pages.get(path)
    if page is None:
        return response(404, f"the pages are {', '.join(pages)}\n", head_only=method == "HEAD")
    if method not in ("GET", "HEAD"):
        return response(405, headers=("Allow: GET, HEAD",))
    body = page()
    text, content_type = body if isinstance(body, Body) else (body, CONTENT_TYPE)
    return response(200, text, content_type=content_type, head_only=method == "HEAD")


def response(
    status: int,
    text: str | None = None,
    *,
    content_type: str = "text/plain; charset=utf-8",
    headers: tuple[str, ...] = (),
    head_only: bool = False,
) -> bytes:
    """A whole response; without a text it says its status in words."""
    body = (f"{_REASONS[status]}\n" if text is None else text).encode()
    lines = [
        f"HTTP/1.1 {status} {_REASONS[status]}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    head = "\r\n".join(lines).encode() + _END_OF_HEAD
    return head if head_only else head + body


def _parse(head: bytes) -> tuple[str, str, int]:
    """(method, path, 0), or a status that says what is wrong."""
    try:
        first, *fields = head.removesuffix(_END_OF_HEAD).decode("ascii").split("\r\n")
    except UnicodeDecodeError:
        return "", "", 400
    words = first.split(" ")
    if len(words) != 3 or not all(words):
        return "", "", 400
    method, target, version = words
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        return "", "", 505 if version.startswith("HTTP/") else 400
    names = [field.partition(":")[0].lower() for field in fields]
    if any(":" not in field or not name or name != name.strip() for field, name in zip(fields, names)):
        return "", "", 400
    if names.count("host") != 1 and (version == "HTTP/1.1" or names.count("host")):
        return "", "", 400  # RFC 9112, 3.2
    if target.startswith("http://"):  # the absolute form, which proxies send
        target = "/" + target.removeprefix("http://").partition("/")[2]
    return method, target.partition("?")[0], 0


class MetricsServer:
    """Listens, and answers from the pages."""

    def __init__(
        self, loop: Loop, host: str, port: int, pages: Pages, failed: Callable[[str, Exception], None]
    ) -> None:
        """Before the loop runs. `OSError` if the address is taken. `failed` hears of pages that cannot be made."""
        self._failed = failed
        self._loop = loop
        self._pages = pages
        self._exchanges: set[_Exchange] = set()
        self._server = loop.aio.run_until_complete(loop.aio.create_server(lambda: _Exchange(self), host or None, port))

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        self._server.close()
        for exchange in list(self._exchanges):
            exchange.abort()

    def admit(self, exchange: _Exchange) -> bool:
        """False: too many are there already."""
        if len(self._exchanges) >= CONNECTIONS_MAX:
            return False
        self._exchanges.add(exchange)
        return True

    def forget(self, exchange: _Exchange) -> None:
        self._exchanges.discard(exchange)

    def answer(self, head: bytes) -> bytes:
        try:
            return answer(head, self._pages)
        except Exception as error:  # a page only reads
            self._failed("the metrics", error)
            return response(500)

    def in_time(self, exchange: _Exchange) -> HeapTimer:
        return self._loop.call_at(self._loop.now_ms() + CONNECTION_MS_MAX, exchange.abort)


@contextmanager
def served_aside(host: str, port: int, pages: Pages, failed: Callable[[str, Exception], None]) -> Iterator[int]:
    """Serve pages from a thread, for a process that is no node: the port. `OSError` if the address is taken."""
    loop = Loop()
    try:
        server = MetricsServer(loop, host, port, pages, failed)
        thread = Thread(target=loop.run, name="metrics", daemon=True)
        thread.start()
        try:
            yield server.port
        finally:
            loop.post_from_thread(server.close)
            loop.post_from_thread(loop.stop)
            thread.join()
    finally:
        loop.close()


class _Exchange(asyncio.Protocol):
    """One connection: a request, its response, the end."""

    def __init__(self, server: MetricsServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._timer: HeapTimer | None = None
        self._head = bytearray()
        self._answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by descent
        self._timer = self._server.in_time(self)
        if not self._server.admit(self):
            self._finish(response(503))

    def data_received(self, data: bytes) -> None:
        if self._answered:
            return  # a body, or a second request: nobody asked for it
        searched = max(0, len(self._head) - len(_END_OF_HEAD) + 1)
        self._head += data
        end = self._head.find(_END_OF_HEAD, searched)
        if 0 <= end <= HEAD_BYTES_MAX:
            self._finish(self._server.answer(bytes(self._head[:end])))
        elif end > HEAD_BYTES_MAX or len(self._head) > HEAD_BYTES_MAX:
            self._finish(response(431))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        self._server.forget(self)

    def abort(self) -> None:
        """It takes too long, or the node goes down."""
        if self._transport is not None:
            self._transport.abort()

    def _finish(self, whole: bytes) -> None:
        self._answered = True
        self._head.clear()
        if self._transport is not None:
            self._transport.write(whole)
            self._transport.close()  # once all of it is read


def _process_metrics(out: Exposition, loop: Loop, cold_reads: ColdReads, started_s: float) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    out.add("process_cpu_seconds_total", round(usage.ru_utime + usage.ru_stime, 3))
    out.add("process_resident_memory_bytes", _resident_bytes())
    out.add("process_open_fds", _open_files())
    out.add("process_start_time_seconds", round(started_s, 3))
    out.add("tanist_loop_turns_total", loop.turn)
    out.add("tanist_loop_lateness_max_ms", loop.lateness.max_ms(loop.now_ms()) or 0)
    out.add("tanist_cold_reads_total", cold_reads.count)
    out.add("tanist_cold_reads_waiting", cold_reads.waiting)


def _resident_bytes() -> int | None:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def _open_files() -> int | None:
    """Recent Linux has the number as the folder's size; else they are counted, which takes as long as they are many."""
    try:
        return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))
    except OSError:
        return None

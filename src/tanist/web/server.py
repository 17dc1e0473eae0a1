"""The server of the page: its files, the stream of what happens, prices and faults.

Loopback only; no request leaves the machine. `guard` says what is refused. The stream is server-sent events, `begin`
and then `change`, in the form of `state`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from tanist.runtime.client.client import KafkaError, Unreachable, Unsupported
from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.web.guard import Guard
from tanist.web.hub import Hub
from tanist.web.source import NotHere

_BODY_BYTES_MAX: Final = 64 << 10
_RECORDS_MAX: Final = 100

Handler = Callable[[Request], Awaitable[Response]]


class _BadRequest(ValueError):
    """The request is not what the page sends."""


def static_folder() -> Path:
    """Where the built page is."""
    return Path(str(files("tanist.web") / "static"))


def application(hub: Hub, *, hosts: frozenset[str], token: str) -> ASGIApp:
    """The whole server; `hosts` are the Host headers that it answers to."""

    async def events(_: Request) -> Response:
        return StreamingResponse(hub.connect(), media_type="text/event-stream")

    async def watch(request: Request) -> Response:
        body = await _body(request)
        page, wanted = body.get("page"), body.get("partitions")
        if not isinstance(page, str) or not isinstance(wanted, list):
            raise _BadRequest("page and partitions are due")
        if not hub.watch(page, [_place(each) for each in wanted]):
            return PlainTextResponse("there is no such page\n", 404)
        return Response(status_code=204)

    async def price(request: Request) -> Response:
        node = _number(request.query_params.get("node"))
        action = request.query_params.get("action", "")
        return JSONResponse(await asyncio.to_thread(hub.source.price, action, node))

    async def act(request: Request) -> Response:
        body = await _body(request)
        action, node = body.get("action"), body.get("node")
        if not isinstance(action, str) or not (node is None or (isinstance(node, int) and not isinstance(node, bool))):
            raise _BadRequest("action and node are due")
        try:
            done = await asyncio.to_thread(hub.source.act, action, node)
        finally:
            hub.refresh_soon()
        return JSONResponse({"done": done})

    async def salvage(request: Request) -> Response:
        topic = request.query_params.get("topic", "")
        partition = _number(request.query_params.get("partition"))
        return JSONResponse(await asyncio.to_thread(hub.source.salvaged, topic, partition, _RECORDS_MAX))

    app = Starlette(
        routes=[
            Route("/api/events", events),
            Route("/api/watch", watch, methods=["POST"]),
            Route("/api/price", price),
            Route("/api/act", act, methods=["POST"]),
            Route("/api/salvage", salvage),
            Mount("/", StaticFiles(directory=static_folder(), html=True)),
        ],
        exception_handlers={
            _BadRequest: _answer(400),
            NotHere: _answer(409),
            ClusterError: _answer(409),
            KafkaError: _answer(502),
            Unreachable: _answer(502),
            Unsupported: _answer(502),
        },
    )
    return Guard(app, hosts=hosts, token=token)


def _answer(status: int) -> Callable[[Request, Exception], Response]:
    def answer(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status)

    return answer


async def _body(request: Request) -> dict[str, Any]:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _BODY_BYTES_MAX:
            raise _BadRequest("the body is too large")
    request._body = data
    try:
        found = await request.json()
    except (ValueError, RecursionError):
        raise _BadRequest("the body is no JSON") from None
    if not isinstance(found, dict):
        raise _BadRequest("the body is no object")
    return found


def _place(value: Any) -> tuple[str, int]:
    match value:
        case [str(topic), int(partition)] if topic and "/" not in topic and partition >= 0:
            return topic, partition
    raise _BadRequest("a partition is [topic, number]")


def _number(text: str | None) -> int:
    if text is None or not text.isdecimal() or len(text) > 9:
        raise _BadRequest("a number is due")
    return int(text)

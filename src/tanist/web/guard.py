"""What the server refuses: other hosts' names, other sites' requests, changes without the token.

A page of another site can have a browser send requests to loopback. It cannot send our Host header (a name that it has
pointed at 127.0.0.1 is refused, which is what DNS rebinding needs), it cannot read answers, and it cannot set our
token's header. The token is in the address that `tanist ui` prints, so other users of the machine do not have it.
"""

from __future__ import annotations

import secrets
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER: Final = "x-tanist-token"

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",  # the token is in the address
    "x-content-type-options": "nosniff",
}


class Guard:
    """Around the application."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], token: str) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            status, text = refusal
            await PlainTextResponse(text + "\n", status, HEADERS)(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store" if scope["path"].startswith("/api/") else "no-cache")
            await send(message)

        await self._app(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") != [headers.get("host", "")] or headers["host"] not in self._hosts:
            return 421, "this server answers to its own address only"
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return 403, "this server answers to its own page only"
        if scope["method"] not in ("GET", "HEAD") and scope["path"] != "/api/watch":
            given = headers.get(TOKEN_HEADER, "")
            if not secrets.compare_digest(given.encode(), self._token.encode()):
                return 403, "the token is missing or old: open the address that `tanist ui` has printed"
        return None

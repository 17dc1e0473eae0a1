"""Running the server: a socket on loopback, the address with its token, uvicorn until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable

import uvicorn

from tanist.web.hub import Hub
from tanist.web.server import application
from tanist.web.source import Source

HOST = "127.0.0.1"


class _Server(uvicorn.Server):
    """Ends the pages' streams when it is to end: they would go on for ever."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self.hub = hub

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.hub.close()
        await super().shutdown(sockets)


def serve(
    source: Source,
    port: int,
    ready: Callable[[str], None],
    began: Callable[[str, uvicorn.Server], None] = lambda _url, _server: None,
) -> None:
    """Serve until a signal; `ready` gets the address when connections are accepted. `OSError`: the port is taken.

    `began` gets the server as well, whose `should_exit` ends it from another thread.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(64)
        bound = listening.getsockname()[1]
        hosts = frozenset({f"{HOST}:{bound}", f"localhost:{bound}"})
        token = secrets.token_urlsafe(24)
        hub = Hub(source)
        config = uvicorn.Config(
            application(hub, hosts=hosts, token=token),
            log_level="error",
            access_log=False,
            lifespan="off",
            http="h11",
            loop="asyncio",  # uvloop would take 4 MB and save nothing
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        url = f"http://{HOST}:{bound}/?token={token}"
        server = _Server(config, hub)
        ready(url)
        began(url, server)
        try:
            server.run(sockets=[listening])
        finally:
            source.close()

"""Crowds of strangers at one node: `python -m tests.fuzz.crowd --silent 2000 --stopped 2000`.

So many connections say nothing, and so many begin and stop: in the middle of a TLS handshake, before their token, or
half way through SCRAM; each on a listener with TLS and on one without. What must hold: a client with a password gets in
meanwhile, on both; the node's memory grows by no more than the bound of docs/security.md for each connection; and all
of them are closed by the node, at the time that its configuration gives.
"""

from __future__ import annotations

import argparse
import socket
import ssl
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.fuzz.frames import rss_bytes
from tests.interop.cluster import HOST
from tests.interop.waiting import wait_for
from tests.runtime.guarded_node import GuardedNode, ask, log_in

BYTES_MAX = 32_768
"""Of the node's memory for each connection that says little before it has authenticated."""
IDLE_MS = 30_000
LISTENERS = ("SASL", "SASLTLS")


def half_a_hello(node: GuardedNode) -> socket.socket:
    """A connection that has sent the beginning of a TLS handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = node.tls.wrap_bio(incoming, outgoing, server_hostname=HOST)
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    sock = socket.create_connection((HOST, node.ports["SASLTLS"]))
    sock.sendall(outgoing.read()[:200])
    return sock


def stopped(node: GuardedNode, number: int) -> socket.socket:
    """A connection whose client has begun, and says no more."""
    if number % 4 == 0:
        return half_a_hello(node)
    client = node.dial(LISTENERS[number % 2])
    if number % 4 == 1:
        ask(client, SaslHandshakeRequest(mechanism="PLAIN"), 1)
    else:
        ask(client, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
        ask(client, SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=stranger"), 1)
    return client.socket


def is_closed(sock: socket.socket) -> bool:
    """Whether the node has closed it; what it has said before is read."""
    sock.setblocking(False)
    try:
        while sock.recv(65_536):
            pass
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True
    return True


def run(node: GuardedNode, silent: int, stopped_: int) -> str:
    """`AssertionError` if something does not hold; else what was measured."""
    pid = node.process.pid(1)
    assert pid is not None
    before = highest = rss_bytes(pid)
    with ExitStack() as stack:
        crowd = []
        for number in range(silent):
            address = (HOST, node.ports[LISTENERS[number % 2]])
            crowd.append(stack.enter_context(socket.create_connection(address)))
        for number in range(stopped_):
            crowd.append(stack.enter_context(stopped(node, number)))
            if number % 100 == 0:
                highest = max(highest, rss_bytes(pid))
        highest = max(highest, rss_bytes(pid))
        for listener in LISTENERS:
            with node.dial(listener) as client:
                log_in(client)
                assert client.metadata(()).brokers
        each = (highest - before) / (silent + stopped_)
        assert each <= BYTES_MAX, f"{each:.0f} bytes for each connection"
        began_s = time.monotonic()
        left = crowd

        def all_closed() -> bool:
            nonlocal left
            left = [sock for sock in left if not is_closed(sock)]
            return not left

        wait_for(all_closed, "all of them are closed", timeout_s=600, poll_s=0.5)
        took_s = time.monotonic() - began_s
    return (
        f"{silent} silent, {stopped_} stopped: {each:.0f} bytes for each ({before >> 20} to {highest >> 20} MB), "
        f"a client got in by {' and '.join(LISTENERS)}, all closed {took_s:.0f} s later "
        f"(connections.max.idle.ms={IDLE_MS})"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.crowd", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--silent", type=int, default=2_000)
    parser.add_argument("--stopped", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crowd-") as folder:
        node = GuardedNode(Path(folder), connections__max__idle__ms=str(IDLE_MS))
        try:
            node.start()
            print(run(node, options.silent, options.stopped))
        finally:
            node.process.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

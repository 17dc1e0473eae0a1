"""Free ports for a cluster of a test."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """The first of enough free ports for a cluster, below those that the system gives to outgoing connections."""
    while True:
        port = random.randrange(12_000, 29_000)
        try:
            for node in range(16):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + node))
        except OSError:
            continue
        return port

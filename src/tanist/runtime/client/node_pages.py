"""Asking nodes for the positions of their replicas (`GET /replicas...` of each metrics listener)."""

from __future__ import annotations

import http.client
import json
from typing import Any, Final

_PATIENCE_S: Final = 0.5
_BYTES_MAX: Final = 64 << 20


class NoAnswer(Exception):
    """The node does not answer, or not with what was asked for."""


def ask(
    address: str, topic: str | None = None, partition: int | None = None, *, patience_s: float = _PATIENCE_S
) -> dict[str, Any]:
    """What a node says of itself, and of replicas: those of a topic, one, or (no topic) all. `NoAnswer`."""
    host, _, port = address.rpartition(":")
    path = "/replicas" + ("" if topic is None else f"/{topic}") + ("" if partition is None else f"/{partition}")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=patience_s)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read(_BYTES_MAX)
        if response.status != 200:
            raise NoAnswer(f"{address} answers {response.status} to {path}")
        found = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NoAnswer(f"{address}: {error}") from None
    finally:
        connection.close()
    if not isinstance(found, dict):
        raise NoAnswer(f"{address}: {path} is no object")
    return found

"""The address of a socket, as `socket` takes it."""

from __future__ import annotations

from typing import Any, TypeAlias

SocketAddress: TypeAlias = tuple[int, Any]
"""An address family and a socket address of it."""

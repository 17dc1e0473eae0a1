"""The test's interface to a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from tanist.runtime.client.client import Address, Client
from tanist.runtime.client.identity import security_by
from tanist.runtime.faults.settings import DiskState

Reach = Literal["network", "nodes", "one-way"]


class RunFailed(Exception):
    """The test could not be carried out, which proves nothing about the records; the text gives the reason."""


class Target(Protocol):
    """A cluster that is up. Faults that it does not support are never requested."""

    name: str
    node_ids: Sequence[int]
    abilities: frozenset[str]
    """The faults that it supports."""
    addresses: Sequence[Address]
    """Addresses of the brokers, in the order of `node_ids`."""
    properties: Mapping[str, str]
    """As whom its brokers are reached: properties of a Kafka client."""
    data: Path | None
    """The folder of its quarantines, if it has any."""

    def alive(self, node_id: int) -> bool: ...

    def kill(self, node_id: int) -> None: ...

    def lose_power(self, node_id: int) -> str:
        """Kill it, and remove its unsynced bytes. Returns the loss as text."""

    def start(self, node_id: int) -> None: ...

    def pause(self, node_id: int) -> None: ...

    def cut(self, source: Sequence[int], target: Sequence[int], reach: Reach) -> None:
        """`network`: clients are cut off too. `one-way`: only the source's packets vanish."""

    def everybody_else(self, node_id: int) -> Sequence[int]:
        """All other nodes, controllers included."""

    def slow(self, node_id: int, to: Literal["nodes", "clients"]) -> None: ...

    def disk(self, node_id: int, state: DiskState) -> None: ...

    def heal(self) -> None:
        """End faults of links and disks, and pauses. Nodes that are down stay down."""

    def close(self) -> None:
        """End all processes that the test has started; may be called at any time, and twice."""


def client_of(target: Target, timeout_s: float) -> Client:
    """A client of its brokers."""
    return Client(target.addresses, timeout_s=timeout_s, security=security_by(target.properties))

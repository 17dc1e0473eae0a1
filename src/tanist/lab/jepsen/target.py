"""What the test asks of a cluster, whoever's it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from tanist.lab.jepsen.schedule import Ability
from tanist.runtime.client.client import Address

Reach = Literal["network", "nodes", "one-way"]
DiskTrouble = Literal["full", "slow", "fail"]


class RunFailed(Exception):
    """The test could not be carried out, which says nothing about the records; the text says why."""


class Target(Protocol):
    """A cluster that is up. What it has no ability for is never asked of it."""

    name: str
    node_ids: Sequence[int]
    abilities: frozenset[Ability]
    addresses: Sequence[Address]
    """Of the brokers, in the order of `node_ids`."""
    data: Path | None
    """Where its quarantines are, if it has any."""

    def alive(self, node_id: int) -> bool: ...

    def kill(self, node_id: int) -> None: ...

    def lose_power(self, node_id: int) -> str:
        """Kill it, and take what was not synced; says what was lost, for people."""

    def start(self, node_id: int) -> None: ...

    def pause(self, node_id: int) -> None: ...

    def resume(self, node_id: int) -> None: ...

    def cut(self, source: Sequence[int], target: Sequence[int], reach: Reach) -> None:
        """`network`: clients are beyond the cut too. `one-way`: only what the source sends vanishes."""

    def everybody_else(self, node_id: int) -> Sequence[int]:
        """All other nodes, controllers included."""

    def slow(self, node_id: int, to: Literal["nodes", "clients"]) -> None: ...

    def disk(self, node_id: int, trouble: DiskTrouble) -> None: ...

    def heal(self) -> None:
        """End faults of links and disks, and pauses. Who is down stays so."""

    def close(self) -> None:
        """End all processes that the test has started; may be called at any time, and twice."""

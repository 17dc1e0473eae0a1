"""What the server asks of whatever it shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from tanist.web.state import Json

Watched = Collection[tuple[str, int]]
"""Partitions whose replicas are looked at, by topic and number."""


class NotHere(Exception):
    """What was asked for is not to be had from this source; the text says why."""


class Source(Protocol):
    """A cluster to look at. Methods block, and are called from one thread each at a time."""

    def read_state(self, watched: Watched) -> Mapping[str, Json]:
        """Everything that changes from second to second. Values that have not changed are the same objects."""

    def read_groups_and_salvage(self) -> Mapping[str, Json]:
        """What costs requests and changes slowly: `groups` and `salvage`."""

    def price(self, action: str, node: int) -> Json:
        """What a fault would cost, in sentences, before it is asked for."""

    def act(self, action: str, node: int | None) -> str:
        """Carry out a fault or end it; what was done, in a sentence."""

    def salvaged(self, topic: str, partition: int, most: int) -> Json:
        """The first records of a partition's salvage, and the commands that merge them back."""

    def close(self) -> None: ...

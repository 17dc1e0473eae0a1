"""The positions of one replica's log, by its own broker, or by the files of a broker that is gone.

Owns `ReplicaPositions` and the leader epoch of an offset. Two logs with the same epoch at an offset have the same
record there, so positions and epochs are enough to compare logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ReplicaPositions:
    """One replica's log. None: not known."""

    broker: int
    role: str
    """leader, follower, offline, or dead."""
    alive: bool
    start: int | None = None
    end: int | None = None
    high_watermark: int | None = None
    synced: int | None = None
    """Everything below it is on the disk."""
    epochs: tuple[tuple[int, int], ...] = ()
    """(leader epoch, first offset)."""
    note: str | None = None
    since_ms: int | None = None

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of a record; -1 if the replica does not say."""
        found = -1
        for epoch, start in self.epochs:
            if start > offset:
                break
            found = epoch
        return found


def on_page(broker: int, row: Mapping[str, Any]) -> ReplicaPositions:
    """One replica as the page of its node has it (`node_pages`)."""
    return ReplicaPositions(
        broker,
        row["role"],
        True,
        start=row["log_start_offset"],
        end=row["log_end_offset"],
        high_watermark=row["high_watermark"],
        synced=row["synced_offset"],
        epochs=tuple((epoch, start) for epoch, start in row["epochs"]),
    )

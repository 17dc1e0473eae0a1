"""What nodes say of their replicas (`runtime.client.node_pages`), as the live view has it."""

from __future__ import annotations

from typing import Any

from tanist.runtime.client.node_pages import NoAnswer as NoAnswer
from tanist.runtime.client.node_pages import ask as ask
from tanist.web.state import ReplicaPositions


def replica(broker: int, row: dict[str, Any]) -> ReplicaPositions:
    """One replica as its own node has it."""
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

"""Counters of a node, under Kafka's names (facts 129-131). Gauges are computed from the state when they are asked
for.
"""

from __future__ import annotations

from tanist.replica.effects import IsrChanged


class Metrics:
    """What can only be counted as it happens."""

    __slots__ = ("failed_isr_updates", "isr_expands", "isr_shrinks", "malformed_requests")

    def __init__(self) -> None:
        self.isr_expands = 0
        self.isr_shrinks = 0
        self.failed_isr_updates = 0
        self.malformed_requests = 0

    def isr_changed(self, effect: IsrChanged) -> None:
        if effect.grew:
            self.isr_expands += 1
        if effect.shrank:
            self.isr_shrinks += 1

    def isr_update_failed(self) -> None:
        self.failed_isr_updates += 1

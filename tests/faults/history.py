"""A load's acknowledgements, the log in the end, and the longest pause in between.

Pure: no cluster, no clock. Whether the two agree is the history checker's to say (`recorded.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import quantiles


@dataclass(frozen=True, slots=True)
class Ack:
    """One acknowledged record: the number it had in its partition, its offset, and when the producer learned of it."""

    partition: int
    number: int
    offset: int | None
    """None if the producer knows that it is in the log, but not where: librdkafka concludes that of a batch whose
    answer it missed, when one behind it is acknowledged."""
    at_s: float


@dataclass(frozen=True, slots=True)
class Stored:
    """One record that the log holds."""

    offset: int
    number: int


def longest_gap_s(times_s: Sequence[float], start_s: float, end_s: float) -> float:
    """The longest silence between two acknowledgements that overlaps [start_s, end_s].

    If none came after the start, the silence lasts at least to the end.
    """
    ordered = sorted(times_s)
    before = [time_s for time_s in ordered if time_s <= start_s]
    after = [time_s for time_s in ordered if start_s < time_s <= end_s]
    edges = [before[-1] if before else start_s, *after]
    if not after:
        return end_s - edges[0]
    return max(later - earlier for earlier, later in pairwise(edges))


@dataclass(frozen=True, slots=True)
class Spread:
    """p50, p90 and the maximum of some measured values, in the values' unit."""

    p50: float
    p90: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        if not values:
            raise ValueError("no values to describe")
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        cuts = quantiles(values, n=10, method="inclusive")
        return cls(cuts[4], cuts[8], max(values))

    def __str__(self) -> str:
        return f"p50 {self.p50:.2f}  p90 {self.p90:.2f}  max {self.max:.2f}"

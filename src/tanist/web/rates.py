"""Rates from the counters of two samples.

Owns the last counters of each broker and partition. A counter that goes back has begun again with its process or its
log: its rate is 0 for that sample. Nothing is known from a first sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Key = tuple[str | int, ...]

_LEAST_S: Final = 0.4
"""Samples that are closer together give the rates of the sample before: their differences are too coarse."""


class Rates:
    """Counters by key, as they were last seen."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[float, Mapping[str, int]]] = {}
        self._rates: dict[Key, dict[str, float]] = {}

    def of(self, key: Key, at_s: float, counters: Mapping[str, int]) -> dict[str, float] | None:
        """By how much each has grown a second since the sample before; None at the first."""
        seen = self._seen.get(key)
        if seen is not None and at_s - seen[0] < _LEAST_S:
            return self._rates.get(key)
        self._seen[key] = at_s, dict(counters)
        if seen is None:
            return None
        before_s, before = seen
        passed_s = at_s - before_s
        self._rates[key] = {
            name: rounded(max(0, value - before.get(name, value)) / passed_s) for name, value in counters.items()
        }
        return self._rates[key]

    def keep(self, keys: set[Key]) -> None:
        """Forget all others: what comes back after a pause begins anew."""
        for key in [each for each in self._seen if each not in keys]:
            del self._seen[key]
            self._rates.pop(key, None)


def rounded(rate: float) -> float:
    """Three digits: more would be noise, and a change of each sample."""
    return float(f"{rate:.3g}")

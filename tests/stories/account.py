"""Numbered records: those that were acknowledged against those that are there in the end.

Pure: no cluster, no clock. Records are known by their values, not by their offsets: a record that was lost and put
back stands at another offset, and is not lost. (The history checker compares offsets as well.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the acknowledged records."""

    acknowledged: int
    stored: int
    """Records in the log, acknowledged or not."""
    lost: tuple[int, ...]
    """Acknowledged, and not in the log; ascending."""
    duplicated: int
    """Records that the log has besides the first of each."""
    disordered: int
    """How often the log goes back to a record that was acknowledged earlier."""

    def __str__(self) -> str:
        which = f" ({ranges(self.lost)})" if self.lost else ""
        return (
            f"{self.acknowledged} acknowledged, {self.stored} in the log: "
            f"{len(self.lost)} lost{which}, {self.duplicated} duplicated, {self.disordered} out of order"
        )


def account(acknowledged: Sequence[int], stored: Sequence[int]) -> Account:
    """Compare one partition: what was acknowledged, in that order, and what the log holds, in its order."""
    counts = Counter(stored)
    places: dict[int, int] = {}
    for place, number in enumerate(stored):
        places.setdefault(number, place)
    found = [places[number] for number in acknowledged if number in places]
    return Account(
        acknowledged=len(acknowledged),
        stored=len(stored),
        lost=tuple(sorted(number for number in acknowledged if number not in counts)),
        duplicated=sum(count - 1 for count in counts.values()),
        disordered=sum(1 for earlier, later in pairwise(found) if later < earlier),
    )


def ranges(numbers: Iterable[int]) -> str:
    """1, 2, 3, 7 as `1..3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("..".join(map(str, run)) for run in runs)

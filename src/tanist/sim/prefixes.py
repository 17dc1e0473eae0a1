"""What each prefix of the metadata log says of one thing.

Owns the states between changes, so that an oracle can be asked about any moment of any node. Must know no record: who
owns a model replays them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

State = TypeVar("State")


class Prefixes(Generic[State]):
    """The committed history of a state, which is never changed in place."""

    def __init__(self, first: State) -> None:
        self._offsets: list[int] = [-1]
        """Of the records that changed something."""
        self._after: list[State] = [first]

    @property
    def newest(self) -> State:
        return self._after[-1]

    def became(self, offset: int, state: State) -> None:
        """The state after another committed record; the present one if that was about something else. `offset`: of
        the last record of its batch, for a batch takes effect as a whole."""
        if state is self._after[-1]:
            return
        if offset == self._offsets[-1]:
            self._after[-1] = state
        else:
            self._offsets.append(offset)
            self._after.append(state)

    def between(self, first: int, last: int) -> Iterator[State]:
        """What prefixes of the log say that end at `first`, at `last`, or between."""
        begin = bisect_right(self._offsets, first) - 1
        yield from self._after[begin : max(begin + 1, bisect_right(self._offsets, last))]

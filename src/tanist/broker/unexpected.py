"""Exceptions that nobody expected: neither malformed bytes, nor a failing disk, nor a refusal of the protocol.

Owns the count of each place, the reports, and the end of the process by a crash. The first exception of a place is
reported with its traceback; of later ones only the number is, each time it has doubled: a request that makes a node
raise must not fill its disk. `docs/operations.md` has the table of places.

It never decides what is torn. The owner of some state does: it gives the state up and says so here (`met`), or ends the
process (`crash`).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable

from tanist import __version__
from tanist.events.process import UnexpectedError
from tanist.events.stream import Events

_ORIGINS_MAX = 200
"""Places in the source of which the node keeps a count; further ones share one."""

OnMet = Callable[[str, Exception], None]
"""(place, exception): hears of each, also of those after which the node goes on."""
OnCrash = Callable[[str, str], None]
"""(reason in a line, crash report): ends the process at once, and closes nothing in an orderly way."""


class Unexpected:
    """The unexpected exceptions of one node, in one life of its process."""

    __slots__ = ("_counts", "_events", "_node_id", "_on_crash", "_on_met", "_recent", "crashed")

    def __init__(
        self,
        node_id: int,
        events: Events,
        recent: Callable[[], Iterable[str]],
        on_crash: OnCrash,
        on_met: OnMet | None,
    ) -> None:
        """`recent` gives what the node has met last, a line for each event."""
        self._node_id = node_id
        self._events = events
        self._recent = recent
        self._on_crash = on_crash
        self._on_met = on_met
        self._counts: dict[tuple[str, str], int] = {}
        self.crashed = False

    def met(self, place: str, error: Exception) -> None:
        """The state that `error` may have torn is given up, or there is none: count it, and report it."""
        key = (place, _origin(error) if len(self._counts) < _ORIGINS_MAX else "")
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count & (count - 1) == 0:
            where = _traceback_of(error) if count == 1 else ""
            self._events.emit(UnexpectedError(place, repr(error), count, where))
        if self._on_met is not None:
            self._on_met(place, error)

    def met_by_job(self, place: str, result: object) -> None:
        """What a job off the loop has come to: `met` if it is an exception, and no failure of the disk."""
        if isinstance(result, Exception) and not isinstance(result, OSError):
            self.met(place, result)

    def crash(self, place: str, error: Exception) -> None:
        """What `error` may have torn cannot be given up while the process lives: end it, with a crash report."""
        if self.crashed:
            return
        self.crashed = True
        try:
            self.met(place, error)
        finally:
            self._on_crash(f"unexpected error in {place}: {error!r}", self._crash_report(place, error))

    def counts(self) -> dict[str, int]:
        """How many there were, by place."""
        found: dict[str, int] = {}
        for (place, _), count in self._counts.items():
            found[place] = found.get(place, 0) + count
        return found

    def _crash_report(self, place: str, error: Exception) -> str:
        events = list(self._recent())
        return "\n".join(
            (
                f"node {self._node_id} ended by an unexpected error in {place}",
                f"tanist {__version__}, Python {sys.version.split()[0]} on {sys.platform}",
                "",
                _traceback_of(error),
                "",
                f"the last {len(events)} events:",
                *events,
                "",
            )
        )


def _traceback_of(error: Exception) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def _origin(error: Exception) -> str:
    """Where it was raised, in the source."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return f"{frames[-1][0].f_code.co_qualname}:{frames[-1][1]}" if frames else type(error).__name__

"""How much of the log is known to survive a loss of power.

Owns the one `SyncLog` that may be unanswered, and the meaning of its answer. If the log is cut during a sync, the
synced records above the cut are gone, and the records there now were not synced. So there is one sync at a time, and
its answer is bounded by the lowest cut since.
"""

from __future__ import annotations


class Durability:
    __slots__ = ("_bound", "_dirty", "durable_end", "syncing")

    def __init__(self) -> None:
        self.durable_end = 0
        """Records below this survive. At the start that is known of none: recovery read them from the page cache."""
        self.syncing = False
        self._dirty = False
        self._bound: int | None = None

    def written(self) -> bool:
        """The log has grown or was replaced. True: ask for a sync now; else the next one covers it."""
        if self.syncing:
            self._dirty = True
            return False
        self.syncing = True
        self._dirty = False
        self._bound = None
        return True

    def cut(self, offset: int) -> None:
        self.durable_end = min(self.durable_end, offset)
        if self.syncing:
            self._bound = offset if self._bound is None else min(self._bound, offset)

    def installed(self, end_offset: int) -> None:
        """A snapshot, durable in itself, stands for everything below `end_offset`; the log is empty."""
        self.durable_end = end_offset
        if self.syncing:
            self._bound = end_offset

    def synced(self, end_offset: int, log_end: int) -> bool:
        """The sync is done. True: ask for another, for what was written meanwhile."""
        if not self.syncing:
            return False
        self.syncing = False
        known = min(end_offset, log_end)
        if self._bound is not None:
            known = min(known, self._bound)
        self.durable_end = max(self.durable_end, known)
        return self.written() if self._dirty or self.durable_end < log_end else False

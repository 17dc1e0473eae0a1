"""The logs of a cluster's nodes as one: merged by time, and followed as they grow.

Owns how a log is cut into entries: a line that begins with `[2026-11-22 20:30:00,123] LEVEL `, and those after it that
do not (a traceback, what a library printed). It only reads.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tanist.runtime.cluster.growing_file import GrowingFile

LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")
_HEAD = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] ([A-Z]+) ?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a node's log."""

    time: str
    """As the log has it; empty of what was printed before the first line with a time."""
    node_id: int
    level: str
    text: str
    """Lines, without the last line's end."""


class NodeLog:
    """One node's log, read on from where the last look ended. One that was removed and made anew is begun again."""

    def __init__(self, node_id: int, path: Path) -> None:
        self.node_id = node_id
        self._file = GrowingFile(path)
        self._time, self._level = "", "INFO"

    def entries(self, *, final: bool = True) -> Iterator[Entry]:
        """The new entries. Unless `final`, a line that has no end yet is left for the next look."""
        lines: list[str] = []
        for read in self._file.lines(final=final):
            line = read.decode(errors="replace").rstrip("\r\n")
            head = _HEAD.match(line)
            if head is None:
                lines.append(line)
                continue
            if lines:
                yield self._entry(lines)
            self._time, self._level = head[1], head[2]
            lines = [head[3]]
        if lines:
            yield self._entry(lines)

    def close(self) -> None:
        self._file.close()

    def _entry(self, lines: Sequence[str]) -> Entry:
        return Entry(self._time, self.node_id, self._level, "\n".join(lines))


def merged(logs: Sequence[NodeLog], *, final: bool = True) -> Iterator[Entry]:
    """The new entries of all logs, by time; of equals, by node."""
    return heapq.merge(*(log.entries(final=final) for log in logs), key=lambda entry: (entry.time, entry.node_id))

"""The events of a node that runs, as lines of JSON in a file of its first log directory: `tanist events` reads it.

Owns the file and its bound: at `FILE_BYTES_MAX` it becomes the file before it, so that at most two of them are there.
Each line is an event (`tanist.events.event.to_json`) with the time at which it was emitted, in milliseconds since 1970.
A disk that takes no line does not take the node down: the line is left out. If it takes a part of one, the next line
begins after an end of that, so that a reader leaves out the part, and nothing else.
Events also come from the threads that load logs.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Final

from tanist.events.event import Event, to_json

FILE_NAME: Final = ".tanist-events.jsonl"
PREVIOUS_NAME: Final = ".tanist-events.1.jsonl"
FILE_BYTES_MAX: Final = 8 << 20


def log_time(wall_ms: int) -> str:
    """The time of an event as the node's log has it, with the event's line: local, to the millisecond."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(wall_ms / 1000))},{wall_ms % 1000:03d}"


class EventLog:
    """The file of a process that runs."""

    def __init__(self, folder: str) -> None:
        self._path, self._previous = f"{folder}/{FILE_NAME}", f"{folder}/{PREVIOUS_NAME}"
        self._fd = -1
        self._size = 0
        self._torn = False
        """The file ends within a line."""
        self._lock = threading.Lock()

    def write(self, now_ms: int, event: Event) -> None:
        line = {"ms": now_ms, **to_json(event)}
        try:
            with self._lock:
                self._append(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        except OSError:
            return

    def _append(self, line: bytes) -> None:
        if self._fd >= 0 and self._size + len(line) > FILE_BYTES_MAX:
            os.close(self._fd)
            self._fd = -1
            os.replace(self._path, self._previous)
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._size = os.fstat(self._fd).st_size
            # The process before this one may have been killed within a line.
            self._torn = self._size > 0 and not self._ends_with_a_line()
        rest = memoryview(b"\n" + line if self._torn else line)
        while rest:
            written = os.write(self._fd, rest)
            self._size += written
            rest = rest[written:]
            self._torn = len(rest) > 0

    def _ends_with_a_line(self) -> bool:
        with open(self._path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

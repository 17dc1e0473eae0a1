"""Why a node's process ends: a record in a file of its first log directory. `cluster.exit_reasons` reads it.

A node that dies of a full disk cannot write, so the file is made at the start, at its full size, and its bytes are only
ever overwritten in place. It names the process, so that the record of an earlier process is not taken for that of the
last one.
"""

from __future__ import annotations

import json
import os

FILE_NAME = ".tanist-last-words"
_SIZE = 4096
_REASON_CHARS_MAX = 1000


class ExitRecord:
    """The file of a process that runs."""

    def __init__(self, folder: str) -> None:
        """`OSError` if the disk is full, or the folder cannot be written."""
        self._fd = os.open(f"{folder}/{FILE_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._write("")

    def record(self, reason: str) -> None:
        """The process ends because of this. An error of the disk is ignored: the process ends anyway."""
        try:
            self._write(reason)
        except OSError:
            return

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, reason: str) -> None:
        record = json.dumps({"process": os.getpid(), "reason": reason[:_REASON_CHARS_MAX]}).encode()
        os.pwrite(self._fd, record.ljust(_SIZE), 0)

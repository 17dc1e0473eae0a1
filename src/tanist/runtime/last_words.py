"""Of what a node dies: its last words, in a file of its first log directory (`deaths` reads them, from outside).

A node that dies of a full disk cannot write, so the file is made at the start, at its full size, and its bytes are only
ever overwritten in place. It names the process, so that the words of an earlier life are not taken for those of the
last.
"""

from __future__ import annotations

import json
import os

FILE_NAME = ".tanist-last-words"
_SIZE = 4096
_WORDS_MAX = 1000


class LastWords:
    """The file of a process that runs."""

    def __init__(self, folder: str) -> None:
        """`OSError` if there is no room for it, or the folder cannot be written."""
        self._fd = os.open(f"{folder}/{FILE_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._write("")

    def say(self, reason: str) -> None:
        """The process ends, because of this. It must not fail for want of a file."""
        try:
            self._write(reason)
        except OSError:
            return

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, reason: str) -> None:
        words = json.dumps({"process": os.getpid(), "reason": reason[:_WORDS_MAX]}).encode()
        os.pwrite(self._fd, words.ljust(_SIZE), 0)

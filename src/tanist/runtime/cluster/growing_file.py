"""A file to which another process appends, read by lines as it grows.

Owns what becomes of the reading when the file is replaced: what is left of the old one comes first, then the new one
from its beginning. It only reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO


class GrowingFile:
    """One file, read on from where the last look ended."""

    def __init__(self, path: Path, previous: Path | None = None) -> None:
        """`previous`: the name that the file gets when a new one takes its place. What has it is read first."""
        self._path = path
        self._previous = previous
        self._file: IO[bytes] | None = None
        self._rest = b""
        self._done: IO[bytes] | None = None
        """The file that was read to its end. It stays open, so that no other one gets its inode."""

    def lines(self, *, final: bool = False) -> Iterator[bytes]:
        """The new lines; none while the file is not there. Unless `final`, a line that has no end yet is left for the
        next look. `OSError` if it cannot be read.
        """
        while True:
            if self._file is None:
                yield from self._open()
            file = self._file
            if file is None:
                return
            yield from self._read(file, final)
            if not self._was_replaced(file):
                return
            yield from self._read(file, final)  # what came before it was replaced
            self._file = None
            self._finish(file)

    def close(self) -> None:
        for file in (self._file, self._done):
            if file is not None:
                file.close()
        self._file = self._done = None

    def _open(self) -> Iterator[bytes]:
        """Open the present file; then read the previous one, unless that is the present one by now, or was read.

        In this order: a file that is replaced meanwhile is read under its old name or its new one, and never missed.
        """
        self._rest = b""
        with suppress(FileNotFoundError):
            self._file = self._path.open("rb")
        if self._previous is None:
            return
        try:
            previous = self._previous.open("rb")
        except FileNotFoundError:
            return
        known = [_inode(file) for file in (self._file, self._done) if file is not None]
        if _inode(previous) in known:
            previous.close()
            return
        yield from previous
        self._finish(previous)

    def _finish(self, file: IO[bytes]) -> None:
        if self._done is not None:
            self._done.close()
        self._done = file

    def _read(self, file: IO[bytes], final: bool) -> Iterator[bytes]:
        for line in file:
            if not line.endswith(b"\n") and not final:
                self._rest += line
                return
            yield self._rest + line
            self._rest = b""

    def _was_replaced(self, file: IO[bytes]) -> bool:
        try:
            return self._path.stat().st_ino != _inode(file)
        except OSError:
            return False


def _inode(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_ino

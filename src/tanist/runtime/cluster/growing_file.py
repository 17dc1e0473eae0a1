"""A file to which another process appends, read by lines as it grows.

Owns what becomes of the reading when the file is replaced: what is left of the old one comes first, then the new one
from its beginning. It only reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


class GrowingFile:
    """One file, read on from where the last look ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._rest = b""

    def lines(self, *, final: bool = False) -> Iterator[bytes]:
        """The new lines; none while the file is not there. Unless `final`, a line that has no end yet is left for the
        next look. `OSError` if it cannot be read.
        """
        while (file := self._opened()) is not None:
            yield from self._read(file, final)
            if not self._was_replaced(file):
                return
            yield from self._read(file, final)  # what came before it was replaced
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> IO[bytes] | None:
        if self._file is None:
            try:
                self._file, self._rest = self._path.open("rb"), b""
            except FileNotFoundError:
                return None
        return self._file

    def _read(self, file: IO[bytes], final: bool) -> Iterator[bytes]:
        for line in file:
            if not line.endswith(b"\n") and not final:
                self._rest += line
                return
            yield self._rest + line
            self._rest = b""

    def _was_replaced(self, file: IO[bytes]) -> bool:
        try:
            return self._path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except OSError:
            return False

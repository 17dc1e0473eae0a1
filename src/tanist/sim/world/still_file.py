"""A file for somebody who looks at a disk from outside: the simulator's faults do not concern it."""

from __future__ import annotations

from collections.abc import Sequence

from tanist.ports import Buffer
from tanist.sim.world.error_numbers import EBADF


class StillFile:
    """A file as it is at this moment, for somebody who looks from outside: past all faults, and without a trace."""

    __slots__ = ("_data", "path", "size", "synced")

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self._data = data
        self.size = self.synced = len(data)

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + max(0, length)]

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        raise OSError(EBADF, "is open for reading", self.path)

    def truncate(self, size: int) -> None:
        raise OSError(EBADF, "is open for reading", self.path)

    def close(self) -> None:
        """There is nothing to close."""

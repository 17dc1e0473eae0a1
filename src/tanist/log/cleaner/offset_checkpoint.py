"""`cleaner-offset-checkpoint`: how far each log of a directory is clean, in Kafka's file.

Owns the file's reading and writing. An older one costs a cleaning that finds little to do, so it is not synced; one
that is ahead of the log would keep superseded records, so an entry is written after the swap that it describes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tanist.log.checkpoints import CheckpointError, decode_offsets, encode_offsets
from tanist.ports import Disk

CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"


class CleanerOffsets:
    """Of the log directory `path`."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = f"{path}/{CLEANER_OFFSET_CHECKPOINT}"
        self._offsets: dict[tuple[str, int], int] = {}
        self.complaint: str | None = None
        """The fault of the file; with one, everything counts as dirty."""
        try:
            self._offsets = decode_offsets(disk.read_file(self._path), self._path)
        except FileNotFoundError:
            pass
        except CheckpointError as error:
            self.complaint = str(error)

    def get(self, log: tuple[str, int]) -> int | None:
        return self._offsets.get(log)

    def set(self, log: tuple[str, int], offset: int, there: Collection[tuple[str, int]]) -> None:
        """The log is clean up to `offset`. Logs that are not `there` any more are forgotten."""
        self._offsets = {key: known for key, known in self._offsets.items() if key in there}
        self._offsets[log] = offset
        self._disk.write_file(self._path, encode_offsets(self._offsets), sync=False)

"""A log on a disk in memory, opened and filled in one line."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tanist.log.config import LogConfig
from tanist.log.log import AppendResult, Log
from tanist.ports import FileRange
from tests.log.log_batches import batch, offsets_in
from tests.log.log_disks import MemoryDisk

FOLDER = "/d/t-0"
ID = UUID(int=5)


def open_log(disk: Any = None, config: LogConfig | None = None, **how: Any) -> Log:
    settings: dict[str, Any] = {"recovery_point": 0, "clean": True, **how}
    return Log.open(disk or MemoryDisk(), FOLDER, "t", 0, ID, config or LogConfig(), 0, **settings)


def add(log: Log, count: int = 1, *, epoch: int = 0, timestamp: int = 1_000, **how: Any) -> AppendResult:
    """Append a batch of `count` records as the leader of `epoch`."""
    result = log.append_as_leader(batch([b"value"] * count, timestamps=timestamp, **how), epoch, 0, timestamp)
    assert result.error == 0, result.message
    return result


def content(piece: FileRange) -> bytes:
    return piece.file.read(piece.offset, piece.length)


def read_all(log: Log, start: int | None = None, upper: int | None = None, max_bytes: int = 2**20) -> bytes:
    """What a consumer gets that reads on until there is nothing more."""
    data = b""
    offset = log.log_start_offset if start is None else start
    while True:
        piece = log.read(offset, max_bytes, log.log_end_offset if upper is None else upper)
        if piece is None:
            return data
        chunk = content(piece.chunk)
        assert offsets_in(chunk)[0][0] == piece.first_batch_offset
        whole = offsets_in(chunk)
        # Beyond the whole batches may come one that `max_bytes` has cut.
        data += chunk[: sum(sizes_in(chunk)[: len(whole)])]
        offset = whole[-1][1] + 1


def sizes_in(data: bytes) -> list[int]:
    sizes = []
    position = 0
    while position + 12 <= len(data):
        sizes.append(12 + int.from_bytes(data[position + 8 : position + 12], "big"))
        position += sizes[-1]
    return sizes


def segment_count(log: Log) -> int:
    return len(log._segments)


def epochs_of(log: Log) -> list[tuple[int, int]]:
    return [tuple(entry) for entry in log.epochs.entries]  # type: ignore[misc]

"""A compacted log that is cleaned in one call, and what is left in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tanist.log.cleaner.cleaning import Cleaned, Job, LogCleaning, Steps
from tanist.log.cleaner.key_map import KeyMap
from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.ports import Disk
from tanist.wire.batch import BatchHeader, decode_batch, read_header
from tests.log.log_batches import batch, offsets_in
from tests.log.log_rig import open_log, read_all, sizes_in

COMPACT = LogConfig(cleanup_policy="compact", segment_bytes=300, index_interval_bytes=100)
_later = itertools.count(10**12, 10**12)
"""Each time so much that any segment has been active for long enough."""

DAY_MS = 24 * 60 * 60 * 1000


class Left(NamedTuple):
    """A record that a consumer gets."""

    offset: int
    key: bytes | None
    value: bytes | None


def put(log: Log, pairs: Iterable[tuple[bytes, bytes | None]], *, epoch: int = 0, now: int = 1_000, **how: Any) -> int:
    """Append each pair as a batch of its own; the log's end."""
    for key, value in pairs:
        data = batch([value], key=key, timestamps=now, **how)
        result = log.append_as_leader(data, epoch, now, now, internal=True)
        assert result.error == 0, result.message
    return log.log_end_offset


def roll_and_flush(disk: Disk, log: Log) -> None:
    """Seal what there is, durably."""
    log.write_pending()
    log.roll_if_due(next(_later))
    end = log.log_end_offset
    for file in log.unflushed_files():
        disk.sync_now(file)
    log.mark_flushed(end)


def take(disk: Disk, steps: Steps, between: Callable[[], None] = lambda: None) -> Cleaned:
    """All steps of a cleaning, one after the other."""
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, Job):
                    step.run()
                else:
                    for file in step.files:
                        disk.sync_now(file)
            except Exception as failure:
                step = steps.throw(failure)
                continue
            between()
            step = steps.send(None)
    except StopIteration as end:
        cleaned: Cleaned = end.value
        return cleaned


def clean(
    disk: Disk,
    log: Log,
    checkpoint: int | None = None,
    *,
    high_watermark: int | None = None,
    keys_max: int = 10_000,
    wall_ms: int = 10_000,
    between: Callable[[], None] = lambda: None,
) -> Cleaned:
    high_watermark = log.log_end_offset if high_watermark is None else high_watermark
    found = log.cleanable(checkpoint, high_watermark, wall_ms)
    return take(disk, LogCleaning(disk, log, found, KeyMap(keys_max), 0, wall_ms).steps(), between)


def batches_of(log: Log) -> list[tuple[BatchHeader, bytes]]:
    data, found, position = read_all(log), [], 0
    for size in sizes_in(data):
        found.append((read_header(data, position), data[position : position + size]))
        position += size
    return found


def left_in(log: Log) -> list[Left]:
    return [
        Left(record.offset, record.key, record.value)
        for header, data in batches_of(log)
        for record in decode_batch(data)
        if not header.is_control
    ]


__all__ = [
    "COMPACT",
    "DAY_MS",
    "Left",
    "batches_of",
    "clean",
    "left_in",
    "offsets_in",
    "open_log",
    "put",
    "roll_and_flush",
    "take",
]

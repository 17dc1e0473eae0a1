"""What of a log is to be cleaned, and which segments become one.

Owns Kafka's rules of `LogCleanerManager`: where the dirty part begins and where it must end, its share of the log
(`min.cleanable.dirty.ratio`), the lags (`min.compaction.lag.ms`, `max.compaction.lag.ms`), and the groups. Pure: it
looks, and `cleaner.cleaning` does.

The end is never above the high watermark or an undecided transaction, never in the active segment, and (stricter than
Kafka) never above the recovery point: what is cleaned was durable before, so that a start never has to scan it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tanist.log.config import LONG_MAX, LogConfig
from tanist.log.segment import Segment
from tanist.log.segments import Segments

_RELATIVE_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Cleanable:
    """The dirty part of a log, from a cleaner's point of view."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue: bool
    """`max.compaction.lag.ms` has passed for a record in it."""

    @property
    def ratio(self) -> float:
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0

    def is_due(self, ratio_min: float) -> bool:
        return self.cleanable_bytes > 0 and (self.overdue or self.ratio > ratio_min)


def first_dirty_offset(checkpoint: int | None, log_start_offset: int, log_end_offset: int) -> int:
    """The offset at which cleaning goes on; the log's start if the checkpoint does not fit this log."""
    if checkpoint is None or not log_start_offset <= checkpoint <= log_end_offset:
        return log_start_offset
    return checkpoint


def find_cleanable(
    segments: Segments, config: LogConfig, first_dirty: int, last_stable_offset: int, recovery_point: int, wall_ms: int
) -> Cleanable:
    """The part of a log that could be cleaned now."""
    limit = min(last_stable_offset, recovery_point, segments.active.base_offset)
    sealed = [segment for segment in segments if segment is not segments.active]
    dirty = [segment for index, segment in enumerate(sealed) if segments.end_offset(index, LONG_MAX) > first_dirty]
    if config.min_compaction_lag_ms > 0:
        newest_ms = wall_ms - config.min_compaction_lag_ms
        too_new = (each.base_offset for each in dirty if each.latest_timestamp().timestamp > newest_ms)
        limit = min([limit, *too_new])
    # Whole segments only: the one in which the limit lies stays.
    end = first_dirty
    clean_bytes = cleanable_bytes = 0
    for index, segment in enumerate(sealed):
        segment_end = segments.end_offset(index, LONG_MAX)
        if segment_end <= first_dirty:
            clean_bytes += segment.size
        elif segment_end <= limit:
            cleanable_bytes += segment.size
            end = segment_end
    overdue = False
    if config.max_compaction_lag_ms < LONG_MAX:
        until_ms = wall_ms - max(config.max_compaction_lag_ms, 0)
        overdue = any(0 < segment.first_timestamp() < until_ms for segment in dirty)
    return Cleanable(first_dirty, end, clean_bytes, cleanable_bytes, overdue)


def grouped(segments: Sequence[Segment], config: LogConfig, end_offset: int) -> list[tuple[Segment, ...]]:
    """Neighbours that fit into one segment, by size, by their indexes, and by the distance of their offsets.

    `end_offset` is where the last one ends at most.
    """
    groups: list[list[Segment]] = []
    size = offset_entries = time_entries = 0
    for number, segment in enumerate(segments):
        last_offset = (segments[number + 1].base_offset if number + 1 < len(segments) else end_offset) - 1
        fits = (
            bool(groups)
            and size + segment.size <= config.segment_bytes
            and offset_entries + segment.offset_index.entries <= segment.offset_index.max_entries
            and time_entries + segment.time_index.entries <= segment.time_index.max_entries
            and (segment.size == 0 or last_offset - groups[-1][0].base_offset <= _RELATIVE_MAX)
        )
        if not fits:
            groups.append([])
            size = offset_entries = time_entries = 0
        groups[-1].append(segment)
        size += segment.size
        offset_entries += segment.offset_index.entries
        time_entries += segment.time_index.entries
        segment.ease()
    return [tuple(group) for group in groups]

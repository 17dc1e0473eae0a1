"""Which of the oldest segments may go.

Owns the three rules of `delete_old_segments`, in Kafka's order: below the log start offset, over `retention.bytes`,
older than `retention.ms`; compacted-only topics know the first alone. And what holds the last one up: a timestamp in
the future. Pure: it returns a count, and the log drops the segments.
"""

from __future__ import annotations

from tanist.log.config import LogConfig
from tanist.log.segment import Segment
from tanist.log.segments import Segments


def expired_segments(
    segments: Segments,
    config: LogConfig,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
    wall_ms: int,
) -> int:
    """How many of the oldest segments may be dropped. All of them if even the active one has expired, unless it is
    empty.

    A segment that reaches beyond the high watermark stays, or the log could start above it.
    """
    may_go = sum(
        1
        for index, segment in enumerate(segments)
        if segments.end_offset(index, log_end_offset) <= high_watermark
        and not (segment is segments.active and segment.size == 0)
    )
    count = 0
    while (
        count < may_go and count + 1 < len(segments) and segments.end_offset(count, log_end_offset) <= log_start_offset
    ):
        count += 1
    if not config.deletes:
        return count
    if config.retention_bytes >= 0:
        kept_bytes = sum(segment.size for index, segment in enumerate(segments) if index >= count)
        while count < may_go and kept_bytes - segments.at(count).size >= config.retention_bytes:
            kept_bytes -= segments.at(count).size
            count += 1
    if config.retention_ms >= 0:
        while count < may_go and _age_ms(segments.at(count), now_ms, wall_ms) > config.retention_ms:
            count += 1
    return count


def held_up(
    segments: Segments, config: LogConfig, log_end_offset: int, high_watermark: int, wall_ms: int
) -> Segment | None:
    """The oldest segment, if a timestamp in the future keeps `retention.ms` from it, and so from all that follow."""
    oldest = segments.at(0)
    waits = config.deletes and config.retention_ms >= 0 and oldest is not segments.active
    if not waits or segments.end_offset(0, log_end_offset) > high_watermark:
        return None
    return oldest if oldest.latest_timestamp().timestamp > wall_ms else None


def _age_ms(segment: Segment, now_ms: int, wall_ms: int) -> int:
    """Its age by the latest timestamp; where no record has one, since this broker first saw the segment."""
    latest = segment.latest_timestamp().timestamp
    return wall_ms - latest if latest >= 0 else now_ms - segment.created_ms

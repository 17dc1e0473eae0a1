"""Rules of retention and DeleteRecords, broken: the records that may go, and the log starts that brokers remember.

Owns patches of `tanist.log`, `tanist.replica` and of DeleteRecords. They show in the simulator's runs with trimming.
"""

from __future__ import annotations

from typing import Any

from tanist.broker.api import delete_records
from tanist.lab.mutations.patching import Patch, always, fixed
from tanist.log import log as logs
from tanist.log.checkpoints import LOG_START_CHECKPOINT
from tanist.log.directory_checkpoints import DirectoryCheckpoints
from tanist.log.log import Log
from tanist.log.retention import expired_segments
from tanist.replica import reads
from tanist.replica.follower import FollowerState
from tanist.replica.leader import LeaderState


def drops_what_is_not_committed() -> tuple[Patch, ...]:
    def expired(segments: Any, config: Any, start: int, end: int, high_watermark: int, *clocks: int) -> int:
        return expired_segments(segments, config, start, end, end, *clocks)

    return (Patch(logs, "expired_segments", expired),)


def drops_one_more() -> tuple[Patch, ...]:
    def expired(segments: Any, config: Any, start: int, end: int, high_watermark: int, *clocks: int) -> int:
        count = expired_segments(segments, config, start, end, high_watermark, *clocks)
        more = count + 1
        return (
            more if count > 0 and more < len(segments) and segments.end_offset(count, end) <= high_watermark else count
        )

    return (Patch(logs, "expired_segments", expired),)


def deletes_beyond() -> tuple[Patch, ...]:
    refusal = delete_records.refusal

    def accepts(log: Log, offset: int, high_watermark: int) -> int:
        return refusal(log, offset, max(high_watermark, log.log_end_offset))

    return (Patch(delete_records, "refusal", accepts),)


def forgets_log_starts() -> tuple[Patch, ...]:
    read = DirectoryCheckpoints._read_offsets

    def forgets(checkpoints: DirectoryCheckpoints, name: str, damaged: list[Any]) -> Any:
        return {} if name == LOG_START_CHECKPOINT else read(checkpoints, name, damaged)

    return (Patch(DirectoryCheckpoints, "_read_offsets", forgets),)


follows_no_start = fixed(FollowerState, "_adopt_log_start", always(None))

believes_all_have_deleted = fixed(LeaderState, "low_watermark", property(lambda leader: leader.log.log_start_offset))


def reads_deleted_records() -> tuple[Patch, ...]:
    read = Log.read

    def reads_all(log: Log, *arguments: Any) -> Any:
        start, log.log_start_offset = log.log_start_offset, min(log.log_start_offset, log.first_segment_offset)
        try:
            return read(log, *arguments)
        finally:
            log.log_start_offset = start

    return (Patch(Log, "read", reads_all), Patch(reads, "divergence", always((0, None))))

"""Where a share group begins in a partition that it has not read: `share.auto.offset.reset`."""

from __future__ import annotations

import re
from typing import Final

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.log.scan import DamagedBatch
from tanist.replica.reads import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_UNCOMMITTED, list_offsets

_DURATION = re.compile(
    r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE | re.ASCII
)
_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000)


def start_offset(hosted: HostedPartition, where_to: str, wall_ms: int) -> int | None:
    """The offset; None if it is not known now."""
    timestamp = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}.get(where_to)
    if timestamp is None:
        timestamp = wall_ms - _duration_ms(where_to)
    found = _listed(hosted, timestamp)
    if found == -1:
        return _listed(hosted, LATEST_TIMESTAMP)  # all records are older
    return found


def _listed(hosted: HostedPartition, timestamp: int) -> int | None:
    try:
        listed = list_offsets(
            hosted.replica,
            hosted.log,
            timestamp=timestamp,
            isolation_level=READ_UNCOMMITTED,
            last_stable_offset=hosted.log.last_stable_offset(hosted.replica.high_watermark),
        )
    except DamagedBatch:
        return None
    except OSError as failure:
        hosted.disk_failed(failure)
        return None
    return None if listed.error else listed.offset


def _duration_ms(text: str) -> int:
    """The milliseconds of `by_duration:` and an ISO 8601 duration, which were checked when they were set."""
    parts = _DURATION.fullmatch(text)
    if parts is None:
        return 0
    return round(sum(float(part or 0) * unit for part, unit in zip(parts.groups(), _MS)))

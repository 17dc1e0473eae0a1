"""The replicas' log files below a cluster's folder, for an audit: which there are, and which bytes of them to read.

Owns what is known without opening segments (which replicas there are, high watermarks, what is in the salvage), and how
few bytes a second look at a few offsets may read. It reads no records: an engine does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

from tanist.client.topic_partition import TopicPartition
from tanist.log.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    CheckpointError,
    decode_offsets,
)
from tanist.log.names import parse_folder
from tanist.log.salvage.manifest import Manifest
from tanist.runtime.client.salvaged import find_entries
from tanist.spark.jobs.audit.segment_ranges import SegmentRange
from tanist.spark.jobs.preconditions import INTERNAL
from tanist.spark.segments.ranges import Bounds, several_stretches
from tanist.spark.segments.replica_files import SegmentFile, segment_files
from tanist.spark.stores import path_of

_STRETCHES_MAX: Final = 4096
"""Each stretch that is read apart is looked up in the index of each replica's segments."""
_RANGE_BYTES: Final = 128 << 20

Holder = tuple[str, int, int]
"""Topic, partition and replica."""

COLUMNS: Final = {
    "topic": "string", "partition": "int", "replica": "int", "leader_epoch": "int", "offset": "bigint",
    "key": "binary", "value": "binary", "is_control": "boolean", "crc_ok": "boolean", "fingerprint": "bigint",
    "batch_position": "bigint", "segment": "bigint", "salvage_id": "string", "damage": "string",
    "timestamp": "timestamp", "producer_id": "bigint", "producer_epoch": "int", "sequence": "int",
    "is_transactional": "boolean", "batch_offset": "bigint",
}  # fmt: skip
"""The columns of `tanist-segments` that audits read."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets [first, last] of a partition."""

    topic: str
    partition: int
    first: int
    last: int


Holders: TypeAlias = Collection[Holder] | None
"""The replicas whose logs are read; None: all."""
Near: TypeAlias = Sequence[Stretch] | None
"""Offsets that are wanted, of all that may be read; None: all."""


@dataclass(frozen=True, slots=True)
class Known:
    """The facts that are known before any segment is read."""

    replicas: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """Brokers that have a log of the partition, or should have."""
    starts: Mapping[Holder, int] = field(default_factory=dict)
    """Where each log begins: what stood below has expired, or was deleted."""
    high_watermarks: Mapping[TopicPartition, int] = field(default_factory=dict)
    salvage: tuple[Manifest, ...] = ()


class LogFiles:
    def __init__(self, folder: str | Path, topics: Sequence[str] = ()) -> None:
        self._topics = tuple(topics)
        found = segment_files(str(folder), contents="all")
        self._files = [file for file in found if self._wants(file.topic)]
        self._directories = {path_of(file.path).parents[1]: file.replica for file in found if file.salvage_id is None}
        self._entries, _ = find_entries(path_of(folder))

    def known(self) -> Known:
        replicas: dict[TopicPartition, set[int]] = {}
        for file in self._files:
            if file.replica is not None and file.salvage_id is None:
                replicas.setdefault((file.topic, file.partition), set()).add(file.replica)
        return Known(
            {place: tuple(sorted(found)) for place, found in sorted(replicas.items())},
            self._starts(),
            {place: offset for place, offset in checkpointed(self._directories).items() if self._wants(place[0])},
            tuple(entry.manifest for entry in self._entries if self._wants(entry.manifest.topic)),
        )

    def _starts(self) -> dict[Holder, int]:
        """Where the first segment begins, or, where records within it were deleted, where the checkpoint says."""
        found: dict[Holder, int] = {}
        for file in self._files:
            if file.replica is not None and file.salvage_id is None:
                holder = (file.topic, file.partition, file.replica)
                found[holder] = min(file.base_offset, found.get(holder, file.base_offset))
        for directory, replica in self._directories.items():
            for place, offset in _offsets_in(directory / LOG_START_CHECKPOINT).items():
                if replica is not None and (*place, replica) in found:
                    found[*place, replica] = max(offset, found[*place, replica])
        return found

    def ranges(self, *, holders: Holders = None, near: Near = None) -> list[SegmentRange]:
        """Of these replicas' logs; what is near, and a little more."""
        files = [
            file for file in self._logs() if holders is None or (file.topic, file.partition, file.replica) in holders
        ]
        return list(_ranges(files, near, _RANGE_BYTES))

    def groups(self) -> list[list[SegmentRange]]:
        """Of all logs: those together that are about the same stretch of a partition in several replicas."""
        return _common(self._logs())

    def salvaged(self, near: Near) -> list[SegmentRange]:
        return list(_ranges([file for file in self._files if file.salvage_id is not None], near, _RANGE_BYTES))

    def _logs(self) -> list[SegmentFile]:
        return [file for file in self._files if file.salvage_id is None]

    def _wants(self, topic: str) -> bool:
        return topic in self._topics if self._topics else topic not in INTERNAL


def _common(files: Sequence[SegmentFile]) -> list[list[SegmentRange]]:
    replicas = max(Counter((file.topic, file.partition, file.base_offset) for file in files).values(), default=1)
    groups: dict[tuple[str, int, int, int], list[SegmentRange]] = {}
    of_file: Counter[str] = Counter()
    for each in _ranges(files, None, _RANGE_BYTES // replicas):
        groups.setdefault((each.topic, each.partition, each.segment, of_file[each.path]), []).append(each)
        of_file[each.path] += 1
    return list(groups.values())


def _ranges(files: Sequence[SegmentFile], near: Near, target_bytes: int) -> Iterator[SegmentRange]:
    by_place: dict[TopicPartition, list[Bounds]] = {}
    for each in fewer(near or (), _STRETCHES_MAX):
        by_place.setdefault((each.topic, each.partition), []).append(Bounds(each.first, each.last))
    for file in files:
        all_bounds = [Bounds()] if near is None else by_place.get((file.topic, file.partition), [])
        for bounds, start, end in several_stretches(file, all_bounds, target_bytes=target_bytes):
            yield SegmentRange(
                file.path, start, end, file.topic, file.partition, file.replica, file.base_offset, file.salvage_id,
                bounds.least_offset, bounds.most_offset,
            )  # fmt: skip


def stretches_at(wanted: Iterable[tuple[str, int, int]]) -> list[Stretch]:
    """Of places as histories name them ("orders-3"), with first and last offset; what names none is left out."""
    found = []
    for place, first, last in wanted:
        folder = parse_folder(place)
        if folder is not None:
            found.append(Stretch(*folder, first, last))
    return found


def fewer(wanted: Iterable[Stretch], most: int) -> list[Stretch]:
    """At most so many stretches (or one for each partition) that cover these: the smallest gaps are read as well."""
    ordered = sorted(wanted, key=lambda each: (each.topic, each.partition, each.first))
    joined: list[Stretch] = []
    for each in ordered:
        last = joined[-1] if joined else None
        if last is not None and _same(last, each) and each.first <= last.last + 1:
            joined[-1] = Stretch(last.topic, last.partition, last.first, max(last.last, each.last))
        else:
            joined.append(each)
    gaps = sorted(
        (after.first - before.last, number)
        for number, (before, after) in enumerate(pairwise(joined), start=1)
        if _same(before, after)
    )
    closed = {number for _, number in gaps[: max(0, len(joined) - most)]}
    found: list[Stretch] = []
    for number, each in enumerate(joined):
        if number in closed:
            found[-1] = Stretch(each.topic, each.partition, found[-1].first, each.last)
        else:
            found.append(each)
    return found


def checkpointed(directories: Iterable[Path]) -> dict[TopicPartition, int]:
    """The high watermarks that brokers have written down: the greatest of each partition, at most 5 s old."""
    found: dict[TopicPartition, int] = {}
    for directory in directories:
        for place, offset in _offsets_in(directory / HIGH_WATERMARK_CHECKPOINT).items():
            found[place] = max(offset, found.get(place, 0))
    return found


def _offsets_in(checkpoint: Path) -> dict[TopicPartition, int]:
    try:
        return decode_offsets(checkpoint.read_bytes(), str(checkpoint))
    except (OSError, CheckpointError):
        return {}


def _same(one: Stretch, other: Stretch) -> bool:
    return (one.topic, one.partition) == (other.topic, other.partition)

"""What the controllers decided about partitions, and which decision explains a finding.

Owns the partition's history out of the metadata log: each change of leader, ISR or ELR, with the moment and the record
that made it. The log is read on the driver: it is small beside the data. A snapshot keeps no history, so what happened
before the log's beginning is not told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final
from uuid import UUID

from tanist.controller.partition_state import PartitionState, merge, state_of
from tanist.log.salvage_manifest import timestamp_text
from tanist.log.salvage_reading import sound_batches
from tanist.runtime.salvaged import SavedFile
from tanist.spark.jobs.audit_logs import Place
from tanist.spark.replica_files import METADATA_TOPIC, SegmentFile, segment_files
from tanist.wire.batch import decode_batch
from tanist.wire.errors import WireError
from tanist.wire.metadata import decode_record
from tanist.wire.metadata_records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

_TOPIC_RESOURCE: Final = 2


@dataclass(frozen=True, slots=True)
class Change:
    """A partition as it is from one record of the metadata log on."""

    offset: int
    """Of the record."""
    wall_ms: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    unclean: bool
    """This change elected a leader that may lack committed records."""

    def __str__(self) -> str:
        led = f"broker {self.leader} leads" if self.leader >= 0 else "there is no leader"
        how = " after an unclean election" if self.unclean else ""
        eligible = f", ELR {_ids(self.elr)}" if self.elr else ""
        return (
            f"leader epoch {self.leader_epoch}: {led}{how}, ISR {_ids(self.isr)}{eligible} "
            f"(metadata offset {self.offset}, {timestamp_text(self.wall_ms)})"
        )


@dataclass(frozen=True, slots=True)
class Metadata:
    """All changes, by partition, in their order."""

    changes: Mapping[Place, Sequence[Change]]
    compacted: frozenset[str] = frozenset()
    """Topics whose logs have holes by right."""

    def leader(self, place: Place) -> int | None:
        """The last one that there was."""
        return next((each.leader for each in reversed(self.changes.get(place, ())) if each.leader >= 0), None)

    def replicas(self, place: Place) -> tuple[int, ...]:
        changes = self.changes.get(place)
        return changes[-1].replicas if changes else ()

    def explain(self, place: Place, epoch: int | None, replicas: Iterable[int] = ()) -> str | None:
        """What happened to records of `epoch`: the election after it, an unclean one rather than another.

        Where no election came after it, the change that took one of `replicas` out of the ISR.
        """
        changes = self.changes.get(place, ())
        if epoch is not None:
            later = [each for each in changes if each.leader_epoch > epoch and each.leader >= 0]
            found = next((each for each in later if each.unclean), later[0] if later else None)
            if found is not None:
                return str(found)
        wanted = set(replicas)
        for before, after in reversed(list(pairwise(changes))):
            if wanted & (set(before.isr) - set(after.isr)):
                return str(after)
        return None


NOTHING: Final = Metadata({})


def read_metadata(folder: str | Path) -> Metadata:
    """From the most advanced copy of the metadata log below a folder; nothing if there is none."""
    copies: dict[Path, list[SegmentFile]] = {}
    for file in segment_files(str(folder)):
        if file.topic == METADATA_TOPIC:
            copies.setdefault(Path(file.path).parent, []).append(file)
    if not copies:
        return NOTHING
    return _replayed(max(copies.values(), key=_end))


def _end(files: Sequence[SegmentFile]) -> tuple[int, int]:
    """Epoch and offset of the last batch."""
    end = (-1, -1)
    for file in files:
        for header in _headers(file):
            end = max(end, header)
    return end


def _headers(file: SegmentFile) -> Iterator[tuple[int, int]]:
    opened = SavedFile(Path(file.path))
    try:
        for _, header in sound_batches(opened, 0, opened.size):
            yield header.leader_epoch, header.last_offset
    finally:
        opened.close()


def _replayed(files: Sequence[SegmentFile]) -> Metadata:
    names: dict[UUID, str] = {}
    changes: dict[Place, list[Change]] = {}
    states: dict[Place, PartitionState] = {}
    compacted: set[str] = set()
    for offset, wall_ms, record in _records(files):
        if isinstance(record, TopicRecord):
            names[record.topic_id] = record.name
        elif isinstance(record, RemoveTopicRecord):
            name = names.pop(record.topic_id, "")
            for place in [place for place in changes if place[0] == name]:
                del changes[place]
                del states[place]
        elif isinstance(record, ConfigRecord):
            if (record.resource_type, record.name) == (_TOPIC_RESOURCE, "cleanup.policy"):
                (compacted.add if "compact" in (record.value or "") else compacted.discard)(record.resource_name)
        elif isinstance(record, PartitionRecord | PartitionChangeRecord) and record.topic_id in names:
            place = names[record.topic_id], record.partition_id
            before = states.get(place)
            try:
                after = _after(before, record)
            except ValueError:
                continue  # a log that was damaged; what comes after is told as far as it can be
            states[place] = after
            changes.setdefault(place, []).append(_changed(offset, wall_ms, before, after))
    return Metadata(changes, frozenset(compacted))


def _after(before: PartitionState | None, record: PartitionRecord | PartitionChangeRecord) -> PartitionState:
    if isinstance(record, PartitionRecord):
        return state_of(record)
    if before is None:
        raise ValueError("a change of a partition that the log does not have")
    return merge(before, record)


def _changed(offset: int, wall_ms: int, before: PartitionState | None, after: PartitionState) -> Change:
    known = -1 if before is None else before.last_unclean_epoch
    return Change(
        offset, wall_ms, after.leader, after.leader_epoch, after.replicas, after.isr, after.elr,
        unclean=after.last_unclean_epoch > known,
    )  # fmt: skip


def _records(files: Sequence[SegmentFile]) -> Iterator[tuple[int, int, object]]:
    for file in sorted(files, key=lambda each: each.base_offset):
        opened = SavedFile(Path(file.path))
        try:
            for position, header in sound_batches(opened, 0, opened.size):
                if header.is_control:
                    continue
                for record in decode_batch(opened.read(position, header.size_bytes)):
                    try:
                        yield record.offset, record.timestamp, decode_record(record.value or b"")
                    except WireError:
                        continue  # of a version that is not known here, which says nothing about partitions
        finally:
            opened.close()


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers)) or "empty"

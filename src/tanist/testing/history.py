"""What happened to partitions, as a sequence: the changes in the metadata log of a cluster's nodes.

Reads the log files of running and of dead nodes, and of the nodes takes the one that has most. It changes nothing, and
what cannot be read is left out: a report of a failed test must not fail itself.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from tanist.log.salvage.reading import sound_batches
from tanist.runtime.client.salvaged import SavedFile
from tanist.testing.observations import members
from tanist.wire.batch import decode_batch
from tanist.wire.errors import WireError
from tanist.wire.ids import METADATA_TOPIC
from tanist.wire.metadata import decode_record
from tanist.wire.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tanist.wire.schema import MetadataRecord

_FENCED = {1: "fenced", -1: "unfenced"}
_RECOVERING = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    wall_ms: int
    subject: str
    """`orders-0`, `broker 2`, or `test`: what the test did."""
    text: str

    def __str__(self) -> str:
        return self.line(0)

    def line(self, width: int) -> str:
        """With the subject in a column of so many characters."""
        seconds = time.strftime("%H:%M:%S", time.localtime(self.wall_ms / 1000))
        return f"{seconds}.{self.wall_ms % 1000:03} {self.subject:<{width}}  {self.text}"


@dataclass(slots=True)
class _Partition:
    name: str
    leader: int
    leader_epoch: int
    recovering: bool


def partition_events(data: Path, topics: Collection[str]) -> list[Event]:
    """What happened to the partitions of these topics, and to the brokers, since the log begins."""
    replay = _Replay(topics)
    for wall_ms, record in _longest(data):
        replay.take(wall_ms, record)
    return replay.events


def recovering(data: Path, topic: str, partition: int) -> bool | None:
    """Whether a partition's leader is recovering from an unclean election; None if the log does not say."""
    replay = _Replay([topic])
    for wall_ms, record in _longest(data):
        replay.take(wall_ms, record)
    found = replay.partitions.get((replay.ids.get(topic), partition))
    return None if found is None else found.recovering


class _Replay:
    """The metadata log, as far as it concerns some topics."""

    def __init__(self, topics: Collection[str]) -> None:
        self.events: list[Event] = []
        self.partitions: dict[tuple[UUID | None, int], _Partition] = {}
        self.ids: dict[str, UUID] = {}
        self._topics = topics
        self._names: dict[UUID, str] = {}

    def take(self, wall_ms: int, record: MetadataRecord) -> None:
        match record:
            case TopicRecord() if record.name in self._topics:
                self._names[record.topic_id] = record.name
                self.ids[record.name] = record.topic_id
            case RemoveTopicRecord() if record.topic_id in self._names:
                self._say(wall_ms, self._names.pop(record.topic_id), "deleted")
            case PartitionRecord() if record.topic_id in self._names:
                self._created(wall_ms, record)
            case PartitionChangeRecord():
                found = self.partitions.get((record.topic_id, record.partition_id))
                if found is not None:
                    self._changed(wall_ms, found, record)
            case RegisterBrokerRecord():
                self._say(wall_ms, f"broker {record.broker_id}", "registered")
            case BrokerRegistrationChangeRecord() if record.fenced in _FENCED:
                self._say(wall_ms, f"broker {record.broker_id}", _FENCED[record.fenced])

    def _created(self, wall_ms: int, record: PartitionRecord) -> None:
        name = f"{self._names[record.topic_id]}-{record.partition_id}"
        state = _Partition(name, record.leader, record.leader_epoch, record.leader_recovery_state == _RECOVERING)
        self.partitions[record.topic_id, record.partition_id] = state
        replicas = f"replicas {members(record.replicas)}, ISR {members(record.isr)}"
        self._say(wall_ms, name, f"created: leader {record.leader}, {replicas}")

    def _changed(self, wall_ms: int, state: _Partition, record: PartitionChangeRecord) -> None:
        says = []
        if record.leader != -2:
            state.leader_epoch += 1
            before, state.leader = state.leader, record.leader
            if before == record.leader:
                says.append(f"leader {_broker(record.leader)} (epoch {state.leader_epoch})")
            else:
                says.append(f"leader {_broker(before)} -> {_broker(record.leader)} (epoch {state.leader_epoch})")
        if record.leader_recovery_state >= 0:
            now = record.leader_recovery_state == _RECOVERING
            if now != state.recovering:
                says.append("elected uncleanly, recovering" if now else "recovered")
            state.recovering = now
        for title, value in (
            ("replicas", record.replicas),
            ("ISR", record.isr),
            ("ELR", record.eligible_leader_replicas),
            ("LastKnownElr", record.last_known_elr),
        ):
            if value is not None:
                says.append(f"{title} {members(value)}")
        if says:
            self._say(wall_ms, state.name, ", ".join(says))

    def _say(self, wall_ms: int, subject: str, text: str) -> None:
        self.events.append(Event(wall_ms, subject, text))


def _broker(broker: int) -> str:
    return "none" if broker < 0 else str(broker)


def _longest(data: Path) -> list[tuple[int, MetadataRecord]]:
    """The records of the node whose metadata log ends last, with the times at which they were written."""
    best: tuple[int, int] = (-1, -1)
    longest: list[tuple[int, MetadataRecord]] = []
    for folder in sorted(data.glob(f"node-*/data/{METADATA_TOPIC}-0")):
        end = (-1, -1)
        found = []
        for epoch, offset, wall_ms, record in _records(folder):
            end = max(end, (epoch, offset))
            if record is not None:
                found.append((wall_ms, record))
        if end > best:
            best, longest = end, found
    return longest


def _records(folder: Path) -> Iterator[tuple[int, int, int, MetadataRecord | None]]:
    for path in sorted(folder.glob("*.log")):
        try:
            file = SavedFile(path)
        except OSError:
            continue
        with closing(file):
            for position, header in sound_batches(file, 0, file.size):
                if header.is_control:
                    continue
                for each in decode_batch(file.read(position, header.size_bytes)):
                    try:
                        record = decode_record(each.value or b"")
                    except WireError:
                        record = None
                    yield header.leader_epoch, each.offset, each.timestamp, record

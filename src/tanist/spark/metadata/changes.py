"""The metadata log as changes: what each record changed, and how things stood after it.

Owns the way from a node's folder to its `__cluster_metadata-0`, the choice of the snapshot that the rest of the log
builds on, and the rows. Records say only what they change; so they are replayed into the image that controllers and
brokers have, and each row has the whole state of its partition or broker after the record. Nothing is decided here, no
file is written, and what cannot be read or replayed is a row that says so, behind which there is nothing.

A log is one after another by nature: one task reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.image import ImageError, MetadataImage
from tanist.controller.image.partition_state import PartitionState
from tanist.quorum.storage.snapshots import parse_name
from tanist.spark.segments.replica_files import METADATA_TOPIC, NothingThere, SegmentFile, segment_files
from tanist.spark.stores import path_of
from tanist.wire.batch import BatchHeader, crc_matches, decode_batch, iterate_headers
from tanist.wire.control import decode_control_batch
from tanist.wire.errors import WireError
from tanist.wire.messages.leader_change_message import LeaderChangeMessage
from tanist.wire.metadata import ConfigRecord, FeatureLevelRecord, MetadataRecord, decode_record
from tanist.wire.schema import Struct

RESOURCES: Final = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}
"""Kinds of configured resources, as ConfigRecord numbers them."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MetadataFolder:
    """One node's metadata log."""

    path: str
    replica: int | None
    end: int
    """The base offset of its last segment: which of several has come farthest, about."""


def metadata_folders(path: str) -> list[MetadataFolder]:
    """Those of all nodes below `path`: a cluster's folder, a node's, a log directory, or the log itself."""
    found: dict[str, list[SegmentFile]] = {}
    for file in segment_files(path):
        if file.topic == METADATA_TOPIC:
            found.setdefault(str(path_of(file.path).parent), []).append(file)
    if not found:
        raise NothingThere(f"no {METADATA_TOPIC} is below {path}")
    return [
        MetadataFolder(where, files[0].replica, max(file.base_offset for file in files))
        for where, files in sorted(found.items())
    ]


def changes(folder: MetadataFolder) -> Iterator[Row]:
    """The rows of one log, in its order; at its beginning, those of the snapshot that it builds on."""
    image = MetadataImage()
    home = path_of(folder.path)
    segments = sorted((int(path.stem), path) for path in home.glob("*.log") if path.stem.isdecimal())
    position = segments[0][0] if segments else 0
    if position > 0:
        # The oldest that the log reaches: so that more of the log is read as changes.
        names = [(name.snapshot_id, path) for path in home.iterdir() if (name := parse_name(path.name)) and name.whole]
        usable = sorted((each.end_offset, path, each.epoch) for each, path in names if each.end_offset >= position)
        if not usable:
            yield _damage(position, f"the log begins at offset {position}, and there is no snapshot that it builds on")
            return
        position, path, epoch = usable[0]
        for row in _read(path, image, snapshot=(position - 1, epoch)):
            yield row
            if row["damage"] is not None:
                return
    for number, (_, path) in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1][0] <= position:
            continue
        for row in _read(path, image, start=position):
            yield row
            if row["damage"] is not None:
                return


def _read(
    path: Path, image: MetadataImage, *, start: int = 0, snapshot: tuple[int, int] | None = None
) -> Iterator[Row]:
    """The rows of one file. All of a snapshot stand at its last offset and epoch."""
    # Whole: a metadata log is small, and its segments have a bound.
    data = memoryview(path.read_bytes())
    reached = start
    try:
        for at, header in iterate_headers(data):
            if header.next_offset <= start and snapshot is None:
                continue
            if not crc_matches(data, at, header.size_bytes):
                yield _damage(header.base_offset, f"a batch with a wrong CRC, at byte {at} of {path.name}")
                return
            batch = data[at : at + header.size_bytes]
            yield from (
                _of_control(batch, header, snapshot)
                if header.is_control
                else _of_records(batch, header, image, start, snapshot)
            )
            reached = header.next_offset
    except (WireError, ImageError) as error:
        yield _damage(reached, f"{path.name}: {error}")


def _of_records(
    batch: memoryview, header: BatchHeader, image: MetadataImage, start: int, snapshot: tuple[int, int] | None
) -> Iterator[Row]:
    for record in decode_batch(batch):
        if snapshot is None and record.offset < start:
            continue
        offset, epoch = snapshot or (record.offset, header.leader_epoch)
        found = decode_record(record.value or b"")
        delta = ImageDelta()
        image.replay(found, delta)
        common: Row = {
            "offset": offset, "epoch": epoch, "timestamp_ms": record.timestamp, "record": type(found).__name__,
            "snapshot": snapshot is not None, "fields": _fields(found), "damage": None,
        }  # fmt: skip
        any_row = False
        for row in _changed(image, found, delta):
            any_row = True
            yield common | row
        if not any_row:
            yield common


def _of_control(batch: memoryview, header: BatchHeader, snapshot: tuple[int, int] | None) -> Iterator[Row]:
    """Elections of the quorum itself; the frame of a snapshot is no change."""
    _, records = decode_control_batch(batch)
    for number, record in enumerate(records):
        if snapshot is not None:
            continue
        message = record.message
        row: Row = {
            "offset": header.base_offset + number, "epoch": header.leader_epoch, "timestamp_ms": header.base_timestamp,
            "record": type(message).__name__, "snapshot": False, "fields": _fields(message), "damage": None,
        }  # fmt: skip
        yield row | ({"leader": message.leader_id} if isinstance(message, LeaderChangeMessage) else {})


def _changed(image: MetadataImage, record: MetadataRecord, delta: ImageDelta) -> Iterator[Row]:
    for topic_id, partitions in delta.partitions.items():
        topic = image.topics[topic_id]
        for partition in sorted(partitions):
            row = {"topic": topic.name, "topic_id": str(topic_id), "partition": partition}
            yield row | _partition(topic.partitions[partition])
    for topic_id, deleted in delta.deleted_topics.items():
        yield {"topic": deleted.name, "topic_id": str(topic_id)}
    for topic_id, name in delta.created_topics.items():
        if topic_id not in delta.partitions:
            yield {"topic": name, "topic_id": str(topic_id)}
    for broker_id in sorted(delta.brokers):
        broker = image.brokers.get(broker_id)
        if broker is None:
            yield {"broker": broker_id}
            continue
        yield {
            "broker": broker_id, "broker_epoch": broker.epoch, "fenced": broker.fenced,
            "in_controlled_shutdown": broker.in_controlled_shutdown,
        }  # fmt: skip
    if isinstance(record, ConfigRecord):
        kind = RESOURCES.get(record.resource_type, str(record.resource_type))
        row = {"resource_type": kind, "resource": record.resource_name, "name": record.name, "value": record.value}
        yield row | ({"topic": record.resource_name} if kind == "topic" else {})
    elif isinstance(record, FeatureLevelRecord):
        yield {"resource_type": "feature", "name": record.name, "value": str(record.feature_level)}


def _partition(state: PartitionState) -> Row:
    return {
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "isr": list(state.isr),
        "elr": list(state.elr),
        "last_known_elr": list(state.last_known_elr),
        "leader_recovery_state": "RECOVERING" if state.recovering else "RECOVERED",
        "last_unclean_epoch": state.last_unclean_epoch,
        "replicas": list(state.replicas),
        "adding_replicas": list(state.adding),
        "removing_replicas": list(state.removing),
    }


def _damage(offset: int, reason: str) -> Row:
    return {"offset": offset, "record": None, "snapshot": False, "damage": reason}


def _fields(record: Struct) -> str:
    """The fields of the record as JSON, without those that have their defaults."""
    return json.dumps(_plain(record), default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        default = type(value)()
        fields = {field.name: getattr(value, field.name) for field in value.FIELDS}
        return {name: _plain(each) for name, each in fields.items() if each != getattr(default, name)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return value

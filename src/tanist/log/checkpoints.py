"""The small text files beside the logs.

Owns the text of `*-checkpoint` files, `.kafka_cleanshutdown` (rules 86-89), `partition.metadata` and `meta.properties`,
all as Apache Kafka writes them. Pure: bytes in, values out. A reader never trusts a count, and names the faulty line;
the caller decides what to do about a damaged file.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from tanist.log.properties import PropertiesError, encode_properties, parse_properties
from tanist.wire.ids import ZERO_UUID

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"

NO_BROKER_EPOCH = -1
_NODE_ID = {"0": "broker.id", "1": "node.id"}
"""The owner's name in each version of meta.properties."""
_LONG_MAX = 2**63 - 1


class CheckpointError(ValueError):
    """A malformed file. The text names the file, the line and the fault."""


class MetaPropertiesMismatch(CheckpointError):
    """The data folder belongs to another node or cluster. The text says what the operator can do."""


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """`topic partition offset` lines, as in `recovery-point-offset-checkpoint` and its like."""
    return _encode(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def decode_offsets(data: bytes, path: str) -> dict[tuple[str, int], int]:
    offsets: dict[tuple[str, int], int] = {}
    for number, line in _decode(data, path):
        words = line.split()
        if len(words) != 3:
            raise CheckpointError(f"{path}, line {number}: expected 'topic partition offset', found {line!r}")
        partition = _integer(words[1], 2**31 - 1, path, number, line)
        offsets[words[0], partition] = _integer(words[2], _LONG_MAX, path, number, line)
    return offsets


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    """`epoch start-offset` lines of `leader-epoch-checkpoint`."""
    return _encode(f"{epoch} {start_offset}" for epoch, start_offset in entries)


def decode_epochs(data: bytes, path: str) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    for number, line in _decode(data, path):
        words = line.split()
        if len(words) != 2:
            raise CheckpointError(f"{path}, line {number}: expected 'epoch offset', found {line!r}")
        epoch = _integer(words[0], 2**31 - 1, path, number, line)
        start_offset = _integer(words[1], _LONG_MAX, path, number, line)
        if entries and (epoch <= entries[-1][0] or start_offset <= entries[-1][1]):
            raise CheckpointError(f"{path}, line {number}: {line!r} does not ascend from {entries[-1]}")
        entries.append((epoch, start_offset))
    return entries


def _encode(lines: Iterable[str]) -> bytes:
    body = list(lines)
    return "".join(f"{line}\n" for line in ("0", str(len(body)), *body)).encode()


def _decode(data: bytes, path: str) -> list[tuple[int, str]]:
    """The numbered entry lines of a version 0 checkpoint. An empty file has none, as in Kafka."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: not text ({error.reason} at byte {error.start})") from None
    if not lines:
        return []
    if lines[0] != "0":
        raise CheckpointError(f"{path}, line 1: version {lines[0][:40]!r} is not known, expected 0")
    if len(lines) == 1:
        return []
    count = _integer(lines[1], _LONG_MAX, path, 2, lines[1])
    if count != len(lines) - 2:
        raise CheckpointError(f"{path}, line 2: announces {count} entries, {len(lines) - 2} follow")
    return list(enumerate(lines[2:], 3))


def _integer(word: str, most: int, path: str, number: int, line: str) -> int:
    """A decimal in [0, most]; never a digit string long enough to be slow to convert."""
    if not (word.isascii() and word.isdigit() and len(word) <= 19) or int(word) > most:
        raise CheckpointError(f"{path}, line {number}: {word[:40]!r} is not a number in range, in {line[:200]!r}")
    return int(word)


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(data: bytes) -> int | None:
    """The broker epoch; None when the file has none, and then the controller counts the shutdown as unclean."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None


def previous_broker_epoch(epochs: Iterable[int | None]) -> int:
    """The epoch to register with: the one all directories agree on, else -1 (rule 87). None = no readable file."""
    distinct = set(epochs)
    if len(distinct) != 1:
        return NO_BROKER_EPOCH
    epoch = distinct.pop()
    return NO_BROKER_EPOCH if epoch is None else epoch


def encode_uuid(value: UUID) -> str:
    """Kafka's text of a uuid: base64url without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> UUID:
    if len(text) != 22:
        raise ValueError(f"{text[:40]!r} is not a base64url uuid of 22 characters")
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def encode_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()


def decode_partition_metadata(data: bytes, path: str) -> UUID:
    try:
        pairs = dict(line.split(": ", 1) for line in data.decode().splitlines() if line)
    except ValueError as error:
        raise CheckpointError(f"{path}: expected 'version: 0' and 'topic_id: ...' ({error})") from None
    if pairs.get("version") != "0":
        raise CheckpointError(f"{path}: version {pairs.get('version')!r} is not known, expected 0")
    try:
        return decode_uuid(pairs.get("topic_id", ""))
    except ValueError as error:
        raise CheckpointError(f"{path}: topic_id: {error}") from None


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The owner of a data folder: `meta.properties`. Writes version 1; version 0 is that of clusters with ZooKeeper."""

    cluster_id: str
    node_id: int
    directory_id: UUID
    """Zero: it has none, as folders of Kafka before 3.7. The node that owns it gives it one (`assembly.identify`)."""

    def encode(self) -> bytes:
        properties = {"cluster.id": self.cluster_id, "node.id": str(self.node_id), "version": "1"}
        if self.directory_id != ZERO_UUID:
            properties["directory.id"] = encode_uuid(self.directory_id)
        return ("#\n" + encode_properties(dict(sorted(properties.items())))).encode()

    @classmethod
    def decode(cls, data: bytes, path: str) -> MetaProperties:
        try:
            properties = parse_properties(data.decode())
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{path}: not text ({error.reason} at byte {error.start})") from None
        except PropertiesError as error:
            raise CheckpointError(f"{path}, {error}") from None
        version = properties.get("version")
        if version not in _NODE_ID:
            raise CheckpointError(f"{path}: version {version!r} is not known, expected 1")
        try:
            directory_id = properties.get("directory.id")
            return cls(
                cluster_id=properties["cluster.id"],
                node_id=int(properties[_NODE_ID[version]]),
                directory_id=ZERO_UUID if directory_id is None else decode_uuid(directory_id),
            )
        except KeyError as missing:
            raise CheckpointError(f"{path}: {missing.args[0]} is missing") from None
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}") from None

    def require(self, path: str, *, cluster_id: str | None = None, node_id: int | None = None) -> None:
        """Refuse a folder that another node or cluster has written: serving it would mix two histories."""
        if cluster_id is not None and cluster_id != self.cluster_id:
            raise MetaPropertiesMismatch(
                f"{path} belongs to cluster {self.cluster_id}, this node is configured for cluster {cluster_id}. "
                "Point log.dirs at this cluster's folder, or move the old one away to start empty."
            )
        if node_id is not None and node_id != self.node_id:
            raise MetaPropertiesMismatch(
                f"{path} was written by node {self.node_id}, this is node {node_id}. "
                f"Set node.id={self.node_id} to go on as that node, or point log.dirs at another folder."
            )

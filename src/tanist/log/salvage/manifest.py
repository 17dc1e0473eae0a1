"""The manifest of a quarantine's entry, and the names in a quarantine.

Owns the names and the text of `manifest.json`, which is written last and vouches for the files beside it: the topic,
partition and epochs of the records, why and when they were dropped, and the sizes of the files. A reader validates
everything, and file names must be those of segments.

The quarantine is a folder of the log directory. Apache Kafka takes every folder there for a partition's and refuses to
start when it cannot read the name, but it leaves alone those whose topic is the metadata log's, which the quorum opens
by its own name. The quarantine has a name of that kind, of a partition that does not exist.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final
from uuid import UUID

from tanist.log.names import LOG_SUFFIX, offset_of
from tanist.text import timestamp_text
from tanist.wire.ids import id_from_text, id_text

QUARANTINE: Final = "__cluster_metadata-966.tanist-salvage-stray"
"""The folder, in each log directory."""
MANIFEST: Final = "manifest.json"
UNFINISHED_SUFFIX: Final = ".tmp"
"""An entry that is being written."""
REMOVED_SUFFIX: Final = ".removed"
"""An entry that is being removed."""

_VERSION: Final = 1
_ENTRY_ID: Final = re.compile(r"([0-9]{1,16})-([0-9]{1,10})-([0-9]{1,10})")


class SalvageReason(Enum):
    """Why records left a log."""

    FOLLOWER_TRUNCATION = "follower-truncation"
    """The leader's log does not have them, and this replica did not know them to be committed."""
    CLEAN_ELECTION = "clean-election"
    """They were committed, and the leader was elected cleanly all the same: it had lost them, its page cache say."""
    UNCLEAN_ELECTION = "unclean-election"
    """The leader's log does not have them, and an unclean election has made it the leader's."""
    OUT_OF_RANGE = "out-of-range"
    """The leader's log begins beyond this replica's end: all of it was dropped. Most will have expired there."""
    RECOVERY_CUT = "recovery-cut"
    """Sound batches behind damage, or behind a hole, that an unclean start has found."""


class ManifestError(ValueError):
    """A malformed manifest. The text names it and its fault."""


@dataclass(frozen=True, slots=True)
class SavedFile:
    """One file of an entry: the batches of one segment, as they stood in it."""

    name: str
    size_bytes: int
    crc: int
    """CRC-32C of the whole file."""


@dataclass(frozen=True, slots=True)
class Unsaved:
    """The oldest part of what was dropped, if it was larger than the quarantine may be."""

    from_offset: int
    to_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One entry of a quarantine. -1: not known."""

    entry_id: str
    broker_id: int
    topic: str
    topic_id: UUID
    partition: int
    why: SalvageReason
    wall_ms: int
    """When, by the broker's clock."""
    leader_epoch: int
    """Of the leader whose log did not have the records."""
    high_watermark: int
    """As this replica knew it."""
    from_offset: int
    to_offset: int
    """The log end offset before the cut."""
    epochs: tuple[tuple[int, int], ...]
    """(leader epoch, first offset) of the records, ascending; empty when that is not known."""
    files: tuple[SavedFile, ...]
    unsaved: Unsaved | None = None

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def last_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else -1

    def encode(self) -> bytes:
        value = {
            "version": _VERSION,
            "id": self.entry_id,
            "broker_id": self.broker_id,
            "topic": self.topic,
            "topic_id": id_text(self.topic_id),
            "partition": self.partition,
            "why": self.why.value,
            "when": timestamp_text(self.wall_ms),
            "when_ms": self.wall_ms,
            "leader_epoch": self.leader_epoch,
            "high_watermark": self.high_watermark,
            "from_offset": self.from_offset,
            "to_offset": self.to_offset,
            "epochs": [list(epoch) for epoch in self.epochs],
            "files": [{"name": file.name, "bytes": file.size_bytes, "crc32c": file.crc} for file in self.files],
            "unsaved": None
            if self.unsaved is None
            else {
                "from_offset": self.unsaved.from_offset,
                "to_offset": self.unsaved.to_offset,
                "bytes": self.unsaved.size_bytes,
            },
        }
        return (json.dumps(value, indent=2) + "\n").encode()

    @classmethod
    def decode(cls, data: bytes, path: str) -> Manifest:
        """`ManifestError` if the text is no manifest of a version that is known here."""
        try:
            value = json.loads(data)
            if not isinstance(value, dict) or value.get("version") != _VERSION:
                raise ManifestError(f"{path} is no salvage manifest of version {_VERSION}")
            unsaved = value["unsaved"]
            return cls(
                _text(value["id"]),
                _number(value["broker_id"]),
                _text(value["topic"]),
                id_from_text(_text(value["topic_id"])),
                _number(value["partition"]),
                _reason(value["why"]),
                _number(value["when_ms"]),
                _number(value["leader_epoch"]),
                _number(value["high_watermark"]),
                _number(value["from_offset"]),
                _number(value["to_offset"]),
                tuple((_number(epoch), _number(start)) for epoch, start in value["epochs"]),
                tuple(_file(each) for each in value["files"]),
                None
                if unsaved is None
                else Unsaved(_number(unsaved["from_offset"]), _number(unsaved["to_offset"]), _number(unsaved["bytes"])),
            )
        except ManifestError:
            raise
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ManifestError(f"{path} is damaged: {error!r}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where text is due")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value < 2**63:
        raise TypeError(f"{value!r} where a number is due")
    return value


def _file(value: Any) -> SavedFile:
    name = _text(value["name"])
    if offset_of(name, LOG_SUFFIX) is None:
        raise ValueError(f"{name!r} is not the name of a segment")
    return SavedFile(name, _number(value["bytes"]), _number(value["crc32c"]))


def entry_id(wall_ms: int, broker_id: int, number: int) -> str:
    """Unique in the cluster, and in the order of time."""
    return f"{wall_ms:013d}-{broker_id}-{number}"


def is_entry_id(name: str) -> bool:
    return _ENTRY_ID.fullmatch(name) is not None


def _reason(why: object) -> SalvageReason:
    """Entries from before the two elections had names of their own say "unclean-recovery" of either kind."""
    return SalvageReason.UNCLEAN_ELECTION if why == "unclean-recovery" else SalvageReason(why)

"""Which records of a salvage a topic has.

Owns the question whether a salvaged record is in the topic after all. It is,

* if the topic has one with the same producer, sequence number, key and value; or
* one with the same timestamp, key, value and headers, which counts once for each that the topic has; but not if both
  were sent by the same producer under different sequence numbers: those were two sends; or
* one with the marks that a merge-back leaves, if it was asked to leave any.

A record of the topic that an ABORT marker ends is not there. One in a transaction that is still open is: it may be
committed yet, and if it is not, a later merge-back restores what the salvage has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from tanist.runtime.client.salvaged import PartitionSalvage, SalvagedRecord
from tanist.wire.batch import BatchHeader, Record
from tanist.wire.control import ControlKind, control_kind
from tanist.wire.ids import id_text

MARK: Final = "tanist.salvage."
"""The prefix of the headers that a marked record has."""

_LENGTH: Final = Struct(">q")

_Digest = bytes
_Sender = tuple[int, int]
"""Producer id and epoch."""


class _Seen(NamedTuple):
    """A record of the topic, as far as the salvage has one like it."""

    mark: tuple[str, ...]
    content: _Digest | None
    sender: _Sender
    send: object | None
    key: object | None


class Presence:
    """Which of the salvaged records the topic has."""

    def __init__(self, salvage: PartitionSalvage, *, compacted: bool) -> None:
        self._origin = (id_text(salvage.topic_id), str(salvage.partition))
        # Only what the salvage has is remembered, however long the topic is.
        self._wanted: set[object] = set()
        for salvaged in salvage.records():
            self._wanted.add(_content(salvaged.record))
            self._wanted.add(_send_of(salvaged.header, salvaged.record))
            self._wanted.add(_key_of(salvaged.record))
        self._contents: dict[_Digest, Counter[_Sender]] = {}
        self._sends: set[object] = set()
        self._marks: set[tuple[str, ...]] = set()
        self._keys: set[object] | None = set() if compacted else None
        self._open: dict[int, list[_Seen]] = {}

    def note(self, header: BatchHeader, records: Sequence[Record]) -> None:
        """The topic has these. Records of a transaction count when it has ended, and was not aborted."""
        if header.is_control:
            if header.is_transactional:
                noted = self._open.pop(header.producer_id, [])
                if any(control_kind(record) == ControlKind.COMMIT for record in records):
                    self._count(noted)
            return
        noted = [seen for record in records if (seen := self._seen(header, record)) is not None]
        if header.is_transactional:
            self._open.setdefault(header.producer_id, []).extend(noted)
        else:
            self._count(noted)

    def end(self) -> None:
        """That was all: what is open still may be committed."""
        for noted in self._open.values():
            self._count(noted)
        self._open.clear()

    def _seen(self, header: BatchHeader, record: Record) -> _Seen | None:
        content, send, key = _content(record), _send_of(header, record), _key_of(record)
        seen = _Seen(
            _mark_of(record),
            content if content in self._wanted else None,
            (header.producer_id, header.producer_epoch),
            send if send is not None and send in self._wanted else None,
            key if self._keys is not None and key is not None and key in self._wanted else None,
        )
        return seen if seen.mark or seen.content or seen.send or seen.key else None

    def _count(self, noted: Iterable[_Seen]) -> None:
        for seen in noted:
            if seen.mark:
                self._marks.add(seen.mark)
            if seen.content is not None:
                self._contents.setdefault(seen.content, Counter())[seen.sender] += 1
            if seen.send is not None:
                self._sends.add(seen.send)
            if self._keys is not None and seen.key is not None:
                self._keys.add(seen.key)

    def has(self, salvaged: SalvagedRecord) -> bool:
        """Whether the topic has this one. Each record of the topic counts for one of those that are alike."""
        record, header = salvaged.record, salvaged.header
        if (*self._origin, str(salvaged.epoch), str(salvaged.offset)) in self._marks or self.has_send(salvaged):
            return True
        alike = self._contents.get(_content(record), Counter())
        sender = (header.producer_id, header.producer_epoch)
        # A record with the sender's own name but another number is another send.
        idempotent = header.producer_id >= 0
        others = sorted(other for other, count in alike.items() if count > 0 and not (idempotent and other == sender))
        if not others:
            return False
        alike[sender if sender in others else others[0]] -= 1
        return True

    def has_send(self, salvaged: SalvagedRecord) -> bool:
        """Whether the topic has this very send of an idempotent producer, where it was or again."""
        send = _send_of(salvaged.header, salvaged.record)
        if send is None or send not in self._sends:
            return False
        alike = self._contents.get(_content(salvaged.record), Counter())
        sender = (salvaged.header.producer_id, salvaged.header.producer_epoch)
        if alike[sender]:
            alike[sender] -= 1
        return True

    def supersedes(self, record: Record) -> bool:
        return self._keys is not None and _key_of(record) in self._keys


def _mark_of(record: Record) -> tuple[str, ...]:
    """Topic id, partition, epoch and offset that a marked record had; empty for any other."""
    marks = {name: value for name, value in record.headers if name.startswith(MARK)}
    values = [marks.get(f"{MARK}{name}") for name in ("topic.id", "partition", "epoch", "offset")]
    return tuple((value or b"").decode(errors="replace") for value in values) if all(values) else ()


def _send_of(header: BatchHeader, record: Record) -> tuple[int, int, int, _Digest] | None:
    """The identity of a record that an idempotent producer sends once; None without a producer id."""
    if header.producer_id < 0:
        return None
    return header.producer_id, header.producer_epoch, record.sequence, _hashed(record.key, record.value)


def _key_of(record: Record) -> tuple[str, _Digest] | None:
    return None if record.key is None else ("key", _hashed(record.key))


def _content(record: Record) -> _Digest:
    """Timestamp, key, value and headers, but for marks."""
    parts: list[bytes | None] = [_LENGTH.pack(record.timestamp), record.key, record.value]
    for name, value in record.headers:
        if not name.startswith(MARK):
            parts += [name.encode(), value]
    return _hashed(*parts)


def _hashed(*parts: bytes | None) -> _Digest:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(_LENGTH.pack(-1 if part is None else len(part)))
        digest.update(part or b"")
    return digest.digest()

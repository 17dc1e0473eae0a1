"""The common part of all records of `__consumer_offsets`: a key of some kind, and a value of some version."""

from __future__ import annotations

from typing import ClassVar

from tanist.wire.schema import Message


class GroupRecordKey(Message):
    """The key of such a record. It has no version of its own: the two bytes before it are its kind."""

    RECORD_KINDS: ClassVar[tuple[int, ...]]
    """The last is the one that is written; the others are older names of the same."""


class GroupRecordValue(Message):
    """The value of such a record."""

    WRITTEN: ClassVar[int]
    """The version that Kafka 4.3 writes, and so do we."""

"""The form of records in the internal topics of coordinators: a key of some kind, and a value of some version.

Both begin with two bytes, a key with its kind and a value with its version. Unknown kinds are those of newer
protocols: readers skip them.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct as Layout
from struct import error as struct_error
from typing import ClassVar, Final

from tanist.wire.codec import UnsupportedVersion, WireError, decoder, encoder
from tanist.wire.primitives import Buffer
from tanist.wire.schema import Message

_PREFIX: Final = Layout(">h")
_KEY_VERSION: Final = 0


class CoordinatorKey(Message):
    """The key of such a record. It has no version of its own: the two bytes before it are its kind."""

    RECORD_KINDS: ClassVar[tuple[int, ...]]
    """The last is the one that is written; the others are older names of the same."""


class CoordinatorValue(Message):
    """The value of such a record."""

    WRITTEN: ClassVar[int]
    """The version that Kafka 4.3 writes, and so do we."""


def encode_key(key: CoordinatorKey) -> bytes:
    return _PREFIX.pack(key.RECORD_KINDS[-1]) + encoder(type(key), _KEY_VERSION)(key)


def encode_value(value: CoordinatorValue, version: int | None = None) -> bytes:
    """The value, in the version that Kafka 4.3 writes unless another is asked for."""
    version = value.WRITTEN if version is None else version
    return _PREFIX.pack(version) + encoder(type(value), version)(value)


class RecordKinds:
    """The records of one topic."""

    def __init__(self, name: str, kinds: Iterable[tuple[type[CoordinatorKey], type[CoordinatorValue]]]) -> None:
        """`name` is for errors: "group"."""
        self._name = name
        self._classes = {kind: (key, value) for key, value in kinds for kind in key.RECORD_KINDS}

    def decode(self, key: Buffer, value: Buffer | None) -> tuple[CoordinatorKey, CoordinatorValue | None] | None:
        """A record, its value None for a tombstone; None if it is of a kind that is not known.

        `WireError` if it is malformed.
        """
        classes = self._classes.get(self._prefix(key))
        if classes is None:
            return None
        key_class, value_class = classes
        decoded_key, end = decoder(key_class, _KEY_VERSION)(key, _PREFIX.size)
        _require_end(key_class, key, end)
        if value is None:
            return decoded_key, None
        version = self._prefix(value)
        first, last = value_class.VERSIONS
        if not first <= version <= last:
            raise UnsupportedVersion(f"{value_class.__name__} has the versions {first} to {last}, not {version}")
        decoded_value, end = decoder(value_class, version)(value, _PREFIX.size)
        _require_end(value_class, value, end)
        return decoded_key, decoded_value

    def _prefix(self, data: Buffer) -> int:
        try:
            number: int = _PREFIX.unpack_from(data)[0]
        except struct_error as error:
            raise WireError(f"a {self._name} record's key or value of {len(data)} bytes is cut short") from error
        return number


def _require_end(cls: type[Message], data: Buffer, end: int) -> None:
    if end != len(data):
        raise WireError(f"{len(data) - end} bytes after {cls.__name__}")

"""The primitives of Kafka's encoding: varints, uuids, unknown tagged fields, arrays of numbers.

These run inside the code that `compile_decoder` and `compile_encoder` write, and in the hand-written codecs. The
reading functions expect their caller to turn `IndexError` and `struct.error` (the buffer ended) into `WireError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Layout
from typing import Any, Final, TypeAlias
from uuid import UUID

from tanist.wire.errors import EncodingError, WireError

Buffer: TypeAlias = bytes | bytearray | memoryview

MAX_STRING_BYTES: Final = 0x7FFF

UVARINTS: Final[tuple[bytes, ...]] = tuple(bytes((n,)) for n in range(128))
"""The encodings that are one byte long, which nearly all are."""

LAYOUTS: Final[dict[str, tuple[str, int]]] = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
"""Format character and size of the fixed-size types."""


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits, and the position after it."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise WireError("unsigned varint of more than 32 bits")
            return value, position
        shift += 7
        if shift > 28:
            raise WireError("unsigned varint of more than 5 bytes")


def write_uvarint(value: int) -> bytes:
    if not 0 <= value <= 0xFFFFFFFF:
        raise EncodingError(f"{value} is no unsigned 32-bit number")
    if 0x4000 <= value < 0x200000:  # lengths of records mostly are
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string_prefix(length_plus_one: int) -> bytes:
    """Length prefix of a compact string of 127 bytes or more."""
    if length_plus_one > MAX_STRING_BYTES + 1:
        raise EncodingError(f"a string of {length_plus_one - 1} bytes is too long for the protocol")
    return write_uvarint(length_plus_one)


def skip_tagged_fields(buffer: Buffer, position: int, count: int) -> int:
    """Step over `count` tagged fields, whatever they are (KIP-482)."""
    end = len(buffer)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > end:
            raise WireError("a tagged field ends beyond the message")
    return position


MAX_KNOWN_UUIDS: Final = 8192

KNOWN_UUIDS: Final[dict[bytes, UUID]] = {}
"""Ids that were read before, so that a topic's id is made into an object once (`UUID()` takes longer than the rest of a
partition). Ask with `KNOWN_UUIDS.get(raw) or learn_uuid(raw)`."""


def learn_uuid(raw: bytes) -> UUID:
    """Make the id and remember it. The cache is bounded: too many new ids clear it."""
    if len(KNOWN_UUIDS) >= MAX_KNOWN_UUIDS:
        KNOWN_UUIDS.clear()
    found = KNOWN_UUIDS[raw] = UUID(bytes=raw)
    return found


SHORT_ARRAY: Final = 32
"""Arrays of fewer numbers than this have a layout of their own, made beforehand."""


def short_array_packers(code: str, flexible: bool) -> tuple[Callable[..., bytes], ...]:
    """By length: the packer of the length prefix and that many numbers."""
    if flexible:
        return tuple(Layout(f">B{n}{code}").pack for n in range(SHORT_ARRAY))
    return tuple(Layout(f">i{n}{code}").pack for n in range(SHORT_ARRAY))


def short_array_readers(code: str) -> tuple[Callable[[Buffer, int], tuple[Any, ...]], ...]:
    """By length: the reader of that many numbers."""
    return tuple(Layout(f">{n}{code}").unpack_from for n in range(SHORT_ARRAY))


def pack_long_array(code: str, flexible: bool, values: Sequence[Any]) -> bytes:
    count = len(values)
    prefix = write_uvarint(count + 1) if flexible else count.to_bytes(4, "big")
    return prefix + Layout(f">{count}{code}").pack(*values)


def read_long_array(code: str, count: int, buffer: Buffer, position: int) -> tuple[Any, ...]:
    """`count` numbers; the caller has checked that the buffer has that many."""
    return Layout(f">{count}{code}").unpack_from(buffer, position)

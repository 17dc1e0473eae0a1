"""The shared parts of the two fast-path codecs, `produce` and `fetch`.

They are written by hand because they are called for every batch: the shapes that clients send nearly always (one topic,
one partition) are read and written with one or two precompiled structs. All other shapes go through ordinary loops.
Tests hold both to the generic codec's bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Layout
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from tanist.wire.errors import EncodingError, WireError
from tanist.wire.primitives import (
    KNOWN_UUIDS,
    MAX_STRING_BYTES,
    UVARINTS,
    Buffer,
    learn_uuid,
    read_uvarint,
    skip_tagged_fields,
    string_prefix,
    write_uvarint,
)

Topic: TypeAlias = str | UUID
"""A topic's name, or in newer versions its id."""

MAX_TOPIC_NAME: Final = 249
"""Kafka's bound for a topic's name, in characters; in bytes too, as only ASCII is allowed."""

_MAX_KNOWN_NAMES: Final = 20_000

KNOWN_NAMES: Final[dict[bytes, str]] = {}
"""Topic names that were read before. Ask with `KNOWN_NAMES.get(raw) or learn_name(raw)`."""

NAME_BYTES: Final[dict[str, bytes]] = {}
"""Topic names that were written before, encoded. Ask with `NAME_BYTES.get(name) or learn_name_bytes(name)`."""


def learn_name(raw: bytes) -> str:
    """Decode a topic's name and remember it. The cache is bounded: too many new names clear it."""
    try:
        name = raw.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"topic name: {error}") from error
    if len(raw) <= MAX_TOPIC_NAME:
        if len(KNOWN_NAMES) >= _MAX_KNOWN_NAMES:
            KNOWN_NAMES.clear()
        KNOWN_NAMES[raw] = name
    return name


def learn_name_bytes(name: str) -> bytes:
    try:
        raw = name.encode()
    except (UnicodeEncodeError, AttributeError) as error:
        raise EncodingError(f"topic name {name!r}: {error}") from error
    if len(raw) <= MAX_TOPIC_NAME:
        if len(NAME_BYTES) >= _MAX_KNOWN_NAMES:
            NAME_BYTES.clear()
        NAME_BYTES[name] = raw
    return raw


class ReadersByLength(dict[int, Callable[[Buffer, int], tuple[Any, ...]]]):
    """`[n](buffer, offset)` reads a layout with a topic's name of n bytes. Made at first use.

    Bounded by `MAX_TOPIC_NAME`, which callers check.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __missing__(self, length: int) -> Callable[[Buffer, int], tuple[Any, ...]]:
        found = self[length] = Layout(self._pattern % length).unpack_from
        return found


class PackersByLength(dict[int, tuple[Callable[..., bytes], int]]):
    """`[n]` packs a layout with a topic's name of n bytes; and the size of that layout."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __missing__(self, length: int) -> tuple[Callable[..., bytes], int]:
        layout = Layout(self._pattern % length)
        found = self[length] = (layout.pack, layout.size)
        return found


_INT32: Final = Layout(">i")


class NodeEndpoint(NamedTuple):
    """The endpoint of a leader that a response names (KIP-951)."""

    id: int
    host: str
    port: int
    rack: str | None = None


def compact_string(text: str | None) -> bytes:
    if text is None:
        return UVARINTS[0]
    raw = text.encode()
    length = len(raw) + 1
    return (UVARINTS[length] if length < 128 else string_prefix(length)) + raw


def read_bytes(frame: memoryview, position: int, length: int) -> tuple[bytes, int]:
    """That many bytes, and the position after them: a name, an id."""
    end = position + length
    if length < 0 or length > MAX_STRING_BYTES or end > len(frame):
        raise WireError(f"length {length}, {len(frame) - position} bytes left")
    return bytes(frame[position:end]), end


def read_compact_string(frame: memoryview, position: int) -> tuple[str | None, int]:
    length, position = read_uvarint(frame, position)
    if length == 0:
        return None, position
    raw, position = read_bytes(frame, position, length - 1)
    return raw.decode(), position


def check_count(what: str, count: int, least_bytes: int, left: int) -> None:
    """An array of `count` elements of at least so many bytes must fit into the rest of the frame."""
    if count < 0 or count * least_bytes > left:
        raise WireError(f"{what}: {count} elements, {left} bytes left")


def skip_tags(frame: memoryview, position: int) -> int:
    count = frame[position]
    if count == 0:
        return position + 1
    count, position = read_uvarint(frame, position)
    return skip_tagged_fields(frame, position, count)


def read_tag(frame: memoryview, position: int) -> tuple[int, int, int]:
    """The number of a tagged field, and where it begins and ends."""
    tag, position = read_uvarint(frame, position)
    size, position = read_uvarint(frame, position)
    if position + size > len(frame):
        raise WireError("a tagged field ends beyond the message")
    return tag, position, position + size


def read_topic(frame: memoryview, position: int, by_id: bool) -> tuple[Topic, int]:
    """A topic's id or compact name."""
    if by_id:
        raw, position = read_bytes(frame, position, 16)
        return KNOWN_UUIDS.get(raw) or learn_uuid(raw), position
    length, position = read_uvarint(frame, position)
    raw, position = read_bytes(frame, position, length - 1)
    return KNOWN_NAMES.get(raw) or learn_name(raw), position


def compact_topic(topic: Any, by_id: bool) -> bytes:
    raw: bytes = topic.bytes if by_id else compact_string(topic)
    return raw


def check_tag(found: int, end: int) -> None:
    """A tagged field that we know must end where it says."""
    if found != end:
        raise WireError("a tagged field has another size than it says")


def encode_node_endpoints(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """The tagged fields of a response that has these endpoints and nothing else among them."""
    if not endpoints:
        return b"\0"
    chunks = [write_uvarint(len(endpoints) + 1)]
    for node_id, host, port, rack in endpoints:
        chunks += [_INT32.pack(node_id), compact_string(host), _INT32.pack(port), compact_string(rack), b"\0"]
    body = b"".join(chunks)
    return b"\x01\x00" + write_uvarint(len(body)) + body


def read_node_endpoints(frame: memoryview, position: int) -> tuple[list[NodeEndpoint], int]:
    count, position = read_uvarint(frame, position)
    count -= 1
    check_count("node endpoints", count, 11, len(frame) - position)
    found = []
    for _ in range(count):
        node_id = _INT32.unpack_from(frame, position)[0]
        host, position = read_compact_string(frame, position + 4)
        port = _INT32.unpack_from(frame, position)[0]
        rack, position = read_compact_string(frame, position + 4)
        if host is None:
            raise WireError("a node endpoint without host")
        found.append(NodeEndpoint(node_id, host, port, rack))
        position = skip_tags(frame, position)
    return found, position

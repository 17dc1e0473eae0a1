"""Read and write any message: `encoder(cls, version)`, `decoder(cls, version)`.

The functions are compiled from the message's field table at their first use, and kept: a node pays only for the
messages and versions that it speaks (about a millisecond each, once).

Decoders raise `WireError` for malformed input and nothing else; encoders raise `EncodingError` for a message that does
not fit its fields. Fields that a version lacks are left at their default when read and dropped when written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tanist.wire.compile_decoder import compile_decoder
from tanist.wire.compile_encoder import Write, compile_encoder
from tanist.wire.errors import EncodingError, UnsupportedVersion, WireError
from tanist.wire.primitives import Buffer
from tanist.wire.schema import Message

__all__ = [
    "Buffer",
    "EncodingError",
    "UnsupportedVersion",
    "WireError",
    "chunk_encoder",
    "decoder",
    "encoder",
    "joined",
]

M = TypeVar("M", bound=Message)
Decode = Callable[[Any, int], tuple[Any, int]]
Encode = Callable[[Any], bytes]

_writers: dict[tuple[type, int], Write] = {}
_encoders: dict[tuple[type, int], Encode] = {}
_decoders: dict[tuple[type, int], Decode] = {}


def encoder(cls: type[M], version: int) -> Callable[[M], bytes]:
    """The function that turns such a message into bytes, without header or length prefix."""
    found = _encoders.get((cls, version))
    if found is None:
        found = _encoders[cls, version] = _joining(chunk_encoder(cls, version))
    return found


def decoder(cls: type[M], version: int) -> Callable[[Buffer, int], tuple[M, int]]:
    """The function that reads such a message at an offset of a buffer, and returns its end.

    Record batches in the message are views of the buffer; all else is copied out of it.
    """
    found = _decoders.get((cls, version))
    if found is None:
        _check_version(cls, version)
        found = _decoders[cls, version] = compile_decoder(cls, version)
    return found


def chunk_encoder(cls: type[M], version: int) -> Callable[[M, list[Any]], None]:
    """Like `encoder`, but appends the message's chunks to a list, for a caller that adds others."""
    found = _writers.get((cls, version))
    if found is None:
        _check_version(cls, version)
        found = _writers[cls, version] = compile_encoder(cls, version)
    return found


def _joining(write: Write) -> Encode:
    def encode(message: Any) -> bytes:
        out: list[Any] = []
        write(message, out)
        return joined(out, message)

    return encode


def joined(chunks: list[Any], message: Message) -> bytes:
    """The chunks of a message, together."""
    try:
        return b"".join(chunks)
    except TypeError as error:
        raise EncodingError(f"{type(message).__name__}: {error}") from error


def _check_version(cls: type[Message], version: int) -> None:
    first, last = cls.VERSIONS
    if not first <= version <= last:
        raise UnsupportedVersion(f"{cls.__name__} has versions {first} to {last}, not {version}")

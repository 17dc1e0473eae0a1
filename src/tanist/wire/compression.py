"""Kafka's compression codecs on whole batches: none, gzip, snappy, lz4, zstd.

The broker's data path does not use it: batches pass through as they are. It is for code that must decode a batch.

Compressed data comes from clients and may be a decompression bomb, so the result is always bounded: it grows by steps
and never beyond `max_bytes`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import cramjam

from tanist.wire.errors import WireError
from tanist.wire.primitives import Buffer

MAX_DECOMPRESSED_BYTES: Final = 128 * 1024 * 1024

_FIRST_STEP: Final = 64 * 1024
_DID_NOT_FIT: Final = "failed to write whole buffer"
"""The library's errors for an output buffer that is too small. All other failures are damage."""
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
"""How snappy-java frames its blocks: the header with two versions, then blocks with their lengths before them."""
_XERIAL_BLOCK: Final = 32 * 1024


class Compression(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_LIBRARY: Final[dict[int, Any]] = {
    Compression.GZIP: cramjam.gzip,
    Compression.LZ4: cramjam.lz4,
    Compression.ZSTD: cramjam.zstd,
}


def compress(kind: int, data: Buffer) -> bytes:
    """`ValueError` if there is no such codec."""
    if kind == Compression.NONE:
        return bytes(data)
    if kind == Compression.SNAPPY:
        return _compress_xerial(data)
    if kind == Compression.LZ4:
        # Java's reader refuses blocks that refer to earlier ones, and has no use for the checksum of the content.
        lz4 = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        lz4.compress(bytes(data))
        return bytes(lz4.finish())
    library = _LIBRARY.get(kind)
    if library is None:
        raise ValueError(f"there is no compression codec {kind}")
    return bytes(library.compress(data))


def decompress(kind: int, data: Buffer, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Buffer:
    """`WireError` if there is no such codec, if the data is damaged, or if there would be more than `max_bytes`."""
    if kind == Compression.NONE:
        return data
    if kind == Compression.SNAPPY:
        return _decompress_snappy(data, max_bytes)
    library = _LIBRARY.get(kind)
    if library is None:
        raise WireError(f"there is no compression codec {kind}")
    # The size of the output is not known beforehand: try, and if it did not fit, try with four times the size.
    size = min(max_bytes, max(_FIRST_STEP, 4 * len(data)))
    while True:
        out = bytearray(size)
        try:
            written = library.decompress_into(data, out)
        except cramjam.DecompressionError as error:
            name = Compression(kind).name.lower()
            if _DID_NOT_FIT not in str(error):
                raise WireError(f"{name}: {error}") from error
            if size >= max_bytes:
                raise WireError(f"{name}: more than {max_bytes} bytes") from error
            size = min(max_bytes, 4 * size)
            continue
        return memoryview(out)[:written]


def _compress_xerial(data: Buffer) -> bytes:
    """Framed as by snappy-java, the format of Kafka's own clients."""
    out = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        out += [len(block).to_bytes(4, "big"), block]
    return b"".join(out)


def _decompress_snappy(data: Buffer, max_bytes: int) -> Buffer:
    """Framed by snappy-java, or one raw block, as librdkafka sends it."""
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_block(view, max_bytes)
    out = bytearray()
    position = len(_XERIAL_HEADER)
    if len(view) < position:
        raise WireError("snappy: the header is cut short")
    while position < len(view):
        start = position + 4
        if start > len(view):
            raise WireError("snappy: a block's length is cut short")
        position = start + int.from_bytes(view[position:start], "big")
        if position > len(view):
            raise WireError("snappy: a block ends beyond the data")
        out += _decompress_block(view[start:position], max_bytes - len(out))
    return out


def _decompress_block(block: memoryview, max_bytes: int) -> bytes:
    """A raw block states its size, and the library returns no more."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > max_bytes:
            raise WireError(f"snappy: {size} bytes where {max_bytes} are allowed")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise WireError(f"snappy: {error}") from error

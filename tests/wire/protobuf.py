"""Writes protobuf, as little as OpenTelemetry's MetricsData takes: the other end of what `tanist.wire.otlp` reads."""

from __future__ import annotations

import struct
from collections.abc import Mapping

DELTA, CUMULATIVE = 1, 2


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def flag(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def part(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def text(number: int, content: str) -> bytes:
    return part(number, content.encode())


def attributes(number: int, pairs: Mapping[str, str]) -> bytes:
    return b"".join(part(number, text(1, key) + part(2, text(1, value))) for key, value in pairs.items())


def point(value: float, pairs: Mapping[str, str] | None = None) -> bytes:
    """A NumberDataPoint: an int or a double."""
    number = varint(6 << 3 | 1) + struct.pack("<q", value) if isinstance(value, int) else (
        varint(4 << 3 | 1) + struct.pack("<d", value)
    )  # fmt: skip
    return attributes(7, pairs or {}) + number


def gauge(name: str, *points: bytes) -> bytes:
    return text(1, name) + part(5, b"".join(part(1, each) for each in points))


def counter(name: str, *points: bytes, temporality: int = DELTA, monotonic: int = 1) -> bytes:
    content = b"".join(part(1, each) for each in points) + flag(2, temporality) + flag(3, monotonic)
    return text(1, name) + part(7, content)


def metrics_data(*metrics: bytes, client: Mapping[str, str] | None = None) -> bytes:
    """A MetricsData of one resource with one scope. Protobuf lets a writer put its resource last."""
    return part(1, part(2, b"".join(part(2, each) for each in metrics)) + part(1, attributes(1, client or {})))

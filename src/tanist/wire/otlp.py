"""What a client pushes by KIP-714: OpenTelemetry's MetricsData, version 1, a message of protobuf.

Owns the reading of its gauges and sums, which is all that clients send; histograms and summaries are passed over, as
are fields that are not known. The bytes come from clients: nothing is sized by what they say, and a message of more
than `MAX_FIELDS` fields is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tanist.wire.errors import WireError
from tanist.wire.primitives import Buffer

MAX_FIELDS: Final = 200_000
"""Enough for 10,000 numbers with four attributes each; they are read in a fifth of a second."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DELTA: Final = 1
"""AggregationTemporality: since the last report."""
_GAUGE, _SUM = 5, 7

_Field = tuple[int, int | memoryview]


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a metric."""

    metric: str
    attributes: dict[str, str]
    """The client's, and the number's own."""
    value: float
    is_counter: bool
    """It only grows."""
    is_delta: bool
    """It is what has come since the last report."""


def read_metrics(data: Buffer) -> Iterator[Number]:
    """All numbers. `WireError` if it is no such message, or has too many fields."""
    reader = _Reader()
    for field, of_client in reader.messages(memoryview(data)):
        if field != 1:  # ResourceMetrics
            continue
        parts = list(reader.messages(of_client))
        attributes: dict[str, str] = {}
        for field, resource in parts:
            if field == 1:
                attributes |= reader.attributes(resource, 1)
        for field, scope in parts:
            if field == 2:  # ScopeMetrics
                for field, metric in reader.messages(scope):
                    if field == 2:
                        yield from _numbers(reader, metric, attributes)


def _numbers(reader: _Reader, metric: memoryview, of_client: dict[str, str]) -> Iterator[Number]:
    fields = list(reader.messages(metric))
    name = "".join(_text(value) for field, value in fields if field == 1)
    for field, data in fields:
        if field not in (_GAUGE, _SUM):
            continue
        parts = list(reader.fields(data))
        flags = {number: value for number, value in parts if isinstance(value, int)}
        is_sum = field == _SUM
        is_counter, is_delta = is_sum and bool(flags.get(3)), is_sum and flags.get(2) == _DELTA
        for number, point in parts:
            if number == 1 and isinstance(point, memoryview):
                value = reader.number(point)
                if value is not None:
                    own = reader.attributes(point, 7)
                    yield Number(name, {**of_client, **own}, value, is_counter, is_delta)


class _Reader:
    """Reads the fields of messages, and counts them."""

    def __init__(self) -> None:
        self._left = MAX_FIELDS

    def fields(self, data: memoryview) -> Iterator[_Field]:
        """Number and value of each field: an int (fixed numbers are their eight or four bytes), or bytes."""
        position, end = 0, len(data)
        while position < end:
            self._left -= 1
            if self._left < 0:
                raise WireError(f"more than {MAX_FIELDS} fields")
            tag, position = _varint(data, position)
            kind = tag & 7
            if kind == _VARINT:
                value, position = _varint(data, position)
                yield tag >> 3, value
                continue
            if kind == _BYTES:
                size, position = _varint(data, position)
            elif kind in (_FIXED64, _FIXED32):
                size = 8 if kind == _FIXED64 else 4
            else:
                raise WireError(f"protobuf has no wire type {kind}")
            if position + size > end:
                raise WireError("a field ends beyond its message")
            yield tag >> 3, data[position : position + size]
            position += size

    def messages(self, data: memoryview) -> Iterator[tuple[int, memoryview]]:
        """The fields that are messages or texts."""
        for number, value in self.fields(data):
            if isinstance(value, memoryview):
                yield number, value

    def attributes(self, data: memoryview, field: int) -> dict[str, str]:
        """The KeyValues in that field. A value that is a list or a map is left out."""
        found = {}
        for number, pair in self.messages(data):
            if number == field:
                parts = dict(self.messages(pair))
                text = self._value(parts[2]) if 2 in parts else None
                if text is not None:
                    found[_text(parts.get(1, memoryview(b"")))] = text
        return found

    def _value(self, data: memoryview) -> str | None:
        """An AnyValue."""
        text = None
        for number, value in self.fields(data):
            if isinstance(value, int):
                text = str(bool(value)).lower() if number == 2 else str(_signed(value))
            elif number == 1:
                text = _text(value)
            elif number == 4:
                text = str(_unpacked("<d", value))
        return text

    def number(self, data: memoryview) -> float | None:
        """The value of a NumberDataPoint; None: it has none."""
        value = None
        for field, part in self.fields(data):
            if isinstance(part, memoryview) and field in (4, 6):
                value = _unpacked("<d" if field == 4 else "<q", part)
        return value


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if position >= len(data):
            raise WireError("a number is cut short")
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise WireError("a number of more than ten bytes")


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _unpacked(form: str, data: memoryview) -> float:
    if len(data) != 8:
        raise WireError(f"a number of {len(data)} bytes")
    value: float = struct.unpack(form, data)[0]
    return value


def _text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"a text is not UTF-8: {error}") from error

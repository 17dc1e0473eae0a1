"""Lines of records, as `tanist produce` reads them and `tanist consume` prints them.

Owns the text form, which is that of Kafka's console tools: `name:value,name:value` TAB key TAB value, as far as it is
asked for. It cannot say everything (a TAB in a key, bytes that are no text): the JSON form can.
"""

from __future__ import annotations

from dataclasses import dataclass

from tanist.runtime.client.record_json import line_of, read_object, read_record, record_json
from tanist.wire.batch import NewRecord, Record

NO_HEADERS = "NO_HEADERS"
"""As Kafka's console consumer says it."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a record is written."""

    json: bool = False
    headers: bool = False
    places: bool = False

    def line(self, topic: str, partition: int, record: Record) -> str:
        if self.json:
            return line_of(record_json(topic, partition, record.offset, record))
        fields: list[str] = []
        if self.places:
            fields += [str(partition), str(record.offset)]
        if self.headers:
            fields.append(",".join(f"{name}:{text_of(value)}" for name, value in record.headers) or NO_HEADERS)
        if self.places:
            fields.append(text_of(record.key))
        return "\t".join([*fields, text_of(record.value)]) + "\n"


def text_of(data: bytes | None) -> str:
    return "" if data is None else data.decode(errors="replace")


def parse_line(line: bytes, now_ms: int, *, json: bool, headers: bool, key_separator: str | None) -> NewRecord:
    """The record of a line. `ValueError` says what is wrong with it."""
    if json:
        return read_record(read_object(line), now_ms)
    found: tuple[tuple[str, bytes | None], ...] = ()
    if headers:
        front, tab, line = line.partition(b"\t")
        if not tab:
            raise ValueError("no TAB after the headers; a line begins like name:value,name:value<TAB>")
        found = _headers(front)
    if key_separator:
        key, separator, value = line.partition(key_separator.encode())
        if separator:
            return NewRecord(now_ms, key, value, found)
    return NewRecord(now_ms, None, line, found)


def _headers(text: bytes) -> tuple[tuple[str, bytes | None], ...]:
    if text in (b"", NO_HEADERS.encode()):
        return ()
    pairs = [each.partition(b":") for each in text.split(b",")]
    for name, colon, _ in pairs:
        if not colon or not name:
            shown = (name + colon).decode(errors="replace")
            raise ValueError(f"{shown!r} is not a header like name:value")
    return tuple((name.decode(errors="replace"), value) for name, _, value in pairs)

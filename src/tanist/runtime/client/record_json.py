"""Records as objects of JSON, one a line: what `consume` prints, `produce` reads, a ledger keeps and a salvage exports.

Owns the one form of it. A key, value or header that is text stands as it is; any other is base64, and `..._encoding`
beside it says so. Nothing is lost on the way: `read_record` gives the bytes back.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from tanist.wire.batch import NewRecord, Record

_BASE64 = "base64"


class NotARecord(ValueError):
    """A line that is no record in this form; the text says why."""


def readable(name: str, data: bytes | None) -> dict[str, str | None]:
    """One field: text as it is, other bytes with their encoding beside them."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {name: base64.b64encode(data).decode(), f"{name}_encoding": _BASE64}


def content_json(record: Record | NewRecord) -> dict[str, Any]:
    """Timestamp, key, value and headers: what a record is wherever it lies."""
    return {
        "timestamp": record.timestamp,
        **readable("key", record.key),
        **readable("value", record.value),
        "headers": [{"key": name, **readable("value", data)} for name, data in record.headers],
    }


def record_json(topic: str, partition: int, offset: int | None, record: Record | NewRecord) -> dict[str, Any]:
    """A record and its place. The offset is None where it is not known."""
    return {"topic": topic, "partition": partition, "offset": offset, **content_json(record)}


def line_of(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def read_object(line: bytes | str) -> dict[str, Any]:
    """The object of a line. `NotARecord` if it is none."""
    try:
        found = json.loads(line)
    except (ValueError, UnicodeDecodeError) as error:
        raise NotARecord(f"not JSON ({error})") from None
    if not isinstance(found, dict):
        raise NotARecord('not an object like {"key": ..., "value": ...}')
    return found


def read_record(found: dict[str, Any], default_timestamp: int) -> NewRecord:
    """The record in such an object; what it lacks is null, or the default. `NotARecord` if a field makes no sense."""
    timestamp = found.get("timestamp", default_timestamp)
    if not isinstance(timestamp, int) or isinstance(timestamp, bool):
        raise NotARecord(f"timestamp is {timestamp!r}, not milliseconds")
    headers = found.get("headers") or []
    if not isinstance(headers, list) or not all(
        isinstance(each, dict) and isinstance(each.get("key"), str) for each in headers
    ):
        raise NotARecord('headers are not a list of {"key": ..., "value": ...}')
    return NewRecord(
        timestamp,
        _bytes_of(found, "key"),
        _bytes_of(found, "value"),
        tuple((each["key"], _bytes_of(each, "value")) for each in headers),
    )


def _bytes_of(found: dict[str, Any], name: str) -> bytes | None:
    value = found.get(name)
    if value is None:
        return None
    encoding = found.get(f"{name}_encoding")
    if encoding == _BASE64 and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise NotARecord(f"{name} is not base64 ({error})") from None
    if encoding is not None:
        raise NotARecord(f"{name}_encoding is {encoding!r}: only {_BASE64!r} is known")
    # A value that is itself JSON is taken as its text: {"value": {"id": 1}} is what people write.
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()

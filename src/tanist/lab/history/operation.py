"""The fields of one operation of a history, and their checks. docs/history.md is the format.

Owns the checks of single fields: each takes a value of a line and returns it in the checker's form, or raises
`HistoryError`. Nothing here looks at more than one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Operation = Mapping[str, Any]

INVOKE, OK, FAIL, INFO = "invoke", "ok", "fail", "info"
COMPLETIONS = frozenset((OK, FAIL, INFO))
SEND, POLL, END, ASSIGN, SUBSCRIBE, SEEK, CRASH = "send", "poll", "end", "assign", "subscribe", "seek", "crash"
TXN = "txn"
"""A transaction: its `ops` are sends and polls (`micro_operations`)."""
FUNCTIONS = frozenset((SEND, POLL, END, ASSIGN, SUBSCRIBE, SEEK, CRASH, TXN))
NEMESIS = "nemesis"
"""The process that injects faults, as in Jepsen; its operations are for people."""

COLUMNS = (
    "process",
    "type",
    "f",
    "id",
    "time_ns",
    "invoked_ns",
    "partition",
    "value",
    "offset",
    "acks",
    "idempotent",
    "aborted",
    "records",
    "positions",
    "partitions",
    "isolation",
    "ops",
    "ending_ns",
)
"""All fields with a meaning."""

_LARGEST = (1 << 63) - 1
_ACKS = {None: True, "all": True, -1: True, "-1": True, 0: False, 1: False, "0": False, "1": False}
_ISOLATIONS = {None: False, "read_uncommitted": False, "read_committed": True}


class HistoryError(Exception):
    """A history that cannot be judged, with the problem and its line."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.problem = problem
        self.line = line


def shown(value: object) -> str:
    """A value of a file in an error message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def wrong(name: str, value: object, wanted: str, line: int) -> HistoryError:
    """The error for a missing or wrong field."""
    return HistoryError(f"{name} is {'missing' if value is None else shown(value)}: {wanted} is wanted", line)


def value_text(value: object, line: int) -> str:
    """A record's value: a string, an integer, or an array of those. An integer is the same as its digits."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[return-value]
    if kind is int:
        return str(value)
    if isinstance(value, list) and value:
        return "\0".join(_part_text(part, line) for part in value) + "\0"
    raise wrong("value", value, "a string, an integer or an array of those", line)


def _part_text(part: object, line: int) -> str:
    if type(part) is not str and type(part) is not int:
        raise wrong("a part of value", part, "a string or an integer", line)
    return str(part)


def value_hash(text: str) -> int:
    """A value's hash: 64 bits, with a new key in each process. Two of 10^7 values collide once in 370,000 runs."""
    return hash(text)


def offset_of(value: object, line: int, name: str = "offset") -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise wrong(name, value, "an offset", line)
    return value


def time_of(value: object, line: int, name: str) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise wrong(name, value, "a number of nanoseconds", line)
    return value


def partition_of(value: object, line: int) -> str:
    """A name, such as `orders-3`; a number is the same as its digits, because names are keys of JSON elsewhere."""
    if type(value) is str and value:
        return value
    if type(value) is int:
        return str(value)
    raise wrong("partition", value, "a name or a number", line)


def is_promise(operation: Operation, line: int) -> bool:
    acks = operation.get("acks")
    if type(acks) is bool or isinstance(acks, (list, dict)) or acks not in _ACKS:
        raise wrong("acks", acks, "all, 1 or 0", line)
    return _ACKS[acks]


def flag_of(operation: Operation, name: str, line: int, *, default: bool) -> bool:
    value = operation.get(name)
    if value is None:
        return default
    if type(value) is not bool:
        raise wrong(name, value, "true or false", line)
    return value


def is_committed_read(operation: Operation, line: int) -> bool:
    isolation = operation.get("isolation")
    if isinstance(isolation, (list, dict)) or isolation not in _ISOLATIONS:
        raise wrong("isolation", isolation, "read_committed or read_uncommitted", line)
    return _ISOLATIONS[isolation]


def partitions_of(operation: Operation, line: int) -> list[str]:
    found = operation.get("partitions")
    if not isinstance(found, list):
        raise wrong("partitions", found, "an array", line)
    return [partition_of(each, line) for each in found]


def positions_of(operation: Operation, line: int) -> dict[str, int | None]:
    """Partition -> the offset that is read next, or None if it is unknown."""
    found = operation.get("positions")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise wrong("positions", found, "an object", line)
    return {
        partition_of(name, line): None if offset is None else offset_of(offset, line, f"the position in {shown(name)}")
        for name, offset in found.items()
    }


def records_of(operation: Operation, line: int) -> dict[str, list[Any]]:
    """Partition -> pairs of offset and value, in the order of the poll. The pairs are not checked."""
    found = operation.get("records")
    if found is None:
        if operation.get("value") is None and operation.get("offset") is None:
            return {}
        return {partition_of(operation.get("partition"), line): [(operation.get("offset"), operation.get("value"))]}
    if not isinstance(found, dict):
        raise wrong("records", found, "an object", line)
    if operation.get("value") is not None or operation.get("offset") is not None:
        raise HistoryError("a poll has either records, or one partition, offset and value", line)
    return found


def pair_of(record: object, line: int) -> tuple[int, str]:
    """Offset and value of a polled record."""
    if not isinstance(record, (list, tuple)) or len(record) != 2:
        raise wrong("a record", record, "a pair of offset and value", line)
    return offset_of(record[0], line), value_text(record[1], line)

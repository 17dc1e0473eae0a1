"""The file and folder names of a log directory."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
TEMPORARY_SUFFIX: Final = ".tmp"

SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETE_SUFFIX: Final = "-delete"
FUTURE_SUFFIX: Final = "-future"
_MARKED: Final = re.compile(r".+\.([0-9a-f]+)(-delete|-future|-stray)")
_NAME_BYTES_MAX: Final = 255

_OFFSET_MAX: Final = 2**63 - 1


def offset_file(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offset_of(name: str, suffix: str) -> int | None:
    """The offset in `name`, None when it is no offset and `suffix`."""
    digits = name.removesuffix(suffix)
    if len(digits) != 20 or digits == name or not (digits.isascii() and digits.isdigit()):
        return None
    offset = int(digits)
    return offset if offset <= _OFFSET_MAX else None


class LogFolder(NamedTuple):
    topic: str
    partition: int


def folder_name(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_folder(name: str) -> LogFolder | None:
    """The topic and partition of a log's folder; None for any other name, marked ones included."""
    topic, dash, partition = name.rpartition("-")
    if not topic or not dash or not (partition.isascii() and partition.isdigit()) or len(partition) > 10:
        return None
    if partition != str(int(partition)) or int(partition) > 2**31 - 1:
        return None
    return LogFolder(topic, int(partition))


def folder_mark(name: str) -> str | None:
    """`-delete`, `-future` or `-stray` of a folder that waits to be deleted or is not in service."""
    match = _MARKED.fullmatch(name)
    return match.group(2) if match else None


def parse_future_folder(name: str) -> LogFolder | None:
    """The topic and partition of a log that is on its way from another directory of the broker (KIP-113)."""
    match = _MARKED.fullmatch(name)
    if match is None or match.group(2) != FUTURE_SUFFIX:
        return None
    return parse_folder(name.removesuffix(f".{match.group(1)}{FUTURE_SUFFIX}"))


def future_folder_name(topic: str, partition: int, unique: str) -> str:
    """The name of such a log's folder. `ValueError`: the topic's name is too long for one, as in Apache Kafka."""
    name = f"{folder_name(topic, partition)}.{unique}{FUTURE_SUFFIX}"
    if len(name) > _NAME_BYTES_MAX:
        raise ValueError(f"a folder cannot be named {name}")
    return name


def is_marked(name: str, topic: str, partition: int) -> bool:
    """Whether this is the marked folder of that log."""
    match = _MARKED.fullmatch(name)
    return match is not None and name == _marked_name(topic, partition, match.group(1), match.group(2))


def delete_folder_name(topic: str, partition: int, unique: str) -> str:
    """The name of a folder to be deleted."""
    return _marked_name(topic, partition, unique, DELETE_SUFFIX)


def _marked_name(topic: str, partition: int, unique: str, mark: str) -> str:
    """A long topic name is cut, as a folder's name may have 255 characters."""
    tail = f"-{partition}.{unique}{mark}"
    return f"{topic[: _NAME_BYTES_MAX - len(tail)]}{tail}"

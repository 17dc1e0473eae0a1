"""Histories in files: JSON Lines, or Parquet with the same columns.

Owns the conversion of a file to numbered operations, and the second reading of single ones for the report. A file is
read from front to back in pieces of bounded size, and again up to the last reported line. A line that is not a JSON
object is a `HistoryError`; the checker decides whether the operation is valid.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from tanist.installed import add_extra
from tanist.lab.history.operation import COLUMNS, HistoryError, Operation

_LINE_BYTES_MAX = 64 << 20
_BATCH_ROWS = 1 << 14
_PARQUET_MAGIC = b"PAR1"

Progress = Callable[[int], None]
"""Called now and then with the number of newly read bytes, or rows, of `HistoryFile.size`."""
_PROGRESS_STEP = 1 << 20


class HistoryFile(Protocol):
    """A file that holds a history."""

    size: int
    """In the unit of progress."""

    def operations(self, progress: Progress | None = None) -> Iterator[tuple[int, Operation]]:
        """Each operation with the number of its line, from 1."""
        ...

    def fetch(self, lines: Collection[int]) -> dict[int, Operation]:
        """Some operations again."""
        ...


def open_history(path: Path) -> HistoryFile:
    """By its first bytes, whatever its name is."""
    try:
        with path.open("rb") as file:
            is_parquet = file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror}") from error
    return ParquetHistory(path) if is_parquet else JsonLinesHistory(path)


class JsonLinesHistory:
    """One JSON object a line. Empty lines are numbered, and skipped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size

    def operations(self, progress: Progress | None = None) -> Iterator[tuple[int, Operation]]:
        decode = json.JSONDecoder().raw_decode
        reported = seen = 0
        with self._path.open("rb") as file:
            for number, raw in _lines(file):
                seen += len(raw)
                if progress is not None and seen - reported >= _PROGRESS_STEP:
                    progress(seen - reported)
                    reported = seen
                operation = _decoded(decode, raw, number)
                if operation is not None:
                    yield number, operation
        if progress is not None:
            progress(seen - reported)

    def fetch(self, lines: Collection[int]) -> dict[int, Operation]:
        found: dict[int, Operation] = {}
        decode, last = json.JSONDecoder().raw_decode, max(lines, default=0)
        with self._path.open("rb") as file:
            for number, raw in _lines(file):
                if number > last:
                    break
                if number in lines:
                    operation = _decoded(decode, raw, number)
                    if operation is not None:
                        found[number] = operation
        return found


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    read, number = file.readline, 0
    while raw := read(_LINE_BYTES_MAX + 1):
        number += 1
        if len(raw) > _LINE_BYTES_MAX:
            raise HistoryError(f"it is longer than {_LINE_BYTES_MAX >> 20} MiB", number)
        yield number, raw


def _decoded(decode: Callable[[str], tuple[Any, int]], raw: bytes, number: int) -> Operation | None:
    try:
        text = raw.decode().strip()
        if not text:
            return None
        operation, end = decode(text)
    except UnicodeDecodeError as error:
        raise HistoryError(f"it is not UTF-8: {error.reason}", number) from error
    except json.JSONDecodeError as error:
        raise HistoryError(f"it is not JSON: {error.msg} at column {error.colno}", number) from error
    except (ValueError, RecursionError) as error:
        # A number with thousands of digits, or deeply nested brackets.
        raise HistoryError(f"it is not JSON that can be read: {error}", number) from error
    if end != len(text):
        raise HistoryError(f"something stands behind its object, at column {end + 1}", number)
    if not isinstance(operation, dict):
        raise HistoryError("it is not an object", number)
    return operation


class ParquetHistory:
    """The same fields as columns; null means missing. A line's number is its row's, from 1.

    `records` is a list of structs with partition, offset and value; `positions` one with partition and offset; `ops`
    is a list of structs with the fields of sends and polls, these two among them.
    """

    def __init__(self, path: Path) -> None:
        self._parquet = _pyarrow()
        self._path = path
        with self._open() as file:
            self.size = file.metadata.num_rows

    def operations(self, progress: Progress | None = None) -> Iterator[tuple[int, Operation]]:
        number = 0
        with self._open() as file:
            names = [name for name in file.schema_arrow.names if name in COLUMNS]
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=names):
                columns = [column.to_pylist() for column in batch.columns]
                for row in zip(*columns, strict=True):
                    number += 1
                    yield number, _operation(names, row, number)
                if progress is not None:
                    progress(len(batch))

    def fetch(self, lines: Collection[int]) -> dict[int, Operation]:
        last = max(lines, default=0)
        found: dict[int, Operation] = {}
        for number, operation in self.operations():
            if number > last:
                break
            if number in lines:
                found[number] = operation
        return found

    def _open(self) -> Any:
        try:
            return self._parquet.ParquetFile(self._path)
        except (OSError, ValueError) as error:
            raise HistoryError(f"{self._path} is not Parquet that can be read: {error}") from error


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError as error:
        raise HistoryError(f"a history in Parquet needs pyarrow: {add_extra('parquet')}") from error


def _operation(names: list[str], row: tuple[Any, ...], number: int) -> Operation:
    operation: dict[str, Any] = dict(zip(names, row, strict=True))
    if operation.get("ops") is not None:
        operation["ops"] = [_mapped(each, number) for each in _structs(operation, "ops", number)]
    return _mapped(operation, number)


def _mapped(operation: dict[str, Any], number: int) -> dict[str, Any]:
    """Lists of structs become mappings by partition."""
    if operation.get("records") is not None:
        by_partition: dict[Any, list[Any]] = {}
        for record in _structs(operation, "records", number):
            by_partition.setdefault(record.get("partition"), []).append([record.get("offset"), record.get("value")])
        operation["records"] = by_partition
    if operation.get("positions") is not None:
        operation["positions"] = {
            each.get("partition"): each.get("offset") for each in _structs(operation, "positions", number)
        }
    return operation


def _structs(operation: dict[str, Any], name: str, number: int) -> list[dict[str, Any]]:
    found = operation[name]
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise HistoryError(f"{name} is not a list of structs", number)
    return found

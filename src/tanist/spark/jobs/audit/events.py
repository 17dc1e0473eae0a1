"""Events of clients as numpy columns, for the passes that look at each of them.

Owns the columns and the two ways to them: `of_frame`, from batches of the DataFrame that a history is; `Lines`, from
the lines of a Parquet file, by the rules of `history.history` for operations of one line. Strings stay codes into a
short list of names, and values become their hashes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tanist.lab.history.operation import NEMESIS
from tanist.spark.jobs.audit.arrow_columns import columns_of
from tanist.spark.jobs.audit.spark_hashes import of_text

POLL: Final = 1
SEND: Final = 0
NEVER: Final = -(2**63)
"""Stands for a time or an offset that nobody knows."""
FRAME: Final = (
    "side", "process", "place", "hash", "offset", "began_ns", "ended_ns", "coalesce(outcome = 'ok', false) as ok",
    "promised", "ordered",
)  # fmt: skip
"""Of a history's DataFrame, what `of_frame` needs."""
ROW_SCHEMA: Final = (
    "side int, process string, place string, value string, hash bigint, offset bigint, began_ns bigint,"
    " ended_ns bigint, outcome string, promised boolean, ordered boolean, aborted boolean, committed boolean"
)
"""The columns of `History.events`."""
ROW: Final = columns_of(ROW_SCHEMA)
_TEXT: Final = ("process", "type", "f", "partition", "acks", "isolation")
_NUMBERS: Final = ("offset", "invoked_ns", "time_ns")
_FLAGS: Final = ("idempotent", "aborted")
CODED: Final = _TEXT
"""Of few different values each."""
LINE: Final = (*_TEXT, "value", *_NUMBERS, *_FLAGS)
_TRUSTED: Final = ("all", "-1")


@dataclass(frozen=True, slots=True)
class Events:
    """Sends and polled records; see `History.events`."""

    process: Any
    """A number in `processes`."""
    processes: Sequence[str]
    place: Any
    places: Sequence[str]
    poll: Any
    ok: Any
    """An acknowledged send."""
    promised: Any
    ordered: Any
    hash: Any
    offset: Any
    known: Any
    """Whether the offset is known."""
    began: Any
    """`NEVER`: nobody knows."""
    ended: Any
    """`NEVER`: nobody knows."""

    def __len__(self) -> int:
        return len(self.hash)


def of_frame(batches: Iterable[pa.RecordBatch]) -> Iterator[Events]:
    """Of batches with the columns `FRAME`."""
    for batch in batches:
        process, processes = _coded(batch.column("process"))
        place, places = _coded(batch.column("place"))
        offset, known = _numbers(batch.column("offset"))
        yield Events(
            process, processes, place, places, batch.column("side").to_numpy() == POLL, _flags(batch.column("ok")),
            _flags(batch.column("promised")), _flags(batch.column("ordered")), batch.column("hash").to_numpy(), offset,
            known, _numbers(batch.column("began_ns"))[0], _numbers(batch.column("ended_ns"))[0],
        )  # fmt: skip


def readable(schema: pa.Schema) -> bool:
    """Whether `Lines` reads the columns of such a file as Spark does."""
    kinds = {field.name: _plain(field.type) for field in schema}
    text = all(_is_text(kinds[name]) for name in _TEXT if name in kinds)
    numbers = all(_is_number(kinds[name]) for name in _NUMBERS if name in kinds)
    flags = all(pa.types.is_boolean(kinds[name]) for name in _FLAGS if name in kinds)
    return text and numbers and flags and "value" in kinds and "partition" in kinds and _is_text(kinds["value"])


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_number(kind) or pa.types.is_null(kind)


def _is_number(kind: pa.DataType) -> bool:
    return bool((pa.types.is_integer(kind) and kind != pa.uint64()) or pa.types.is_null(kind))


class Lines:
    """The events in a batch of lines, each of which is one operation."""

    def __init__(self, batch: pa.RecordBatch, topics: Collection[str] | None = None) -> None:
        kept = _kept(batch, topics)
        if not kept.all():
            batch = batch.filter(pa.array(kept))
        self._batch = batch
        self._send = _among(self._text("f"), ("send",))
        value = self._text("value")
        self.hashes = of_text(value).view(np.int64)
        """Of the values."""
        self._value = value

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def numbers(self) -> Events:
        process, processes = _coded(self._text("process"))
        place, places = _coded(self._text("partition"))
        offset, known = self._number("offset")
        return Events(
            process, processes, place, places, ~self._send, self._send & _among(self._text("type"), ("ok",)),
            self._promised(), self._ordered(), self.hashes, offset, known,
            self._number("invoked_ns")[0], self._number("time_ns")[0],
        )  # fmt: skip

    def rows(self, which: Any) -> pa.RecordBatch:
        """Some of them, as rows of `ROW`."""
        found: dict[str, Any] = {
            "side": np.where(self._send, SEND, POLL).astype(np.int32)[which],
            "hash": self.hashes[which],
            "promised": self._promised()[which],
            "ordered": self._ordered()[which],
            "aborted": self._flag("aborted", absent=False)[which],
            "committed": _among(self._text("isolation"), ("read_committed",))[which],
        }
        arrays = {name: pa.array(values, ROW[name]) for name, values in found.items()}
        taken = pa.array(np.flatnonzero(which))
        for name, line in {"process": "process", "place": "partition", "value": "value"}.items():
            arrays[name] = self._text(line).take(taken).cast(pa.string())
        for name, line in {"offset": "offset", "began_ns": "invoked_ns", "ended_ns": "time_ns"}.items():
            arrays[name] = self._column(line, pa.int64()).take(taken).cast(pa.int64())
        outcome = self._text("type").take(taken).cast(pa.string())
        arrays["outcome"] = pc.if_else(pa.array(self._send[which]), outcome, pa.scalar(None, pa.string()))
        return pa.RecordBatch.from_arrays([arrays[name] for name in ROW], list(ROW))

    def _promised(self) -> Any:
        acks = self._text("acks")
        return _among(acks, _TRUSTED) | _null(acks)

    def _ordered(self) -> Any:
        """Of an idempotent producer; without acks=all none is."""
        return self._promised() & self._flag("idempotent", absent=True)

    def _text(self, name: str) -> pa.Array:
        found = self._column(name, pa.string())
        kind = _plain(found.type)
        return found.cast(pa.string()) if not pa.types.is_string(kind) else found

    def _number(self, name: str) -> tuple[Any, Any]:
        return _numbers(self._column(name, pa.int64()))

    def _flag(self, name: str, *, absent: bool) -> Any:
        return self._column(name, pa.bool_()).fill_null(absent).to_numpy(zero_copy_only=False)

    def _column(self, name: str, kind: pa.DataType) -> pa.Array:
        return _column(self._batch, name, kind)


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    number = batch.schema.get_field_index(name)
    if number < 0 or pa.types.is_null(batch.schema.field(number).type):
        return pa.nulls(batch.num_rows, kind)
    return batch.column(number)


def _kept(batch: pa.RecordBatch, topics: Collection[str] | None) -> Any:
    """Of lines those that are a send, or a polled record."""
    text = {name: _column(batch, name, pa.string()) for name in ("process", "type", "f", "partition", "value")}
    polled = _among(text["f"], ("poll",)) & _among(text["type"], ("ok",))
    polled &= ~_null(_column(batch, "offset", pa.int64()))
    kept = (_among(text["f"], ("send",)) | polled) & ~_among(text["process"], (NEMESIS,))
    for name in ("process", "partition", "value"):
        kept &= ~_null(text[name])
    if topics is not None:
        codes, names = _coded(text["partition"])
        kept &= np.array([*(topic_of(name) in topics for name in names), False])[codes]
    return kept


def topic_of(place: str) -> str:
    """Of a partition as histories name it; the same where it names none."""
    topic, dash, number = place.rpartition("-")
    return topic if dash and number.isascii() and number.isdigit() else place


def _null(array: pa.Array) -> Any:
    if not array.null_count:
        return np.zeros(len(array), bool)
    return array.is_null().to_numpy(zero_copy_only=False)


def _among(array: pa.Array, wanted: Collection[str]) -> Any:
    codes, names = _coded(array)
    # The last is that of null, whose code is -1.
    return np.array([*(name in wanted for name in names), False])[codes]


def _coded(array: pa.Array) -> tuple[Any, list[str]]:
    """A number for each, -1 for null, and the names that they stand for."""
    if not pa.types.is_dictionary(array.type) or array.dictionary.null_count:
        array = array.cast(pa.string()).dictionary_encode()
    codes = array.indices.fill_null(-1) if array.indices.null_count else array.indices
    return codes.to_numpy().astype(np.int64), [str(name) for name in array.dictionary.to_pylist()]


def _numbers(array: pa.Array) -> tuple[Any, Any]:
    """`NEVER` where there is none; and where there is one."""
    if array.type != pa.int64():
        array = array.cast(pa.int64())
    if not array.null_count:
        return array.to_numpy(), np.ones(len(array), bool)
    return array.fill_null(NEVER).to_numpy(), array.is_valid().to_numpy(zero_copy_only=False)


def _flags(array: pa.Array) -> Any:
    return array.to_numpy(zero_copy_only=False)

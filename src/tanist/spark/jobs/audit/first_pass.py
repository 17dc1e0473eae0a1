"""The one pass over a history that looks at every event, as it is done in the tasks that read it.

Owns its three results. *Sums*: of each reader, of the producers, and of each bucket of offsets the count of claims and
what they come to; a claim is an acknowledged send or a polled record, at an offset. *Claims*: those in buckets that do
not come to what the log's records come to, so that nobody has to read the history again for them. *Blocks*: of each
producer, for `order_blocks`. A task holds back the claims of a bucket that is not whole yet, and lets go of them when
they come to what the log has, which is what nearly all buckets do.

The log's sums are known before the pass begins: 24 bytes for 512 records. They are broadcast, once to each worker; they
must not be in the function that goes to every task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from tanist.spark.jobs.audit import order_blocks
from tanist.spark.jobs.audit.arrow_columns import columns_of
from tanist.spark.jobs.audit.events import NEVER, Events
from tanist.spark.jobs.audit.spark_hashes import of_longs
from tanist.spark.jobs.audit.sums import BUCKET_OFFSETS

SUM: Final = 0
CLAIM: Final = 1
BLOCK: Final = 2
GIVEN_UP: Final = 3
"""Too many claims are in buckets that differ: their rows do not all come out."""
SCHEMA: Final = (
    "part int, place string, process string, bucket bigint, records bigint, sum bigint, acknowledged bigint,"
    " expired bigint, at_ns bigint, offset bigint, hash bigint, first_offset bigint, last_offset bigint,"
    " first_ended_ns bigint, last_began_ns bigint, disordered boolean"
)
"""`process` of sums and claims is null for the producers."""
_COLUMNS: Final = columns_of(SCHEMA)

_HELD_MAX: Final = 1 << 20
"""Claims that a task holds back: 60 MB."""
_CLAIMS_MIN: Final = 1 << 20
_CLAIMS_SHARE: Final = 0.25
"""A task that has let out more claims than this, and more than `_CLAIMS_MIN`, gives up."""
_PRODUCERS: Final = 0
_BUCKET_BITS: Final = 44


@dataclass(frozen=True, slots=True)
class LogSums:
    """What the records of the references' logs come to, by place and bucket.

    A log has each offset once. So claims that cancel out, two of the same record, leave too few others to come to it.
    """

    places: tuple[str, ...]
    keys: Any
    """Ascending: the number of a place, and a bucket."""
    records: Any
    sums: Any

    @staticmethod
    def of(table: pa.Table) -> LogSums:
        """Of rows place, bucket, log_records, log_sum."""
        codes = table.column("place").combine_chunks().dictionary_encode()
        buckets = table.column("bucket").to_numpy()
        keys = _keys(codes.indices.to_numpy().astype(np.int64), buckets)
        order = np.argsort(keys)
        return LogSums(
            tuple(codes.dictionary.to_pylist()), keys[order], table.column("log_records").to_numpy()[order],
            table.column("log_sum").to_numpy()[order],
        )  # fmt: skip

    def agree(self, place: Any, bucket: Any, records: Any, sums: Any) -> Any:
        """Whether the log has as many records there, and of the same sum. `place`: -1 is of no log."""
        if not len(self.keys):
            return np.zeros(len(place), bool)
        wanted = _keys(place, bucket)
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        there = (self.keys[at] == wanted) & (place >= 0) & (bucket >= 0) & (bucket < 1 << _BUCKET_BITS)
        return there & (self.records[at] == records) & (self.sums[at] == sums)


def _keys(place: Any, bucket: Any) -> Any:
    return place << _BUCKET_BITS | (bucket & ((1 << _BUCKET_BITS) - 1))


class Shared(Protocol):
    """A value that every task looks at: Spark's `Broadcast`, or `Own`."""

    @property
    def value(self) -> LogSums: ...


@dataclass(frozen=True, slots=True)
class Own:
    """A value that goes with the function: of a test, and of a Spark Connect session, which has no broadcasts."""

    value: LogSums


@dataclass(frozen=True, slots=True)
class FirstPass:
    """The pass of one task, over its share of a history."""

    log: Shared | None
    """None: no claims are wanted."""
    starts: Mapping[str, int] = field(default_factory=dict)
    """Places whose logs begin above offset 0, and where."""
    may_give_up: bool = True

    def __call__(self, events: Iterable[Events]) -> Iterator[pa.RecordBatch]:
        """Rows of `SCHEMA`; several sums of one bucket, if its claims did not come together."""
        claims, blocks = _Claims(self), _Blocks()
        for each in events:
            yield from claims.add(each)
            yield from blocks.add(each)
        yield from claims.end()
        yield from blocks.end()


class _Names:
    """Numbers for names, of all batches of a task."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.names: list[str | None] = list(known)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def numbers(self, names: Iterable[str], codes: Any) -> Any:
        """Of codes into these names."""
        found = []
        for name in names:
            number = self._numbers.setdefault(name, len(self.names))
            if number == len(self.names):
                self.names.append(name)
            found.append(number)
        return np.array(found, np.int64)[codes]

    def texts(self, numbers: Any) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(self.names, pa.string())).cast(pa.string())


_HELD: Final = ("place", "process", "offset", "hash", "ended", "acknowledged", "expired")


class _Claims:
    def __init__(self, chosen: FirstPass) -> None:
        self._log = None if chosen.log is None else chosen.log.value
        self._may_give_up = chosen.may_give_up
        # The log's places have its numbers; others come behind.
        self._places = _Names(self._log.places if self._log is not None else ())
        self._logs_places = len(self._places.names)
        # A process of no name: the producers.
        self._processes = _Names([None])  # type: ignore[list-item]
        self._starts = dict(chosen.starts)
        self._held: dict[str, Any] = {name: np.empty(0, np.int64) for name in _HELD}
        self._seen = self._let_out = 0
        self._given_up = False

    def add(self, events: Events) -> Iterator[pa.RecordBatch]:
        is_claim = events.known & (events.poll | events.ok)
        place = self._places.numbers(events.places, events.place)
        if self._log is not None:
            nowhere = np.flatnonzero(events.ok & ~events.known)
            if len(nowhere):
                yield self._rows({"place": place[nowhere], "hash": events.hash[nowhere]}, CLAIM)
        if not is_claim.any():
            return
        process = self._processes.numbers(events.processes, events.process)
        acknowledged = events.ok & events.promised
        expired = acknowledged & (events.offset < self._starts_of(place)) if self._starts else np.zeros(len(events))
        fresh = {
            "place": place, "process": np.where(events.poll, process, _PRODUCERS), "offset": events.offset,
            "hash": events.hash, "ended": events.ended, "acknowledged": acknowledged, "expired": expired,
        }  # fmt: skip
        if not is_claim.all():
            fresh = {name: column[is_claim] for name, column in fresh.items()}
        self._seen += len(fresh["place"])
        yield from self._step(fresh)

    def end(self) -> Iterator[pa.RecordBatch]:
        """What is held back comes out."""
        yield from self._step({name: column[:0] for name, column in self._held.items()})

    def _starts_of(self, place: Any) -> Any:
        return np.array([self._starts.get(name or "", NEVER) for name in self._places.names], np.int64)[place]

    def _step(self, fresh: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Claims by buckets, with those that are held back before them: what is whole or over comes out."""
        held = len(self._held["place"])
        rows = {name: np.concatenate((self._held[name], fresh[name].astype(np.int64, copy=False))) for name in _HELD}
        if not len(rows["place"]):
            return
        groups, group_of_run, runs = _grouped(rows)
        over = np.ones(len(groups["place"]), bool)
        self._held = {name: column[:0] for name, column in rows.items()}
        if self._log is not None and not self._given_up:
            # Numbers from there on are of places without a log.
            place = np.where(groups["place"] < self._logs_places, groups["place"], -1)
            settled = self._log.agree(place, groups["bucket"], groups["records"], groups["sum"])
            # A bucket of which nothing came this time is over.
            goes_on = np.zeros(len(over), bool)
            goes_on[group_of_run[np.r_[runs[1:], len(rows["place"])] > held]] = True
            over = settled | ~goes_on
            lengths = np.diff(np.r_[runs, len(rows["place"])])
            kept = np.repeat(~over[group_of_run], lengths)
            if np.count_nonzero(kept) > _HELD_MAX:
                over[:], kept[:] = True, False
            self._held = {name: column[kept] for name, column in rows.items()}
            out = np.repeat((over & ~settled)[group_of_run], lengths)
            yield from self._claims_out(rows, out)
        if over.any():
            yield self._rows({name: column[over] for name, column in groups.items()}, SUM)

    def _claims_out(self, rows: dict[str, Any], out: Any) -> Iterator[pa.RecordBatch]:
        count = int(np.count_nonzero(out))
        if not count:
            return
        self._let_out += count
        if self._may_give_up and self._let_out > max(_CLAIMS_MIN, _CLAIMS_SHARE * self._seen):
            self._given_up = True
            yield _batch({"part": pa.array([GIVEN_UP], pa.int32())}, 1)
            return
        found = {name: rows[name][out] for name in ("place", "process", "offset", "hash")}
        yield self._rows({**found, "bucket": found["offset"] // BUCKET_OFFSETS}, CLAIM)

    def _rows(self, columns: dict[str, Any], part: int) -> pa.RecordBatch:
        known: dict[str, pa.Array] = {}
        for name, column in columns.items():
            if name == "place":
                known[name] = self._places.texts(column)
            elif name == "process":
                known[name] = self._processes.texts(column)
            elif name == "at_ns":
                known[name] = pa.array(column, mask=column == NEVER)
            else:
                known[name] = pa.array(column)
        count = len(columns["place"])
        return _batch({**known, "part": pa.array(np.full(count, part, np.int32))}, count)


def _grouped(rows: dict[str, Any]) -> tuple[dict[str, Any], Any, Any]:
    """The sums of claims, one for each place, process and bucket; which of them each run is; where the runs begin.

    A run is of claims that lie behind each other and are of one bucket: mostly it is the whole of it.
    """
    place, process, bucket = rows["place"], rows["process"], rows["offset"] // BUCKET_OFFSETS
    other = (place[1:] != place[:-1]) | (process[1:] != process[:-1]) | (bucket[1:] != bucket[:-1])
    runs = np.flatnonzero(np.r_[True, other])
    of_runs = {
        "records": np.diff(np.r_[runs, len(place)]),
        "sum": np.bitwise_xor.reduceat(of_longs(rows["offset"], rows["hash"]).view(np.int64), runs),
        "acknowledged": np.add.reduceat(rows["acknowledged"], runs),
        "expired": np.add.reduceat(rows["expired"], runs),
        "at_ns": np.maximum.reduceat(rows["ended"], runs),
        "offset": np.maximum.reduceat(rows["offset"], runs),
    }
    place, process, bucket = place[runs], process[runs], bucket[runs]
    order = np.lexsort((bucket, process, place))
    place, process, bucket = place[order], process[order], bucket[order]
    first = np.r_[True, (place[1:] != place[:-1]) | (process[1:] != process[:-1]) | (bucket[1:] != bucket[:-1])]
    starts = np.flatnonzero(first)
    groups = {"place": place[starts], "process": process[starts], "bucket": bucket[starts]}
    for name, column in of_runs.items():
        groups[name] = _TOGETHER[name].reduceat(column[order], starts)
    group_of_run = np.empty(len(runs), np.int64)
    group_of_run[order] = np.cumsum(first) - 1
    return groups, group_of_run, runs


_TOGETHER: Final = {
    "records": np.add, "sum": np.bitwise_xor, "acknowledged": np.add, "expired": np.add, "at_ns": np.maximum,
    "offset": np.maximum,
}  # fmt: skip


class _Blocks:
    """The sends whose order counts, gathered by the half million."""

    def __init__(self) -> None:
        self._places, self._processes = _Names(), _Names()
        self._waiting: list[tuple[Any, ...]] = []
        self._rows = 0

    def add(self, events: Events) -> Iterator[pa.RecordBatch]:
        which = events.ok & events.ordered & events.known & (events.ended != NEVER)
        if not which.any():
            return
        columns = (
            self._places.numbers(events.places, events.place),
            self._processes.numbers(events.processes, events.process), events.offset, events.began, events.ended,
        )  # fmt: skip
        self._waiting.append(columns if which.all() else tuple(column[which] for column in columns))
        self._rows += len(self._waiting[-1][0])
        if self._rows >= order_blocks.ROWS:
            yield from self.end()

    def end(self) -> Iterator[pa.RecordBatch]:
        if not self._rows:
            return
        place, process, offset, began, ended = (np.concatenate(columns) for columns in zip(*self._waiting))
        self._waiting, self._rows = [], 0
        several = len(self._processes.names)
        found = order_blocks.summed(place * several + process, offset, began, ended)
        producer = found.pop("producer")
        columns: dict[str, pa.Array] = {name: pa.array(column) for name, column in found.items()}
        began_last = found["last_began_ns"]
        columns["last_began_ns"] = pa.array(began_last, mask=began_last == NEVER)
        columns["place"] = self._places.texts(producer // several)
        columns["process"] = self._processes.texts(producer % several)
        columns["part"] = pa.array(np.full(len(producer), BLOCK, np.int32))
        yield _batch(columns, len(producer))


def _batch(known: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    arrays = [known[name] if name in known else pa.nulls(rows, kind) for name, kind in _COLUMNS.items()]
    return pa.RecordBatch.from_arrays(arrays, list(_COLUMNS))

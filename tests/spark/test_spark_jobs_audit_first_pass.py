"""The first pass over a history: sums are those of the rows, and no claim that the log does not settle is missing."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.spark.jobs.audit import first_pass, order_blocks
from tanist.spark.jobs.audit.events import NEVER, Events
from tanist.spark.jobs.audit.first_pass import BLOCK, CLAIM, GIVEN_UP, SUM, FirstPass, LogSums, Own
from tanist.spark.jobs.audit.spark_hashes import of_longs
from tanist.spark.jobs.audit.sums import BUCKET_OFFSETS as SIZE

PLACES = ("orders-0", "orders-1", "elsewhere-0")
PROCESSES = ("p", "q")


@dataclass(frozen=True)
class Event:
    process: int
    place: int
    poll: bool
    ok: bool
    promised: bool
    hash: int
    offset: int | None
    ended: int | None

    @property
    def claim(self) -> bool:
        return self.offset is not None and (self.poll or self.ok)

    @property
    def key(self) -> tuple[str, str | None, int]:
        assert self.offset is not None
        return PLACES[self.place], PROCESSES[self.process] if self.poll else None, self.offset // SIZE


def events_of(drawn: Iterable[Event]) -> Events:
    rows = list(drawn)

    def numbers(values: Iterable[int | None]) -> Any:
        return np.array([NEVER if value is None else value for value in values], np.int64)

    def flags(values: Iterable[bool]) -> Any:
        return np.array(list(values), bool)

    return Events(
        numbers(each.process for each in rows), PROCESSES, numbers(each.place for each in rows), PLACES,
        flags(each.poll for each in rows), flags(each.ok and not each.poll for each in rows),
        flags(each.promised for each in rows), flags(True for _ in rows), numbers(each.hash for each in rows),
        numbers(each.offset for each in rows), flags(each.offset is not None for each in rows),
        numbers(None for _ in rows), numbers(each.ended for each in rows),
    )  # fmt: skip


def hashed(offset: int, value: int) -> int:
    return int(of_longs(np.array([offset], np.int64), np.array([value], np.int64)).view(np.int64)[0])


def log_of(records: Iterable[tuple[str, int, int]]) -> Own:
    """Of records: place, offset, hash."""
    found: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for place, offset, value in records:
        sums = found[place, offset // SIZE]
        sums[0] += 1
        sums[1] ^= hashed(offset, value)
    names = ("place", "bucket", "log_records", "log_sum")
    columns = zip(*((*key, *sums) for key, sums in found.items())) if found else ([] for _ in names)
    kinds = (pa.string(), pa.int64(), pa.int64(), pa.int64())
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, kinds)]
    return Own(LogSums.of(pa.Table.from_arrays(arrays, list(names))))


def rows_of(found: Iterable[Any]) -> list[dict[str, Any]]:
    return [row for batch in found for row in batch.to_pylist()]


drawn_events = st.lists(
    st.builds(
        Event, st.integers(0, 1), st.integers(0, 2), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 2),
        st.none() | st.integers(0, 3) | st.integers(SIZE - 1, SIZE + 2), st.none() | st.integers(0, 9),
    ),
    max_size=24,
)  # fmt: skip
# A log has a record at an offset once; the sums are exclusive-or, in which two of the same cancel out.
drawn_records = st.lists(
    st.tuples(st.sampled_from(PLACES[:2]), st.integers(0, SIZE + 2), st.integers(0, 2)),
    max_size=8,
    unique_by=lambda record: record[:2],
)


# The first example pays for numpy's and Arrow's imports.
@settings(deadline=None)
@given(drawn_events, drawn_records, st.integers(1, 9), st.integers(0, 6))
def test_sums_are_of_all_claims_and_those_that_differ_come_out(
    drawn: list[Event], records: list[tuple[str, int, int]], size: int, held_max: int
) -> None:
    log = log_of(records)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(first_pass, "_HELD_MAX", held_max)
        chunks = (events_of(drawn[first : first + size]) for first in range(0, len(drawn), size))
        rows = rows_of(FirstPass(log, {"orders-0": 2})(chunks))
    claims = [each for each in drawn if each.claim]
    sums: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0, 0, NEVER, 0])
    expected: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0, 0, NEVER, 0])

    def add(to: list[int], *numbers: int) -> None:
        count, value, acknowledged, expired, at_ns, offset = numbers
        to[:] = [
            to[0] + count, to[1] ^ value, to[2] + acknowledged, to[3] + expired, max(to[4], at_ns), max(to[5], offset)
        ]  # fmt: skip

    for row in rows:
        if row["part"] == SUM:
            at_ns = NEVER if row["at_ns"] is None else row["at_ns"]
            numbers = (row["records"], row["sum"], row["acknowledged"], row["expired"], at_ns, row["offset"])
            add(sums[row["place"], row["process"], row["bucket"]], *numbers)
    for each in claims:
        assert each.offset is not None
        promised = int(not each.poll and each.promised)
        expired = int(promised and each.place == 0 and each.offset < 2)
        ended = NEVER if each.ended is None else each.ended
        add(expected[each.key], 1, hashed(each.offset, each.hash), promised, expired, ended, each.offset)
    assert sums == expected
    out = Counter(
        (row["place"], row["process"], row["bucket"], row["offset"], row["hash"])
        for row in rows
        if row["part"] == CLAIM and row["bucket"] is not None
    )
    every = Counter((*each.key, each.offset, each.hash) for each in claims)
    assert out <= every
    there = set(records)
    for each in claims:
        # Where the log does not have it, somebody has to look at it.
        if (PLACES[each.place], each.offset, each.hash) not in there:
            assert out[(*each.key, each.offset, each.hash)] == every[(*each.key, each.offset, each.hash)]
    unplaced = [(row["place"], row["hash"]) for row in rows if row["part"] == CLAIM and row["bucket"] is None]
    acknowledged = [each for each in drawn if each.ok and not each.poll and each.offset is None]
    assert sorted(unplaced) == sorted((PLACES[each.place], each.hash) for each in acknowledged)


def bucket(process: int, place: int, number: int, *, poll: bool = False) -> list[Event]:
    first = number * SIZE
    return [Event(process, place, poll, not poll, True, each, each, each) for each in range(first, first + SIZE)]


def test_a_bucket_that_comes_in_pieces_is_settled_when_it_is_whole() -> None:
    log = log_of((PLACES[0], offset, offset) for offset in range(2 * SIZE))
    one, other = bucket(0, 0, 0), bucket(0, 0, 1)
    by_turns = [each for pair in zip(one, other) for each in pair]
    chunks = [events_of(by_turns[first : first + 100]) for first in range(0, len(by_turns), 100)]
    rows = rows_of(FirstPass(log)(chunks))
    assert [row["part"] for row in rows if row["part"] != BLOCK] == [SUM, SUM]
    late = [events_of(one[:9]), events_of(other), events_of(one[9:])]
    # Nothing of it came for a whole turn: it is not waited for.
    assert Counter(row["part"] for row in rows_of(FirstPass(log)(late)))[CLAIM] == SIZE


def test_with_too_many_claims_a_task_gives_up_unless_it_must_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_pass, "_CLAIMS_MIN", 10)
    chunks = [events_of(bucket(0, 0, number)) for number in range(4)]
    for may_give_up in (True, False):
        found = Counter(row["part"] for row in rows_of(FirstPass(log_of(()), {}, may_give_up)(iter(chunks))))
        assert found[SUM] == 4
        assert (found[GIVEN_UP] > 0, found[CLAIM] < 4 * SIZE) == (may_give_up, may_give_up)


def test_blocks_are_those_of_each_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_blocks, "ROWS", SIZE)
    chunks = [events_of(bucket(number % 2, number % 2, number)) for number in range(4)]
    rows = [row for row in rows_of(FirstPass(None)(chunks)) if row["part"] == BLOCK]
    assert [(row["process"], row["place"], row["first_offset"], row["last_offset"]) for row in rows] == [
        (PROCESSES[number % 2], PLACES[number % 2], number * SIZE, number * SIZE + SIZE - 1) for number in range(4)
    ]
    assert {row["last_began_ns"] for row in rows} == {None}


LINES: list[dict[str, Any]] = [
    {"process": "p", "type": "ok", "f": "send", "partition": "t-0", "value": "a", "offset": 0, "invoked_ns": 1,
     "time_ns": 2},
    {"process": "p", "type": "ok", "f": "send", "partition": "t-0", "value": "grün, and longer than thirty-two bytes",
     "offset": 1, "acks": "1", "idempotent": False, "time_ns": 3},
    {"process": "p", "type": "ok", "f": "send", "partition": "t-1", "value": "without an offset", "acks": "-1"},
    {"process": "p", "type": "fail", "f": "send", "partition": "t-0", "value": "c", "aborted": True, "time_ns": 4},
    {"process": "p", "type": "info", "f": "send", "partition": "u-0", "value": "d", "acks": "all", "time_ns": 5},
    {"process": "c", "type": "ok", "f": "poll", "partition": "t-0", "value": "a", "offset": 0, "time_ns": 6},
    {"process": "c", "type": "ok", "f": "poll", "partition": "t-0", "value": "", "offset": 7, "time_ns": 7,
     "isolation": "read_committed"},
    # Not events.
    {"process": "c", "type": "ok", "f": "poll", "time_ns": 8},
    {"process": "c", "type": "ok", "f": "poll", "partition": "t-0", "value": "a", "time_ns": 8},
    {"process": "c", "type": "info", "f": "poll", "partition": "t-0", "value": "a", "offset": 1, "time_ns": 8},
    {"process": "p", "type": "ok", "f": "send", "partition": "t-0", "offset": 3, "time_ns": 9},
    {"process": "p", "type": "ok", "f": "send", "value": "e", "offset": 3, "time_ns": 9},
    {"process": "nemesis", "type": "ok", "f": "send", "partition": "t-0", "value": "f", "offset": 3, "time_ns": 9},
    {"process": "c", "type": "ok", "f": "end", "partition": "t-0", "offset": 3, "value": "g", "time_ns": 9},
]  # fmt: skip
KINDS = {
    "process": pa.string(), "type": pa.string(), "f": pa.string(), "partition": pa.string(), "value": pa.string(),
    "acks": pa.string(), "isolation": pa.string(), "offset": pa.int64(), "invoked_ns": pa.int64(),
    "time_ns": pa.int64(), "idempotent": pa.bool_(), "aborted": pa.bool_(),
}  # fmt: skip


def written(folder: Path, lines: list[dict[str, Any]], kinds: dict[str, Any], files: int = 2) -> Path:
    import pyarrow.parquet as pq

    folder.mkdir()
    for number in range(files):
        part = lines[number::files]
        columns = {name: [line.get(name) for line in part] for name in kinds}
        arrays = {
            name: pa.array(column, kind.value_type).dictionary_encode()
            if pa.types.is_dictionary(kind)
            else pa.array(column, kind)
            for name, kind in kinds.items()
            for column in (columns[name],)
        }
        pq.write_table(pa.table(arrays), folder / f"{number}.parquet", row_group_size=3)
    return folder


CODED = {**KINDS, "process": pa.dictionary(pa.int32(), pa.string()), "f": pa.dictionary(pa.int32(), pa.string())}
FEW = {name: kind for name, kind in KINDS.items() if name not in ("acks", "isolation", "idempotent", "aborted")}


@pytest.mark.parametrize(("kinds", "topics"), [(KINDS, None), (KINDS, ["t"]), (CODED, ["t"]), (FEW, None)])
def test_tasks_read_parquet_as_spark_does(
    spark: Any, tmp_path: Path, kinds: dict[str, Any], topics: list[str] | None
) -> None:
    from tanist.spark.jobs.audit.history import read_history

    found = read_history(spark, [written(tmp_path / "history", LINES, kinds)])
    found = found if topics is None else found.of_topics(topics)
    assert found.lines is not None
    events = sorted(map(repr, found.events.collect()))
    assert len(events) == (7 if topics is None else 6)
    picked = found.with_values(found.events.select("place", "hash"))
    assert sorted(map(repr, picked.collect())) == events
    one = found.with_values(found.events.where("value = 'a'").select("place", "hash"))
    assert {row.value for row in one.collect()} == {"a"}
    chosen = FirstPass(log_of([("t-0", 0, found.events.where("value = 'a'").first().hash)]))
    by_tasks = rows_of(found.mapped(chosen, first_pass.SCHEMA).toArrow().to_batches())
    from_frames = type(found)(found.events).mapped(chosen, first_pass.SCHEMA).toArrow().to_batches()

    def summed(rows: list[dict[str, Any]]) -> set[str]:
        sums = [row for row in rows if row["part"] == SUM]
        return {json.dumps(row, sort_keys=True) for row in sums if row["process"] is not None}

    assert summed(by_tasks) == summed(rows_of(from_frames))
    assert {row["hash"] for row in by_tasks if row["part"] == CLAIM} == {
        row["hash"] for row in rows_of(from_frames) if row["part"] == CLAIM
    }


def test_lines_that_tasks_do_not_read_are_read_by_spark(spark: Any, tmp_path: Path) -> None:
    from tanist.spark.jobs.audit.history import read_history

    pairs = [*LINES, {"process": "p", "type": "invoke", "f": "send", "partition": "t-0", "value": "h", "time_ns": 1}]
    timed = [{**line, "time_ns": line.get("time_ns", 1)} for line in pairs]
    assert read_history(spark, [written(tmp_path / "pairs", timed, KINDS)]).lines is None
    assert read_history(spark, [written(tmp_path / "wide", LINES, {**KINDS, "time_ns": pa.float64()})]).lines is None

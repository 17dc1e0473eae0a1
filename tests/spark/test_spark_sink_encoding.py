"""Rows as record batches, held to the decoder and the partitioner that everybody else uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.runtime.client.records import partition_for
from tanist.spark.segments.arrow_rows import HEADERS
from tanist.spark.sink.encoding import NoRecord, Rows, Sealing, cuts, encode, seal, sizes_of
from tanist.spark.sink.partitions import choose
from tanist.wire.batch import crc_matches, decode_batch, read_header

BYTES = st.one_of(st.none(), st.binary(max_size=9), st.integers(60, 70).map(bytes), st.integers(8190, 8195).map(bytes))
HEADER_LISTS = st.one_of(st.none(), st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3))


def sealed(rows: Rows, sealing: Sealing, *, timestamp_ms: int, compression: int) -> bytes:
    records = encode(rows, np.arange(len(rows))).cut(0, len(rows))
    return seal(records, len(rows), sealing, timestamp_ms=timestamp_ms, compression=compression).joined()


def rows_of(records: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]]) -> Rows:
    headers = [None if each is None else [{"key": k, "value": v} for k, v in each] for _, _, each in records]
    return Rows(
        pa.array([key for key, _, _ in records], pa.binary()),
        pa.array([value for _, value, _ in records], pa.binary()),
        pa.array(headers, HEADERS),
    )


@given(
    st.lists(st.tuples(BYTES, BYTES, HEADER_LISTS), min_size=1, max_size=200), st.integers(0, 4), st.integers(0, 5),
    st.booleans(),
)  # fmt: skip
def test_what_is_encoded_is_read_by_the_decoder(
    records: list[Any], compression: int, skipped: int, headers: bool
) -> None:
    rows = rows_of([(b"not", b"seen", [("no", None)])] * skipped + records).cut(skipped, skipped + len(records))
    if not headers:
        rows = Rows(rows.key, rows.value, None)
    batch = sealed(rows, Sealing(7, 2, 40), timestamp_ms=1234, compression=compression)
    header = read_header(batch)
    assert header.size_bytes == len(batch)
    assert crc_matches(batch, 0, len(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert (header.record_count, header.last_offset_delta, header.max_timestamp) == (len(rows), len(rows) - 1, 1234)
    found = decode_batch(batch)
    assert [(each.offset, each.timestamp) for each in found] == [(number, 1234) for number in range(len(rows))]
    wanted = [(key, value, tuple(pairs or ()) if headers else ()) for key, value, pairs in records]
    assert [(each.key, each.value, each.headers) for each in found] == wanted


def test_batches_that_are_encoded_together() -> None:
    """Deltas begin anew in each; those behind the table of varints are as right as those in it."""
    count = 40_000
    rows = Rows(None, pa.array([b"%d" % number for number in range(count)], pa.binary()), None)
    deltas = np.concatenate([np.arange(3), np.arange(count - 3)])
    records = encode(rows, deltas)
    for first, last in ((0, 3), (3, count)):
        batch = seal(records.cut(first, last), last - first, Sealing(1, 0, 0), timestamp_ms=0, compression=0)
        assert len(batch) == len(batch.joined())
        found = decode_batch(batch.joined())
        assert [(each.offset, each.value) for each in found] == [
            (number - first, b"%d" % number) for number in range(first, last)
        ]


def test_without_keys() -> None:
    rows = Rows(None, pa.array([b"a", None], pa.binary()), None)
    found = decode_batch(sealed(rows, Sealing(-1, -1, -1), timestamp_ms=0, compression=0))
    assert [(each.key, each.value) for each in found] == [(None, b"a"), (None, None)]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(20, 400))
def test_rows_are_cut_by_their_size(sizes: list[int], batch_bytes: int) -> None:
    rows = Rows(None, pa.array([bytes(size) for size in sizes], pa.binary()), None)
    found = list(cuts(sizes_of(rows), batch_bytes))
    assert [number for first, last in found for number in range(first, last)] == list(range(len(sizes)))
    for first, last in found:
        assert last - first == 1 or sum(sizes[first:last]) + 16 * (last - first) <= batch_bytes


def test_a_header_without_a_key_is_no_header() -> None:
    rows = Rows(None, pa.array([b"a"], pa.binary()), pa.array([[{"key": None, "value": b"x"}]], HEADERS))
    with pytest.raises(NoRecord, match="without a key"):
        encode(rows, np.arange(1))


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=80), st.integers(1, 50), st.integers(0, 3))
def test_keys_go_where_javas_clients_send_them(keys: list[bytes], count: int, skipped: int) -> None:
    column = pa.array([b"not seen"] * skipped + keys, pa.binary()).slice(skipped)
    found = choose(Rows(column, column, None), None, count)
    assert found.tolist() == [partition_for(key, count) for key in keys]


def test_a_named_partition_comes_first_and_a_value_decides_last() -> None:
    key = pa.array([b"k", b"k", None, None, None], pa.binary())
    value = pa.array([b"1", b"2", b"same", b"same", None], pa.binary())
    rows = Rows(key, value, None)
    named = pa.array([4, None, 2, None, None], pa.int32())
    found = choose(rows, named, 5).tolist()
    assert (found[0], found[1], found[2]) == (4, partition_for(b"k", 5), 2)
    assert choose(rows.take([3, 2]), None, 5).tolist() == [found[3]] * 2
    with pytest.raises(NoRecord, match="no partition 5: the topic has 5"):
        choose(rows, pa.array([5] * 5, pa.int32()), 5)
    with pytest.raises(NoRecord, match="no partition -3"):
        choose(rows, pa.array([-3] * 5, pa.int32()), 5)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tanist.spark.segments.batch_table import crcs_right, walk
from tanist.spark.segments.record_columns import PADDING_BYTES, RecordColumns, decode, varints
from tanist.wire.batch import HEADER_BYTES, NewRecord, decode_batch, encode_batch
from tanist.wire.errors import WireError

record = st.builds(
    NewRecord,
    st.integers(-(2**40), 2**40),
    st.none() | st.binary(max_size=80),
    st.none() | st.binary(max_size=300),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple),
)


def decoded(batches: list[bytes]) -> tuple[np.ndarray, RecordColumns]:
    data = b"".join(batches)
    arena = np.frombuffer(data + bytes(PADDING_BYTES), np.uint8)
    ends = np.cumsum(np.array([len(batch) for batch in batches], np.int64))
    starts = ends - np.array([len(batch) for batch in batches], np.int64) + HEADER_BYTES
    counts = np.array([int.from_bytes(batch[57:61], "big", signed=True) for batch in batches])
    return arena, decode(arena, starts, ends, counts)


def as_records(batches: list[bytes]) -> list[tuple[int, int, int, bytes | None, bytes | None, int]]:
    arena, found = decoded(batches)
    data = arena.tobytes()

    def bytes_of(at: int, length: int) -> bytes | None:
        return None if length < 0 else data[at : at + length]

    return [
        (int(b), int(o), int(t), bytes_of(k, kl), bytes_of(v, vl), int(h))
        for b, o, t, k, kl, v, vl, h in zip(
            found.batch, found.offset_delta, found.timestamp_delta, found.key, found.key_length, found.value,
            found.value_length, found.header_count,
        )
    ]  # fmt: skip


def expected(batches: list[bytes]) -> list[tuple[int, int, int, bytes | None, bytes | None, int]]:
    found = []
    for number, batch in enumerate(batches):
        base = int.from_bytes(batch[27:35], "big", signed=True)
        for each in decode_batch(batch):
            found.append((number, each.offset, each.timestamp - base, each.key, each.value, len(each.headers)))
    return found


@given(st.lists(st.lists(record, min_size=1, max_size=12).map(lambda r: bytes(encode_batch(r))), max_size=40))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_columns_are_what_one_record_at_a_time_gives(batches: list[bytes]) -> None:
    """With fewer batches than are walked in lock-step, and with more."""
    assert as_records(batches) == expected(batches)


@pytest.mark.parametrize("sizes", [(40,) * 3000, (40, 40, 41) * 500, (5,) * 100 + (200,) * 900 + (5,)])
def test_records_of_one_length_are_leapt_over(sizes: tuple[int, ...]) -> None:
    batch = bytes(encode_batch([NewRecord(0, None, b"x" * size) for size in sizes]))
    assert as_records([batch]) == expected([batch])


def test_batches_of_different_counts_in_lock_step() -> None:
    batches = [
        bytes(encode_batch([NewRecord(0, b"k", b"v" * (n % 9)) for n in range(1 + 7 * b % 53)])) for b in range(70)
    ]
    assert as_records(batches) == expected(batches)


def test_records_of_long_lengths_and_far_offsets_in_lock_step() -> None:
    """Lengths of two bytes and of three, in some of the batches and in all; deltas of two bytes and of three."""
    sizes = [(8192 - 30) // 2 + n for n in range(0, 60, 3)] + [0, 5, 200, 8180, 8190, 8200, 20_000]
    batches = [
        bytes(encode_batch([NewRecord(0, b"k", b"v" * sizes[(n * (b + 3)) % len(sizes)]) for n in range(70 + b)]))
        for b in range(12)
    ]
    batches += [bytes(encode_batch([NewRecord(n * 9, None, b"v" * (n % 5)) for n in range(8500)]))]
    assert as_records(batches) == expected(batches)
    all_long = [bytes(encode_batch([NewRecord(0, None, b"v" * 9000)] * 20)) for _ in range(10)]
    assert as_records(all_long) == expected(all_long)


@pytest.mark.parametrize("lie", [b"\x01", b"\x80\x80\x01", b"\xff\xff\xff\xff\x0f", b"\x80" * 10])
def test_a_length_that_lies_is_found_in_lock_step(lie: bytes) -> None:
    """Among trusted steps: -1, one that is too short or too long, one that never ends; and at the very end."""
    batches = [encode_batch([NewRecord(0, None, b"v" * (40 + n % 50)) for n in range(60)]) for _ in range(12)]
    _, sound = decoded([bytes(each) for each in batches])
    thirtieth = int(sound.end[sound.batch == 4][29]) - sum(map(len, batches[:4]))
    batches[4][thirtieth : thirtieth + len(lie)] = lie
    # One of the last batch leads behind the arena, if it is believed.
    at = int(sound.end[sound.batch == 11][29]) - sum(map(len, batches[:11]))
    batches[11][at : at + 2] = b"\xfe\x7f"
    whole = [bytes(each) for each in batches]
    _, found = decoded(whole)
    assert found.unreadable.tolist() == [4, 11]
    others = [n for n in range(12) if n not in (4, 11)]
    rows = [row for row in as_records(whole) if row[0] in others]
    assert [row[1:] for row in rows] == [row[1:] for row in expected([whole[n] for n in others])]


def test_what_follows_the_last_body_is_not_run_through() -> None:
    """A varint that goes on behind its record, in an arena whose padding would go on, too."""
    arena = np.frombuffer(b"\x0c\x00" + b"\x80" * 5 + b"\xff" * PADDING_BYTES, np.uint8)
    assert decode(arena, np.array([0]), np.array([7]), np.array([1])).unreadable.tolist() == [0]


def test_no_record_is_before_its_batch() -> None:
    batch = encode_batch([NewRecord(0, None, b"x"), NewRecord(0, None, b"x")])
    at = HEADER_BYTES + 3
    assert batch[at] == 0
    batch[at] = 1
    assert decoded([bytes(batch)])[1].unreadable.tolist() == [0]


@given(
    st.lists(st.lists(record, min_size=1, max_size=6).map(lambda r: encode_batch(r)), min_size=1, max_size=30),
    st.data(),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_damage_stays_in_its_batch(batches: list[bytearray], data: st.DataObject) -> None:
    """What the plain decoder takes, is taken; what it refuses but for its headers, is refused; neighbours are whole."""
    hurt = data.draw(st.integers(0, len(batches) - 1))
    batch = batches[hurt]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(57, len(batch) - 1))
        batch[at] = data.draw(st.integers(0, 255))
    whole = [bytes(each) for each in batches]
    _, found = decoded(whole)
    bad = set(found.unreadable.tolist())
    assert bad <= {hurt}
    rest = [row for row in as_records(whole) if row[0] != hurt]
    others = [(n, batch) for n, batch in enumerate(whole) if n != hurt]
    assert [row[1:] for row in rest] == [row[1:] for row in expected([batch for _, batch in others])]
    try:
        plain = [row[1:] for row in expected([whole[hurt]])]
    except WireError:
        return
    if any(not 0 <= offset < 2**31 for offset, *_ in plain):
        # The plain decoder takes an offset before its batch's; here nothing may be where its batch is not.
        assert bad == {hurt}
        return
    assert [row[1:] for row in as_records(whole) if row[0] == hurt] == plain


@given(st.binary(max_size=400), st.integers(-5, 2**31 - 1))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_safe(body: bytes, count: int) -> None:
    arena = np.frombuffer(body + bytes(PADDING_BYTES), np.uint8)
    found = decode(arena, np.array([0]), np.array([len(body)]), np.array([count]))
    assert len(found.batch) in (0, count)
    assert (found.end <= len(body)).all()
    assert (found.value + np.maximum(found.value_length, 0) <= len(body)).all()


def test_a_count_of_billions_allocates_nothing() -> None:
    batch = encode_batch([NewRecord(0, None, b"x")])
    batch[57:61] = (2**31 - 1).to_bytes(4, "big")
    assert decoded([bytes(batch)])[1].unreadable.tolist() == [0]


def test_varints_up_to_64_bits() -> None:
    from tanist.wire.batch import _append_varint

    wanted = [0, -1, 1, 63, 64, -65, 2**31 - 1, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63)]
    out = bytearray()
    at = []
    for value in wanted:
        at.append(len(out))
        _append_varint(out, value)
    ends = [*at[1:], len(out)]
    values, behind = varints(np.frombuffer(bytes(out) + bytes(PADDING_BYTES), np.uint8), np.array(at))
    assert values.tolist() == wanted
    assert behind.tolist() == ends


def test_a_walk_ends_where_no_batch_is() -> None:
    first, second = (bytes(encode_batch([NewRecord(n, b"k", b"v")], base_offset=n)) for n in (0, 1))
    whole = walk(np.frombuffer(first + second, np.uint8), 0, len(first + second))
    assert (whole.positions.tolist(), whole.end, whole.fault) == ([0, len(first)], len(first + second), None)
    torn = walk(np.frombuffer(first + second[:-1], np.uint8), 0, len(first + second) - 1)
    assert (torn.positions.tolist(), torn.end, torn.fault) == ([0], len(first), None)
    junk = walk(np.frombuffer(first + bytes(100), np.uint8), 0, len(first) + 100)
    assert junk.end == len(first)
    assert junk.fault == "magic 0, expected 2"


def test_each_crc_is_looked_at() -> None:
    batches = [encode_batch([NewRecord(n, b"k", b"v")], base_offset=n) for n in range(5)]
    batches[3][-1] ^= 1
    data = np.frombuffer(b"".join(batches), np.uint8)
    assert crcs_right(data, walk(data, 0, len(data))).tolist() == [True, True, True, False, True]

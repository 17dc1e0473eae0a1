from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tanist.log.salvage.reading import sound_batches
from tanist.runtime.client.salvaged import SavedFile
from tanist.spark.segments import reading as segment_reading
from tanist.spark.segments.arrow_rows import TYPES, Origin
from tanist.spark.segments.reading import Wanted, read_stretch
from tanist.wire.batch import NewRecord, Record, decode_batch, encode_batch
from tanist.wire.control import encode_marker_batch
from tests.spark.spark_segments_samples import ALL, START_MS, SegmentBuilder, some_records

ORIGIN = Origin("orders", 3, 2, 0, None)


def read(path: Path, columns: list[str] = ALL, **where: Any) -> list[dict[str, Any]]:
    found = []
    for batch in read_stretch(
        str(path), where.get("start", 0), where["end"] if "end" in where else path.stat().st_size, ORIGIN, columns,
        where.get("wanted", Wanted()),
    ):  # fmt: skip
        assert batch.schema.types == [TYPES[name] for name in columns]
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


def plain(path: Path) -> list[Record]:
    """The records of all sound batches, read one at a time."""
    file = SavedFile(path)
    found: list[Record] = []
    for at, header in sound_batches(file, 0, file.size):
        found += decode_batch(file.read(at, header.size_bytes))
    file.close()
    return found


def as_record(row: dict[str, Any]) -> Record:
    headers = tuple((header["key"], header["value"]) for header in row["headers"])
    at_ms = round(row["timestamp"].timestamp() * 1000)
    return Record(row["offset"], at_ms, row["key"], row["value"], headers, row["sequence"])


@pytest.mark.parametrize("compression", range(5))
def test_all_columns_of_a_sound_segment(tmp_path: Path, compression: int) -> None:
    made = SegmentBuilder(100, epoch=4)
    made.batches(5, 30, compression=compression, producer_id=9, producer_epoch=2, base_sequence=5)
    path = made.write(tmp_path)
    rows = read(path)
    assert [as_record(row) for row in rows] == plain(path)
    assert len(rows) == 150
    for number, row in enumerate(rows):
        assert (row["topic"], row["partition"], row["replica"], row["leader_epoch"]) == ("orders", 3, 2, 4)
        assert (row["producer_id"], row["producer_epoch"], row["crc_ok"], row["damage"]) == (9, 2, True, None)
        assert row["batch_position"] == made.positions[number // 30]
        assert row["batch_offset"] == 100 + number // 30 * 30


def test_a_fingerprint_does_not_depend_on_where_a_record_is(tmp_path: Path) -> None:
    record = NewRecord(START_MS, b"key", b"value", (("h", b"1"),))
    one = (
        SegmentBuilder(epoch=1).batch([record]).batch([record._replace(value=b"other")]).batch([record], compression=2)
    )
    two = SegmentBuilder(5000, epoch=9).batch([record._replace(timestamp=0), record])
    first = [row["fingerprint"] for row in read(one.write(tmp_path / "a"), ["fingerprint"])]
    second = [row["fingerprint"] for row in read(two.write(tmp_path / "b"), ["fingerprint"])]
    assert first[0] == first[2] == second[0] == second[1] != first[1]


def test_control_records_and_log_append_time(tmp_path: Path) -> None:
    made = SegmentBuilder().batch(some_records(3), log_append_time_ms=START_MS + 77, transactional=True, producer_id=4)
    made.data += encode_marker_batch(
        committed=False, coordinator_epoch=1, producer_id=4, producer_epoch=0, timestamp_ms=START_MS, base_offset=3
    )
    rows = read(made.write(tmp_path))
    assert [round(row["timestamp"].timestamp() * 1000) - START_MS for row in rows] == [77, 77, 77, 0]
    assert [row["is_control"] for row in rows] == [False, False, False, True]
    assert all(row["is_transactional"] for row in rows)


def test_sequences_go_back_to_zero(tmp_path: Path) -> None:
    made = SegmentBuilder().batch(some_records(3), producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert [row["sequence"] for row in read(made.write(tmp_path))] == [2**31 - 2, 2**31 - 1, 0]


def test_a_batch_with_a_wrong_crc_is_one_row_that_says_so(tmp_path: Path) -> None:
    made = SegmentBuilder(epoch=3).batches(5, 10)
    made.data[made.positions[2] + 70] ^= 0x40
    rows = read(made.write(tmp_path))
    assert [row["offset"] for row in rows if row["damage"] is None] == [*range(20), *range(30, 50)]
    (hurt,) = [row for row in rows if row["damage"] is not None]
    assert (hurt["offset"], hurt["leader_epoch"], hurt["crc_ok"]) == (20, 3, False)
    assert hurt["batch_position"] == made.positions[2]
    assert "CRC" in hurt["damage"]
    assert hurt["value"] is hurt["fingerprint"] is None


def test_a_wrong_length_does_not_hide_what_follows(tmp_path: Path) -> None:
    made = SegmentBuilder().batches(6, 10)
    made.data[made.positions[1] + 8 : made.positions[1] + 12] = (900).to_bytes(4, "big")
    rows = read(made.write(tmp_path))
    assert [row["offset"] for row in rows if row["damage"] is None] == [*range(10), *range(20, 60)]
    assert [row["batch_position"] for row in rows if row["damage"]] == [made.positions[1]]


def test_a_torn_tail_and_zeros(tmp_path: Path) -> None:
    made = SegmentBuilder().batches(2, 10)
    whole = bytes(made.data)
    for tail, reason in (
        (whole[:30], "30 bytes are no batch"),
        (whole[:100], "cut off after 100"),
        (bytes(99), "magic 0"),
    ):
        made.data = bytearray(whole + tail)
        rows = read(made.write(tmp_path))
        assert [row["offset"] for row in rows if row["damage"] is None] == [*range(20)]
        (torn,) = [row for row in rows if row["damage"]]
        assert reason in torn["damage"]
        assert torn["batch_position"] == len(whole)
        assert torn["crc_ok"] is False


def test_records_that_are_not_what_their_batch_claims(tmp_path: Path) -> None:
    """The CRC is right: a producer wrote it so."""
    made = SegmentBuilder()
    made.batch(some_records(4)).batch(some_records(4, 4)).batch(some_records(4, 8), compression=4).batch(
        some_records(4, 12)
    )
    from tanist.wire.batch import write_crc

    at = made.positions[1]
    made.data[at + 57 : at + 61] = (9).to_bytes(4, "big")
    write_crc(made.data, at, made.positions[2] - at)
    at = made.positions[2]
    made.data[at + 61 : at + 65] = b"junk"
    write_crc(made.data, at, made.positions[3] - at)
    rows = read(made.write(tmp_path))
    assert [row["offset"] for row in rows if row["damage"] is None] == [0, 1, 2, 3, 12, 13, 14, 15]
    assert [(row["offset"], row["crc_ok"]) for row in rows if row["damage"]] == [(4, True), (8, True)]


def test_a_file_that_is_gone_or_shorter_says_so(tmp_path: Path) -> None:
    path = SegmentBuilder().batches(2, 10).write(tmp_path)
    assert "removed" in read(tmp_path / "none.log", end=100)[0]["damage"]
    rows = read(path, end=path.stat().st_size + 1000)
    assert [row["offset"] for row in rows if row["damage"] is None] == [*range(20)]
    assert "cut off while it was read" in rows[-1]["damage"]


def test_a_batch_that_was_completed_since_is_no_damage(tmp_path: Path) -> None:
    """A live log was listed while its last batch was being written."""
    made = SegmentBuilder().batches(3, 10)
    path = made.write(tmp_path)
    rows = read(path, end=len(made.data) - 20)
    assert [row["offset"] for row in rows] == [*range(20)]
    assert not any(row["damage"] for row in rows)


def test_windows_smaller_than_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = SegmentBuilder().batches(4, 3).batches(2, 200).batches(4, 3, compression=3)
    path = made.write(tmp_path)
    monkeypatch.setattr(segment_reading, "WINDOW_BYTES", 700)
    rows = read(path)
    assert sorted(as_record(row) for row in rows) == plain(path)
    monkeypatch.setattr(segment_reading, "BATCH_BYTES_MAX", 5000)
    reported = [row["damage"] for row in read(path) if row["damage"]]
    assert len(reported) == 2
    assert "more than 5000" in reported[0]


def test_what_is_not_wanted_is_not_decoded(tmp_path: Path) -> None:
    path = SegmentBuilder().batches(10, 10).write(tmp_path)
    assert [row["offset"] for row in read(path, wanted=Wanted(35, 52))] == [*range(30, 60)]
    assert [row["offset"] for row in read(path, wanted=Wanted(least_timestamp_ms=START_MS + 85))] == [*range(80, 100)]


def test_header_keys_that_are_not_text(tmp_path: Path) -> None:
    made = SegmentBuilder()
    batch = encode_batch([NewRecord(START_MS, None, b"v", (("ab", b"1"),))])
    at = batch.index(b"ab")
    batch[at : at + 2] = b"\xff\xfe"
    from tanist.wire.batch import write_crc

    write_crc(batch, 0, len(batch))
    made.data += batch
    assert read(made.write(tmp_path), ["headers"])[0]["headers"] == [{"key": "��", "value": b"1"}]


@given(
    st.lists(st.tuples(st.floats(0, 0.9999), st.integers(0, 255)), max_size=5),
    st.floats(0, 1),
    st.integers(0, 4),
    st.sampled_from([300, 2000, 1 << 20]),
)
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_nothing_sound_is_lost_to_damage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: list[tuple[float, int]],
    cut: float,
    codec: int,
    window: int,
) -> None:
    """The rows are the records of exactly the batches that the salvage finds, in windows of any size."""
    made = SegmentBuilder().batches(4, 6, compression=codec).batches(3, 1).batches(2, 25)
    for place, byte in changes:
        made.data[int(place * len(made.data))] = byte
    del made.data[max(1, int((0.5 + cut) * len(made.data))) :]
    path = made.write(tmp_path)
    monkeypatch.setattr(segment_reading, "WINDOW_BYTES", window)
    rows = read(path)
    assert sorted(as_record(row) for row in rows if row["damage"] is None) == sorted(plain(path))
    places = [row["batch_position"] for row in rows if row["damage"]]
    assert len(set(places)) == len(places)


@given(st.binary(max_size=600))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_file_is_read_to_its_end(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(data)
    rows = read(path)
    assert bool(rows) == bool(data)

"""What a cleaning keeps, rule by rule: the same as Apache Kafka, and the beginning of each leader epoch."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.log.cleaner.cleaning import CannotClean, Overtaken
from tanist.log.cleaner.key_map import BYTES_PER_KEY, KeyMap
from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.wire.batch import NewRecord, decode_batch, encode_batch
from tests.log.cleaner_rig import COMPACT, DAY_MS, Left, batches_of, clean, left_in, put, roll_and_flush
from tests.log.log_batches import GZIP, TRANSACTIONAL, ZSTD, batch, marker
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, open_log, read_all, segment_count


def sealed(
    pairs: Sequence[tuple[bytes, bytes | None]], *, config: LogConfig = COMPACT, **how: Any
) -> tuple[MemoryDisk, Log]:
    disk = MemoryDisk()
    log = open_log(disk, config)
    put(log, pairs, **how)
    roll_and_flush(disk, log)
    return disk, log


def test_the_latest_of_each_key_stays_where_it_was() -> None:
    disk, log = sealed([(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"b", b"2")])
    cleaned = clean(disk, log)
    assert left_in(log) == [Left(2, b"a", b"2"), Left(3, b"c", b"1"), Left(4, b"b", b"2")]
    assert (cleaned.end_offset, cleaned.records_dropped, cleaned.keys) == (5, 2, 3)
    assert log.log_end_offset == 5
    assert cleaned.size_after_bytes < cleaned.size_before_bytes


def test_segments_become_one_as_far_as_they_fit() -> None:
    disk, log = sealed([(b"k%d" % (number % 3), b"v") for number in range(30)])
    before = segment_count(log)
    clean(disk, log)
    assert segment_count(log) == before > 8, "by their sizes before the cleaning, as in Kafka"
    clean(disk, log)
    assert segment_count(log) == 4
    assert [each.offset for each in left_in(log)] == [27, 28, 29]
    names = disk.list(FOLDER)
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    assert "00000000000000000000.log" in names


def test_the_active_segment_is_never_touched() -> None:
    disk, log = sealed([(b"a", b"1"), (b"a", b"2")])
    put(log, [(b"a", b"3"), (b"a", b"4")])
    roll_at = log.sealed_segments(2**62)[-1].base_offset
    clean(disk, log)
    assert roll_at == 0
    assert [each.offset for each in left_in(log)] == [1, 2, 3]


def test_nothing_at_or_above_the_high_watermark_counts_or_goes() -> None:
    disk, log = sealed([(b"a", b"v")] * 12)
    segments = log.sealed_segments(2**62)
    limit = segments[2].base_offset
    for high_watermark in (limit, limit + 1):
        found = log.cleanable(None, high_watermark, 0)
        assert found.first_uncleanable_offset == limit
    clean(disk, log, high_watermark=limit + 1)
    assert [each.offset for each in left_in(log)] == list(range(limit - 1, 12))


def test_nothing_that_is_not_durable_is_cleaned() -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    put(log, [(b"a", b"v")] * 12)
    assert segment_count(log) == 3
    assert log.cleanable(None, 12, 0).cleanable_bytes == 0
    roll_and_flush(disk, log)
    assert log.cleanable(None, 12, 0).first_uncleanable_offset == 12


def test_the_dirty_ratio_counts_bytes() -> None:
    disk, log = sealed([(b"a", b"v")] * 8)
    assert log.cleanable(None, 8, 0).ratio == 1.0
    clean(disk, log)
    assert log.cleanable(8, 8, 0).cleanable_bytes == 0
    put(log, [(b"b", b"v")] * 8)
    roll_and_flush(disk, log)
    found = log.cleanable(8, 16, 0)
    assert 0.7 < found.ratio < 1.0
    assert found.clean_bytes == sum(segment.size for segment in log.sealed_segments(8))
    assert found.is_due(0.5)
    assert not found.is_due(found.ratio)


def test_min_compaction_lag_keeps_segments_with_a_younger_record() -> None:
    config = dataclasses.replace(COMPACT, min_compaction_lag_ms=1_000)
    disk = MemoryDisk()
    log = open_log(disk, config)
    put(log, [(b"a", b"v")] * 8, now=1_000)
    roll_and_flush(disk, log)
    put(log, [(b"a", b"v")] * 8, now=5_000)
    roll_and_flush(disk, log)
    assert log.cleanable(None, 16, 5_500).first_uncleanable_offset == 8
    assert log.cleanable(None, 16, 6_000).first_uncleanable_offset == 16
    assert log.cleanable(None, 16, 1_500).cleanable_bytes == 0


def test_max_compaction_lag_makes_a_log_due_whatever_the_ratio() -> None:
    config = dataclasses.replace(COMPACT, max_compaction_lag_ms=10_000)
    _, log = sealed([(b"a", b"v")] * 8, config=config, now=1_000)
    assert not log.cleanable(None, 8, 10_000).overdue
    assert log.cleanable(None, 8, 11_002).is_due(1.0)
    assert config.segment_ms_max == 10_000


def test_a_tombstone_stays_until_its_horizon_which_the_first_cleaning_sets() -> None:
    disk, log = sealed([(b"a", b"1"), (b"a", None), (b"b", b"1")])
    clean(disk, log, wall_ms=50_000)
    assert left_in(log) == [Left(1, b"a", None), Left(2, b"b", b"1")]
    header, data = next(each for each in batches_of(log) if each[0].base_offset == 1)
    assert header.has_horizon
    assert header.base_timestamp == 50_000 + DAY_MS
    assert [record.timestamp for record in decode_batch(data)] == [1_000]
    assert header.max_timestamp == 1_000
    put(log, [(b"c", b"1")])
    roll_and_flush(disk, log)
    clean(disk, log, 3, wall_ms=50_000 + DAY_MS - 1)
    assert Left(1, b"a", None) in left_in(log), "before its horizon"
    header = next(header for header, _ in batches_of(log) if header.base_offset == 1)
    assert header.base_timestamp == 50_000 + DAY_MS, "it is set once"
    put(log, [(b"d", b"1")])
    roll_and_flush(disk, log)
    clean(disk, log, 4, wall_ms=50_000 + DAY_MS)
    assert Left(1, b"a", None) not in left_in(log)


def test_a_batch_keeps_its_numbers_and_codec() -> None:
    for codec in (0, GZIP, ZSTD):
        disk = MemoryDisk()
        log = open_log(disk, COMPACT)
        records = [
            NewRecord(1_000 + 7 * n, b"k%d" % (n % 4), b"value-%d" % n, (("h", b"x"), ("n", None))) for n in range(10)
        ]
        data = encode_batch(records, compression=codec, producer_id=9, producer_epoch=2, base_sequence=40)
        assert log.append_as_leader(memoryview(data), 6, 0, 1_000).error == 0
        roll_and_flush(disk, log)
        before, _ = batches_of(log)[0]
        log.producers.entries.clear()
        clean(disk, log)
        ((header, cleaned),) = batches_of(log)
        assert header.compression == codec
        assert (header.base_offset, header.last_offset, header.leader_epoch) == (0, 9, 6)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 40)
        assert header.record_count == 4
        assert header.base_timestamp == before.base_timestamp
        kept = decode_batch(cleaned)
        assert [record.offset for record in kept] == [6, 7, 8, 9]
        assert [record.timestamp for record in kept] == [1_042, 1_049, 1_056, 1_063]
        assert [record.sequence for record in kept] == [46, 47, 48, 49]
        assert kept[0].headers == (("h", b"x"), ("n", None))
        reopened = open_log(disk, COMPACT, clean=False)
        assert reopened.recovery.reasons == (), "the CRCs are right"
        assert read_all(reopened) == cleaned


def test_the_last_batch_of_a_producer_stays_empty() -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    put(log, [(b"a", b"1")], producer_id=9, producer_epoch=1, sequence=0)
    put(log, [(b"a", b"2")], producer_id=9, producer_epoch=1, sequence=1)
    put(log, [(b"a", b"3"), (b"b", b"3")])
    roll_and_flush(disk, log)
    clean(disk, log)
    found = {header.base_offset: header for header, _ in batches_of(log)}
    assert found[1].record_count == 0
    assert (found[1].producer_id, found[1].base_sequence, found[1].last_sequence) == (9, 1, 1)
    for name in [name for name in disk.list(FOLDER) if name.endswith(".snapshot")]:
        disk.remove(f"{FOLDER}/{name}")
    again = open_log(disk, COMPACT)
    assert again.producers.entries[9].next_sequence == 2
    again.producers.entries.clear()
    put(again, [(b"c", b"1")])
    roll_and_flush(disk, again)
    clean(disk, again, 4)
    assert 1 not in [header.base_offset for header, _ in batches_of(again)], "nobody remembers the producer"


def test_the_last_batch_of_a_producer_below_what_may_be_lost_stays() -> None:
    """Its very last is not durable, and another leader or a loss of power may take it."""
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    for sequence in range(3):
        put(log, [(b"a", b"v")], producer_id=9, producer_epoch=1, sequence=sequence)
    put(log, [(b"a", b"w"), (b"b", b"w")])
    roll_and_flush(disk, log)
    put(log, [(b"c", b"v")], producer_id=9, producer_epoch=1, sequence=3)
    clean(disk, log)
    for name in [name for name in disk.list(FOLDER) if name.endswith(".snapshot")]:
        disk.remove(f"{FOLDER}/{name}")
    log.truncate_to(5)
    assert log.producers.entries[9].next_sequence == 3
    assert 2 in [header.base_offset for header, _ in batches_of(log)]
    assert 1 not in [header.base_offset for header, _ in batches_of(log)]


def test_the_last_batch_of_a_segment_stays_so_that_its_end_does() -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    put(log, [(b"a", b"1"), (b"b", b"1")])
    data = batch([b"x"], key=None, timestamps=1_000)  # of a time when the topic was not compacted
    assert log.append_as_follower(_at(data, 2), 9).error == 0
    roll_and_flush(disk, log)
    clean(disk, log)
    assert [(header.base_offset, header.record_count) for header, _ in batches_of(log)] == [(0, 1), (1, 1), (2, 0)]


def _at(data: memoryview, offset: int, epoch: int = 0) -> memoryview:
    data[:8] = offset.to_bytes(8, "big")
    data[12:16] = epoch.to_bytes(4, "big")
    return data


def test_the_first_batch_of_each_leader_epoch_stays() -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    for epoch in (0, 3, 4, 7):
        put(log, [(b"a", b"v"), (b"b", b"v"), (b"a", b"w")], epoch=epoch)
    roll_and_flush(disk, log)
    epochs = log.epochs.entries
    clean(disk, log)
    begins: dict[int, int] = {}
    for header, _ in batches_of(log):
        begins.setdefault(header.leader_epoch, header.base_offset)
    assert list(begins.items()) == [tuple(entry) for entry in epochs]
    assert [each.offset for each in left_in(log)] == [10, 11]
    follower = open_log(MemoryDisk(), COMPACT)
    assert follower.append_as_follower(memoryview(bytearray(read_all(log))), 9).error == 0
    assert follower.epochs.entries == epochs
    assert follower.log_end_offset == log.log_end_offset


def test_a_map_that_is_too_small_takes_several_rounds() -> None:
    disk, log = sealed([(b"k%02d" % (number % 20), b"v%d" % number) for number in range(60)])
    checkpoint, rounds = 0, 0
    while checkpoint < 60:
        cleaned = clean(disk, log, checkpoint, keys_max=7)
        assert cleaned.end_offset > checkpoint
        assert cleaned.keys <= 7
        checkpoint, rounds = cleaned.end_offset, rounds + 1
    assert rounds > 5
    assert [each.offset for each in left_in(log)] == list(range(40, 60))


def test_a_batch_with_more_keys_than_the_map_holds_is_left_alone() -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    records = [NewRecord(1, b"k%d" % n, b"v") for n in range(9)]
    assert log.append_as_leader(memoryview(encode_batch(records)), 0, 0, 1).error == 0
    roll_and_flush(disk, log)
    before = read_all(log)
    with pytest.raises(CannotClean, match="more keys"):
        clean(disk, log, keys_max=8)
    assert read_all(log) == before


def test_records_of_aborted_transactions_go_and_their_marker_follows() -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    txn = {"producer_id": 5, "producer_epoch": 0, "attributes": TRANSACTIONAL}
    put(log, [(b"a", b"committed")])
    put(log, [(b"a", b"aborted")], sequence=0, **txn)
    assert log.append_as_leader(marker(5, 0, commit=False), 0, 0, internal=True).error == 0
    put(log, [(b"b", b"v")], sequence=1, **txn)
    assert log.append_as_leader(marker(5, 0, commit=True), 0, 0, internal=True).error == 0
    put(log, [(b"c", b"v")])
    roll_and_flush(disk, log)
    aborted = log.aborted_transactions(0, 6)
    assert len(aborted) == 1
    clean(disk, log, wall_ms=1_000)
    assert left_in(log) == [Left(0, b"a", b"committed"), Left(3, b"b", b"v"), Left(5, b"c", b"v")]
    assert 2 in _offsets(log), "the marker stays with the round that has met a batch of the transaction"
    assert log.aborted_transactions(0, 6) == aborted, "and so does its entry in the index"
    wall_ms = 1_000
    for _ in range(2):
        put(log, [(b"d", b"v")])
        roll_and_flush(disk, log)
        wall_ms += DAY_MS + 1
        clean(disk, log, log.log_end_offset - 1, wall_ms=wall_ms)
    assert 2 not in _offsets(log)
    assert 4 in _offsets(log), "a COMMIT marker stays as long as records of its transaction do"
    assert log.aborted_transactions(0, 6) == []


def _offsets(log: Log) -> list[int]:
    return [header.base_offset for header, _ in batches_of(log) if header.record_count]


def test_nothing_of_an_undecided_transaction_is_cleaned() -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    put(log, [(b"a", b"1")] * 4)
    roll_and_flush(disk, log)
    put(log, [(b"a", b"2")], producer_id=5, producer_epoch=0, sequence=0, attributes=TRANSACTIONAL)
    put(log, [(b"a", b"3")] * 4)
    roll_and_flush(disk, log)
    assert log.cleanable(None, 9, 0).first_uncleanable_offset == 4


def test_a_damaged_segment_is_left_as_it_is() -> None:
    for byte, why in ((69, "CRC"), (70, "offset"), (70 + 16, "magic"), (70 + 11, "cut off|CRC|few")):
        disk, log = sealed([(b"a", b"1"), (b"a", b"2")])
        disk.files[f"{FOLDER}/00000000000000000000.log"].data[byte] ^= 1
        names = disk.list(FOLDER)
        with pytest.raises(CannotClean, match=why):
            clean(disk, log)
        assert disk.list(FOLDER) == names


@pytest.mark.parametrize("cut", ["retention", "truncation"])
def test_segments_that_are_dropped_meanwhile_are_not_swapped(cut: str) -> None:
    overtaken = 0
    for moment in range(20):
        disk, log = sealed([(b"k%d" % (number % 8), b"v") for number in range(12)])
        countdown = iter(range(moment, -1, -1))

        def drop(disk: MemoryDisk = disk, log: Log = log, countdown: Iterator[int] = countdown) -> None:
            if next(countdown, -1) == 0 and cut == "retention":
                log.advance_log_start_offset(6)
                log.delete_old_segments(0, 0, 12)
            elif next(countdown, -1) == 0:
                log.truncate_to(5)

        try:
            clean(disk, log, between=drop)
        except Overtaken:
            overtaken += 1
        assert not [name for name in disk.list(FOLDER) if name.endswith((".cleaned", ".swap"))]
        found = {each.offset for each in left_in(log)}
        if log.log_end_offset == 5:
            assert {4} <= found <= set(range(5))
        else:
            assert {8, 9, 10, 11} <= found
        again = open_log(disk, COMPACT, clean=False)
        assert {each.offset for each in left_in(again)} >= {offset for offset in found if offset >= 6}
    assert overtaken > 3


def test_what_was_cut_and_written_anew_is_dirty_again() -> None:
    disk, log = sealed([(b"a", b"v%d" % number) for number in range(12)])
    end = clean(disk, log).end_offset
    log.truncate_to(4)
    put(log, [(b"b", b"1")] * 10)
    roll_and_flush(disk, log)
    assert log.cleanable(end, log.log_end_offset, 0).first_dirty_offset == 4
    end = clean(disk, log, end).end_offset
    assert log.cleanable(end, log.log_end_offset, 0).cleanable_bytes == 0


def test_the_first_dirty_offset_of_another_log_is_its_start() -> None:
    _, log = sealed([(b"a", b"v")] * 4)
    assert log.cleanable(17, 4, 0).first_dirty_offset == 0
    log.advance_log_start_offset(3)
    assert log.cleanable(1, 4, 0).first_dirty_offset == 3


def test_readers_go_on_over_holes() -> None:
    disk, log = sealed([(b"k%d" % (number % 5), b"v") for number in range(40)])
    reading = log.read(3, 10_000, 40)
    assert reading is not None
    before = reading.chunk.file.read(reading.chunk.offset, reading.chunk.length)
    clean(disk, log)
    assert reading.chunk.file.read(reading.chunk.offset, reading.chunk.length) == before, "one that is under way"
    bases = [header.base_offset for header, _ in batches_of(log)]
    assert len(bases) < 20
    for offset in range(40):
        piece = log.read(offset, 1, 40)
        assert piece is not None
        assert piece.first_batch_offset == next(base for base in bases if base >= offset), "the next there is"
    first = log.offset_for_timestamp(0)
    assert first is not None
    assert first.offset == 35


def test_a_start_after_a_kill_keeps_what_is_behind_the_holes() -> None:
    """Also while the topic is not known to be compacted, and nothing of it has been synced."""
    disk, log = sealed([(b"k%d" % (number % 5), b"v") for number in range(40)])
    clean(disk, log)
    follower_disk = MemoryDisk()
    follower = open_log(follower_disk, COMPACT)
    for _, data in batches_of(log):
        assert follower.append_as_follower(memoryview(bytearray(data)), 9).error == 0
    assert segment_count(follower) > 2
    for config in (COMPACT, dataclasses.replace(COMPACT, cleanup_policy="delete")):
        for files in (disk, follower_disk):
            again = open_log(files.copy(), config, clean=False, recovery_point=0)
            assert again.recovery.cut_at_offset is None, again.recovery.reasons
            assert read_all(again) == read_all(log)


def test_a_batch_with_append_time_keeps_it() -> None:
    config = dataclasses.replace(COMPACT, message_timestamp_type="LogAppendTime")
    disk, log = sealed([(b"a", b"1"), (b"a", None), (b"b", b"1")], config=config, now=7_000)
    clean(disk, log, wall_ms=50_000)
    found = {header.base_offset: (header, data) for header, data in batches_of(log)}
    assert [header.max_timestamp for header, _ in found.values()] == [7_000] * len(found)
    assert found[1][0].has_horizon
    assert [record.timestamp for record in decode_batch(found[1][1])] == [7_000]
    first = log.offset_for_timestamp(6_000)
    assert first is not None
    assert (first.offset, first.timestamp) == (1, 7_000), "the first batch is empty"
    assert log.max_timestamp() == first


def test_the_key_map_is_bounded() -> None:
    keys = KeyMap.of_buffer(100 * BYTES_PER_KEY)
    assert keys.keys_max == 90
    taken = [keys.put(b"a key of more than sixteen bytes %d" % number, number) for number in range(100)]
    assert taken == [True] * 90 + [False] * 10
    assert keys.put(b"a key of more than sixteen bytes 5", 500), "one that it has takes no more space"
    assert keys.get(b"a key of more than sixteen bytes 5") == 500
    assert keys.get(b"a key of more than sixteen bytes 95") == -1


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), keys_max=st.integers(2, 30))
def test_whatever_is_written_a_reader_learns_the_same_of_every_key(seed: int, keys_max: int) -> None:
    """Any batches, in rounds: the records that are left are the latest of their keys, and a prefix of nothing else."""
    rng = random.Random(seed)
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    written: dict[int, tuple[bytes, bytes | None]] = {}
    checkpoint, epoch = None, 0
    for _ in range(rng.randrange(1, 4)):
        for _ in range(rng.randrange(1, 12)):
            pairs = [
                (b"k%d" % rng.randrange(8), None if rng.random() < 0.2 else b"v%d" % rng.randrange(99))
                for _ in range(rng.randrange(1, 3))
            ]
            records = [NewRecord(rng.randrange(5_000), key, value) for key, value in pairs]
            data = encode_batch(records, compression=rng.choice([0, 0, 1, 3]))
            epoch += rng.random() < 0.2
            result = log.append_as_leader(memoryview(data), epoch, 0, internal=True)
            assert result.error == 0
            for offset, pair in enumerate(pairs, result.first_offset):
                written[offset] = pair
        roll_and_flush(disk, log)
        checkpoint = clean(disk, log, checkpoint, keys_max=keys_max).end_offset
        latest = {key: offset for offset, (key, _) in written.items()}
        found = left_in(log)
        assert all(written[each.offset] == (each.key, each.value) for each in found)
        offsets = [each.offset for each in found]
        assert offsets == sorted(set(offsets))
        assert set(latest.values()) <= set(offsets), "no horizon has passed"
        assert set(range(checkpoint, log.log_end_offset)) <= set(offsets)
        if checkpoint == log.log_end_offset:
            assert set(latest.values()) == set(offsets)
        log_again = open_log(disk, COMPACT, clean=False)
        assert left_in(log_again) == found
        assert log_again.log_end_offset == log.log_end_offset

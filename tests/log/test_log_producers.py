"""Producer state: sequences, retries, fencing, transactions and the last stable offset; and the snapshot's bytes."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from tanist.log.producer_snapshots import (
    CorruptSnapshotError,
    SnapshotFiles,
    decode_snapshot,
    encode_snapshot,
)
from tanist.log.producers import ProducerEntry, ProducerStates, sequence_after
from tanist.wire.errors import ErrorCode
from tests.log.log_disks import MemoryDisk

MAX = 2**31 - 1


def states_with(*batches: tuple[int, int], epoch: int = 0, producer_id: int = 1) -> ProducerStates:
    """`batches`: (first sequence, records), appended one after the other."""
    states = ProducerStates()
    offset = 0
    for sequence, count in batches:
        states.append(producer_id, epoch, sequence, offset, offset + count - 1, 100 + offset, transactional=False)
        offset += count
    return states


def check(states: ProducerStates, sequence: int, count: int = 1, epoch: int = 0, *, transactional: bool = False):  # type: ignore[no-untyped-def]
    return states.check(states.entries.get(1), epoch, sequence, count - 1, transactional=transactional)


def test_the_next_sequence_is_appended() -> None:
    states = states_with((0, 3), (3, 2))
    assert check(states, 5, 10) == (0, None, None)


def test_a_transaction_does_not_join_one_of_an_earlier_epoch() -> None:
    states = ProducerStates()
    states.append(1, 0, 0, 0, 1, 100, transactional=True)
    assert check(states, 0, epoch=1, transactional=True).error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert check(states, 2, transactional=True).error == 0
    states.append_marker(1, 0, 0, 2, 100, aborted=True)
    assert check(states, 0, epoch=1, transactional=True).error == 0


def test_a_gap_and_an_old_sequence_are_out_of_order() -> None:
    states = states_with((0, 3), (3, 2))
    for sequence in (6, 4, 0):
        verdict = check(states, sequence, 1)
        assert verdict.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert "expected 5" in (verdict.message or "")


def test_a_retry_of_the_last_five_is_a_duplicate() -> None:
    states = states_with(*[(number * 2, 2) for number in range(7)])
    for number in range(2, 7):
        duplicate = check(states, number * 2, 2).duplicate
        assert duplicate is not None
        assert (duplicate.first_offset, duplicate.last_offset) == (number * 2, number * 2 + 1)
    assert check(states, 2, 2).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "the sixth last is forgotten"
    assert check(states, 12, 1).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "part of a batch is no retry"


def test_a_producer_without_an_epoch_sends_a_batch_once_and_any_other() -> None:
    states = ProducerStates()
    states.append(1, -1, 0, 10, 11, 1, transactional=False)
    duplicate = check(states, 0, 2, epoch=-1).duplicate
    assert duplicate is not None
    assert duplicate.first_offset == 10
    assert check(states, 7, epoch=-1) == (0, None, None)


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """Its records may have been deleted: Kafka 4 never answers UNKNOWN_PRODUCER_ID."""
    assert check(ProducerStates(), 77) == (0, None, None)


def test_sequences_start_over_after_the_largest_int() -> None:
    assert sequence_after(MAX, 1) == 0
    states = states_with((MAX - 1, 2))
    assert states.entries[1].next_sequence == 0
    assert check(states, 0) == (0, None, None)
    states = states_with((MAX - 1, 4))
    assert states.entries[1].last_sequence == 1
    assert check(states, 2) == (0, None, None)
    duplicate = check(states, MAX - 1, 4).duplicate
    assert duplicate is not None
    assert duplicate.first_sequence == MAX - 1


def test_a_new_epoch_begins_with_sequence_zero() -> None:
    states = states_with((0, 3))
    assert check(states, 1, epoch=1).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check(states, 0, epoch=1) == (0, None, None)
    states.append(1, 1, 0, 3, 3, 1, transactional=False)
    assert check(states, 0, 3, epoch=0).error == ErrorCode.INVALID_PRODUCER_EPOCH
    assert check(states, 1, epoch=1) == (0, None, None)


def test_an_epoch_that_a_marker_has_raised_begins_with_zero_too() -> None:
    states = states_with((0, 3))
    states.append_marker(1, 1, 0, 3, 1, aborted=True)
    assert check(states, 3, epoch=1).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check(states, 0, epoch=1) == (0, None, None)


def test_checking_changes_nothing() -> None:
    states = states_with((0, 3))
    before = encode_snapshot(states.entries.values())
    check(states, 3)
    check(states, 9, epoch=4)
    assert encode_snapshot(states.entries.values()) == before


def test_a_non_transactional_batch_within_a_transaction() -> None:
    states = ProducerStates()
    states.append(1, 0, 0, 10, 11, 1, transactional=True)
    assert check(states, 2).error == ErrorCode.INVALID_TXN_STATE
    assert check(states, 2, transactional=True) == (0, None, None)


def test_coordinators_are_fenced_by_their_epoch() -> None:
    states = ProducerStates()
    states.append_marker(1, 3, 7, 0, 1, aborted=False)
    entry = states.entries[1]
    assert states.check_marker(entry, 3, 6).error == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert states.check_marker(entry, 2, 7).error == ErrorCode.INVALID_PRODUCER_EPOCH
    assert states.check_marker(entry, 3, 7).error == 0
    assert states.check_epoch(entry, 2).error == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("begins_anew", [False, True])
def test_the_first_batch_of_a_transaction_with_its_own_epoch_has_sequence_zero(begins_anew: bool) -> None:
    states = ProducerStates()
    states.begin_verification(1, 5, 2, begins_anew=begins_anew)
    assert states.skips_batches(1, 5, 2) is begins_anew
    assert not states.skips_batches(1, 5, 0)


def test_last_stable_offset() -> None:
    states = ProducerStates()
    assert states.last_stable_offset(50) == 50
    states.append(1, 0, 0, 10, 11, 1, transactional=True)
    states.append(2, 0, 0, 12, 12, 1, transactional=True)
    assert states.last_stable_offset(50) == 10
    assert states.last_stable_offset(8) == 8
    completed = states.append_marker(1, 0, 0, 13, 1, aborted=True)
    assert completed == (1, 10, 13, True)
    assert states.stable_offset_after(completed) == 12
    assert states.last_stable_offset(13) == 10, "the marker is not replicated yet"
    assert states.last_stable_offset(14) == 12
    assert states.append_marker(2, 0, 0, 14, 1, aborted=False) == (2, 12, 14, False)
    assert states.last_stable_offset(15) == 15
    assert states.append_marker(2, 0, 0, 15, 1, aborted=False) is None, "nothing was written since"


def test_idle_producers_expire_but_not_within_a_transaction() -> None:
    states = ProducerStates()
    states.append(1, 0, 0, 0, 0, 1_000, transactional=False)
    states.append(2, 0, 0, 1, 1, 1_000, transactional=True)
    states.append(3, 0, 0, 2, 2, 1_001, transactional=False)
    assert states.expire(2_000, 50, 1_000) == 0, "it may have written just now, an old event"
    assert states.expire(2_000, 1_049, 1_000) == 0
    assert states.expire(2_000, 1_050, 1_000) == 1
    assert sorted(states.entries) == [2, 3]


def test_a_producer_of_old_events_is_kept_while_it_writes() -> None:
    """A backfill has the timestamps of its events. Forgotten, its next retry would be appended twice."""
    states = ProducerStates()
    for number in range(20):
        states.append(7, 0, number, number, number, -1, transactional=False)
        states.expire(10**12, number * 900, 1_000)
    entry = states.entries[7]
    assert states.check(entry, 0, 16, 0, transactional=False).duplicate is not None, "a retry of one of the last five"
    assert states.expire(10**12, 19 * 900 + 1_000, 1_000) == 1


def test_snapshot_bytes() -> None:
    entry = ProducerEntry(4000, 2)
    entry.coordinator_epoch = 9
    entry.add(2, 6, 41, 1, 1_700_000_000_000)
    entry.transaction_first_offset = 40
    entries_hex = (
        "00000001" + "0000000000000fa0" + "0002" + "00000006" + "0000000000000029" + "00000001"
        "0000018bcfe56800" + "00000009" + "0000000000000028"
    )
    data = encode_snapshot([entry])
    assert data[:2].hex() == "0001"
    assert data[6:].hex() == entries_hex
    assert struct.unpack(">I", data[2:6])[0] == crc32c(bytes.fromhex(entries_hex))


def test_a_producer_without_batches_in_a_snapshot() -> None:
    entry = ProducerEntry(1, 5)
    entry.last_timestamp = 77
    [loaded] = decode_snapshot(encode_snapshot([entry]), "f").entries
    assert (loaded.last_sequence, loaded.last_offset, loaded.next_sequence) == (-1, -1, 0)
    assert (loaded.epoch, loaded.last_timestamp, loaded.transaction_first_offset) == (5, 77, -1)


@given(
    st.lists(
        st.tuples(st.integers(0, 2**62), st.integers(0, 2**15 - 1), st.integers(0, MAX), st.integers(1, 9)),
        unique_by=lambda fields: fields[0],
        max_size=20,
    )
)
def test_snapshots_come_back(producers: list[tuple[int, int, int, int]]) -> None:
    states = ProducerStates()
    end = 0
    for producer_id, epoch, sequence, count in producers:
        states.append(producer_id, epoch, sequence, end, end + count - 1, 1, transactional=bool(sequence % 2))
        end += count
    twin = ProducerStates()
    twin.load(*decode_snapshot(encode_snapshot(states.entries.values()), "f"))
    assert encode_snapshot(twin.entries.values()) == encode_snapshot(states.entries.values())
    assert twin.last_stable_offset(2**62) == states.last_stable_offset(2**62)
    assert {p: e.next_sequence for p, e in twin.entries.items()} == {
        p: e.next_sequence for p, e in states.entries.items()
    }


def test_transactions_decided_above_the_high_watermark_are_in_a_snapshot() -> None:
    states = states_with()
    for first in (10, 20, 30):
        states.append(1, 0, -1, first, first + 1, 1, transactional=True)
        states.append_marker(1, 0, 0, first + 2, 1, aborted=first == 20)
    states.replicated(22)
    data = encode_snapshot(states.entries.values(), states.unreplicated)
    twin = ProducerStates()
    twin.load(*decode_snapshot(data, "f"))
    assert [twin.last_stable_offset(end) for end in (22, 23, 32, 33)] == [20, 23, 30, 33]
    assert decode_snapshot(data, "f").entries[0].transaction_first_offset == -1
    body = data[6:-1]
    with pytest.raises(CorruptSnapshotError, match="decided transactions"):
        decode_snapshot(data[:2] + struct.pack(">I", crc32c(body)) + body, "f")


GOOD = encode_snapshot(states_with((0, 3)).entries.values())


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "too few"),
        (b"\0\2" + GOOD[2:], "version 2"),
        (GOOD[:-1], "CRC"),
        (GOOD[:20] + b"\xff" + GOOD[21:], "CRC"),
        (struct.pack(">hI", 1, crc32c(struct.pack(">i", 2**31 - 1))) + struct.pack(">i", 2**31 - 1), "announces"),
        (struct.pack(">hI", 1, crc32c(struct.pack(">i", -1))) + struct.pack(">i", -1), "announces"),
    ],
)
def test_damaged_snapshots(data: bytes, complaint: str) -> None:
    with pytest.raises(CorruptSnapshotError, match=complaint):
        decode_snapshot(data, "f")


def test_which_snapshots_are_kept() -> None:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    names = [f"{offset:020d}.snapshot" for offset in (5, 10, 12, 20, 25, 30)]
    for name in names:
        disk.write_file(f"/t-0/{name}", GOOD)
    files = SnapshotFiles(disk, "/t-0", [*names, "00000000000000000000.log", "leader-epoch-checkpoint"])
    files.remove_strays([0, 10, 20])
    assert files.offsets == [10, 20, 30], "those of segments, and the latest: of a clean stop"
    files.remove_strays([0, 10, 40])
    assert files.offsets == [10], "below the last segment it is a stray"
    assert disk.list("/t-0") == ["00000000000000000010.snapshot"]


def test_a_damaged_snapshot_is_removed_and_an_older_one_read() -> None:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    files = SnapshotFiles(disk, "/t-0", [])
    files.write(10, states_with((0, 3)), sync=True)
    files.write(20, states_with((0, 9)), sync=True)
    disk.write_file(files.path(20), b"damaged")
    offset, snapshot, complaints = files.load_latest(0, 25)
    assert (offset, snapshot.entries[0].next_sequence, len(complaints)) == (10, 3, 1)
    assert files.offsets == [10]
    assert files.load_latest(0, 9) == (-1, ([], []), ())
    assert files.load_latest(11, 25) == (-1, ([], []), ()), "what came before the log's start is of no use"

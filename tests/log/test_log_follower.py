"""A follower takes the leader's bytes as they are, or nothing."""

from __future__ import annotations

import pytest

from tanist.log.config import LogConfig
from tanist.wire.errors import ErrorCode
from tests.log.log_batches import TRANSACTIONAL, batch, marker, offsets_in
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, epochs_of, open_log, read_all, segment_count


def joined(*batches: memoryview) -> memoryview:
    return memoryview(b"".join(bytes(each) for each in batches))


def fetched(base_offset: int, count: int = 1, epoch: int = 0, **how: object) -> memoryview:
    return batch([b"value"] * count, base_offset=base_offset, leader_epoch=epoch, **how)  # type: ignore[arg-type]


def test_bytes_are_taken_verbatim_and_written_at_once() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    data = joined(fetched(0, 3, 2), fetched(3, 1, 2), fetched(4, 2, 5))
    assert log.append_as_follower(data, 9)[:3] == (0, 0, 5)
    assert disk.content(f"{FOLDER}/{0:020d}.log") == bytes(data)
    assert log.log_end_offset == 6
    assert epochs_of(log) == [(2, 0), (5, 4)]
    assert disk.content(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n2\n2 0\n5 4\n"


@pytest.mark.parametrize("cut", [1, 11, 12, 40, 61, 70])
def test_a_batch_that_is_cut_off_is_passed_over(cut: int) -> None:
    log = open_log()
    assert log.append_as_follower(joined(fetched(0), fetched(1)[:cut]), 9).error == 0
    assert log.log_end_offset == 1
    assert log.append_as_follower(fetched(1)[:cut], 9) == (0, -1, -1, -1, False, None, ())
    assert log.log_end_offset == 1


def test_gaps_are_taken_as_compaction_leaves_them() -> None:
    log = open_log()
    assert log.append_as_follower(joined(fetched(0, 3), fetched(10, 2)), 9).error == 0
    assert log.append_as_follower(fetched(20), 9).error == 0
    assert log.log_end_offset == 21
    assert offsets_in(read_all(log)) == [(0, 2, 0), (10, 11, 0), (20, 20, 0)]
    piece = log.read(5, 1000, 21)
    assert piece is not None
    assert piece.first_batch_offset == 10


@pytest.mark.parametrize("batches", [[(1, 1)], [(0, 1)], [(3, 1), (2, 1)], [(2, 2), (3, 1)]])
def test_offsets_that_do_not_follow_are_refused_with_nothing_appended(batches: list[tuple[int, int]]) -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    log.append_as_follower(fetched(0, 2), 9)
    before = disk.content(f"{FOLDER}/{0:020d}.log")
    result = log.append_as_follower(joined(*(fetched(base, count) for base, count in batches)), 9)
    assert result.error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert disk.content(f"{FOLDER}/{0:020d}.log") == before
    assert log.log_end_offset == 2


def test_a_wrong_crc_refuses_all() -> None:
    bad = fetched(1)
    bad[-1] ^= 1
    log = open_log()
    assert log.append_as_follower(joined(fetched(0), bad), 9).error == ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 0
    assert log.append_as_follower(memoryview(bytes(100)), 9).error == ErrorCode.CORRUPT_MESSAGE


def test_a_leaders_batch_may_be_larger_than_ours_would_be() -> None:
    data = fetched(0, 20)
    log = open_log(config=LogConfig(max_message_bytes=80, segment_bytes=100))
    assert log.append_as_follower(joined(data, fetched(20)), 9).error == 0
    assert segment_count(log) == 2
    assert offsets_in(read_all(log)) == [(0, 19, 0), (20, 20, 0)]


def test_one_fetch_may_fill_several_segments() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=160))
    batches = [fetched(number) for number in range(7)]
    data = joined(*batches)
    disk.writes = 0
    log.append_as_follower(data, 9)
    assert read_all(log) == bytes(data)
    assert segment_count(log) == 4
    logs = [name for name in disk.list(FOLDER) if name.endswith(".log")]
    assert [int(name[:20]) for name in logs] == [0, 2, 4, 6]


def test_a_segment_begins_anew_where_offsets_leave_the_range_of_an_int() -> None:
    log = open_log()
    log.append_as_follower(fetched(0), 9)
    log.append_as_follower(fetched(2**31 - 1), 9)
    assert segment_count(log) == 1
    log.append_as_follower(fetched(2**31), 9)
    assert segment_count(log) == 2
    assert offsets_in(read_all(log))[-1] == (2**31, 2**31, 0)


def test_an_empty_log_begins_far_from_its_segment() -> None:
    log = open_log()
    log.append_as_follower(fetched(2**40), 9)
    assert offsets_in(read_all(log)) == [(2**40, 2**40, 0)]


def test_a_replica_that_starts_within_a_batch_takes_the_batch() -> None:
    """The leader's log start offset may be anywhere after DeleteRecords."""
    disk = MemoryDisk()
    log = open_log(disk)
    log.truncate_fully_and_start_at(7)
    assert log.append_as_follower(joined(fetched(5, 5), fetched(10)), 9).error == 0
    assert (log.log_start_offset, log.log_end_offset) == (7, 11)
    piece = log.read(7, 1000, 11)
    assert piece is not None
    assert piece.first_batch_offset == 5
    log.close()
    again = open_log(disk, log_start_offset=7)
    assert (again.log_start_offset, again.log_end_offset) == (7, 11)


def test_a_refused_set_does_not_move_an_empty_log() -> None:
    log = open_log()
    log.truncate_fully_and_start_at(7)
    assert log.append_as_follower(joined(fetched(5, 5), fetched(8)), 9).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)


def test_producers_and_transactions_are_learnt_from_the_leader() -> None:
    log = open_log()
    log.append_as_follower(
        joined(
            fetched(0, 2, attributes=TRANSACTIONAL, producer_id=9, producer_epoch=0, sequence=0),
            fetched(2, 1, producer_id=8, producer_epoch=3, sequence=40),
            marker(9, 0, commit=False, base_offset=3),
            fetched(4, 1, attributes=TRANSACTIONAL, producer_id=9, producer_epoch=0, sequence=2),
        ),
        9,
    )
    assert log.last_stable_offset(5) == 4
    assert log.aborted_transactions(0, 5) == [(9, 0, 3, 4)]
    # As a leader it knows what a retry is.
    retry = log.append_as_leader(batch([b"v"], producer_id=8, producer_epoch=3, sequence=40), 1, 0)
    assert (retry.duplicate, retry.first_offset) == (True, 2)
    add(log, 1, epoch=1, producer_id=8, producer_epoch=3, sequence=41)


def test_a_replicas_epochs_are_those_of_the_batches() -> None:
    log = open_log()
    log.append_as_follower(fetched(0, 2, epoch=2), 9)
    assert epochs_of(log) == [(2, 0)]
    log.append_as_follower(fetched(2, 1, epoch=6), 9)
    assert epochs_of(log) == [(2, 0), (6, 2)]

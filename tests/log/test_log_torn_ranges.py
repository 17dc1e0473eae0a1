"""Ranges that readers were given while the log was cut (KAFKA-18723): nothing else is ever read from them.

A range is sent later than it is read: it waits in a queue of ours or, as pages of the file, in a socket. So a file that
was cut below what readers were given gets no new bytes.
"""

from __future__ import annotations

from typing import Any

import pytest

from tanist.log.log import Log, LogSlice
from tanist.wire.batch import iterate_headers
from tanist.wire.errors import ErrorCode
from tests.log.log_batches import batch
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import FOLDER, add, content, epochs_of, open_log, read_all


def given(log: Log, offset: int) -> LogSlice:
    found = log.read(offset, 1 << 20, log.log_end_offset)
    assert found is not None
    return found


def logs_of(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.list(FOLDER) if name.endswith(".log")]


def offsets_and_epochs(data: bytes) -> list[tuple[int, int]]:
    return [(header.base_offset, header.leader_epoch) for _, header in iterate_headers(memoryview(data))]


def test_a_range_that_was_read_before_a_truncation_never_has_what_came_after_it() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(6):
        add(log, epoch=1)
    before = given(log, 2)
    log.truncate_to(3)
    for _ in range(6):
        add(log, epoch=2)
    assert offsets_and_epochs(content(before.chunk)) == [(2, 1)]
    assert logs_of(disk) == ["00000000000000000000.log", "00000000000000000003.log"]
    assert offsets_and_epochs(read_all(log)) == [
        *((each, 1) for each in range(3)),
        *((each, 2) for each in range(3, 9)),
    ]
    assert epochs_of(log) == [(1, 0), (2, 3)]


def test_the_other_file_begins_where_the_last_ends_though_the_cut_was_in_a_hole() -> None:
    """A start takes a segment behind a gap for one whose records before it were lost, and cuts it."""
    disk = MemoryDisk()
    log = open_log(disk)
    for offset in (0, 1, 2, 6):  # 3 to 5 were compacted away before this replica fetched
        fetched = batch([b"y"], base_offset=offset, leader_epoch=1)
        assert log.append_as_follower(fetched, 1, 1_000).error == ErrorCode.NONE
    given(log, 2)
    log.truncate_to(5)
    assert log.log_end_offset == 5
    fetched = batch([b"y"], base_offset=5, leader_epoch=2)
    assert log.append_as_follower(fetched, 2, 1_000).error == ErrorCode.NONE
    log.write_pending()
    assert logs_of(disk) == ["00000000000000000000.log", "00000000000000000003.log"]
    after = open_log(disk.copy(), clean=False)
    assert after.recovery.reasons == ()
    assert offsets_and_epochs(read_all(after)) == [(0, 1), (1, 1), (2, 1), (5, 2)]


def test_a_segment_of_which_nothing_stays_is_another_file() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(4):
        add(log, epoch=1)
    before = given(log, 0)
    was = content(before.chunk)
    log.truncate_to(0)
    for _ in range(4):
        add(log, epoch=2)
    assert content(before.chunk) == was
    assert logs_of(disk) == ["00000000000000000000.log"]
    assert offsets_and_epochs(read_all(log)) == [(each, 2) for each in range(4)]


def test_what_no_reader_was_given_is_cut_in_its_file() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(4):
        add(log, epoch=1)
    log.read(0, 1 << 20, 2)
    log.truncate_to(2)
    add(log, epoch=2)
    assert logs_of(disk) == ["00000000000000000000.log"]


def test_a_segment_that_was_cut_stays_so_when_the_log_is_cut_back_to_it() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(6):
        add(log, epoch=1)
    before = given(log, 0)
    log.truncate_to(4)
    add(log, epoch=2)
    log.truncate_to(4)
    add(log, epoch=3)
    log.truncate_to(2)
    for _ in range(6):
        add(log, epoch=4)
    assert offsets_and_epochs(content(before.chunk)) == [(0, 1), (1, 1)]
    assert offsets_and_epochs(read_all(log)) == [(0, 1), (1, 1), *((each, 4) for each in range(2, 8))]


def test_a_log_with_such_a_segment_is_recovered_whole() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(6):
        add(log, epoch=1)
    given(log, 2)
    log.truncate_to(3)
    add(log, epoch=2)
    log.write_pending()
    again = open_log(disk.copy(), clean=False)
    assert offsets_and_epochs(read_all(again)) == [(0, 1), (1, 1), (2, 1), (3, 2)]


# -- the other end


def fetched(*epochs: int, base_offset: int = 0) -> memoryview:
    return memoryview(
        bytearray().join(
            bytes(batch([b"value"], base_offset=base_offset + index, leader_epoch=epoch))
            for index, epoch in enumerate(epochs)
        )
    )


@pytest.mark.parametrize(
    ("epochs", "leader_epoch"),
    [((2,), 1), ((1, 2), 1), ((1, 2, 1), 2), ((0,), 1), ((1, 0), 1), ((-1,), 1)],
)
def test_a_follower_takes_no_epoch_beyond_its_leaders_nor_below_its_last(
    epochs: tuple[int, ...], leader_epoch: int
) -> None:
    log = open_log()
    assert log.append_as_follower(fetched(1, 1), 1).error == 0
    before: Any = (log.log_end_offset, epochs_of(log))
    refused = log.append_as_follower(fetched(*epochs, base_offset=2), leader_epoch)
    assert refused.error == ErrorCode.CORRUPT_MESSAGE
    assert "leader epoch" in (refused.message or "")
    assert (log.log_end_offset, epochs_of(log)) == before
    assert log.append_as_follower(fetched(1, 2, base_offset=2), 2).error == 0


def test_of_a_torn_answer_nothing_is_appended() -> None:
    """What the leader of epoch 1 had sent, and what the leader of epoch 2 put in the place of the rest."""
    log = open_log()
    assert log.append_as_follower(fetched(1, 1, 1, 2, 2), 1).error == ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 0

"""The last written epoch of a log, by which an unclean recovery compares replicas (KIP-966)."""

from __future__ import annotations

import pytest

from tanist.log.config import LogConfig
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import add, epochs_of, open_log


def test_an_epoch_in_which_nothing_was_written_does_not_count() -> None:
    log = open_log()
    assert log.last_written_epoch == -1
    log.epochs.assign(2, 0)  # as a leader does when its epoch begins
    assert (log.latest_epoch, log.last_written_epoch) == (2, -1)
    add(log, 3, epoch=2)
    assert log.last_written_epoch == 2
    log.epochs.assign(5, 3)
    assert (log.latest_epoch, log.last_written_epoch) == (5, 2)
    add(log, epoch=5)
    assert log.last_written_epoch == 5


def test_it_is_that_of_the_record_that_is_last_now() -> None:
    log = open_log()
    add(log, 3, epoch=2)
    add(log, epoch=4)
    add(log, epoch=4)
    log.truncate_to(4)
    assert log.last_written_epoch == 4
    log.truncate_to(3)
    assert log.last_written_epoch == 2
    log.truncate_to(0)
    assert log.last_written_epoch == -1


def test_of_a_log_whose_records_were_all_deleted_it_is_the_epoch_of_its_end() -> None:
    log = open_log()
    add(log, 3, epoch=2)
    log.advance_log_start_offset(3)
    assert (log.log_start_offset, log.log_end_offset, log.last_written_epoch) == (3, 3, 2)


@pytest.mark.parametrize("clean", [True, False])
def test_rule_167_a_start_does_not_forget_it(clean: bool) -> None:
    """The segments with the records are gone: only the checkpoint of the epochs has it."""
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(retention_ms=0))
    add(log, 3, epoch=2)
    log.delete_old_segments(0, 10_000, 3)
    log.close()
    again = open_log(disk, clean=clean, log_start_offset=3, recovery_point=3)
    assert (again.log_start_offset, again.log_end_offset, again.first_segment_offset) == (3, 3, 3)
    assert (again.latest_epoch, again.last_written_epoch, epochs_of(again)) == (2, 2, [(2, 3)])


def test_rule_167_a_log_that_is_lost_has_no_epoch() -> None:
    """The log start was written down, the records below it are gone with what was not synced: nobody knows its end."""
    disk = MemoryDisk()
    log = open_log(disk)
    add(log, 3, epoch=2)
    log.close()
    again = open_log(disk, clean=False, log_start_offset=9)
    assert (again.log_start_offset, again.log_end_offset, again.latest_epoch) == (9, 9, -1)

"""The last written epoch of a log, by which an unclean recovery compares replicas (KIP-966)."""

from __future__ import annotations

from tests.log.log_rig import add, open_log


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

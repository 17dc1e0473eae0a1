"""A log whose state cannot be says so at its next change. What other nodes send is refused instead."""

from __future__ import annotations

import pytest

from tanist.invariants import InvariantError
from tanist.log.log import Log
from tanist.log.producers import ProducerStates
from tanist.log.torn import TornLog
from tests.log.log_batches import batch
from tests.log.log_rig import add, open_log


def broken(log: Log) -> str:
    """The invariant for which the log was given up."""
    assert isinstance(log.failed, TornLog)
    assert isinstance(log.failed.cause, InvariantError)
    return str(log.failed.cause)


def test_an_own_batch_of_an_older_epoch_is_not_appended() -> None:
    log = open_log()
    add(log, epoch=5)
    refused = log.append_as_follower(batch(base_offset=1, leader_epoch=4), 5)
    assert refused.error, "a leader's is refused"
    assert log.failed is None
    log.append_as_leader(batch([b"value"]), 4, 0)
    assert broken(log) == "broken invariant: the epochs of appended batches ascend (epoch=4, latest_epoch=5)"
    assert log.log_end_offset == 1


def test_offsets_ascend_within_a_segment() -> None:
    log = open_log()
    add(log, 3)
    log.log_end_offset = 2
    log.append_as_leader(batch([b"value"]), 0, 0)
    assert "ascend (first_offset=2, last_offset_before=2)" in broken(log)


def test_a_file_ends_where_its_last_batch_does() -> None:
    log = open_log()
    add(log, 3)
    log._segments.active.pending.append(b"of nobody")
    with pytest.raises(TornLog):
        log.write_pending()
    assert "ends where its last batch does" in broken(log)


@pytest.mark.parametrize(("flushed", "recovery_point"), [(4, 0), (2, 3)])
def test_what_need_not_be_recovered_lies_within_the_log(flushed: int, recovery_point: int) -> None:
    log = open_log()
    add(log, 3)
    log.write_pending()
    log.flushed_offset, log.recovery_point = flushed, recovery_point
    with pytest.raises(InvariantError, match=f"recovery_point={recovery_point}, flushed_offset={flushed}"):
        log.mark_flushed(0)


def test_a_cut_leaves_nothing_beyond_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log()
    add(log)
    add(log)
    log.write_pending()
    log.flushed_offset = 2
    monkeypatch.setattr(type(log), "_lower_recovery_point", lambda *_: None)
    with pytest.raises(TornLog):
        log.truncate_to(1)
    assert "flushed_offset=2, log_start_offset=0, log_end_offset=1" in broken(log)


def with_transactions(*first_offsets: int) -> ProducerStates:
    states = ProducerStates()
    for producer_id, offset in enumerate(first_offsets, 1):
        states.append(producer_id, 0, 0, offset, offset, 100, transactional=True)
    return states


def test_transactions_begin_in_order() -> None:
    """The last stable offset is the first of the table, whatever else stands there."""
    states = with_transactions(4)
    with pytest.raises(InvariantError, match=r"in the order of their offsets \(first_offset=3, latest=4\)"):
        states.append(2, 0, 0, 3, 3, 100, transactional=True)
    assert dict(states.open_transactions) == {4: 1}


def test_a_marker_ends_a_transaction_that_is_open() -> None:
    states = with_transactions(4, 5)
    states.entries[1].transaction_first_offset = 5
    with pytest.raises(InvariantError, match=r"open \(producer_id=1, first_offset=5\)"):
        states.append_marker(1, 0, 0, 6, 100, aborted=False)


def test_the_last_stable_offset_is_at_most_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log()
    add(log, 3)
    log.producers.append(1, 0, 0, 0, 2, 100, transactional=True)
    monkeypatch.setattr(ProducerStates, "last_stable_offset", lambda *_: 3)
    assert log.last_stable_offset(3) == 3
    with pytest.raises(InvariantError, match=r"last_stable_offset=3, high_watermark=2"):
        log.last_stable_offset(2)

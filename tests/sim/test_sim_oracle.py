"""Truth of a partition: how far a replica's log is the history, whatever happens to either."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tanist.sim.oracle import Batch, Copy, Truth

KEY = (UUID(int=1), 0)
NOWHERE: Any = None


def batch(first: int, end: int, epoch: int = 0, crc: int = 0) -> Batch:
    return Batch(first, end, epoch, crc)


def with_log(node_id: int, *content: Batch) -> Copy:
    copy = Copy(node_id, 1, NOWHERE)
    copy.batches = list(content)
    return copy


def test_a_copy_is_complete_when_it_has_all_of_the_history() -> None:
    truth = Truth(KEY, "t-0")
    copy = truth.copies[1] = with_log(1, batch(0, 3), batch(3, 4))
    assert truth.is_complete(copy)
    truth.extend([batch(0, 3)])
    assert (copy.agreeing, copy.agreed_end, truth.is_complete(copy)) == (1, 3, True)
    truth.extend([batch(3, 4), batch(4, 6)])
    assert (copy.agreeing, truth.is_complete(copy)) == (2, False)
    assert not truth.is_complete(None)
    copy.batches.append(batch(4, 6, epoch=1))
    truth.agree(copy)
    assert not truth.is_complete(copy), "another batch at that place"


def test_a_log_that_begins_later_is_compared_from_there() -> None:
    truth = Truth(KEY, "t-0")
    truth.extend([batch(0, 3), batch(3, 5), batch(5, 6)])
    copy = with_log(1, batch(3, 5), batch(5, 6))
    copy.log_start = 3
    truth.agree(copy)
    assert truth.is_complete(copy)


def test_what_is_given_up_is_forgotten_and_who_has_it_is_excused_for_a_while() -> None:
    truth = Truth(KEY, "t-0")
    chosen = truth.copies[1] = with_log(1, batch(0, 3))
    other = truth.copies[2] = with_log(2, batch(0, 3), batch(3, 5))
    truth.extend([batch(0, 3), batch(3, 5)])
    truth.values.update({0: b"a", 3: b"b", 4: b"c"})
    truth.offsets.update({b"a": 0, b"b": 3, b"c": 4})
    assert truth.forget_beyond(chosen, leader_epoch=7) == 2
    assert (truth.high_watermark, truth.history, truth.values) == (3, [batch(0, 3)], {0: b"a"})
    assert truth.offsets == {b"a": 0}
    assert truth.is_complete(chosen)
    assert truth.is_complete(other)
    assert truth.is_excused(other)
    assert not truth.is_excused(chosen)
    chosen.batches.append(batch(3, 6, epoch=7))
    truth.extend([batch(3, 6, epoch=7)])
    assert truth.is_complete(chosen)
    assert not truth.is_complete(other)
    other.batches[1] = batch(3, 4, epoch=7)
    assert not truth.is_excused(other), "written since: no longer what was given up"


@given(st.lists(st.integers(1, 4), max_size=12), st.integers(0, 60))
def test_the_batch_before_an_offset(sizes: list[int], offset: int) -> None:
    content: list[Batch] = []
    end = 0
    for size in sizes:
        content.append(batch(end, end + size))
        end += size
    copy = with_log(1, *content)
    expected = next((each for each in content if each.end == offset), None)
    assert copy.last_before(offset) == expected
    assert copy.end == end

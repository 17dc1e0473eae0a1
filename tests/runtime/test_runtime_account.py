"""What is lost, doubled and out of order among numbered records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tanist.runtime.client.account import compare, ranges


def test_nothing_is_missing() -> None:
    found = compare([1, 2, 3], [1, 2, 3])
    assert (found.lost, found.duplicated, found.disordered) == ((), 0, 0)
    assert str(found) == "3 acknowledged, 3 in the log: 0 lost, 0 duplicated, 0 out of order"


def test_lost_records_are_named() -> None:
    found = compare([1, 2, 3, 4, 5, 9], [1, 5, 7])
    assert found.lost == (2, 3, 4, 9)
    assert str(found) == "6 acknowledged, 3 in the log: 4 lost (2..4, 9), 0 duplicated, 0 out of order"


def test_a_record_that_nobody_acknowledged_is_not_held_against_the_log() -> None:
    found = compare([1], [7, 1, 8])
    assert (found.stored, found.lost, found.disordered) == (3, (), 0)


def test_each_copy_too_many_counts() -> None:
    assert compare([1, 2], [1, 2, 1, 1]).duplicated == 2


def test_order_is_that_of_the_acknowledgements_and_of_first_copies() -> None:
    assert compare([1, 2, 3, 4], [1, 4, 2, 3]).disordered == 1
    assert compare([1, 2, 3], [3, 2, 1]).disordered == 2
    assert compare([1, 2], [1, 2, 1]).disordered == 0


@given(st.lists(st.integers(1, 40), unique=True), st.sets(st.integers(1, 40)))
def test_whatever_is_cut_out_is_lost_and_nothing_else(acknowledged: list[int], cut: set[int]) -> None:
    found = compare(acknowledged, [number for number in acknowledged if number not in cut])
    assert set(found.lost) == cut & set(acknowledged)
    assert (found.duplicated, found.disordered) == (0, 0)


def test_ranges() -> None:
    assert ranges([]) == ""
    assert ranges([3, 1, 2, 7, 9, 10]) == "1..3, 7, 9..10"

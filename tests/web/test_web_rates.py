"""Rates from the counters of two looks."""

from __future__ import annotations

from tanist.web.rates import Rates, rounded


def test_a_rate_is_what_a_counter_grew_by_a_second() -> None:
    rates = Rates()
    assert rates.of((1,), 10.0, {"bytes": 5_000}) is None
    assert rates.of((1,), 12.0, {"bytes": 7_000}) == {"bytes": 1_000.0}
    # Too soon after the last: the same again, and what came meanwhile is counted later.
    assert rates.of((1,), 12.1, {"bytes": 7_100}) == {"bytes": 1_000.0}
    assert rates.of((1,), 13.0, {"bytes": 7_500}) == {"bytes": 500.0}
    assert rates.of((1,), 14.0, {"bytes": 7_500}) == {"bytes": 0.0}


def test_a_counter_that_began_again_and_one_that_was_away() -> None:
    rates = Rates()
    rates.of(("t", 0, 1), 1.0, {"records": 100})
    assert rates.of(("t", 0, 1), 2.0, {"records": 3}) == {"records": 0.0}
    rates.keep({(2,)})
    assert rates.of(("t", 0, 1), 9.0, {"records": 50}) is None


def test_three_digits_are_enough() -> None:
    assert [rounded(each) for each in (0.0, 123_456.7, 0.012345)] == [0.0, 123_000.0, 0.0123]

"""What the rounds note, given to the history checker: it finds what it is there to find."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.lab.history import Anomaly
from tests.faults.history import Ack, Spread, Stored, longest_gap_s
from tests.faults.recorded import LOST, counted, judged

SENT = {0: 4, 1: 2}
LOG = {0: [Stored(offset, offset) for offset in range(4)], 1: [Stored(0, 0), Stored(1, 1)]}
ACKS = [Ack(0, n, n, float(n)) for n in range(4)] + [Ack(1, n, n, float(n)) for n in range(2)]


def _found(acks: list[Ack], log: dict[int, list[Stored]], sent: dict[int, int] = SENT) -> dict[str, int]:
    verdict, reported = judged("t", acks, log, sent)
    assert len(reported) == len(verdict.findings)
    return {found.anomaly.value: found.count for found in verdict.findings}


def test_a_sound_round() -> None:
    verdict, reported = judged("t", ACKS, LOG, SENT)
    assert reported == []
    assert (verdict.acknowledged, verdict.unknown, verdict.records_polled) == (6, 0, 6)
    assert verdict.not_polled_at_the_end == {}


def test_a_record_of_unknown_outcome_may_be_there_or_not() -> None:
    unacknowledged = [ack for ack in ACKS if (ack.partition, ack.number) != (0, 3)]
    assert _found(unacknowledged, LOG) == {}
    assert _found(unacknowledged, {**LOG, 0: LOG[0][:3]}) == {}


def test_a_lost_record_at_the_end() -> None:
    verdict, reported = judged("t", ACKS, {**LOG, 0: LOG[0][:3]}, SENT)
    assert counted(verdict, LOST) == 1
    assert counted(verdict, Anomaly.LOST_WRITE) == 1
    assert [words.partition(", ")[0] for words in reported] == ["lost-write: 1", "unseen: 1"]


def test_a_lost_record_that_another_has_replaced() -> None:
    log = {0: [Stored(0, 0), Stored(1, 1), Stored(2, 3)], 1: LOG[1]}
    acks = [ack for ack in ACKS if (ack.partition, ack.number) != (0, 3)]
    assert _found(acks, log) == {
        "lost-write": 1,
        "inconsistent-offsets": 1,
        "nonmonotonic-send": 1,
        "unseen": 1,
    }


def test_a_record_acknowledged_without_an_offset_must_be_somewhere() -> None:
    acks = [Ack(ack.partition, ack.number, None, ack.at_s) for ack in ACKS]
    assert _found(acks, LOG) == {}
    assert _found(acks, {**LOG, 0: LOG[0][:3]}) == {"unseen": 1}


def test_a_duplicate_even_of_an_unacknowledged_record() -> None:
    assert _found(ACKS[:3], {**LOG, 0: [*LOG[0], Stored(4, 3)]}) == {"duplicate": 1}


def test_records_in_the_wrong_order() -> None:
    assert _found([], {**LOG, 1: [Stored(0, 1), Stored(1, 0)]}) == {"nonmonotonic-send": 1}


def test_a_record_nobody_sent() -> None:
    assert _found(ACKS, {**LOG, 1: [*LOG[1], Stored(2, 99)]}) == {"phantom": 1}


@given(st.permutations(range(6)), st.integers(0, 5))
def test_any_change_to_a_sound_log_is_found(order: list[int], cut: int) -> None:
    acks = [Ack(0, number, number, 0.0) for number in range(6)]
    log = {0: [Stored(offset, number) for offset, number in enumerate(order)][: 6 - cut]}
    sound = log[0] == [Stored(offset, offset) for offset in range(6)]
    assert (_found(acks, log, {0: 6}) == {}) == sound


def test_the_gap_around_a_kill() -> None:
    times = [1.0, 2.0, 2.9, 5.4, 6.0, 9.0]
    assert longest_gap_s(times, 3.0, 7.0) == pytest.approx(2.5)
    # A silence that only ends after the window is none of its.
    assert longest_gap_s(times, 5.5, 7.0) == pytest.approx(0.6)
    # Nothing came: the silence is at least as long as the window.
    assert longest_gap_s(times, 6.5, 8.0) == pytest.approx(2.0)
    assert longest_gap_s([], 1.0, 4.0) == pytest.approx(3.0)


def test_a_spread() -> None:
    assert Spread.of([float(n) for n in range(11)]) == Spread(5.0, 9.0, 10.0)
    assert Spread.of([3.0]) == Spread(3.0, 3.0, 3.0)
    with pytest.raises(ValueError, match="no values"):
        Spread.of([])

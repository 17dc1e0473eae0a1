"""The judge of the live rounds and the history checker are of one mind."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.faults.history import Ack, Stored, judge
from tests.faults.recorded import write_history

from tanist.lab.history import Verdict, verify

SENT = {0: 4, 1: 2}
LOG = {0: [Stored(offset, offset) for offset in range(4)], 1: [Stored(0, 0), Stored(1, 1)]}
ACKS = [Ack(0, n, n, float(n)) for n in range(4)] + [Ack(1, n, n, float(n)) for n in range(2)]


def _verified(path: Path, acks: list[Ack], log: dict[int, list[Stored]], sent: dict[int, int]) -> Verdict:
    with path.open("w") as file:
        write_history(file, "t", acks, log, sent)
    return verify(path)[0]


def test_a_sound_round(tmp_path: Path) -> None:
    verdict = _verified(tmp_path / "round.jsonl", ACKS, LOG, SENT)
    assert verdict.found == ()
    assert (verdict.acknowledged, verdict.unknown, verdict.records_polled) == (6, 0, 6)
    assert verdict.not_polled_at_the_end == {}


def test_a_loss_at_the_end(tmp_path: Path) -> None:
    verdict = _verified(tmp_path / "round.jsonl", ACKS, {**LOG, 0: LOG[0][:3]}, SENT)
    assert [(found.anomaly.value, found.partitions) for found in verdict.found] == [("unseen", {"t-0": 1})]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 6), max_size=7),
    st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 6)), max_size=6, unique_by=lambda ack: ack[0]),
)
def test_they_find_something_in_the_same_rounds(
    tmp_path: Path, log: list[int], acks: list[tuple[int, int | None]]
) -> None:
    stored = {0: [Stored(offset, number) for offset, number in enumerate(log)]}
    noted = [Ack(0, number, offset, 0.0) for number, offset in acks]
    violations = judge(noted, stored, {0: 6}).violations
    # Two acknowledgements of one offset are for the checker alone to find.
    places = [ack.offset for ack in noted if ack.offset is not None]
    verdict = _verified(tmp_path / "round.jsonl", noted, stored, {0: 6})
    assert bool(violations) == bool(verdict.found) or len(set(places)) < len(places)

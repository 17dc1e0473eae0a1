"""The checker against brute force: the same anomalies, as often, in the same partitions, in thousands of histories.

And against the generator: of worlds without plants nothing may be found. And against itself: the evidence alone, as a
history of its own, has the anomaly that it is evidence of. `python -m tests.lab.history_comparison` takes other seeds.
"""

from __future__ import annotations

import pytest

from tanist.lab.anomalies import OF_HISTORIES, Anomaly
from tests.lab import history_comparison
from tests.lab import history_worlds as worlds
from tests.lab.history_comparison import Differs, compare, judged

OF_TRANSACTIONS = {
    Anomaly.TORN,
    Anomaly.PRECOMMITTED_READ,
    Anomaly.G0,
    Anomaly.G1C,
    Anomaly.INT_NONMONOTONIC_SEND,
    Anomaly.INT_SEND_SKIP,
    Anomaly.INT_NONMONOTONIC_POLL,
    Anomaly.INT_POLL_SKIP,
}
"""Those that a history without transactions cannot have."""


def _compare(seeds: range) -> None:
    met = compare(seeds)
    possible = [anomaly for anomaly in OF_HISTORIES if anomaly not in OF_TRANSACTIONS]
    rare = {anomaly.value: met[anomaly.value] for anomaly in possible if met[anomaly.value] < len(seeds) // 50}
    assert not rare, "each kind must be met often, or nothing is known of it"


def test_as_brute_force_says() -> None:
    _compare(range(500))


@pytest.mark.slow
def test_as_brute_force_says_of_ten_thousand() -> None:
    _compare(range(500, 10_500))


def test_another_opinion_is_reported_with_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(history_comparison, "count", lambda history: {("unseen", "p"): 1})
    with pytest.raises(Differs, match=r"world of seed 0: \{\} instead of"):
        compare(range(1))
    assert history_comparison.main(["--seeds", "0..3"]) == 1
    assert "seed 0" in capsys.readouterr().out


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert history_comparison.main(["--seeds", "10..29"]) == 0
    assert "20 histories, of which 4 are sound: the same verdicts" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        history_comparison.main(["--seeds", "9..3"])


@pytest.mark.parametrize("plant", worlds.PLANTS)
def test_what_is_planted_is_found(plant: str) -> None:
    """Not in each history, for a plant may have no effect that a client could see; but in many."""
    hits = sum(bool(judged(enumerate(worlds.world(seed, [plant]), start=1)).findings) for seed in range(100))
    assert hits >= 5

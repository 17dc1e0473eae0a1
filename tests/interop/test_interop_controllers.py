"""Apache Kafka's controller and ours are asked the same: a few random sequences. `python -m tests.interop.controllers`
plays as many as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.controllers import comparison
from tests.interop.controllers.nodes import both
from tests.interop.controllers.pulse import SESSION_MS
from tests.interop.controllers.sequence import play
from tests.interop.controllers.side import Side

pytestmark = pytest.mark.interop

SEEDS = range(1, 11)
STEPS = 40


@pytest.fixture(scope="module")
def sides(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    nodes = both(tmp_path_factory.mktemp("controllers"), SESSION_MS)
    apache, tanist = (Side(node) for node in nodes)
    try:
        yield apache, tanist
    finally:
        for side in (apache, tanist):
            side.close()
            side.node.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_both_controllers_decide_alike(sides: tuple[Side, Side], seed: int) -> None:
    played = play(*sides, seed, STEPS)
    assert not played.differences, "\n".join(map(str, played.differences))
    assert played.steps.total() > 10


def test_a_deviation_that_no_rule_explains_is_a_difference(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "deviations", lambda step: iter(()))
    found = [difference for seed in (101, 102, 103, 104) for difference in play(*sides, seed, STEPS).differences]
    assert found
    assert all(difference.deviation is None for difference in found)

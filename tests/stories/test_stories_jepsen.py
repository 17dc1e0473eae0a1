"""Jepsen's test of Kafka with few writes. The full one: `python -m tests.stories.jepsen`."""

from __future__ import annotations

import pytest

from tests.stories.jepsen import SETTINGS, run

pytestmark = pytest.mark.stories

WRITES = 200
ALONE = WRITES // 2 - WRITES // 10


def test_before_kip_966_what_the_isolated_leader_acknowledged_is_lost_and_can_be_put_back() -> None:
    outcome = run(SETTINGS["before"], WRITES)
    assert outcome.violations == []
    assert (outcome.refused, outcome.unknown, outcome.alone) == (0, 0, ALONE)
    # The followers may have been sent a record in the moment when they were paused.
    assert ALONE - 1 <= outcome.lost <= ALONE
    assert outcome.before is not None
    assert outcome.salvaged == outcome.before.lost
    assert outcome.restored is not None
    assert (outcome.restored.lost, outcome.restored.duplicated) == ((), 0)


def test_with_kip_966_nothing_that_was_acknowledged_is_lost() -> None:
    outcome = run(SETTINGS["kip966"], WRITES)
    assert outcome.violations == []
    assert outcome.before is not None
    assert outcome.before.lost == ()
    assert outcome.alone == 0
    assert len(outcome.acks) == WRITES - ALONE
    assert outcome.refused + outcome.unknown == ALONE

"""A deliberately broken rule is noticed, at a seed that the real rule survives."""

from __future__ import annotations

import pytest

from tanist.replica.leader import LeaderState
from tanist.sim.chaos import ChaosConfig, run

SEED = 1
CONFIG = ChaosConfig(min_insync_replicas=3)
"""With one node down at a time, only a minimum of three is ever undershot."""


def test_a_high_watermark_that_ignores_min_isr_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A1 of the mutations: S4, seed 1."""
    assert run(SEED, CONFIG).violation is None
    monkeypatch.setattr(LeaderState, "_may_advance", lambda self: True)
    violation = run(SEED, CONFIG).violation
    assert violation is not None
    assert violation.property_id == "S4", violation

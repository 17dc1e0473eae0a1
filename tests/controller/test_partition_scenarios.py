"""Apache Kafka 4.3's behaviour, scenario by scenario; where we differ, it is by a rule that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.controller.scenario_runner import Verdict, load, run

SAMPLES = load(Path(__file__).with_name("scenario_samples.yaml"))

ON_PURPOSE = {"pcb-drv-18": "rule 62"}
"""What is expected to differ. A scenario that stops differing fails as well, so the list cannot rot."""


@pytest.mark.parametrize("item", SAMPLES, ids=lambda item: item["id"])
def test_does_what_apache_does(item: dict[str, Any]) -> None:
    outcome = run(item)
    reason = ON_PURPOSE.get(item["id"])
    assert outcome.verdict is (Verdict.SAME if reason is None else Verdict.DEVIATES), outcome.detail
    if reason is not None:
        assert reason in outcome.detail


def test_a_wrong_expectation_is_noticed() -> None:
    item = next(item for item in SAMPLES if item["id"] == "pcb-drv-02")
    wrong = {**item, "expect": {"record": {"isr": [1], "elr": [3]}}}
    assert run(wrong).verdict is Verdict.FAILED

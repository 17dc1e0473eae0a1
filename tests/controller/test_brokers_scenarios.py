"""Apache Kafka 4.3's behaviour towards brokers, scenario by scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.controller.broker_scenario_runner import load, run

SCENARIOS = load(Path(__file__).with_name("broker_scenario_samples.yaml").read_text())


@pytest.mark.parametrize("item", SCENARIOS, ids=lambda item: item["id"])
def test_does_what_apache_does(item: dict[str, Any]) -> None:
    outcome = run(item)
    assert outcome.same, outcome


@pytest.mark.parametrize("item", SCENARIOS, ids=lambda item: item["id"])
def test_a_wrong_expectation_is_noticed(item: dict[str, Any]) -> None:
    expect = item["expect"]
    wrong = dict.fromkeys(expect, "wrong")
    if item["kind"] == "heartbeat_sessions":
        wrong = {"valid": expect["invalid"], "invalid": expect["valid"]}
    assert not run({**item, "expect": wrong}).same

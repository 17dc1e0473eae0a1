"""Facts from Apache Kafka's own tests: `scenarios.yaml` beside this file, and any file named by TANIST_SCENARIOS."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import quorum_scenarios
import yaml

from tanist.quorum import QuorumError

FILES = [Path(__file__).parent / "scenarios.yaml", *map(Path, os.environ.get("TANIST_SCENARIOS", "").split())]


def items() -> list[Any]:
    found = [item for file in FILES for item in yaml.safe_load(file.read_text())["scenarios"]]
    return [item for item in found if str(item.get("kind", "")).startswith("raft")]


@pytest.mark.parametrize("item", items(), ids=lambda item: item["id"])
def test_scenario(item: dict[str, Any]) -> None:
    quorum_scenarios.run(item)


def spoil(value: Any) -> Any:
    """The same with one leaf changed: the last."""
    if isinstance(value, dict):
        key = list(value)[-1]
        return {**value, key: spoil(value[key])}
    if isinstance(value, list):
        return [*value[:-1], spoil(value[-1])]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return "CANDIDATE" if value == "RESIGNED" else "RESIGNED"


@pytest.mark.parametrize("item", items(), ids=lambda item: item["id"])
def test_a_wrong_expectation_is_noticed(item: dict[str, Any]) -> None:
    name = next(name for name in ("after", "expect", "hw", "cases", "events") if name in item)
    with pytest.raises((AssertionError, KeyError, QuorumError)):
        quorum_scenarios.run({**item, name: spoil(item[name])})

"""Apache Kafka's behaviour scenarios of one replica, and a check of the player that plays them.

`scenarios.yaml` has the published items of the kinds this room owns, and items in the same schema that were worked out
from the fact sheet by hand (their source says so).
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from replica_scenarios import KINDS, play

ITEMS: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "scenarios.yaml").read_text())["scenarios"]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["id"])
def test_scenario(item: dict[str, Any]) -> None:
    play(item)


def test_all_kinds_have_items() -> None:
    assert {item["kind"] for item in ITEMS} == set(KINDS)


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [*value, 99]
    if isinstance(value, dict):
        return {key: _other(each) for key, each in value.items()}
    return "OFFSET_NOT_AVAILABLE" if value is not None else {"epoch": 1, "end": 1}


def _expectations(item: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Every place in an item that states what must come out."""
    found: list[tuple[dict[str, Any], str]] = []
    if "expect" in item:
        found += [(item["expect"], name) for name in item["expect"]]
    for event in item.get("events", []):
        if "expect" in event:
            found += [(event["expect"], name) for name in event["expect"]]
        if "expect_error" in event.get("fetch", {}):
            found.append((event["fetch"], "expect_error"))
    for fetch in item.get("fetches", []):
        found += [(fetch, name) for name in ("diverging", "error") if name in fetch]
    return found


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["id"])
def test_no_expectation_is_overlooked(item: dict[str, Any]) -> None:
    """With any one expectation changed, the item must fail."""
    count = len(_expectations(item))
    assert count > 0
    for at in range(count):
        changed = copy.deepcopy(item)
        place, name = _expectations(changed)[at]
        place[name] = _other(place[name])
        with pytest.raises((AssertionError, KeyError)):
            play(changed)


def test_unknown_fields_are_errors() -> None:
    state = {"replicas": [1], "isr": [1], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    for event in ({"expect": {"no_such_thing": 1}}, {"fetch": {"from": 2, "offset": 0, "hue": 1}}, {"dance": 1}):
        with pytest.raises(KeyError):
            play({"kind": "leader_partition", "state": state, "events": [event]})

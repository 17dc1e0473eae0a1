"""Scenario files of older versions: played as they were, with what their seeds drew when a run began."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.lab.simulation.scenario import FORMAT, VERSION, ScenarioError, as_document, from_document
from tanist.sim.run.config import GROUPS, ChaosConfig, GroupSettings

SEED = 458
"""Of those that drew everything: clocks, slices, large writes, slow logs and small windows."""


def first(**changes: Any) -> dict[str, Any]:
    """A file of version 1, with the settings of groups beside those of the cluster."""
    return {
        FORMAT: 1,
        "player": "simulator",
        "title": "old",
        "seed": SEED,
        "workload": "groups",
        "cluster": {"skew_ms_max": 5_000, "churn": ["die"], "properties": {"log.roll.ms": "400"}},
        "faults": [],
        "operations": [],
        **changes,
    }


def test_what_a_seed_drew_behind_the_file_is_in_it_now() -> None:
    scenario = from_document(first())
    # The values are those that version 1 gave the nodes of this seed.
    assert scenario.plan.config == ChaosConfig(
        workload=GROUPS,
        groups=GroupSettings(churn=("die",)),
        skews_ms={1: -4_608, 2: -3_196, 3: 1_178},
        slices={1: 1, 2: 5},
        large_write_bytes=300,
        window_bytes=400,
        value_bytes=64,
        properties={
            "log.roll.ms": "400",
            "tanist.new.logs.turn.max": "1",
            "tanist.new.logs.pause.ms": "100",
        },
    )
    again = as_document(scenario)
    assert again[FORMAT] == VERSION
    assert from_document(again) == scenario


def test_a_rule_that_came_with_large_writes_keeps_them() -> None:
    other = first(seed=1, workload="records", cluster={})
    assert from_document(other).plan.config.large_write_bytes == 0
    assert from_document({**other, "mutation": "late-memory"}).plan.config.large_write_bytes == 1


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (first(cluster={"churns": 1}), "churns, which this version does not know"),
        (first(workload="cats", cluster={}), "'cats', which is none of records, groups, transactions"),
        (first(workload="records"), "churn, which this version does not know"),
        ({**first(), FORMAT: VERSION}, "churn, skew_ms_max, which this version does not know"),
        ({**first(cluster={"slices": {"9": 1}}), FORMAT: VERSION}, "conditions of node 9"),
        ({**first(cluster={"slices": {"1": 0}}), FORMAT: VERSION}, "without space"),
        ({**first(cluster={"window_bytes": 0}), FORMAT: VERSION}, "without space"),
        ({**first(cluster={"skews_ms": {"1": "2"}}), FORMAT: VERSION}, "is no whole number"),
    ],
)
def test_what_cannot_be_played_is_said(document: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        from_document(document)


def named(version: int, *kinds: str) -> dict[str, Any]:
    faults = [{"at_us": 5, "kind": kind, "node": 1, "other": 2, "duration_us": 9, "detail": 0.5} for kind in kinds]
    return {**first(workload="records", cluster={"kinds": list(kinds)}, faults=faults), FORMAT: version}


def test_faults_had_other_names_up_to_version_2() -> None:
    former, now = ("kill", "crash", "one_way", "stop"), ("crash", "crash-mid-turn", "partition-one-way", "stop")
    for version in (1, 2):
        plan = from_document(named(version, *former)).plan
        assert plan.config.kinds == tuple(fault.kind for fault in plan.faults) == now
    assert from_document(named(VERSION, *now)).plan.faults == plan.faults
    with pytest.raises(ScenarioError, match="there is no fault 'kill'"):
        from_document(named(VERSION, *former))

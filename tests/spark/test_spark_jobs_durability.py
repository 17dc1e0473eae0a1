from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tanist.sim.workload.history import History, Send
from tanist.spark.jobs.durability import (
    DurabilityResult,
    Estimate,
    FaultProfile,
    Row,
    Setting,
    durability,
    keep_losing,
    outage_ms,
    plan_of,
    played,
    settings,
)  # fmt: skip
from tanist.spark.jobs.preconditions import NothingToJudge

SHORT = FaultProfile(kinds=("blackout", "power", "leader"), pause_ms=(100, 500), load_ms=2_000)


def send(at_ms: int, partition: int = 0, outcome: str = "ok", promised: bool = True) -> Send:
    made = Send("p", 0, "t", partition, b"", (at_ms - 1) * 1000, promised)
    made.outcome, made.completed_us = outcome, at_ms * 1000
    return made


def test_an_outage_is_a_stretch_without_acknowledgements_also_at_the_ends() -> None:
    history = History()
    history.sends += [send(1), send(1_001), send(5_001), send(6_001)]
    history.sends += [send(2_000, outcome="failed"), send(3_000, promised=False)]
    assert outage_ms(history, 10_000) == 4_000 + 3_999
    assert outage_ms(history, 6_000) == 4_000
    history.sends += [send(1, partition=1, outcome="unknown")]
    assert outage_ms(history, 6_000) == 4_000 + 6_000


def test_settings_are_all_that_can_be() -> None:
    found = settings([1, 3], [1, 2, 3], ["None"])
    assert [(each.replication_factor, each.min_insync_replicas) for each in found] == [(1, 1), (3, 1), (3, 2), (3, 3)]
    with pytest.raises(NothingToJudge, match="=2 needs more than 1 replicas: there is no setting to play"):
        settings([1], [2, 3], ["None"])
    with pytest.raises(ValueError, match="replicas is 3"):
        Setting(2, 3)
    with pytest.raises(ValueError, match="the strategy is one of"):
        Setting(strategy="Reckless")
    with pytest.raises(ValueError, match="comets"):
        FaultProfile(kinds=("comets",))


def test_a_setting_in_which_nothing_was_acknowledged_is_not_judged() -> None:
    rows = [Row(Setting(3, least), Estimate(0, 5), Estimate(5, 5), acked) for least, acked in ((2, 10), (3, 0))]
    assert DurabilityResult(SHORT, range(5), rows).unjudged == [Setting(3, 3)]


def test_a_run_is_the_same_wherever_it_is_played() -> None:
    setting = Setting(3, 1, "Aggressive")
    first = played(3, setting, SHORT)
    assert first == played(3, setting, SHORT)
    assert first[0] > 0
    assert plan_of(3, setting, SHORT).faults == plan_of(3, Setting(3, 2, "None"), SHORT).faults


def test_every_seed_meets_every_setting_and_what_lost_can_be_replayed(spark: Any, tmp_path: Path) -> None:
    from tanist.lab.simulation import scenario

    asked = [Setting(3, 1, "Aggressive"), Setting(3, 3, "None")]
    result = durability(spark, asked, range(1, 4), SHORT, output=tmp_path / "runs")
    runs = {(row.min_insync_replicas, row.seed): row for row in spark.read.parquet(str(tmp_path / "runs")).collect()}
    assert set(runs) == {(least, seed) for least in (1, 3) for seed in (1, 2, 3)}
    for row, setting in zip(result.rows, asked, strict=True):
        mine = [runs[setting.min_insync_replicas, seed] for seed in (1, 2, 3)]
        assert row.loss == Estimate(sum(each.lost > 0 for each in mine), 3)
        assert (row.acknowledged, row.lost) == (
            sum(each.acknowledged for each in mine),
            sum(each.lost for each in mine),
        )
        direct = played(2, setting, SHORT)
        assert (direct[0], direct[1]) == (mine[1].acknowledged, mine[1].lost)
    result.rows[0].losing_seeds, result.rows[1].losing_seeds = [2], []
    (path,) = keep_losing(result, tmp_path)
    assert scenario.from_document(scenario.load(path)).plan == plan_of(2, asked[0], SHORT)

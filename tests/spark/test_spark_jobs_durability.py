from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tanist.sim.workload.history import History, Send
from tanist.spark.jobs import durability as job_durability
from tanist.spark.jobs import outcomes as job_outcomes
from tanist.spark.jobs.audit.arrow_columns import columns_of
from tanist.spark.jobs.durability import (
    DurabilityResult,
    Estimate,
    FaultProfile,
    ReplicationSettings,
    Row,
    durability,
    keep_losing,
    outage_ms,
    plan_of,
    played,
    settings,
)  # fmt: skip
from tanist.spark.jobs.outcomes import OUTCOME, Outcomes
from tanist.spark.jobs.preconditions import NothingToJudge

KINDS = columns_of(OUTCOME)
SHORT = FaultProfile(kinds=("blackout", "power-loss", "crash-leader"), pause_ms=(100, 500), load_ms=2_000)


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
        ReplicationSettings(2, 3)
    with pytest.raises(ValueError, match="the strategy is one of"):
        ReplicationSettings(strategy="Reckless")
    with pytest.raises(ValueError, match="comets"):
        FaultProfile(kinds=("comets",))


def test_a_setting_in_which_nothing_was_acknowledged_is_not_judged() -> None:
    rows = [
        Row(ReplicationSettings(3, least), Estimate(0, 5), Estimate(5, 5), acked) for least, acked in ((2, 10), (3, 0))
    ]
    assert DurabilityResult(SHORT, range(5), rows).unjudged == [ReplicationSettings(3, 3)]


def test_a_run_is_the_same_wherever_it_is_played() -> None:
    setting = ReplicationSettings(3, 1, "Aggressive")
    first = played(3, setting, SHORT)
    assert first == played(3, setting, SHORT)
    assert first[0] > 0
    assert plan_of(3, setting, SHORT).faults == plan_of(3, ReplicationSettings(3, 2, "None"), SHORT).faults


def test_every_seed_meets_every_setting_and_what_lost_can_be_replayed(spark: Any, tmp_path: Path) -> None:
    from tanist.lab.simulation import scenario

    asked = [ReplicationSettings(3, 1, "Aggressive"), ReplicationSettings(3, 3, "None")]
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
    again: list[str] = []
    assert durability(spark, asked, range(1, 4), SHORT, output=tmp_path / "runs", progress=again.append) == result
    assert again == ["6 runs: 3 seeds in 2 settings; 6 are there"]
    result.rows[0].losing_seeds, result.rows[1].losing_seeds = [2], []
    (path,) = keep_losing(result, tmp_path)
    assert scenario.from_document(scenario.load(path)).plan == plan_of(2, asked[0], SHORT)


def outcomes(folder: Path | None, seeds: range, **terms: int) -> Outcomes:
    return Outcomes([(3, 1, "None"), (3, 2, "None")], seeds, terms, folder)


def chunk_of(shares: list[list[tuple[int, int]]]) -> pa.Table:
    runs = [run for share in shares for run in share]
    values: dict[str, list[object]] = {
        "replication_factor": [3] * len(runs), "min_insync_replicas": [number + 1 for number, _ in runs],
        "strategy": ["None"] * len(runs), "seed": [seed for _, seed in runs], "violation": [None] * len(runs),
    }  # fmt: skip
    return pa.table({name: pa.array(values.get(name, [0] * len(runs)), kind) for name, kind in KINDS.items()})


def test_however_many_seeds_there_are_a_job_has_a_task_for_each_core() -> None:
    """6 * 10^6 runs were 750,000 tasks of one job."""
    chunks = outcomes(None, range(3_000_000)).shares(4)
    first = next(chunks)
    assert [len(share) for share in first] == [100] * 4
    assert sum(map(len, next(outcomes(None, range(5)).shares(4)))) == 10


def test_a_job_that_was_killed_has_what_it_played_and_plays_the_rest(tmp_path: Path) -> None:
    seeds = range(10, 300)
    killed = outcomes(tmp_path, seeds, down=3)
    played_by_then = next(killed.shares(2))
    killed.add(chunk_of(played_by_then))
    (tmp_path / ".runs-unfinished.parquet").write_bytes(b"half")
    again = outcomes(tmp_path, seeds, down=3)
    rest = []
    for shares in again.shares(2):
        rest += [run for share in shares for run in share]
        again.add(chunk_of(shares))
    done = [run for share in played_by_then for run in share]
    assert sorted(done + rest) == [(number, seed) for number in range(2) for seed in seeds]
    assert not list(outcomes(tmp_path, seeds, down=3).shares(2))
    assert outcomes(tmp_path, seeds, down=3).of((3, 2, "None")).column("seed").to_pylist() == list(seeds)


def test_seeds_between_those_that_are_asked_for_do_not_count(tmp_path: Path) -> None:
    first = outcomes(tmp_path, range(1, 2), down=3)
    for shares in first.shares(1):
        first.add(chunk_of(shares))
    every_third = outcomes(tmp_path, range(0, 9, 3), down=3)
    assert list(every_third.shares(1)) == list(outcomes(None, range(0, 9, 3)).shares(1))
    assert every_third.of((3, 1, "None")).num_rows == 0


def test_runs_of_other_terms_or_other_code_are_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = outcomes(tmp_path, range(3), down=3)
    for shares in first.shares(1):
        first.add(chunk_of(shares))
    assert not list(outcomes(tmp_path, range(3), down=3).shares(1))
    assert list(outcomes(tmp_path, range(3), down=2).shares(1)) == list(outcomes(None, range(3)).shares(1))
    monkeypatch.setattr(job_outcomes, "code", lambda: "another")
    assert list(outcomes(tmp_path, range(3), down=3).shares(1)) == list(outcomes(None, range(3)).shares(1))


def test_all_that_a_run_imports_is_code_that_decides_how_it_goes() -> None:
    script = (
        "import sys, tanist.lab.simulation.scenario, tanist.sim.run.chaos_run;"
        "print(*(module.__file__ for name, module in sys.modules.items() if name.split('.')[0] == 'tanist'), sep='\\n')"
    )
    imported = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(map(Path, imported.split())) - set(job_outcomes.sources()) == set()
    assert Path(str(job_durability.__file__)) in job_outcomes.sources()

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tanist.cli.spark.group import seeds_command
from tanist.lab.simulation import scenario
from tanist.lab.simulation.running import Terms
from tanist.sim.run.drawing import Restriction
from tanist.sim.workload.history import History, Send
from tanist.spark.jobs.preconditions import NothingToJudge, Unfit
from tanist.spark.jobs.seeds import job as job_seeds
from tanist.spark.jobs.seeds import lots as job_lots
from tanist.spark.jobs.seeds import table as job_table
from tanist.spark.jobs.seeds.job import outage_ms, play_seeds, played
from tanist.spark.jobs.seeds.lots import (
    KINDS,
    OF_THE_LAB,
    FaultProfile,
    Lot,
    ReplicationSettings,
    TermsOfSetting,
    asked,
    settings,
)
from tanist.spark.jobs.seeds.summary import Estimate, Violations, summaries
from tanist.spark.jobs.seeds.table import BLOCK, SeedTable, fit_to_hold

SHORT = FaultProfile(kinds=("blackout", "power-loss", "crash-leader"), pause_ms=(100, 500), load_ms=2_000)
LOSING = Lot.of_setting(ReplicationSettings(3, 1, "Aggressive"), SHORT)
BROKEN = Lot.of("plain", mutation="A17")
"""Its runs end soon."""


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


# -- what is played


def test_a_kind_is_played_as_the_lab_plays_it() -> None:
    assert Lot().played() == Terms()
    for kind in OF_THE_LAB[1:]:
        assert Lot.of(kind).played() == Terms.of(**{kind.replace("-", "_"): True})
    restricted = Lot.of("groups", faults=["crash", "pause"])
    assert restricted.played() == Terms.of(groups=True, restriction=Restriction(frozenset(("crash", "pause"))))
    assert restricted.name == "groups; crash, pause"
    with pytest.raises(ValueError, match="comets"):
        Lot.of("plain", faults=["comets"])


def test_settings_are_all_that_can_be() -> None:
    found = [lot.played() for lot in settings([1, 3], [1, 2, 3], ["None"], SHORT)]
    assert found == [
        TermsOfSetting(setting=ReplicationSettings(*each, "None"), faults=SHORT)
        for each in ((1, 1), (3, 1), (3, 2), (3, 3))
    ]
    with pytest.raises(NothingToJudge, match="=2 needs more than 1 replicas: there is no setting to play"):
        settings([1], [2, 3], ["None"])
    with pytest.raises(ValueError, match="replicas is 3"):
        ReplicationSettings(2, 3)
    with pytest.raises(ValueError, match="the strategy is one of"):
        ReplicationSettings(strategy="Reckless")


def test_the_command_has_all_kinds() -> None:
    (option,) = (each for each in seeds_command.params if each.name == "kinds")
    assert tuple(option.type.choices) == KINDS  # type: ignore[attr-defined]


def test_an_option_of_settings_asks_for_settings() -> None:
    assert asked(()) == [Lot()]
    assert [lot.name for lot in asked((), factors=(3,), strategies=("None",))] == [
        "RF 3, min ISR 1, None",
        "RF 3, min ISR 2, None",
    ]
    both = asked(("secured", "settings"), least=(2,), strategies=("None",), down_max=1, faults=("pause",))
    assert [lot.name for lot in both] == ["secured; pause", "RF 3, min ISR 2, None; pause; 1 down"]
    with pytest.raises(Unfit, match="--mutate"):
        asked(("settings",), mutation="A2")
    with pytest.raises(Unfit, match="no rule A0"):
        asked((), mutation="A0")


def test_every_setting_meets_the_same_faults() -> None:
    plans = [lot.played().plan(3) for lot in settings([3], [1, 2], ["None", "Aggressive"], SHORT)]
    assert len({plan.faults for plan in plans if plan is not None}) == 1


# -- the table


def rows_of(seeds: range, **more: Any) -> list[dict[str, Any]]:
    zeros = dict.fromkeys(("acknowledged", "lost", "outage_ms", "load_ms"), 0)
    return [{**zeros, "seed": seed, "events": 10, "virtual_ms": 1, "cpu_s": 0.5, **more} for seed in seeds]


def test_however_many_seeds_there_are_a_job_has_some_tasks_for_each_core(tmp_path: Path) -> None:
    """6 * 10^6 runs were 750,000 tasks of one job."""
    shares = job_seeds._shares(SeedTable(tmp_path), [Lot(), LOSING], range(50, 3 * 10**9))
    first = list(islice(shares, 4))
    assert first == [(0, 0, 50, 99), (1, 0, 50, 99), (0, 1, 100, 199), (1, 1, 100, 199)]


def test_a_block_that_is_there_is_not_played_again(tmp_path: Path) -> None:
    table, seeds = SeedTable(tmp_path), range(2 * BLOCK + 50)
    table.put(Lot(), 1, rows_of(range(BLOCK, 2 * BLOCK)))
    (tmp_path / ".half").write_bytes(b"of a job that was killed")
    assert [block for _, block, _, _ in job_seeds._shares(table, [Lot()], seeds)] == [0, 2]
    assert list(job_seeds._shares(table, [Lot()], seeds, there=True)) == [(0, 1, 100, 199)]
    assert list(job_seeds._shares(table, [Lot()], range(110, 150), there=True)) == [(0, 1, 110, 149)]
    table.put(Lot(), 2, rows_of(range(205, 210)))
    assert list(job_seeds._shares(table, [Lot()], range(206, 209))) == []
    table.put(Lot(), 2, rows_of(range(220, 230)))
    assert len(list(job_seeds._shares(table, [Lot()], range(206, 225)))) == 1
    for other in (SeedTable(tmp_path, "another code"), SeedTable(tmp_path / "elsewhere")):
        assert len(list(job_seeds._shares(other, [Lot()], seeds))) == 3
    assert len(list(job_seeds._shares(table, [Lot.of("groups")], seeds))) == 3


def test_a_worker_with_other_code_plays_nothing(tmp_path: Path) -> None:
    with pytest.raises(Unfit, match="this worker has other code"):
        next(job_seeds._play(tmp_path, "another", [Lot()], (0, 0, 1, 1)))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_something_else_holds_no_table(tmp_path: Path) -> None:
    table = SeedTable(tmp_path)
    table.put(Lot(), 0, rows_of(range(1)))
    table.failure(Lot(), 0).parent.mkdir(parents=True)
    fit_to_hold(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(Unfit, match=r"other files \(notes.txt\)"):
        fit_to_hold(tmp_path)


def test_all_that_a_run_imports_is_code_that_decides_how_it_goes() -> None:
    script = (
        "import sys, tanist.lab.simulation.failure, tanist.sim.run.chaos_run;"
        "print(*(module.__file__ for name, module in sys.modules.items() if name.split('.')[0] == 'tanist'), sep='\\n')"
    )
    imported = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(map(Path, imported.split())) - set(job_table.sources()) == set()
    assert {Path(str(each.__file__)) for each in (job_lots, job_seeds)} <= set(job_table.sources())


# -- the job


def test_each_seed_is_there_once_however_often_it_is_asked_for(spark: Any, tmp_path: Path) -> None:
    table, said = SeedTable(tmp_path), list[str]()
    SeedTable(tmp_path, "another").put(LOSING, 0, rows_of(range(99, 100), lost=5))
    play_seeds(spark, table, [LOSING, BROKEN], range(99, 101), shrink_s=0.1, progress=said.append)
    first = table.block(LOSING, 0)
    assert first.drop(["code", "kind", "terms", "cpu_s"]).to_pylist() == [
        {name: value for name, value in played(99, LOSING).items() if name != "cpu_s"}
    ]
    (shrunk, *_) = (path for path in (table.failure(BROKEN, seed) for seed in (99, 100)) if path.exists())
    when = shrunk.stat().st_mtime_ns
    # As after a kill: of a block some seeds are there.
    play_seeds(spark, table, [LOSING, BROKEN], range(98, 101), shrink_s=0.1)
    assert shrunk.stat().st_mtime_ns == when, "it was shrunk again"
    keys = table.frame(spark).select("code", "kind", "terms", "seed").collect()
    assert sorted((row.kind, row.seed) for row in keys) == [
        (kind, seed) for kind in ("plain", "settings") for seed in (98, 99, 100)
    ]
    assert table.block(LOSING, 0).slice(1).equals(first), "it was not played again"

    plain, setting = summaries(spark, table)
    (violations,) = plain.violations
    assert (plain.lot, plain.seeds, plain.violating) == (BROKEN, 3, violations.seeds)
    assert any("new violations" in each and not each.endswith(" 0 new violations") for each in said)
    file = table.failure(BROKEN, violations.first_seed)
    found = scenario.from_document(scenario.load(file))
    assert (found.property_id, found.mutation) == (violations.property_id, "A17")
    mine = table.frame(spark).where("kind = 'settings'").orderBy("seed").collect()
    assert setting.loss == Estimate(sum(row.lost > 0 for row in mine), 3)
    assert setting.losing_seeds == [row.seed for row in mine if row.lost]
    assert setting.losing_seeds, "none has lost: take another setting"
    lost = scenario.from_document(scenario.load(table.loss(LOSING, setting.losing_seeds[0])))
    assert lost.plan == LOSING.played().plan(setting.losing_seeds[0])
    assert setting.scenarios(table)[0].exists()


def test_coverage_grows_in_the_order_of_seeds(spark: Any, tmp_path: Path) -> None:
    table, far = SeedTable(tmp_path), 10**12
    for block, seed, names in (
        (0, 5, ["elections"]),
        (0, 7, ["elections", "of no interest"]),
        (0, 9, ["losses", "ISR empty"]),
        (far // BLOCK, far, ["ISR shrunk", "losses"]),
    ):
        table.put(Lot(), block, rows_of(range(seed, seed + 1), situations=[(name, 2) for name in names]))
    table.put(Lot(), 0, rows_of(range(11, 13), property="S7", violation="S7 at 1 s: gone"))
    (found,) = summaries(spark, table)
    assert found.growth == [(1, 1), (3, 3), (6, 4), (6, 4)]
    assert found.violations == [Violations("S7", 2, 11, "S7 at 1 s: gone")]
    assert (found.seeds, found.situations, len(found.never)) == (6, 4, found.expected - 4)
    assert "elections" not in found.never
    assert (found.events_per_s, found.core_hours) == (20.0, pytest.approx(0.5 / 3.6))
    assert not found.is_judged

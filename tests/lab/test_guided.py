"""Guided draws: edits of plans, what is kept, and what decides a draw."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.lab.simulation.edits import edited
from tanist.lab.simulation.guided import UNDER_WAY, Guide, outcomes, play_plan
from tanist.lab.simulation.running import Terms
from tanist.lab.simulation.scenario import Scenario, as_document, from_document, load
from tanist.sim.checkers.violation import Violation
from tanist.sim.run.chaos_run import Plan, SeedResult
from tanist.sim.run.config import ChaosConfig
from tanist.sim.run.drawing import config_of
from tanist.sim.workload.operations import Topic

SMALL = ChaosConfig(
    fault_time_ms=1_000,
    fault_pause_ms=(100, 500),
    topics=(Topic("events", 1, 3),),
    producers=1,
    observers=0,
    pause_ms=300,
    kinds=("crash", "pause", "partition"),
)


MOMENT_US = 4_000_000


def small(seed: int) -> Plan:
    return Plan.drawn(seed, SMALL)


@pytest.mark.parametrize("seed", range(40))
def test_an_edited_plan_is_a_plan_that_can_be_kept(seed: int) -> None:
    plan, donor = Plan.drawn(seed), Plan.drawn(seed + 1_000)
    before = (plan, donor)
    changed = edited(plan, MOMENT_US, Random(seed), donor)
    assert (plan, donor) == before
    assert changed == edited(plan, MOMENT_US, Random(seed), donor)
    assert from_document(json.loads(json.dumps(as_document(Scenario(changed, "edited"))))).plan == changed
    assert changed.events == sorted(changed.events, key=lambda each: each.at_us)
    assert all(each.at_us < plan.config.fault_time_ms * 1000 for each in changed.events)
    assert {each.kind for each in changed.faults} <= {*plan.config.kinds, *donor.config.kinds, "raise"}
    assert {each.kind for each in changed.operations} <= set(plan.config.all_operations)


def test_edits_are_of_many_kinds() -> None:
    plan, donor = Plan.drawn(7), Plan.drawn(1_007)
    changed = [edited(plan, MOMENT_US, Random(n), donor) for n in range(80)]
    assert {each.length - plan.length for each in changed} >= {-1, 0, 1}
    assert any(each.seed != plan.seed for each in changed)
    assert any(each.config != plan.config for each in changed)
    assert sum(each == plan for each in changed) < 10


def test_most_edits_return_to_the_moment() -> None:
    """Such a plan plays the same up to there: nothing of it changes before."""
    plan, donor = Plan.drawn(7), Plan.drawn(1_007)

    def begin(each: Plan) -> list[object]:
        return [each.seed, each.config, *(event for event in each.events if event.at_us < MOMENT_US - 200_000)]

    changed = [edited(plan, MOMENT_US, Random(n), donor) for n in range(80)]
    assert sum(begin(each) == begin(plan) for each in changed) > 55


def test_what_its_checks_do_not_allow_comes_into_no_plan() -> None:
    """Where ELR is switched no node may lose a page cache, and compacted logs do not rot."""
    seed = next(seed for seed in range(1, 1_000) if "features" in config_of(seed).operations)
    plan, donor = Plan.drawn(seed), Plan.drawn(3, ChaosConfig(kinds=("power-loss", "rot")))
    for n in range(60):
        changed = edited(plan, MOMENT_US, Random(n), donor)
        assert {each.kind for each in changed.faults} <= {*plan.config.kinds, "raise"}


def _result(*states: str, violation: Violation | None = None) -> SeedResult:
    return SeedResult(1, states={state: 1_000 * n for n, state in enumerate(states)}, events=10, violation=violation)


def test_plans_that_reach_new_states_are_kept() -> None:
    guide = Guide(100, small)
    plans = [guide.plan() for _ in range(4)]
    assert plans == [small(100 + n) for n in range(4)], "there is nothing to edit yet"
    guide.learn(plans[0], _result("a", "b"))
    guide.learn(plans[1], _result("b"))
    guide.learn(plans[2], _result("b", "c"))
    guide.learn(plans[3], _result("d", violation=Violation("S4", 0, "broken")))
    kept = [(each.plan, each.new_states) for each in guide.corpus]
    assert kept == [(plans[0], {"a": 0, "b": 1_000}), (plans[2], {"c": 1_000})]
    assert guide.states == {"a": 1, "b": 3, "c": 1, "d": 1}
    assert [tuple(each) for each in guide.curve] == [(1, 10, 2), (2, 20, 2), (3, 30, 3), (4, 40, 4)]
    assert str(guide) == "states of partitions: 2 after 1 run, 2 after 2 runs, 4 after 4 runs; 2 plans kept"


def test_runs_go_on_from_rare_states_more_than_from_usual_ones() -> None:
    guide = Guide(1, small)
    usual, rare = guide.plan(), guide.plan()
    guide.learn(usual, _result("usual"))
    guide.learn(rare, _result("rare"))
    for _ in range(200):
        guide.learn(guide.plan(), _result("usual"))
    edits = {state: count for each in guide.corpus for state, count in each.edits.items()}
    assert edits["rare"] > 5 * edits.get("usual", 0)


def test_a_state_that_was_reached_after_the_faults_is_nothing_to_go_on_from() -> None:
    guide = Guide(1, small)
    guide.learn(guide.plan(), replace(_result(), states={"late": SMALL.fault_time_ms * 1000}))
    assert len(guide.corpus) == 1
    assert [guide.plan() for _ in range(20)] == [small(n) for n in range(2, 22)]


def test_what_brings_more_is_played_more() -> None:
    """Fresh seeds bring nothing any more, and edits do: most runs are edits, but not all."""
    guide, edits = Guide(1, small), 0
    guide.learn(guide.plan(), _result("a"))
    for n in range(2, 302):
        plan = guide.plan()
        fresh = plan == small(n)
        edits += not fresh
        guide.learn(plan, _result() if fresh else _result(f"new {n}"))
    assert 200 < edits < 280


def test_a_plain_draw_edits_nothing() -> None:
    guide = Guide(1, small, plain=True)
    for n in range(1, 30):
        plan = guide.plan()
        assert plan == small(n)
        guide.learn(plan, _result(f"new {n}"))


def test_a_corpus_is_read_again(tmp_path: Path) -> None:
    guide = Guide(100, small, folder=tmp_path / "corpus", plain=True)
    for states in (("a",), ("a",), ("a", "b: one out, 3 us: or so")):
        guide.learn(guide.plan(), _result(*states))
    assert sorted(path.name for path in (tmp_path / "corpus").iterdir()) == ["100.json", "102.json"]
    again = Guide(500, small, folder=tmp_path / "corpus")
    assert [(each.plan, each.new_states) for each in again.corpus] == [
        (each.plan, each.new_states) for each in guide.corpus
    ]
    again.learn(again.plan(), _result("a", "b: one out, 3 us: or so"))
    assert len(again.corpus) == 2, "these states are known"


@pytest.fixture(scope="module")
def drawn() -> list[SeedResult]:
    return _drawn(1)


def _drawn(jobs: int) -> list[SeedResult]:
    guide = Guide(9_000, small)
    return list(outcomes(guide, range(9_000, 9_000 + 2 * UNDER_WAY), Terms(), jobs, lambda: True))


def test_the_first_seed_decides_a_draw(drawn: list[SeedResult]) -> None:
    assert _drawn(2) == drawn
    assert [each.seed for each in drawn] == list(range(9_000, 9_000 + 2 * UNDER_WAY))


def test_a_draw_goes_on_from_what_it_has_reached(drawn: list[SeedResult]) -> None:
    plain = [play_plan(small(each.seed), None) for each in drawn]
    same = [one.digest == other.digest for one, other in zip(drawn, plain)]
    assert all(same[:UNDER_WAY])
    assert not all(same[UNDER_WAY:])


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["lab", "run", *arguments])


def test_a_failure_of_an_edited_plan_is_kept_and_played_again(tmp_path: Path) -> None:
    kept = Guide(1, small, folder=tmp_path / "corpus", plain=True)
    kept.learn(kept.plan(), _result("a"))
    arguments = ("--seeds", "1..12", "--guided", "--mutate", "A17", "--keep-going", "--shrink", "0", "--jobs", "1")
    result = _run(*arguments, "--out", str(tmp_path / "out"), "--corpus", str(tmp_path / "corpus"))
    assert result.exit_code == 1, result.output
    files = sorted((tmp_path / "out").glob("*.json"))
    scenarios = [from_document(load(path)) for path in files]
    assert any(each.plan != Terms(mutation="A17").drawn(int(path.stem)) for path, each in zip(files, scenarios))
    for path, scenario in zip(files[:3], scenarios):
        found = play_plan(scenario.plan, "A17").violation
        assert found is not None
        assert found.property_id == scenario.property_id, path


def test_a_guided_draw_says_what_it_has_reached() -> None:
    result = _run("--seeds", "2..3", "--guided", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert "states of partitions: " in result.stdout.splitlines()[-1]
    document = json.loads(_run("--seeds", "2..3", "--guided", "--jobs", "1", "--json").stdout)
    assert document["curve"][-1] == {"runs": 2, "events": document["events"], "states": document["states"]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--corpus", "somewhere"), "--corpus is for --guided"),
        (("--guided", "--trace", "--seeds", "1"), "without --guided"),
        (("--guided", "--situation", "elections"), "without --guided"),
    ],
)
def test_what_makes_no_sense(arguments: tuple[str, ...], said: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert said in result.output

"""`tanist lab run`: what it plays, prints and keeps, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.cli.app import app
from tanist.lab.simulation.properties import MEANINGS
from tanist.lab.simulation.running import Terms, Totals, outcomes
from tanist.lab.simulation.scenario import FORMAT, VERSION, Scenario, ScenarioError, as_document, from_document, load
from tanist.ports import NEVER_LARGE
from tanist.sim.checkers.violation import Violation
from tanist.sim.faults.schedule import KINDS
from tanist.sim.run.chaos_run import Plan, SeedResult
from tanist.sim.run.config import GROUPS, TRANSACTIONS, ChaosConfig
from tanist.sim.run.drawing import OPERATORS, Restriction, config_of
from tanist.sim.world.link_conditions import NetworkConditions

SIMULATOR_PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"
GROUPS_PAGE = SIMULATOR_PAGE.with_name("groups.md")
SHARES_PAGE = SIMULATOR_PAGE.with_name("share-groups.md")
TRANSACTIONS_PAGE = SIMULATOR_PAGE.with_name("transactions.md")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["lab", "run", *arguments])


def test_seeds_that_hold(tmp_path: Path) -> None:
    result = _run("--seeds", "2..3", "--jobs", "1", "--out", str(tmp_path / "failures"))
    assert result.exit_code == 0, result.output
    last = result.stdout.splitlines()[-1]
    assert re.fullmatch(
        r"2 of 2 seeds: no violation; [\d,]+ events \([\d,]+/s\), 0\.\d\d virtual hours, \d+ faults, [\d,]+ records "
        r"acknowledged, \d+ given up by unclean elections; \d+ situations reached \(`--situations` lists them\)",
        last,
    )
    assert not (tmp_path / "failures").exists()


def test_a_draw_is_fresh_and_named_so_that_it_can_be_played_again(tmp_path: Path) -> None:
    drawn = []
    for _ in range(2):
        result = _run("--draw", "1", "--jobs", "1", "--out", str(tmp_path))
        assert result.exit_code == 0, result.output
        first = re.fullmatch(r"drawn: seeds (\d+)", result.stdout.splitlines()[0])
        assert first is not None
        drawn.append(int(first[1]))
    assert drawn[0] != drawn[1]
    document = json.loads(_run("--draw", "2", "--minutes", "1e-9", "--json").stdout)
    assert document["drawn"] is True
    assert document["last_seed"] == document["first_seed"] + 1
    both = _run("--draw", "2", "--seeds", "1..2")
    assert (both.exit_code, "give one of the two" in both.stderr) == (2, True)


def test_digests_are_those_of_the_runs(tmp_path: Path) -> None:
    printed = _run("--seeds", "2", "--digests", "--out", str(tmp_path)).stdout.splitlines()
    assert f"2 {Plan.drawn(2).begin().run().digest}" in printed
    document = json.loads(_run("--seeds", "2", "--digests", "--json", "--out", str(tmp_path)).stdout)
    assert f"2 {document['digests']['2']}" in printed


def test_a_run_with_groups_is_judged_traced_and_replayed(tmp_path: Path) -> None:
    result = _run("--groups", "--seeds", "3", "--situations", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "groups: commits acknowledged" in result.stdout
    traced = _run("--groups", "--seeds", "3", "--trace").stdout.splitlines()
    assert traced[0].startswith("seed 3: ChaosConfig(workload='groups'")
    assert any(" MEMBER " in line for line in traced)
    replayed = CliRunner().invoke(app, ["lab", "replay", "3", "--groups"])
    assert (replayed.exit_code, replayed.output.splitlines()[0]) == (0, "seed 3")


def test_a_plan_with_groups_survives_its_file() -> None:
    plan = Plan.drawn(5, config_of(5, GROUPS))
    read = from_document(json.loads(json.dumps(as_document(Scenario(plan, "groups")))))
    assert read.plan == plan
    document = as_document(Scenario(plan, "groups"))
    with pytest.raises(ScenarioError, match="which the cluster does not have"):
        from_document({**document, "cluster": {**document["cluster"], "topics": []}})
    with pytest.raises(ScenarioError, match="workload"):
        from_document({**document, "cluster": {**document["cluster"], "workload": "cats"}})


def test_a_trace_is_the_plan_and_what_happens() -> None:
    lines = _run("--seeds", "2", "--trace").stdout.splitlines()
    assert lines[0].startswith("seed 2: ChaosConfig(")
    assert "s of load" in lines[1]
    assert any("quorum leader is" in line for line in lines)
    assert re.fullmatch(r"seed 2: no violation; [\d,]+ events, digest [0-9a-f]{64}", lines[-1])
    broken = _run("--seeds", "1", "--trace", "--mutate", "A17")
    assert (broken.exit_code, "VIOLATION S4 at " in broken.stdout) == (1, True)
    assert _run("--seeds", "1..2", "--trace").exit_code == 2


def test_the_first_seeds_that_reach_a_situation() -> None:
    result = _run("--seeds", "1..8", "--jobs", "1", "--situation", "elections")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "elections: a broker was elected"
    assert len(lines) == 7
    wrong = _run("--situation", "Elections from")
    assert (wrong.exit_code, "do you mean 'elections from the ELR'?" in wrong.stderr) == (2, True)


def test_the_situations_are_counted(tmp_path: Path) -> None:
    (summary,) = _run("--seeds", "3", "--out", str(tmp_path)).stdout.splitlines()
    *lines, again = _run("--seeds", "3", "--situations", "--out", str(tmp_path)).stdout.splitlines()
    assert lines[0] == "COUNT  SITUATION"
    reached = f"; {len(lines) - 1} situations reached (`--situations` lists them)"
    assert all(each.endswith(reached) for each in (summary, again))
    rows = [re.fullmatch(r"([\d,]+) +(\S.*)", line) for line in lines[1:]]
    names = [row[2] for row in rows if row is not None]
    assert len(names) == len(rows)
    assert names == sorted(names)
    assert all(row is not None and row[1] != "0" for row in rows)


def test_a_failure_is_reported_kept_and_played_again(tmp_path: Path) -> None:
    result = _run("--seeds", "1..2", "--jobs", "1", "--mutate", "A17", "--out", str(tmp_path))
    assert result.exit_code == 1, result.output
    printed = result.stdout
    assert "seed 1: S4 does not hold\n" in printed
    assert f"What has to hold: {MEANINGS['S4']}." in " ".join(printed.split())
    assert "The rule A17 is broken for it: " in printed
    assert re.search(r"Kept after \d+ tries: 0 of \d+ faults and operations; it breaks without any of them\.", printed)
    assert re.search(r"X .* S4 does not hold: ", printed), "the end of the timeline"
    assert printed.splitlines()[-1].startswith("1 of 2 seeds: 1 violation (seed 1); ")
    file = tmp_path / "1.json"
    assert f"tanist lab replay {file}" in printed
    document = json.loads(file.read_text())
    assert (document[FORMAT], document["player"], document["property"], document["faults"]) == (
        VERSION,
        "simulator",
        "S4",
        [],
    )
    replayed = CliRunner().invoke(app, ["lab", "replay", str(file)])
    assert replayed.exit_code == 1
    assert "In the end S4 does not hold" in replayed.output


def test_it_goes_on_if_asked_to_and_makes_one_of_a_kind_small(tmp_path: Path) -> None:
    arguments = ("--seeds", "1..2", "--jobs", "1", "--mutate", "A17", "--keep-going", "--json", "--out", str(tmp_path))
    result = _run(*arguments)
    assert result.exit_code == 1
    assert "seed 1 violates S4\nseed 2 violates S4\n" in result.stderr
    found = json.loads(result.stdout)
    assert (found["first_seed"], found["last_seed"], found["seeds"]) == (1, 2, 2)
    first, second = found["violations"]
    assert (first["seed"], first["property"], first["shrunk"]["to"]) == (1, "S4", 0)
    assert (second["seed"], second["property"], second["shrunk"]) == (2, "S4", None)
    for each in found["violations"]:
        assert from_document(load(Path(each["scenario"]))).property_id == "S4"


def test_nobody_has_to_make_it_small(tmp_path: Path) -> None:
    result = _run("--seeds", "1", "--mutate", "A17", "--shrink", "0", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "Kept after" not in result.stdout
    assert from_document(load(tmp_path / "1.json")).plan == Plan.drawn(1)


def test_a_rule_with_a_script_of_its_own(tmp_path: Path) -> None:
    result = _run("--seeds", "1..1", "--mutate", "A5", "--out", str(tmp_path))
    assert result.exit_code == 1, result.output
    assert "tanist lab replay 1 --mutate A5\n" in result.stdout
    assert "The last moments of events-0:" in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--faults", "crash,nonsense"), f"nonsense: the faults are {', '.join(KINDS)}"),
        (("--faults", "reassign"), "reassign: the faults are crash, "),
        (("--without", "nonsense"), f"the operations {', '.join(OPERATORS)}"),
        (("--seeds", "5..1"), "5..1 is empty"),
        (("--seeds", "one"), "'one' is neither a seed nor a range A..B"),
        (("--mutate", "A0"), "'A0' is not one of A1, A2"),
        (("--minutes", "0"), "--minutes"),
    ],
)
def test_what_makes_no_sense(arguments: tuple[str, ...], said: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_no_seed_begins_after_its_time(tmp_path: Path) -> None:
    result = _run("--seeds", "1..1000", "--minutes", "0.0000001", "--jobs", "1", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("0 of 1,000 seeds: nothing is known")


def test_processes_play_what_one_does() -> None:
    def played(jobs: int) -> dict[int, str]:
        terms = Terms(mutation="A17")  # which ends a run soon
        return {each.seed: each.digest for each in outcomes(range(1, 6), terms, jobs, lambda: True)}

    assert played(2) == played(1)


def test_a_run_is_summed_up() -> None:
    totals = Totals()
    totals.add(SeedResult(1, events=10, virtual_ms=1_800_000, faults=2, acknowledged=5, lost=1))
    totals.add(SeedResult(2, events=20, virtual_ms=1_800_000, faults=3, acknowledged=6))
    assert (totals.seeds, totals.events, totals.faults, totals.acknowledged, totals.given_up) == (2, 30, 5, 11, 1)
    assert totals.virtual_hours == 1.0


# -- plans


def test_a_plan_is_what_the_seed_plays() -> None:
    from tanist.sim.run.chaos_run import ChaosRun

    for seed in range(1, 30):
        run, plan = ChaosRun(seed), Plan.drawn(seed)
        assert (tuple(run.faults), tuple(run.operations), run.config) == (plan.faults, plan.operations, plan.config)


def test_nothing_is_drawn_behind_a_configuration() -> None:
    """In version 1 of the scenario files the conditions of nodes and links were."""
    from tanist.sim.run.chaos_run import ChaosRun

    for seed in range(1, 30):
        world = ChaosRun(seed, ChaosConfig()).world
        assert world.network.conditions == NetworkConditions()
        for host in world.hosts.values():
            assert (host.wall_skew_ms, host.disk.large_write_bytes) == (0, NEVER_LARGE)
            assert not [name for name in host.properties if name.startswith("tanist.")]


@given(st.integers(0, 10_000), st.sets(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
@settings(deadline=None, max_examples=30)
def test_only_faults_that_are_named_are_drawn(seed: int, names: set[str]) -> None:
    own = set(config_of(seed).kinds)
    plan = Terms(Restriction(only=frozenset(names))).plan(seed)
    assert plan is not None
    assert {fault.kind for fault in plan.faults} <= ((own & names) or names)
    assert plan.config.operations == config_of(seed).operations


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=30)
def test_what_is_excluded_is_not_drawn(seed: int) -> None:
    every = Plan.drawn(seed)
    gone = {every.faults[0].kind} | {each.kind for each in every.operations[:1]}
    plan = Terms(Restriction(without=frozenset(gone))).plan(seed)
    assert plan is not None
    assert gone.isdisjoint({*(each.kind for each in plan.faults), *(each.kind for each in plan.operations)})
    nothing = Terms(Restriction(without=frozenset({*KINDS, *OPERATORS}))).plan(seed)
    assert nothing is not None
    assert nothing.length == 0


def test_workloads_meet_trimmed_logs_and_voters_unless_there_is_a_reason() -> None:
    plan = Terms.of(transactions=True, trimming=True).plan(5)
    assert plan is not None
    assert plan.config.trims
    assert plan.config.workload == TRANSACTIONS
    scenario = Scenario(plan, "title", "X1", None, "X1 at 1 s", ())
    assert from_document(json.loads(json.dumps(as_document(scenario)))) == scenario
    for terms in (Terms.of(groups=True, voters=True), Terms.of(transactions=True, voters=True, trimming=True)):
        config = terms.config(5)
        assert (config.workload, bool(config.voters), config.trims) == (terms.workload, True, terms.trimming)
    with pytest.raises(ValueError, match="the topics of groups hold no records"):
        Terms.of(groups=True, trimming=True)
    with pytest.raises(ValueError, match="a run has one workload"):
        Terms.of(groups=True, transactions=True)
    with pytest.raises(ValueError, match="a broken rule has runs of its own"):
        Terms(mutation="A2", trimming=True)


@given(st.integers(0, 100_000))
@settings(deadline=None, max_examples=60)
def test_a_scenario_is_kept_to_the_bit(seed: int) -> None:
    scenario = Scenario(Plan.drawn(seed), "title", "S1", "A2", "S1 at 1 s", ("kept",))
    assert from_document(json.loads(json.dumps(as_document(scenario)))) == scenario


def _document() -> dict[str, object]:
    document: dict[str, object] = as_document(Scenario(Plan.drawn(3), "seed 3"))
    return document


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda d: d.pop("seed"), "has no 'seed'"),
        (lambda d: d.update(seed="3"), "'3' is no whole number"),
        (lambda d: d.update(faults={}), "a list is missing"),
        (lambda d: d["faults"][0].update(kind="nonsense"), "there is no fault 'nonsense'"),
        (lambda d: d["faults"][0].update(node=99), "a fault of node 99"),
        (lambda d: d["faults"][0].update(at_us=-1), "-1 is before the beginning"),
        (lambda d: d["faults"][0].update(detail=1), "1 is not in [0, 1)"),
        (lambda d: d["operations"][0].update(kind="nonsense"), "there is no operation 'nonsense'"),
        (lambda d: d["cluster"].update(colour="red"), "the cluster has colour"),
        (lambda d: d["cluster"].update(roles={}), "0 nodes"),
        (lambda d: d["cluster"].update(roles={"1": "controller"}), "a cluster without a broker"),
        (lambda d: d["cluster"].update(down_max="1"), "down_max is '1'"),
        (lambda d: d["cluster"]["topics"][0].update(replication_factor=9), "partitions on 9 nodes"),
        (lambda d: d.update(cluster=[]), "cannot be played"),
    ],
)
def test_a_file_that_somebody_has_changed(harm: Callable[[dict[str, object]], object], said: str) -> None:
    document = json.loads(json.dumps(_document()))
    harm(document)
    with pytest.raises(ScenarioError, match=re.escape(said)):
        from_document(document)


# -- the words


def test_an_error_is_reported_without_the_folders_of_this_machine() -> None:
    with pytest.raises(ValueError, match="nonsense") as raised:
        Restriction(only=frozenset({"nonsense"}))
    said = Violation.of_error(raised.value, 0).message
    assert re.fullmatch(r"ValueError: nonsense: the faults are .* \(in sim/run/drawing::__init__ > .*\)", said)


def test_the_properties_are_those_of_the_simulators_page() -> None:
    rows = re.findall(r"^\| ([SUL]\d+)(?:-L(\d+))? \|", SIMULATOR_PAGE.read_text(), re.MULTILINE)
    named = {name for name, last in rows if not last} | {f"L{n}" for n in range(1, int(rows[-1][1]) + 1)}
    named |= set(re.findall(r"^\| (C\d) \|", GROUPS_PAGE.read_text(), re.MULTILINE))
    named |= set(re.findall(r"^\| (W\d) \|", GROUPS_PAGE.read_text(), re.MULTILINE))
    named |= set(re.findall(r"^\| (Q\d) \|", SHARES_PAGE.read_text(), re.MULTILINE))
    named |= set(re.findall(r"^\| (X\d+) \|", TRANSACTIONS_PAGE.read_text(), re.MULTILINE))
    assert named == MEANINGS.keys() - {"crash"}

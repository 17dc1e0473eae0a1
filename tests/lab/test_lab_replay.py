"""`tanist lab replay`: the moments of a run, and that a replay changes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.controller.image.partition_state import PartitionState
from tanist.events.metadata import BrokerRegistered
from tanist.lab import model_scenario as model
from tanist.lab.replay.moments import Moment, Weight
from tanist.lab.simulation import Plan, Played, play
from tanist.lab.simulation.breaking import broken
from tanist.lab.simulation.committed import Situation, changed, is_turning_point, reason
from tanist.lab.simulation.player import Player
from tanist.lab.simulation.scenario import FORMAT, Scenario, save
from tanist.sim.faults.schedule import Fault
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import ChaosConfig
from tanist.sim.workload.operations import Operation, Topic

CONFIG = ChaosConfig(
    fault_time_ms=6_000, topics=(Topic("events", 2, 3),), producers=1, observers=1, pause_ms=400, down_max=3
)
PLAN = Plan(
    1,
    CONFIG,
    (Fault(500_000, "crash", 3, 1, 700_000, 0.5), Fault(2_500_000, "stop", 2, 1, 400_000, 0.5)),
    (Operation(4_000_000, "preferred", 0.1, 0.1),),
)
"""A cluster that loses two of its nodes, one after the other, and is whole in the end."""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("scenarios") / "whole.json"
    save(Scenario(PLAN, "two nodes go"), file)
    return file


@pytest.fixture(scope="module")
def a17(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broken rule, which shows before anything has gone wrong."""
    file = tmp_path_factory.mktemp("scenarios") / "a17.json"
    save(Scenario(replace(PLAN, faults=(), operations=()), "the leader's end", "S4", "A17"), file)
    return file


@pytest.fixture(scope="module")
def played() -> Played:
    return play(PLAN.begin())


def _replay(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["lab", "replay", *arguments], input=stdin)


def _printed(result: Result) -> str:
    """The words of a diagram, as if its lines were not broken."""
    rows = (re.sub(r"^[ \d.]*[│┤├o┴┬X·─<> ]*", "", line) for line in result.stdout.splitlines())
    return " ".join(" ".join(rows).split())


# -- what the player sees


def test_a_run_that_is_looked_at_is_the_same_run(played: Played) -> None:
    assert played.outcome.violation is None
    assert played.outcome.digest == PLAN.begin().run().digest


def test_all_of_a_death_and_its_consequences_is_reported(played: Played) -> None:
    texts = [f"{moment.lane}: {moment.text}" for moment in played.moments]
    end = 0
    for expected in (
        "node 1: controller 1 is active in epoch 1",
        "committed: created on [",
        "Produce events/producer0-1",
        "acknowledged: events/producer0-1",
        "node 3: killed (SIGKILL); what it wrote stays in the page cache",
        "node 1: broker 3 is gone (connection refused): fenced",
        "committed: broker 3 is fenced",
        "committed: leader 3 → 1, epoch 1, ISR [3,1,2] → [1,2]",
        "leads epoch 1; log ends at",
        "node 3: starts again (life 2)",
        "BrokerRegistration of 3: no mark of a clean shutdown",
        "comes back with its log up to",
        "counts with [1,2,3] until it is answered",
        "AlterPartition: ISR [",
        "committed: ISR [",
        "node 2: stops (controlled shutdown)",
        "node 2: has stopped",
        "BrokerRegistration of 2: ended in good order as broker epoch",
        "operator: asks for preferred leaders",
    ):
        end = next(number for number in range(end, len(texts)) if expected in texts[number]) + 1


def test_lanes_die_and_live(played: Played) -> None:
    lives = [(moment.lane, moment.alive) for moment in played.moments if moment.alive is not None]
    assert lives == [
        ("node 1", True),
        ("node 2", True),
        ("node 3", True),
        ("node 3", False),
        ("node 3", True),
        ("node 2", False),
        ("node 2", True),
    ]


def test_every_moment_stands_in_a_lane(played: Played) -> None:
    assert played.lanes == ("node 1", "node 2", "node 3", "client", "operator")
    assert {moment.lane for moment in played.moments} <= set(played.lanes)
    assert {moment.to for moment in played.moments} <= {None, *played.lanes}
    assert {moment.about for moment in played.moments} == {None, "events-0", "events-1", "the quorum"}


def test_moments_come_in_order(played: Played) -> None:
    times = [float(moment.at) for moment in played.moments]
    assert times == sorted(times)


def test_causes_stand_before_their_effects(played: Played) -> None:
    """A leader's ISR changes when the metadata has it; a broker's records come behind those of its partitions."""
    texts = [moment.text for moment in played.moments]
    fenced = texts.index("committed: broker 3 is fenced")
    assert texts[fenced + 1].startswith("committed: leader 3 → 1")
    committed = texts.index("committed: ISR [1,2,3] → [1,2]", fenced)
    assert texts.index("ISR [1,2,3] → [1,2]") > committed


def test_what_is_said_again_is_a_detail(played: Played) -> None:
    said = [(each.lane, each.to, each.about, each.text) for each in played.moments if each.to and each.weight]
    assert len(said) > 50
    last: dict[object, str] = {}
    for lane, to, about, text in said:
        if "client" not in (lane, to):
            assert last.get((lane, to, about)) != text
            last[lane, to, about] = text


def test_roles_of_their_own_have_lanes_of_their_own() -> None:
    roles = {1: "broker", 2: "broker", 3: "broker", 11: "controller"}
    run = Plan(1, replace(CONFIG, roles=roles, fault_time_ms=300), (), ()).begin()
    assert play(run).lanes == ("broker 1", "broker 2", "broker 3", "controller 11", "client", "operator")


def test_a_broken_rule_contradicts_its_line() -> None:
    plan = Plan(1, CONFIG, PLAN.faults, ())
    with broken("A17"):
        found = play(plan.begin())
    assert found.partition is not None
    last = found.moments[-1]
    assert last.broken
    assert last.about == found.partition
    assert last.text.startswith("S4 does not hold: on node ")
    moved = [each for each in found.moments[:-1] if each.about == last.about and "HW 0 → " in each.text]
    assert "not known to have it: it has to wait (rule 4)" in (moved[-1].why or "")


# -- why


BEFORE = PartitionState((1, 2, 3), (1, 2), leader=1, leader_epoch=4, partition_epoch=7)


@pytest.mark.parametrize(
    ("before", "after", "situation", "text", "why"),
    [
        (
            BEFORE,
            replace(BEFORE, isr=(2,), elr=(1,), leader=2, leader_epoch=5),
            Situation(2, "Balanced"),
            "leader 1 → 2, epoch 5, ISR [1,2] → [2], ELR [] → [1]",
            "a live member of the ISR, the first in the order of replicas (rules 30, 32); ISR [2] is below "
            "min.insync.replicas 2: 1 left it and stays eligible, in the ELR (KIP-966, rule 41)",
        ),
        (
            replace(BEFORE, isr=(), elr=(1, 2), leader=-1),
            replace(BEFORE, isr=(2,), elr=(1,), leader=2, leader_epoch=5),
            Situation(2, "Balanced"),
            "leader none → 2, epoch 5, ISR [] → [2], ELR [1,2] → [1]",
            "the ISR is empty; 2 is in the ELR, so has all that was committed (KIP-966, rules 31, 35)",
        ),
        (
            replace(BEFORE, isr=(2,), elr=(1,), leader=2),
            replace(BEFORE, isr=(2, 3), leader=2),
            Situation(2, "Balanced"),
            "ISR [2] → [2,3], ELR [1] → []",
            "ISR [2,3] meets min.insync.replicas 2: nobody else is eligible (KIP-966, rule 40); its leader asked for "
            "3, who is alive (AlterPartition, rules 25, 26)",
        ),
        (
            replace(BEFORE, isr=(), elr=(1,), leader=-1),
            replace(BEFORE, isr=(), last_known_elr=(1,), leader=-1),
            Situation(2, "Balanced"),
            "ELR [1] → [], LastKnownElr [] → [1]",
            "1 ended uncleanly, so may lack what was committed: not eligible (rule 46); LastKnownElr [1]: remembered "
            "for an unclean recovery (KIP-966, rule 51)",
        ),
        (
            replace(BEFORE, isr=(), last_known_elr=(1, 2), leader=-1),
            replace(BEFORE, isr=(2,), leader=2, leader_epoch=5, recovering=True, last_unclean_epoch=5),
            Situation(2, "Balanced", compared=(2, 3)),
            "leader none → 2, epoch 5, ISR [] → [2], LastKnownElr [1,2] → [], recovering",
            "nobody is in ISR or ELR; strategy Balanced: when all of LastKnownElr [1,2] have answered ([2,3] had), the "
            "longest log by (last epoch, end) leads (KIP-966, Unclean Recovery; rule 36)",
        ),
        (
            replace(BEFORE, isr=(), elr=(1,), leader=-1),
            replace(BEFORE, isr=(2,), leader=2, leader_epoch=5, recovering=True, last_unclean_epoch=5),
            Situation(2, "Aggressive", compared=(2,)),
            "leader none → 2, epoch 5, ISR [] → [2], ELR [1] → [], recovering",
            "[1] may lead but cannot; strategy Aggressive: the longest log by (last epoch, end) of those who answered, "
            "[2] (KIP-966, Unclean Recovery; rule 36)",
        ),
        (
            BEFORE,
            replace(BEFORE, isr=(), elr=(1, 2), leader=-1, leader_epoch=5),
            Situation(2, "None"),
            "leader 1 → none, epoch 5, ISR [1,2] → [], ELR [] → [1,2]",
            "nobody of the ELR [1,2] can lead now: it waits for one of them (KIP-966, rule 49); ISR [] is below "
            "min.insync.replicas 2: 1 and 2 left it and stay eligible, in the ELR (KIP-966, rule 41)",
        ),
        (
            BEFORE,
            replace(BEFORE, leader=3, leader_epoch=5),
            Situation(2, "None"),
            "leader 1 → 3, epoch 5",
            "3 was in neither ISR nor ELR",
        ),
    ],
)
def test_what_was_committed_and_why(
    before: PartitionState, after: PartitionState, situation: Situation, text: str, why: str
) -> None:
    assert changed(before, after) == text
    assert reason(before, after, situation) == why


def test_a_partition_that_begins() -> None:
    assert changed(None, BEFORE) == "created on [1,2,3]: leader 1, epoch 4, ISR [1,2]"
    assert reason(None, BEFORE, Situation(2, "None")) is None
    assert is_turning_point(None, BEFORE)


def test_turning_points() -> None:
    assert not is_turning_point(BEFORE, replace(BEFORE, isr=(1, 2, 3)))
    assert is_turning_point(BEFORE, replace(BEFORE, isr=(1,)))
    assert is_turning_point(BEFORE, replace(BEFORE, leader_epoch=5))


def test_a_registration_is_reported_once_and_that_of_the_same_life_again_is_not() -> None:
    run = ChaosRun(1, CONFIG)
    player = Player(run)
    run.world.start()
    run.world.run_for(1_000)
    host, metadata = run.world.hosts[1], run.checkers.metadata
    epoch = metadata.image.brokers[2].epoch
    before = [moment.text for moment in player.moments if "committed: broker 2 is registered" in moment.text]
    assert before == [f"committed: broker 2 is registered, broker epoch {epoch}, fenced until it has caught up"]

    def moments_of(broker_epoch: int) -> list[str]:
        begin = len(player.moments)
        player.observed(host, BrokerRegistered(2, broker_epoch, "life", fenced=True))
        player.tell_turn()
        return [moment.text for moment in player.moments[begin:]]

    assert moments_of(epoch + 1) == [], "another node has applied it before"
    metadata.applied_offset -= 1
    assert moments_of(epoch) == []
    assert moments_of(epoch + 1) == [
        f"committed: broker 2 is registered, broker epoch {epoch + 1}, fenced until it has caught up"
    ]


# -- the command


def test_of_a_run_that_holds_its_elections_and_faults_are_shown(scenario: Path) -> None:
    result = _replay(str(scenario))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "two nodes go"
    assert "0.500 s of load  crash of node 3, 700 ms. " in lines[1]
    printed = _printed(result)
    assert "killed (SIGKILL)" in printed
    assert "committed: broker 3 is fenced" in printed
    assert "controller 1 is active in epoch 1" in printed
    assert "Fetch from" not in printed
    assert lines[-1].startswith("Nothing broke. ")


def test_the_same_bytes_in_another_process(scenario: Path) -> None:
    code = "from tanist.cli.app import app; app()"
    environment = {**os.environ, "PYTHONHASHSEED": "77", "COLUMNS": "47", "PYTHONIOENCODING": "utf-8"}
    again = subprocess.run(
        [sys.executable, "-c", code, "lab", "replay", str(scenario), "--all"],
        capture_output=True,
        check=True,
        env=environment,
    )
    assert again.stdout == _replay(str(scenario), "--all").stdout_bytes


def test_everything_is_more(scenario: Path) -> None:
    everything = _printed(_replay(str(scenario), "--all"))
    assert "Fetch from" in everything
    assert "Produce events/producer0-1" in everything
    assert "more like these" not in everything


def test_one_partition(scenario: Path) -> None:
    printed = _printed(_replay(str(scenario), "--partition", "events-1"))
    assert "events-0" not in printed
    assert "committed: created on [1,2,3]" in printed


def test_some_lanes_and_some_time(scenario: Path) -> None:
    result = _replay(str(scenario), "--lanes", "3,operator", "--from", "0.55", "--to", "4.5")
    heading = next(line for line in result.stdout.splitlines() if re.fullmatch(r" {9,}node .*", line))
    times = [float(at) for at in re.findall(r"^ *(\d+\.\d{3}) {3}", result.stdout, re.MULTILINE)]
    assert times
    assert all(0.55 <= at <= 4.5 for at in times)
    assert "opera-" in heading
    assert "asks for preferred leaders" in _printed(result)
    assert "controller 1 is active" not in _printed(result)


def test_no_wider_than_asked_for(scenario: Path) -> None:
    diagram = _replay(str(scenario), "--all", "--width", "72").stdout.split("\n\n", 1)[1].rpartition("\n\n")[0]
    assert max(map(len, diagram.splitlines())) <= 72


def test_step_by_step(scenario: Path) -> None:
    whole = _replay(str(scenario), "--step", stdin="\n" * 10_000)
    assert whole.stdout.splitlines()[-1].startswith("Nothing broke. ")
    one, three = (_replay(str(scenario), "--step", stdin=keys).stdout for keys in ("q", "\n\nq\n\n\n"))
    assert len(one) < len(three)
    assert three.startswith(one)
    assert whole.stdout.startswith(three)


def test_a_failure_ends_with_what_broke(a17: Path) -> None:
    result = _replay(str(a17))
    assert result.exit_code == 1
    printed = _printed(result)
    assert "The rule A17 is broken for it: the high watermark is the leader's end." in printed
    assert "S4 does not hold: " in printed
    assert result.stdout.splitlines()[-1].startswith("In the end S4 does not hold, at 0.")


def test_a_file_whose_failure_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "mended.json"
    save(Scenario(replace(PLAN, faults=()), "it was so once", "S4"), file)
    result = _replay(str(file))
    assert result.exit_code == 0
    assert "Nothing broke." in result.stdout


def test_a_seed_with_a_broken_rule() -> None:
    result = _replay("1", "--mutate", "A17")
    assert result.exit_code == 1
    assert result.stdout.startswith("seed 1, with the rule A17 broken: the high watermark is the leader's end\n")


def test_a_rule_with_a_script() -> None:
    result = _replay("1", "--mutate", "A5")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1] == "  directed, by a script"


def test_a_scenario_of_the_model_checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [Moment("1", "broker 1", "is elected"), Moment("2", "broker 1", "S1", broken=True, weight=Weight.TURN)]
    monkeypatch.setattr(model, "moments", lambda document: moments if document["steps"] == 2 else [])
    file = tmp_path / "model.json"
    file.write_text(json.dumps({FORMAT: 1, "player": "model", "title": "two steps", "property": "S1", "steps": 2}))
    result = _replay(str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "two steps",
        "",
        "          broker",
        "            1",
        "       1    o    is elected",
        "       2    X    S1",
        "",
        "In the end S1 does not hold.",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("[1]", 'not a scenario: it has no "tanist-scenario" at the top'),
        ('{"tanist-scenario": 4}', "version 4 of the format, this is version 3"),
        ('{"tanist-scenario": 1, "player": "nobody"}', '"player" is neither "simulator" nor "model"'),
        ('{"tanist-scenario": 1, "player": "simulator"}', "the scenario has no 'cluster'"),
        ("\x00", "not JSON"),
    ],
)
def test_files_that_cannot_be_played(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    file.write_text(content)
    result = _replay(str(file))
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_file_that_breaks_a_rule_nobody_knows(tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    save(Scenario(PLAN, "", mutation="A0"), file)
    result = _replay(str(file))
    assert result.exit_code == 2
    assert "breaks the rule 'A0', which this version does not know" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing.json",), "'nothing.json' is neither a seed nor a file"),
        (("1", "--mutate", "A0"), "'A0' is not one of"),
        (("1", "--width", "20"), "--width"),
    ],
)
def test_what_makes_no_sense(arguments: tuple[str, ...], said: str) -> None:
    result = _replay(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_lanes_and_partitions_that_there_are_not(a17: Path) -> None:
    for arguments, said in (
        (("--lanes", "9"), "'9' is not one of node 1, node 2, node 3, client"),
        (("--partition", "events-9"), "'events-9' is not one of events-0"),
        (("--mutate", "A1"), "--mutate is for a seed"),
    ):
        result = _replay(str(a17), *arguments)
        assert result.exit_code == 2
        assert said in " ".join(result.output.split())

"""`tanist lab check`: what it prints, and how it ends."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from tanist.cli.app import app
from tanist.lab.model import CONFIGURATIONS
from tanist.lab.mutations.model import MUTATIONS


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["lab", "check", *arguments])


def test_a_search_that_finds_nothing() -> None:
    result = _run("--config", "one-outside", "--depth", "3")
    assert result.exit_code == 0
    assert result.stdout.startswith("PASSED    one-outside: ")
    assert result.stdout.endswith("states/s; stopped by the limit on depth\n")


def test_a_search_that_ends_by_itself() -> None:
    result = _run("--config", "preferred-leaders")
    assert result.exit_code == 0
    assert result.stdout.startswith("EXHAUSTED preferred-leaders: 2,311 states")


def test_the_scenario_of_the_kip_without_its_rules() -> None:
    result = _run("--mutate", "A2")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "With A2 (no ELR: the last member of the ISR stays listed, and commits alone):"
    steps = [line for line in lines if line[:3].strip().isdigit() and line[3] == "."]
    assert [line[5:] for line in steps] == [
        "A producer writes A to 1",
        "The controller fences 2: ISR {1,3}",
        "The controller fences 3: ISR {1}",
        "1 applies the metadata: it leads in epoch 0 by the ISR {1}, counts with {1}; committed now: [A@0]",
        "1 crashes, loses [A@0] which it had not synced, and registers again: nobody leads",
        "1 is unfenced: 1 leads",
    ]
    assert lines[-2] == "S1 does not hold: 1 leads and lacks A (epoch 0), which was committed"
    assert lines[-1].startswith("FAILED    last-replica-standing: ")


def test_a_directed_start_is_reported() -> None:
    result = _run("--mutate", "A11", "--config", "one-outside")
    assert result.exit_code == 1
    assert "From where write 1; fetch 2; fence 3; unfence 3; learn 1; fetch 2:" in result.stdout


def test_json() -> None:
    result = _run("--mutate", "A9", "--json")
    assert result.exit_code == 1
    reported = json.loads(result.stdout)
    assert reported["configuration"] == "slow-followers"
    assert reported["mutation"] == "A9"
    assert not reported["exhausted"]
    assert reported["stopped_by"] == "violation"
    found = reported["counterexample"]
    assert found["property"] == "S3"
    assert [step["step"] for step in found["steps"]] == ["lag 1 for 2"]
    assert found["first"]["partition"]["isr"] == [1, 2, 3]
    assert [broker["leads"] for broker in found["steps"][0]["brokers"]] == [True, False, False]


def test_the_list() -> None:
    result = _run("--list")
    assert result.exit_code == 0
    words = {line.split()[0] for line in result.stdout.splitlines() if line}
    assert words >= set(CONFIGURATIONS) | set(MUTATIONS)
    reported = json.loads(_run("--list", "--json").output)
    assert set(reported["configurations"]) == set(CONFIGURATIONS)
    assert reported["mutations"]["A2"]["configuration"] == "last-replica-standing"


def test_names_that_are_not_there() -> None:
    for arguments in (("--config", "none-such"), ("--mutate", "A99")):
        result = _run(*arguments)
        assert result.exit_code == 2
        assert "is not one of" in result.stderr

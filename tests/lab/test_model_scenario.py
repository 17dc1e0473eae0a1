"""Counterexamples as files: what is written is played again, and what is wrong with a file is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.lab.model import CONFIGURATIONS, Limits, check
from tanist.lab.model_scenario import ALL_MUTATIONS, document, moments
from tanist.lab.mutations.model import applied
from tanist.lab.replay.moments import Moment


def _found(number: str) -> dict[str, Any]:
    mutation = ALL_MUTATIONS[number]
    with applied(mutation):
        checked = check(CONFIGURATIONS[mutation.configuration], Limits(states=50_000), unwatched=mutation.unwatched)
        found = checked.outcome.counterexample
        assert found is not None
        written = document(number, checked.configuration, checked.model, found, [number])
    read: dict[str, Any] = json.loads(json.dumps(written))
    return read


@pytest.mark.parametrize("number", ["A2", "A5", "A18", "A27", "A47", "E-A", "E-C", "E-D"])
def test_what_was_found_is_played(number: str) -> None:
    """With directed starts, late messages, unclean recoveries, and on both models."""
    kept = _found(number)
    played = list(moments(kept))
    *reported, last = played
    assert last.broken
    assert last.text.startswith(f"{kept['property']}: ")
    assert not any(moment.broken for moment in reported)
    assert {moment.at for moment in played} == {str(number) for number in range(len(kept["steps"]) + 1)}
    assert list(moments(kept)) == played


def test_the_last_replica_standing_before_elr() -> None:
    kept = _found("A2")
    assert (kept["tanist-scenario"], kept["player"], kept["property"]) == (1, "model", "S1")
    assert len(kept["steps"]) <= 8
    *_, crash, back, broken = moments(kept)
    assert (crash.lane, crash.why) == (
        "broker 1",
        "nobody asks whether it was shut down cleanly: the last of the ISR stays in it (49); only {1} may lead, and is "
        "not there",
    )
    assert back == Moment(at="6", lane="controller", text="1 is unfenced: 1 leads", why="1 is in the ISR")
    assert broken.text == "S1: 1 leads and lacks A (epoch 0), which was committed"


def test_the_command_writes_what_is_played(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    result = CliRunner().invoke(app, ["lab", "check", "--mutate", "A9", "--out", str(file)])
    assert result.exit_code == 1
    assert result.output.endswith(f"See it again: `tanist lab replay {file}`\n")
    *_, last = moments(json.loads(file.read_text()))
    assert last.text.startswith("S3: ")


def test_the_command_writes_nothing_where_nothing_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    result = CliRunner().invoke(app, ["lab", "check", "--depth", "2", "--out", str(file)])
    assert (result.exit_code, file.exists()) == (0, False)


def test_messages_have_two_lanes() -> None:
    played = list(moments(_found("A5")))
    assert {(moment.lane, moment.to) for moment in played} >= {("broker 3", "broker 1"), ("broker 1", "controller")}


def test_steps_that_break_nothing() -> None:
    written = {
        "tanist-scenario": 1,
        "player": "model",
        "title": "a record",
        "property": None,
        "configuration": {"model": "partition", "budget": {"writes": 1}},
        "steps": ["write 1", "fetch 2"],
    }
    title, write, fetch = moments(written)
    assert title.text == "a record"
    assert (write.lane, write.to, write.text) == ("client", "broker 1", "A producer writes A to 1")
    assert (fetch.lane, fetch.to, fetch.text) == ("broker 2", "broker 1", "2 fetches from offset 0 and is sent [A@0]")


def test_a_rule_that_is_kept_again_is_said_to_be() -> None:
    kept = _found("E-B") | {"mutations": []}
    with pytest.raises(ValueError, match="all steps are taken, and E9 is not broken: the rules have changed since"):
        list(moments(kept))


def test_another_property_than_the_one_that_is_reported() -> None:
    with pytest.raises(ValueError, match=r"step 6, 'unfence 1 -> 1', breaks S1: .* and S9 is to be broken"):
        list(moments(_found("A2") | {"property": "S9"}))


WRONG: list[tuple[Any, str]] = [
    ([], 'it has no "tanist-scenario"'),
    ({"tanist-scenario": 2}, "version 2: this tanist plays version 1"),
    ({"player": "simulator"}, "the player of this scenario is 'simulator'"),
    ({"steps": "write 1"}, '"steps" is no list of texts'),
    ({"steps": ["write 1"] * 1_001}, "1,001: no more than 1,000"),
    ({"steps": ["write 9"]}, r"step 1: 'write 9' is none of the steps \['fetch 2'"),
    ({"mutations": ["A0"]}, "no mutation is called 'A0'"),
    ({"mutations": "A2"}, '"mutations" is no list of names'),
    ({"property": 1}, '"property" is 1'),
    ({"configuration": "quorum"}, '"configuration" has a "model" that is one of partition, quorum'),
    ({"configuration": {"model": "partition", "rf": 3}}, "has 'rf', which is none of name, about, budget"),
    ({"configuration": {"model": "partition", "min_isr": "2"}}, "'min_isr' is '2', and not a number"),
    ({"configuration": {"model": "partition", "elr": 1}}, "'elr' is 1, and not a bool"),
    ({"configuration": {"model": "partition", "acks": 10**9}}, "'acks' is 1,000,000,000"),
    ({"configuration": {"model": "partition", "brokers": 9}}, "3 replicas on 9 brokers"),
    ({"configuration": {"model": "partition", "strategy": "Bold"}}, "'Bold', none of None, Balanced, Aggressive"),
    ({"configuration": {"model": "partition", "start": [1]}}, '"start" is no list'),
    ({"configuration": {"model": "partition", "start": ["write 2"]}}, "'write 2' is none of the steps"),
    ({"configuration": {"model": "partition", "budget": {"luck": 1}}}, "\"budget\" has 'luck'"),
    ({"configuration": {"model": "partition", "budget": {"writes": 10**6}}}, '"budget" has 1000000 for writes'),
    ({"configuration": {"model": "partition", "budget": 3}}, '"budget" has for each thing how often'),
    ({"configuration": {"model": "quorum", "voters": 10**6}}, "1000000 voters: 1 to 5 are possible"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_what_is_wrong_is_said(wrong: Any, said: str) -> None:
    whole = {
        "tanist-scenario": 1,
        "player": "model",
        "title": "",
        "property": None,
        "configuration": {"model": "partition", "budget": {"writes": 1}},
        "steps": ["write 1"],
    }
    given = {**whole, **wrong} if isinstance(wrong, dict) else wrong
    with pytest.raises(ValueError, match=said):
        list(moments(given))

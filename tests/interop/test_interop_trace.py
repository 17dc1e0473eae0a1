"""Runs before the public TLA+ models of KIP-966 and KIP-996, with TLC: it accepts them, and refuses those with a broken
rule.

Needs Java. TLC and the models are fetched once, or named by TANIST_TLC, TANIST_TLA_MODEL and TANIST_TLA_QUORUM_MODEL
(`tanist lab trace`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.lab.trace import quorum_runs, runs, searching, tlc
from tanist.lab.trace.live import of_processes_killed
from tanist.lab.trace.tlc import Tools

pytestmark = pytest.mark.interop

SEEDS = range(1, 4)
RECOVERED = (1, 3)
"""Seeds with losses after which a partition is recovered uncleanly."""
LIVE = 1
VIOLATING = ("last-known", "clean-mark", "eligible")
"""Broken rules of the extension that TLC finds at once."""
REFUSED = {
    "A5": "ReceiveAlterPartitionRequest",
    "A7": "FenceBroker",
    "A11": "SendAlterPartitionRequest",
    "A12": "SendAlterPartitionRequest",
    "A13": "ReceiveFetchRequest",
    "A16": "Recover",
    "A20": "ReceiveAlterPartitionRequest",
    "A22": "SendFetchRequest",
    "A23": "AnswerRead",
    "A24": "ReceiveFetchRequest",
    "A29": "FenceBroker",
    "A39": "Recover",
    "A39b": "AnswerLogInfo",
    "A39c": "Recover",
    "A40": "AnswerLogInfo",
    "A40b": "AnswerLogInfo",
    "torn-answers": "ReceiveFetchResponse",
}
"""Rule -> the first step that the model does not take when it is broken."""
REFUSED_WITH_LOSSES = {"A2": "RegisterFenced", "A27": "RegisterFenced", "A38": "Recover", "A42": "Recover"}
"""The same in the run of seed 1 with losses."""
QUORUM_SEEDS = (1, 5, 8)
QUORUM_REFUSED = {
    ("E-B", 1): "OwnLogCounts",
    ("E-G", 14): "HandleVoteRequest",
    ("E-H", 1): "ConcludePreVote",
    ("E-I", 1): "ConcludePreVote",
    ("E-M", 1): "RestartWithState",
}
"""Rule of the quorum and seed -> the first step that the model does not take when it is broken."""


def _named(variable: str) -> Path | None:
    return Path(os.environ[variable]) if variable in os.environ else None


@pytest.fixture(scope="module")
def tools() -> Tools:
    try:
        return tlc.find(_named("TANIST_TLA_MODEL"), _named("TANIST_TLC"))
    except tlc.Unavailable as reason:
        pytest.skip(str(reason))


def test_whole_runs_are_accepted_and_broken_rules_refused(tools: Tools) -> None:
    """In one process of TLC, as most of its time is its start."""
    traced = [runs.last_standing(), *(runs.of_seed(seed) for seed in SEEDS)]
    for rule in REFUSED:
        traced += runs.of_rule(rule, 1)
    for rule in REFUSED_WITH_LOSSES:
        traced += runs.of_rule(rule, 1, losses=True)
    judged = dict(zip((each.name for each in traced), tlc.judge([each.trace for each in traced], tools), strict=True))
    refused = {name: found.refused.action for name, found in judged.items() if found.refused is not None}
    expected = (REFUSED | REFUSED_WITH_LOSSES).items()
    assert refused == {f"{rule} broken, seed 1": action for rule, action in expected}


def test_of_a_torn_answer_the_model_takes_nothing(tools: Tools) -> None:
    """KAFKA-18723: a follower appends what the next leader has written over the answer that it is sent."""
    whole, broken = runs.of_rule("torn-answers", 1)
    accepted, refused = tlc.judge([whole.trace, broken.trace], tools)
    assert accepted.accepted
    assert refused.refused is not None
    assert refused.refused.node_id == 3
    assert refused.refused.source.startswith("Grown")
    follower_epoch, records = 1, refused.refused.reported["record_epochs"]
    assert max(records) > follower_epoch


def test_traces_go_on_through_unclean_recoveries(tools: Tools) -> None:
    traced = [runs.of_seed(seed, losses=True) for seed in RECOVERED]
    for each, judged in zip(traced, tlc.judge([each.trace for each in traced], tools), strict=True):
        actions = [step.action for step in each.trace.steps]
        assert judged.accepted, each.name
        assert actions.index("Recover") < len(actions) - 1
        assert not each.trace.end


def test_a_cluster_that_is_killed_is_accepted(tools: Tools) -> None:
    traced = of_processes_killed(LIVE)
    (judged,) = tlc.judge([traced.trace], tools)
    assert judged.accepted, judged
    assert not traced.trace.end
    actions = {step.action for step in traced.trace.steps}
    assert actions >= {"BrokerStart", "RegisterFenced", "ReceiveAlterPartitionRequest"}


@pytest.mark.parametrize("rule", VIOLATING)
def test_tlc_finds_what_a_broken_rule_of_the_extension_does(tools: Tools, rule: str) -> None:
    found = searching.run(searching.Search(replicas=2, broken=rule), tools)
    assert found.violated == searching.RULES[rule][1]


def test_runs_of_the_quorum_are_accepted_and_broken_rules_refused() -> None:
    try:
        tools = tlc.find(_named("TANIST_TLA_QUORUM_MODEL"), _named("TANIST_TLC"), tlc.KIP_996)
    except tlc.Unavailable as reason:
        pytest.skip(str(reason))
    traced = [quorum_runs.of_seed(seed) for seed in QUORUM_SEEDS]
    for rule, seed in QUORUM_REFUSED:
        traced += quorum_runs.of_rule(rule, seed)
    judged = tlc.judge_quorums([each.trace for each in traced], tools)
    refused = {
        run.name: found.refused.action for run, found in zip(traced, judged, strict=True) if found.refused is not None
    }
    assert refused == {f"{rule} broken, quorum {seed}": action for (rule, seed), action in QUORUM_REFUSED.items()}


def test_the_command(tools: Tools) -> None:
    where = ["--model", str(tools.folder), "--tlc", str(tools.jar)]
    ran = CliRunner().invoke(app, ["lab", "trace", *where, "--json"])
    assert ran.exit_code == 0
    (found,) = json.loads(ran.stdout)["traces"]
    assert found["accepted"]
    assert found["taken"] == found["steps"]
    ran = CliRunner().invoke(app, ["lab", "trace", "--mutate", "A11", *where])
    assert ran.exit_code == 0
    accepted, refused, event = ran.stdout.splitlines()
    assert accepted.startswith("ACCEPTED A11 whole")
    assert refused.startswith("REFUSED  A11 broken, seed 1: step ")
    assert event.lstrip().startswith("IsrProposed(")

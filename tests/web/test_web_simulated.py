"""The simulator as a source of the view: plays end as written here, and recording changes no run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tanist.lab.plays import PLAYS
from tanist.web.simulated.faults import ActionError
from tanist.web.simulated.recording import GROUPS, SEED, Request, catalogue, play
from tests.interpreters import play_seeds, test_digests

ENDS = {
    ("last-replica-standing", "on"): "150 records acknowledged, 10 not; a consumer reads 150: nothing is lost",
    ("last-replica-standing", "off"): "150 records acknowledged, 10 not; a consumer reads 100: 50 lost (101 to 150), "
    "50 of them in the salvage",
    ("high-watermark", "leader epochs"): "11 records acknowledged; a consumer reads 11: nothing is lost",
    ("high-watermark", "the high watermark"): "11 records acknowledged; a consumer reads 10: 1 lost (11), 1 of them in "
    "the salvage",
    ("divergence", "found"): "14 records acknowledged; a consumer reads 13: 1 lost (11), 1 of them in the salvage",
    ("divergence", "not found"): "14 records acknowledged; a consumer reads 13: 1 lost (12)",
    ("unclean-recovery", "Balanced"): "150 records acknowledged; a consumer reads 150: nothing is lost",
    ("unclean-recovery", "Aggressive"): "150 records acknowledged; a consumer reads 100: 50 lost (101 to 150), 50 of "
    "them in the salvage",
    ("unclean-recovery", "None"): "150 records acknowledged; a consumer reads 150: nothing is lost",
    ("jepsen", "Kafka of 2013"): "100 records acknowledged; a consumer reads 60: 40 lost (51 to 90), 40 of them in the "
    "salvage",
    ("jepsen", "with KIP-966"): "60 records acknowledged, 40 not; a consumer reads 60: nothing is lost",
}
"""(play, choice of its first setting) -> its last sentence."""

SALVAGED = {(2, 100, 150)}
"""(broker, from, to): broker 1 was cut off before the records that are lost."""


def recorded(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    play(json.dumps(request), lambda text: lines.extend(json.loads(text)))
    return lines


def last_sample(lines: list[dict[str, Any]]) -> dict[str, Any]:
    sample: dict[str, Any] = {}
    for line in lines:
        sample.update(line["set"])
        for key in line["gone"]:
            del sample[key]
    return sample


def chosen(name: str, choice: str) -> dict[str, Any]:
    return {"name": name, "settings": {PLAYS[name].settings[0].name: choice}}


@pytest.mark.parametrize(("name", "choice"), list(ENDS))
def test_a_play_ends_as_written(name: str, choice: str) -> None:
    lines = recorded(chosen(name, choice))
    stories = [line["set"]["story"] for line in lines if "story" in line["set"]]
    assert stories[-1]["text"] == ENDS[name, choice]
    assert [each["number"] for each in stories] == list(range(1, len(stories) + 1))
    assert last_sample(lines)["run"]["state"] == "ended"


def test_every_choice_of_every_play_has_an_ending() -> None:
    known = {(name, choice) for name, play in PLAYS.items() if not play.goes_on for choice in play.settings[0].choices}
    assert known == set(ENDS)
    assert [each["name"] for each in catalogue()] == [*PLAYS, SEED, GROUPS]


def test_a_look_has_what_the_rails_need() -> None:
    sample = last_sample(recorded(chosen("last-replica-standing", "off")))
    positions = sample["r/orders/0"]
    assert [each["broker"] for each in positions["replicas"]] == [1, 2, 3]
    assert {each["end"] for each in positions["replicas"]} == {100}
    assert positions["acknowledged"] == 100
    assert sample["p/orders/0"]["leader"] == 3
    assert {(each["broker"], each["start"], each["end"]) for each in sample["salvage"]} == SALVAGED
    records = sample["salvaged/orders/0"]
    assert [each["value"] for each in records["records"]] == [str(number) for number in range(101, 151)]
    assert records["count"] == 50
    assert sample["cluster"]["source"] == "simulator"
    assert [each["state"] for each in sample["cluster"]["nodes"]] == ["running"] * 4


def test_a_recorded_seed_has_its_digest() -> None:
    written = dict(line.split(" ", 1) for line in test_digests.written())
    for name, seed in ((SEED, 2), (GROUPS, 1)):
        run = last_sample(recorded({"name": name, "seed": seed}))["run"]
        kind = "chaos" if name == SEED else "groups"
        assert f"{run['events']} events {run['digest']}" == written[f"{kind}:{seed}"]


def test_a_node_that_truncates_its_metadata_log_behind_a_snapshot_hides_no_record() -> None:
    run = last_sample(recorded({"name": SEED, "seed": 7}))["run"]
    (line,) = play_seeds.lines(["chaos:7"])
    assert f"chaos:7 {run['events']} events {run['digest']}" == line


def test_the_same_request_gives_the_same_lines() -> None:
    request = {"name": "your-own", "actions": ["1500000.power-loss.1", "4000000.start.1"]}
    first = recorded(request)
    assert recorded(request) == first
    texts = [line["set"]["story"]["text"] for line in first if "story" in line["set"]]
    assert texts[2:] == [
        "node 1 loses its power, and what was not synced is gone",
        "node 1 is started",
    ]


def test_an_action_changes_nothing_before_it() -> None:
    plain = recorded({"name": "your-own"})
    broken = recorded({"name": "your-own", "actions": ["3000000.partition.2"]})
    until = [line for line in plain if line["at"] <= 3000]
    assert until == [line for line in broken if line["at"] <= 3000]
    assert plain != broken


def test_actions_of_every_kind_leave_a_seed_whole() -> None:
    kinds = ("pause.1", "partition.2", "slow.3", "disk-full.1", "stop.2", "crash.3", "start.3", "heal")
    actions = [f"{2_000_000 + 700_000 * number}.{kind}" for number, kind in enumerate(kinds)]
    run = last_sample(recorded({"name": SEED, "seed": 3, "actions": actions}))["run"]
    assert run["state"] == "ended"
    assert "violation" not in run or run["violation"] is None


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"name": "hamlet"}, "there is no play 'hamlet'"),
        ({"name": SEED, "seed": -1}, "-1 is no seed"),
        ({"name": "jepsen", "settings": {"cluster": "best"}}, "cluster is one of"),
        ({"name": "jepsen", "settings": {"size": "5"}}, "the play has no setting size"),
        ({"name": "your-own", "actions": ["1.explode.1"]}, "'1.explode.1' is no action"),
        ({"name": "your-own", "actions": ["1.crash"]}, "crash needs a node"),
        ({"name": "your-own", "actions": ["1.crash.9"]}, "there is no node 9"),
        ({"name": "your-own", "actions": ["1.heal"] * 201}, "more than 200 actions"),
    ],
)
def test_what_cannot_be_played_is_refused(request_: dict[str, Any], problem: str) -> None:
    run = last_sample(recorded(request_))["run"]
    assert run["state"] == "refused"
    assert problem in run["text"]


def test_an_action_is_the_same_as_text() -> None:
    wanted = Request.parse(json.dumps({"name": "your-own", "actions": ["7.heal", "3.crash.2"]}))
    assert [str(each) for each in wanted.actions] == ["3.crash.2", "7.heal"]
    kept = Request.parse(json.dumps({"name": "your-own", "actions": ["3.crash-page-cache.2", "5.cut-off.1"]}))
    assert [str(each) for each in kept.actions] == ["3.power-loss.2", "5.partition.1"]
    with pytest.raises(ActionError):
        Request.parse(json.dumps({"name": "your-own", "actions": ["x"]}))

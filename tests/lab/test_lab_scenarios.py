"""The behaviour scenarios, and the tests of those who play them.

`scenarios/apache.yaml` has Apache Kafka's facts, `scenarios/by_hand.yaml` what its rules make of further cases; each
kind, event and field of the schema is in one of them.
"""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.lab.scenarios import KINDS, Item, ScenarioFileError, Verdict, load, run
from tanist.lab.scenarios.cluster import EVENTS as CLUSTER_EVENTS
from tanist.lab.scenarios.deviations import ALL, DEFECT, ONE_RECORD
from tanist.lab.scenarios.replica import EVENTS as LEADER_EVENTS
from tanist.lab.scenarios.report import as_json, lines, summary

FOLDER = Path(__file__).parent / "scenarios"
ITEMS = load(sorted(FOLDER.glob("*.yaml")))
BY_ID = {item["id"]: item for item in ITEMS}

DEVIATIONS = {
    "pcb-drv-18": "62",
    "deviates-3": "3",
    "deviates-35": "35",
    "deviates-36": "36",
    "deviates-37": "37",
    "deviates-46": "38, 46",
    "deviates-47": "47, 159",
    "deviates-50": "50",
    "deviates-50-nobody": "50, 67",
    "deviates-54": "54, 156",
    "deviates-62": "62",
    "deviates-104": "104",
    "deviates-106": "106",
    "deviates-155": "155",
    "deviates-155-cancel": "155",
    "deviates-defect": "",
}
"""What is expected to differ, and by which fact. A scenario that stops differing fails, so the list cannot rot."""

by_id = pytest.mark.parametrize("name", list(BY_ID))


@by_id
def test_it_comes_out_as_in_apache_kafka(name: str) -> None:
    outcome = run(BY_ID[name])
    expected = Verdict.PASSED if name not in DEVIATIONS else Verdict.DEVIATES
    assert outcome.verdict is expected, lines([outcome])
    for difference in outcome.differences:
        assert difference.deviation is not None
        assert difference.deviation.fact == DEVIATIONS[name]


def test_every_kind_is_played() -> None:
    assert {item["kind"] for item in ITEMS} == set(KINDS)


def test_every_event_is_played() -> None:
    def played(kind: str) -> set[str]:
        return {name for item in ITEMS if item["kind"] == kind for event in item["events"] for name in event}

    assert played("controller") == set(CLUSTER_EVENTS)
    assert played("leader_partition") == set(LEADER_EVENTS)


# -- expectations -----------------------------------------------------------------------------------------------------

_EXPECTING = {
    "expect",
    "after",
    "expect_error",
    "expect_records",
    "records",
    "diverging",
    "entries",
    "queries",
    "previous_epoch",
    "latest_epoch",
    "hw",
    "ms",
    "body_hex",
    "framed_hex",
}
"""Names under which a scenario says what must come out."""


def _leaves(value: Any, path: tuple[Any, ...], *, expecting: bool) -> Iterator[tuple[Any, ...]]:
    """The paths to all single values that are expected."""
    if isinstance(value, dict):
        for name, each in value.items():
            inside = expecting or name in _EXPECTING
            if name not in ("note", "ask", "source", "response"):
                yield from _leaves(each, (*path, name), expecting=inside)
    elif isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
        for at, each in enumerate(value):
            yield from _leaves(each, (*path, at), expecting=expecting)
    elif expecting:
        yield path


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case list():
            return [*value, 99]
        case None:
            return 77
    hexadecimal = len(value) % 2 == 0 and set(value) <= set("0123456789abcdef")
    return f"{'1' if value[0] == '0' else '0'}{value[1:]}" if hexadecimal else "DUPLICATE_SEQUENCE_NUMBER"


@by_id
def test_each_expectation_is_held_against_something(name: str) -> None:
    """With any one of them changed, the scenario does not pass any more, nor deviate by the same rule as before."""
    item = BY_ID[name]
    paths = [path for path in _leaves(item, (), expecting=False) if not _has_no_place(item, path)]
    assert paths
    for path in paths:
        changed = copy.deepcopy(item)
        place = changed
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = _other(place[path[-1]])
        outcome = run(changed)
        assert outcome.verdict is not Verdict.PASSED, path
        assert name in DEVIATIONS or outcome.verdict is Verdict.FAILED, path


def _has_no_place(item: Item, path: tuple[Any, ...]) -> bool:
    """Input that goes by the name of an expectation: the high watermark that a follower begins with."""
    return item["kind"] in ("raft_follower", "produce_check") and path == ("hw",)


# -- what is not understood -------------------------------------------------------------------------------------------


@by_id
def test_nothing_is_overlooked(name: str) -> None:
    """A name that nobody knows fails the scenario, wherever it stands."""
    item = BY_ID[name]
    for path in _mappings(item, ()):
        changed = copy.deepcopy(item)
        place = changed
        for step in path:
            place = place[step]
        place["hue"] = 1
        outcome = run(changed)
        assert outcome.verdict is Verdict.FAILED or item.get("apache_defect"), path


def _mappings(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The paths to all mappings whose names are the schema's own (not ids, topics or settings)."""
    free = (
        "topics",
        "config",
        "static_config",
        "isr_epochs",
        "fetch_offsets",
        "last_caught_up",
        "contact_times",
        "dirs",
    )
    if isinstance(value, dict):
        if path and (path[-1] in free or path[-1] in ("features", "finalized", "other_dirs")):
            if path[-1] == "topics":
                for name, each in value.items():
                    yield from _mappings(each, (*path, name))
            return
        yield path
        for name, each in value.items():
            yield from _mappings(each, (*path, name))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _mappings(each, (*path, at))


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"id": "x", "kind": "dance"}, "there is no player for kind dance"),
        ({"id": "x", "kind": "builder", "state": 3}, "state is not a mapping but 3"),
        ({"id": "x", "kind": "builder", "state": {"replicas": "all"}}, "state.replicas is not a list of ids but 'all'"),
        ({"id": "x", "kind": "controller", "events": [{"dance": 1}]}, "there is no event dance"),
        ({"id": "x", "kind": "controller", "events": [{"fence": 1, "unfence": 2}]}, "is not one event but 2"),
        ({"id": "x", "kind": "controller"}, "events is missing"),
        ({"id": "x", "kind": "controller", "cluster": {"mv": "9.9-IV0"}, "events": []}, "9.9-IV0 is not known"),
        ({"id": "x", "kind": "controller", "events": [{"fence": [1]}]}, "it cannot be played"),
        ({"id": "x", "kind": "rpc_format", "message": "Nothing"}, "no golden bytes are known of Nothing"),
        ({"id": "x", "kind": "record_format", "record": "os"}, "there is no record os"),
        ({"id": "x", "kind": "raft_epoch", "request": {"type": "NOTHING"}}, "there is no request NOTHING"),
    ],
)
def test_what_cannot_be_played_fails_with_the_reason(item: Item, said: str) -> None:
    outcome = run(item)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.reason is not None
    assert said in outcome.reason
    assert outcome.unknown_kind == (item["kind"] == "dance")


def test_a_defect_of_apaches_that_we_share_passes() -> None:
    item = {**BY_ID["hand-builder-after"], "apache_defect": True}
    assert run(item).verdict is Verdict.PASSED
    item["expect"] = {"record": None}
    outcome = run(item)
    assert outcome.verdict is Verdict.DEVIATES
    assert outcome.differences[0].deviation is DEFECT


def test_a_difference_beside_a_deviation_fails() -> None:
    item = copy.deepcopy(BY_ID["deviates-35"])
    item["expect"]["record"]["leader"] = 3
    assert run(item).verdict is Verdict.FAILED


def test_a_deviation_of_one_partition_excuses_no_other() -> None:
    item = copy.deepcopy(BY_ID["deviates-47"])
    item["topics"]["bar"] = {"assignments": [[1, 2]]}
    assert run(item).verdict is Verdict.DEVIATES
    item["events"].append({"expect": {"bar-0": {"isr": [2]}}})
    assert run(item).verdict is Verdict.FAILED


# -- the table of deviations ------------------------------------------------------------------------------------------


def test_each_deviation_has_a_scenario() -> None:
    """But for what the schema has no event for; `tests/interop/controllers` has."""
    assert {deviation.fact for deviation in (*ALL, DEFECT)} - set(DEVIATIONS.values()) == {ONE_RECORD.fact}


# -- files and reports ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no list named `scenarios`"),
        ("- 1", "no list named `scenarios`"),
        ("scenarios: {}", "no list named `scenarios`"),
        ("scenarios: [", "is not YAML"),
        ("scenarios: [1]", "scenario 1 is not a mapping"),
        ("scenarios: [{kind: log}]", "scenario 1 has no id"),
        ("scenarios: [{id: a, kind: log}, {id: b}]", "scenario 2 (b) has no kind"),
        ("scenarios: [{id: a, kind: log}, {id: a, kind: log}]", "scenario a is in it twice"),
        ("scenarios: [{id: 7, kind: log}]", "scenario 1 has no id"),
        ("scenarios: !!python/object/apply:os.getcwd []", "is not YAML"),
    ],
)
def test_a_malformed_file(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioFileError, match=r"broken\.yaml") as error:
        load([path])
    assert said in str(error.value)


def test_an_id_in_two_files(tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text("scenarios: [{id: a, kind: log}]")
    with pytest.raises(ScenarioFileError, match=r"two\.yaml: scenario a is in .*one\.yaml twice"):
        load([tmp_path / "one.yaml", tmp_path / "two.yaml"])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScenarioFileError, match="No such file"):
        load([tmp_path / "nothing.yaml"])


def test_reports() -> None:
    passed, deviating = run(BY_ID["hand-builder-after"]), run(BY_ID["deviates-47"])
    failed, unknown = run({**BY_ID["ra-01"], "expect": {"adding": [7]}}), run({"id": "x", "kind": "dance"})
    assert summary([passed]) == "1 passed, 0 failed"
    assert summary([passed, deviating, failed, unknown]) == "1 passed, 2 failed, 1 deviate"
    assert lines([passed]) == []
    assert lines([deviating, failed, unknown]) == [
        "FAILED    ra-01  adding: expected [7], saw []",
        "FAILED    x  there is no player for kind dance",
        "DEVIATES  deviates-47  rule 47, 159: an unregistered broker leaves the ELR | foo-0.elr: expected [3], saw []",
    ]
    reported = as_json([passed, deviating, failed, unknown])
    assert (reported["passed"], reported["failed"], reported["deviates"]) == (1, 2, 1)
    assert reported["scenarios"][1]["differences"] == [
        {
            "what": "foo-0.elr",
            "expected": "[3]",
            "seen": "[]",
            "fact": "47, 159",
            "rule": "an unregistered broker leaves the ELR",
        }
    ]
    assert reported["scenarios"][3]["reason"] == "there is no player for kind dance"


def test_the_product_needs_no_test_library() -> None:
    code = "import sys, tanist.lab.scenarios; print({'pytest', 'hypothesis', 'yaml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

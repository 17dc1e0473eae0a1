"""`tanist reassign` and `topics alter --replica-assignment` on a cluster of four, and the files they read and write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tanist.cli.commands.reassign_file import assignment_text, read_assignment, read_log_dirs, read_topics
from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, free_port, run

Tanist = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    run("up", "--detach", "--brokers", "4", "--port", str(free_port()), *FEW_PARTITIONS, folder=folder)
    yield folder
    run("down", folder=folder)


@pytest.fixture
def tanist(folder: Path) -> Tanist:
    return lambda *arguments, **options: run(*arguments, folder=folder, **options)


def replicas(tanist: Tanist, topic: str) -> list[list[int]]:
    return [part["replicas"] for part in tanist("topics", "describe", topic, "--json")[0]["partitions"]]


def test_plan_apply_list_and_back(tanist: Tanist, tmp_path: Path) -> None:
    tanist("topics", "create", "moved", "--replica-assignment", "1:2:3,2:3:1,3:1:2,1:2:3")
    tanist("produce", "moved", stdin="".join(f"{number}\n" for number in range(1_000)))
    proposed = tanist("reassign", "plan", "--topic", "moved", "--json")
    assert sum(4 in part["replicas"] for part in proposed["partitions"]) == 3
    assert proposed["partitions"][0]["log_dirs"] == ["any", "any", "any"]
    file, back = tmp_path / "move.json", tmp_path / "back.json"
    file.write_text(json.dumps(proposed))
    assert "would change" in tanist("reassign", "plan", "--topic", "moved")
    reported = tanist("reassign", "apply", str(file), "--save-current", str(back), "--wait", "30")
    assert reported == "4 partitions moved\n"
    assert replicas(tanist, "moved") == [part["replicas"] for part in proposed["partitions"]]
    assert {row["state"] for row in tanist("reassign", "list", str(file), "--json")} == {"complete"}
    assert tanist("reassign", "list") == "nothing is under way\n"
    assert {row["state"] for row in tanist("reassign", "list", str(back), "--json")} == {"complete", "other"}
    assert tanist("reassign", "apply", str(back), "--wait", "30", "--json") == {
        "started": 4, "refused": [], "unfinished": 0,
    }  # fmt: skip
    assert replicas(tanist, "moved") == [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]]
    counts = [len(tanist("consume", "moved", "--partition", str(n), "--from-beginning", "--timeout", "1").split("\n"))
              for n in range(4)]  # fmt: skip
    assert min(counts) > 200


@pytest.mark.long
def test_what_is_under_way_is_shown_and_taken_back(tanist: Tanist, tmp_path: Path) -> None:
    tanist("topics", "create", "stuck", "--replica-assignment", "1:2,2:3")
    tanist("produce", "stuck", stdin="one\ntwo\n")
    tanist("pause", "4")
    try:
        reported = tanist("topics", "alter", "stuck", "--replica-assignment", "1:4,4:3")
        assert reported == "altered stuck; `tanist reassign list` shows how far its replicas have moved\n"
        rows = tanist("reassign", "list", "--json")
        assert [(row["partition"], row["adding"], row["removing"]) for row in rows] == [(0, [4], [2]), (1, [4], [2])]
        assert "stuck-0    moving  " in tanist("reassign", "list")
        file = tmp_path / "wait.json"
        file.write_text(assignment_text({("stuck", 0): (1, 4)}))
        late = tanist("reassign", "apply", str(file), "--wait", "0.1", code=3)
        assert late == "1 of 1 partition has not moved yet\n"
        assert tanist("reassign", "cancel", str(file)) == "cancelled 1 reassignment\n"
        assert tanist("reassign", "cancel", "--all", "--json") == {"cancelled": 1, "refused": []}
        assert tanist("reassign", "cancel", "--all") == "nothing is under way\n"
        # As in Kafka the order that was asked for stays.
        assert wait_until(lambda: replicas(tanist, "stuck") == [[1, 2], [3, 2]], 120)
    finally:
        tanist("resume", "4")


def test_a_topic_is_moved_by_alter_alone(tanist: Tanist) -> None:
    tanist("topics", "create", "alone", "--replica-assignment", "1:2,2:3")
    tanist("topics", "alter", "alone", "--replica-assignment", "3:4,4:1")
    assert wait_until(lambda: replicas(tanist, "alone") == [[3, 4], [4, 1]], 120)
    reported = tanist("topics", "alter", "alone", "--replica-assignment", "3:4", code=1)
    assert "alone has 2 partitions, but --replica-assignment has 1" in reported
    assert "INVALID_REPLICA_ASSIGNMENT" in tanist("topics", "alter", "alone", "--replica-assignment", "3:9,4:1", code=1)
    tanist("topics", "alter", "alone", "--partitions", "3", "--replica-assignment", "1:2")
    assert wait_until(lambda: replicas(tanist, "alone")[2:] == [[1, 2]], 120)


def test_what_cannot_be_done_is_said(tanist: Tanist, tmp_path: Path) -> None:
    assert "give one of --topic" in tanist("reassign", "plan", code=2)
    assert "there is no topic nowhere" in tanist("reassign", "plan", "--topic", "nowhere", code=1)
    tanist("topics", "create", "planned", "--replica-assignment", "1:2:3")
    reported = tanist("reassign", "plan", "--topic", "planned", "--broker-list", "1,7", code=1)
    assert "there is no broker 7 in the cluster: it has 1,2,3,4" in reported
    reported = tanist("reassign", "plan", "--topic", "planned", "--broker-list", "1,2", code=1)
    assert "3 replicas of a partition need as many brokers, and 2 are named" in reported
    file = tmp_path / "none.json"
    file.write_text(assignment_text({("planned", 5): (1, 2)}))
    assert "there is no partition planned-5" in tanist("reassign", "apply", str(file), code=1)
    file.write_text(assignment_text({("planned", 0): (1, 9)}))
    assert "refused: planned-0: INVALID_REPLICA_ASSIGNMENT" in tanist("reassign", "apply", str(file), code=1)
    assert "give FILE or --all" in tanist("reassign", "cancel", code=2)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "is not JSON"),
        ("[]", "has no partitions"),
        ('{"partitions": []}', "has no partitions"),
        ('{"version": 2, "partitions": [{}]}', "is of version 2"),
        ('{"partitions": [{"partition": 0, "replicas": [1]}]}', "partitions\\[0\\]: topic is not a name"),
        ('{"partitions": [{"topic": "t", "partition": "0", "replicas": [1]}]}', "partition is not a number"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "replicas is not a list of broker ids"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "names a broker twice"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["data"]}]}',
            'log_dirs is not a list of absolute paths, or "any"',
        ),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any"]}]}',
            "there are 1 log_dirs for 2 replicas",
        ),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]},'
            ' {"topic": "t", "partition": 0, "replicas": [2]}]}',
            "t-0 is listed twice",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, content: str, complaint: str) -> None:
    file = tmp_path / "move.json"
    file.write_text(content)
    with pytest.raises(click.ClickException, match=complaint):
        read_assignment(file)


def test_files_are_read_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "move.json"
    assignment = {("b", 0): (3, 1), ("a", 10): (1,), ("a", 2): (2, 3)}
    file.write_text(assignment_text(assignment))
    assert read_assignment(file) == assignment
    assert read_log_dirs(file) == {}
    places = {("b", 0, 1): "/data/2", ("a", 2, 2): "/data/1"}
    file.write_text(assignment_text(assignment, places))
    assert read_assignment(file) == assignment
    assert read_log_dirs(file) == places
    file.write_text('{"version": 1, "topics": [{"topic": "a"}, {"topic": "b"}]}')
    assert read_topics(file) == ["a", "b"]

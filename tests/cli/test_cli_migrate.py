"""`tanist migrate` on a cluster of ours, whose nodes pass for Apache Kafka until they have been started again.

The operator is played by this test: it acts when it is shown a step. `tests/interop/migrate` does the same with
Apache Kafka's nodes.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.cli.app import app
from tanist.cli.output.migration import Instructions, Progress
from tanist.client.security import ClientSecurity
from tanist.runtime.client.admin import ConfigEntry
from tanist.runtime.migration import nodes, roll
from tanist.runtime.migration.nodes import APACHE, TANIST, Node
from tanist.runtime.migration.roll import Step
from tests.cli.cli_rig import FEW_PARTITIONS, free_port, run
from tests.cli.cli_rig import TANIST as TANIST_COMMAND

Tanist = Callable[..., Any]

UNSAFE = 4
LATE = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    run("up", "--detach", "--port", str(free_port()), *FEW_PARTITIONS, folder=folder)
    run("topics", "create", "kept", "--partitions", "3", "--replication-factor", "3", "--config",
        "min.insync.replicas=2", folder=folder)  # fmt: skip
    for _ in range(4):
        run("produce", "kept", stdin="".join(f"{number}\n" for number in range(200)), folder=folder)
    yield folder
    run("down", folder=folder)


@pytest.fixture
def tanist(folder: Path) -> Tanist:
    return lambda *arguments, **options: run(*arguments, folder=folder, **options)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The ids of the nodes that do not pass for Apache Kafka any more."""
    ids: set[int] = set()
    described = nodes.node_settings

    def disguised(node: Node, security: ClientSecurity, **more: Any) -> Mapping[str, ConfigEntry] | None:
        found = described(node, security, **more)
        if found is None or node.node_id in ids:
            return found
        return {name: each for name, each in found.items() if not name.startswith(("tanist.", "unclean.recovery."))}

    monkeypatch.setattr(nodes, "node_settings", disguised)
    monkeypatch.setattr(roll, "node_settings", disguised)
    return ids


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[int], None]], None]]:
    """Set what the operator does when a step is shown; it is done meanwhile."""
    acts: list[Callable[[int], None]] = []
    threads: list[threading.Thread] = []
    show = Progress.step

    def shown(self: Progress, step: Step, how: Instructions) -> None:
        show(self, step, how)
        thread = threading.Thread(target=acts[-1], args=(step.node.node_id,))
        threads.append(thread)
        thread.start()

    monkeypatch.setattr(Progress, "step", shown)
    yield acts.append
    for thread in threads:
        thread.join()


def lines(*arguments: str, folder: Path, code: int = 0) -> list[dict[str, Any]]:
    """The events of `next --json` and `back --json`."""
    done = CliRunner().invoke(app, ["migrate", *arguments, "--json", "--data", str(folder)])
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def act(command: str, node_id: int, folder: Path) -> None:
    """A command of the operator's, in a process: two commands in this one would take each other's output."""
    subprocess.run([*TANIST_COMMAND, command, str(node_id), "--data", str(folder)], check=True, capture_output=True)


def problems(*arguments: str, folder: Path) -> dict[str, str]:
    """Those of a check that must find some."""
    done = CliRunner().invoke(app, ["migrate", "check", *arguments, "--json", "--data", str(folder)])
    assert done.exit_code == UNSAFE, done.output
    found = json.loads(done.stdout)
    assert not found["safe"]
    return {problem["kind"]: problem["message"] for problem in found["problems"]}


@pytest.mark.long
def test_every_node_is_moved_in_order_and_the_active_controller_last(
    tanist: Tanist, folder: Path, changed: set[int], operator: Callable[[Callable[[int], None]], None]
) -> None:
    plan = tanist("migrate", "plan", "--json")
    order = [step["node"] for step in plan["steps"]]
    assert sorted(order) == [1, 2, 3]
    assert order[-1] == plan["controller"]
    assert {node["software"] for node in plan["nodes"]} == {APACHE}
    assert not plan["refused"]
    assert plan["accept"] == []

    def restart(node_id: int) -> None:
        act("stop", node_id, folder)
        changed.add(node_id)
        act("start", node_id, folder)

    operator(restart)
    for number, node_id in enumerate(order, 1):
        assert tanist("migrate", "check", "--json")["node"] == node_id
        events = lines("next", "--properties", "/none/{node}.properties", "--stop", "systemctl stop kafka@{node}",
                       folder=folder)  # fmt: skip
        kinds = [event["event"] for event in events]
        assert kinds[:2] == ["checked", "step"]
        assert kinds[-3:] == ["in-sync", "checked", "done"]
        assert "back" in kinds
        assert events[0]["compared"]["partitions"] == 3
        assert events[1]["stop"] == f"systemctl stop kafka@{node_id}"
        assert events[1]["start"] == f"tanist serve /none/{node_id}.properties"
        assert events[1]["log_dirs"] == str(folder / f"node-{node_id}" / "data")
        assert (events[-1]["node"], events[-1]["changed"]) == (node_id, number)
    assert events[-1]["next"] is None
    assert tanist("migrate", "next") == f"all nodes run {TANIST}: nothing is left to do\n"
    assert "all nodes run tanist" in tanist("migrate", "plan")


def test_the_old_software_is_noticed_and_waited_out(
    folder: Path,
    changed: set[int],
    operator: Callable[[Callable[[int], None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noticed = threading.Event()
    report = Progress.event

    def reported(self: Progress, kind: str, message: str) -> None:
        report(self, kind, message)
        if kind == roll.WRONG_SOFTWARE:
            noticed.set()

    monkeypatch.setattr(Progress, "event", reported)

    def restart_twice(node_id: int) -> None:
        act("stop", node_id, folder)
        act("start", node_id, folder)
        assert noticed.wait(60)
        act("stop", node_id, folder)
        changed.add(node_id)
        act("start", node_id, folder)

    operator(restart_twice)
    events = lines("next", "--node", "2", folder=folder)
    states = [event for event in events if event["event"] in ("gone", "wrong-software", "back")]
    assert [event["event"] for event in states] == ["gone", "wrong-software", "gone", "back"]
    assert states[1]["message"] == f"node 2 is back, and still runs {APACHE}"


def test_a_node_that_is_down_is_the_step_under_way(
    tanist: Tanist, folder: Path, changed: set[int], operator: Callable[[Callable[[int], None]], None]
) -> None:
    tanist("stop", "3")
    tanist("wait", "--topic", "kept", "--isr", "2")
    try:
        found = problems(folder=folder)
        assert set(found) == {"down", "sync"}
        assert found["down"] == "node 3 (broker and controller) does not answer"

        def start(node_id: int) -> None:
            changed.add(node_id)
            act("start", node_id, folder)

        operator(start)
        events = lines("next", folder=folder)
    finally:
        tanist("start", "3", code=None)
        tanist("wait", "--topic", "kept", "--isr", "3")
    assert (events[0]["event"], events[0]["node"], events[0]["under_way"]) == ("step", 3, True)
    assert events[-1]["event"] == "done"


def test_a_node_with_the_only_replica_needs_to_be_accepted(tanist: Tanist, folder: Path, changed: set[int]) -> None:
    tanist("topics", "create", "alone", "--replica-assignment", "2")
    try:
        assert problems("--node", "2", folder=folder) == {
            "unavailable": "1 partition in sync on node 2 only: alone-0",
        }
        (event,) = lines("next", "--node", "2", folder=folder, code=UNSAFE)
        assert event["problems"][0]["message"].endswith("(--accept unavailable)")
        assert tanist("migrate", "check", "--node", "3", "--json")["safe"]
        events = lines("next", "--node", "2", "--accept", "unavailable", "--timeout", "0", folder=folder, code=LATE)
        assert [each["event"] for each in events] == ["checked", "step", "late"]
    finally:
        tanist("topics", "delete", "alone")


def test_a_replica_with_another_byte_is_found(tanist: Tanist, folder: Path, changed: set[int]) -> None:
    tanist("topics", "create", "rotten", "--replica-assignment", "1:2:3")
    tanist("produce", "rotten", stdin="one\n")
    tanist("produce", "rotten", stdin="two\n")
    try:
        tanist("wait", "--topic", "rotten", "--isr", "3")
        tanist("stop", "3")
        segment = folder / "node-3" / "data" / "rotten-0" / "00000000000000000000.log"
        data = bytearray(segment.read_bytes())
        data[data.index(b"two")] ^= 1
        segment.write_bytes(data)
        tanist("start", "3")
        for topic in ("rotten", "kept"):  # nothing is compared while a partition is not in sync
            tanist("wait", "--topic", topic, "--isr", "3")
        found = problems(folder=folder)["bytes"]
        assert "rotten-0 at offset 1" in found
    finally:
        tanist("topics", "delete", "rotten")


def test_a_file_of_another_node_is_refused_before_anything_is_stopped(
    tanist: Tanist, folder: Path, changed: set[int], tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text((folder / "node-1" / "server.properties").read_text())
    (event,) = lines("next", "--node", "2", "--properties", str(file), folder=folder, code=UNSAFE)
    assert event["problems"][0]["kind"] == "properties"
    assert "is of node 1" in event["problems"][0]["message"]
    events = lines("next", "--node", "1", "--properties", str(file), "--timeout", "0", folder=folder, code=LATE)
    assert events[1]["start"] == f"tanist serve {file}"
    file.write_text(file.read_text().replace("node-1/data", "node-9/data"))
    (event,) = lines("next", "--node", "1", "--properties", str(file), folder=folder, code=UNSAFE)
    assert "log.dirs" in event["problems"][0]["message"]


def test_a_node_that_is_not_left_is_a_mistake(tanist: Tanist, changed: set[int]) -> None:
    changed |= {1, 2, 3}
    assert "node 7 is not among those that are left: none" in tanist("migrate", "check", "--node", "7", code=2)

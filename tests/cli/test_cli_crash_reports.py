"""An unexpected exception in a node that is a process: what is left of the node, and what names the cause.

The rows of docs/operations.md, "When a node meets an unexpected error", on a real cluster. Which state may be torn, and
what becomes of it, is tested in virtual time (`tests/broker/test_unexpected.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.log.checkpoints import CLEAN_SHUTDOWN
from tanist.runtime.client.client import Client
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster import layout
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until
from tanist.wire.batch import NewRecord
from tests.cli.cli_rig import FEW_PARTITIONS, free_port, run
from tests.planting import PLACES, TRIGGERS, trigger

PATIENCE_S = 240
SETTINGS = {
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "800",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.request.timeout.ms": "800",
    "replica.lag.time.max.ms": "1500",
    "replica.socket.timeout.ms": "1500",
}
HANDLER = "tanist.broker.api.produce:Produce._append"
APPEND = "tanist.log.appender:Appender._append_found"
TRUNCATION = "tanist.log.log:Log._cut"
COORDINATOR = "tanist.broker.coordinator_runtime.loading:Loader._replay"
CONTROLLER = "tanist.broker.metadata.quorum:MetadataQuorum.append"
IMAGE = "tanist.broker.metadata.view:MetadataView.apply"
TURN = "tanist.broker.turn:Turn._complete_fetches"

Tanist = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("cluster")
    places = (HANDLER, APPEND, TRUNCATION, COORDINATOR, CONTROLLER, IMAGE, TURN)
    path = (str(ROOT / "tests" / "runtime" / "planted"), str(ROOT), os.environ.get("PYTHONPATH", ""))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        environment.setenv(PLACES, " ".join(places))
        environment.setenv(TRIGGERS, str(home))
        settings = [part for item in SETTINGS.items() for part in ("--config", "=".join(item))]
        run("up", "--detach", "--port", str(free_port()), *FEW_PARTITIONS, *settings, folder=home / "data")
        yield home / "data"
    run("down", folder=home / "data")


@pytest.fixture
def tanist(folder: Path) -> Tanist:
    return lambda *arguments, **options: run(*arguments, folder=folder, **options)


@pytest.fixture
def plant(folder: Path) -> Callable[[str], Path]:
    def planted(place: str) -> Path:
        path = Path(trigger(str(folder.parent), place))
        path.touch()
        return path

    return planted


def topic(tanist: Tanist, name: str, *options: str) -> None:
    tanist("topics", "create", name, "--replica-assignment", "3:1:2", *options)
    assert wait_until(lambda: is_whole(tanist, name), PATIENCE_S)


def is_whole(tanist: Tanist, name: str) -> bool:
    (described,) = tanist("topics", "describe", name, "--json")
    state = described["partitions"][0]
    return bool(state["leader"] > 0) and sorted(state["isr"]) == sorted(state["replicas"])


def crashed(folder: Path) -> list[int]:
    return [node.node_id for node in load_existing(folder).nodes if not node.alive]


def expect_crash(tanist: Tanist, folder: Path, name: str) -> None:
    """One node has ended, says why, and comes back as one that was killed."""
    assert wait_until(lambda: len(crashed(folder)) == 1, PATIENCE_S)
    (node_id,) = crashed(folder)
    (data,) = layout.log_directories(folder, node_id)
    report = max(Path(data).glob("crash-report-*.txt"))
    text = report.read_text()
    assert "IndexError: planted" in text
    assert "Traceback" in text
    assert "tanist " in text
    assert "events:" in text
    assert not (Path(data) / CLEAN_SHUTDOWN).exists()
    status = tanist("status")
    assert f"node {node_id} has crashed: unexpected error in " in " ".join(status.split())
    assert str(report) in status.replace("\n", "").replace(" ", "")
    assert str(report) in tanist("logs", str(node_id), "--level", "ERROR")
    tanist("start", str(node_id))
    assert wait_until(lambda: is_whole(tanist, name), PATIENCE_S)


def expect_report(tanist: Tanist, folder: Path, path: Path, where: str) -> None:
    """The node has reported it, and goes on."""
    assert wait_until(lambda: not path.exists(), PATIENCE_S)
    assert wait_until(lambda: f"unexpected error in {where}: IndexError('planted')" in tanist("logs"), PATIENCE_S)
    assert crashed(folder) == []


def send(folder: Path, name: str, value: bytes, *, acks: int = -1, node_id: int = 3, timeout_s: float = 60.0) -> int:
    address = ("127.0.0.1", load_existing(folder).node(node_id).broker_port)
    with Client([address], timeout_s=20.0) as client:
        return Producer(client, idempotent=False, acks=acks).send(
            name, 0, [NewRecord(value=value)], timeout_s=timeout_s
        )


STAMPED = ("--config", "message.timestamp.type=LogAppendTime")
"""So that an append takes the general path."""


def test_a_request_is_refused(tanist: Tanist, folder: Path, plant: Callable[[str], Path]) -> None:
    topic(tanist, "request", *STAMPED)
    path = plant(HANDLER)
    tanist("produce", "request", stdin="one\n", code=None)
    expect_report(tanist, folder, path, "a handler of PRODUCE")
    assert "1 record sent" in tanist("produce", "request", stdin="two\n")


def test_a_controller_resigns(tanist: Tanist, folder: Path, plant: Callable[[str], Path]) -> None:
    path = plant(CONTROLLER)
    tanist("topics", "create", "refused", code=None)
    expect_report(tanist, folder, path, "the controller")
    assert wait_until(lambda: tanist("status", "--json")["controller"] is not None, PATIENCE_S)
    topic(tanist, "created")


def test_a_coordinator_reads_its_log_anew(tanist: Tanist, folder: Path, plant: Callable[[str], Path]) -> None:
    topic(tanist, "read")
    tanist("produce", "read", stdin="one\n")
    assert "one" in tanist("consume", "read", "--group", "g", "--from-beginning", "--max-messages", "1")
    path = plant(COORDINATOR)
    (described,) = tanist("topics", "describe", "__consumer_offsets", "--json")
    leader = described["partitions"][0]["leader"]
    tanist("crash", str(leader))
    assert wait_until(lambda: not path.exists(), PATIENCE_S)
    tanist("start", str(leader))
    assert wait_until(lambda: "is read anew, after an unexpected error" in tanist("logs"), PATIENCE_S)
    tanist("produce", "read", stdin="two\n")
    assert "two" in tanist("consume", "read", "--group", "g", "--max-messages", "1")


@pytest.mark.parametrize("place", [APPEND, TURN])
def test_an_append_or_the_end_of_its_turn_ends_the_process(
    tanist: Tanist, folder: Path, plant: Callable[[str], Path], place: str
) -> None:
    name = f"append-{[APPEND, TURN].index(place)}"
    topic(tanist, name, *STAMPED)
    assert send(folder, name, b"before") == 0
    plant(place)
    tanist("produce", name, stdin="one\n")  # another leader takes it
    expect_crash(tanist, folder, name)
    lines = tanist("consume", name, "--from-beginning", "--max-messages", "2").splitlines()
    assert lines[:2] == ["before", "one"]


def test_an_image_that_cannot_go_on_ends_the_process(
    tanist: Tanist, folder: Path, plant: Callable[[str], Path]
) -> None:
    topic(tanist, "image")
    plant(IMAGE)
    tanist("topics", "create", "image2")
    expect_crash(tanist, folder, "image")


def test_a_truncation_ends_the_process(tanist: Tanist, folder: Path, plant: Callable[[str], Path]) -> None:
    topic(tanist, "cut")
    tanist("produce", "cut", stdin="before\n")
    tanist("partition", "3")
    assert send(folder, "cut", b"lost", acks=1) >= 1

    def led_elsewhere() -> bool:
        (described,) = tanist("topics", "describe", "cut", "--json")
        return bool(described["partitions"][0]["leader"] in (1, 2))

    assert wait_until(led_elsewhere, PATIENCE_S)
    tanist("produce", "cut", stdin="after\n")
    plant(TRUNCATION)
    tanist("heal")
    expect_crash(tanist, folder, "cut")
    lines = tanist("consume", "cut", "--from-beginning", "--max-messages", "2").splitlines()
    assert lines[:2] == ["before", "after"]

"""Faults on a real cluster, by what clients see of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.client.positions import LATEST
from tanist.runtime.client.client import Client, KafkaError, Unreachable
from tanist.runtime.client.records import Producer, list_offset
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until
from tanist.runtime.faults.settings import FaultSet, load
from tanist.wire.batch import NewRecord
from tanist.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from tanist.wire.messages.describe_log_dirs_response import DescribeLogDirsResponse
from tests.cli.cli_rig import FEW_PARTITIONS, free_port, run

PATIENCE_S = 120
SETTINGS = {
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "800",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.request.timeout.ms": "800",
    "replica.lag.time.max.ms": "1500",
    "replica.socket.timeout.ms": "1500",
}

Tanist = Callable[..., Any]
Connect = Callable[..., Client]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    settings = [part for item in SETTINGS.items() for part in ("--config", "=".join(item))]
    run("up", "--detach", "--port", str(free_port()), "--log-dirs", "2", *FEW_PARTITIONS, *settings, folder=folder)
    yield folder
    run("down", folder=folder)
    assert load_existing(folder).running == []


@pytest.fixture
def tanist(folder: Path) -> Iterator[Tanist]:
    """The command; afterwards all is mended."""
    yield lambda *arguments, **options: run(*arguments, folder=folder, **options)
    run("heal", folder=folder)
    for node in load_existing(folder).nodes:
        if not node.alive:
            run("start", str(node.node_id), folder=folder)


@pytest.fixture
def at(folder: Path) -> Iterator[Connect]:
    """A client that knows one broker to begin with."""
    clients: list[Client] = []

    def connect(node_id: int, timeout_s: float = 20.0) -> Client:
        address = ("127.0.0.1", load_existing(folder).node(node_id).broker_port)
        clients.append(Client([address], timeout_s=timeout_s))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


def partition_of(tanist: Tanist, topic: str) -> dict[str, Any]:
    (described,) = tanist("topics", "describe", topic, "--json")
    found: dict[str, Any] = described["partitions"][0]
    return found


def is_in_sync(tanist: Tanist, topic: str) -> Callable[[], bool]:
    def in_sync() -> bool:
        state = partition_of(tanist, topic)
        return bool(state["leader"] > 0 and sorted(state["isr"]) == sorted(state["replicas"]))

    return in_sync


def consumed(tanist: Tanist, topic: str, count: int) -> list[str]:
    lines: list[str] = tanist("consume", topic, "--from-beginning", "--max-messages", str(count)).splitlines()
    return lines[:-1]


def record(value: bytes) -> list[NewRecord]:
    return [NewRecord(value=value)]


def controller_of(tanist: Tanist) -> int | None:
    found: int | None = tanist("status", "--json")["controller"]
    return found


# -- links


def test_a_leader_that_is_cut_off_loses_its_leadership(tanist: Tanist, at: Connect) -> None:
    """It does not know, and may even acknowledge acks=1; but nothing that acks=all has acknowledged is lost."""
    tanist("topics", "create", "cut", "--replica-assignment", "3:1:2")
    assert wait_until(is_in_sync(tanist, "cut"), PATIENCE_S)
    tanist("produce", "cut", stdin="before\n")
    assert "no packet gets from 3 to 1,2, nor the other way" in tanist("partition", "3")
    isolated = at(3)
    with pytest.raises((KafkaError, Unreachable)) as refused:
        Producer(isolated, idempotent=False, request_timeout_ms=300).send("cut", 0, record(b"acks=all"), timeout_s=0.0)
    assert "REQUEST_TIMED_OUT" in str(refused.value) or "NOT_ENOUGH_REPLICAS" in str(refused.value)
    assert Producer(isolated, idempotent=False, acks=1).send("cut", 0, record(b"acks=1")) >= 1
    assert wait_until(lambda: partition_of(tanist, "cut")["leader"] in (1, 2), PATIENCE_S)
    tanist("produce", "cut", stdin="while it was away\n")
    assert wait_until(lambda: sorted(partition_of(tanist, "cut")["isr"]) == [1, 2], PATIENCE_S)
    assert isolated.metadata(["cut"]).topics["cut"].partitions[0].leader == 3  # so it believes
    assert tanist("heal") == "healed; no faults are set now\n"
    assert wait_until(is_in_sync(tanist, "cut"), PATIENCE_S)
    assert consumed(tanist, "cut", 2) == ["before", "while it was away"]
    with at(1) as anyone:
        assert list_offset(anyone, "cut", 0, LATEST) == 2


@pytest.mark.parametrize(
    "sides",
    [pytest.param(("3",), id="is-not-heard"), pytest.param(("1,2|3",), id="hears-nothing", marks=pytest.mark.slow)],
)
def test_one_way_is_enough_to_lose_the_leadership(tanist: Tanist, sides: tuple[str, ...]) -> None:
    topic = f"one-way-{len(sides[0])}"
    tanist("topics", "create", topic, "--replica-assignment", "3:1:2")
    assert wait_until(is_in_sync(tanist, topic), PATIENCE_S)
    tanist("produce", topic, stdin="before\n")
    (fault,) = tanist("partition", *sides, "--one-way", "--json")["faults"]
    assert fault["kind"] == "partition-one-way"
    assert wait_until(lambda: partition_of(tanist, topic)["leader"] in (1, 2), PATIENCE_S)
    tanist("produce", topic, stdin="while\n")
    tanist("heal")
    assert wait_until(is_in_sync(tanist, topic), PATIENCE_S)
    assert consumed(tanist, topic, 2) == ["before", "while"]


@pytest.mark.parametrize(
    "one_way", [pytest.param([], id="both-ways", marks=pytest.mark.slow), pytest.param(["--one-way"], id="one-way")]
)
def test_an_active_controller_that_is_cut_off_is_replaced(tanist: Tanist, at: Connect, one_way: list[str]) -> None:
    before = controller_of(tanist)
    assert before is not None
    topic = f"made-without-{before}-{len(one_way)}"
    tanist("partition", str(before), *one_way)
    assert wait_until(lambda: controller_of(tanist) not in (None, before), PATIENCE_S)
    tanist("topics", "create", topic, "--partitions", "1", "--replication-factor", "2")
    after = controller_of(tanist)
    tanist("heal")

    def has_heard() -> bool:
        with at(before) as client:
            return topic in client.metadata([topic]).topics and not client.view.topics[topic].error_code

    assert wait_until(has_heard, PATIENCE_S)
    assert controller_of(tanist) == after


@pytest.mark.slow
def test_a_node_that_restarts_is_cut_off_still(tanist: Tanist) -> None:
    tanist("topics", "create", "restart", "--replica-assignment", "1:2:3")
    assert wait_until(is_in_sync(tanist, "restart"), PATIENCE_S)
    tanist("partition", "1,2", "3")
    tanist("crash", "3", "--lose", "nothing")
    assert "node 3 is started, but cut off" in tanist("start", "3")
    assert wait_until(lambda: sorted(partition_of(tanist, "restart")["isr"]) == [1, 2], PATIENCE_S)
    assert tanist("faults") == "no packet gets from 1,2 to 3, nor the other way\n"
    tanist("heal")
    assert wait_until(is_in_sync(tanist, "restart"), PATIENCE_S)


def test_slow_links_make_acknowledgements_slow(tanist: Tanist, at: Connect) -> None:
    """acks=all needs the followers, over slow links; acks=1 does not."""
    tanist("topics", "create", "slow", "--replica-assignment", "1:2:3")
    assert wait_until(is_in_sync(tanist, "slow"), PATIENCE_S)
    client = at(1)
    every, one = Producer(client), Producer(client, idempotent=False, acks=1)
    every.send("slow", 0, record(b"first"))
    tanist("slow", "1", "--latency", "150ms")

    def took_s(producer: Producer, value: bytes) -> float:
        began_s = time.monotonic()
        producer.send("slow", 0, record(value))
        return time.monotonic() - began_s

    assert took_s(every, b"by all") >= 0.15
    # Now and then a busy machine is as slow as the links: one that is faster is enough.
    assert wait_until(lambda: took_s(one, b"by the leader") < 0.15, PATIENCE_S)
    assert wait_until(is_in_sync(tanist, "slow"), PATIENCE_S)  # slow is not out of sync
    tanist("heal")
    assert consumed(tanist, "slow", 3) == ["first", "by all", "by the leader"]


def test_clients_can_be_cut_off_while_the_cluster_goes_on(tanist: Tanist, at: Connect) -> None:
    tanist("topics", "create", "clients", "--replica-assignment", "2:1:3")
    assert wait_until(is_in_sync(tanist, "clients"), PATIENCE_S)
    client, hasty = at(2), at(2, timeout_s=0.5)
    producer = Producer(client)
    producer.send("clients", 0, record(b"before"))
    hasty.metadata(["clients"])
    tanist("partition", "clients|2")
    for _ in ("on the connection that it has", "on a new one"):
        with pytest.raises(Unreachable, match="does not answer"):
            hasty.metadata(["clients"], node_id=2)
    assert is_in_sync(tanist, "clients")()  # nobody in the cluster has noticed
    state = partition_of(tanist, "clients")
    assert (state["leader"], state["leader_epoch"]) == (2, 0)
    tanist("heal", "clients")
    producer.send("clients", 0, record(b"after"))
    assert consumed(tanist, "clients", 2) == ["before", "after"]


# -- processes


def test_a_paused_node_is_fenced_and_returns(tanist: Tanist, folder: Path) -> None:
    tanist("topics", "create", "paused", "--replica-assignment", "2:3:1")
    assert wait_until(is_in_sync(tanist, "paused"), PATIENCE_S)
    assert tanist("pause", "2") == "node 2: paused\n"
    assert {"kind": "pause", "node": 2} in tanist("faults", "--json")["faults"]
    assert "node 2 is paused already" in tanist("pause", "2", code=1)
    assert {broker["id"]: broker["state"] for broker in tanist("status", "--json")["brokers"]}[2] == "paused"
    assert wait_until(lambda: partition_of(tanist, "paused")["leader"] in (1, 3), PATIENCE_S)
    tanist("produce", "paused", stdin="while it was paused\n")
    tanist("slow", "2", "--latency", "1ms")  # does not wait for it
    assert tanist("resume", "2", "--json") == {"resumed": [2]}
    assert "node 2 is not paused" in tanist("resume", "2", code=1)
    assert wait_until(is_in_sync(tanist, "paused"), PATIENCE_S)
    log = (folder / "node-2" / "node.log").read_text()
    assert "fault set: between 2 and 1,3: 1 ms of latency" in log
    tanist("pause", "2", "3")
    assert tanist("heal", "--json") == {"resumed": [2, 3], "faults": []}
    assert consumed(tanist, "paused", 1) == ["while it was paused"]


def test_a_paused_node_can_be_stopped(tanist: Tanist) -> None:
    tanist("pause", "1")
    assert "node 1 was paused: resuming it, so that it can stop" in tanist("stop", "1")
    states = {broker["id"]: broker["state"] for broker in tanist("status", "--json")["brokers"]}
    assert states == {1: "stopped", 2: "running", 3: "running"}
    assert "tanist start 1" in tanist("pause", "1", code=1)


# -- disks


def test_a_node_on_a_full_disk_goes_down_and_returns_when_there_is_space(tanist: Tanist, folder: Path) -> None:
    """As with Kafka: its log directories go offline, and without any a broker ends."""
    tanist("topics", "create", "full", "--replica-assignment", "2:1:3")
    assert wait_until(is_in_sync(tanist, "full"), PATIENCE_S)
    tanist("produce", "full", stdin="before\n")
    assert "the disk of node 2 is full" in tanist("disk", "2", "full")
    tanist("produce", "full", stdin="by another leader\n")

    def is_down() -> bool:
        states = {broker["id"]: broker["state"] for broker in tanist("status", "--json")["brokers"]}
        return bool(states[2] == "crashed")

    assert wait_until(is_down, PATIENCE_S)
    assert "No space left on device" in (folder / "node-2" / "node.log").read_text()
    assert "No space left on device" in tanist("start", "2", code=1)  # still full
    tanist("heal", "2")
    tanist("start", "2")
    assert wait_until(is_in_sync(tanist, "full"), PATIENCE_S)
    assert consumed(tanist, "full", 2) == ["before", "by another leader"]


def test_one_log_directory_fails(tanist: Tanist, at: Connect, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its partitions are led by others, and the node goes on with what it has (KIP-858), until it is restarted."""
    tanist("topics", "create", "directories", "--replica-assignment", "3:1:2,3:1:2,3:1:2")

    def led_by() -> list[int]:
        (described,) = tanist("topics", "describe", "directories", "--json")
        return [partition["leader"] for partition in described["partitions"]]

    def all_in_sync() -> bool:
        (described,) = tanist("topics", "describe", "directories", "--json")
        return all(len(partition["isr"]) == 3 for partition in described["partitions"])

    first, second = folder / "node-3" / "data", folder / "node-3" / "data-2"
    assert wait_until(lambda: len([*first.glob("directories-?"), *second.glob("directories-?")]) == 3, PATIENCE_S)
    assert wait_until(all_in_sync, PATIENCE_S)
    lost = [number for number in range(3) if (second / f"directories-{number}").is_dir()]
    assert 0 < len(lost) < 3
    (fault,) = tanist("disk", "3", "failed", "--log-dir", "data-2", "--json")["faults"]
    assert fault == {"kind": "disk-failed", "node": 3, "log_dir": str(second)}
    hasty = at(3)
    monkeypatch.setattr(hasty, "leader_of", lambda topic, partition: 3)  # another may lead already
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        Producer(hasty, idempotent=False, acks=1).send("directories", lost[0], record(b"refused"), timeout_s=0.0)
    assert wait_until(lambda: [n for n, leader in enumerate(led_by()) if leader != 3] == lost, PATIENCE_S)
    for number in range(3):
        Producer(at(1)).send("directories", number, record(b"taken"))
    client = at(3)
    client.metadata()
    reported = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, node_id=3)
    errors = {Path(found.log_dir).name: found.error_code for found in reported.results}
    assert errors == {"data": 0, "data-2": 56}
    tanist("heal")
    assert not all_in_sync()  # mended, but Kafka's brokers come back to a directory only when they start
    tanist("stop", "3")
    tanist("start", "3")
    assert wait_until(all_in_sync, PATIENCE_S)


def test_a_slow_disk(tanist: Tanist, at: Connect) -> None:
    tanist("topics", "create", "syncs", "--replica-assignment", "1", "--config", "flush.messages=1")
    assert wait_until(is_in_sync(tanist, "syncs"), PATIENCE_S)
    producer = Producer(at(1))
    producer.send("syncs", 0, record(b"quick"))
    tanist("disk", "1", "slow", "--latency", "120ms")
    began_s = time.monotonic()
    producer.send("syncs", 0, record(b"slow"))
    assert time.monotonic() - began_s >= 0.12


# -- orders


def test_faults_add_up_and_are_healed_by_node(tanist: Tanist, folder: Path) -> None:
    tanist("slow", "1", "2,3", "--latency", "1ms")
    tanist("slow", "1", "2,3", "--latency", "2ms", "--jitter", "1ms", "--rate", "10MB")  # instead of the one before
    tanist("disk", "3", "slow", "--latency", "1ms")
    tanist("slow", "clients|3", "--latency", "1ms", "--one-way")
    assert tanist("faults", "--json")["faults"] == [
        {
            "kind": "slow", "from": [1], "to": [2, 3], "one_way": False,
            "latency_ms": 2, "jitter_ms": 1, "rate_bytes": 10_000_000,
        },
        {"kind": "disk-slow", "node": 3, "log_dir": None, "latency_ms": 1, "writes": False},
        {
            "kind": "slow", "from": ["clients"], "to": [3], "one_way": True,
            "latency_ms": 1, "jitter_ms": 0, "rate_bytes": 0,
        },
    ]  # fmt: skip
    left = tanist("heal", "3")
    assert left.splitlines() == [
        "healed; these faults are still set:",
        "  between 1 and 2: 2 to 3 ms of latency, at most 10000000 bytes a second",
    ]
    tanist("heal")
    assert load(folder / "faults") == FaultSet(load(folder / "faults").number, load(folder / "faults").ports)


def test_orders_that_make_no_sense(tanist: Tanist) -> None:
    for code, reported, arguments in (
        (1, "there is no node 7; the nodes are 1, 2, 3", ("partition", "7|1")),
        (1, "there is no node 7", ("disk", "7", "full")),
        (1, "1 cannot be on both sides", ("partition", "1,2", "1,3")),
        (2, "'x' in '1,x' is neither a node id nor `clients`", ("partition", "1,x|2")),
        (2, "a link has two sides", ("partition", "1|2|3")),
        (1, "there is no node on the other side of 1,2,3", ("partition", "1,2,3")),
        (2, "give --latency", ("slow", "1|2")),
        (2, "'5 parsecs' is not like 200ms", ("slow", "1|2", "--latency", "5 parsecs")),
        (2, "more than 10 minutes", ("slow", "1|2", "--latency", "11m")),
        (2, "the rate must be more than 0", ("slow", "1|2", "--rate", "0B")),
        (2, "go with `slow` only", ("disk", "1", "full", "--latency", "1ms")),
        (1, "has no log directory elsewhere; it has", ("disk", "1", "failed", "--log-dir", "elsewhere")),
        (1, "there is no node 9", ("disk", "9", "failed", "--log-dir", "data-2")),
        (1, "there is no node 9", ("heal", "9")),
    ):
        assert reported in tanist(*arguments, code=code)
    assert tanist("faults") == "no faults are set\n"


def test_nobody_else_gives_orders(tanist: Tanist, folder: Path) -> None:
    os.chmod(folder / "faults", 0o777)
    try:
        assert "other users can write to" in tanist("partition", "1|2", code=1)
        logs = [path.read_text() for path in folder.glob("node-*/node.log")]
        assert any("faults are ignored: other users" in log for log in logs)
    finally:
        os.chmod(folder / "faults", 0o700)


def test_a_damaged_order_changes_nothing(tanist: Tanist, folder: Path) -> None:
    tanist("slow", "1|2", "--latency", "1ms")
    path = folder / "faults" / "set.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    for node in load_existing(folder).running:
        assert node.process is not None
        node.process.signal(signal.SIGURG)
    assert "is damaged" in tanist("faults", code=1)
    path.write_bytes(whole)
    tanist("heal")
    assert {broker["state"] for broker in tanist("status", "--json")["brokers"]} == {"running"}

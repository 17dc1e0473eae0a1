"""The commands on a real cluster: as the README has people type them."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

Tanist = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    command = [*TANIST, "up", "--detach", "--port", str(free_port()), *FEW_PARTITIONS, "--data", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert "ready in " in done.stdout, done.stderr
    yield folder
    run("down", folder=folder)
    assert load_existing(folder).running == []


@pytest.fixture
def tanist(folder: Path) -> Tanist:
    return lambda *arguments, **options: run(*arguments, folder=folder, **options)


def test_status(tanist: Tanist) -> None:
    status = tanist("status", "--json")
    assert [broker["id"] for broker in status["brokers"]] == [1, 2, 3]
    assert {broker["state"] for broker in status["brokers"]} == {"running"}
    assert status["controller"] in (1, 2, 3)
    assert status["bootstrap"] == ",".join(f"{broker['host']}:{broker['port']}" for broker in status["brokers"])
    text = tanist("status")
    assert text.splitlines()[0].split() == ["NODE", "ROLES", "ADDRESS", "STATE", "PID", "RACK", "METRICS"]
    assert text.count("broker+controller*") == 1
    assert f"* node {status['controller']} is the active controller" in text
    assert max(map(len, text.splitlines())) <= 84  # 80 on a terminal, where a narrower gap is chosen


def test_every_node_tells_its_metrics(tanist: Tanist) -> None:
    for broker in tanist("status", "--json")["brokers"]:
        with urllib.request.urlopen(broker["metrics"], timeout=120) as reply:
            assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            lines = reply.read().decode().splitlines()
        assert "kafka_server_kafkaserver_brokerstate 3" in lines
        assert f'tanist_node_info{{node_id="{broker["id"]}",roles="broker+controller",version="0.1.0"}} 1' in lines
        assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
        with urllib.request.urlopen(broker["metrics"] + "/partitions", timeout=120) as reply:
            assert reply.status == 200


def test_a_second_up_is_refused(tanist: Tanist) -> None:
    said = tanist("up", "--detach", code=1)
    assert "is running already (nodes 1, 2, 3)" in said
    assert "tanist down" in said


def test_the_life_of_a_topic(tanist: Tanist) -> None:
    made = tanist(
        "topics", "create", "life", "--replica-assignment", "1:2:3,2:3:1", "--config", "retention.ms=60000", "--json"
    )
    (described,) = tanist("topics", "describe", "life", "--json")
    assert described["topic_id"] == made["topic_id"]
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1]
    first = described["partitions"][0]
    assert first.keys() == {
        "partition", "leader", "leader_epoch", "replicas", "isr", "elr", "last_known_elr", "offline",
    }  # fmt: skip
    assert (first["leader"], first["replicas"], sorted(first["isr"])) == (1, [1, 2, 3], [1, 2, 3])
    assert (first["elr"], first["last_known_elr"], first["offline"]) == ([], [], [])

    assert "TOPIC_ALREADY_EXISTS" in tanist("topics", "create", "life", code=1)
    tanist("topics", "alter", "life", "--partitions", "3", "--config", "retention.bytes=1000000")
    assert {"topic": "life", "partitions": 3, "internal": False} in tanist("topics", "list", "--json")
    settings = {
        entry["name"]: (entry["value"], entry["source"])
        for entry in tanist("configs", "describe", "--topic", "life", "--json")
    }
    assert settings["retention.ms"] == ("60000", "topic")
    assert settings["retention.bytes"] == ("1000000", "topic")
    tanist("configs", "alter", "--topic", "life", "--unset", "retention.ms")

    def unset() -> bool:  # the broker that answers may hear of it a moment after the one that was asked
        return "retention.ms" not in {e["name"] for e in tanist("configs", "describe", "--topic", "life", "--json")}

    assert wait_until(unset, 120)

    tanist("configs", "alter", "--group", "g", "--config", "consumer.session.timeout.ms=50000")

    def changed() -> bool:
        shown = tanist("configs", "describe", "--group", "g", "--json")
        return bool(shown == [{"name": "consumer.session.timeout.ms", "value": "50000", "source": "group"}])

    assert wait_until(changed, 120)
    assert "must be in the range" in tanist(
        "configs", "alter", "--group", "g", "--config", "consumer.session.timeout.ms=5", code=1
    )
    tanist("configs", "alter", "--broker", "2", "--config", "leader.replication.throttled.rate=1000")
    assert "double the current value" in tanist(
        "configs", "alter", "--broker", "2", "--config", "num.io.threads=99", code=1
    )

    tanist("topics", "delete", "life")
    assert "no topic life" in tanist("topics", "delete", "life", code=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in tanist("topics", "describe", "life", code=1)


def test_quotas_of_clients(tanist: Tanist) -> None:
    tanist("quotas", "alter", "--user", "alice", "--add-config", "producer_byte_rate=1024")
    tanist(
        "quotas", "alter", "--user", "alice", "--client-defaults",
        "--add-config", "consumer_byte_rate=2048", "--add-config", "request_percentage=12.5",
    )  # fmt: skip
    tanist("quotas", "alter", "--ip", "127.0.0.2", "--add-config", "connection_creation_rate=7")

    def described(*entity: str) -> dict[str, dict[str, float]]:
        found = tanist("quotas", "describe", *entity, "--json")
        return {json.dumps(each["entity"], sort_keys=True): each["quotas"] for each in found}

    pair = {"consumer_byte_rate": 2048.0, "request_percentage": 12.5}
    assert wait_until(lambda: '{"ip": "127.0.0.2"}' in described("--ip", "127.0.0.2"), 120)
    assert described("--user", "alice") == {
        '{"user": "alice"}': {"producer_byte_rate": 1024.0},
        '{"client-id": null, "user": "alice"}': pair,
    }
    shown = tanist("quotas", "describe", "--client-defaults")
    assert "user alice, client (default)  request_percentage  12.5" in shown
    tanist("quotas", "alter", "--user", "alice", "--delete-config", "producer_byte_rate")
    assert wait_until(lambda: list(described("--user", "alice").values()) == [pair], 120)
    said = tanist("quotas", "alter", "--user", "alice", "--add-config", "connection_creation_rate=7", code=1)
    assert "INVALID_REQUEST: Invalid configuration key connection_creation_rate" in said
    assert "whose?" in tanist("quotas", "alter", "--add-config", "producer_byte_rate=1", code=2)
    assert "takes a number" in tanist("quotas", "alter", "--user", "a", "--add-config", "producer_byte_rate=x", code=2)
    assert "nothing to change" in tanist("quotas", "alter", "--user", "a", code=2)
    assert "not both" in tanist("quotas", "describe", "--user", "a", "--user-defaults", code=2)


def test_lines_in_and_out(tanist: Tanist) -> None:
    tanist("topics", "create", "greetings", "--partitions", "2")
    lines = [f"hello {number}" for number in range(1200)]
    assert "1200 records sent" in tanist("produce", "greetings", stdin="\n".join(lines) + "\n")
    out = tanist("consume", "greetings", "--from-beginning", "--max-messages", "1200")
    assert sorted(out.splitlines()[:-1]) == sorted(lines)
    assert "1200 records read" in out

    tanist("produce", "greetings", "--partition", "1", "--key-separator", "=", stdin="name=value\n")
    (last,) = (
        line
        for line in tanist(
            "consume", "greetings", "--from-beginning", "--max-messages", "1201", "--print-offsets"
        ).splitlines()
        if "value" in line
    )
    partition, offset, key, value = last.split("\t")
    assert (partition, key, value) == ("1", "name", "value")
    assert int(offset) > 0
    assert "partitions 0 to 1, not 7" in tanist("produce", "greetings", "--partition", "7", stdin="x", code=1)
    assert "tanist topics create nowhere" in tanist("produce", "nowhere", stdin="x", code=1)


def test_a_leader_crashes_and_comes_back(tanist: Tanist) -> None:
    tanist("topics", "create", "crashes", "--replica-assignment", "2:3:1", "--config", "min.insync.replicas=2")
    tanist("produce", "crashes", stdin="before\n")
    assert tanist("crash", "2", "--json") == {"id": 2, "state": "crashed"}
    assert "node 2 is not running" in tanist("crash", "2", code=1)
    tanist("produce", "crashes", stdin="while it is away\n")
    (described,) = tanist("topics", "describe", "crashes", "--json")
    assert described["partitions"][0]["leader"] == 3
    assert sorted(described["partitions"][0]["isr"]) == [1, 3]
    states = {broker["id"]: broker["state"] for broker in tanist("status", "--json")["brokers"]}
    assert states == {1: "running", 2: "crashed", 3: "running"}
    assert tanist("start", "2", "--json") == {"id": 2, "state": "started"}
    assert "node 2: stopped" in tanist("stop", "2")
    tanist("start", "2")
    out = tanist("consume", "crashes", "--from-beginning", "--max-messages", "2")
    assert out.splitlines()[:2] == ["before", "while it is away"]


def test_ctrl_c_stops_a_cluster_in_the_foreground(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    command = [*TANIST, "up", "--brokers", "1", "--port", str(free_port()), "--data", str(folder), *FEW_PARTITIONS]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Ctrl-C stops it" in line:
            break
    assert any("ready in " in line for line in lines)
    assert len(load_existing(folder).running) == 1
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert "stopped" in out
    assert process.returncode == 0
    assert load_existing(folder).running == []


def test_an_up_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    command = [*TANIST, "up", "--port", str(free_port()), "--data", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert wait_until((folder / "node-3" / "node.log").exists, 60)
    process.send_signal(signal.SIGTERM)
    _, reported = process.communicate(timeout=60)
    assert "nothing is left running" in reported
    assert process.returncode == 1
    assert load_existing(folder).running == []


def test_a_node_starts_beside_one_that_hears_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    short = ("--config", "broker.session.timeout.ms=1500", "--config", "broker.heartbeat.interval.ms=300")
    run("up", "--detach", "--controllers", "1", "--port", str(free_port()), *FEW_PARTITIONS, *short, folder=folder)
    frozen = next(node.process for node in load_existing(folder).nodes if node.node_id == 2)
    assert frozen is not None
    try:
        run("crash", "3", folder=folder)
        frozen.signal(signal.SIGSTOP)
        assert "node 3: started" in run("start", "3", folder=folder)
    finally:
        frozen.signal(signal.SIGCONT)
        run("down", folder=folder)


def test_settings_that_no_broker_has_are_refused_with_a_suggestion(tmp_path: Path) -> None:
    said = run("up", "--config", "min.insync.replica=1", folder=tmp_path / "data", code=2)
    assert "min.insync.replica is not a setting of a broker: did you mean min.insync.replicas?" in said
    said = run("up", "--config", "log.retention.ms=1", "--config", "x=1", folder=tmp_path / "data", code=2)
    assert "x is not a setting of a broker: see `tanist configs describe --broker all --all`" in said
    assert not (tmp_path / "data").exists()


def test_a_cluster_whose_nodes_were_all_killed_says_what_it_waits_for(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    short = ("--config", "broker.session.timeout.ms=4000", "--config", "broker.heartbeat.interval.ms=500")
    run("up", "--detach", "--brokers", "1", "--port", str(free_port()), *FEW_PARTITIONS, *short, folder=folder)
    try:
        run("crash", "1", folder=folder)
        said = run("up", "--detach", folder=folder)
        assert "waiting for node 1: the session from before its crash" in said
        assert "which ends after 4 s (broker.session.timeout.ms)" in said
        assert "ready in" in said
    finally:
        run("down", folder=folder)


def test_lines_without_keys_reach_all_partitions(tanist: Tanist) -> None:
    tanist("topics", "create", "spread", "--partitions", "4")
    tanist("produce", "spread", stdin="".join(f"{number}\n" for number in range(1, 1001)))
    shown = tanist("consume", "spread", "--from-beginning", "--max-messages", "1000", "--print-offsets")
    found: dict[str, list[int]] = {}
    for line in shown.splitlines():
        if line.count("\t") == 3:
            partition, _, _, value = line.split("\t")
            found.setdefault(partition, []).append(int(value))
    assert {partition: len(values) for partition, values in found.items()} == dict.fromkeys("0123", 250)
    assert all(values == sorted(values) for values in found.values())


def test_a_groups_first_record_does_not_wait_for_more_members(tanist: Tanist, folder: Path) -> None:
    """Apache's default is 3 s, as is ours in a server.properties written by hand."""
    assert "group.initial.rebalance.delay.ms=0\n" in (folder / "node-1" / "server.properties").read_text()

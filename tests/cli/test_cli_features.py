"""A cluster of processes that begins without ELR, and then gets it: what becomes of a partition whose replicas die."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.broker.metadata.bootstrap import read_bootstrap
from tanist.cli.app import app
from tanist.events.stream import NOBODY
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.processes import wait_until
from tanist.runtime.ports.disk import RealDisk
from tanist.runtime.ports.loop import Loop
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

ELR = "eligible.leader.replicas.version"
UP = [*TANIST, "up", "--detach", "--brokers", "2", "--controllers", "1", *FEW_PARTITIONS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    command = [*UP, "--port", str(free_port()), "--feature", f"{ELR}=0", "--data", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert "ready in " in done.stdout, done.stderr
    yield folder
    run("down", folder=folder)
    assert load_existing(folder).running == []


def partition(folder: Path, topic: str) -> dict[str, Any]:
    ((found,),) = (
        each["partitions"] for each in run("topics", "describe", topic, "--explain", "--json", folder=folder)
    )
    assert isinstance(found, dict)
    return found


def becomes(folder: Path, topic: str, leader: int, isr: list[int], elr: list[int]) -> str:
    """Wait until the partition is so; why it is."""

    def looks_so() -> bool:
        found = partition(folder, topic)
        return (found["leader"], sorted(found["isr"]), sorted(found["elr"])) == (leader, isr, elr)

    assert wait_until(looks_so, 120), partition(folder, topic)
    return str(partition(folder, topic)["explanation"])


def test_without_elr_and_then_with_it(folder: Path) -> None:
    levels = run("features", "describe", "--json", folder=folder)["features"]
    assert {each["feature"]: each["level"] for each in levels}[ELR] == 0
    run("up", "--detach", "--feature", f"{ELR}=1", folder=folder, code=1)

    # The only way to look at a cluster whose two brokers are down is a third: here, a broker that is back already.
    run("topics", "create", "t", "--replica-assignment", "1:2", "--config", "min.insync.replicas=2", folder=folder)
    run("produce", "t", folder=folder, stdin="one\n")
    run("crash", "1", folder=folder)
    assert "with 1 in sync of min.insync.replicas=2" in becomes(folder, "t", 2, [2], [])
    run("crash", "2", folder=folder)
    run("start", "1", folder=folder)
    why = becomes(folder, "t", -1, [2], [])
    assert "broker 2, the last of the ISR, is offline" in why
    assert "broker 2 is waited for (Kafka before KIP-966)" in why
    run("start", "2", folder=folder)
    becomes(folder, "t", 2, [1, 2], [])

    run("features", "upgrade", "--feature", f"{ELR}=1", folder=folder)
    run("crash", "1", folder=folder)
    becomes(folder, "t", 2, [2], [1])
    run("stop", "2", folder=folder)
    run("start", "1", folder=folder)
    why = becomes(folder, "t", -1, [], [2])  # 1 was killed, so it may lack records, and is eligible no more
    assert "broker 2 is eligible (ELR) but fenced" in why
    assert run("topics", "describe", "--unavailable-partitions", folder=folder).count("Leader: none") == 1
    run("start", "2", folder=folder)
    becomes(folder, "t", 2, [1, 2], [])
    assert run("consume", "t", "--from-beginning", "--max-messages", "1", folder=folder).splitlines()[0] == "one"


def test_features_that_cannot_be_had(folder: Path) -> None:
    refused = run("features", "upgrade", "--feature", f"{ELR}=2", folder=folder, code=1)
    assert "only supports versions 0-1" in refused
    refused = run("features", "upgrade", "--feature", "no.such.feature=1", folder=folder, code=1)
    assert "does not support this feature" in refused
    levels = run("features", "describe", folder=folder).splitlines()
    assert levels[0].split() == ["FEATURE", "MIN", "MAX", "FINALIZED", "EPOCH"]
    names = [line.split()[0] for line in levels[1:]]
    brokers = ["group.version", "kraft.version", "metadata.version", "share.version", "streams.version"]
    assert names == [ELR, *brokers, "transaction.version"]
    assert levels[4].split()[3] == "4.3-IV0"
    run("features", "downgrade", "--feature", f"{ELR}=0", "--dry-run", folder=folder)
    refused = run("features", "downgrade", "--feature", "metadata.version=4.0", folder=folder, code=1)
    assert "might delete metadata information" in refused


def test_operators_elect_where_nobody_else_may(folder: Path, tmp_path: Path) -> None:
    run("features", "upgrade", "--feature", f"{ELR}=1", folder=folder)
    config = ["--config", "unclean.recovery.strategy=None"]
    run("topics", "create", "e", "--replica-assignment", "1:2,2:1,1:2", *config, folder=folder)
    run("crash", "1", folder=folder)
    run("crash", "2", folder=folder)
    run("start", "1", folder=folder)
    run("start", "2", folder=folder)

    def leaders() -> list[int]:
        (topic,) = run("topics", "describe", "e", "--json", folder=folder)
        return [each["leader"] for each in topic["partitions"]]

    # Both were killed and may lack records; strategy None leaves it to us.
    assert wait_until(lambda: leaders() == [-1, -1, -1], 120), leaders()
    assert run("topics", "describe", "e", "--explain", folder=folder).count("KIP-966 leader election 4c") == 3
    file = tmp_path / "elections.json"

    def elect(kind: str, *entries: dict[str, Any], code: int = 0) -> list[tuple[int, str, str | None]]:
        file.write_text(json.dumps({"partitions": entries}))
        reported = run("elect", "--type", kind, "--path-to-json-file", str(file), "--json", folder=folder, code=code)
        return [(each["partition"], each["result"], each["error"]) for each in reported["partitions"]]

    assert elect("longest_log_balanced", {"topic": "e", "partition": 0}) == [(0, "elected", None)]
    outcomes = elect(
        "DESIGNATION",
        {"topic": "e", "partition": 0, "desiredLeader": 1},
        {"topic": "e", "partition": 1, "desiredLeader": 2},
        {"topic": "e", "partition": 2, "desiredLeader": 7},
        code=1,
    )
    assert outcomes[:2] == [(0, "not needed", "ELECTION_NOT_NEEDED"), (1, "elected", None)]
    assert outcomes[2][:2] == (2, "failed")
    assert run("elect", "--type", "longest_log_aggressive", "--all-topic-partitions", folder=folder) == "e-2: elected\n"
    assert (
        run("elect", "--type", "unclean", "--all-topic-partitions", folder=folder) == "no partition needs an election\n"
    )
    assert wait_until(lambda: min(leaders()) > 0, 120), leaders()
    assert leaders()[1] == 2
    (topic,) = run("topics", "describe", "e", "--explain", "--json", folder=folder)
    for each in topic["partitions"]:
        assert each["last_unclean_epoch"] <= each["leader_epoch"]
        assert f"leader epoch {each['last_unclean_epoch']} began with an unclean election" in each["explanation"]


def test_format_takes_features(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=C\nlisteners=C://127.0.0.1:9093\n"
        f"listener.security.protocol.map=C:PLAINTEXT\ncontroller.quorum.voters=1@127.0.0.1:9093\nlog.dirs={tmp_path}/a\n"
    )
    runner = CliRunner()
    cluster_id = runner.invoke(app, ["random-uuid"]).output.strip()
    command = ["format", "-c", str(path), "-t", cluster_id, "--json"]
    refused = runner.invoke(app, [*command, "--feature", f"{ELR}=2"])
    assert (refused.exit_code, "only supports versions 0-1" in refused.output) == (1, True)
    assert not (tmp_path / "a").exists()
    done = runner.invoke(app, [*command, "--feature", f"{ELR}=0", "--feature", "metadata.version=4.1"])
    assert json.loads(done.output) == [{"folder": f"{tmp_path}/a", "formatted": True}]
    loop = Loop()
    disk = RealDisk(loop, str(tmp_path / "ledger"))
    found = read_bootstrap(disk, f"{tmp_path}/a", NOBODY)
    disk.close()
    loop.close()
    assert found is not None
    assert (found.metadata_version, found.levels()) == (27, {"group.version": 1, "transaction.version": 2})

"""`tanist status` and `topics` when things are bad: no quorum, a broker cut off, a dead node, records cut from logs."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.layout import log_path, node_folder
from tanist.runtime.cluster.processes import wait_until
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    settings = [part for item in SETTINGS.items() for part in ("--config", "=".join(item))]
    run("up", "--detach", "--port", str(free_port()), *FEW_PARTITIONS, *settings, folder=folder)
    yield folder
    run("down", folder=folder)


@pytest.fixture
def tanist(folder: Path) -> Iterator[Tanist]:
    """The command; afterwards all is mended."""
    yield lambda *arguments, **options: run(*arguments, folder=folder, **options)
    run("heal", folder=folder)
    for node in load_existing(folder).nodes:
        if not node.alive:
            run("start", str(node.node_id), folder=folder)


def states(tanist: Tanist) -> dict[int, str]:
    return {broker["id"]: broker["state"] for broker in tanist("status", "--json")["brokers"]}


def why(tanist: Tanist, node_id: int) -> str:
    found = {broker["id"]: broker["why"] for broker in tanist("status", "--json")["brokers"]}[node_id]
    return found or ""


def shown(folder: Path, *arguments: str) -> tuple[list[str], list[str]]:
    """Standard output and standard error, apart."""
    done = subprocess.run(
        [*TANIST, *arguments, "--data", str(folder)], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.mark.long
def test_without_a_quorum_it_is_said_first_and_how_old_all_is(tanist: Tanist, folder: Path) -> None:
    tanist("topics", "create", "old", "--replica-assignment", "1:2:3")
    assert tanist("status").startswith("NODE")
    assert shown(folder, "topics", "list")[1] == []
    tanist("crash", "1")
    tanist("crash", "2")

    def is_known() -> bool:
        return tanist("status", "--json")["metadata_age_ms"] is not None

    assert wait_until(is_known, PATIENCE_S)
    lines = tanist("status").splitlines()
    assert lines[0] == "no quorum: 1 of 3 controllers works, and 2 are needed: `tanist start 1`"
    assert lines[2].startswith("the brokers' metadata is ")
    assert tanist("status", "--json")["warnings"][0] == lines[0]
    for arguments in (
        ("topics", "list"),
        ("topics", "describe", "old", "--explain"),
        ("configs", "describe", "--topic", "old"),
        ("features", "describe"),
        ("quotas", "describe"),
        ("users", "list"),
    ):
        out, err = shown(folder, *arguments)
        assert out
        assert err[0].startswith("Warning: no quorum: no broker has heard from a controller for ")
    for isr in ("3", "9"):  # as it was, and as it never was
        late = subprocess.run(
            [*TANIST, "wait", "--topic", "old", "--isr", isr, "--timeout", "2", "--data", str(folder)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (late.returncode, "no quorum: no broker has heard from a controller for " in late.stderr) == (3, True)
    tanist("crash", "3")
    tanist("start", "3")
    assert wait_until(lambda: states(tanist)[3] == "starting" and "majority" in why(tanist, 3), PATIENCE_S)
    assert "serve no clients until there is one" in tanist("status")
    tanist("start", "1")
    assert wait_until(lambda: states(tanist) == {1: "running", 2: "crashed", 3: "running"}, PATIENCE_S)
    assert tanist("status").startswith("NODE")


def test_a_quorum_that_no_broker_hears_is_a_quorum(tmp_path: Path) -> None:
    """Controllers of their own: brokers that are cut off from them, or dead, say nothing about the quorum."""
    folder = tmp_path / "data"
    settings = [part for item in SETTINGS.items() for part in ("--config", "=".join(item))]
    shape = ("--brokers", "1", "--controllers", "1")
    run("up", "--detach", *shape, "--port", str(free_port()), *settings, folder=folder)
    try:
        run("partition", "1|1001", folder=folder)

        def broker() -> Any:
            return run("status", "--json", folder=folder)["brokers"][0]

        assert wait_until(lambda: broker()["state"] == "fenced", PATIENCE_S), run("status", folder=folder)
        found = run("status", "--json", folder=folder)
        assert (found["controller"], found["warnings"], found["metadata_age_ms"]) == (1001, [], None)
        run("heal", folder=folder)
        run("crash", "1", folder=folder)
        lines = run("status", folder=folder).splitlines()
        assert lines[0].startswith("NODE")
        assert "* node 1001 is the active controller" in lines
        run("crash", "1001", folder=folder)
        assert run("status", "--json", folder=folder)["warnings"] == []
    finally:
        run("down", folder=folder)


def test_a_broker_that_is_cut_off_is_fenced_and_one_that_is_silent_unreachable(tanist: Tanist) -> None:
    tanist("partition", "3|1,2")
    assert wait_until(lambda: states(tanist) == {1: "running", 2: "running", 3: "fenced"}, PATIENCE_S)
    assert "`tanist faults` shows what cuts it off" in why(tanist, 3)
    assert "node 3 is fenced: it has heard from no controller for " in tanist("status")
    tanist("partition", "3|clients")
    assert wait_until(lambda: states(tanist)[3] == "unreachable", PATIENCE_S)
    tanist("heal")
    assert wait_until(lambda: states(tanist)[3] == "running", PATIENCE_S)


def create(folder: Path) -> subprocess.Popen[str]:
    """`topics create`, with an open pipe to its standard error."""
    command = [*TANIST, "topics", "create", "new", "--data", str(folder), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(command: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line on its standard error."""
    assert command.stderr is not None
    found: dict[str, Any] = json.loads(command.stderr.readline())
    return found


@pytest.mark.long
def test_a_command_without_a_quorum_says_so_at_once_and_asks_for_nothing(tanist: Tanist, folder: Path) -> None:
    tanist("crash", "1")
    tanist("crash", "2")
    assert wait_until(lambda: tanist("status", "--json")["metadata_age_ms"] is not None, PATIENCE_S)
    with create(folder) as creating:
        warning = said(creating)["warning"]
        assert creating.poll() is None  # it says so while it waits
        error = said(creating)["error"]
        assert (creating.wait(60), warning["kind"], error["kind"]) == (1, "no-quorum", "no-quorum")
    assert "nothing was asked for" in error["message"]
    tanist("start", "1")
    tanist("start", "2")
    assert "new" not in [each["topic"] for each in tanist("topics", "list", "--json")]


def test_a_command_that_was_sent_says_that_the_quorum_is_lost_meanwhile(tanist: Tanist, folder: Path) -> None:
    """The brokers do not know it yet: the controller that is left has not noticed."""
    tanist("crash", "1")
    tanist("crash", "2")
    with create(folder) as creating:
        assert said(creating)["warning"]["kind"] == "no-quorum"
        assert creating.poll() is None
        tanist("start", "1")
        tanist("start", "2")
        assert creating.wait(PATIENCE_S) == 0
    tanist("topics", "delete", "new")


@pytest.mark.long
def test_a_broker_that_loads_its_logs_says_how_many_it_has(tanist: Tanist, folder: Path) -> None:
    """Each log has a torn end, and the cut is synced on a slow disk, which stands still once the node is seen to wait.

    Meanwhile its controller votes, and it answers.
    """
    tanist("topics", "create", "torn", "--partitions", "24", "--replication-factor", "3")
    segments: list[Path] = []

    def has_all() -> bool:
        segments[:] = node_folder(folder, 3).rglob("torn-*/*.log")
        return len(segments) == 24

    assert wait_until(has_all, PATIENCE_S)
    tanist("crash", "3")
    for segment in segments:
        with segment.open("ab") as file:
            file.write(b"torn" * 32)
    tanist("disk", "3", "slow", "--latency", "1500ms")
    command = [*TANIST, "start", "3", "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as starting:
        assert wait_until(lambda: why(tanist, 3).startswith("it waits for its logs ("), PATIENCE_S)
        tanist("disk", "3", "slow", "--latency", "10m")
        assert states(tanist) == {1: "running", 2: "running", 3: "starting"}
        assert "node 3 is starting: it waits for its logs (" in tanist("status")
        address = {broker["id"]: broker["metrics"] for broker in tanist("status", "--json")["brokers"]}[3]
        with urllib.request.urlopen(address, timeout=120) as page:
            metrics = page.read().decode()
        (left,) = re.findall(r"^kafka_log_logmanager_remaininglogstorecover\{.*\} (\d+)", metrics, re.MULTILINE)
        assert int(left) > 0
        assert wait_until(
            lambda: bool(
                re.search(r"loading logs: \d+ of \d+ loaded", log_path(folder, 3).read_text(errors="replace"))
            ),
            PATIENCE_S,
        )
        tanist("heal", "3")
        assert starting.wait(60) == 0
        out, err = starting.communicate()
    assert re.search(r"waiting for node 3: its logs \(\d+ of \d+ loaded", out + err)
    assert states(tanist)[3] == "running"
    assert re.search(r"\d+ logs loaded in \d+ ms", log_path(folder, 3).read_text(errors="replace"))


def test_a_node_that_has_died_says_of_what(tanist: Tanist) -> None:
    tanist("topics", "create", "filling", "--replica-assignment", "2:1:3")
    tanist("disk", "2", "full")
    tanist("produce", "filling", stdin="".join(f"{number}\n" for number in range(2_000)))
    assert wait_until(lambda: states(tanist)[2] == "crashed", PATIENCE_S)
    assert "No space left on device" in why(tanist, 2)
    assert "node 2 has crashed: " in tanist("status")


def test_what_was_cut_is_shown_with_the_next_command(tanist: Tanist, folder: Path) -> None:
    tanist("topics", "create", "cut", "--replica-assignment", "1:2:3", "--config", "min.insync.replicas=1")
    addresses = [f"{broker['host']}:{broker['port']}" for broker in tanist("status", "--json")["brokers"]]

    def leader() -> int:
        found: int = tanist("topics", "describe", "cut", "--json")[0]["partitions"][0]["leader"]
        return found

    assert wait_until(lambda: leader() == 1, PATIENCE_S)
    tanist("partition", "1|2,3")
    lines = "".join(f"{number}\n" for number in range(37))
    tanist("produce", "cut", "--acks", "1", "--bootstrap", addresses[0], stdin=lines)
    assert wait_until(lambda: leader() in (2, 3), PATIENCE_S)
    tanist("heal")

    def saved() -> list[Any]:
        found: list[Any] = tanist("status", "--json")["salvage"]
        return found

    assert wait_until(lambda: any(each["topic"] == "cut" for each in saved()), PATIENCE_S)
    (only,) = [each for each in saved() if each["topic"] == "cut"]
    assert (only["partition"], only["brokers"], only["records"], only["exact"]) == (0, [1], 37, True)
    assert "salvage: 37 records of cut-0, cut from the log of broker 1 " in tanist("status")
    command = f"tanist salvage export --topic cut --to topic --dry-run --data {folder}"
    assert f"what a topic lacks of them: `{command}`" in tanist("status")
    explained = tanist("topics", "describe", "cut", "--explain")
    assert "37 records that the leader of epoch" in explained
    why = {each["topic"]: each["why"] for each in tanist("salvage", "list", "--json")}["cut"]
    assert why == "follower-truncation"  # acks=1: never committed, as far as the replica knew
    assert "(not known to be committed) were cut from the log of broker 1" in explained
    assert "37" in tanist("salvage", "export", "--topic", "cut", "--to", "topic", "--dry-run")

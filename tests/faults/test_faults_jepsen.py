"""`tanist jepsen` on real processes: short runs on a cluster of ours, and on Apache Kafka's nodes.

The longer ones of docs/jepsen.md: `tanist jepsen`, and `python -m tests.faults.apache_nodes DIR up`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.lab.history import Anomaly, verify
from tanist.lab.jepsen.own import OwnCluster
from tanist.lab.jepsen.plan import ClientName
from tanist.lab.jepsen.run import Settings, play
from tanist.runtime.cluster.cluster_file import load_existing
from tests.clients import install
from tests.faults import apache_nodes
from tests.interop import apache
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.clients]

UNSAFE = ("--elr", "off", "--min-isr", "1", "--unclean")


def _command(out: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tanist.cli.main", "jepsen", "--out", str(out), "--seed", "4", *arguments]


def _environment() -> dict[str, str]:
    """With confluent-kafka importable."""
    path = [entry for entry in sys.path if entry]
    return os.environ | {"PYTHONPATH": os.pathsep.join([*path, str(install.install())])}


def _run(out: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        _command(out, *arguments), env=_environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert (out / "summary.json").exists(), done.stdout + done.stderr
    return done.returncode, json.loads((out / "summary.json").read_text())


@pytest.mark.parametrize(("client", "test"), [("tanist", "last-standing"), ("confluent", "last-replica")])
def test_nothing_is_lost_with_the_defaults(tmp_path: Path, client: str, test: str) -> None:
    code, summary = _run(tmp_path / "out", "--minutes", "0.7", "--client", client, "--test", test)
    assert (code, summary["lost"], summary["unexpected"], summary["anomalies"]) == (0, 0, 0, {})
    assert summary["settings"]["client"] == client
    # Any draw has time for one.
    assert {episode["kind"] for episode in summary["episodes"]} == {test}
    assert all(episode["in_sync_after_s"] is not None for episode in summary["episodes"])
    # Five calm seconds at the end alone have a thousand.
    assert summary["acknowledged"] > 500
    assert not (tmp_path / "out" / "cluster").exists()
    assert (tmp_path / "out" / "picture.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(("client", "workload"), [("tanist", "records"), ("confluent", "transactions")])
def test_a_secure_cluster_loses_nothing_either(tmp_path: Path, client: str, workload: str) -> None:
    """TLS, SCRAM and an authorizer: no client gets in by another way."""
    how = ("--secure", "--workload", workload, "--client", client)
    code, summary = _run(tmp_path / "out", *how, "--minutes", "0.7", "--test", "crash")
    assert (code, summary["lost"], summary["unexpected"], summary["anomalies"]) == (0, 0, 0, {})
    assert summary["episodes"]
    assert summary["acknowledged"] > 200


@pytest.mark.parametrize(("client", "test"), [("tanist", "crash"), ("confluent", "mixed")])
def test_transactions_are_whole_or_not_there(tmp_path: Path, client: str, test: str) -> None:
    code, summary = _run(
        tmp_path / "out", "--workload", "transactions", "--minutes", "0.7", "--client", client, "--test", test
    )
    assert (code, summary["lost"], summary["unexpected"], summary["anomalies"]) == (0, 0, 0, {})
    assert summary["hanging"] == []
    assert summary["episodes"]
    assert summary["transactions"]["committed"] > 50
    assert summary["transactions"]["aborted"] > 5
    # The history is one for `tanist lab verify`, which comes to the same verdict.
    verdict, _ = verify(tmp_path / "out" / "history.jsonl")
    assert verdict.findings == ()
    assert verdict.transactions == summary["transactions"]


@pytest.mark.parametrize("client", ["tanist", "confluent"])
def test_a_reader_of_uncommitted_records_that_says_otherwise_is_noticed(
    tmp_path: Path, client: ClientName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The consumers ask for uncommitted records, and the history says read_committed."""
    monkeypatch.setenv("PYTHONPATH", _environment()["PYTHONPATH"])
    settings = Settings(
        minutes=0.4, tests=("crash",), client=client, workload="transactions", isolation="read_uncommitted", seed=4
    )
    out = tmp_path / "out"
    out.mkdir()
    target = OwnCluster(tmp_path / "cluster", elr=True)
    try:
        result = play(target, settings, out, lambda line: None)
    finally:
        target.close()
    found = {each.anomaly for each in result.verdict.findings}
    assert result.failed
    assert {Anomaly.G1A, Anomaly.PRECOMMITTED_READ} <= found
    assert found <= {Anomaly.G1A, Anomaly.PRECOMMITTED_READ, Anomaly.G1C}, "they are dirty, and nothing else is wrong"


def test_jepsens_losses_are_found_and_are_in_the_salvage(tmp_path: Path) -> None:
    code, summary = _run(tmp_path / "out", "--minutes", "0.5", "--test", "last-replica", *UNSAFE)
    assert code == 1
    # The leader was alone for six seconds at least, at 200 records a second.
    assert summary["lost"] > 100
    assert summary["lost_in_salvage"] == summary["lost"]
    assert summary["unexpected"] == 0
    assert "inconsistent-offsets" in summary["anomalies"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_running(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    with subprocess.Popen(
        _command(out, "--minutes", "5", "--client", "tanist"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Where the tests run in the background the shell has them ignore SIGINT, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            writer = out / "clients" / "w1.jsonl"
            wait_for(lambda: writer.exists() and writer.stat().st_size > 0, "the first writes", timeout_s=60)
            pids = [int(entry.name) for entry in Path("/proc").iterdir() if _is_of(entry, str(out))]
            assert len(pids) >= 5, "four clients and the command itself, at least"
            process.send_signal(number)
            assert process.wait(60) == 2
            assert load_existing(out / "cluster").running == []
        finally:
            process.kill()
            for node in load_existing(out / "cluster").running:
                if node.process is not None:
                    node.process.kill()
        assert process.stdout is not None
        assert b"interrupted" in process.stdout.read()
    assert [pid for pid in pids if _is_of(Path(f"/proc/{pid}"), str(out))] == []


def _is_of(entry: Path, words: str) -> bool:
    """Whether a process, by its entry in /proc, has these words in its command line."""
    try:
        return entry.name.isdecimal() and words.encode() in (entry / "cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture
def apache_folder(tmp_path: Path) -> Iterator[Path]:
    """Three brokers and a controller of Apache's, without ELR."""
    if (reason := apache.missing()) is not None:
        pytest.skip(reason)
    nodes = apache_nodes.bring_up(tmp_path / "apache", elr=False)
    try:
        yield nodes.folder
    finally:
        apache_nodes.Nodes.load(nodes.folder).down()


@pytest.mark.interop
def test_apaches_transactions_are_whole_or_not_there(tmp_path: Path, apache_folder: Path) -> None:
    code, summary = _run(
        tmp_path / "out",
        *("--workload", "transactions", "--minutes", "0.7", "--test", "crash"),
        *apache_nodes.options(apache_folder),
    )
    assert (code, summary["lost"], summary["anomalies"], summary["hanging"]) == (0, 0, {}, [])
    assert summary["transactions"]["committed"] > 50


@pytest.mark.interop
def test_the_same_test_finds_apaches_losses(tmp_path: Path, apache_folder: Path) -> None:
    unsafe = ("--min-isr", "1", "--unclean")
    code, summary = _run(
        tmp_path / "out", "--minutes", "0.8", "--test", "last-replica", *unsafe, *apache_nodes.options(apache_folder)
    )
    assert code == 1
    assert summary["lost"] > 100
    assert (summary["lost_in_salvage"], summary["unexpected"]) == (0, 0)

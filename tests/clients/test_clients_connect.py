"""`examples/connect`: a Kafka Connect worker with file connectors goes on over a broker's death and its own restart."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clients import builds
from tests.clients.topics import create_topics
from tests.interop import apache
from tests.interop.cluster import Cluster, free_ports, wait_in_sync
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "connect"
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LINES = 100
SETTLE_S = 180.0


@pytest.fixture(scope="module")
def jars() -> Path:
    reason = builds.missing_maven()
    if reason is not None:
        pytest.skip(reason)
    return builds.connect()


@contextmanager
def worker(folder: Path, jars: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The example's worker as a process, until the end of the block."""
    command = ["java", *FLAGS, "-cp", f"{jars}/*", WORKER, "worker.properties"]
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ask(address: str, body: str | None = None) -> Any:
    """The worker's answer; None while it has none, or is busy with a rebalance."""
    request = urllib.request.Request(address, headers={"Content-Type": "application/json"})
    if body is not None:
        request.data, request.method = body.encode(), "PUT"
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return None


@pytest.fixture
def example(tmp_path: Path, jars: Path, cluster: Cluster) -> tuple[Path, str]:
    """A copy of the example for this cluster, with a port of its own, and the address of its worker."""
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "connect"))
    (folder / "plugins").mkdir()
    for jar in jars.glob("connect-file-*.jar"):
        shutil.copy(jar, folder / "plugins")
    address = f"http://127.0.0.1:{free_ports(1)}"
    properties = folder / "worker.properties"
    text = properties.read_text()
    assert text.count("127.0.0.1:9092") == text.count("http://127.0.0.1:8083") == 1
    properties.write_text(text.replace("127.0.0.1:9092", cluster.bootstrap).replace("http://127.0.0.1:8083", address))
    return folder, address


def test_the_file_connectors_go_on_over_a_brokers_death_and_a_restart_of_the_worker(
    example: tuple[Path, str], jars: Path, cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path
) -> None:
    folder, address = example
    log, topic = tmp_path / "worker.log", new_topic_name()
    create_topics(cluster, topic, partitions=1)
    source, sink = folder / "orders.txt", folder / "shipped.txt"
    written: list[str] = []

    def write() -> None:
        lines = [f"order {len(written) + number}" for number in range(LINES)]
        written.extend(lines)
        with source.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def shipped() -> bool:
        return sink.exists() and sink.read_text().splitlines() == written

    write()
    with worker(folder, jars, log):
        for name in ("source", "sink"):
            settings = json.loads((folder / f"{name}.json").read_text())
            settings |= {"topic": topic} if name == "source" else {"topics": topic}
            put = partial(ask, f"{address}/connectors/{name}/config", json.dumps(settings))
            wait_for(put, f"connector {name}, see {log}", timeout_s=SETTLE_S)
        wait_for(shipped, f"{LINES} lines in {sink}", timeout_s=SETTLE_S)
        victim = cluster.node_ids[0]
        cluster.kill_node(victim)
        try:
            write()
            wait_for(shipped, "the lines that were written while a broker was down", timeout_s=SETTLE_S)
        finally:
            cluster.start_node(victim)
            wait_in_sync(cluster, topic)
    write()
    with worker(folder, jars, log):
        wait_for(shipped, "the lines that were written while the worker was down", timeout_s=SETTLE_S)
        status = ask(f"{address}/connectors/sink/status")
        assert [task["state"] for task in status["tasks"]] == ["RUNNING"]


def test_the_jars_are_of_the_version_that_is_tested(jars: Path) -> None:
    assert (jars / f"connect-file-{apache.VERSION}.jar").exists()

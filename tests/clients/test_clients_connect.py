"""`examples/connect`: a Kafka Connect worker with file connectors goes on over a broker's death and its own restart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.connect_worker import put_connector, task_states, worker
from tests.clients.exactly_once import SETTLE_S
from tests.clients.topics import create_topics
from tests.interop import apache
from tests.interop.cluster import Cluster, free_ports, wait_in_sync
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "connect"
LINES = 100


@pytest.fixture
def example(tmp_path: Path, connect_jars: Path, cluster: Cluster) -> tuple[Path, str]:
    """A copy of the example for this cluster, with a port of its own, and the address of its worker."""
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "connect"))
    (folder / "plugins").mkdir()
    for jar in connect_jars.glob("connect-file-*.jar"):
        shutil.copy(jar, folder / "plugins")
    address = f"http://127.0.0.1:{free_ports(1)}"
    properties = folder / "worker.properties"
    text = properties.read_text()
    assert text.count("127.0.0.1:9092") == text.count("http://127.0.0.1:8083") == 1
    properties.write_text(text.replace("127.0.0.1:9092", cluster.bootstrap).replace("http://127.0.0.1:8083", address))
    return folder, address


def test_the_file_connectors_go_on_over_a_brokers_death_and_a_restart_of_the_worker(
    example: tuple[Path, str], connect_jars: Path, cluster: Cluster, new_topic_name: Callable[[], str], tmp_path: Path
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
    with worker(folder, connect_jars, log):
        for name in ("source", "sink"):
            settings = json.loads((folder / f"{name}.json").read_text())
            settings |= {"topic": topic} if name == "source" else {"topics": topic}
            put_connector(address, name, settings, log)
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
    with worker(folder, connect_jars, log):
        wait_for(shipped, "the lines that were written while the worker was down", timeout_s=SETTLE_S)
        assert task_states(address, "sink") == ["RUNNING"]


def test_the_jars_are_of_the_version_that_is_tested(connect_jars: Path) -> None:
    assert (connect_jars / f"connect-file-{apache.VERSION}.jar").exists()

"""The scripts of `containers/` as Testcontainers runs them, without a container: a folder stands for its root.

Each case is a module of Testcontainers: the variables that it sets, the script that it copies into the container, and
the line that it waits for. A container engine is not used here: docs/testing.md says what was tried with one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Queue

import pytest

from tanist.log.properties import parse_properties
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, KafkaError, Unreachable, parse_bootstrap
from tanist.runtime.client.identity import security_by
from tanist.runtime.client.records import Producer, list_offset
from tanist.wire.batch import NewRecord
from tests.clients import install
from tests.interop.cluster import free_ports

ROOTFS = Path(__file__).resolve().parents[2] / "containers" / "rootfs"
TOPS = ("etc", "opt", "mnt", "var", "tmp")
"""The folders of a container that a node or a script touches."""
FROM_RECOVERY = r".*Transitioning from RECOVERY to RUNNING.*"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"

Run = Callable[..., "Container"]


class Container:
    """A process with the root folder of a container, as far as our scripts are concerned."""

    def __init__(self, root: Path, script: str, environment: dict[str, str], shell: str) -> None:
        starter = root / "tmp" / "start.sh"
        starter.write_text(self.inside(root, script))
        starter.chmod(0o777)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "CLUSTER_"))}
        path = f"{root}/usr/local/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.process = subprocess.Popen(
            [shell, str(starter)],
            env=clean | {"PATH": path} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: Queue[str] = Queue()
        self.said: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    @staticmethod
    def inside(root: Path, script: str) -> str:
        return re.sub(rf"(?<![\w/.])/(?=(?:{'|'.join(TOPS)})/)", f"{root}/", script)

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.lines.put(line)
        self.lines.put("")

    def wait_for(self, pattern: str) -> None:
        while line := self.lines.get(timeout=60):
            self.said.append(line)
            if re.match(pattern, line):
                return
        raise AssertionError(f"ended with {self.process.wait()} and without {pattern}:\n{''.join(self.said)}")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """The whole group: a shell does not pass signals on to what it runs."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stop(self) -> None:
        self.kill(signal.SIGTERM)
        self.wait_for(r".*node \d+ has shut down")
        while self.lines.get(timeout=60):
            pass


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    shutil.copytree(ROOTFS, root)
    for folder in ("opt/kafka/config", "mnt/shared/config", "var/lib/kafka/data", "tmp"):
        (root / folder).mkdir(parents=True)
    for path in root.rglob("*"):
        if path.is_file():
            path.write_text(Container.inside(root, path.read_text()))
    return root


@pytest.fixture
def run(root: Path) -> Iterator[Run]:
    begun: list[Container] = []

    def begin(script: str, environment: dict[str, str], shell: str = "bash") -> Container:
        begun.append(Container(root, script, environment, shell))
        return begun[-1]

    yield begin
    for container in begun:
        container.kill()
        container.process.wait()


@pytest.fixture
def ports() -> tuple[int, int, int]:
    """Of clients, of brokers and of controllers."""
    first = free_ports(3)
    return first, first + 1, first + 2


def variables(root: Path, ports: tuple[int, int, int], **more: str) -> dict[str, str]:
    """Those that all of the modules set."""
    client, broker, controller = ports
    return {
        "KAFKA_LISTENERS": f"PLAINTEXT://127.0.0.1:{client},BROKER://127.0.0.1:{broker},"
        f"CONTROLLER://127.0.0.1:{controller}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_NODE_ID": "1",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
        "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": str(2**63 - 1),
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    } | more


def advertised(ports: tuple[int, int, int]) -> str:
    return f"PLAINTEXT://localhost:{ports[0]},BROKER://127.0.0.1:{ports[1]}"


def produced(port: int, topic: str) -> int:
    """Produce a record over a listener; gives the next offset."""
    with Client([("localhost", port)], timeout_s=20) as client:
        create_topic(client, topic, partitions=1, replication_factor=1)
        assert {node.port for node in client.metadata((topic,)).brokers.values()} == {port}
        Producer(client).send(topic, 0, [NewRecord(value=b"order 1")])
        return list_offset(client, topic, 0, -1)


@pytest.mark.long
def test_java_s_kafka_container(run: Run, root: Path, ports: tuple[int, int, int]) -> None:
    """`KafkaContainer` of apache/kafka: each listener advertises its own address, and the log stays for a restart."""
    environment = variables(root, ports, CLUSTER_ID=CLUSTER_ID, KAFKA_LOG_DIRS=f"{root}/var/lib/kafka/data")
    script = f"export KAFKA_ADVERTISED_LISTENERS={advertised(ports)}\n/etc/kafka/docker/run \n"
    container = run(script, environment)
    container.wait_for(FROM_RECOVERY)
    assert produced(ports[0], "orders") == 1
    assert produced(ports[1], "payments") == 1
    config = (root / "opt/kafka/config/server.properties").read_text()
    assert "inter.broker.listener.name=BROKER\n" in config
    assert f"controller.quorum.voters=1@127.0.0.1:{ports[2]}\n" in config
    meta = (root / "var/lib/kafka/data/meta.properties").read_text()
    assert f"cluster.id={CLUSTER_ID}" in meta
    container.stop()
    again = run(script, environment)
    again.wait_for(FROM_RECOVERY)
    with Client([("localhost", ports[0])], timeout_s=20) as client:
        assert list_offset(client, "orders", 0, -1) == 1


@pytest.mark.clients
def test_a_real_client_at_the_advertised_address(run: Run, root: Path, ports: tuple[int, int, int]) -> None:
    """confluent-kafka learns the mapped address from the node, and finds its group's coordinator there."""
    install.activate()
    from confluent_kafka import Consumer, Producer

    environment = variables(root, ports, CLUSTER_ID=CLUSTER_ID, KAFKA_LOG_DIRS=f"{root}/var/lib/kafka/data")
    container = run(f"export KAFKA_ADVERTISED_LISTENERS={advertised(ports)}\n/etc/kafka/docker/run \n", environment)
    container.wait_for(FROM_RECOVERY)
    settings = {"bootstrap.servers": f"localhost:{ports[0]}", "log_level": 0}
    producer = Producer(settings)
    producer.produce("orders", b"order 1")  # the topic is made by the way, as at the image's defaults
    assert producer.flush(60) == 0
    assert {broker.port for broker in producer.list_topics(timeout=30).brokers.values()} == {ports[0]}
    consumer = Consumer(settings | {"group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    message = consumer.poll(60)
    assert message is not None
    assert message.value() == b"order 1"
    consumer.commit(message, asynchronous=False)
    consumer.close()


def test_java_s_confluent_container_and_node_s(run: Run, root: Path, ports: tuple[int, int, int]) -> None:
    environment = variables(root, ports, CLUSTER_ID=CLUSTER_ID, KAFKA_BROKER_ID="1")
    container = run(f"export KAFKA_ADVERTISED_LISTENERS={advertised(ports)}\n/etc/confluent/docker/run \n", environment)
    container.wait_for(FROM_RECOVERY)
    assert produced(ports[0], "orders") == 1
    assert (root / "var/lib/kafka/data/meta.properties").exists()


def test_go_s_container_formats_with_an_id_of_its_own(run: Run, root: Path, ports: tuple[int, int, int]) -> None:
    script = f"""
source /etc/confluent/docker/bash-config
export KAFKA_ADVERTISED_LISTENERS={advertised(ports)}
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
echo 'kafka-storage format --ignore-formatted -t "$(kafka-storage random-uuid)" -c /etc/kafka/kafka.properties' \
>> /etc/confluent/docker/configure
echo '' > /etc/confluent/docker/ensure
/etc/confluent/docker/configure
/etc/confluent/docker/launch
"""
    voters = f"1@localhost:{ports[2]}"
    environment = variables(root, ports, KAFKA_BROKER_ID="1", KAFKA_CONTROLLER_QUORUM_VOTERS=voters)
    environment["KAFKA_REST_BOOTSTRAP_SERVERS"] = environment["KAFKA_LISTENERS"]
    container = run(script, environment)
    container.wait_for(FROM_RECOVERY)
    assert produced(ports[0], "orders") == 1
    assert CLUSTER_ID not in (root / "var/lib/kafka/data/meta.properties").read_text()


def test_python_s_container_runs_its_script_by_sh(run: Run, root: Path, ports: tuple[int, int, int]) -> None:
    script = f"""
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
echo 'kafka-storage format --ignore-formatted -t {CLUSTER_ID} -c /etc/kafka/kafka.properties' \
>> /etc/confluent/docker/configure
export KAFKA_ADVERTISED_LISTENERS={advertised(ports)}
. /etc/confluent/docker/bash-config
/etc/confluent/docker/configure
/etc/confluent/docker/launch
"""
    environment = variables(root, ports, CLUSTER_ID=CLUSTER_ID, KAFKA_BROKER_ID="1")
    container = run(script, environment, shell="sh")
    container.wait_for(r".*Kafka Server started.*")
    assert produced(ports[0], "orders") == 1


def test_a_mounted_file_and_arguments(run: Run, root: Path, ports: tuple[int, int, int]) -> None:
    client, _, controller = ports
    (root / "mnt/shared/config/server.properties").write_text(
        "process.roles=broker,controller\nnode.id=5\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:{controller}\nlog.dirs={root}/var/lib/kafka/data\n"
        f"offsets.topic.replication.factor=1\n"
    )
    script = f"/etc/kafka/docker/run KAFKA_LISTENERS=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}"
    container = run(script, {})
    container.wait_for(FROM_RECOVERY)
    with Client([("localhost", client)], timeout_s=20) as found:
        assert set(found.metadata(()).brokers) == {5}


def test_a_secure_node(run: Run, root: Path, ports: tuple[int, int, int]) -> None:
    """TANIST_SECURE=1: TLS and SCRAM for clients and brokers, certificates for controllers, ACLs."""
    environment = variables(
        root, ports, CLUSTER_ID=CLUSTER_ID, KAFKA_LOG_DIRS=f"{root}/var/lib/kafka/data", TANIST_SECURE="1"
    )
    script = f"export KAFKA_ADVERTISED_LISTENERS={advertised(ports)}\n/etc/kafka/docker/run \n"
    secrets = root / "etc/kafka/secrets"
    container = run(script, environment)
    container.wait_for(FROM_RECOVERY)

    def client(user: str) -> Client:
        properties = parse_properties((secrets / f"secure/{user}.properties").read_text())
        assert properties["bootstrap.servers"] == f"localhost:{ports[0]}"
        assert "ssl.truststore.location" not in properties, "it is for another machine"
        return Client(parse_bootstrap(properties["bootstrap.servers"]), security=security_by(properties))

    def written() -> int:
        with client("app") as app:
            Producer(app).send("app-orders", 0, [NewRecord(value=b"order 1")])
            return list_offset(app, "app-orders", 0, -1)

    with client("app") as app:
        create_topic(app, "app-orders", partitions=1, replication_factor=1)
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            create_topic(app, "orders", partitions=1, replication_factor=1)
    assert written() == 1
    with Client([("localhost", ports[0])], timeout_s=2) as nobody, pytest.raises(Unreachable):
        nobody.metadata()
    password = (secrets / "secure/app.password").read_text()
    config = root / "opt/kafka/config/server.properties"
    assert "authorizer.class.name=" in config.read_text()
    for path in (config, *secrets.rglob("*.password"), *secrets.rglob("*.properties")):
        assert path.stat().st_mode & 0o077 == 0
    container.stop()
    assert password not in "".join(container.said)
    again = run(f"export KAFKA_ADVERTISED_LISTENERS={advertised(ports)}\n/etc/confluent/docker/run \n", environment)
    again.wait_for(FROM_RECOVERY)
    assert written() == 2
    again.stop()
    shutil.rmtree(secrets)
    secrets.mkdir()
    lost = run(script, environment)
    lost.wait_for(".*formatted without the users in")
    assert lost.process.wait(60) == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"KAFKA_PROCESS_ROLES": "broker"}, "is for a node that is broker and controller"),
        ({"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:1,2@b:2"}, "is for a cluster of one node"),
        ({"KAFKA_NODE_ID": "one"}, "needs node.id"),
        ({"KAFKA_SSL_KEYSTORE_LOCATION": "x"}, "ssl.keystore.location is security of your own"),
        (
            {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"},
            "listener.security.protocol.map is security of your own",
        ),
    ],
)
def test_a_secure_node_is_one_with_nothing_of_its_own(
    run: Run, root: Path, ports: tuple[int, int, int], more: dict[str, str], message: str
) -> None:
    container = run("/etc/kafka/docker/run", variables(root, ports, TANIST_SECURE="1", **more))
    assert container.process.wait(60) == 2
    container.wait_for(f"Error: .*{message}")


def test_zookeeper_is_refused_in_one_line(run: Run, root: Path, ports: tuple[int, int, int]) -> None:
    container = run("/etc/confluent/docker/run", variables(root, ports, KAFKA_ZOOKEEPER_CONNECT="localhost:2181"))
    assert container.process.wait(60) == 2
    container.wait_for(r"Error: KAFKA_ZOOKEEPER_CONNECT: tanist has no ZooKeeper; .*with_kraft")


def test_the_containerfile_copies_what_is_there() -> None:
    text = (ROOTFS.parent / "Containerfile").read_text()
    assert "COPY containers/rootfs/ /" in text
    command = re.findall(r'^CMD \["(\S+)"\]', text, re.MULTILINE)[0]
    script = ROOTFS / command.removeprefix("/")
    assert os.access(script, os.X_OK)
    for path in ROOTFS.rglob("*"):
        if path.is_file():
            shell = "bash" if "bash" in path.read_text().partition("\n")[0] else "sh"
            subprocess.run([shell, "-n", str(path)], check=True)

"""Client libraries against three nodes whose listeners all have TLS and ask for certificates; a node that is killed."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.security.jaas import PLAIN_MODULE
from tests.certificates import CertificateAuthority, pem
from tests.clusters_with_tls import TlsCluster
from tests.interop import apache
from tests.interop.cluster import HOST, interrupt_on_sigterm
from tests.interop.waiting import wait_for

interrupt_on_sigterm()
pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def tls_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsCluster]:
    """Clients may show certificates."""
    cluster = TlsCluster(tmp_path_factory.mktemp("tls"), client_auth="requested")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def alice(tls_cluster: TlsCluster) -> Path:
    return tls_cluster.client("alice")


def create(cluster: TlsCluster, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient(cluster.librdkafka())
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(TIMEOUT_S)


def consumed(cluster: TlsCluster, topic: str, count: int, own: Path | None = None) -> list[bytes]:
    from confluent_kafka import Consumer

    consumer = Consumer(cluster.librdkafka(own, **{"group.id": f"of-{topic}", "auto.offset.reset": "earliest"}))
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(1000, 0.5) if message.error() is None]
    consumer.close()
    return sorted(found)


@pytest.mark.parametrize("shown", [False, True])
def test_confluent_kafka(tls_cluster: TlsCluster, alice: Path, topic_name: str, shown: bool) -> None:
    from confluent_kafka import Producer

    own = alice if shown else None
    create(tls_cluster, topic_name)
    errors: list[Any] = []
    producer = Producer(tls_cluster.librdkafka(own, **{"compression.type": "none"}))
    values = [b"%06d" % index + bytes(index % 5000) for index in range(2000)]
    for value in values:
        producer.produce(topic_name, value, callback=lambda error, _: error is None or errors.append(error))
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == []
    assert consumed(tls_cluster, topic_name, len(values), own) == values


@pytest.mark.parametrize("shown", [False, True])
def test_kafka_python(tls_cluster: TlsCluster, alice: Path, topic_name: str, shown: bool) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    create(tls_cluster, topic_name)
    options = {
        "bootstrap_servers": tls_cluster.bootstrap,
        "security_protocol": "SSL",
        "ssl_context": tls_cluster.context(alice if shown else None),
    }
    producer = KafkaProducer(**options)
    for number in range(100):
        producer.send(topic_name, b"%d" % number, partition=0).get(TIMEOUT_S)
    producer.close()
    consumer = KafkaConsumer(auto_offset_reset="earliest", **options)
    consumer.assign([TopicPartition(topic_name, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < 100 and time.monotonic() < deadline:
        for records in consumer.poll(500).values():
            found += [record.value for record in records]
    consumer.close()
    assert found == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("shown", [False, True])
def test_aiokafka(tls_cluster: TlsCluster, alice: Path, topic_name: str, shown: bool) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    create(tls_cluster, topic_name)
    options = {
        "bootstrap_servers": tls_cluster.bootstrap,
        "security_protocol": "SSL",
        "ssl_context": tls_cluster.context(alice if shown else None),
    }

    async def through() -> list[bytes]:
        producer = AIOKafkaProducer(**options)
        await producer.start()
        for number in range(100):
            await producer.send_and_wait(topic_name, b"%d" % number, partition=0)
        await producer.stop()
        consumer = AIOKafkaConsumer(auto_offset_reset="earliest", **options)
        await consumer.start()
        consumer.assign([TopicPartition(topic_name, 0)])
        found = [(await consumer.getone()).value for _ in range(100)]
        await consumer.stop()
        return found

    async def bounded() -> list[bytes]:
        return await asyncio.wait_for(through(), TIMEOUT_S)

    assert asyncio.run(bounded()) == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize(
    ("trusted", "own", "said"),
    [
        ("another", None, "the other side says: unknown ca"),
        ("ours", "stranger", "certificate not accepted"),
        ("ours", "late", "certificate has expired"),
    ],
)
def test_who_is_not_accepted_is_named_in_the_log(
    tls_cluster: TlsCluster, tmp_path: Path, trusted: str, own: str | None, said: str
) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    shown = None
    if own == "late":
        shown = tls_cluster.client("late", days=(-3, -1))
    elif own == "stranger":
        issued = CertificateAuthority("another").issue("stranger")
        shown = tmp_path / "stranger.pem"
        shown.write_text(issued.key_pem() + issued.chain_pem)
    settings = tls_cluster.librdkafka(shown, **{"bootstrap.servers": f"{HOST}:{tls_cluster.port(1)}"})
    if trusted == "another":
        other = tmp_path / "another.pem"
        other.write_text(pem(CertificateAuthority("another").certificate))
        settings["ssl.ca.location"] = str(other)
    with pytest.raises(KafkaException):
        AdminClient(settings).list_topics(timeout=5)
    tls_cluster.until_logged(1, said)


def test_a_client_without_tls_gets_nothing_and_is_named_in_the_log(tls_cluster: TlsCluster) -> None:
    with socket.create_connection((HOST, tls_cluster.port(2)), timeout=TIMEOUT_S) as client:
        client.sendall(b"\x00\x00\x00\x0e\x00\x12\x00\x00\x00\x00\x00\x01\x00\x04test")
        assert client.recv(100) == b""
    tls_cluster.until_logged(2, "a client without TLS came to it")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl dials")
def test_the_command_of_openssl_verifies_each_listener(tls_cluster: TlsCluster, alice: Path) -> None:
    for port in (tls_cluster.port(1), tls_cluster.port(1) + 1):
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"{HOST}:{port}", "-CAfile", str(tls_cluster.trusted),
             "-verify_ip", HOST, "-cert", str(alice), "-key", str(alice), "-brief"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        assert "Verification: OK" in done.stdout + done.stderr
        assert "Protocol version: TLSv1.3" in done.stdout + done.stderr


def test_certificates_are_exchanged_under_load_and_no_request_fails(tls_cluster: TlsCluster, topic_name: str) -> None:
    """Each node's in turn, while a producer and new clients go on."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    create(tls_cluster, topic_name)
    admin = AdminClient(tls_cluster.librdkafka())
    errors: list[Any] = []
    producer = Producer(tls_cluster.librdkafka(None, **{"linger.ms": 1, "retries": 0, "enable.idempotence": False}))
    sent = 0
    numbers = set()
    for node_id in tls_cluster.node_ids:
        before = shown_by(tls_cluster, node_id)
        store = tls_cluster.folder / f"node-{node_id}" / "node.pem"
        issued = tls_cluster.issued(f"node-{node_id}")
        written = store.with_suffix(".new")
        written.write_text(issued.key_pem() + issued.chain_pem)
        written.replace(store)
        resource = ConfigResource(
            ResourceType.BROKER,
            str(node_id),
            incremental_configs=[
                ConfigEntry(
                    "listener.name.clients.ssl.keystore.location",
                    str(store),
                    incremental_operation=AlterConfigOpType.SET,
                )
            ],
        )
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(TIMEOUT_S)
        while shown_by(tls_cluster, node_id) == before:
            for _ in range(50):
                sent += 1
                producer.produce(
                    topic_name, b"%d" % sent, callback=lambda error, _: error is None or errors.append(error)
                )
            producer.poll(0.01)
        numbers |= {before, shown_by(tls_cluster, node_id)}
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == []
    assert len(numbers) == 2 * len(tls_cluster.node_ids)
    assert len(consumed(tls_cluster, topic_name, sent)) == sent


def shown_by(cluster: TlsCluster, node_id: int, tls_own: Path | None = None) -> int:
    """The serial number of the certificate that new clients see."""
    with (
        socket.create_connection((HOST, cluster.port(node_id)), timeout=TIMEOUT_S) as sock,
        cluster.context(tls_own).wrap_socket(sock, server_hostname=HOST) as client,
    ):
        found: Any = client.getpeercert()
        return int(found["serialNumber"], 16)


def test_nothing_is_lost_when_a_node_is_killed(tls_cluster: TlsCluster, topic_name: str) -> None:
    from confluent_kafka import Producer

    create(tls_cluster, topic_name)
    acknowledged: list[bytes] = []
    producer = Producer(tls_cluster.librdkafka(None, **{"linger.ms": 1, "delivery.timeout.ms": 120_000}))
    number = 0

    def send(count: int) -> None:
        nonlocal number
        for _ in range(count):
            number += 1
            producer.produce(
                topic_name,
                b"%d" % number,
                callback=lambda error, message: None if error else acknowledged.append(message.value()),
            )
        producer.poll(0)

    send(1000)
    wait_for(lambda: producer.poll(0.1) is not None and len(acknowledged) >= 500, "the first are acknowledged")
    tls_cluster.kill(3)
    send(1000)
    assert producer.flush(2 * TIMEOUT_S) == 0
    assert len(acknowledged) == number
    tls_cluster.start(3)
    send(100)
    assert producer.flush(2 * TIMEOUT_S) == 0
    assert set(consumed(tls_cluster, topic_name, number)) >= set(acknowledged)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsCluster]:
    """One node with an authorizer, whose clients have certificates; another listener asks for passwords as well."""
    folder = tmp_path_factory.mktemp("guarded")
    own = "User:CN=node-1,O=tanist\\\\, tests"  # (of a properties file)
    cluster = TlsCluster(
        folder,
        nodes=1,
        client_auth="required",
        more={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"{own};User:CN=admin,O=tanist\\\\, tests",
        },
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_what_a_certificate_may_do(guarded: TlsCluster, topic_name: str) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        NewTopic,
        ResourcePatternType,
        ResourceType,
    )

    admin = AdminClient(guarded.librdkafka(guarded.client("admin")))
    admin.create_topics([NewTopic(topic_name, 1, 1)])[topic_name].result(TIMEOUT_S)
    acl = AclBinding(
        ResourceType.TOPIC,
        topic_name,
        ResourcePatternType.LITERAL,
        "User:CN=alice,O=tanist\\, tests",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([acl]).values():
        future.result(TIMEOUT_S)
    outcomes = {}
    for name in ("alice", "bob"):
        producer = Producer(guarded.librdkafka(guarded.client(name)))
        producer.produce(topic_name, b"x", callback=lambda error, _, name=name: outcomes.update({name: error}))
        producer.flush(TIMEOUT_S)
    assert outcomes["alice"] is None
    assert outcomes["bob"].name() in ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")
    guarded.until_logged(1, "denied: User:CN=bob,O=tanist\\, tests")


@pytest.mark.interop
@pytest.mark.usefixtures("java")
def test_java_with_pem_and_a_certificate(guarded: TlsCluster, topic_name: str, tmp_path: Path) -> None:
    """Apache Kafka's tools; the last one exchanges the node's certificate."""
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SSL\nssl.keystore.type=PEM\nssl.truststore.type=PEM\n"
        f"ssl.keystore.location={guarded.client('admin')}\nssl.truststore.location={guarded.trusted}\n"
    )
    where = ("--bootstrap-server", guarded.bootstrap, "--command-config", str(file))
    apache.tool(apache.TOPICS, *where, "--create", "--topic", topic_name)
    lines = [f"line {number}" for number in range(1000)]
    apache.tool(apache.CONSOLE_PRODUCER, *where, "--topic", topic_name, stdin="".join(f"{line}\n" for line in lines))
    output = apache.tool(
        apache.CONSOLE_CONSUMER, *where, "--topic", topic_name, "--partition", "0", "--offset", "earliest",
        "--max-messages", "1000", "--timeout-ms", "30000",
    )  # fmt: skip
    assert output.stdout.splitlines() == lines
    before = shown_by(guarded, 1, tls_own=guarded.client("admin"))
    store = guarded.folder / "node-1" / "node.pem"
    issued = guarded.issued("node-1")
    written = store.with_suffix(".new")
    written.write_text(issued.key_pem() + issued.chain_pem)
    written.replace(store)
    apache.tool(
        apache.CONFIGS, *where, "--entity-type", "brokers", "--entity-name", "1", "--alter",
        "--add-config", f"listener.name.clients.ssl.keystore.location={store}",
    )  # fmt: skip
    wait_for(lambda: shown_by(guarded, 1, tls_own=guarded.client("admin")) != before, "the new certificate")


def test_passwords_inside_tls(libraries: None, tmp_path: Path) -> None:
    """SASL_SSL, on the listener between brokers too."""
    from confluent_kafka import Producer

    jaas = f'{PLAIN_MODULE} required username="node" password="hidden" user_node="hidden" user_alice="secret";'
    cluster = TlsCluster(
        tmp_path,
        nodes=1,
        more={
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": jaas,
        },
    )
    try:
        cluster.start()
        user = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN", "sasl.username": "alice"}
        outcomes: list[Any] = []
        producer = Producer(cluster.librdkafka(None, **user, **{"sasl.password": "secret"}))
        producer.produce("t", b"x", callback=lambda error, _: outcomes.append(error))
        assert producer.flush(TIMEOUT_S) == 0
        assert outcomes == [None]
        wrong = Producer(cluster.librdkafka(None, **user, **{"sasl.password": "wrong", "message.timeout.ms": 3000}))
        wrong.produce("t", b"x", callback=lambda error, _: outcomes.append(error))
        wrong.flush(TIMEOUT_S)
        assert outcomes[1] is not None
        cluster.until_logged(1, "could not authenticate by PLAIN on listener CLIENTS")
        assert "secret" not in cluster.log(1)
    finally:
        cluster.stop()

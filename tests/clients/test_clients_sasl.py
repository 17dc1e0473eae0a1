"""Clients that authenticate by PLAIN and SCRAM: produce, subscribe, administer; and what they hear when refused.

By `TANIST_TEST_TARGET=apache` the same is asked of Apache Kafka.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from tests.clients.secured import MECHANISMS, PASSWORDS, SaslNode, bearer_token, running
from tests.interop import apache, target
from tests.interop.tanist_cluster import CommandFailed, tanist
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

TIMEOUT_S = 30.0
DELEGATION_TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
VALUES = [f"value-{number}".encode() for number in range(20)]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    if target.chosen() == "apache" and (reason := apache.missing()) is not None:
        pytest.skip(reason)
    with running(target.chosen(), tmp_path_factory.mktemp("node")) as made:
        yield made


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:8]}"


def librdkafka(node: SaslNode, mechanism: str, password: str | None = None) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": PASSWORDS[mechanism] if password is None else password,
    }


def python(node: SaslNode, mechanism: str, password: str | None = None) -> dict[str, Any]:
    return {
        "bootstrap_servers": node.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORDS[mechanism] if password is None else password,
    }


# -- confluent-kafka


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_comes_in(node: SaslNode, mechanism: str, topic: str) -> None:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    config = librdkafka(node, mechanism)
    admin = AdminClient(config)
    for future in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        future.result(TIMEOUT_S)
    producer = Producer({**config, "transactional.id": topic})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for value in VALUES:
        producer.produce(topic, value)
    producer.commit_transaction(TIMEOUT_S)
    consumer = Consumer({**config, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []

    def all_there() -> bool:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message.value())
        return len(found) == len(VALUES)

    wait_for(all_there, "all values come", timeout_s=TIMEOUT_S)
    assert found == VALUES
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_hears_that_its_password_is_wrong(node: SaslNode, mechanism: str) -> None:
    from confluent_kafka import KafkaError, Producer

    errors: list[Any] = []
    producer = Producer({**librdkafka(node, mechanism, "wrong"), "error_cb": errors.append, "log_level": 0})
    wait_for(lambda: producer.poll(0.1) is None or bool(errors), "an error comes", timeout_s=TIMEOUT_S)
    first = errors[0]
    assert first.code() == KafkaError._AUTHENTICATION
    expected = (
        "Authentication failed: Invalid username or password"
        if mechanism == "PLAIN"
        else f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )
    assert expected in first.str()


def bearer(node: SaslNode, token: str, lifetime_s: float = 600) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (token, time.time() + lifetime_s),
    }


def test_librdkafka_comes_in_by_a_signed_token(node: SaslNode, topic: str) -> None:
    from confluent_kafka import Producer

    delivered: list[Any] = []
    producer = Producer(bearer(node, bearer_token()))
    producer.produce(topic, b"value", on_delivery=lambda error, message: delivered.append(error))
    producer.flush(TIMEOUT_S)
    assert delivered == [None]


@pytest.mark.parametrize("changes", [{"aud": "other"}, {"lifetime_s": -100}, {"sub": ""}])
def test_librdkafka_hears_that_its_token_is_refused(node: SaslNode, changes: dict[str, Any]) -> None:
    from confluent_kafka import KafkaError, Producer

    errors: list[Any] = []
    producer = Producer({**bearer(node, bearer_token(**changes)), "error_cb": errors.append, "log_level": 0})
    wait_for(lambda: producer.poll(0.1) is None or bool(errors), "an error comes", timeout_s=TIMEOUT_S)
    assert errors[0].code() == KafkaError._AUTHENTICATION
    assert '{"status":"invalid_token"}' in errors[0].str()


def test_librdkafka_hears_that_its_mechanism_is_not_there(node: SaslNode) -> None:
    from confluent_kafka import KafkaError, Producer

    errors: list[Any] = []
    config = {**librdkafka(node, "PLAIN"), "sasl.mechanism": "GSSAPI", "sasl.kerberos.principal": "nobody"}
    config["sasl.kerberos.kinit.cmd"] = "true"
    try:
        producer = Producer({**config, "error_cb": errors.append, "log_level": 0})
    except Exception as error:
        pytest.skip(f"this librdkafka has no GSSAPI: {error}")
    wait_for(lambda: producer.poll(0.1) is None or bool(errors), "an error comes", timeout_s=TIMEOUT_S)
    assert errors[0].code() == KafkaError._AUTHENTICATION


def test_librdkafka_sets_a_user_and_comes_in_as_it(node: SaslNode) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )

    admin = AdminClient(librdkafka(node, "PLAIN"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsertion = UserScramCredentialUpsertion("bob", info, b"bob-secret")
    for future in admin.alter_user_scram_credentials([upsertion]).values():
        future.result(TIMEOUT_S)
    bob = {**librdkafka(node, "SCRAM-SHA-512", "bob-secret"), "sasl.username": "bob"}
    assert AdminClient(bob).list_topics(timeout=TIMEOUT_S).brokers
    described = admin.describe_user_scram_credentials(["alice", "bob"])
    mechanisms = {
        name: sorted(each.mechanism.name for each in future.result(TIMEOUT_S).scram_credential_infos)
        for name, future in described.items()
    }
    assert mechanisms == {"alice": ["SCRAM_SHA_256", "SCRAM_SHA_512"], "bob": ["SCRAM_SHA_512"]}
    deletion = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512)
    for future in admin.alter_user_scram_credentials([deletion]).values():
        future.result(TIMEOUT_S)


# -- kafka-python


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_comes_in(node: SaslNode, mechanism: str, topic: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    config = python(node, mechanism)
    producer = KafkaProducer(**config)
    for value in VALUES:
        producer.send(topic, value)
    producer.flush(TIMEOUT_S)
    consumer = KafkaConsumer(topic, **config, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=20_000)
    found = []
    for record in consumer:
        found.append(record.value)
        if len(found) == len(VALUES):
            break
    assert found == VALUES
    consumer.close()
    producer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_hears_that_its_password_is_wrong(
    node: SaslNode, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It tries until it has no more time; why it has failed stands in its log."""
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError

    with pytest.raises(KafkaError):
        KafkaAdminClient(**python(node, mechanism, "wrong"), bootstrap_timeout_ms=3_000)
    if target.chosen() == "tanist":  # Apache Kafka closes so soon behind the answer that the client may not see it
        assert "SaslAuthenticationFailedError" in caplog.text


def test_kafka_python_comes_in_by_a_signed_token(node: SaslNode, topic: str) -> None:
    from kafka import KafkaProducer
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return bearer_token()

    config = {**python(node, "PLAIN"), "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Provider()}
    producer = KafkaProducer(**config)
    assert producer.send(topic, b"value").get(TIMEOUT_S).offset == 0
    producer.close()


# -- aiokafka


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_comes_in(node: SaslNode, mechanism: str, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> list[bytes]:
        config = python(node, mechanism)
        async with AIOKafkaProducer(**config) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        consumer = AIOKafkaConsumer(topic, **config, group_id=topic, auto_offset_reset="earliest")
        async with consumer:
            return [(await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value for _ in VALUES]

    assert asyncio.run(run()) == VALUES


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_hears_that_its_password_is_wrong(node: SaslNode, mechanism: str) -> None:
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError

    async def run() -> None:
        producer = AIOKafkaProducer(**python(node, mechanism, "wrong"))
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(KafkaError):
        asyncio.run(run())


def test_aiokafka_comes_in_by_a_signed_token(node: SaslNode, topic: str) -> None:
    from aiokafka import AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return bearer_token()

    async def run() -> int:
        config = {**python(node, "PLAIN"), "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Provider()}
        async with AIOKafkaProducer(**config) as producer:
            return int((await producer.send_and_wait(topic, b"value")).offset)

    assert asyncio.run(run()) == 0


# -- Java


def _client_properties(folder: Path, node: SaslNode, mechanism: str, user: str, password: str, **options: str) -> str:
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    more = "".join(f' {name}="{value}"' for name, value in options.items())
    file = folder / f"{user[:8]}-{mechanism}.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} required username="{user}" password="{password}"{more};\n'
    )
    return str(file)


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_javas_console_clients_come_in(node: SaslNode, mechanism: str, topic: str, tmp_path: Path) -> None:
    config = _client_properties(tmp_path, node, mechanism, "alice", PASSWORDS[mechanism])
    at = ("--bootstrap-server", node.bootstrap, "--topic", topic)
    apache.tool(apache.CONSOLE_PRODUCER, *at, "--command-config", config, stdin="one\ntwo\n")
    read = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "30000")
    output = apache.tool(apache.CONSOLE_CONSUMER, *at, "--command-config", config, *read)
    assert output.stdout.split() == ["one", "two"]


@pytest.mark.usefixtures("java")
def test_kafka_configs_sets_a_user_that_comes_in(node: SaslNode, topic: str, tmp_path: Path) -> None:
    admin = _client_properties(tmp_path, node, "PLAIN", "alice", PASSWORDS["PLAIN"])
    at = ("--bootstrap-server", node.bootstrap, "--command-config", admin, "--entity-type", "users")
    carol = (*at, "--entity-name", "carol")
    apache.tool(apache.CONFIGS, *carol, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=carols]")
    assert "SCRAM-SHA-256=iterations=8192" in apache.tool(apache.CONFIGS, *carol, "--describe").stdout
    config = _client_properties(tmp_path, node, "SCRAM-SHA-256", "carol", "carols")
    apache.tool(
        apache.CONSOLE_PRODUCER,
        *("--bootstrap-server", node.bootstrap, "--topic", topic, "--command-config", config),
        stdin="one\n",
    )
    apache.tool(apache.CONFIGS, *carol, "--alter", "--delete-config", "SCRAM-SHA-256")
    assert "iterations" not in apache.tool(apache.CONFIGS, *carol, "--describe").stdout


@pytest.mark.usefixtures("java")
def test_kafka_delegation_tokens_makes_a_token_that_opens_until_it_is_ended(
    node: SaslNode, topic: str, tmp_path: Path
) -> None:
    admin = _client_properties(tmp_path, node, "PLAIN", "alice", PASSWORDS["PLAIN"])
    at = ("--bootstrap-server", node.bootstrap, "--command-config", admin)
    made = apache.tool(DELEGATION_TOKENS, *at, "--create", "--max-life-time-period", "-1").stdout
    row = made.splitlines()[-1].split()
    token_id, hmac = row[0], row[1]
    assert hmac in apache.tool(DELEGATION_TOKENS, *at, "--describe", "--owner-principal", "User:alice").stdout
    assert "alice" in made
    apache.tool(DELEGATION_TOKENS, *at, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    config = _client_properties(tmp_path, node, "SCRAM-SHA-256", token_id, hmac, tokenauth="true")
    producer = ("--bootstrap-server", node.bootstrap, "--topic", topic, "--command-config", config)
    apache.tool(apache.CONSOLE_PRODUCER, *producer, stdin="one\n")
    apache.tool(DELEGATION_TOKENS, *at, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    described = apache.tool(DELEGATION_TOKENS, *at, "--describe", "--owner-principal", "User:alice").stdout
    assert token_id not in described
    refused = apache.try_tool(apache.TOPICS, "--bootstrap-server", node.bootstrap, "--command-config", config, "--list")
    assert refused.returncode != 0
    assert "invalid credentials with SASL mechanism SCRAM-SHA-256" in refused.stdout + refused.stderr


def test_our_command_does_the_same_to_either(node: SaslNode, tmp_path: Path) -> None:
    alice = _client_properties(tmp_path, node, "PLAIN", "alice", PASSWORDS["PLAIN"])

    def as_alice(*words: str) -> Any:
        return json.loads(tanist(*words, "--bootstrap", node.bootstrap, "--client-config", alice, "--json"))

    def opens() -> bool:
        try:
            tanist("topics", "list", "--bootstrap", node.bootstrap, "--client-config", config)
        except CommandFailed as error:
            if "invalid credentials with SASL mechanism SCRAM-SHA-512" not in str(error):
                raise
            return False
        return True

    made = as_alice("tokens", "create", "--renewer-principal", "User:bob", "--max-life-time-period", "86400000")
    config = _client_properties(tmp_path, node, "SCRAM-SHA-512", made["token_id"], made["hmac"], tokenauth="true")
    wait_for(opens, timeout_s=TIMEOUT_S, what="a node to know the token")
    (shown,) = as_alice("tokens", "describe", "--owner-principal", "User:alice")
    assert shown | {"hmac": made["hmac"]} == made
    assert (shown["owner"], shown["requester"], shown["renewers"]) == ("User:alice", "User:alice", ["User:bob"])
    assert shown["ends_ms"] - shown["issued_ms"] == 86_400_000
    renewed = as_alice("tokens", "renew", made["token_id"], "--renew-time-period", "600000")["expires_ms"]
    assert renewed < shown["expires_ms"]
    assert as_alice("tokens", "expire", "--hmac", made["hmac"], "--expiry-time-period", "60000")["expires_ms"] < renewed
    assert as_alice("tokens", "expire", made["token_id"]) == {"token_id": made["token_id"], "expires_ms": None}
    wait_for(lambda: not opens(), timeout_s=TIMEOUT_S, what="the end of the token")
    assert as_alice("tokens", "describe") == []

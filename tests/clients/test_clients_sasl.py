"""SASL without TLS: clients that come in, the users and tokens that they and Apache Kafka's tools make.

`test_clients_security.py` has all clients, and what they say when they are refused. By `TANIST_TEST_TARGET=apache` the
same is asked of Apache Kafka.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.broker.sasl_properties import UNSECURED
from tanist.security.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE
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


def bearer(node: SaslNode, token: str, lifetime_s: float = 600) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (token, time.time() + lifetime_s),
    }


@pytest.mark.parametrize("changes", [{"aud": "other"}, {"lifetime_s": -100}, {"sub": ""}])
def test_librdkafka_hears_that_its_token_is_refused(node: SaslNode, changes: dict[str, Any]) -> None:
    from confluent_kafka import KafkaError, Producer

    errors: list[Any] = []
    producer = Producer({**bearer(node, bearer_token(**changes)), "error_cb": errors.append, "log_level": 0})
    wait_for(lambda: producer.poll(0.1) is None or bool(errors), "an error comes", timeout_s=TIMEOUT_S)
    assert errors[0].code() == KafkaError._AUTHENTICATION
    assert '{"status":"invalid_token"}' in errors[0].str()


def test_librdkafkas_own_token_needs_the_scopes_that_are_required(tmp_path: Path) -> None:
    from confluent_kafka import KafkaError, Producer

    prefix = "listener__name__clients__oauthbearer__sasl__"
    login = 'unsecuredLoginStringClaim_sub="node"'
    module = f'{OAUTH_MODULE} required {login} unsecuredValidatorRequiredScope="read write";'
    more = {f"{prefix}server__callback__handler__class": UNSECURED, f"{prefix}jaas__config": module}
    with running(target.chosen(), tmp_path, **more) as node:
        config = {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "log_level": 0,
        }
        good = Producer({**config, "sasl.oauthbearer.config": "principal=alice scope=read,write"})
        assert good.list_topics(timeout=TIMEOUT_S).brokers
        errors: list[Any] = []
        bad = Producer({**config, "sasl.oauthbearer.config": "principal=alice scope=read", "error_cb": errors.append})
        wait_for(lambda: bad.poll(0.1) is None or bool(errors), "an error comes", timeout_s=TIMEOUT_S)
        assert errors[0].code() == KafkaError._AUTHENTICATION
        assert '{"status":"insufficient_scope", "scope":"[read, write]"}' in errors[0].str()


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

"""`Cluster(secure=True)`: who gets in, who does not, and what can go wrong with it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tanist.client.security import client_security
from tanist.runtime.client.admin import list_topics
from tanist.runtime.client.client import AuthenticationFailed, Client, KafkaError, Unreachable, parse_bootstrap
from tanist.runtime.cluster.processes import wait_until
from tanist.testing import Cluster, ClusterError
from tanist.testing.security import Security

FEW = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(secure=True, config=FEW) as cluster:
        yield cluster


@pytest.fixture
def security(kafka: Cluster) -> Security:
    return kafka.security()


def topics(security: Security, user: str, broker: str | None = None) -> set[str]:
    """Those that the user sees, by one broker or any."""
    settings = security.client("java", user)
    addresses = parse_bootstrap(broker or settings["bootstrap.servers"])
    with Client(addresses, timeout_s=10, security=client_security(settings, os.urandom)) as client:
        return {name for name, _, internal in list_topics(client) if not internal}


def test_clients_have_settings_of_their_own_kind(kafka: Cluster, security: Security) -> None:
    assert security.client()["bootstrap.servers"] == kafka.bootstrap
    assert security.client()["security.protocol"] == "sasl_ssl"
    assert security.client("java")["sasl.mechanism"] == "SCRAM-SHA-512"
    assert security.client("kafka-python", "admin")["sasl_plain_username"] == "admin"
    with pytest.raises(ValueError, match="kind is one of"):
        security.client("ruby")  # type: ignore[arg-type]


def test_what_is_allowed_and_denied(kafka: Cluster, security: Security) -> None:
    kafka.create_topic("app-orders")
    kafka.create_topic("orders")
    assert wait_until(lambda: topics(security, "app") == {"app-orders"}, 30)
    security.allow("User:app", "DESCRIBE", "topic:ord*")
    assert wait_until(lambda: topics(security, "app") == {"app-orders", "orders"}, 30)
    security.deny("User:app", "DESCRIBE", "topic:app-orders")
    assert wait_until(lambda: topics(security, "app") == {"orders"}, 30)
    security.allow("User:app", "DESCRIBE", "topic:app-orders")
    assert wait_until(lambda: topics(security, "app") == {"app-orders", "orders"}, 30)
    with pytest.raises(ValueError, match="topic:NAME"):
        security.allow("User:app", "DESCRIBE", "table:orders")


def test_a_user_comes_and_goes(security: Security) -> None:
    security.add_user("bob", "bobs-secret")
    assert wait_until(lambda: topics(security, "bob") == set(), 30)
    security.revoke("bob")

    def refused() -> bool:
        try:
            topics(security, "bob")
        except (AuthenticationFailed, Unreachable, KafkaError):
            return True
        return False

    assert wait_until(refused, 30)


def test_quotas_are_given(security: Security) -> None:
    security.throttle("app", producer_byte_rate=1_000.0)
    security.throttle("app", producer_byte_rate=None)
    with pytest.raises(ClusterError):
        security.throttle("app", nothing_like_it=1.0)


def test_a_certificate_expires_and_is_rotated(kafka: Cluster, security: Security) -> None:
    kafka.create_topic("app-rotated")
    first = kafka.bootstrap.split(",")[0]
    assert topics(security, "admin", first)
    security.expire_certificate(1)
    with pytest.raises(AuthenticationFailed, match="expired"):
        topics(security, "admin", first)
    security.rotate_certificates()
    assert topics(security, "admin", first)


def test_another_cluster_says_that_it_has_none() -> None:
    with Cluster(brokers=1, config=FEW) as plain, pytest.raises(ClusterError, match="secure=True"):
        plain.security()

"""Dynamic configurations of brokers: what the broker that is asked judges, and what it passes on."""

from __future__ import annotations

import pytest

from tanist.wire.messages.alter_configs_request import AlterableConfig as Value
from tanist.wire.messages.alter_configs_request import AlterConfigsRequest
from tanist.wire.messages.alter_configs_request import AlterConfigsResource as Whole
from tanist.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from tanist.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.cluster_rig import Cluster

TOPIC, BROKER, LOGGER = 2, 4, 8
NONE, INVALID_CONFIG, INVALID_REQUEST = 0, 40, 42


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    cluster = Cluster(nodes=1, config={"num.io.threads": "6"})
    cluster.create_topic("t", factor=1)
    return cluster


def change(kind: int, name: str, key: str, value: str | None, operation: int = 0) -> AlterConfigsResource:
    config = AlterableConfig(name=key, config_operation=operation, value=value)
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=(config,))


def altered(cluster: Cluster, *changes: AlterConfigsResource) -> list[tuple[int, str, int, str | None]]:
    answer = cluster.ask(IncrementalAlterConfigsRequest(resources=changes), 1)
    cluster.run(500)
    return [(each.resource_type, each.resource_name, each.error_code, each.error_message) for each in answer.responses]


def described(cluster: Cluster, name: str, *keys: str) -> dict[str, tuple[str | None, int, bool, bool]]:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=name, configuration_keys=keys or None)
    (result,) = cluster.ask(DescribeConfigsRequest(resources=(resource,)), 4).results
    return {each.name: (each.value, each.config_source, each.read_only, each.is_sensitive) for each in result.configs}


def test_what_nothing_here_obeys_is_kept_and_described(cluster: Cluster) -> None:
    name = "leader.replication.throttled.rate"
    assert name not in described(cluster, "1")
    assert altered(cluster, change(BROKER, "", name, "1000")) == [(BROKER, "", NONE, None)]
    assert described(cluster, "1")[name] == ("1000", 3, False, False)
    assert altered(cluster, change(BROKER, "", name, None, 1)) == [(BROKER, "", NONE, None)]
    assert name not in described(cluster, "1")


def test_what_nobody_knows_is_kept_as_a_secret(cluster: Cluster) -> None:
    assert altered(cluster, change(BROKER, "1", "no.such.name", "7")) == [(BROKER, "1", NONE, None)]
    assert described(cluster, "1")["no.such.name"] == (None, 2, True, True)
    assert altered(cluster, change(BROKER, "1", "no.such.name", None, 1)) == [(BROKER, "1", NONE, None)]
    assert "no.such.name" not in described(cluster, "1")


def test_a_read_only_name_is_an_invalid_request(cluster: Cluster) -> None:
    expected = (BROKER, "1", INVALID_REQUEST, "Cannot update these configs dynamically: [broker.rack]")
    assert altered(cluster, change(BROKER, "1", "broker.rack", "a")) == [expected]


def test_the_broker_knows_what_its_file_says(cluster: Cluster) -> None:
    ((_, _, error, message),) = altered(cluster, change(BROKER, "1", "num.io.threads", "13"))
    assert error == INVALID_REQUEST
    assert "value should not be greater than double the current value 6" in (message or "")
    assert altered(cluster, change(BROKER, "1", "num.io.threads", "12")) == [(BROKER, "1", NONE, None)]
    assert altered(cluster, change(BROKER, "1", "num.io.threads", "24")) == [(BROKER, "1", NONE, None)]
    # Back to 6 is less than half of 24.
    assert altered(cluster, change(BROKER, "1", "num.io.threads", None, 1))[0][2] == INVALID_REQUEST
    assert altered(cluster, change(BROKER, "1", "num.io.threads", "12")) == [(BROKER, "1", NONE, None)]
    assert altered(cluster, change(BROKER, "1", "num.io.threads", None, 1)) == [(BROKER, "1", NONE, None)]


def test_what_is_refused_here_does_not_keep_the_rest_from_the_controller(cluster: Cluster) -> None:
    answers = altered(
        cluster,
        change(LOGGER, "1", "kafka", "DEBUG"),
        change(TOPIC, "t", "retention.ms", "5000"),
        change(BROKER, "1", "log.roll.ms", "0"),
        change(TOPIC, "none", "retention.ms", "5000"),
    )
    assert [(kind, name, error) for kind, name, error, _ in answers] == [
        (LOGGER, "1", INVALID_CONFIG),
        (TOPIC, "t", NONE),
        (BROKER, "1", INVALID_REQUEST),
        (TOPIC, "none", 3),
    ]
    assert answers[0][3] == "Logger kafka does not exist!"
    assert answers[2][3] == "requirement failed: log.roll.ms must be greater than or equal to 1"
    assert cluster.node(1).metadata.image.configs[(TOPIC, "t")] == {"retention.ms": "5000"}


def test_the_old_way_is_judged_too(cluster: Cluster) -> None:
    whole = Whole(resource_type=BROKER, resource_name="1", configs=(Value(name="log.roll.ms", value="0"),))
    topic = Whole(resource_type=TOPIC, resource_name="t", configs=(Value(name="retention.ms", value="6000"),))
    answer = cluster.ask(AlterConfigsRequest(resources=(whole, topic), validate_only=True), 2)
    assert [each.error_code for each in answer.responses] == [INVALID_REQUEST, NONE]


def test_a_broker_does_not_answer_for_another(cluster: Cluster) -> None:
    request = DescribeConfigsRequest(
        resources=tuple(DescribeConfigsResource(resource_type=BROKER, resource_name=name) for name in ("2", "x"))
    )
    answers = [(each.error_code, each.error_message) for each in cluster.ask(request, 4).results]
    assert answers == [
        (INVALID_REQUEST, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
    ]


def test_how_long_producers_are_remembered_is_the_brokers_to_say(cluster: Cluster) -> None:
    """The one property of a log that no topic has: it was read from the file, and no log was given it."""
    assert cluster.node(1).components.configs.log_config("t").producer_id_expiration_ms == 86_400_000
    assert altered(cluster, change(BROKER, "", "producer.id.expiration.ms", "5000")) == [(BROKER, "", NONE, None)]
    assert cluster.node(1).components.configs.log_config("t").producer_id_expiration_ms == 5_000

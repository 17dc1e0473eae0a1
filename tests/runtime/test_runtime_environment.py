"""The node's properties by the rules of the image `apache/kafka`: names of variables, files, defaults, and refusals."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tanist.broker.config import ConfigError, NodeConfig, parse_properties
from tanist.events.event import Event
from tanist.events.process import FolderFormatted
from tanist.log.properties import encode_properties
from tanist.runtime.cluster.certificates import hosts_of
from tanist.runtime.cluster.node_events import NodeEvents
from tanist.runtime.format import formatted_cluster_id
from tanist.runtime.process.environment import (
    DEFAULTS,
    format_new,
    properties_from,
    properties_of,
    property_name,
)
from tanist.runtime.process.serve import run_environment

NODE = {
    "KAFKA_NODE_ID": "3",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9094",
}


def no_node(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing is served")


def said(environment: dict[str, str], path: str | None = None, **options: bool) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_environment(path, {}, environment, no_node, **options)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_DIRS", "log.dirs"),
        ("KAFKA_ABC_DEF", "abc.def"),
        ("KAFKA_ABC__DEF", "abc_def"),
        ("KAFKA_ABC___DEF", "abc-def"),
        ("KAFKA_KAFKA_X", "kafka.x"),
        ("KAFKA_LISTENER_NAME_A__B_SSL_KEY", "listener.name.a_b.ssl.key"),
    ],
)
def test_a_variable_s_name(variable: str, name: str) -> None:
    assert property_name(variable) == name


def test_what_concerns_the_jvm_is_no_property() -> None:
    environment = NODE | {"KAFKA_HEAP_OPTS": "-Xmx1G", "KAFKA_OPTS": "-D", "KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN"}
    assert properties_of(environment | {"HOME": "/", "CLUSTER_ID": "x"}, {}) == properties_of(NODE, {})


def test_nothing_given_is_a_node_by_itself() -> None:
    properties = properties_of({"PATH": "/bin", "KAFKA_HEAP_OPTS": "-Xmx1G"}, {})
    assert properties == DEFAULTS | {"controller.quorum.voters": "1@localhost:9093"}
    config = NodeConfig.from_properties(properties)
    assert [str(endpoint) for endpoint in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    assert config.warnings == ()


def test_variables_override_a_file_and_the_defaults_are_of_a_node_without_either() -> None:
    properties = properties_of({"KAFKA_NUM_PARTITIONS": "3"}, {"num.partitions": "2", "node.id": "7"})
    assert properties == {"num.partitions": "3", "node.id": "7"}
    assert properties_of({"KAFKA_NUM_PARTITIONS": "3"}, {}) == {"num.partitions": "3"}


def test_a_broker_listens_where_it_is_advertised() -> None:
    advertised = "PLAINTEXT://kafka-1:19092,HOST://[::1]:9092"
    assert properties_of({"KAFKA_ADVERTISED_LISTENERS": advertised}, {}) == {
        "advertised.listeners": advertised,
        "listeners": "PLAINTEXT://0.0.0.0:19092,HOST://0.0.0.0:9092",
    }


@pytest.mark.parametrize(
    ("more", "voters"),
    [
        ({}, "3@localhost:9094"),
        ({"KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://kafka-3:9094"}, "3@kafka-3:9094"),
        ({"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "kafka-3:9094"}, "3@kafka-3:9094"),
        ({"KAFKA_CONTROLLER_QUORUM_VOTERS": "3@kafka-3:9094,4@kafka-4:9094"}, "3@kafka-3:9094,4@kafka-4:9094"),
    ],
)
def test_a_controller_without_a_quorum_is_one_by_itself(more: dict[str, str], voters: str) -> None:
    assert properties_of(NODE | more, {})["controller.quorum.voters"] == voters


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"}, "KAFKA_ZOOKEEPER_CONNECT: tanist has no ZooKeeper"),
        ({"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "a:1,b:1"}, "names 2 controllers, and no first voters"),
        (
            {
                "KAFKA_LISTENERS": "SECURE://:9092,CONTROLLER://:9094",
                "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "SECURE:SASL_SSL,CONTROLLER:PLAINTEXT",
            },
            "listener SECURE has the mechanism GSSAPI (the default), which tanist does not have",
        ),
        ({"KAFKA_NODE_ID": "three"}, "node.id"),
    ],
)
def test_what_cannot_be_is_one_line(more: dict[str, str], message: str) -> None:
    code, out, err = said(NODE | more)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_properties_are_printed_as_a_file_that_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=2\nbroker.rack=\\ r\\\\1\\n\n")
    code, out, _ = said(NODE, str(path), print_only=True)
    assert code == 0
    assert parse_properties(out) == properties_of(NODE, parse_properties(path.read_text()))
    assert parse_properties(out)["broker.rack"] == " r\\1\n"
    assert parse_properties(encode_properties({"a": "=:#! x"})) == {"a": "=:#! x"}


@pytest.mark.parametrize("cluster_id", ["my-cluster", "kafka cluster", "a=b:c #!", "é\\", "x" * 300])
def test_a_cluster_may_have_any_id(tmp_path: Path, cluster_id: str) -> None:
    """As in Apache Kafka 4.3.1: five compose files that people have published have such ones."""
    folders = {"KAFKA_LOG_DIRS": f"{tmp_path / 'data'}", "KAFKA_METADATA_LOG_DIR": f"{tmp_path / 'metadata'}"}
    config = NodeConfig.from_properties(properties_of({**NODE, **folders}, {}))
    events: list[Event] = []
    for _ in range(2):
        format_new(config, {"CLUSTER_ID": cluster_id}, events.append)
    assert [type(event) for event in events] == [FolderFormatted, FolderFormatted]
    assert formatted_cluster_id(config) == cluster_id


def test_why_a_folder_is_not_formatted_is_among_its_events(tmp_path: Path) -> None:
    """The second one cannot be made."""
    folder = tmp_path / "first"
    folder.mkdir()
    (tmp_path / "file").touch()
    code, out, _ = said(NODE | {"KAFKA_LOG_DIRS": f"{folder},{tmp_path}/file/second"})
    assert code == 1
    assert "ERROR cannot format" in out
    assert [each.kind for each in NodeEvents(3, folder).new()] == ["FormatFailed"]


def test_a_file_that_is_not_there_is_no_file(tmp_path: Path) -> None:
    assert said(NODE, str(tmp_path / "none"), print_only=True)[0] == 0
    code, _, err = said(NODE, str(tmp_path), print_only=True)
    assert code == 2
    assert err == f"Error: cannot read {tmp_path}: Is a directory\n"


def test_a_voter_needs_an_id() -> None:
    with pytest.raises(ConfigError, match=r"node\.id is missing"):
        NodeConfig.from_properties(properties_of({"KAFKA_PROCESS_ROLES": "controller"}, {}))


@pytest.mark.parametrize(
    ("variables", "bootstrap", "names"),
    [
        ({}, "localhost:9092", {"localhost"}),
        (
            {
                "KAFKA_PROCESS_ROLES": "broker,controller",
                "KAFKA_NODE_ID": "1",
                "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
                "KAFKA_LISTENERS": "OUTSIDE://0.0.0.0:9094,INSIDE://:9092,CONTROLLER://0.0.0.0:9093",
                "KAFKA_ADVERTISED_LISTENERS": "OUTSIDE://kafka.example:19094,INSIDE://kafka:9092",
                "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
            },
            "kafka.example:19094",
            {"kafka.example", "kafka", "localhost"},
        ),
    ],
)
def test_a_secure_node_of_the_image(tmp_path: Path, variables: dict[str, str], bootstrap: str, names: set[str]) -> None:
    environment = {"TANIST_SECURE": "1", "TANIST_SECRETS": str(tmp_path), **variables}
    found = properties_from(None, environment)
    config = NodeConfig.from_properties(found)
    assert {each.security_protocol for each in config.advertised_listeners} == {"SASL_SSL"}
    assert {each.security_protocol for each in config.controller_endpoints} == {"SSL"}
    client = parse_properties((tmp_path / "secure" / "app.properties").read_text())
    assert client["bootstrap.servers"] == bootstrap
    assert names <= set(hosts_of((tmp_path / "secure" / "node-1.pem").read_bytes()))
    assert properties_from(None, environment) == found, "what is there stays"
    with pytest.raises(ConfigError, match="needs TANIST_SECRETS"):
        properties_from(None, variables | {"TANIST_SECURE": "1"})

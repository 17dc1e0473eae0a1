"""SASL in a properties file: every form that Apache Kafka takes, and the lines to add where one is missing."""

from __future__ import annotations

import pytest

from tanist.broker.config import ConfigError, NodeConfig
from tanist.broker.sasl_properties import Login
from tanist.controller.configs.description import describe_broker
from tanist.controller.configs.settings import Levels, base_name
from tanist.controller.configs.validation import validate_broker_configs
from tests.broker.authentication.sasl_rig import PLAIN_JAAS, SCRAM_JAAS

BROKER = {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "SASL_PLAINTEXT://:9092",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.quorum.voters": "9@h:9093",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "log.dirs": "/data",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_JAAS,
}
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "9",
    "listeners": "CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "controller.quorum.voters": "9@h:9093",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "log.dirs": "/data",
    "listener.name.controller.plain.sasl.jaas.config": PLAIN_JAAS,
}
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"


def config(base: dict[str, str], **changes: str | None) -> NodeConfig:
    """With changes by names whose dots are written as underscores, and None to leave out."""
    changed = {**base, **{name.replace("__", "."): value for name, value in changes.items()}}
    return NodeConfig.from_properties({name: value for name, value in changed.items() if value is not None})


def test_a_listener_and_a_login() -> None:
    sasl = config(BROKER).sasl
    listener = sasl.listeners["SASL_PLAINTEXT"]
    assert listener.mechanisms == ("PLAIN",)
    assert listener.entries["PLAIN"].passwords == {"node": "node-secret", "alice": "alice-secret"}
    assert listener.max_reauth_ms == {"PLAIN": 0}
    assert listener.max_receive_bytes == 512 << 10
    assert isinstance(sasl.between_brokers, Login)
    assert (sasl.between_brokers.mechanism, sasl.between_brokers.options["username"]) == ("PLAIN", "node")
    assert sasl.to_controllers is None


@pytest.mark.parametrize(
    "name",
    [
        JAAS,
        "listener.name.SASL_PLAINTEXT.plain.sasl.jaas.config",
        "listener.name.Sasl_Plaintext.PLAIN.sasl.jaas.config",
    ],
)
def test_a_listeners_name_has_any_case(name: str) -> None:
    properties = {key: value for key, value in BROKER.items() if key != JAAS}
    assert NodeConfig.from_properties({**properties, name: PLAIN_JAAS}).sasl.listeners["SASL_PLAINTEXT"].mechanisms


def test_a_listeners_own_value_comes_before_that_of_all() -> None:
    found = NodeConfig.from_properties(
        {
            **BROKER,
            "sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": SCRAM_JAAS,
            "connections.max.reauth.ms": "1000",
            "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": "2000",
            "sasl.server.max.receive.size": "1024",
        }
    ).sasl.listeners["SASL_PLAINTEXT"]
    assert found.mechanisms == ("SCRAM-SHA-256", "PLAIN")
    assert found.max_reauth_ms == {"SCRAM-SHA-256": 2000, "PLAIN": 1000}
    assert found.max_receive_bytes == 1024


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {JAAS: None},
            f"{JAAS} is missing; add {JAAS}=org.apache.kafka.common.security.plain.PlainLoginModule required",
        ),
        ({JAAS: None, "sasl.jaas.config": PLAIN_JAAS}, "sasl.jaas.config without listener and mechanism is not read"),
        ({JAAS: "x"}, f"{JAAS}: the login module's control flag is missing"),
        ({JAAS: SCRAM_JAAS}, "the login module of PLAIN is org.apache.kafka.common.security.plain.PlainLoginModule"),
        ({JAAS: PLAIN_JAAS.replace("username=", "name=")}, "has no username"),
        ({JAAS: PLAIN_JAAS.replace(' password="', ' pass="')}, "has no password"),
        (
            {"sasl.enabled.mechanisms": None},
            "listener SASL_PLAINTEXT has the mechanism GSSAPI (the default), which tanist does not have; add "
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms=SCRAM-SHA-512",
        ),
        ({"sasl.enabled.mechanisms": ""}, "has SASL but no mechanism; add listener.name.sasl_plaintext.sasl.enabled"),
        ({"sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, "has the mechanism GSSAPI, which tanist does not have"),
        ({"sasl.mechanism.inter.broker.protocol": None}, "add sasl.mechanism.inter.broker.protocol=PLAIN"),
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"},
            "sasl.mechanism.inter.broker.protocol is SCRAM-SHA-512, which listener SASL_PLAINTEXT does not have",
        ),
        ({"sasl.server.callback.handler.class": "a.B"}, "tanist runs no Java classes"),
        (
            {"listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class": "a.B"},
            "tanist runs no Java classes",
        ),
        (
            {"listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"},
            "sasl.mechanism.controller.protocol is GSSAPI, by which tanist's nodes do not log in; add sasl.mech",
        ),
    ],
)
def test_what_nobody_could_come_in_by_is_refused_with_the_line_to_add(changes: dict[str, str | None], why: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config(BROKER, **changes)
    assert why in str(raised.value)
    assert "secret" not in str(raised.value).replace('"SECRET"', "")


def test_scram_between_several_controllers_is_refused_with_what_to_take_instead() -> None:
    scram = {
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.controller.scram-sha-256.sasl.jaas.config": SCRAM_JAAS,
    }
    assert config(CONTROLLER, **scram).sasl.to_controllers is not None, "one controller reads its own log"
    with pytest.raises(ConfigError, match=r"write sasl\.mechanism\.controller\.protocol=PLAIN, or give the listener"):
        config(CONTROLLER, **scram, **{"controller.quorum.voters": "9@h:9093,10@i:9093"})


def test_a_controller_whose_file_has_no_login_for_brokers_shows_what_it_shows_controllers() -> None:
    """Apache Kafka's never connect to them, so its files say nothing; ours asks them in an unclean recovery."""
    sasl = config(CONTROLLER).sasl
    assert sasl.to_controllers is not None
    assert sasl.between_brokers == sasl.to_controllers
    more = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
        "inter.broker.listener.name": "B",
    }
    sasl = config(CONTROLLER, **more).sasl
    assert sasl.between_brokers == sasl.to_controllers
    other = PLAIN_JAAS.replace('username="node"', 'username="other"')
    more |= {"listener.name.b.plain.sasl.jaas.config": other, "sasl.mechanism.inter.broker.protocol": "PLAIN"}
    said = config(CONTROLLER, **more).sasl.between_brokers
    assert said is not None
    assert said.options["username"] == "other"


def test_no_password_is_described_warned_of_or_shown() -> None:
    found = config(BROKER)
    assert "secret" not in repr(found)
    assert not [each for each in found.warnings if "sasl" in each]
    levels = Levels.of({}, 1, found.static)
    entries = {entry.name: entry for entry in describe_broker(levels)}
    assert entries[JAAS].value is None
    assert entries[JAAS].sensitive
    assert entries["sasl.enabled.mechanisms"].value == "PLAIN"
    assert "-secret" not in repr(list(entries.values()))


def test_a_node_that_its_peers_would_deny_is_refused() -> None:
    authorizer = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    for users in ("User:ANONYMOUS", "User:ANONYMOUS;User:alice"):
        with pytest.raises(
            ConfigError, match=r"super\.users lacks User:node, which this node is .* by listener SASL_PLAINTEXT"
        ):
            config(BROKER, **authorizer, **{"super.users": users})
    assert config(BROKER, **authorizer, **{"super.users": "User:ANONYMOUS;User:node"}).authorizer is not None


@pytest.mark.parametrize(
    "name", [JAAS, "listener.name.x.sasl.enabled.mechanisms", "sasl.mechanism.inter.broker.protocol"]
)
def test_what_is_read_at_the_start_is_not_taken_later(name: str) -> None:
    complaint = validate_broker_configs({name: "PLAIN"}, cluster=False)
    assert complaint is not None
    assert complaint.startswith("tanist reads these configs when a node starts; write them into its properties file: [")


def test_the_property_of_all_listeners() -> None:
    assert base_name(JAAS) == "sasl.jaas.config"
    assert base_name("listener.name.x.scram-sha-256.connections.max.reauth.ms") == "connections.max.reauth.ms"
    for name in ("listener.name.x.plain.ssl.keystore.type", "listener.name.x.plain.y", "plain.sasl.jaas.config"):
        assert base_name(name) == name


def test_a_node_that_its_peers_would_deny_does_not_start() -> None:
    authorizer = {
        "authorizer__class__name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super__users": "User:admin;User:ANONYMOUS",
    }
    with pytest.raises(ConfigError, match=r"super.users lacks User:node, which this node is .* by listener SASL_PLAIN"):
        config(BROKER, **authorizer)
    with pytest.raises(ConfigError, match=r"write super.users=User:ANONYMOUS;User:admin;User:node$"):
        config(CONTROLLER, **authorizer)
    assert config(BROKER, **{**authorizer, "super__users": "User:node;User:ANONYMOUS"}).authorizer is not None

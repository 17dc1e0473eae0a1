"""server.properties: the file's syntax as Java reads it, Kafka's defaults, and complaints that help."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.broker.authorizer_properties import AuthorizerConfig
from tanist.broker.config import ConfigError, Endpoint, NodeConfig, PropertiesError, Voter, parse_properties

# What java.util.Properties makes of each text.
JAVA = [
    ("a=1", {"a": "1"}),
    ("a = 1", {"a": "1"}),
    ("a:1", {"a": "1"}),
    ("a 1", {"a": "1"}),
    ("a", {"a": ""}),
    ("  a=1  ", {"a": "1  "}),
    ("a=b=c", {"a": "b=c"}),
    ("a\\=b=c", {"a=b": "c"}),
    ("# c\na=1", {"a": "1"}),
    ("! c\na=1", {"a": "1"}),
    ("a=1\\\n  2", {"a": "12"}),
    ("a=1\\\n# 2", {"a": "1# 2"}),
    ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
    ("a=\\u0041\\t\\n\\q", {"a": "A\t\nq"}),
    ("a=\\ud83d\\ude00", {"a": "\U0001f600"}),
    ("a\\ b=c", {"a b": "c"}),
    ("=x", {"": "x"}),
    ("a=1\na=2", {"a": "2"}),
    ("a=1\\", {"a": "1"}),
    ("\\\n\\\na=1", {"a": "1"}),
    ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
    ("a=\f1", {"a": "1"}),
    ("a\\:b : c", {"a:b": "c"}),
    ("a==b", {"a": "=b"}),
    ("a=:b", {"a": ":b"}),
    ("a= =b", {"a": "=b"}),
    ("", {}),
    ("\\", {"": ""}),
    ("a=x\\\n\n b=1", {"a": "x", "b": "1"}),
    ("# c\\\na=1", {"a": "1"}),
    ("a=\\", {"a": ""}),
    ("k\\u0061=v", {"ka": "v"}),
    ("a =\\\n", {"a": ""}),
    ("a=1 \\\n   \\\n 3", {"a": "1 3"}),
]


@pytest.mark.parametrize(("text", "properties"), JAVA)
def test_reads_a_file_as_java_does(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "b=1\na=\\u 123"])
def test_a_broken_escape_names_its_line(text: str) -> None:
    with pytest.raises(PropertiesError, match=rf"line {text.count(chr(10)) + 1}: "):
        parse_properties(text)


def _escaped(text: str, *, key: bool) -> str:
    """As java.util.Properties writes it."""
    out = []
    for position, character in enumerate(text):
        if character in "\\=:#!" or (character == " " and (key or position == 0)):
            out.append("\\" + character)
        elif character in "\t\n\r\f":
            out.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[character])
        else:
            units = character.encode("utf-16-be")
            out.extend(
                f"\\u{units[i]:02x}{units[i + 1]:02x}" if character > "~" else chr(units[i + 1])
                for i in range(0, len(units), 2)
            )
    return "".join(out)


_text = st.text(st.characters(min_codepoint=9, exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(_text, _text, max_size=6))
def test_what_java_writes_is_read_back(properties: dict[str, str]) -> None:
    lines = [f"{_escaped(key, key=True)}={_escaped(value, key=False)}" for key, value in properties.items()]
    assert parse_properties("\n".join(lines)) == properties


@given(st.text(st.sampled_from("ab=: \t\n\r\\#!u0123f"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        properties = parse_properties(text)
    except PropertiesError:
        return
    assert all("\n" not in key or "\\n" in text for key in properties)


# -- a node's configuration

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
}
BROKER = {
    "process.roles": "broker",
    "node.id": "2",
    "controller.quorum.voters": "1@localhost:9093",
    "controller.listener.names": "CONTROLLER",
}
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://:9093",
}


def test_combined_node_with_kafkas_defaults() -> None:
    config = NodeConfig.from_properties(COMBINED)
    assert config.is_broker
    assert config.is_controller
    assert config.node_id == 1
    assert config.listeners == (
        Endpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),
        Endpoint("CONTROLLER", "localhost", 9093, "PLAINTEXT"),
    )
    assert config.advertised_listeners == (Endpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),)
    assert config.inter_broker_listener_name == "PLAINTEXT"
    assert config.controller_quorum_voters == (Voter(1, "localhost", 9093),)
    assert (config.log_dirs, config.metadata_log_dir) == (("/tmp/kafka-logs",), "/tmp/kafka-logs")
    assert config.warnings == ()
    assert config.static == COMBINED


def test_facts_126_and_127_the_defaults() -> None:
    config = NodeConfig.from_properties(COMBINED)
    assert config.min_insync_replicas == 1
    assert config.unclean_leader_election_enable is False
    assert config.replica_lag_time_max_ms == 30000
    assert config.replica_fetch_wait_max_ms == 500
    assert config.replica_fetch_min_bytes == 1
    assert config.replica_fetch_backoff_ms == 1000
    assert config.default_replication_factor == 1
    assert config.auto_leader_rebalance_enable is True
    assert config.leader_imbalance_check_interval_seconds == 300
    assert config.unclean_leader_election_interval_ms == 300000
    assert config.broker_session_timeout_ms == 9000
    assert config.broker_heartbeat_interval_ms == 2000
    assert config.initial_broker_registration_timeout_ms == 60000
    assert config.max_request_partition_size_limit == 2000
    assert config.controller_quorum_election_timeout_ms == 1000
    assert config.controller_quorum_fetch_timeout_ms == 2000
    assert config.controller_quorum_election_backoff_max_ms == 1000
    assert config.controller_quorum_append_linger_ms == 25
    assert config.controller_quorum_request_timeout_ms == 2000
    assert config.controller_quorum_retry_backoff_ms == 20
    assert config.controller_quorum_auto_join_enable is False
    assert config.controller_quorum_fetch_max_bytes == 1048576
    assert config.controller_quorum_fetch_snapshot_max_bytes == 1048576


def test_broker_only_listens_on_kafkas_default_port() -> None:
    config = NodeConfig.from_properties(BROKER, hostname="here.example")
    assert config.listeners == (Endpoint("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    assert config.advertised_listeners == (Endpoint("PLAINTEXT", "here.example", 9092, "PLAINTEXT"),)
    assert not config.is_controller


def test_controller_only_advertises_nothing() -> None:
    config = NodeConfig.from_properties(CONTROLLER)
    assert (config.advertised_listeners, config.inter_broker_listener_name) == ((), "")
    assert not config.is_broker


def test_several_broker_listeners() -> None:
    config = NodeConfig.from_properties(
        COMBINED
        | {
            "listeners": "INTERNAL://[::1]:9091, EXTERNAL://0.0.0.0:9092, CONTROLLER://:9093",
            "advertised.listeners": "INTERNAL://[::1]:9091,EXTERNAL://out.example:19092",
            "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
        }
    )
    assert config.inter_broker_listener_name == "INTERNAL"
    assert [str(endpoint) for endpoint in config.advertised_listeners] == [
        "INTERNAL://[::1]:9091",
        "EXTERNAL://out.example:19092",
    ]
    assert config.listener("EXTERNAL").port == 9092


def test_values_keep_their_types_and_units() -> None:
    config = NodeConfig.from_text(
        """
        process.roles=broker
        broker.id=7
        controller.quorum.bootstrap.servers=c1:9093,[::1]:9093
        controller.listener.names=CONTROLLER
        log.dirs=/a, /b
        metadata.log.dir=/m
        broker.rack=r1
        max.connections.per.ip.overrides=127.0.0.1:5,::1:6
        replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector
        log.retention.hours=2
        """
    )
    assert config.node_id == 7
    assert config.controller_quorum_bootstrap_servers == (("c1", 9093), ("::1", 9093))
    assert (config.log_dirs, config.metadata_log_dir, config.broker_rack) == (("/a", "/b"), "/m", "r1")
    assert config.max_connections_per_ip_overrides == {"127.0.0.1": 5, "::1": 6}
    assert config.rack_aware_reads
    assert config.static["log.retention.hours"] == "2"


def test_unknown_names_are_kept_and_reported() -> None:
    config = NodeConfig.from_properties(COMBINED | {"num.io.threads": "8", "no.such.thing": "1"})
    assert config.warnings == (
        "num.io.threads has no effect in tanist",
        "no.such.thing is not a known setting and is ignored",
    )
    assert config.static["no.such.thing"] == "1"


def test_a_misspelt_name_is_reported_with_the_one_that_was_meant() -> None:
    (warning,) = NodeConfig.from_properties(COMBINED | {"min.insync.replica": "2"}).warnings
    assert warning == "min.insync.replica is not a known setting and is ignored; did you mean min.insync.replicas?"


AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}

REFUSED = [
    (COMBINED, {"process.roles": ""}, "process.roles is missing"),
    (COMBINED, {"process.roles": "zookeeper"}, "String must be one of: broker, controller"),
    (COMBINED, {"node.id": "x"}, "Invalid value x for configuration node.id"),
    (COMBINED, {"node.id": "-1"}, "Value must be at least 0"),
    (COMBINED, {"broker.id": "2"}, "node.id is 1 but broker.id is 2"),
    (COMBINED, {"controller.listener.names": ""}, "controller.listener.names is missing"),
    (
        COMBINED,
        {
            "controller.listener.names": "X",
            "listener.security.protocol.map": "X:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        },
        "listeners has none of them",
    ),
    (COMBINED, {"listeners": "PLAINTEXT://localhost:9092"}, "listeners has none of them"),
    (COMBINED, {"listeners": "CONTROLLER://localhost:9093"}, "a broker needs a listener"),
    (COMBINED, {"listeners": ""}, "listeners names no address"),
    (COMBINED, {"listeners": "PLAINTEXT:9092"}, "'PLAINTEXT:9092' is not a listener"),
    (COMBINED, {"listeners": "PLAINTEXT://h:99999,CONTROLLER://:9093"}, "'h:99999' is not an address"),
    (COMBINED, {"listeners": "PLAINTEXT://:9093,CONTROLLER://:9093"}, "both use port 9093"),
    (COMBINED, {"listeners": "PLAINTEXT://:1,PLAINTEXT://:2,CONTROLLER://:9093"}, "PLAINTEXT stands there twice"),
    (COMBINED, {"listeners": "FOO://:9092,CONTROLLER://:9093"}, "add FOO:PLAINTEXT to listener.security.protocol.map"),
    (
        COMBINED,
        {"ssl.principal.mapping.rules": "x", "listeners": "SSL://:9092,CONTROLLER://:9093"},
        "Invalid rule: `x`",
    ),
    (COMBINED, {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}, "add CONTROLLER:PLAINTEXT"),
    (COMBINED, {"listener.security.protocol.map": "PLAINTEXT:QUIC"}, "is not NAME:PROTOCOL"),
    (COMBINED, {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "nobody can connect to 0.0.0.0"),
    (COMBINED, {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"}, "nobody can connect to 0.0.0.0"),
    (COMBINED, {"inter.broker.listener.name": "FOO"}, "FOO is not advertised; use one of PLAINTEXT"),
    (COMBINED, {"inter.broker.listener.name": "CONTROLLER"}, "CONTROLLER is not advertised"),
    (
        COMBINED,
        {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
        "exclude each other",
    ),
    (COMBINED, {"controller.quorum.voters": ""}, "controller.quorum.voters is missing"),
    (COMBINED, {"controller.quorum.voters": "1@localhost"}, "'localhost' is not an address"),
    (COMBINED, {"controller.quorum.voters": "x@localhost:1"}, "write id@host:port"),
    (COMBINED, {"controller.quorum.voters": "1@a:1,1@b:2"}, "node 1 stands there twice"),
    (COMBINED, {"controller.quorum.voters": "2@a:1"}, "lacks node 1"),
    (BROKER, {"controller.quorum.voters": "2@a:1"}, "has node 2, which is only a broker"),
    (BROKER, {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}, "process.roles has no controller"),
    (CONTROLLER, {"listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"}, "when process.roles=controller"),
    (COMBINED, {"log.dirs": " ", "log.dir": ""}, "log.dirs names no folder"),
    (COMBINED, {"log.dirs": "/a,/a"}, "names a folder twice"),
    (COMBINED, {"log.retention.ms": "0"}, "log.retention.ms is 0"),
    (COMBINED, {"log.roll.ms": "0"}, "log.roll.ms must be 1 or more"),
    (COMBINED, {"log.segment.bytes": "1"}, "Value must be at least 1048576"),
    (COMBINED, {"replica.lag.time.max.ms": "100"}, "idle followers would leave the ISR"),
    (COMBINED, {"replica.fetch.wait.max.ms": "30001", "replica.lag.time.max.ms": "40000"}, "replica.socket.timeout.ms"),
    (COMBINED, {"broker.heartbeat.interval.ms": "9000"}, "every broker would be fenced"),
    (COMBINED, {"broker.session.timeout.ms": "0"}, "must be 1 or more"),
    (COMBINED, {"default.replication.factor": "0"}, "must be 1 or more"),
    (COMBINED, {"max.connections.per.ip": "0"}, "locks everyone out"),
    (COMBINED, {"max.connections.per.ip.overrides": "x"}, "is not address:count"),
    (
        COMBINED,
        {"authorizer.class.name": "a.B"},
        "'a.B' is not known; use org.apache.kafka.metadata.authorizer",
    ),
    (COMBINED, {**AUTHORIZER, "super.users": "User:a;b"}, "super.users: expected a string in format principalType"),
    (COMBINED, {**AUTHORIZER, "super.users": "User:a"}, "write super.users=User:ANONYMOUS;User:a"),
    (COMBINED, AUTHORIZER, "super.users lacks User:ANONYMOUS, which this node is to the others by listener CONTROLLER"),
    (COMBINED, {**AUTHORIZER, "allow.everyone.if.no.acl.found": "yes"}, "must be true or false, not 'yes'"),
    (COMBINED, {"create.topic.policy.class.name": "a.B"}, "tanist has no policies"),
    (COMBINED, {"replica.selector.class": "a.B"}, "is not known"),
    (COMBINED, {"tanist.metrics.listener": "localhost"}, "tanist.metrics.listener: 'localhost' is not an address"),
    (COMBINED, {"tanist.metrics.listener": "http://a:1"}, "is not an address; write host:port"),
    (COMBINED, {"tanist.metrics.listener": "a:65536"}, "is not an address"),
]


def test_super_users_are_separated_by_semicolons_and_a_name_may_have_commas() -> None:
    properties = {**COMBINED, **AUTHORIZER, "super.users": "User:CN=a,O=b; User:ANONYMOUS ;"}
    config = NodeConfig.from_properties(properties)
    assert config.authorizer == AuthorizerConfig(frozenset({"User:CN=a,O=b", "User:ANONYMOUS"}), False)
    assert not config.warnings


def test_a_node_alone_may_allow_everyone_until_there_are_entries() -> None:
    config = NodeConfig.from_properties({**COMBINED, **AUTHORIZER, "allow.everyone.if.no.acl.found": "TRUE"})
    assert config.authorizer == AuthorizerConfig(frozenset(), True)


def test_super_users_without_an_authorizer_are_ignored_and_that_is_said() -> None:
    config = NodeConfig.from_properties({**COMBINED, "super.users": "User:a"})
    assert config.authorizer is None
    assert any("super.users" in warning for warning in config.warnings)


@pytest.mark.parametrize(
    ("text", "address"),
    [("", None), (" ", None), ("localhost:9400", ("localhost", 9400)), (":0", ("", 0)), ("[::1]:9", ("::1", 9))],
)
def test_where_the_metrics_are_reported(text: str, address: tuple[str, int] | None) -> None:
    assert NodeConfig.from_properties(COMBINED).metrics_listener is None
    assert NodeConfig.from_properties(COMBINED | {"tanist.metrics.listener": text}).metrics_listener == address


@pytest.mark.parametrize(("base", "change", "words"), REFUSED)
def test_refuses_with_one_line_that_helps(base: dict[str, str], change: dict[str, str], words: str) -> None:
    NodeConfig.from_properties(base)
    with pytest.raises(ConfigError) as refusal:
        NodeConfig.from_properties(base | change)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_missing_node_id() -> None:
    with pytest.raises(ConfigError, match=r"node\.id is missing"):
        NodeConfig.from_properties({name: value for name, value in COMBINED.items() if name != "node.id"})


def test_the_finer_retention_hides_a_zero_in_the_coarser() -> None:
    config = NodeConfig.from_properties(COMBINED | {"log.retention.ms": "1000", "log.retention.hours": "0"})
    assert config.static["log.retention.ms"] == "1000"


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "listeners",
                "advertised.listeners",
                "controller.quorum.voters",
                "log.dirs",
                "node.id",
                "listener.security.protocol.map",
                "max.connections.per.ip.overrides",
                "broker.id",
            ]
        ),
        st.text(st.sampled_from("A1:@,/.[]P -"), max_size=24),
        max_size=3,
    )
)
def test_nonsense_is_refused_by_configerror_only(change: dict[str, str]) -> None:
    try:
        config = NodeConfig.from_properties(COMBINED | change)
    except ConfigError as refusal:
        assert str(refusal)  # noqa: PT017
    else:
        assert config.advertised_listeners

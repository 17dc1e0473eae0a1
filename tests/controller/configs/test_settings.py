"""Validation in Kafka's words, and the order of resolution."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.controller.configs.catalogue import BROKER_SETTINGS, TOPIC_SETTINGS
from tanist.controller.configs.definitions import ConfigSource, ConfigType, InvalidConfig
from tanist.controller.configs.description import describe_broker, describe_cluster, describe_topic
from tanist.controller.configs.settings import (
    Candidate,
    Levels,
    resolve_broker_config,
    resolve_topic_config,
    topic_configs,
)
from tanist.controller.configs.validation import (
    validate_broker_configs,
    validate_static_configs,
    validate_topic_configs,
)

NOTHING = Levels({}, {}, {})

# What org.apache.kafka.storage.internals.log.LogConfig 4.3.1 says of each.
REFUSED_BY_KAFKA = [
    ("foo", "1", "Unknown topic config name: foo"),
    ("message.format.version", "3.0", "Unknown topic config name: message.format.version"),
    ("retention.ms", "x", "Invalid value x for configuration retention.ms: Not a number of type LONG"),
    ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
    ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
    (
        "retention.ms",
        "9223372036854775808",
        "Invalid value 9223372036854775808 for configuration retention.ms: Not a number of type LONG",
    ),
    ("min.insync.replicas", "0", "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1"),
    (
        "min.insync.replicas",
        "99999999999",
        "Invalid value 99999999999 for configuration min.insync.replicas: Not a number of type INT",
    ),
    ("min.insync.replicas", "1_0", "Invalid value 1_0 for configuration min.insync.replicas: Not a number of type INT"),
    ("min.insync.replicas", "1.0", "Invalid value 1.0 for configuration min.insync.replicas: Not a number of type INT"),
    (
        "delete.retention.ms",
        "0x10",
        "Invalid value 0x10 for configuration delete.retention.ms: Not a number of type LONG",
    ),
    (
        "min.cleanable.dirty.ratio",
        "1.5",
        "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
    ),
    (
        "min.cleanable.dirty.ratio",
        "inf",
        "Invalid value inf for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE",
    ),
    (
        "cleanup.policy",
        "foo",
        "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    (
        "cleanup.policy",
        "COMPACT",
        "Invalid value COMPACT for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    ("cleanup.policy", "compact,", "Configuration 'cleanup.policy' values must not be empty."),
    ("cleanup.policy", "delete,,compact", "Configuration 'cleanup.policy' values must not be empty."),
    (
        "compression.type",
        "GZIP",
        "Invalid value GZIP for configuration compression.type: String must be one of: "
        "uncompressed, zstd, lz4, snappy, gzip, producer",
    ),
    (
        "compression.gzip.level",
        "0",
        "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
    ),
    (
        "compression.zstd.level",
        "23",
        "Invalid value 23 for configuration compression.zstd.level: Value must be no more than 22",
    ),
    (
        "unclean.leader.election.enable",
        "yes",
        "Invalid value yes for configuration unclean.leader.election.enable: Expected value to be either true or false",
    ),
    ("segment.bytes", "13", "Invalid value 13 for configuration segment.bytes: Value must be at least 1048576"),
    (
        "leader.replication.throttled.replicas",
        "*,1:2",
        "Invalid value [*, 1:2] for configuration leader.replication.throttled.replicas: "
        "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    ),
]

ACCEPTED_BY_KAFKA = [
    ("retention.ms", " 5 "),
    ("min.insync.replicas", "+2"),
    ("min.cleanable.dirty.ratio", "1e-1"),
    ("cleanup.policy", ""),
    ("cleanup.policy", "delete, compact"),
    ("compression.type", " gzip "),
    ("compression.gzip.level", "-1"),
    ("unclean.leader.election.enable", "TRUE"),
    ("preallocate", " true"),
    ("segment.bytes", "1048576"),
    ("internal.segment.bytes", "1048"),
    ("leader.replication.throttled.replicas", "*"),
    ("leader.replication.throttled.replicas", " 1:2 , 3:4 "),
    ("leader.replication.throttled.replicas", ""),
]


@pytest.mark.parametrize(("name", "value", "words"), REFUSED_BY_KAFKA)
def test_refuses_in_kafkas_words(name: str, value: str, words: str) -> None:
    assert validate_topic_configs({name: value}) == words


@pytest.mark.parametrize(("name", "value"), ACCEPTED_BY_KAFKA)
def test_accepts_what_kafka_accepts(name: str, value: str) -> None:
    assert validate_topic_configs({name: value}) is None


def test_compaction_lags_must_not_cross() -> None:
    assert validate_topic_configs({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}) == (
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    )
    assert validate_topic_configs({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}) is None


def test_unknown_names_are_reported_before_bad_values() -> None:
    assert validate_topic_configs({"retention.ms": "x", "nonsense": "1"}) == "Unknown topic config name: nonsense"


def test_null_values_are_refused() -> None:
    assert validate_topic_configs({"retention.ms": None}) == "Null value not supported for topic configs: retention.ms"


def test_tiered_storage_is_refused_because_there_is_none() -> None:
    assert "Tiered Storage" in (validate_topic_configs({"remote.storage.enable": "true"}) or "")
    assert validate_topic_configs({"remote.storage.enable": "false"}) is None


@pytest.mark.parametrize(
    ("configs", "cluster", "words"),
    [
        ({"num.partitions": "3", "broker.rack": "a"}, False, "dynamically: [broker.rack, num.partitions]"),
        ({"listeners": "PLAINTEXT://:1"}, True, "broker id must be specified: [listeners]"),
        (
            {"ssl.keystore.location": "/x"},
            False,
            "only per-listener using the listener prefix: [ssl.keystore.location]",
        ),
        ({"min.insync.replicas": "0"}, True, "Value must be at least 1"),
        ({"listeners": "a, a"}, True, "Configuration 'listeners' values must not be duplicated."),
    ],
)
def test_refuses_dynamic_broker_configs(configs: dict[str, str], cluster: bool, words: str) -> None:
    assert words in (validate_broker_configs(configs, cluster=cluster) or "")


def test_accepts_dynamic_broker_configs() -> None:
    assert validate_broker_configs({"min.insync.replicas": "2", "log.retention.ms": "-1"}, cluster=True) is None
    assert validate_broker_configs({"listeners": "PLAINTEXT://:1"}, cluster=False) is None
    assert validate_broker_configs({"min.insync.replicas": "2"}, cluster=False) is None
    assert validate_broker_configs({"leader.replication.throttled.rate": "1"}, cluster=True) is None
    assert validate_broker_configs({"listener.name.a.ssl.keystore.location": "/x"}, cluster=False) is None


def test_keeps_what_nobody_knows() -> None:
    assert validate_broker_configs({"no.such": "1"}, cluster=True) is None


def test_static_configs_are_all_checked() -> None:
    assert len(validate_static_configs({"num.partitions": "0", "log.segment.bytes": "1", "anything.else": "x"})) == 2


@given(st.sampled_from([*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()]), st.text(max_size=40))
def test_parsing_any_text_gives_a_value_or_a_sentence(setting: Any, text: str) -> None:
    try:
        value, words = setting.parse(text), None
    except InvalidConfig as refusal:
        value, words = None, str(refusal)
    if words is not None:
        assert setting.name in words
    elif setting.type in (ConfigType.SHORT, ConfigType.INT, ConfigType.LONG):
        assert value == int(text)
        assert abs(value) <= 1 << 63


@given(st.integers(min_value=-(1 << 70), max_value=1 << 70))
def test_integers_are_accepted_exactly_in_their_range(number: int) -> None:
    setting = TOPIC_SETTINGS["retention.bytes"]  # a LONG without further bounds
    if -(1 << 63) <= number < 1 << 63:
        assert setting.parse(str(number)) == number
    else:
        with pytest.raises(InvalidConfig):
            setting.parse(str(number))


def test_password_values_are_never_shown() -> None:
    from tanist.controller.configs.definitions import ConfigKey

    secret = ConfigKey("some.secret", ConfigType.PASSWORD, None, "A secret.", lambda value: "is not good")
    with pytest.raises(InvalidConfig) as refusal:
        secret.parse("hunter2")
    assert "hunter2" not in str(refusal.value)


# -- resolution


def test_topic_beats_broker_beats_cluster_beats_static_beats_default() -> None:
    name = "min.insync.replicas"
    static = {name: "4"}
    cluster = {name: "3"}
    broker = {name: "2"}
    assert resolve_topic_config(name, {}, NOTHING) == Candidate(name, "1", ConfigSource.DEFAULT)
    assert resolve_topic_config(name, {}, Levels({}, {}, static)).source is ConfigSource.STATIC_BROKER
    assert resolve_topic_config(name, {}, Levels({}, cluster, static)).source is ConfigSource.DYNAMIC_CLUSTER
    assert resolve_topic_config(name, {}, Levels(broker, cluster, static)).source is ConfigSource.DYNAMIC_BROKER
    assert resolve_topic_config(name, {name: "1"}, Levels(broker, cluster, static)) == Candidate(
        name, "1", ConfigSource.TOPIC
    )
    assert resolve_broker_config(name, Levels(broker, cluster, static)).value == "2"
    assert resolve_broker_config(name, NOTHING) == Candidate(name, "1", ConfigSource.DEFAULT)


@pytest.mark.parametrize(
    ("static", "value"),
    [
        ({}, "604800000"),
        ({"log.retention.hours": "1"}, "3600000"),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, "120000"),
        ({"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"}, "3"),
        ({"log.retention.hours": "-1"}, "-1"),
    ],
)
def test_the_finer_unit_wins_and_is_converted(static: dict[str, str], value: str) -> None:
    assert resolve_topic_config("retention.ms", {}, Levels({}, {}, static)).value == value


def test_a_level_beats_the_finer_unit_of_a_level_below() -> None:
    levels = Levels({}, {"log.retention.minutes": "1"}, {"log.retention.ms": "3"})
    assert resolve_topic_config("retention.ms", {}, levels) == Candidate(
        "retention.ms", "60000", ConfigSource.DYNAMIC_CLUSTER
    )


def test_topic_configs_have_every_name_with_a_value() -> None:
    configs = topic_configs({"cleanup.policy": "compact"}, NOTHING)
    assert configs["cleanup.policy"] == "compact"
    assert configs["segment.bytes"] == "1073741824"
    assert set(TOPIC_SETTINGS) - set(configs) == {"internal.segment.bytes"}


def test_levels_are_picked_out_of_an_image() -> None:
    configs = {(4, "1"): {"a": "1"}, (4, ""): {"b": "2"}, (2, "1"): {"c": "3"}}
    assert Levels.of(configs, 1, {"d": "4"}) == Levels({"a": "1"}, {"b": "2"}, {"d": "4"})
    assert Levels.of(configs, 2, {}) == Levels({}, {"b": "2"}, {})


# -- description


def test_describe_topic_lists_all_levels_with_the_one_in_force_first() -> None:
    levels = Levels({}, {"log.retention.ms": "5"}, {"log.retention.hours": "2"})
    (entry,) = describe_topic({"retention.ms": "9"}, levels, ["retention.ms", "no.such.name", "retention.ms"])
    assert (entry.value, entry.source, entry.type) == ("9", ConfigSource.TOPIC, ConfigType.LONG)
    assert [(s.name, s.value, s.source.value) for s in entry.synonyms] == [
        ("retention.ms", "9", 1),
        ("log.retention.ms", "5", 3),
        ("log.retention.hours", "2", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert not entry.read_only
    (entry,) = describe_topic({}, Levels({}, {}, {"log.retention.hours": "2"}), ["retention.ms"])
    # In force, but of another name: as Apache Kafka describes it.
    assert (entry.value, entry.source, entry.synonyms) == ("7200000", ConfigSource.DEFAULT, ())


def test_describe_all_leaves_internal_names_out() -> None:
    names = {entry.name for entry in describe_topic({}, NOTHING)}
    assert "internal.segment.bytes" not in names
    assert "min.insync.replicas" in names
    names = {entry.name for entry in describe_broker(NOTHING)}
    assert "unclean.leader.election.interval.ms" not in names
    assert {"broker.rack", "advertised.listeners"} <= names  # librdkafka's tests look for these


def test_describe_broker_marks_what_cannot_change() -> None:
    entries = {
        entry.name: entry for entry in describe_broker(Levels({"min.insync.replicas": "2"}, {}, {"node.id": "1"}))
    }
    assert entries["node.id"].read_only
    assert entries["node.id"].source is ConfigSource.STATIC_BROKER
    assert not entries["min.insync.replicas"].read_only
    assert [(s.value, s.source) for s in entries["min.insync.replicas"].synonyms] == [
        ("2", ConfigSource.DYNAMIC_BROKER),
        ("1", ConfigSource.DEFAULT),
    ]


def test_describe_cluster_lists_only_what_is_set() -> None:
    (entry,) = describe_cluster({"min.insync.replicas": "2"})
    assert (entry.name, entry.value, entry.source.value) == ("min.insync.replicas", "2", 3)
    assert describe_cluster({"min.insync.replicas": "2"}, ["num.partitions"]) == []

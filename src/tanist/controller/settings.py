"""Configuration values: which are valid, and which one is in force.

Owns validation of topic and broker configs (with Kafka's sentences) and the resolution order: topic, then this
broker's dynamic config, then the cluster's dynamic config, then the static file, then the default. DescribeConfigs'
entries, with sources and synonyms, come from the same walk. It must never change anything: `configs` writes records.

Dynamic configs are the metadata image's: `{(resource type, resource name): {name: value}}`, broker "" = all brokers.
Facts 3 and 100 depend on this order; fact 126 has the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .broker_settings import BROKER_SETTINGS, is_kafka_only
from .definitions import ConfigSource, ConfigType, InvalidConfig, Setting, Synonym, Update, split_list
from .topic_settings import TOPIC_SETTINGS

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
CLUSTER = ""
"""Name of the BROKER resource that stands for every broker."""

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION_ENABLE = "unclean.leader.election.enable"

MAX_VALUE_LENGTH = 32767

Dynamic = Mapping[tuple[int, str], Mapping[str, str]]
_NOTHING: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Levels:
    """The configs below a topic's own, highest first: this broker's, the cluster's, the static file's."""

    broker: Mapping[str, str]
    cluster: Mapping[str, str]
    static: Mapping[str, str]

    @classmethod
    def of(cls, configs: Dynamic, broker_id: int, static: Mapping[str, str]) -> Levels:
        return cls(
            configs.get((BROKER_RESOURCE, str(broker_id)), _NOTHING),
            configs.get((BROKER_RESOURCE, CLUSTER), _NOTHING),
            static,
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """One level's value for one name."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """What DescribeConfigs says of one name. `synonyms` are all levels that have a value, the one in force first."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType
    documentation: str
    synonyms: tuple[Candidate, ...]


# ---- validation


def validate_topic_configs(configs: Mapping[str, str | None]) -> str | None:
    """The first thing wrong with a topic's configs, or None."""
    for name in configs:
        if name not in TOPIC_SETTINGS:
            return f"Unknown topic config name: {name}"
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        return f"Null value not supported for topic configs: {','.join(nulls)}"
    values = {name: value for name, value in configs.items() if value is not None}
    complaint = _first_complaint(TOPIC_SETTINGS, values)
    if complaint is not None:
        return complaint
    if values.get("remote.storage.enable", "").strip().lower() == "true":
        return "Tiered storage is not available: remote.storage.enable cannot be set to true."
    shortest = int(values.get("min.compaction.lag.ms", TOPIC_SETTINGS["min.compaction.lag.ms"].default or "0"))
    longest = int(values.get("max.compaction.lag.ms", TOPIC_SETTINGS["max.compaction.lag.ms"].default or "0"))
    if shortest > longest:
        return f"conflict topic config setting min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
    return None


def validate_broker_configs(configs: Mapping[str, str | None], *, cluster: bool) -> str | None:
    """The first thing wrong with dynamic configs of one broker (or of all, `cluster`), or None."""
    fixed: list[str] = []
    single: list[str] = []
    for name in configs:
        setting = BROKER_SETTINGS.get(name)
        if setting is None:
            if is_kafka_only(name):
                return f"{name} has no meaning in tanist and cannot be set dynamically."
            return f"Unknown broker config name: {name}"
        if setting.update is Update.READ_ONLY:
            fixed.append(name)
        elif setting.update is Update.PER_BROKER and cluster:
            single.append(name)
    if fixed:
        return f"Cannot update these configs dynamically: {','.join(sorted(fixed))}"
    if single:
        return (
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"{','.join(sorted(single))}"
        )
    return _first_complaint(BROKER_SETTINGS, {name: value for name, value in configs.items() if value is not None})


def validate_static_configs(configs: Mapping[str, str]) -> list[str]:
    """Everything wrong with the values of a properties file. Unknown names are none of its business."""
    complaints = []
    for name, value in configs.items():
        setting = BROKER_SETTINGS.get(name)
        complaint = _complaint(setting, value) if setting is not None else None
        if complaint is not None:
            complaints.append(complaint)
    return complaints


def _first_complaint(settings: Mapping[str, Setting], values: Mapping[str, str]) -> str | None:
    for name, value in values.items():
        complaint = _complaint(settings[name], value)
        if complaint is not None:
            return complaint
    return None


def _complaint(setting: Setting, value: str) -> str | None:
    try:
        setting.parse(value)
    except InvalidConfig as refusal:
        return str(refusal)
    return None


# ---- resolution


def resolve_topic_config(name: str, topic: Mapping[str, str], levels: Levels) -> Candidate:
    """The value in force for one topic config."""
    setting = TOPIC_SETTINGS[name]
    own = topic.get(name)
    if own is not None:
        return Candidate(name, own, ConfigSource.TOPIC)
    for source, configs in _dynamic_and_static(levels):
        for synonym in setting.synonyms:
            value = configs.get(synonym.name)
            if value is not None:
                return Candidate(name, synonym.convert(value), source)
    return Candidate(name, setting.default, ConfigSource.DEFAULT)


def topic_configs(topic: Mapping[str, str], levels: Levels) -> dict[str, str]:
    """All configs in force for a topic: what a `LogConfig` is built from. Names without any value are left out."""
    resolved = {name: resolve_topic_config(name, topic, levels).value for name in TOPIC_SETTINGS}
    return {name: value for name, value in resolved.items() if value is not None}


def resolve_broker_config(name: str, levels: Levels) -> Candidate:
    """The value in force for one broker config."""
    for source, configs in _dynamic_and_static(levels):
        value = configs.get(name)
        if value is not None:
            return Candidate(name, value, source)
    return Candidate(name, BROKER_SETTINGS[name].default, ConfigSource.DEFAULT)


def static_text(static: Mapping[str, str], name: str) -> str | None:
    """What a properties file says of one broker config, or its default."""
    given = static.get(name)
    return given if given is not None else BROKER_SETTINGS[name].default


def _dynamic_and_static(levels: Levels) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
    return (
        (ConfigSource.DYNAMIC_BROKER, levels.broker),
        (ConfigSource.DYNAMIC_CLUSTER, levels.cluster),
        (ConfigSource.STATIC_BROKER, levels.static),
    )


# ---- description


def describe_topic(topic: Mapping[str, str], levels: Levels, names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """DescribeConfigs of a TOPIC resource: every public name, or those asked for. Names nobody knows are left out."""
    entries = []
    for setting in _selected(TOPIC_SETTINGS, names):
        in_force = resolve_topic_config(setting.name, topic, levels)
        candidates = _broker_candidates(setting.synonyms, levels)
        if setting.name in topic:
            candidates.insert(0, Candidate(setting.name, topic[setting.name], ConfigSource.TOPIC))
        entries.append(_entry(setting, in_force, candidates, read_only=False))
    return entries


def describe_broker(levels: Levels, names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """DescribeConfigs of a BROKER resource with an id: every public name, or those asked for."""
    entries = []
    for setting in _selected(BROKER_SETTINGS, names):
        in_force = resolve_broker_config(setting.name, levels)
        candidates = _broker_candidates((Synonym(setting.name),), levels)
        entries.append(_entry(setting, in_force, candidates, read_only=setting.update is Update.READ_ONLY))
    return entries


def describe_cluster(cluster: Mapping[str, str], names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """DescribeConfigs of the BROKER resource "": only what is set for the whole cluster."""
    entries = []
    for setting in _selected(BROKER_SETTINGS, names):
        if setting.name in cluster:
            own = Candidate(setting.name, cluster[setting.name], ConfigSource.DYNAMIC_CLUSTER)
            entries.append(_entry(setting, own, [own], read_only=setting.update is Update.READ_ONLY))
    return entries


def _selected(settings: Mapping[str, Setting], names: Iterable[str] | None) -> list[Setting]:
    if names is None:
        return [setting for setting in settings.values() if not setting.internal]
    return [settings[name] for name in dict.fromkeys(names) if name in settings]


def _broker_candidates(synonyms: tuple[Synonym, ...], levels: Levels) -> list[Candidate]:
    """Every level's value, in the broker settings' own names and units."""
    found = [
        Candidate(synonym.name, configs[synonym.name], source)
        for source, configs in _dynamic_and_static(levels)
        for synonym in synonyms
        if synonym.name in configs
    ]
    for synonym in synonyms:
        default = BROKER_SETTINGS[synonym.name].default
        if default is not None:
            found.append(Candidate(synonym.name, default, ConfigSource.DEFAULT))
    return found


def _entry(setting: Setting, in_force: Candidate, candidates: list[Candidate], *, read_only: bool) -> ConfigEntry:
    def shown(value: str | None) -> str | None:
        return None if setting.sensitive else value

    return ConfigEntry(
        setting.name,
        shown(in_force.value),
        in_force.source,
        read_only,
        setting.sensitive,
        setting.type,
        setting.doc,
        tuple(Candidate(c.name, shown(c.value), c.source) for c in candidates),
    )


def is_list(resource_type: int, name: str) -> bool:
    """Whether APPEND and SUBTRACT make sense for this name."""
    settings = TOPIC_SETTINGS if resource_type == TOPIC_RESOURCE else BROKER_SETTINGS
    setting = settings.get(name)
    return setting is not None and setting.type is ConfigType.LIST


def default_of(resource_type: int, name: str) -> str | None:
    """The default of a known name."""
    settings = TOPIC_SETTINGS if resource_type == TOPIC_RESOURCE else BROKER_SETTINGS
    setting = settings.get(name)
    return setting.default if setting is not None else None


__all__ = [
    "BROKER_RESOURCE",
    "BROKER_SETTINGS",
    "CLUSTER",
    "MAX_VALUE_LENGTH",
    "MIN_INSYNC_REPLICAS",
    "TOPIC_RESOURCE",
    "TOPIC_SETTINGS",
    "UNCLEAN_LEADER_ELECTION_ENABLE",
    "Candidate",
    "ConfigEntry",
    "ConfigSource",
    "ConfigType",
    "Dynamic",
    "InvalidConfig",
    "Levels",
    "Setting",
    "default_of",
    "describe_broker",
    "describe_cluster",
    "describe_topic",
    "is_list",
    "resolve_broker_config",
    "resolve_topic_config",
    "split_list",
    "static_text",
    "topic_configs",
    "validate_broker_configs",
    "validate_static_configs",
    "validate_topic_configs",
]

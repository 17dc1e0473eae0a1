"""Resolution of the configuration values in force.

Owns the resolution order: topic, then this broker's dynamic config, then the cluster's dynamic config, then the static
file, then the default. `validation` judges values and `description` describes them. It must never change anything:
`alter_configs` writes records.

Dynamic configs are the metadata image's: `{(resource type, resource name): {name: value}}`, broker "" = all brokers.
Rules 3 and 100 depend on this order; rule 126 has the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .catalogue import (
    BROKER_SETTINGS,
    CLIENT_METRICS_SETTINGS,
    GROUP_SETTINGS,
    PREFIXED_BY_MECHANISM,
    TOPIC_SETTINGS,
)
from .definitions import ConfigKey, ConfigSource, ConfigType

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
PRODUCER_ID_EXPIRATION_MS: Final = "producer.id.expiration.ms"
UNCLEAN_LEADER_ELECTION_ENABLE: Final = "unclean.leader.election.enable"
UNCLEAN_RECOVERY_STRATEGY: Final = "unclean.recovery.strategy"


TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
BROKER_LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32
CLUSTER = ""
"""Name of the BROKER resource that stands for every broker."""

MAX_VALUE_LENGTH = 32767

Dynamic = Mapping[tuple[int, str], Mapping[str, str]]
_NOTHING: dict[str, str] = {}
_OF_RESOURCE: dict[int, Mapping[str, ConfigKey]] = {
    TOPIC_RESOURCE: TOPIC_SETTINGS,
    BROKER_RESOURCE: BROKER_SETTINGS,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS_SETTINGS,
    GROUP_RESOURCE: GROUP_SETTINGS,
}
_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.+)")
_MECHANISM = re.compile(r"[^.]+\.(.+)")


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

    def in_order(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        """Highest first, each with the source that a description names."""
        return (
            (ConfigSource.DYNAMIC_BROKER, self.broker),
            (ConfigSource.DYNAMIC_CLUSTER, self.cluster),
            (ConfigSource.STATIC_BROKER, self.static),
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """One level's value for one name."""

    name: str
    value: str | None
    source: ConfigSource


def base_name(name: str) -> str:
    """The property of all listeners: `listener.name.NAME.BASE` is BASE for the listener NAME.

    Some may stand there for one mechanism of SASL: `listener.name.NAME.MECHANISM.BASE`.
    """
    found = _LISTENER.fullmatch(name)
    if found is None:
        return name
    if found[1] in BROKER_SETTINGS:
        return found[1]
    of_mechanism = _MECHANISM.fullmatch(found[1])
    return of_mechanism[1] if of_mechanism is not None and of_mechanism[1] in PREFIXED_BY_MECHANISM else name


def own_of_listener(configs: Mapping[str, str], listener: str) -> dict[str, str]:
    """What stands there for one listener alone: by the names behind `listener.name.NAME.`, NAME in any case.

    The one place that looks for this prefix: TLS, SASL and the limits of connections have it from here.
    """
    prefix = f"listener.name.{listener}.".lower()
    lowered = ((name.lower(), value) for name, value in configs.items())
    return {name.removeprefix(prefix): value for name, value in lowered if name.startswith(prefix)}


def meant_by(name: str) -> list[str]:
    """Settings of a broker that somebody may have meant who wrote a name that none has."""
    from difflib import get_close_matches  # for a mistake only: each start of a node counts

    return get_close_matches(name, BROKER_SETTINGS, n=2)


def setting_of(resource_type: int, name: str) -> ConfigKey | None:
    """The definition of a name for a resource of this type; None if Kafka does not know it."""
    settings = _OF_RESOURCE.get(resource_type, {})
    return settings.get(base_name(name) if resource_type == BROKER_RESOURCE else name)


def is_list(resource_type: int, name: str) -> bool:
    """Whether APPEND and SUBTRACT make sense for this name. Kafka knows no lists of client metrics here."""
    setting = _OF_RESOURCE.get(resource_type, {}).get(name)
    return setting is not None and setting.type is ConfigType.LIST and resource_type != CLIENT_METRICS_RESOURCE


def default_of(resource_type: int, name: str) -> str | None:
    """The default of a known name."""
    setting = setting_of(resource_type, name)
    return setting.default if setting is not None else None


def resolve_topic_config(name: str, topic: Mapping[str, str], levels: Levels) -> Candidate:
    """The value in force for one topic config."""
    own = topic.get(name)
    return Candidate(name, own, ConfigSource.TOPIC) if own is not None else _fallen_back(TOPIC_SETTINGS[name], levels)


def resolve_group_config(name: str, group: Mapping[str, str], levels: Levels) -> Candidate:
    """The value in force for one group config."""
    own = group.get(name)
    return Candidate(name, own, ConfigSource.GROUP) if own is not None else _fallen_back(GROUP_SETTINGS[name], levels)


def _fallen_back(setting: ConfigKey, levels: Levels) -> Candidate:
    for source, configs in levels.in_order():
        for synonym in setting.synonyms:
            value = configs.get(synonym.name)
            if value is not None:
                return Candidate(setting.name, synonym.convert(value), source)
    return Candidate(setting.name, setting.default, ConfigSource.DEFAULT)


def topic_configs(topic: Mapping[str, str], levels: Levels) -> dict[str, str]:
    """All configs in force for a topic, for `LogConfig`. Names without any value are left out."""
    resolved = {name: resolve_topic_config(name, topic, levels).value for name in TOPIC_SETTINGS}
    return {name: value for name, value in resolved.items() if value is not None}


def resolve_broker_config(name: str, levels: Levels) -> Candidate:
    """The value in force for one broker config."""
    for source, configs in levels.in_order():
        value = configs.get(name)
        if value is not None:
            return Candidate(name, value, source)
    return Candidate(name, BROKER_SETTINGS[name].default, ConfigSource.DEFAULT)


def static_text(static: Mapping[str, str], name: str) -> str | None:
    """The value of one broker config in a properties file, or its default."""
    given = static.get(name)
    return given if given is not None else BROKER_SETTINGS[name].default

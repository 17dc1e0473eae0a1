"""The answer of DescribeConfigs: each name's value, its source, and the values that it overrides.

Owns the entries, with Kafka's rules for synonyms: the levels that have a value, highest first, of the name itself and
of those it falls back to; but from the first that bears the name on, so that a broker's `log.retention.hours` is no
synonym of a `retention.ms` while no level has `log.retention.ms`. A value is described as it is in force, in Kafka's
spelling; a broker's synonym as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile

from .catalogue import BROKER_SETTINGS, CLIENT_METRICS_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from .definitions import ConfigKey, ConfigSource, ConfigType, Update
from .settings import (
    BROKER_RESOURCE,
    Candidate,
    Levels,
    base_name,
    resolve_broker_config,
    resolve_group_config,
    resolve_topic_config,
    setting_of,
)

_CHAINS = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)
_CHAIN_OF = {name: chain for chain in _CHAINS for name in chain} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}
"""Broker properties that stand for one another in other units, or that Kafka lists together."""


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """The entry of one name in DescribeConfigs. `synonyms` are all levels that have a value, the one in force first."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType
    documentation: str | None
    synonyms: tuple[Candidate, ...]


def describe_topic(topic: Mapping[str, str], levels: Levels, names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """DescribeConfigs of a TOPIC resource: every public name, or the requested ones. Unknown names are left out."""
    return [
        _fallen_back(
            setting, resolve_topic_config(setting.name, topic, levels), _broker_chain(setting, levels), topic,
            ConfigSource.TOPIC,
        )
        for setting in _selected(TOPIC_SETTINGS, names)
    ]  # fmt: skip


def describe_group(group: Mapping[str, str], levels: Levels, names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """DescribeConfigs of a GROUP resource. A name without a broker's property shows its own default as a synonym."""
    return [
        _fallen_back(
            setting,
            resolve_group_config(setting.name, group, levels),
            _broker_chain(setting, levels)
            if setting.synonyms
            else [Candidate(setting.name, setting.default, ConfigSource.DEFAULT)],
            group,
            ConfigSource.GROUP,
        )
        for setting in _selected(GROUP_SETTINGS, names)
    ]


def describe_client_metrics(subscription: Mapping[str, str], names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """DescribeConfigs of a CLIENT_METRICS resource."""
    return [
        _fallen_back(
            setting,
            Candidate(setting.name, subscription.get(setting.name, setting.default), ConfigSource.DEFAULT),
            [],
            subscription,
            ConfigSource.CLIENT_METRICS,
        )
        for setting in _selected(CLIENT_METRICS_SETTINGS, names)
    ]


def describe_broker(levels: Levels, names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """DescribeConfigs of a BROKER resource with an id: every public name and others that are set, or the requested
    ones.

    An unknown name is treated as a password, because it may be one, and has no type.
    """
    others = dict.fromkeys(name for _, configs in levels.in_order() for name in configs if _is_public_once_set(name))
    if names is None:
        public = [name for name, setting in BROKER_SETTINGS.items() if not setting.internal]
        requested: Iterable[str] = (*public, *others)
    else:
        requested = (name for name in dict.fromkeys(names) if name in others or _is_public(name))
    return [_broker_entry(name, levels) for name in requested]


def describe_cluster(cluster: Mapping[str, str], names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """DescribeConfigs of the BROKER resource "": only what is set for the whole cluster, as it was written."""
    entries = []
    for name in cluster if names is None else dict.fromkeys(names):
        if name in cluster:
            own = Candidate(name, cluster[name], ConfigSource.DYNAMIC_CLUSTER)
            entries.append(_entry(name, setting_of(BROKER_RESOURCE, name), own, [own], read_only=_read_only(name)))
    return entries


def _is_public(name: str) -> bool:
    return name in BROKER_SETTINGS and not BROKER_SETTINGS[name].internal


def _is_public_once_set(name: str) -> bool:
    """An unknown name, or one that Kafka has as dynamic only (the rates of throttled replicas)."""
    setting = BROKER_SETTINGS.get(name)
    return setting is None or setting.is_public_once_set


def _read_only(name: str) -> bool:
    """A property of one listener is described as read-only, as in Kafka, though it can be set."""
    return name not in BROKER_SETTINGS or BROKER_SETTINGS[name].update is Update.READ_ONLY


def _broker_entry(name: str, levels: Levels) -> ConfigEntry:
    setting = setting_of(BROKER_RESOURCE, name)
    base = base_name(name)
    chain = _CHAIN_OF.get(name) or ((name,) if base == name else (name, base))
    synonyms = _candidates(chain, name, levels)
    if name in BROKER_SETTINGS:
        value = resolve_broker_config(name, levels).value
    else:
        value = synonyms[0].value
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    if setting is not None and value is not None:
        value = setting.shown(value)
    return _entry(name, setting, Candidate(name, value, source), synonyms, read_only=_read_only(name))


def _selected(settings: Mapping[str, ConfigKey], names: Iterable[str] | None) -> list[ConfigKey]:
    requested = settings if names is None else [name for name in dict.fromkeys(names) if name in settings]
    return [settings[name] for name in requested if not settings[name].internal]


def _broker_chain(setting: ConfigKey, levels: Levels) -> list[Candidate]:
    """The candidates of the broker's property that a topic's or group's falls back to."""
    if not setting.synonyms:
        return []
    first = setting.synonyms[0].name
    return _candidates(_CHAIN_OF.get(first, (first,)), first, levels)


def _candidates(chain: Sequence[str], asked: str, levels: Levels) -> list[Candidate]:
    """Every level's value for the names of a chain, in their own units, from the first of the name asked for."""
    found = [
        Candidate(name, configs[name], source)
        for source, configs in levels.in_order()
        for name in chain
        if name in configs
    ]
    for name in chain:
        setting = BROKER_SETTINGS.get(name)
        if setting is not None and setting.default is not None:
            found.append(Candidate(name, setting.default, ConfigSource.DEFAULT))
    return list(dropwhile(lambda candidate: candidate.name != asked, found))


def _fallen_back(
    setting: ConfigKey,
    in_force: Candidate,
    candidates: Sequence[Candidate],
    own: Mapping[str, str],
    source: ConfigSource,
) -> ConfigEntry:
    """The entry of a name that has the resource's own value, or else the first of the candidates."""
    synonyms = list(candidates)
    value = in_force.value
    if setting.name in own:
        value = own[setting.name]
        synonyms.insert(0, Candidate(setting.name, setting.shown(value), source))
    first = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    text = None if value is None else setting.shown(value)
    return _entry(setting.name, setting, Candidate(setting.name, text, first), synonyms, read_only=False)


def _entry(
    name: str, setting: ConfigKey | None, in_force: Candidate, synonyms: Sequence[Candidate], *, read_only: bool
) -> ConfigEntry:
    sensitive = setting is None or setting.sensitive
    return ConfigEntry(
        name,
        None if sensitive else in_force.value,
        in_force.source,
        read_only,
        sensitive,
        ConfigType.UNKNOWN if setting is None else setting.type,
        None if setting is None or setting.is_dynamic_only or setting.name != name else setting.doc,
        tuple(Candidate(each.name, None if sensitive else each.value, each.source) for each in synonyms),
    )

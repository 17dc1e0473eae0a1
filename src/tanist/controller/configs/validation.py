"""Validation of configuration values, in Kafka's wording.

Owns the checks of a resource's values by the catalogue, and of the relations between those of one topic. The relations
between a broker's values depend on its properties file: `relations`. Must never change anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .catalogue import BROKER_SETTINGS, CLIENT_METRICS_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from .client_patterns import client_patterns
from .definitions import ConfigKey, EachOf, InvalidConfig, PlainList, Update, split_list
from .settings import BROKER_RESOURCE, base_name, setting_of, static_text

_SECURITY = frozenset(
    (
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    )
)
_READ_AT_START = frozenset(("sasl.enabled.mechanisms", "sasl.jaas.config", "sasl.mechanism.inter.broker.protocol"))
"""Properties that Apache Kafka lets be set for a broker that runs. To take them without effect would be a promise."""
_LEAST_INTERVAL_MS, _MOST_INTERVAL_MS = 100, 3_600_000


def validate_topic_configs(configs: Mapping[str, str | None]) -> str | None:
    """The first fault of a topic's configs, or None."""
    for name in configs:
        if name not in TOPIC_SETTINGS:
            return f"Unknown topic config name: {name}"
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        return f"Null value not supported for topic configs: {','.join(nulls)}"
    values = _given(configs)
    complaint = _first_complaint(TOPIC_SETTINGS, values)
    if complaint is not None:
        return complaint
    if values.get("remote.storage.enable", "").strip().lower() == "true":
        disabled = "Tiered Storage functionality is disabled in the broker."
        return f"{disabled} Topic cannot be configured with remote log storage."
    shortest = int(values.get("min.compaction.lag.ms", TOPIC_SETTINGS["min.compaction.lag.ms"].default or "0"))
    longest = int(values.get("max.compaction.lag.ms", TOPIC_SETTINGS["max.compaction.lag.ms"].default or "0"))
    if shortest > longest:
        return f"conflict topic config setting min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
    return None


def validate_group_configs(configs: Mapping[str, str | None], static: Mapping[str, str]) -> str | None:
    """The first fault of a group's configs, or None. `static` has the bounds that a broker sets to them."""
    for name in configs:
        if name not in GROUP_SETTINGS:
            return f"Unknown group config name: {name}"
    values = _given(configs)
    complaint = _first_complaint(GROUP_SETTINGS, values)
    if complaint is not None:
        return complaint
    for name, text in values.items():
        kind, _, rest = name.partition(".")
        least, most = (_bound(f"group.{kind}.{bound}.{rest.removeprefix('num.')}", static) for bound in ("min", "max"))
        if (least is None or int(text) >= least) and (most is None or int(text) <= most):
            continue
        if least is None or most is None:
            kept = f"greater than or equal to {least}" if most is None else f"less than or equal to {most}"
            return f"{name} must be {kept}"
        return f"{name} must be in the range {least} to {most} inclusive."
    assignor, known = (
        values.get("streams.assignor.name"),
        split_list(static_text(static, "group.streams.assignors") or ""),
    )
    if assignor is not None and assignor.strip() not in known:
        return (
            f"streams.assignor.name '{assignor.strip()}' is not a registered task assignor. Registered assignors are: "
            f"[{', '.join(known)}]."
        )
    tags = split_list(values.get("streams.rack.aware.assignment.tags", ""))
    if len(set(tags)) < len(tags):
        return "streams.rack.aware.assignment.tags must not contain duplicate tag keys."
    timeout, interval = (_in_group(name, values) for name in ("consumer.session.timeout.ms", _HEARTBEAT))
    if {_HEARTBEAT, "consumer.session.timeout.ms"} & values.keys() and timeout <= interval:
        return f"consumer.session.timeout.ms must be greater than {_HEARTBEAT}"
    return None


def _bound(limit_name: str, static: Mapping[str, str]) -> int | None:
    return int(static_text(static, limit_name) or 0) if limit_name in BROKER_SETTINGS else None


_HEARTBEAT = "consumer.heartbeat.interval.ms"


def _in_group(name: str, values: Mapping[str, str]) -> int:
    return int(values.get(name, GROUP_SETTINGS[name].default or "0"))


class MalformedConfig(InvalidConfig):
    """A fault that Kafka refuses with INVALID_REQUEST."""


def validate_client_metrics_configs(configs: Mapping[str, str | None]) -> str | None:
    """The first fault of a client metrics subscription, or None. `MalformedConfig` where Kafka says so."""
    values = _given(configs)
    for name in values:
        if name not in CLIENT_METRICS_SETTINGS:
            raise MalformedConfig(f"Unknown client metrics configuration: {name}")
    complaint = _first_complaint(CLIENT_METRICS_SETTINGS, values)
    if complaint is not None:
        return complaint
    if "interval.ms" in values and not _LEAST_INTERVAL_MS <= int(values["interval.ms"]) <= _MOST_INTERVAL_MS:
        raise MalformedConfig(
            f"Invalid value {int(values['interval.ms'])} for interval.ms, interval must be between 100 and 3600000 "
            "(1 hour)"
        )
    try:
        client_patterns(values.get("match", ""))
    except InvalidConfig as illegal:
        return str(illegal)
    return None


def validate_broker_configs(configs: Mapping[str, str | None], *, cluster: bool) -> str | None:
    """The first fault of dynamic configs of one broker (or of all, `cluster`), or None.

    An unknown name is kept, as in Kafka: it may be for a plug-in, or for another version.
    """
    fixed = [name for name in configs if name in BROKER_SETTINGS and BROKER_SETTINGS[name].update is Update.READ_ONLY]
    if fixed:
        return f"Cannot update these configs dynamically: {_listed(fixed)}"
    bare = [name for name in configs if name in _SECURITY]
    if bare:
        return (
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"{_listed(bare)}"
        )
    at_start = [name for name in configs if base_name(name) in _READ_AT_START]
    if at_start:
        return (
            f"tanist reads these configs when a node starts; write them into its properties file: {_listed(at_start)}"
        )
    values = {base_name(name): value for name, value in _given(configs).items()}
    complaint = _twice(values) or _first_complaint(BROKER_SETTINGS, values)
    if complaint is not None:
        return complaint
    listeners = configs.get("listeners")
    if listeners is not None and not split_list(listeners):
        return "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"
    single = [name for name in configs if _is_per_broker(name)] if cluster else []
    if single:
        return f"Cannot update these configs at default cluster level, broker id must be specified: {_listed(single)}"
    return None


def _twice(values: Mapping[str, str]) -> str | None:
    """A list that has a word twice, as Apache Kafka refuses it since 4.4."""
    for name, text in values.items():
        setting = BROKER_SETTINGS.get(name)
        words = split_list(text) if setting is not None and isinstance(setting.check, EachOf | PlainList) else ()
        if len(set(words)) < len(words):
            return f"Configuration '{name}' values must not be duplicated."
    return None


def _is_per_broker(name: str) -> bool:
    setting = setting_of(BROKER_RESOURCE, name)
    return setting is not None and setting.update is Update.PER_BROKER


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"


def validate_static_configs(configs: Mapping[str, str]) -> list[str]:
    """All faults of the values of a properties file. Unknown names are ignored."""
    complaints = []
    for name, value in configs.items():
        setting = BROKER_SETTINGS.get(name)
        complaint = _complaint(setting, value) if setting is not None else None
        if complaint is not None:
            complaints.append(complaint)
    return complaints


def _given(configs: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if value is not None}


def _first_complaint(settings: Mapping[str, ConfigKey], values: Mapping[str, str]) -> str | None:
    for name, value in values.items():
        complaint = _complaint(settings[name], value) if name in settings else None
        if complaint is not None:
            return complaint
    return None


def _complaint(setting: ConfigKey, value: str) -> str | None:
    try:
        setting.parse(value)
    except InvalidConfig as refusal:
        return str(refusal)
    return None

"""All configuration names of all types of resources, put to Apache Kafka's node and to ours.

`described` compares what DescribeConfigs says, `judged` how alterations are judged (nothing is written), and `kept`
what DescribeConfigs says after a value was set, and after it was taken away. Each gives the differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tanist.controller.configs.catalogue import BROKER_SETTINGS, CLIENT_METRICS_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from tanist.controller.configs.definitions import ConfigKey, ConfigType
from tests.interop.apache import PIN
from tests.interop.configs.samples import samples
from tests.interop.configs.side import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    OPERATIONS,
    SET,
    SUBTRACT,
    TOPIC,
    Description,
    Resource,
    Side,
)

TOPIC_T = Resource(TOPIC, "t")
BROKER_1, CLUSTER = Resource(BROKER, "1"), Resource(BROKER, "")
LOGGER, SUBSCRIPTION, GROUP_G = Resource(BROKER_LOGGER, "1"), Resource(CLIENT_METRICS, "s"), Resource(GROUP, "g")
ALL = (TOPIC_T, BROKER_1, CLUSTER, LOGGER, SUBSCRIPTION, GROUP_G)
ABSENT = (
    Resource(TOPIC, ""),
    Resource(TOPIC, "no-such-topic"),
    Resource(TOPIC, "not a name"),
    Resource(BROKER, "2"),
    Resource(BROKER, "x"),
    Resource(BROKER_LOGGER, ""),
    Resource(BROKER_LOGGER, "2"),
    Resource(CLIENT_METRICS, ""),
    Resource(GROUP, ""),
    Resource(64, "x"),
)
"""Resources that are not there, or not at the node that is asked."""
UNKNOWN_OPERATION = 9
STRANGE = (
    "no.such.name",
    "",
    "kafka.server.KafkaServer",
    "listener.name.plaintext.ssl.keystore.location",
    "listener.name.plaintext.max.connections",
)
"""Names that are none, or are for one listener."""

_CATALOGUE: Mapping[Resource, Mapping[str, ConfigKey]] = {
    TOPIC_T: TOPIC_SETTINGS,
    BROKER_1: BROKER_SETTINGS,
    CLUSTER: BROKER_SETTINGS,
    SUBSCRIPTION: CLIENT_METRICS_SETTINGS,
    GROUP_G: GROUP_SETTINGS,
}


class Difference(NamedTuple):
    """Something that the two nodes do not say alike."""

    resource: Resource
    name: str
    asked: str
    theirs: object
    ours: object

    def __str__(self) -> str:
        return f"{self.resource} {self.name!r}, {self.asked}:\n    Apache {self.theirs}\n    tanist {self.ours}"


def is_ours(name: str) -> bool:
    """A name that this Apache Kafka does not have."""
    return name.startswith(("tanist.", "unclean.recovery.")) or (PIN.metadata_version < 33 and name in _OF_4_4)


_OF_4_4 = frozenset(
    f"{prefix}{name}"
    for prefix, names in {
        "": "max.decompressed.message.bytes log.remote.copy.lag.bytes log.remote.copy.lag.ms remote.copy.lag.bytes "
        "remote.copy.lag.ms consumer.assignor.offload.enable share.assignor.offload.enable",
        "errors.deadletterqueue.": "auto.create.topics.enable copy.record.enable group.enable topic.name "
        "topic.name.prefix",
        "group.": "consumer.assignor.offload.enable share.assignor.offload.enable share.dlq.manager.class.name",
        "group.streams.": "acceptable.recovery.lag assignor.offload.enable assignors max.warmup.replicas "
        "min.task.offset.interval.ms num.warmup.replicas rack.aware.assignment.tags task.offset.interval.ms "
        "topology.description.plugin.class",
        "sasl.oauthbearer.allow.unverified.": "audience issuer",
        "streams.": "acceptable.recovery.lag assignor.name assignor.offload.enable num.warmup.replicas "
        "rack.aware.assignment.tags task.offset.interval.ms",
    }.items()
    for name in names.split()
)
"""The names that Apache Kafka 4.4 has brought."""


def _properties(theirs: Side, resource: Resource) -> dict[str, tuple[int, str | None]]:
    """Name, type and default of all that Apache Kafka describes or our catalogue has."""
    known = {
        name: (int(setting.type), setting.default)
        for name, setting in _CATALOGUE.get(resource, {}).items()
        if not is_ours(name)
    }
    described = theirs.describe(BROKER_1 if resource == CLUSTER else resource).entries
    for name, entry in described.items():
        if resource.kind != BROKER_LOGGER:
            known.setdefault(name, (entry.type, entry.value))
    return dict(sorted(known.items()))


def described(theirs: Side, ours: Side) -> Iterator[Difference]:
    """Every resource, with and without synonyms and documentation, in every version; then single names."""
    for resource in (*ALL, *ABSENT):
        for synonyms, documentation, version in (
            (True, True, 4),
            (True, False, 4),
            (False, True, 4),
            (False, False, 3),
            (True, False, 2),
            (True, False, 1),
        ):
            asked = f"describe v{version} synonyms={synonyms} documentation={documentation}"
            yield from _compared(
                resource,
                asked,
                *(
                    side.describe(resource, synonyms=synonyms, documentation=documentation, version=version)
                    for side in (theirs, ours)
                ),
            )
        for names in ([], ["no.such.name", ""], *([name] for name in _properties(theirs, resource))):
            answers = (side.describe(resource, names) for side in (theirs, ours))
            yield from _compared(resource, f"describe {','.join(names)}", *answers)


def _compared(resource: Resource, asked: str, theirs: Description, ours: Description) -> Iterator[Difference]:
    if theirs[:2] != ours[:2]:
        yield Difference(resource, "", asked, theirs[:2], ours[:2])
    for name in sorted(theirs.entries.keys() | ours.entries.keys()):
        entries = theirs.entries.get(name), ours.entries.get(name)
        if entries[0] != entries[1]:
            yield Difference(resource, name, asked, *entries)


def judged(theirs: Side, ours: Side) -> Iterator[Difference]:
    """Each name with valid and invalid values, by each operation and the old way; nothing is written."""
    for resource in (TOPIC_T, BROKER_1, CLUSTER, SUBSCRIPTION, GROUP_G):
        for name, (kind, default) in _properties(theirs, resource).items():
            values = samples(name, kind, default)
            tried: list[tuple[int, str | None]] = [(SET, value) for value in (*values, None)]
            tried += [(DELETE, None), (APPEND, "a"), (SUBTRACT, "a")]
            yield from _judged(theirs, ours, resource, name, tried, values[0])
    for resource in (*ALL, *ABSENT):
        for name in STRANGE:
            tried = [(SET, "1"), (DELETE, None), (APPEND, "1"), (SUBTRACT, "1"), (UNKNOWN_OPERATION, "1")]
            yield from _judged(theirs, ours, resource, name, tried, "1")


def _judged(
    theirs: Side, ours: Side, resource: Resource, name: str, tried: list[tuple[int, str | None]], whole: str
) -> Iterator[Difference]:
    for operation, value in tried:
        answers = [side.alter(resource, name, operation, value) for side in (theirs, ours)]
        if answers[0] != answers[1]:
            asked = f"{OPERATIONS.get(operation, 'unknown operation')} {value!r}"
            yield Difference(resource, name, asked, *answers)
    answers = [side.replace(resource, name, whole) for side in (theirs, ours)]
    if answers[0] != answers[1]:
        yield Difference(resource, name, f"replace by {whole!r}", *answers)


def kept(theirs: Side, ours: Side) -> Iterator[Difference]:
    """Each name with a value that both take: what is described then, also of what falls back to it, and afterwards."""
    heirs = {synonym.name: name for name, setting in TOPIC_SETTINGS.items() for synonym in setting.synonyms[:1]}
    for resource in (TOPIC_T, SUBSCRIPTION, GROUP_G, CLUSTER, BROKER_1):
        names = {**_properties(theirs, resource), **dict.fromkeys(STRANGE if resource.kind == BROKER else (), None)}
        for name, known in names.items():
            if resource in (TOPIC_T, GROUP_G) and _CATALOGUE[resource][name].internal:
                continue  # never described
            value = _acceptable(theirs, ours, resource, name, known)
            if value is None:
                continue
            seen = [(resource, name)]
            if resource.kind == BROKER:
                seen = [(BROKER_1, name), (CLUSTER, name)]
                seen += [(TOPIC_T, heirs[name])] if name in heirs else []
            before = [side.describe(resource, [name]) for side in (theirs, ours)]
            for side, was in zip((theirs, ours), before, strict=True):
                side.alter(resource, name, SET, value, validate_only=False)
                side.settled(resource, name, was)
            yield from _seen(theirs, ours, seen, f"with {name}={value!r} for {resource}")
            for side, was in zip((theirs, ours), before, strict=True):
                now = side.describe(resource, [name])
                if side.alter(resource, name, DELETE, None, validate_only=False).error:
                    side.alter(resource, name, SET, was.entries[name].value, validate_only=False)
                side.settled(resource, name, now)
            yield from _seen(theirs, ours, seen, f"after {name} of {resource}")


def _acceptable(
    theirs: Side, ours: Side, resource: Resource, name: str, known: tuple[int, str | None] | None
) -> str | None:
    """A value that both take and that is another than the one in force."""
    kind, default = known or (int(ConfigType.STRING), None)
    tried = samples(name, kind, default) if known is not None else ("7",)
    present = theirs.describe(resource, [name]).entries.get(name)
    for value in tried:
        if present is not None and value.strip() == present.value:
            continue
        if all(side.alter(resource, name, SET, value).error == 0 for side in (theirs, ours)):
            return value
    return None


def _seen(theirs: Side, ours: Side, seen: list[tuple[Resource, str]], when: str) -> Iterator[Difference]:
    for resource, name in seen:
        answers = (side.describe(resource, [name]) for side in (theirs, ours))
        yield from _compared(resource, f"describe {name} {when}", *answers)
    for resource in (BROKER_1, CLUSTER):
        names = [set(side.describe(resource).entries) for side in (theirs, ours)]
        extra = {name for name in names[0] ^ names[1] if not is_ours(name)}
        if extra:
            yield Difference(resource, "", f"describe {when}", names[0] - names[1], names[1] - names[0])

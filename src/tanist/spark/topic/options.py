"""The options of `format("tanist")` for reading, named and meant as those of Spark's own Kafka source.

Owns what can be said and what cannot; it asks no broker. An option that is not known is refused, and so is one that
Spark's source reserves for itself: what is silently ignored is found out in production. What Spark's source takes and
what has no effect here (settings of Kafka's own clients, of groups) is taken, and said in one warning. Those for
writing are in `sink.options`. Must never show what says who a query is: passwords are in no `repr` and no error.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tanist.client.positions import EARLIEST, LATEST
from tanist.client.security import ClientConfigError, is_of_security
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.client import Address, Client, format_bootstrap, parse_bootstrap
from tanist.runtime.client.identity import security_by
from tanist.spark.topic.patterns import PatternError, java_pattern

KAFKA: Final = "kafka."
_PASSED: Final = {
    "bootstrap.servers",
    "client.id",
    "isolation.level",
    "request.timeout.ms",
    "max.partition.fetch.bytes",
    "metadata.max.age.ms",
}
_RESERVED: Final = {
    "auto.offset.reset", "key.deserializer", "value.deserializer", "enable.auto.commit", "interceptor.classes",
}  # fmt: skip
_OWN: Final = {
    "subscribe", "subscribepattern", "assign", "startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp",
    "startingoffsetsbytimestampstrategy", "includeheaders", "failondataloss", "minpartitions", "maxrecordsperpartition",
    "isolation.level",
}  # fmt: skip
_WITHOUT_EFFECT: Final = {
    "groupidprefix": "groupIdPrefix",
    "kafkaconsumer.polltimeoutms": "kafkaConsumer.pollTimeoutMs",
    "fetchoffset.numretries": "fetchOffset.numRetries",
    "fetchoffset.retryintervalms": "fetchOffset.retryIntervalMs",
}
"""Of Spark's source. There are no groups here, and kafka.request.timeout.ms says how long everything is tried again."""
_OF_BATCHES: Final = {"endingoffsets", "endingtimestamp", "endingoffsetsbytimestamp"}
_OF_STREAMS: Final = {
    "maxoffsetspertrigger": "maxOffsetsPerTrigger",
    "minoffsetspertrigger": "minOffsetsPerTrigger",
    "maxtriggerdelay": "maxTriggerDelay",
}
_TEXTS: Final = {"earliest": EARLIEST, "latest": LATEST}
_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class OptionError(ValueError):
    """An option that can't be."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where to start or end: the same everywhere, or as said for each partition."""

    everywhere: int | None = None
    """`EARLIEST`, `LATEST`, or a timestamp."""
    of: Mapping[TopicPartition, int] = field(default_factory=dict)
    by_time: bool = False
    """The values are timestamps, in milliseconds."""
    or_latest: bool = True
    """The end of the log where no record is as late as that; else it is an error."""


@dataclass(frozen=True, slots=True)
class Connecting:
    """How a cluster is reached."""

    bootstrap: tuple[Address, ...]
    client_id: str
    timeout_s: float
    security: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The properties that say as whom, for each process to read anew: stores and tokens are files of its machine."""

    def client(self, timeout_s: float | None = None) -> Client:
        """A client with nothing connected yet."""
        return Client(
            self.bootstrap,
            client_id=self.client_id,
            timeout_s=self.timeout_s if timeout_s is None else timeout_s,
            security=security_by(dict(self.security)),
        )


@dataclass(frozen=True, slots=True)
class TopicOptions:
    connecting: Connecting
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    """Of whole names."""
    assigned: Mapping[str, tuple[int, ...]] | None
    starting: Offsets
    ending: Offsets
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_s: float
    read_committed: bool
    fetch_bytes: int
    metadata_max_age_s: float
    without_effect: tuple[str, ...] = ()
    """The options that were given and change nothing."""

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool = False) -> TopicOptions:
        named, kafka, idle = separated(options, _PASSED, _RESERVED)
        misplaced = sorted(_OF_BATCHES & named.keys()) if streaming else []
        if misplaced:
            raise OptionError(f"a stream cannot have {', '.join(misplaced)}")
        # As Spark's source, which passes over limits of triggers where there are none.
        passed_over = _WITHOUT_EFFECT if streaming else _WITHOUT_EFFECT | _OF_STREAMS
        idle += [name for each, name in passed_over.items() if named.pop(each, None) is not None]
        refuse_unknown(named, _OWN | _OF_BATCHES | _OF_STREAMS.keys(), "reading a topic")
        if sum(name in named for name in ("subscribe", "subscribepattern", "assign")) != 1:
            raise OptionError("exactly one of subscribe, subscribePattern and assign has to be set")
        isolation = kafka.get("isolation.level", named.get("isolation.level", "read_uncommitted"))
        if named.get("isolation.level", isolation) != isolation:
            raise OptionError("isolation.level and kafka.isolation.level contradict each other")
        if isolation not in ("read_uncommitted", "read_committed"):
            raise OptionError(f"kafka.isolation.level cannot be {isolation!r}")
        starting = _starting(named, "latest" if streaming else "earliest")
        ending = _bound("ending", named, "latest")
        if not streaming and not starting.by_time and (starting.everywhere == LATEST or LATEST in starting.of.values()):
            raise OptionError("startingOffsets cannot be latest (-1): a batch would be empty")
        if not ending.by_time and (ending.everywhere == EARLIEST or EARLIEST in ending.of.values()):
            raise OptionError("endingOffsets cannot be earliest (-2): a batch would be empty")
        topics = tuple(dict.fromkeys(name.strip() for name in named.get("subscribe", "").split(",") if name.strip()))
        if "subscribe" in named and not topics:
            raise OptionError("subscribe names no topic")
        pattern = _pattern(named["subscribepattern"]) if "subscribepattern" in named else None
        least = _maybe("minOffsetsPerTrigger", named)
        most = _maybe("maxOffsetsPerTrigger", named)
        if least is not None and most is not None and least > most:
            raise OptionError(f"minOffsetsPerTrigger {least} is more than maxOffsetsPerTrigger {most}")
        return cls(
            connecting(kafka),
            topics,
            pattern,
            _assigned(named["assign"]) if "assign" in named else None,
            starting,
            ending,
            boolean("failOnDataLoss", named.get("failondataloss", "true")),
            _maybe("minPartitions", named),
            _maybe("maxRecordsPerPartition", named),
            most,
            least,
            _duration_s("maxTriggerDelay", named.get("maxtriggerdelay", "15m")),
            isolation == "read_committed",
            number("kafka.max.partition.fetch.bytes", kafka.get("max.partition.fetch.bytes", str(8 << 20))),
            # Kafka's own default is five minutes; a stream should see a new partition sooner.
            number("kafka.metadata.max.age.ms", kafka.get("metadata.max.age.ms", "5000")) / 1000,
            tuple(sorted(idle)),
        )


def separated(
    options: Mapping[str, str], passed: Collection[str], reserved: Collection[str]
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """The options of Spark's and of Kafka's making, and which of Kafka's have no effect; `OptionError` for one of
    Kafka's that is not to be set.
    """
    named = {name.lower(): value for name, value in options.items()}
    kafka = {name[len(KAFKA) :]: named.pop(name) for name in list(named) if name.startswith(KAFKA)}
    for name in kafka:
        if name in reserved:
            raise OptionError(f"kafka.{name} is the source's own and cannot be set")
    if "bootstrap.servers" not in kafka:
        raise OptionError("kafka.bootstrap.servers has to be set")
    return named, kafka, [f"kafka.{name}" for name in kafka if name not in passed and not is_of_security(name)]


def warn(without_effect: Sequence[str]) -> None:
    """Once in a query, where the driver logs."""
    if without_effect:
        print(f"tanist: without effect here (docs/spark.md): {', '.join(without_effect)}", file=sys.stderr)


def refuse_unknown(named: Collection[str], known: Collection[str], purpose: str) -> None:
    unknown = sorted(name for name in named if name not in known)
    if unknown:
        raise OptionError(f"tanist has no option {', '.join(unknown)} for {purpose}")


def connecting(kafka: Mapping[str, str]) -> Connecting:
    """By Kafka's properties, without the prefix."""
    try:
        addresses = tuple(parse_bootstrap(kafka["bootstrap.servers"]))
    except ValueError as error:
        raise OptionError(f"kafka.bootstrap.servers: {error}") from None
    patience_s = number("kafka.request.timeout.ms", kafka.get("request.timeout.ms", "30000")) / 1000
    security = tuple(sorted((name, value) for name, value in kafka.items() if is_of_security(name)))
    try:
        security_by(dict(security))
    except ClientConfigError as error:
        raise OptionError(f"{error} (here with `kafka.` in front)") from None
    return Connecting(addresses, kafka.get("client.id", "tanist-spark"), patience_s, security)


def connecting_to(bootstrap: Sequence[Address], options: Mapping[str, str] | None) -> Connecting:
    """By those of a source's options that are Kafka's. `OptionError`."""
    named = {name.lower(): value for name, value in (options or {}).items()}
    kafka = {name.removeprefix(KAFKA): value for name, value in named.items() if name.startswith(KAFKA)}
    return connecting({**kafka, "bootstrap.servers": format_bootstrap(bootstrap)})


def _starting(named: Mapping[str, str], default: str) -> Offsets:
    strategy = named.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise OptionError(f"startingOffsetsByTimestampStrategy is error or latest, not {strategy!r}")
    return _bound("starting", named, default, or_latest=strategy == "latest")


def _bound(which: str, named: Mapping[str, str], default: str, *, or_latest: bool = True) -> Offsets:
    """In the order in which Spark's source gives way: one time for all, times by partition, offsets."""
    if f"{which}timestamp" in named:
        text = named[f"{which}timestamp"]
        # Kafka's ListOffsets takes -1 for the end and -2 for the beginning where a time is wanted, and so does Spark.
        if text not in ("-1", "-2") and not text.isdecimal():
            raise OptionError(f"{which}Timestamp is milliseconds since 1970, -1 or -2, not {text!r}")
        return Offsets(int(text), by_time=True, or_latest=or_latest)
    if f"{which}offsetsbytimestamp" in named:
        name = f"{which}OffsetsByTimestamp"
        return Offsets(
            None, _by_partition(name, named[name.lower()], least=EARLIEST), by_time=True, or_latest=or_latest
        )
    return _offsets(f"{which}Offsets", named.get(f"{which}offsets", default))


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return java_pattern(text)
    except PatternError as error:
        raise OptionError(f"subscribePattern {text!r}: {error}") from None


def _json(name: str, text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise OptionError(f"{name} is not JSON of topics: {text!r}")
    return value


def _assigned(text: str) -> dict[str, tuple[int, ...]]:
    partitions_by_topic = {}
    for topic, partitions in _json("assign", text).items():
        if not isinstance(partitions, list) or not all(type(each) is int and each >= 0 for each in partitions):
            raise OptionError(f'assign is {{"topic": [0, 1]}}, not {text!r}')
        partitions_by_topic[topic] = tuple(partitions)
    return partitions_by_topic


def _offsets(name: str, text: str) -> Offsets:
    if text.strip().lower() in _TEXTS:
        return Offsets(_TEXTS[text.strip().lower()])
    return Offsets(None, _by_partition(name, text, least=EARLIEST))


def _by_partition(name: str, text: str, least: int) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in _json(name, text).items():
        if not isinstance(partitions, dict):
            raise OptionError(f'{name} is {{"topic": {{"0": 23}}}}, not {text!r}')
        for partition, offset in partitions.items():
            if not partition.isdecimal() or type(offset) is not int or offset < least:
                raise OptionError(f"{name}: {topic}-{partition} cannot be at {offset!r}")
            offsets[topic, int(partition)] = offset
    return offsets


def boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"{name} is true or false, not {text!r}")
    return text.lower() == "true"


def number(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"{name} is a number above 0, not {text!r}")
    return int(text)


def _maybe(name: str, named: Mapping[str, str]) -> int | None:
    text = named.get(name.lower())
    return None if text is None else number(name, text)


def _duration_s(name: str, text: str) -> float:
    match = re.fullmatch(r"\s*([0-9]+)\s*([a-z]*)\s*", text.lower())
    if match is None or (match[2] or "ms") not in _UNITS_S:
        raise OptionError(f"{name} is a duration like 30s or 15m, not {text!r}")
    return int(match[1]) * _UNITS_S[match[2] or "ms"]

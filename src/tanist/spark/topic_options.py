"""The options of `format("tanist")`, named and meant as those of Spark's own Kafka source.

Owns what can be said and what cannot; it asks no broker. An option that is not known is refused, and so is one that
Spark's source reserves for itself: what is silently ignored is found out in production.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tanist.runtime.client import Address, parse_bootstrap
from tanist.runtime.records import EARLIEST, LATEST

_KAFKA: Final = "kafka."
_PASSED: Final = {
    "bootstrap.servers",
    "client.id",
    "isolation.level",
    "request.timeout.ms",
    "max.partition.fetch.bytes",
}
_RESERVED: Final = {
    "group.id", "auto.offset.reset", "key.deserializer", "value.deserializer", "key.serializer", "value.serializer",
    "enable.auto.commit", "interceptor.classes",
}  # fmt: skip
_OWN: Final = {
    "subscribe", "subscribepattern", "assign", "startingoffsets", "endingoffsets", "includeheaders",
    "failondataloss", "minpartitions",
}  # fmt: skip
_TEXTS: Final = {"earliest": EARLIEST, "latest": LATEST}

TopicPartition = tuple[str, int]


class OptionError(ValueError):
    """An option that can't be."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where to start or end: the same everywhere, or as said for each partition."""

    everywhere: int | None = None
    """`EARLIEST` or `LATEST`."""
    of: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicOptions:
    bootstrap: tuple[Address, ...]
    topics: tuple[str, ...]
    pattern: str | None
    assigned: Mapping[str, tuple[int, ...]] | None
    starting: Offsets
    ending: Offsets
    include_headers: bool
    fail_on_data_loss: bool
    min_partitions: int | None
    read_committed: bool
    client_id: str
    timeout_s: float
    fetch_bytes: int

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> TopicOptions:
        named = {name.lower(): value for name, value in options.items()}
        kafka = {name[len(_KAFKA) :]: value for name, value in named.items() if name.startswith(_KAFKA)}
        for name in kafka:
            if name in _RESERVED:
                raise OptionError(f"kafka.{name} is the source's own and cannot be set")
            if name not in _PASSED:
                raise OptionError(f"kafka.{name} is not known here; known are {', '.join(sorted(_PASSED))}")
        unknown = sorted(name for name in named if name not in _OWN and not name.startswith(_KAFKA))
        if unknown:
            raise OptionError(f"tanist has no option {', '.join(unknown)} for reading a topic")
        if "bootstrap.servers" not in kafka:
            raise OptionError("kafka.bootstrap.servers has to be set")
        if sum(name in named for name in ("subscribe", "subscribepattern", "assign")) != 1:
            raise OptionError("exactly one of subscribe, subscribePattern and assign has to be set")
        isolation = kafka.get("isolation.level", "read_uncommitted")
        if isolation not in ("read_uncommitted", "read_committed"):
            raise OptionError(f"kafka.isolation.level cannot be {isolation!r}")
        starting = _offsets("startingOffsets", named.get("startingoffsets", "earliest"))
        ending = _offsets("endingOffsets", named.get("endingoffsets", "latest"))
        if starting.everywhere == LATEST or LATEST in starting.of.values():
            raise OptionError("startingOffsets cannot be latest (-1): a batch would be empty")
        if ending.everywhere == EARLIEST or EARLIEST in ending.of.values():
            raise OptionError("endingOffsets cannot be earliest (-2): a batch would be empty")
        topics = tuple(dict.fromkeys(name.strip() for name in named.get("subscribe", "").split(",") if name.strip()))
        if "subscribe" in named and not topics:
            raise OptionError("subscribe names no topic")
        if "subscribepattern" in named:
            _pattern(named["subscribepattern"])
        return cls(
            tuple(_addresses(kafka["bootstrap.servers"])),
            topics,
            named.get("subscribepattern"),
            _assigned(named["assign"]) if "assign" in named else None,
            starting,
            ending,
            _truth("includeHeaders", named.get("includeheaders", "false")),
            _truth("failOnDataLoss", named.get("failondataloss", "true")),
            _number("minPartitions", named["minpartitions"]) if "minpartitions" in named else None,
            isolation == "read_committed",
            kafka.get("client.id", "tanist-spark"),
            _number("kafka.request.timeout.ms", kafka.get("request.timeout.ms", "30000")) / 1000,
            _number("kafka.max.partition.fetch.bytes", kafka.get("max.partition.fetch.bytes", str(8 << 20))),
        )


def _addresses(text: str) -> list[Address]:
    try:
        return parse_bootstrap(text)
    except ValueError as error:
        raise OptionError(f"kafka.bootstrap.servers: {error}") from None


def _pattern(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
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
    found = {}
    for topic, partitions in _json("assign", text).items():
        if not isinstance(partitions, list) or not all(type(each) is int and each >= 0 for each in partitions):
            raise OptionError(f'assign is {{"topic": [0, 1]}}, not {text!r}')
        found[topic] = tuple(partitions)
    return found


def _offsets(name: str, text: str) -> Offsets:
    if text.strip().lower() in _TEXTS:
        return Offsets(_TEXTS[text.strip().lower()])
    found: dict[TopicPartition, int] = {}
    for topic, partitions in _json(name, text).items():
        if not isinstance(partitions, dict):
            raise OptionError(f'{name} is {{"topic": {{"0": 23}}}}, not {text!r}')
        for partition, offset in partitions.items():
            if not partition.isdecimal() or type(offset) is not int or offset < EARLIEST:
                raise OptionError(f"{name}: {topic}-{partition} cannot be at {offset!r}")
            found[topic, int(partition)] = offset
    return Offsets(None, found)


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"{name} is true or false, not {text!r}")
    return text.lower() == "true"


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"{name} is a number above 0, not {text!r}")
    return int(text)

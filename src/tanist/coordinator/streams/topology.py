"""The topology of a Streams application: which topics it needs, with how many partitions, and which tasks it has.

Pure: the topology as members sent it, and the topics that there are. The rules are Apache Kafka's: a repartition topic
has as many partitions as it says, or as the topics with which it is joined, or as the largest source of those that
write it; a changelog topic and a subtopology have as many as the largest source of the subtopology.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from tanist.coordinator.effects import Refused
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from tanist.wire.messages.streams_group_heartbeat_request import Subtopology, TopicInfo
from tanist.wire.messages.streams_group_heartbeat_response import Status
from tanist.wire.streams_group_records import StreamsTopologyValue

Count = Callable[[str], int | None]
"""How many partitions a topic has; None if there is none."""

_NAMED_AT_MOST: Final = 3


class StatusCode(IntEnum):
    """What is the matter with a group, by Kafka's names and numbers."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6
    """From version 1 of StreamsGroupHeartbeat on."""


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """One part of a topology, with its numbers."""

    tasks: int
    is_stateful: bool
    sources: tuple[str, ...]
    """Its source topics and repartition source topics."""


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology, compared with the topics that there are."""

    subtopologies: Mapping[str, ConfiguredSubtopology] = field(default_factory=dict)
    """By id, in its order; none if topics are missing or do not fit."""
    missing: Mapping[str, CreatableTopic] = field(default_factory=dict)
    """Internal topics to create."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Of each internal topic."""
    status: Status | None = None
    """What is the matter; None: all is there."""

    @property
    def is_ready(self) -> bool:
        return self.status is None


class _Unfit(Exception):
    """Topics are missing or do not fit."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(status_code=code, status_detail=detail)


def source_topics(part: Subtopology) -> Iterator[str]:
    """What a subtopology reads."""
    yield from part.source_topics
    yield from (each.name for each in part.repartition_source_topics)


def named_topics(parts: Iterable[Subtopology]) -> Iterator[str]:
    """All topics that a topology names, some of them more than once."""
    for part in parts:
        yield from part.source_topics
        yield from part.repartition_sink_topics
        yield from (each.name for each in part.repartition_source_topics)
        yield from (each.name for each in part.state_changelog_topics)


def required_topics(parts: Iterable[Subtopology]) -> frozenset[str]:
    """The topics whose metadata a topology depends on."""
    return frozenset(
        name for part in parts for name in (*source_topics(part), *(each.name for each in part.state_changelog_topics))
    )


def configure(topology: StreamsTopologyValue, count: Count) -> ConfiguredTopology:
    """Compare a topology with the topics that there are. `Refused` if it makes no sense whatever topics there are."""
    parts = sorted(topology.subtopologies, key=lambda part: part.subtopology_id)
    try:
        return _configured(parts, count)
    except _Unfit as unfit:
        return ConfiguredTopology(status=unfit.status)


def _configured(parts: list[Subtopology], count: Count) -> ConfiguredTopology:
    _check_sources(parts, count)
    decided = _repartition_counts(parts, count)

    def known(name: str) -> int | None:
        there = count(name)
        return decided.get(name) if there is None else there

    for part in parts:
        for names in _copartition_groups(part):
            _copartition(names, parts, known, decided)
    tasks = {part.subtopology_id: max(known(name) or 0 for name in source_topics(part)) for part in parts}
    for part in parts:
        decided.update((each.name, tasks[part.subtopology_id]) for each in part.state_changelog_topics)
    missing = _missing(parts, count, decided)
    status = None
    if missing:
        detail = f"Internal topics are missing: {_some(missing)}"
        status = Status(status_code=StatusCode.MISSING_INTERNAL_TOPICS, status_detail=detail)
    subtopologies = {
        part.subtopology_id: ConfiguredSubtopology(
            tasks[part.subtopology_id], bool(part.state_changelog_topics), tuple(sorted(set(source_topics(part))))
        )
        for part in parts
    }
    return ConfiguredTopology(subtopologies, missing, decided, status)


def _check_sources(parts: list[Subtopology], count: Count) -> None:
    if len({part.subtopology_id for part in parts}) < len(parts):
        raise _invalid("Two subtopologies have the same id.")
    for part in parts:
        if not any(True for _ in source_topics(part)):
            raise _invalid(f"No source topics found for subtopology {part.subtopology_id}.")
    missing = sorted({name for part in parts for name in part.source_topics if count(name) is None})
    if missing:
        raise _Unfit(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {_some(missing)} are missing.")


def _repartition_counts(parts: list[Subtopology], count: Count) -> dict[str, int]:
    """Of each repartition topic: as it says, or the largest source of a subtopology that writes it."""
    decided = {each.name: each.partitions for part in parts for each in part.repartition_source_topics}
    decided = {name: partitions for name, partitions in decided.items() if partitions}
    waiting = {name for part in parts for name in part.repartition_sink_topics} - decided.keys()
    while waiting:
        found: dict[str, int] = {}
        for part in parts:
            sources = [count(name) for name in part.source_topics]
            sources += [decided.get(each.name) for each in part.repartition_source_topics]
            largest = max((each for each in sources if each is not None), default=None)
            if largest is not None:
                for name in waiting.intersection(part.repartition_sink_topics):
                    found.setdefault(name, largest)
        if not found:
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                "topology that cannot be resolved."
            )
        decided.update(found)
        waiting -= found.keys()
    for part in parts:
        for each in part.repartition_source_topics:
            if each.name not in decided:
                raise _invalid(
                    "Failed to compute number of partitions for all repartition topics, because a repartition source "
                    "topic is never used as a sink topic."
                )
    return decided


def _copartition_groups(part: Subtopology) -> Iterator[frozenset[str]]:
    for group in part.copartition_groups:
        indexes = (
            (group.source_topics, part.source_topics),
            (group.repartition_source_topics, tuple(each.name for each in part.repartition_source_topics)),
        )
        if any(not 0 <= index < len(names) for wanted, names in indexes for index in wanted):
            raise _invalid(f"A copartition group of subtopology {part.subtopology_id} names a topic that is not there.")
        yield frozenset(names[index] for wanted, names in indexes for index in wanted)


def _copartition(names: frozenset[str], parts: list[Subtopology], known: Count, decided: dict[str, int]) -> None:
    """Topics that are joined have the same number of partitions; repartition topics without one of their own get it."""
    internal = {each.name: each for part in parts for each in part.repartition_source_topics if each.name in names}
    given = {name: known(name) or 0 for name in names if name not in internal}
    if not given:
        given = {name: each.partitions for name, each in internal.items() if each.partitions}
    if len(set(given.values())) > 1:
        listed = ", ".join(f"{name}={given[name]}" for name in sorted(given))
        raise _Unfit(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    partitions = max(given.values() if given else (known(name) or 0 for name in names), default=0)
    for name, each in internal.items():
        if each.partitions not in (0, partitions):
            raise _Unfit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{each.partitions}] of repartition topic [{name}] doesn't match number of "
                f"partitions [{partitions}] of the source topic.",
            )
        decided[name] = partitions


def _missing(parts: list[Subtopology], count: Count, decided: Mapping[str, int]) -> dict[str, CreatableTopic]:
    missing: dict[str, CreatableTopic] = {}
    for part in parts:
        for each in (*part.repartition_source_topics, *part.state_changelog_topics):
            there, wanted = count(each.name), decided[each.name]
            if there is None:
                missing[each.name] = _new_topic(each, wanted)
            elif there != wanted:
                raise _Unfit(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {each.name} has different number of partitions: expected {wanted}, found {there}",
                )
    return missing


def _new_topic(info: TopicInfo, partitions: int) -> CreatableTopic:
    return CreatableTopic(
        name=info.name,
        num_partitions=partitions,
        replication_factor=info.replication_factor or -1,
        configs=tuple(CreatableTopicConfig(name=each.key, value=each.value) for each in info.topic_configs),
    )


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _some(names: Collection[str]) -> str:
    """The first names, and how many more there are."""
    named = ", ".join(sorted(names)[:_NAMED_AT_MOST])
    more = len(names) - _NAMED_AT_MOST
    return f"{named} and {more} additional topics" if more > 0 else named

"""A topology among the topics that there are (KIP-1071): numbers of partitions, what is missing, what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tanist.coordinator.effects import Refused
from tanist.coordinator.streams.topology import ConfiguredTopology, StatusCode, configure, required_topics
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.streams_group_heartbeat_request import CopartitionGroup, KeyValue, Subtopology, TopicInfo
from tanist.wire.streams_group_records import StreamsTopologyValue


def part(name: str, **fields: Any) -> Subtopology:
    return Subtopology(subtopology_id=name, **fields)


def infos(*names: str, partitions: int = 0) -> tuple[TopicInfo, ...]:
    return tuple(TopicInfo(name=name, partitions=partitions) for name in names)


def configured(topics: Mapping[str, int], *parts: Subtopology) -> ConfiguredTopology:
    return configure(StreamsTopologyValue(epoch=0, subtopologies=parts), topics.get)


WRITES = part("0", source_topics=("in",), repartition_sink_topics=("re",))
COUNTS = part("1", repartition_source_topics=infos("re"), state_changelog_topics=infos("log"))


def test_internal_topics_have_as_many_partitions_as_what_they_come_from() -> None:
    found = configured({"in": 3}, WRITES, COUNTS)
    assert {name: topic.num_partitions for name, topic in found.missing.items()} == {"re": 3, "log": 3}
    assert found.status is not None
    assert found.status.status_code == StatusCode.MISSING_INTERNAL_TOPICS
    assert found.status.status_detail == "Internal topics are missing: log, re"
    there = configured({"in": 3, "re": 3, "log": 3}, WRITES, COUNTS)
    assert (there.is_ready, dict(there.missing)) == (True, {})
    assert {name: (each.tasks, each.is_stateful) for name, each in there.subtopologies.items()} == {
        "0": (3, False),
        "1": (3, True),
    }
    assert required_topics((WRITES, COUNTS)) == {"in", "re", "log"}


def test_a_new_topic_has_the_settings_that_the_application_gives_it() -> None:
    config = (KeyValue(key="cleanup.policy", value="compact"),)
    log = TopicInfo(name="log", replication_factor=2, topic_configs=config)
    found = configured({"in": 1}, part("0", source_topics=("in",), state_changelog_topics=(log,)))
    topic = found.missing["log"]
    assert (topic.num_partitions, topic.replication_factor) == (1, 2)
    assert [(each.name, each.value) for each in topic.configs] == [("cleanup.policy", "compact")]
    assert configured({"in": 3}, WRITES, COUNTS).missing["re"].replication_factor == -1


def test_a_repartition_topic_may_say_how_many_it_has() -> None:
    found = configured({"in": 3}, WRITES, part("1", repartition_source_topics=infos("re", partitions=8)))
    assert found.missing["re"].num_partitions == 8
    assert found.subtopologies["1"].tasks == 8


def test_partitions_go_on_through_several_repartition_topics() -> None:
    through = part("1", repartition_source_topics=infos("re"), repartition_sink_topics=("re2",))
    last = part("2", repartition_source_topics=infos("re2"), state_changelog_topics=infos("log"))
    found = configured({"in": 5}, last, through, WRITES)
    assert {name: topic.num_partitions for name, topic in found.missing.items()} == {"re": 5, "re2": 5, "log": 5}


def test_missing_sources_are_named() -> None:
    found = configured({}, part("0", source_topics=("d", "c", "b", "a")))
    assert found.status is not None
    assert found.status.status_code == StatusCode.MISSING_SOURCE_TOPICS
    assert found.status.status_detail == "Source topics a, b, c and 1 additional topics are missing."
    assert not found.missing


def joined(**changes: Any) -> Subtopology:
    fields = {
        "source_topics": ("in", "other"),
        "repartition_source_topics": infos("re"),
        "copartition_groups": (CopartitionGroup(source_topics=(0,), repartition_source_topics=(0,)),),
        **changes,
    }
    return part("1", **fields)


def test_joined_topics_have_the_same_number() -> None:
    writes = part("0", source_topics=("big",), repartition_sink_topics=("re",))
    found = configured({"big": 9, "in": 3, "other": 4}, writes, joined())
    assert found.missing["re"].num_partitions == 3


@pytest.mark.parametrize(
    ("topics", "changes", "detail"),
    [
        (
            {"in": 3, "other": 4},
            {"copartition_groups": (CopartitionGroup(source_topics=(0, 1)),)},
            "Following topics do not have the same number of partitions: [{in=3, other=4}]",
        ),
        (
            {"in": 3, "other": 4},
            {"repartition_source_topics": infos("re", partitions=5)},
            "Number of partitions [5] of repartition topic [re] doesn't match number of partitions [3] of the source "
            "topic.",
        ),
        (
            {"in": 3, "other": 4, "re": 7},
            {},
            "Existing topic re has different number of partitions: expected 3, found 7",
        ),
    ],
)
def test_what_does_not_fit_is_said(topics: dict[str, int], changes: dict[str, Any], detail: str) -> None:
    writes = part("0", source_topics=("in",), repartition_sink_topics=("re",))
    found = configured(topics, writes, joined(**changes))
    assert found.status is not None
    assert (found.status.status_code, found.status.status_detail) == (StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    assert not found.missing


@pytest.mark.parametrize(
    "parts",
    [
        (part("0", source_topics=("in",)), part("0", source_topics=("in",))),
        (part("0"),),
        (COUNTS,),  # nobody writes its source
        (part("0", repartition_source_topics=infos("a"), repartition_sink_topics=("a",)),),
        (part("0", source_topics=("in",), copartition_groups=(CopartitionGroup(source_topics=(1,)),)),),
        (part("0", source_topics=("in",), copartition_groups=(CopartitionGroup(source_topics=(-1,)),)),),
    ],
)
def test_what_makes_no_sense_is_refused(parts: tuple[Subtopology, ...]) -> None:
    with pytest.raises(Refused) as refused:
        configured({"in": 1}, *parts)
    assert refused.value.error is ErrorCode.STREAMS_INVALID_TOPOLOGY

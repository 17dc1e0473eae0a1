"""Requests about share groups (KIP-932) and Streams groups (KIP-1071): what their fields may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from tanist.wire.apis import ApiKey
from tanist.wire.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from tanist.wire.messages.share_acknowledge_request import ShareAcknowledgeRequest
from tanist.wire.messages.share_fetch_request import AcknowledgementBatch as FetchAcknowledgement
from tanist.wire.messages.share_fetch_request import ShareFetchRequest
from tanist.wire.messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from tests.interop.requests.choosing import Choice, named, one_of
from tests.interop.requests.symbols import Symbol

MEMBERS = ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ")
SHARE_GROUPS = ("s0", "s0", "s0", "s1")
APPLICATIONS = ("a0", "a0", "a1")
INTERNAL_TOPICS = ("c0", "r0")
"""A changelog and a repartition topic, which the broker makes for a1."""

OF_SHARES = frozenset(
    {
        ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    }
)  # fmt: skip
OF_STREAMS = frozenset({ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE})
WEIGHTS: Mapping[int, int] = {
    ApiKey.SHARE_GROUP_HEARTBEAT: 5,
    ApiKey.SHARE_GROUP_DESCRIBE: 2,
    ApiKey.SHARE_FETCH: 6,
    ApiKey.SHARE_ACKNOWLEDGE: 4,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: 3,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: 2,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: 1,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 6,
    ApiKey.STREAMS_GROUP_DESCRIBE: 3,
}

share_group = one_of(*named(*SHARE_GROUPS * 3, "g0", "a0", "g9"), "")
application = one_of(*named(*APPLICATIONS * 4, "g0", "s0", "g9"), "")
_newest_epoch = one_of(0, 0, 0, *(Symbol("member epoch", 0, plus) for plus in (0, 0, 0, 1, -1)), -1, -2)
_session_epoch = one_of(*(Symbol("share epoch", 0, plus) for plus in (0, 0, 0, 0, 1)), 0, 0, -1, 1)
_member = one_of(*MEMBERS, MEMBERS[0], MEMBERS[0], "")
_topic = one_of(*named("t0", "t0", "t0", "t1", "t9"), "")

BY_STRUCT: Mapping[tuple[str, str], Choice] = {
    **{
        (name, "group_id"): share_group
        for name in (
            "ShareGroupHeartbeatRequest",
            "AlterShareGroupOffsetsRequest",
            "DeleteShareGroupOffsetsRequest",
        )
    },
    **{
        (name, "group_id"): one_of(*named(*SHARE_GROUPS * 3, "g0", "a0", "g9"))
        for name in ("ShareFetchRequest", "ShareAcknowledgeRequest", "DescribeShareGroupOffsetsRequestGroup")
    },
    ("ShareGroupDescribeRequest", "group_ids"): share_group,
    ("ShareGroupHeartbeatRequest", "member_epoch"): _newest_epoch,
    ("ShareGroupHeartbeatRequest", "member_id"): _member,
    ("ShareFetchRequest", "member_id"): one_of(*MEMBERS, MEMBERS[0], "nobody"),
    ("ShareFetchRequest", "share_session_epoch"): _session_epoch,
    ("ShareFetchRequest", "max_wait_ms"): one_of(300),
    ("ShareFetchRequest", "min_bytes"): one_of(1),
    ("ShareFetchRequest", "max_records"): one_of(500, 500, 500, 1, 2, 0, -1),
    ("ShareFetchRequest", "batch_size"): one_of(500, 500, 1, 2),
    ("ShareFetchRequest", "share_acquire_mode"): one_of(0, 0, 0, 1, 2),
    ("ShareFetchRequest", "is_renew_ack"): one_of(*(False,) * 6, True),
    ("ShareAcknowledgeRequest", "member_id"): one_of(*MEMBERS, MEMBERS[0], "nobody"),
    ("ShareAcknowledgeRequest", "share_session_epoch"): _session_epoch,
    ("ShareAcknowledgeRequest", "is_renew_ack"): one_of(*(False,) * 4, True),
    ("AcknowledgementBatch", "first_offset"): one_of(0, 0, 1, 2, 5, Symbol("first acquired", 0)),
    ("AcknowledgementBatch", "last_offset"): one_of(0, 1, 2, 5, Symbol("last acquired", 0), Symbol("last acquired", 0)),
    ("AcknowledgementBatch", "acknowledge_types"): one_of(1, 1, 1, 2, 2, 2, 3, 0, 4, 5),
    ("AlterShareGroupOffsetsRequestPartition", "partition_index"): one_of(0, 0, 0, 1, 2),
    # An offset that is not in the log stays in Apache Kafka (docs/groups.md); 0 is in each.
    ("AlterShareGroupOffsetsRequestPartition", "start_offset"): one_of(0),
    ("DescribeShareGroupOffsetsRequestTopic", "partitions"): one_of(
        0
    ),  # Apache Kafka looks long for one that is missing
    ("StreamsGroupHeartbeatRequest", "group_id"): application,
    ("StreamsGroupHeartbeatRequest", "member_id"): _member,
    ("StreamsGroupHeartbeatRequest", "member_epoch"): _newest_epoch,
    ("StreamsGroupHeartbeatRequest", "rebalance_timeout_ms"): one_of(30_000, 30_000, 30_000, -1),
    ("StreamsGroupHeartbeatRequest", "endpoint_information_epoch"): one_of(-1, 0, 0, 1),
    ("StreamsGroupHeartbeatRequest", "process_id"): one_of("p0", "p0", "p1"),
    ("StreamsGroupHeartbeatRequest", "shutdown_application"): one_of(*(False,) * 12, True),
    ("StreamsGroupDescribeRequest", "group_ids"): application,
    ("Topology", "epoch"): one_of(0, 0, 0, 1, -1),
    ("Subtopology", "subtopology_id"): one_of("0", "0", "1"),
    ("Subtopology", "source_topics"): _topic,
    ("Subtopology", "repartition_sink_topics"): one_of(*named("r0", "t1")),
    ("TopicInfo", "name"): one_of(*named(*INTERNAL_TOPICS, "t0")),
    ("TopicInfo", "partitions"): one_of(0, 0, 0, 2),
    ("TopicInfo", "replication_factor"): one_of(0, 0, 1),
    ("TaskIds", "subtopology_id"): one_of("0", "0", "1"),
    ("TaskOffset", "subtopology_id"): one_of("0", "0", "1"),
    ("Endpoint", "host"): one_of("here", "there"),
    ("KeyValue", "key"): one_of("zone"),
    ("KeyValue", "value"): one_of("z0", "z1"),
}

RARE = frozenset(
    {
        "source_topic_regex", "copartition_groups", "repartition_sink_topics", "repartition_source_topics",
        "state_changelog_topics", "topic_configs", "task_offsets", "task_end_offsets", "warmup_tasks",
        "forgotten_topics_data",
    }
)  # fmt: skip
"""Lists that are mostly empty: what they may have is refused, or depends on all the rest."""


def topology(application: str, source: str = "t0") -> Topology:
    """The one that all members of an application have."""
    has_internal = application == "a1"
    changelog, repartition = named(*INTERNAL_TOPICS)
    part = Subtopology(
        subtopology_id="0",
        source_topics=_any((Symbol("name", source),)),
        state_changelog_topics=(TopicInfo(name=_any(changelog)),) if has_internal else (),
        repartition_source_topics=(TopicInfo(name=_any(repartition), partitions=2),) if has_internal else (),
        repartition_sink_topics=(_any(repartition),) if has_internal else (),
    )
    return Topology(subtopologies=(part,))


def _any(drawn: object) -> Any:
    """What is drawn stands where a message has its own type."""
    return drawn


def fit(random: Random, kind: type, values: dict[str, Any]) -> None:
    """Make fields of one request mostly go together: else it is refused for its form."""
    if random.random() < 0.1:
        return
    if kind is StreamsGroupHeartbeatRequest:
        _fit_streams(random, values)
    elif kind is AlterShareGroupOffsetsRequestTopic:
        _alter_both(values)
    elif kind is ShareAcknowledgeRequest:
        _keep_known(values["topics"])
    elif kind is ShareFetchRequest:
        _keep_known(values["topics"])
        if values.get("is_renew_ack"):
            values.update(max_bytes=0, min_bytes=0, max_records=0, max_wait_ms=0)
        if values["share_session_epoch"] == 0 or random.random() < 0.5:
            for topic in values["topics"]:
                for part in topic.partitions:
                    part.acknowledgement_batches = ()
    elif kind.__name__ == FetchAcknowledgement.__name__:
        first, last = values["first_offset"], values["last_offset"]
        if isinstance(first, int) and isinstance(last, int) and first > last:
            values.update(first_offset=last, last_offset=first)


def _alter_both(values: dict[str, Any]) -> None:
    """Both partitions of t0: Apache Kafka 4.4 begins one that is missing at offset 0 then, and ours does not."""
    if values["topic_name"] == Symbol("name", "t0") and values["partitions"]:
        start = values["partitions"][0].start_offset
        values["partitions"] = tuple(
            AlterShareGroupOffsetsRequestPartition(partition_index=each, start_offset=start) for each in (0, 1)
        )


def _keep_known(topics: Iterable[Any]) -> None:
    """Ids of topics that are there: of others Apache Kafka fails with an exception."""
    for topic in topics:
        if not isinstance(topic.topic_id, Symbol) or topic.topic_id.of not in ("t0", "t1"):
            topic.topic_id = Symbol("topic id", "t1")


def _fit_streams(random: Random, values: dict[str, Any]) -> None:
    joins = values["member_epoch"] == 0
    values.update(task_offsets=None, task_end_offsets=None, warmup_tasks=(), topology=None)
    if joins:
        group = values["group_id"]
        values.update(topology=topology(getattr(group, "of", "")), active_tasks=(), standby_tasks=())
        values["shutdown_application"] = False  # Apache Kafka forgets it if the group is new
        if random.random() < 0.1:
            values["topology"] = topology("a0", "t1")
    elif random.random() < 0.5:
        values.update(active_tasks=None, standby_tasks=None, warmup_tasks=None)
    else:
        has = random.choice(((), (0,), (1,), (0, 1)))
        tasks = (TaskIds(subtopology_id="0", partitions=has),) if has else ()
        values.update(active_tasks=tasks, standby_tasks=())

"""Descriptions of groups with member epochs: they say nothing that a coordinator has decided and may yet lose."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.controller.features import SHARE_VERSION, STREAMS_VERSION
from tanist.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.share_group_describe_request import ShareGroupDescribeRequest
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from tanist.wire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Subtopology, Topology
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client

CONFIG = {
    "offsets.topic.num.partitions": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}


def consumer(name: str) -> Any:
    return ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=name, rebalance_timeout_ms=30_000, subscribed_topic_names=("t",), topic_partitions=()
    )


def share(name: str) -> Any:
    return ShareGroupHeartbeatRequest(group_id="g", member_id=name, subscribed_topic_names=("t",))


def streams(name: str) -> Any:
    return StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id=name,
        rebalance_timeout_ms=30_000,
        process_id=name,
        topology=Topology(subtopologies=(Subtopology(subtopology_id="0", source_topics=("t",)),)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
    )


@pytest.mark.parametrize(
    ("joining", "describe"),
    [
        (consumer, ConsumerGroupDescribeRequest(group_ids=("g",))),
        (share, ShareGroupDescribeRequest(group_ids=("g",))),
        (streams, StreamsGroupDescribeRequest(group_ids=("g",))),
    ],
    ids=["consumer", "share", "streams"],
)
def test_a_description_waits_until_what_it_says_is_committed(joining: Any, describe: Any) -> None:
    cluster = Cluster(nodes=3, config=CONFIG, features={SHARE_VERSION: 1, STREAMS_VERSION: 1})
    cluster.create_topic("t", partitions=2)
    client = Client(cluster)
    assert client.ask(joining("a"), 1, lambda answer: int(answer.error_code)).member_epoch > 0
    coordinator = client.coordinator()
    (before,) = cluster.ask(describe, 1, to=coordinator).groups
    assert [each.member_id for each in before.members] == ["a"]
    others = [host for host in cluster.world.hosts.values() if host.node_id != coordinator]
    for host in others:
        host.freeze()
    joined = cluster.send(joining("b"), 1, to=coordinator, timeout_ms=9_000)
    cluster.run(100)
    operator = cluster.new_client("operator")  # answers of one connection come in the order of its requests
    described = cluster.send(describe, 1, to=coordinator, timeout_ms=9_000, client=operator)
    cluster.run(1_000)
    assert not joined
    assert not described, "it says what no other replica has"
    for host in others:
        host.thaw()
    cluster.until(lambda: bool(joined) and bool(described))
    (after,) = described[0].groups
    assert [each.member_id for each in after.members] == ["a", "b"]
    assert after.group_epoch > before.group_epoch

"""The positions of the replicas that a node hosts, as JSON: `GET /replicas`, `/replicas/TOPIC`, `/replicas/TOPIC/N`.

Owns the form. It is what no Kafka request asks a replica for: how far its log is synced to disk, its own high
watermark, and which leader epoch begins at which offset. Reads only; what it costs is in proportion to the replicas
that are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tanist.broker.node import Node
    from tanist.broker.replication.hosted_partition import HostedPartition


def positions(node: Node, topic: str | None = None, partition: int | None = None) -> str:
    """The node, and its replicas: all, those of one topic, or one."""
    shown: dict[str, Any] = {
        "node_id": node.node_id,
        "broker_epoch": node.lifecycle.broker_epoch if node.is_broker else None,
        "quorum_leader": node.quorum.leader_id,
        "quorum_epoch": node.quorum.raft.epoch,
        "metadata_offset": node.metadata.applied_offset,
        "replicas": [_position(hosted) for hosted in _wanted(node, topic, partition)] if node.is_broker else [],
    }
    return json.dumps(shown, separators=(",", ":")) + "\n"


def _wanted(node: Node, topic: str | None, partition: int | None) -> Iterator[HostedPartition]:
    if topic is None:
        yield from node.replicas
        return
    hosted = node.replicas.by_topic.get(topic, {})
    for index in sorted(hosted) if partition is None else [partition]:
        if index in hosted:
            yield hosted[index]


def _position(hosted: HostedPartition) -> dict[str, Any]:
    log = hosted.log
    role = hosted.leader or hosted.follower
    return {
        "topic": hosted.topic,
        "partition": hosted.index,
        "role": "leader" if hosted.leader else "follower" if hosted.follower else "offline",
        "leader_epoch": hosted.leader_epoch,
        "log_start_offset": log.log_start_offset,
        "high_watermark": None if role is None else role.high_watermark,
        "log_end_offset": log.log_end_offset,
        "synced_offset": log.flushed_offset,
        "epochs": [[entry.epoch, entry.start_offset] for entry in log.epochs.entries],
    }

"""The positions of the replicas that a node hosts, as JSON: `GET /replicas`, `/replicas/TOPIC`, `/replicas/TOPIC/N`.

Owns the form. It is what no Kafka request asks a replica for: how far its log is synced to disk, its own high
watermark, and which leader epoch begins at which offset. Reads only; what it costs is in proportion to the replicas
that are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tanist.broker.parts import BrokerParts
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replicas import Replicas


def positions(parts: BrokerParts, topic: str | None = None, partition: int | None = None) -> str:
    """The node, and its replicas: all, those of one topic, or one."""
    is_broker, quorum = parts.context.config.is_broker, parts.quorum
    shown: dict[str, Any] = {
        "node_id": parts.context.node_id,
        "broker_epoch": parts.lifecycle.broker_epoch if is_broker else None,
        "quorum_leader": quorum.leader_id,
        "quorum_epoch": quorum.raft.epoch,
        "metadata_offset": parts.metadata.applied_offset,
        "replicas": [_position(hosted) for hosted in _wanted(parts.replicas, topic, partition)] if is_broker else [],
    }
    return json.dumps(shown, separators=(",", ":")) + "\n"


def _wanted(replicas: Replicas, topic: str | None, partition: int | None) -> Iterator[HostedPartition]:
    if topic is None:
        yield from replicas
        return
    hosted = replicas.by_topic.get(topic, {})
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

"""The positions of the replicas that a node hosts, as JSON: `GET /replicas`, `/replicas/TOPIC`, `/replicas/TOPIC/N`.

Owns the form. It is what no Kafka request asks a replica for: how far its log is synced to disk, its own high
watermark, and which leader epoch begins at which offset; the node's counters of traffic, for rates; and its state,
which a broker that does not serve clients yet says nowhere else. Reads only; what it costs is in proportion to the
replicas that are asked for, and to those that are led, whose records are counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tanist.broker.components import NodeComponents
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.replicas import Replicas


def positions(components: NodeComponents, topic: str | None = None, partition: int | None = None) -> str:
    """The node, and its replicas: all, those of one topic, or one."""
    is_broker, quorum = components.context.config.is_broker, components.quorum
    shown: dict[str, Any] = {
        "node_id": components.context.node_id,
        "state": components.lifecycle.state.value if is_broker else None,
        "waits_for": components.lifecycle.waits_for if is_broker else None,
        "metadata_age_ms": quorum.silence_ms,
        "broker_epoch": components.lifecycle.broker_epoch if is_broker else None,
        "quorum_leader": quorum.leader_id,
        "quorum_epoch": quorum.raft.epoch,
        "metadata_offset": components.metadata.applied_offset,
        "traffic": _traffic(components) if is_broker else None,
        "replicas": [_position(hosted) for hosted in _wanted(components.replicas, topic, partition)]
        if is_broker
        else [],
    }
    return json.dumps(shown, separators=(",", ":")) + "\n"


def _traffic(components: NodeComponents) -> dict[str, int]:
    metrics = components.context.metrics
    return {
        "records_in": metrics.records_in_before + sum(each.records_in for each in components.replicas if each.leader),
        "bytes_in": metrics.bytes_in,
        "bytes_out": metrics.bytes_out,
        "replication_in": metrics.replication_bytes_in,
        "replication_out": metrics.replication_bytes_out,
    }


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
        "size_bytes": log.size_bytes,
        "epochs": [[entry.epoch, entry.start_offset] for entry in log.epochs.entries],
    }

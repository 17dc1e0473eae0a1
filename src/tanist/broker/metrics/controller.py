"""What a controller knows of the whole cluster (rules 129, 130), KIP-966's metrics among it.

Counts of the cluster come from the committed metadata, so every controller tells the same, active or not: take the
maximum over them. What only an active controller can know (recoveries) is 0 on the others: take the sum.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tanist.broker.metrics.text import Exposition
from tanist.controller.recovery_strategy import Strategy, elr_in_force, recovery_strategy
from tanist.wire.ids import NO_LEADER

if TYPE_CHECKING:
    from tanist.broker.metadata.controller_service import ControllerHost
    from tanist.broker.node import Node

FENCED, CONTROLLED_SHUTDOWN, ACTIVE = 10, 20, 30
"""Kafka's numbers."""


def controller_metrics(node: Node, out: Exposition) -> None:
    host = node.quorum.controller_host
    if host is None:
        return
    prefix = "kafka_controller_kafkacontroller_"
    out.add(prefix + "activecontrollercount", int(host.active))
    _brokers(node, out, prefix)
    _partitions(node, out, prefix)
    _metadata(node, host, out, prefix)
    _elections(node, out)
    _recoveries(node, host, out)


def _brokers(node: Node, out: Exposition, prefix: str) -> None:
    states: Counter[int] = Counter()
    for broker_id, broker in sorted(node.metadata.image.brokers.items()):
        state = FENCED if broker.fenced else CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else ACTIVE
        states[state] += 1
        out.add(prefix + "brokerregistrationstate", state, str(broker_id))
    out.add(prefix + "fencedbrokercount", states[FENCED])
    out.add(prefix + "controlledshutdownbrokercount", states[CONTROLLED_SHUTDOWN])
    out.add(prefix + "activebrokercount", states[ACTIVE])


def _partitions(node: Node, out: Exposition, prefix: str) -> None:
    """One pass over the partitions of the cluster."""
    image = node.metadata.image
    partitions = leaderless = imbalanced = under_min_isr = 0
    electable: Counter[int] = Counter()
    for topic in image.topics.values():
        configured = image.min_insync_replicas(topic.name)
        partitions += len(topic.partitions)
        for state in topic.partitions.values():
            replicas, in_sync, leader = state.replicas, len(state.isr), state.leader
            if leader == NO_LEADER:
                leaderless += 1
            if leader != replicas[0]:
                imbalanced += 1
            if in_sync < configured and in_sync < len(replicas):
                under_min_isr += 1
            electable[in_sync + len(state.elr)] += 1
    out.add(prefix + "globaltopiccount", len(image.topics))
    out.add(prefix + "globalpartitioncount", partitions)
    out.add(prefix + "offlinepartitionscount", leaderless)
    out.add(prefix + "preferredreplicaimbalancecount", imbalanced)
    out.add("kafka_controller_global_under_min_isr_partition_count", under_min_isr)
    total = sum(count * number for count, number in electable.items())
    out.add("kafka_controller_electable_leaders_count", total)
    for count, number in sorted(electable.items()):
        out.add("tanist_controller_partitions_by_electable_leaders", number, str(count))


def _metadata(node: Node, host: ControllerHost, out: Exposition, prefix: str) -> None:
    written_ms = node.quorum.last_timestamp_ms
    out.add(prefix + "metadataerrorcount", node.metrics.metadata_errors)
    out.add(prefix + "lastappliedrecordoffset", node.metadata.applied_offset)
    out.add(prefix + "lastcommittedrecordoffset", node.quorum.raft.high_watermark - 1)
    out.add(prefix + "lastappliedrecordtimestamp", written_ms)
    lag_ms = 0 if host.active else max(0, node.clock.wall_ms() - written_ms)
    out.add(prefix + "lastappliedrecordlagms", lag_ms)
    out.add(prefix + "newactivecontrollerscount", node.metrics.new_active_controllers)


def _elections(node: Node, out: Exposition) -> None:
    metrics, prefix = node.metrics, "kafka_controller_controllerstats_"
    out.add(prefix + "uncleanleaderelections_total", metrics.unclean_elections)
    out.add(prefix + "electionfromeligibleleaderreplicas_total", metrics.elr_elections)
    out.add(prefix + "leaderelectionrateandtimems_count", metrics.elections)
    out.add(prefix + "leaderelectionrateandtimems_sum", metrics.election_ms)


def _recoveries(node: Node, host: ControllerHost, out: Exposition) -> None:
    recoveries = host.controller.recoveries
    live = recoveries.live_count if host.active else 0
    out.add("kafka_controller_unclean_recovery_partitions_count", live)
    waiting = _awaiting_operator(node) if host.active else 0
    out.add("kafka_controller_manual_leader_election_required_partition_count", waiting)
    out.add("kafka_controller_unclean_recovery_finished_count", recoveries.finished)


def _awaiting_operator(node: Node) -> int:
    """KIP: "the partition that is leaderless and waits for user operations to find the next leader".

    Nobody in ISR or ELR may return, and nobody will be elected without being told. That is strategy None; and where
    the recovery manager does not decide, no unclean elections and (with ELR) no last known leader to wait for.
    """
    image = node.metadata.image
    elr = elr_in_force(image)
    recovers = elr and node.config.unclean_recovery_manager_enabled
    waiting = 0
    for topic_id, partition in image.leaderless_partitions():
        topic = image.topics[topic_id]
        state = topic.partitions[partition]
        if state.isr or state.elr:
            continue
        if recovers:
            waiting += recovery_strategy(image, topic.name, node.node_id) is Strategy.NONE
        elif not image.unclean_election_enabled(topic.name, node.node_id):
            waiting += not (elr and len(state.last_known_elr) == 1)
    return waiting

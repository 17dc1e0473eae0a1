"""The cluster, as a controller knows it (rules 129, 130), KIP-966's metrics among it.

Counts of the cluster come from the committed metadata, so every controller reports the same, active or not: take the
maximum over them. Counts that only an active controller has (recoveries) are 0 on the others: take the sum.
"""

from __future__ import annotations

from collections import Counter

from tanist.broker.context import NodeContext
from tanist.broker.counters import Metrics
from tanist.broker.metadata.controller_service import ControllerService
from tanist.broker.metadata.quorum import MetadataQuorum
from tanist.broker.metadata.view import MetadataView
from tanist.broker.metrics.text import Exposition
from tanist.controller.image.image import MetadataImage
from tanist.controller.partitions.recovery_strategy import Strategy, elr_in_force, recovery_strategy
from tanist.wire.ids import NO_LEADER

FENCED, CONTROLLED_SHUTDOWN, ACTIVE = 10, 20, 30
"""Kafka's numbers."""


def controller_metrics(context: NodeContext, metadata: MetadataView, quorum: MetadataQuorum, out: Exposition) -> None:
    host = quorum.controller_service
    if host is None:
        return
    prefix = "kafka_controller_kafkacontroller_"
    out.add(prefix + "activecontrollercount", int(host.active))
    _brokers(metadata.image, out, prefix)
    _partitions(metadata.image, out, prefix)
    _metadata(context, metadata, quorum, host, out, prefix)
    _elections(context.metrics, out)
    _recoveries(context, metadata.image, host, out)


def _brokers(image: MetadataImage, out: Exposition, prefix: str) -> None:
    states: Counter[int] = Counter()
    for broker_id, broker in sorted(image.brokers.items()):
        state = FENCED if broker.fenced else CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else ACTIVE
        states[state] += 1
        out.add(prefix + "brokerregistrationstate", state, str(broker_id))
    out.add(prefix + "fencedbrokercount", states[FENCED])
    out.add(prefix + "controlledshutdownbrokercount", states[CONTROLLED_SHUTDOWN])
    out.add(prefix + "activebrokercount", states[ACTIVE])


def _partitions(image: MetadataImage, out: Exposition, prefix: str) -> None:
    """One pass over the partitions of the cluster."""
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


def _metadata(
    context: NodeContext,
    metadata: MetadataView,
    quorum: MetadataQuorum,
    host: ControllerService,
    out: Exposition,
    prefix: str,
) -> None:
    written_ms = quorum.replay.last_timestamp_ms
    out.add(prefix + "metadataerrorcount", context.metrics.metadata_errors)
    out.add(prefix + "lastappliedrecordoffset", metadata.applied_offset)
    out.add(prefix + "lastcommittedrecordoffset", quorum.raft.high_watermark - 1)
    out.add(prefix + "lastappliedrecordtimestamp", written_ms)
    lag_ms = 0 if host.active else max(0, context.clock.wall_ms() - written_ms)
    out.add(prefix + "lastappliedrecordlagms", lag_ms)
    out.add(prefix + "newactivecontrollerscount", context.metrics.new_active_controllers)


def _elections(metrics: Metrics, out: Exposition) -> None:
    prefix = "kafka_controller_controllerstats_"
    out.add(prefix + "uncleanleaderelections_total", metrics.unclean_elections)
    out.add(prefix + "electionfromeligibleleaderreplicas_total", metrics.elr_elections)
    out.add(prefix + "leaderelectionrateandtimems_count", metrics.elections)
    out.add(prefix + "leaderelectionrateandtimems_sum", metrics.election_ms)


def _recoveries(context: NodeContext, image: MetadataImage, host: ControllerService, out: Exposition) -> None:
    recoveries = host.controller.recoveries
    live = recoveries.live_count if host.active else 0
    out.add("kafka_controller_unclean_recovery_partitions_count", live)
    waiting = _awaiting_operator(context, image) if host.active else 0
    out.add("kafka_controller_manual_leader_election_required_partition_count", waiting)
    out.add("kafka_controller_unclean_recovery_finished_count", recoveries.finished)


def _awaiting_operator(context: NodeContext, image: MetadataImage) -> int:
    """KIP: "the partition that is leaderless and waits for user operations to find the next leader".

    Nobody in ISR or ELR may return, and none is elected without an operator's order. That is strategy None; and where
    the recovery manager does not decide, no unclean elections and (with ELR) no last known leader to wait for.
    """
    elr = elr_in_force(image)
    recovers = elr and context.config.unclean_recovery_manager_enabled
    waiting = 0
    for topic_id, partition in image.leaderless_partitions():
        topic = image.topics[topic_id]
        state = topic.partitions[partition]
        if state.isr or state.elr:
            continue
        if recovers:
            waiting += recovery_strategy(image, topic.name, context.node_id) is Strategy.NONE
        elif not image.unclean_election_enabled(topic.name, context.node_id):
            waiting += not (elr and len(state.last_known_elr) == 1)
    return waiting

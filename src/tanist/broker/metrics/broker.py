"""A broker's own metrics: its replicas, its traffic, how far its followers are behind (rules 129, 131)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tanist.broker.api.produce import ProduceWait
from tanist.broker.components import NodeComponents
from tanist.broker.context import NodeContext
from tanist.broker.counters import Latency, Metrics
from tanist.broker.groups.service import Groups
from tanist.broker.metadata.lifecycle import LifecycleState
from tanist.broker.metadata.view import MetadataView
from tanist.broker.metrics.text import Exposition
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.purgatory import Purgatory
from tanist.broker.replication.replicas import Replicas
from tanist.broker.storage.cleaning import LogCleaner
from tanist.broker.storage.salvage import Salvage
from tanist.broker.transactions.service import Transactions
from tanist.coordinator.transactions.state import TransactionState

if TYPE_CHECKING:
    from tanist.broker.telemetry.client_telemetry import ClientTelemetry

BROKER_STATES = {
    LifecycleState.NOT_RUNNING: 0,
    LifecycleState.STARTING: 1,
    LifecycleState.RECOVERY: 2,
    LifecycleState.RUNNING: 3,
    LifecycleState.PENDING_CONTROLLED_SHUTDOWN: 6,
    LifecycleState.SHUTTING_DOWN: 7,
}
"""Kafka's numbers."""


def broker_metrics(components: NodeComponents, out: Exposition) -> None:
    metrics, replicas = components.context.metrics, components.replicas
    out.add("kafka_server_kafkaserver_brokerstate", BROKER_STATES[components.lifecycle.state])
    _replicas(replicas, components.context, out)
    _traffic(metrics, components.purgatory, out)
    _salvage(metrics, components.salvage, out)
    out.add("kafka_log_logmanager_offlinelogdirectorycount", len(replicas.directories.offline_ids()))
    for directory in components.log_loading.remaining():
        out.add("kafka_log_logmanager_remaininglogstorecover", directory.logs, directory.path)
        for number, segments in enumerate(directory.segments):
            out.add("kafka_log_logmanager_remainingsegmentstorecover", segments, directory.path, str(number))
    _cleaner(components.housekeeping.cleaner, components.context, out)
    _groups(components.groups, components.context.clock.now_ms(), out)
    _transactions(components.transactions, components.context.clock.now_ms(), out)
    if components.telemetry is not None:
        _telemetry(components.telemetry, out)


def _telemetry(telemetry: ClientTelemetry, out: Exposition) -> None:
    prefix = "kafka_server_client_metrics_"
    out.add(prefix + "instance_count", telemetry.instance_count)
    out.add(prefix + "unknown_subscription_request_count", telemetry.unknown_subscriptions)
    out.add(prefix + "throttle_count", telemetry.throttled)
    out.add(prefix + "plugin_export_count", telemetry.taken)
    out.add(prefix + "plugin_error_count", telemetry.unreadable)


def _cleaner(cleaner: LogCleaner, context: NodeContext, out: Exposition) -> None:
    prefix = "kafka_log_logcleanermanager_"
    out.add(prefix + "uncleanable_partitions_count", cleaner.uncleanable_count)
    out.add(prefix + "max_dirty_percent", int(cleaner.max_dirty_ratio * 100))
    out.add(prefix + "time_since_last_run_ms", max(0, context.clock.now_ms() - cleaner.looked_ms))
    out.add("tanist_log_cleaner_cleanings_total", cleaner.cleaned)
    out.add("tanist_log_cleaner_dropped_records_total", cleaner.dropped_records)


def _groups(groups: Groups, now_ms: int, out: Exposition) -> None:
    """The groups that are here; a broker that had none to see to has loaded nothing, and is not made to."""
    partitions = list(groups.loaded.partitions()) if groups.loaded is not None else []
    prefix = "kafka_server_group_coordinator_metrics_"
    _load_time(prefix, None if groups.loaded is None else groups.loaded.load_time, now_ms, out)
    kinds = Counter(group.kind for each in partitions for group in each.shard.groups.values())
    out.add(prefix + "group_count", kinds["classic"], "classic")
    out.add(prefix + "group_count", kinds["consumer"], "consumer")
    loading = sum(not each.ready for each in partitions)
    out.add(prefix + "num_partitions", loading, "loading")
    out.add(prefix + "num_partitions", len(partitions) - loading, "active")


def _load_time(prefix: str, load_time: Latency | None, now_ms: int, out: Exposition) -> None:
    average_ms = None if load_time is None else load_time.average_ms(now_ms)
    max_ms = None if load_time is None else load_time.max_ms(now_ms)
    out.add(prefix + "partition_load_time_avg", average_ms or 0)
    out.add(prefix + "partition_load_time_max", max_ms or 0)


def _transactions(transactions: Transactions, now_ms: int, out: Exposition) -> None:
    """As for groups: what is not there has nothing to count."""
    coordinator, verifier = transactions.loaded, transactions.asking
    load_time = None if coordinator is None else coordinator.load_time
    _load_time("kafka_server_transaction_coordinator_metrics_", load_time, now_ms, out)
    states: Counter[TransactionState] = Counter()
    if coordinator is not None:
        for partition in coordinator.partitions():
            states.update(values.state for _, values in partition.shard.described())
    for state in TransactionState:
        out.add("tanist_transaction_coordinator_transactional_ids", states[state], state.title)
    waiting = 0 if coordinator is None else coordinator.markers.waiting_count
    out.add("kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize", waiting)
    prefix = "kafka_server_addpartitionstotxnmanager_"
    out.add(prefix + "verificationfailurerate_count", 0 if verifier is None else verifier.refused)
    out.add(prefix + "verificationtimems_count", 0 if verifier is None else verifier.answered)
    out.add(prefix + "verificationtimems_sum", 0 if verifier is None else verifier.total_ms)


def _replicas(replicas: Replicas, context: NodeContext, out: Exposition) -> None:
    """One pass over the hosted partitions."""
    metrics, wall_ms, late_ms = context.metrics, context.clock.wall_ms(), context.config.late_transaction_ms
    hosts = leads = producers = under_replicated = under_min_isr = at_min_isr = reassigning = late = 0
    max_lag = 0
    records = metrics.records_in_before
    for hosted in replicas:
        hosts += 1
        producers += len(hosted.log.producers.entries)
        leader = hosted.leader
        if leader is None:
            lag = _lag(hosted)
            if lag is not None and lag > max_lag:
                max_lag = lag
            continue
        leads += 1
        records += hosted.records_in
        metadata = leader.metadata
        if leader.under_min_isr:
            under_min_isr += 1
        elif leader.at_min_isr:
            at_min_isr += 1
        if leader.under_replicated:
            under_replicated += 1
        if metadata.adding or metadata.removing:
            reassigning += 1
        if hosted.log.producers.has_late_transaction(wall_ms, late_ms):
            late += 1
    prefix = "kafka_server_replicamanager_"
    out.add(prefix + "partitioncount", hosts)
    out.add(prefix + "leadercount", leads)
    out.add(prefix + "offlinereplicacount", replicas.offline_count)
    out.add(prefix + "underreplicatedpartitions", under_replicated)
    out.add(prefix + "underminisrpartitioncount", under_min_isr)
    out.add(prefix + "atminisrpartitioncount", at_min_isr)
    out.add(prefix + "produceridcount", producers)
    out.add(prefix + "reassigningpartitions", reassigning)
    out.add(prefix + "partitionswithlatetransactionscount", late)
    out.add("tanist_hanging_transactions_total", metrics.hanging_transactions)
    out.add(prefix + "isrshrinks_total", metrics.isr_shrinks)
    out.add(prefix + "isrexpands_total", metrics.isr_expands)
    out.add(prefix + "failedisrupdates_total", metrics.failed_isr_updates)
    out.add("kafka_server_brokertopicmetrics_messagesin_total", records)
    out.add("kafka_server_replicafetchermanager_maxlag", max_lag, "Replica")


def _traffic(metrics: Metrics, purgatory: Purgatory, out: Exposition) -> None:
    prefix = "kafka_server_brokertopicmetrics_"
    out.add(prefix + "bytesin_total", metrics.bytes_in)
    out.add(prefix + "bytesout_total", metrics.bytes_out)
    out.add(prefix + "replicationbytesin_total", metrics.replication_bytes_in)
    out.add(prefix + "replicationbytesout_total", metrics.replication_bytes_out)
    out.add(prefix + "totalproducerequests_total", metrics.produce_requests)
    out.add(prefix + "totalfetchrequests_total", metrics.fetch_requests)
    out.add(prefix + "failedproducerequests_total", metrics.failed_produces)
    out.add(prefix + "failedfetchrequests_total", metrics.failed_fetches)
    out.add("kafka_server_delayedproducemetrics_expires_total", metrics.expired_produces)
    produces = fetches = 0
    for waiter in purgatory.waiting():
        if type(waiter) is ProduceWait:
            produces += 1
        else:
            fetches += 1
    out.add("kafka_server_delayedoperationpurgatory_purgatorysize", produces, "Produce")
    out.add("kafka_server_delayedoperationpurgatory_purgatorysize", fetches, "Fetch")


def _salvage(metrics: Metrics, salvage: Salvage, out: Exposition) -> None:
    """Records that followers had to drop, and those that were saved."""
    out.add("tanist_truncated_records_total", metrics.truncated_records)
    out.add("tanist_truncated_below_high_watermark_total", metrics.truncated_below_high_watermark)
    out.add("tanist_salvage_saved_total", salvage.saved)
    out.add("tanist_salvage_saved_bytes_total", salvage.saved_bytes)
    out.add("tanist_salvage_failures_total", salvage.failures)
    out.add("tanist_salvage_removed_total", salvage.removed)


def _lag(hosted: HostedPartition) -> int | None:
    """Records between the end of a follower's log and what its leader last said to be committed; None: it said nothing.

    Its own high watermark says nothing of that: it is never beyond its own log.
    """
    if hosted.follower is None or hosted.leader_high_watermark < 0:
        return None
    return max(0, hosted.leader_high_watermark - hosted.log.log_end_offset)


def partition_metrics(metadata: MetadataView, replicas: Replicas, out: Exposition) -> None:
    """Each replica by itself."""
    image = metadata.image
    add = out.add
    for hosted in replicas:
        at = (hosted.topic, str(hosted.index))
        leader = hosted.leader
        if leader is not None:
            add("kafka_cluster_partition_underreplicated", int(leader.under_replicated), *at)
            add("kafka_cluster_partition_insyncreplicascount", leader.in_sync_count, *at)
            add("kafka_cluster_partition_replicascount", len(leader.metadata.replicas), *at)
            add("kafka_cluster_partition_underminisr", int(leader.under_min_isr), *at)
            add("kafka_cluster_partition_atminisr", int(leader.at_min_isr), *at)
            stable = hosted.log.last_stable_offset(leader.high_watermark)
            add("kafka_cluster_partition_laststableoffsetlag", leader.high_watermark - stable, *at)
        elif hosted.follower is not None:
            client = f"ReplicaFetcherThread-0-{hosted.follower.leader}"
            add("kafka_server_fetcherlagmetrics_consumerlag", _lag(hosted), client, *at)
        state = image.partition(hosted.topic_id, hosted.index)
        if state is not None:
            add("tanist_partition_electable_leaders", len(state.isr) + len(state.elr), *at)
        add("kafka_log_log_logstartoffset", hosted.log.log_start_offset, *at)
        add("kafka_log_log_logendoffset", hosted.log.log_end_offset, *at)
        add("kafka_log_log_size", hosted.log.size_bytes, *at)

"""Every metric there is: its Prometheus name, its type, Kafka's own name for it, what it means.

Owns the names. Kafka's metrics have those that the Prometheus JMX exporter gives them by its usual rules for Kafka
(lower case, `kafka_server_replicamanager_underminisrpartitioncount`; a meter's `...PerSec` is its count, `..._total`);
KIP-966's have the KIP's own, with underscores for dots; what only tanist has begins with `tanist_`. `docs/metrics.md`
is this table (a test compares them).
"""

from __future__ import annotations

from tanist.broker.metrics.definition import Definition, counter, gauge, named

REPLICAS = "kafka.server:ReplicaManager"
TRAFFIC = "kafka.server:BrokerTopicMetrics"
CONTROLLER = "kafka.controller:KafkaController"
CLEANER = "kafka.log:LogCleanerManager"
_GROUPS = "kafka.server:type=group-coordinator-metrics,name="
_TRANSACTIONS = "kafka.server:type=transaction-coordinator-metrics,name="
_CLIENTS = "kafka.server:type=client-metrics,name="
_CLIENTS_PREFIX = "kafka_server_client_metrics_"
_MARKERS = "kafka.coordinator.transaction:TransactionMarkerChannelManager"
_VERIFICATION = "kafka.server:type=AddPartitionsToTxnManager,name="
_LOAD_TIME = "ms from the election of this broker to a loaded partition, over the last 30 to 60 s."

BROKER_METRICS = (
    named(
        "kafka.server:KafkaServer",
        "BrokerState",
        "0 not running, 1 starting, 2 recovery, 3 running, 6 pending controlled shutdown, 7 shutting down.",
    ),
    named(REPLICAS, "PartitionCount", "Replicas that this broker hosts."),
    named(REPLICAS, "LeaderCount", "Partitions that this broker leads."),
    named(REPLICAS, "OfflineReplicaCount", "Replicas in log directories that have failed."),
    named(REPLICAS, "UnderReplicatedPartitions", "Led partitions with fewer replicas in sync than they have."),
    named(
        REPLICAS,
        "UnderMinIsrPartitionCount",
        "Led partitions with fewer replicas in sync than min.insync.replicas: they refuse acks=all.",
    ),
    named(
        REPLICAS,
        "AtMinIsrPartitionCount",
        "Led partitions with just min.insync.replicas in sync: one more loss and acks=all is refused.",
    ),
    named(REPLICAS, "ProducerIdCount", "Producers that the replicas here remember, once for each replica."),
    named(REPLICAS, "ReassigningPartitions", "Led partitions whose replicas are being changed."),
    named(
        REPLICAS,
        "PartitionsWithLateTransactionsCount",
        "Led partitions with a transaction open for longer than transaction.max.timeout.ms and five minutes.",
    ),
    named(REPLICAS, "IsrShrinksPerSec", "ISRs of led partitions that have become smaller."),
    named(REPLICAS, "IsrExpandsPerSec", "ISRs of led partitions that have grown."),
    named(REPLICAS, "FailedIsrUpdatesPerSec", "Changes of an ISR that the controller did not take."),
    named(TRAFFIC, "MessagesInPerSec", "Records that producers have appended."),
    named(TRAFFIC, "BytesInPerSec", "Bytes of record batches that producers have appended."),
    named(TRAFFIC, "BytesOutPerSec", "Bytes of records sent to consumers."),
    named(TRAFFIC, "ReplicationBytesInPerSec", "Bytes of records fetched from leaders."),
    named(TRAFFIC, "ReplicationBytesOutPerSec", "Bytes of records sent to followers."),
    named(TRAFFIC, "TotalProduceRequestsPerSec", "Produce requests."),
    named(TRAFFIC, "TotalFetchRequestsPerSec", "Fetch requests, of consumers and followers."),
    named(TRAFFIC, "FailedProduceRequestsPerSec", "Partitions in Produce requests that were refused at once."),
    named(TRAFFIC, "FailedFetchRequestsPerSec", "Partitions in Fetch requests that were answered with an error."),
    named(
        "kafka.server:DelayedProduceMetrics",
        "ExpiresPerSec",
        "Produce requests with acks=all that were not committed within their timeout.",
    ),
    named(
        "kafka.server:DelayedOperationPurgatory",
        "PurgatorySize",
        "Requests that wait for replication (Produce) or data (Fetch).",
        "delayedOperation",
    ),
    gauge(
        "kafka_server_replicafetchermanager_maxlag",
        "kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId=Replica",
        "Most records that a replica here is behind what its leader has committed.",
        "clientId",
    ),
    named("kafka.log:LogManager", "OfflineLogDirectoryCount", "Log directories that have failed."),
    named(
        "kafka.log:LogManager",
        "remainingLogsToRecover",
        "Logs of a directory that the start has yet to open, and to recover where it was not clean (KIP-831).",
        "dir",
    ),
    named(
        "kafka.log:LogManager",
        "remainingSegmentsToRecover",
        "Segments that a thread of the start has yet to read of its log (KIP-831).",
        "dir",
        "threadNum",
    ),
    named(CLEANER, "uncleanable-partitions-count", "Replicas that could not be compacted, and are left as they are."),
    named(CLEANER, "max-dirty-percent", "How dirty the dirtiest compacted log was when the cleaner last looked."),
    named(CLEANER, "time-since-last-run-ms", "How long ago that was; the cleaner may be at work since."),
    counter("tanist_log_cleaner_cleanings_total", "", "Logs that were compacted, each time."),
    counter("tanist_log_cleaner_dropped_records_total", "", "Records that compaction has dropped."),
    gauge(
        "kafka_server_group_coordinator_metrics_group_count",
        _GROUPS + "group-count",
        "Groups that this broker coordinates, by their protocol.",
        "protocol",
    ),
    gauge(
        "kafka_server_group_coordinator_metrics_num_partitions",
        _GROUPS + "num-partitions",
        "Partitions of __consumer_offsets led by this broker, once it has a group to see to.",
        "state",
    ),
    gauge(
        "kafka_server_group_coordinator_metrics_partition_load_time_avg",
        _GROUPS + "partition-load-time-avg",
        _LOAD_TIME,
    ),
    gauge(
        "kafka_server_group_coordinator_metrics_partition_load_time_max",
        _GROUPS + "partition-load-time-max",
        "The longest of them.",
    ),
    gauge(
        "kafka_server_transaction_coordinator_metrics_partition_load_time_avg",
        _TRANSACTIONS + "partition-load-time-avg",
        _LOAD_TIME,
    ),
    gauge(
        "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
        _TRANSACTIONS + "partition-load-time-max",
        "The longest of them.",
    ),
    gauge(
        "tanist_transaction_coordinator_transactional_ids",
        "",
        "Transactional ids that this broker coordinates, by the state of their transactions.",
        "state",
    ),
    named(
        _MARKERS, "UnknownDestinationQueueSize", "Markers that wait for a leader of their partition, or for its disk."
    ),
    counter(
        "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count",
        _VERIFICATION + "VerificationFailureRate",
        "Transactions that may not write to a partition here, by the answer of their coordinator.",
    ),
    counter(
        "kafka_server_addpartitionstotxnmanager_verificationtimems_count",
        _VERIFICATION + "VerificationTimeMs",
        "Transactions whose coordinator was asked whether they may write here.",
    ),
    counter(
        "kafka_server_addpartitionstotxnmanager_verificationtimems_sum",
        _VERIFICATION + "VerificationTimeMs",
        "Time until its answers, in ms.",
    ),
    counter(
        "tanist_truncated_records_total",
        "",
        "Records that followers here have cut off because their leader does not have them.",
    ),
    counter(
        "tanist_truncated_below_high_watermark_total",
        "",
        "Of those, records that were known to be committed: only an unclean election does that.",
    ),
    counter(
        "tanist_hanging_transactions_total",
        "",
        "Transactions that no coordinator would have ended, as after an unclean election: the leader has ended them.",
    ),
    counter("tanist_salvage_saved_total", "", "Cut off tails that were saved in quarantine (docs/salvage.md)."),
    counter("tanist_salvage_saved_bytes_total", "", "Bytes of them."),
    counter("tanist_salvage_failures_total", "", "Tails that could not be saved."),
    counter("tanist_salvage_removed_total", "", "Saved tails that the bounds of the quarantine have removed."),
    gauge(_CLIENTS_PREFIX + "instance_count", _CLIENTS + "instance-count", "Clients that push metrics, or have asked."),
    *(
        counter(f"{_CLIENTS_PREFIX}{name.replace('-', '_')}", _CLIENTS + name, text)
        for name, text in (
            ("unknown-subscription-request-count", "Pushes by a subscription that has changed: the client asks anew."),
            ("throttle-count", "Requests that came before their interval was over."),
            ("plugin-export-count", "Pushes that were taken."),
            ("plugin-error-count", "Pushes that could not be read."),
        )
    ),
)

CONTROLLER_METRICS = (
    named(CONTROLLER, "ActiveControllerCount", "1 on the active controller."),
    named(CONTROLLER, "ActiveBrokerCount", "Brokers that are registered and not fenced."),
    named(CONTROLLER, "FencedBrokerCount", "Brokers that are registered and fenced."),
    named(CONTROLLER, "ControlledShutdownBrokerCount", "Brokers in a controlled shutdown."),
    named(CONTROLLER, "BrokerRegistrationState", "10 fenced, 20 controlled shutdown, 30 active.", "broker"),
    named(CONTROLLER, "GlobalTopicCount", "Topics."),
    named(CONTROLLER, "GlobalPartitionCount", "Partitions."),
    named(CONTROLLER, "OfflinePartitionsCount", "Partitions without a leader."),
    named(CONTROLLER, "PreferredReplicaImbalanceCount", "Partitions that are not led by their preferred replica."),
    named(CONTROLLER, "MetadataErrorCount", "Committed records that this node could not apply."),
    named(CONTROLLER, "LastAppliedRecordOffset", "Offset of the last metadata record that was applied."),
    named(CONTROLLER, "LastCommittedRecordOffset", "Offset of the last metadata record that is known to be committed."),
    named(
        CONTROLLER, "LastAppliedRecordTimestamp", "When the last applied metadata record was written, in ms since 1970."
    ),
    named(CONTROLLER, "LastAppliedRecordLagMs", "How long ago that is, in ms; 0 on the active controller."),
    counter(
        "kafka_controller_kafkacontroller_newactivecontrollerscount",
        "kafka.controller:type=KafkaController,name=NewActiveControllersCount",
        "Active controllers that this node has heard of, one after the other.",
    ),
    named(
        "kafka.controller:ControllerStats",
        "UncleanLeaderElectionsPerSec",
        "Elections by which committed records may have been lost.",
    ),
    named(
        "kafka.controller:ControllerStats",
        "ElectionFromEligibleLeaderReplicasPerSec",
        "Elections of a member of the ELR (KIP-966).",
    ),
    counter(
        "kafka_controller_controllerstats_leaderelectionrateandtimems_count",
        "kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs",
        "Leader elections.",
    ),
    counter(
        "kafka_controller_controllerstats_leaderelectionrateandtimems_sum",
        "kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs",
        "Time from their decisions to their being committed and applied here, in ms.",
    ),
    gauge(
        "kafka_controller_global_under_min_isr_partition_count",
        "kafka.controller.global_under_min_isr_partition_count (KIP-966)",
        "Partitions with fewer replicas in sync than min.insync.replicas.",
    ),
    gauge(
        "kafka_controller_electable_leaders_count",
        "Electable leaders (KIP-966)",
        "Replicas in ISR and ELR, of all partitions together.",
    ),
    gauge(
        "tanist_controller_partitions_by_electable_leaders",
        "",
        "Partitions, by how many of their replicas may be elected without loss (ISR + ELR).",
        "electable",
    ),
    gauge(
        "kafka_controller_unclean_recovery_partitions_count",
        "kafka.controller.unclean_recovery_partitions_count (KIP-966)",
        "Partitions under unclean recovery, or waiting for LastKnownElr to be unfenced; on the active controller.",
    ),
    gauge(
        "kafka_controller_manual_leader_election_required_partition_count",
        "kafka.controller.manual_leader_election_required_partition_count (KIP-966)",
        "Partitions without a leader that wait for an operator (`tanist elect`); on the active controller.",
    ),
    counter(
        "kafka_controller_unclean_recovery_finished_count",
        "kafka.controller.unclean_recovery_finished_count (KIP-966)",
        "Unclean recoveries that have elected a leader, by this process as the active controller.",
    ),
)

_RAFT = "kafka.server:type=raft-metrics,"

NODE_METRICS = (
    gauge(
        "kafka_server_raftmetrics_current_state",
        _RAFT + "current-state",
        "1 for the role that this node has in the metadata quorum.",
        "state",
    ),
    gauge(
        "kafka_server_raftmetrics_current_leader",
        _RAFT + "current-leader",
        "Id of the quorum's leader; -1: none is known.",
    ),
    gauge(
        "kafka_server_raftmetrics_current_vote",
        _RAFT + "current-vote",
        "Id of the candidate that this node has voted for in this epoch; -1: none.",
    ),
    gauge("kafka_server_raftmetrics_current_epoch", _RAFT + "current-epoch", "The quorum's epoch."),
    gauge(
        "kafka_server_raftmetrics_high_watermark",
        _RAFT + "high-watermark",
        "Offset up to which the metadata log is known to be committed.",
    ),
    gauge("kafka_server_raftmetrics_log_end_offset", _RAFT + "log-end-offset", "End of this node's metadata log."),
    gauge("kafka_server_raftmetrics_log_end_epoch", _RAFT + "log-end-epoch", "Epoch of its last record."),
    gauge("kafka_server_raftmetrics_number_of_voters", _RAFT + "number-of-voters", "Voters of the quorum."),
    gauge(
        "kafka_server_raftmetrics_number_of_observers",
        _RAFT + "number-of-observers",
        "Nodes that follow without a vote; on the leader.",
    ),
    gauge(
        "kafka_server_raftmetrics_commit_latency_avg",
        _RAFT + "commit-latency-avg",
        "ms from append to commit, over the last 30 to 60 s; on the leader.",
    ),
    gauge("kafka_server_raftmetrics_commit_latency_max", _RAFT + "commit-latency-max", "The longest of them."),
    counter(
        "kafka_network_requestmetrics_requests_total",
        "kafka.network:type=RequestMetrics,name=RequestsPerSec,request=...",
        "Requests, by the name of their API.",
        "request",
    ),
    gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "kafka.server:type=socket-server-metrics,listener=...,networkProcessor=... connection-count",
        "Open connections that were accepted.",
        "listener",
    ),
    counter(
        "kafka_server_socket_server_metrics_successful_authentication_total",
        "kafka.server:type=socket-server-metrics,listener=...,networkProcessor=... successful-authentication-total",
        "Clients that have said by SASL who they are, each time that they did.",
        "listener",
    ),
    counter(
        "kafka_server_socket_server_metrics_failed_authentication_total",
        "kafka.server:type=socket-server-metrics,listener=...,networkProcessor=... failed-authentication-total",
        "Clients that could not, and were refused.",
        "listener",
    ),
    counter(
        "kafka_server_socket_server_metrics_expired_connections_killed_count",
        "kafka.server:type=socket-server-metrics,listener=...,networkProcessor=... expired-connections-killed-count",
        "Connections that were closed for a request after the end of their sessions.",
        "listener",
    ),
    gauge(
        "tanist_certificate_expires_seconds",
        "",
        "When the certificate that a listener shows is not good any more, in s since 1970.",
        "listener",
    ),
    counter("tanist_authorization_denied_total", "", "Requests for something that an access control list denied."),
    counter("tanist_throttles_total", "", "Answers that asked a client to wait, by its quota.", "quota"),
    counter("tanist_throttle_time_ms_total", "", "For how long, all together.", "quota"),
    gauge("tanist_quota_counters", "", "Clients, or groups of them, whose use is counted.", "quota"),
    counter(
        "tanist_refused_connections_total",
        "",
        "Connections that were closed because too many came from their address, or too fast.",
    ),
    counter("tanist_accept_rest_ms_total", "", "For how long listeners have rested, as connections came too fast."),
    counter("tanist_malformed_requests_total", "", "Connections that were closed for what they sent."),
    counter("tanist_unexpected_errors_total", "", "Exceptions that nobody expected: each is a bug to report."),
    gauge(
        "tanist_queue_depth",
        "",
        "Length of a bounded queue. Of many queues of a kind, the fullest.",
        "queue",
    ),
    gauge("tanist_queue_limit", "", "That bound.", "queue"),
    gauge("tanist_node_info", "", "1, with who this is.", "node_id", "roles", "version"),
)

PARTITION_METRICS = (
    gauge(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=ReplicaFetcherThread-0-LEADER,topic=...,partition=...",
        "Records that the replica here is behind what its leader has committed.",
        "clientId",
        "topic",
        "partition",
    ),
    gauge(
        "kafka_cluster_partition_underreplicated",
        "kafka.cluster:type=Partition,name=UnderReplicated,topic=...,partition=...",
        "1 if not all replicas are in sync; on its leader, as are the next four.",
        "topic",
        "partition",
    ),
    gauge(
        "kafka_cluster_partition_insyncreplicascount",
        "kafka.cluster:type=Partition,name=InSyncReplicasCount,...",
        "Replicas in sync.",
        "topic",
        "partition",
    ),
    gauge(
        "kafka_cluster_partition_replicascount",
        "kafka.cluster:type=Partition,name=ReplicasCount,...",
        "Replicas.",
        "topic",
        "partition",
    ),
    gauge(
        "kafka_cluster_partition_underminisr",
        "kafka.cluster:type=Partition,name=UnderMinIsr,...",
        "1 if fewer replicas are in sync than min.insync.replicas.",
        "topic",
        "partition",
    ),
    gauge(
        "kafka_cluster_partition_atminisr",
        "kafka.cluster:type=Partition,name=AtMinIsr,...",
        "1 if just as many are.",
        "topic",
        "partition",
    ),
    gauge(
        "kafka_cluster_partition_laststableoffsetlag",
        "kafka.cluster:type=Partition,name=LastStableOffsetLag,...",
        "Committed records that wait for the end of a transaction before readers of committed records get them.",
        "topic",
        "partition",
    ),
    gauge(
        "tanist_partition_electable_leaders",
        "",
        "Replicas that may be elected without loss (ISR + ELR), by this node's metadata.",
        "topic",
        "partition",
    ),
    gauge(
        "kafka_log_log_logstartoffset",
        "kafka.log:type=Log,name=LogStartOffset,topic=...,partition=...",
        "First offset of the replica's log.",
        "topic",
        "partition",
    ),
    gauge("kafka_log_log_logendoffset", "kafka.log:type=Log,name=LogEndOffset,...", "Its end.", "topic", "partition"),
    gauge("kafka_log_log_size", "kafka.log:type=Log,name=Size,...", "Its size in bytes.", "topic", "partition"),
)

PROCESS_METRICS = (
    counter("process_cpu_seconds_total", "", "CPU time that the process has used, in s."),
    gauge("process_resident_memory_bytes", "", "Memory of the process that is in RAM."),
    gauge("process_open_fds", "", "Open file descriptors."),
    gauge("process_start_time_seconds", "", "When the process started, in s since 1970."),
    counter("tanist_loop_turns_total", "", "Turns of the event loop."),
    gauge("tanist_loop_lateness_max_ms", "", "How late a timer was at most, in the last 30 to 60 s: long turns show."),
    counter("tanist_cold_reads_total", "", "Ranges of answers that were not in memory: a thread read them first."),
    gauge("tanist_cold_reads_waiting", "", "Those that wait for the disk now, and blocks that are read ahead."),
)

DEFINITIONS: dict[str, Definition] = {
    each.name: each
    for each in (*BROKER_METRICS, *CONTROLLER_METRICS, *NODE_METRICS, *PROCESS_METRICS, *PARTITION_METRICS)
}
"""In the order of the exposition."""

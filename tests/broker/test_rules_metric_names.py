"""Kafka's names of its metrics, by rules 129, 131 and 132: those that are here, and those that are not on purpose."""

from __future__ import annotations

from collections.abc import Iterable

from tanist.broker.metrics.catalog import (
    BROKER_METRICS,
    CONTROLLER_METRICS,
    NODE_METRICS,
    PARTITION_METRICS,
)
from tanist.broker.metrics.definition import Definition

CONTROLLER = {
    "ActiveControllerCount",
    "FencedBrokerCount",
    "ActiveBrokerCount",
    "ControlledShutdownBrokerCount",
    "BrokerRegistrationState",
    "GlobalTopicCount",
    "GlobalPartitionCount",
    "OfflinePartitionsCount",
    "PreferredReplicaImbalanceCount",
    "MetadataErrorCount",
    "TimedOutBrokerHeartbeatCount",
    "NewActiveControllersCount",
    "TimeSinceLastHeartbeatReceivedMs",
    "LastAppliedRecordOffset",
    "LastCommittedRecordOffset",
    "LastAppliedRecordTimestamp",
    "LastAppliedRecordLagMs",
}
ELECTIONS = {"UncleanLeaderElectionsPerSec", "ElectionFromEligibleLeaderReplicasPerSec"}
BROKER = {
    "LeaderCount",
    "PartitionCount",
    "OfflineReplicaCount",
    "UnderReplicatedPartitions",
    "UnderMinIsrPartitionCount",
    "AtMinIsrPartitionCount",
    "ProducerIdCount",
    "ReassigningPartitions",
    "PartitionsWithLateTransactionsCount",
    "IsrExpandsPerSec",
    "IsrShrinksPerSec",
    "FailedIsrUpdatesPerSec",
}
PARTITION = {
    "UnderReplicated",
    "InSyncReplicasCount",
    "UnderMinIsr",
    "AtMinIsr",
    "ReplicasCount",
    "LastStableOffsetLag",
}
QUORUM = {
    "current-state",
    "current-leader",
    "current-vote",
    "current-epoch",
    "high-watermark",
    "log-end-offset",
    "log-end-epoch",
    "number-of-voters",
    "number-of-observers",
    "number-unknown-voter-connections",
    "uncommitted-voter-change",
    "commit-latency-avg",
    "commit-latency-max",
    "election-latency-avg",
    "election-latency-max",
    "fetch-records-rate",
    "append-records-rate",
}


def named(metrics: Iterable[Definition], group: str) -> set[str]:
    """The names of `group` in Kafka's spelling of a metric: `group,name=NAME,...`, or `group,NAME`."""
    rest = [each.kafka.removeprefix(group + ",") for each in metrics if each.kafka.startswith(group + ",")]
    return {each.removeprefix("name=").split(",")[0] for each in rest}


def test_rule_129_the_controllers_names() -> None:
    here = named(CONTROLLER_METRICS, "kafka.controller:type=KafkaController")
    assert CONTROLLER - here == {"TimedOutBrokerHeartbeatCount", "TimeSinceLastHeartbeatReceivedMs"}
    assert here <= CONTROLLER
    assert named(CONTROLLER_METRICS, "kafka.controller:type=ControllerStats") >= ELECTIONS


def test_rule_131_the_brokers_names() -> None:
    assert named(BROKER_METRICS, "kafka.server:type=ReplicaManager") == BROKER
    assert named(PARTITION_METRICS, "kafka.cluster:type=Partition") >= PARTITION


def test_rule_132_the_quorums_names() -> None:
    assert QUORUM - named(NODE_METRICS, "kafka.server:type=raft-metrics") == {
        "number-unknown-voter-connections",
        "uncommitted-voter-change",
        "election-latency-avg",
        "election-latency-max",
        "fetch-records-rate",
        "append-records-rate",
    }

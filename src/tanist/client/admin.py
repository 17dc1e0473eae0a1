"""The requests of an operator: topics, replicas, leaders, configurations, features.

One topic, partition or resource each. Whom to ask, and when to ask again, is up to the client that sends them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from tanist.wire.ids import indexes_by_topic
from tanist.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tanist.wire.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tanist.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tanist.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
GROUP_RESOURCE: Final = 32
"""Kinds of resources that have configurations."""

_SET, _DELETE = 0, 1


class ElectionType(IntEnum):
    """How the leader is chosen. 0 and 1 are Apache's; KIP-966 names the others and numbers none."""

    PREFERRED = 0
    UNCLEAN = 1
    LONGEST_LOG_AGGRESSIVE = 2
    LONGEST_LOG_BALANCED = 3
    DESIGNATION = 4

    @property
    def least_version(self) -> int:
        """The first version of the request that can say so: 0 means preferred without a word, 3 is KIP-966's."""
        return (0, 1, 3, 3, 3)[self]


class UpgradeType(IntEnum):
    """Of a feature's update."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def new_topic(
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    assignment: Sequence[Sequence[int]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    """A topic to create. -1: as the cluster's defaults say. With an assignment both numbers are taken from it."""
    return CreatableTopic(
        name=name,
        num_partitions=-1 if assignment else partitions,
        replication_factor=-1 if assignment else replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(replicas))
            for index, replicas in enumerate(assignment)
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )


def create_topics_request(*topics: CreatableTopic, timeout_ms: int = 10_000) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)


def delete_topic_request(name: str, *, timeout_ms: int = 5_000) -> DeleteTopicsRequest:
    """By its name, in any version."""
    state = DeleteTopicState(name=name)
    return DeleteTopicsRequest(topic_names=(name,), topics=(state,), timeout_ms=timeout_ms)


def reassign_request(
    topic: str,
    partition: int,
    replicas: Sequence[int] | None,
    *,
    timeout_ms: int = 5_000,
    allow_replication_factor_change: bool = True,
) -> AlterPartitionReassignmentsRequest:
    """The partition's replicas from now on, the preferred leader first; None cancels a reassignment."""
    moved = ReassignablePartition(partition_index=partition, replicas=None if replicas is None else tuple(replicas))
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=allow_replication_factor_change,
        topics=(ReassignableTopic(name=topic, partitions=(moved,)),),
    )


def move_logs_request(targets: Mapping[tuple[str, int], str]) -> AlterReplicaLogDirsRequest:
    """Replicas of one broker, each with the log directory in which it is to be (KIP-113)."""
    by_path: dict[str, list[tuple[str, int]]] = {}
    for partition, path in targets.items():
        by_path.setdefault(path, []).append(partition)
    return AlterReplicaLogDirsRequest(
        dirs=tuple(
            AlterReplicaLogDir(
                path=path,
                topics=tuple(
                    AlterReplicaLogDirTopic(name=name, partitions=tuple(indexes))
                    for name, indexes in indexes_by_topic(partitions).items()
                ),
            )
            for path, partitions in by_path.items()
        )
    )


def elect_request(
    kind: int,
    topic: str | None = None,
    partition: int = 0,
    *,
    desired: Sequence[int] | None = None,
    timeout_ms: int = 5_000,
) -> ElectLeadersRequest:
    """An election of one partition's leader, or without a topic of all partitions'; `desired` is for DESIGNATION."""
    chosen = None
    if topic is not None:
        chosen = (
            TopicPartitions(
                topic=topic, partitions=(partition,), desired_leaders=None if desired is None else tuple(desired)
            ),
        )
    return ElectLeadersRequest(election_type=kind, topic_partitions=chosen, timeout_ms=timeout_ms)


def alter_configs_request(kind: int, name: str, changes: Mapping[str, str | None]) -> IncrementalAlterConfigsRequest:
    """Set configurations of one resource; None takes one back to its default."""
    configs = tuple(
        AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
        for key, value in changes.items()
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=(resource,))


def update_feature_request(
    name: str, level: int, upgrade_type: int, *, timeout_ms: int = 5_000
) -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
    return UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=(update,))

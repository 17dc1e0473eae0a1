"""Brokers, topics and leaders, as Metadata responses tell them.

`ClusterView` is one response, or the sum of several (`merged`). Owns the rule about old responses: a broker may lag
behind, so a leader is replaced only by one of the same or a later leader epoch, unless the topic was made anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic


@dataclass(frozen=True, slots=True)
class Broker:
    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port


@dataclass(frozen=True, slots=True)
class PartitionView:
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    topic_id: UUID
    error_code: int
    internal: bool
    partitions: dict[int, PartitionView]

    def merged(self, newer: TopicView) -> TopicView:
        """What is known of the topic after a newer response. One with an error adds nothing to what was known."""
        if newer.error_code and not self.error_code:
            return self
        if newer.error_code or newer.topic_id != self.topic_id:
            return newer
        partitions = {
            index: self.partitions[index]
            if index in self.partitions and self.partitions[index].leader_epoch > each.leader_epoch
            else each
            for index, each in newer.partitions.items()
        }
        return replace(newer, partitions=self.partitions | partitions)


@dataclass(frozen=True, slots=True)
class ClusterView:
    brokers: dict[int, Broker] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = -1
    topics: dict[str, TopicView] = field(default_factory=dict)

    def merged(self, newer: ClusterView) -> ClusterView:
        """The brokers of a newer response, and all topics that were in any."""
        topics = {
            name: self.topics[name].merged(topic) if name in self.topics else topic
            for name, topic in newer.topics.items()
        }
        return replace(newer, topics=self.topics | topics)

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        about = self.topics.get(topic)
        return None if about is None else about.partitions.get(partition)

    def leader_of(self, topic: str, partition: int) -> tuple[Broker, int] | None:
        """The leader and its epoch; None if it is not known, or not among the brokers."""
        found = self.partition(topic, partition)
        broker = None if found is None else self.brokers.get(found.leader)
        return None if found is None or broker is None else (broker, found.leader_epoch)


def metadata_request(topics: Iterable[str] | None) -> MetadataRequest:
    """For these topics, or for all. Asking does not create a topic."""
    wanted = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in topics)
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def cluster_view(answer: Any) -> ClusterView:
    """One Metadata response."""
    topics = {}
    for topic in answer.topics:
        partitions = {
            found.partition_index: PartitionView(
                found.partition_index,
                found.leader_id,
                found.leader_epoch,
                found.replica_nodes,
                found.isr_nodes,
                found.offline_replicas,
            )
            for found in topic.partitions
        }
        name = topic.name or ""
        topics[name] = TopicView(name, topic.topic_id, topic.error_code, topic.is_internal, partitions)
    return ClusterView(
        {broker.node_id: Broker(broker.node_id, broker.host, broker.port, broker.rack) for broker in answer.brokers},
        answer.cluster_id,
        answer.controller_id,
        topics,
    )

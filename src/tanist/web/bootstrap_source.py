"""Any Kafka cluster, as far as its clients can see it (`tanist ui --bootstrap`).

One description of all topics a sample, and of watched partitions the leader's log start and high watermark. What no
client can ask for is absent, and the page says so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from tanist.client.metadata import ClusterView
from tanist.client.positions import EARLIEST, LATEST
from tanist.client.security import ClientSecurity
from tanist.runtime.client import admin, partition_context
from tanist.runtime.client.admin import ConfigEntry, PartitionDescription, TopicDescription
from tanist.runtime.client.client import Address, Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.connection import ANYBODY
from tanist.runtime.client.explain import explain
from tanist.runtime.client.partition_context import EXPLAINED_BY, Elections, OfflineBrokers
from tanist.runtime.client.records import list_offset
from tanist.runtime.client.replica_positions import ReplicaPositions
from tanist.web.groups import read_groups
from tanist.web.source import NotHere, Watched
from tanist.web.state import (
    ClusterState,
    Json,
    NodeState,
    PartitionPositions,
    PartitionView,
    danger_of,
    plain,
)

_PATIENCE_S: Final = 3.0
_SETTINGS_S: Final = 15.0
"""Settings of topics are asked for so seldom."""
ABSENT: Final = (
    "Clients can ask a leader for its log start and high watermark only: followers' logs, leader epochs and what is "
    "synced to disk need the data folder (tanist ui --data).",
    "The metadata log is no topic that clients can read: there is no history of changes from before this page.",
    "Salvage is in the brokers' folders.",
    "Faults need the processes: only a cluster that `tanist up` has started can be broken from here.",
)


class BootstrapSource:
    """A cluster behind its listeners."""

    def __init__(self, addresses: list[Address], security: ClientSecurity = ANYBODY) -> None:
        """`security`: as whom it asks."""
        self._addresses = addresses
        self._security = security
        self._client = Client(addresses, timeout_s=_PATIENCE_S, security=security)
        self._settings: dict[str, dict[str, ConfigEntry]] = {}
        self._elections = Elections(elr_enabled=False, recovery_manager=False)
        self._asked_s = -_SETTINGS_S
        self._kept: dict[str, tuple[object, Json]] = {}
        self._leaders: dict[tuple[str, int], int] = {}

    def close(self) -> None:
        self._client.close()

    def read_state(self, watched: Watched) -> Mapping[str, Json]:
        client = self._client
        metadata = client.metadata(())
        topics = admin.describe_topics(client)
        self._ask_settings(client, topics)
        brokers = partition_context.offline_brokers(client, topics)
        sample: dict[str, Json] = {"cluster": plain(self._cluster(client, metadata, topics))}
        self._leaders = {}
        for topic in topics:
            for each in topic.partitions:
                self._leaders[topic.topic, each.partition] = each.leader
                key = f"p/{topic.topic}/{each.partition}"
                sample[key] = self._view(key, topic, each, brokers)
        for place in watched:
            if place in self._leaders:
                sample[f"r/{place[0]}/{place[1]}"] = plain(self._positions(client, topics, *place))
        return sample

    def _ask_settings(self, client: Client, topics: list[TopicDescription]) -> None:
        names = [topic.topic for topic in topics]
        if time.monotonic() - self._asked_s < _SETTINGS_S and all(name in self._settings for name in names):
            return
        self._settings = partition_context.topic_settings(client, names, EXPLAINED_BY)
        with suppress(KafkaError, Unsupported):  # an older broker
            self._elections = partition_context.elections(client)
        self._asked_s = time.monotonic()
        self._kept.clear()

    def _cluster(self, client: Client, metadata: ClusterView, topics: list[TopicDescription]) -> ClusterState:
        try:
            controller = admin.quorum_leader(client)
        except (KafkaError, Unsupported, Unreachable):
            controller = None
        known = {broker for topic in topics for each in topic.partitions for broker in each.replicas}
        nodes = tuple(
            NodeState(broker, ("broker",), "running", fenced=False)
            if broker in metadata.brokers
            else NodeState(broker, ("broker",), "fenced", "the cluster does not count it in", fenced=True)
            for broker in sorted(known | set(metadata.brokers))
        )
        return ClusterState("bootstrap", metadata.cluster_id, controller, None, nodes, absent=ABSENT)

    def _view(
        self, key: str, topic: TopicDescription, partition: PartitionDescription, brokers: OfflineBrokers
    ) -> Json:
        kept = self._kept.get(key)
        if kept is not None and kept[0] == (partition, brokers):
            return kept[1]
        settings = self._settings.get(topic.topic, {})
        situation = partition_context.situation_of(partition, settings, self._elections, brokers)
        value = plain(
            PartitionView(
                topic=topic.topic,
                partition=partition.partition,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                replicas=partition.replicas,
                isr=partition.isr,
                danger=danger_of(
                    leader=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    isr=len(partition.isr),
                    replicas=len(partition.replicas),
                    min_isr=situation.effective_min_isr,
                    recovering=False,
                    last_unclean_epoch=partition.last_unclean_epoch,
                ),
                why=explain(situation),
                min_isr=situation.effective_min_isr,
                elr=partition.elr,
                last_known_elr=partition.last_known_elr,
                last_unclean_epoch=partition.last_unclean_epoch,
                internal=topic.internal,
            )
        )
        self._kept[key] = ((partition, brokers), value)
        return value

    def _positions(
        self, client: Client, topics: list[TopicDescription], topic: str, partition: int
    ) -> PartitionPositions:
        described = next(
            each for found in topics if found.topic == topic for each in found.partitions if each.partition == partition
        )
        start = end = None
        if described.leader >= 0:
            try:
                start = list_offset(client, topic, partition, EARLIEST)
                end = list_offset(client, topic, partition, LATEST)
            except (KafkaError, Unreachable):
                pass  # the leader is on the move
        replicas = tuple(
            ReplicaPositions(broker, "leader", True, start=start, high_watermark=end)
            if broker == described.leader
            else ReplicaPositions(broker, "follower", broker not in described.offline)
            for broker in described.replicas
        )
        return PartitionPositions(topic, partition, replicas, end)

    def read_groups_and_salvage(self) -> Mapping[str, Json]:
        with Client(self._addresses, timeout_s=_PATIENCE_S, security=self._security) as client:
            leaders = self._leaders
            return {"groups": read_groups(client, lambda topic, index: leaders.get((topic, index), -1))}

    def price(self, action: str, node: int) -> Json:
        raise NotHere(ABSENT[-1])

    def act(self, action: str, node: int | None) -> str:
        raise NotHere(ABSENT[-1])

    def salvaged(self, topic: str, partition: int, most: int) -> Json:
        raise NotHere(ABSENT[2])

"""The present activity of a cluster, as any client can see it: `tanist top`'s measurements.

Owns the sample (who is there, who leads what, how far each log and each group is) and the rates between two of them. It
asks each leader once for all its partitions, so that thousands of partitions are a few requests.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tanist.client.positions import LATEST, list_offsets_request
from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client import admin
from tanist.runtime.client import groups as of_groups
from tanist.runtime.client.admin import PartitionDescription
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.wire.messages.list_offsets_response import ListOffsetsResponse

_TIMEOUT_MS = 5_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One look."""

    at_s: float
    brokers: frozenset[int]
    """Those that the cluster counts in."""
    controller: int | None
    partitions: Mapping[TopicPartition, PartitionDescription]
    ends: Mapping[TopicPartition, int]
    """High watermarks: where a consumer stands that has read everything. Without those that could not be asked."""
    committed: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    """By group."""

    def lag(self, place: TopicPartition) -> tuple[int, str] | None:
        """How far the group that is most behind is, and which; None if no group has committed here."""
        end = self.ends.get(place)
        if end is None:
            return None
        found = [(max(0, end - offsets[place]), group) for group, offsets in self.committed.items() if place in offsets]
        return max(found, default=None)


def sample(client: Client, *, internal: bool = False) -> Sample:
    """Look once. A broker that does not answer is left out; `Unreachable` if no broker answers."""
    brokers = frozenset(client.metadata(()).brokers)
    try:
        controller = admin.quorum_leader(client)
    except (KafkaError, Unsupported):
        controller = None
    partitions = {
        (topic.topic, partition.partition): partition
        for topic in admin.describe_topics(client)
        if internal or not topic.internal
        for partition in topic.partitions
    }
    committed = {}
    try:
        for listing in of_groups.list_groups(client, some=True):
            committed[listing.group] = of_groups.committed_offsets(client, listing.group)
    except (KafkaError, Unreachable):
        pass  # a coordinator is on the move
    leaders = {place: each.leader for place, each in partitions.items()}
    return Sample(time.monotonic(), brokers, controller, partitions, high_watermarks(client, leaders), committed)


def rates(before: Sample, after: Sample) -> dict[TopicPartition, float]:
    """Records a second. A log that became shorter, or is asked for the first time, has none."""
    took_s = max(after.at_s - before.at_s, 1e-6)
    return {
        place: max(0, end - before.ends[place]) / took_s for place, end in after.ends.items() if place in before.ends
    }


def high_watermarks(client: Client, leaders: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Of the partitions that have a leader: each leader is asked once. Without those that could not be asked."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for place, leader in leaders.items():
        if leader >= 0:
            by_leader.setdefault(leader, []).append(place)
    found: dict[TopicPartition, int] = {}
    for leader, places in sorted(by_leader.items()):
        request = list_offsets_request(dict.fromkeys(places, LATEST), timeout_ms=_TIMEOUT_MS)
        try:
            answer = client.ask(request, ListOffsetsResponse, node_id=leader)
        except (Unreachable, KafkaError):
            continue
        for topic in answer.topics:
            for each in topic.partitions:
                if not each.error_code:
                    found[topic.name, each.partition_index] = each.offset
    return found

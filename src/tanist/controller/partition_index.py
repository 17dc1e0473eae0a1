"""The partitions of a broker, without a scan of all partitions.

Owns one maintained index, broker id -> topic id -> partition numbers; `MetadataImage` keeps one for the ISR, one for
the ELR, one for leaders and one for replicas. Only the image may write it, and does so for *every* change of a
partition: Apache forgot ClearElrRecord (rule 55), and a controller crashed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID


class PartitionIndex:
    """Broker id -> its partitions. Iteration order depends on history alone, never on hashes."""

    __slots__ = ("_by_broker",)

    def __init__(self) -> None:
        self._by_broker: dict[int, dict[UUID, set[int]]] = {}

    def add(self, broker_id: int, topic_id: UUID, partition: int) -> None:
        topics = self._by_broker.setdefault(broker_id, {})
        partitions = topics.get(topic_id)
        if partitions is None:
            topics[topic_id] = {partition}
        else:
            partitions.add(partition)

    def remove(self, broker_id: int, topic_id: UUID, partition: int) -> None:
        topics = self._by_broker[broker_id]
        partitions = topics[topic_id]
        partitions.remove(partition)
        if not partitions:
            del topics[topic_id]
            if not topics:
                del self._by_broker[broker_id]

    def update(self, before: tuple[int, ...], after: tuple[int, ...], topic_id: UUID, partition: int) -> None:
        """Move the partition from the brokers of `before` to those of `after`."""
        if before == after:
            return
        for broker_id in before:
            if broker_id not in after:
                self.remove(broker_id, topic_id, partition)
        for broker_id in after:
            if broker_id not in before:
                self.add(broker_id, topic_id, partition)

    def of(self, broker_id: int) -> Iterator[tuple[UUID, int]]:
        """The broker's partitions, by topic, ascending within a topic."""
        for topic_id, partitions in self._by_broker.get(broker_id, {}).items():
            for partition in sorted(partitions):
                yield topic_id, partition

    def count(self, broker_id: int) -> int:
        return sum(len(partitions) for partitions in self._by_broker.get(broker_id, {}).values())

    def any(self, broker_id: int) -> bool:
        return broker_id in self._by_broker

    def brokers(self) -> Iterable[int]:
        return self._by_broker.keys()

    def copy(self) -> PartitionIndex:
        clone = PartitionIndex()
        clone._by_broker = {
            broker_id: {topic_id: set(partitions) for topic_id, partitions in topics.items()}
            for broker_id, topics in self._by_broker.items()
        }
        return clone

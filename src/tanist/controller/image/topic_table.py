"""Topics and their partitions, findable by name, by id and by broker.

Owns `TopicTable`, the part of the image that has indexes to keep: every change of a partition goes through `put` or
`remove`, which also keep the indexes, ClearElrRecord included (Apache forgot it, rule 55). Illegal calls raise
`ValueError` and change nothing. Of brokers it knows only ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

from tanist.controller.image.delta import ImageDelta
from tanist.controller.image.partition_state import PartitionState


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


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic. `partitions` belongs to the image: read it, never write it."""

    name: str
    topic_id: UUID
    partitions: dict[int, PartitionState] = field(default_factory=dict)


class TopicTable:
    """The topics of one image."""

    __slots__ = ("by_elr", "by_isr", "by_leader", "by_replica", "topic_ids", "topics")

    def __init__(self) -> None:
        self.topics: dict[UUID, TopicImage] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.by_isr = PartitionIndex()
        self.by_elr = PartitionIndex()
        self.by_leader = PartitionIndex()
        """Partitions without a leader are filed under NO_LEADER."""
        self.by_replica = PartitionIndex()

    def topic(self, name: str) -> TopicImage | None:
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def existing(self, topic_id: UUID) -> TopicImage:
        topic = self.topics.get(topic_id)
        if topic is None:
            raise ValueError(f"no topic has the id {topic_id}")
        return topic

    def create(self, name: str, topic_id: UUID, delta: ImageDelta | None) -> None:
        if name in self.topic_ids:
            raise ValueError(f"topic {name} exists already")
        if topic_id in self.topics or topic_id.int == 0:
            raise ValueError(f"topic id {topic_id} cannot be used for {name}")
        self.topics[topic_id] = TopicImage(name, topic_id)
        self.topic_ids[name] = topic_id
        if delta is not None:
            delta.created_topics[topic_id] = name

    def remove(self, topic_id: UUID, delta: ImageDelta | None) -> TopicImage:
        topic = self.existing(topic_id)
        if delta is not None:
            delta.topic_deleted(topic_id, topic.name, topic.partitions)
        for number, state in topic.partitions.items():
            self._index(topic_id, number, state, None)
        del self.topics[topic_id]
        del self.topic_ids[topic.name]
        return topic

    def put(self, topic: TopicImage, number: int, after: PartitionState, delta: ImageDelta | None) -> None:
        before = topic.partitions.get(number)
        self._index(topic.topic_id, number, before, after)
        topic.partitions[number] = after
        if delta is not None:
            delta.partition_changed(topic.topic_id, number, before)

    def clear_elr(self, name: str, delta: ImageDelta | None) -> None:
        """Rule 55: an empty name means all topics; partitions that have neither field keep their epoch."""
        if name and name not in self.topic_ids:
            raise ValueError(f"no topic {name}")
        topics = [self.topics[self.topic_ids[name]]] if name else list(self.topics.values())
        for topic in topics:
            for number, before in list(topic.partitions.items()):
                if before.elr or before.last_known_elr:
                    after = replace(before, elr=(), last_known_elr=(), partition_epoch=before.partition_epoch + 1)
                    self.put(topic, number, after, delta)

    def copy(self, *, indexed: bool = True) -> TopicTable:
        """States are immutable and shared. Without indexes, which are most of the work, it serves as a list only."""
        clone = TopicTable()
        clone.topics = {
            topic_id: TopicImage(topic.name, topic_id, dict(topic.partitions))
            for topic_id, topic in self.topics.items()
        }
        clone.topic_ids = dict(self.topic_ids)
        if not indexed:
            return clone
        clone.by_isr = self.by_isr.copy()
        clone.by_elr = self.by_elr.copy()
        clone.by_leader = self.by_leader.copy()
        clone.by_replica = self.by_replica.copy()
        return clone

    def _index(self, topic_id: UUID, number: int, before: PartitionState | None, after: PartitionState | None) -> None:
        was, now = before or _ABSENT, after or _ABSENT
        self.by_isr.update(was.isr, now.isr, topic_id, number)
        self.by_elr.update(was.elr, now.elr, topic_id, number)
        self.by_replica.update(was.replicas, now.replicas, topic_id, number)
        self.by_leader.update(
            () if before is None else (before.leader,), () if after is None else (after.leader,), topic_id, number
        )


_ABSENT = PartitionState(replicas=(), isr=())

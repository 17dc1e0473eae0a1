"""The output of `tanist topics describe`: lines like those of `kafka-topics.sh`, or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tanist.runtime.client.admin import ConfigEntry, PartitionDescription, TopicDescription
from tanist.runtime.client.partition_context import Reassignment
from tanist.wire.ids import id_text


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """A partition to be shown."""

    partition: PartitionDescription
    reassignment: Reassignment | None
    explanation: str | None


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic to be shown. `configs` None: only some of its partitions are, and nothing of itself."""

    topic: TopicDescription
    configs: tuple[ConfigEntry, ...] | None
    partitions: tuple[DescribedPartition, ...]


# -- as kafka-topics prints it ----------------------------------------------------------------------------------------


def topic_lines(described: DescribedTopic) -> Iterator[str]:
    topic = described.topic
    if described.configs is not None:
        factor = len(topic.partitions[0].replicas) if topic.partitions else 0
        configs = ",".join(f"{entry.name}={_value(entry)}" for entry in described.configs)
        yield (
            f"Topic: {topic.topic}\tTopicId: {id_text(topic.topic_id)}\tPartitionCount: {len(topic.partitions)}\t"
            f"ReplicationFactor: {factor}\tConfigs: {configs}"
        )
    for each in described.partitions:
        partition = each.partition
        fields = [
            f"Topic: {topic.topic}",
            f"Partition: {partition.partition}",
            f"Leader: {'none' if partition.leader < 0 else partition.leader}",
            f"Replicas: {_list(partition.replicas)}",
            f"Isr: {_list(partition.isr)}",
        ]
        if each.reassignment is not None:
            fields.append(f"Adding Replicas: {_list(each.reassignment.adding)}")
            fields.append(f"Removing Replicas: {_list(each.reassignment.removing)}")
        fields.append(f"Elr: {_list(partition.elr)}")
        fields.append(f"LastKnownElr: {_list(partition.last_known_elr)}")
        yield "\t" + "\t".join(fields)
        if each.explanation is not None:
            yield f"\t\t{each.explanation}"


def _list(brokers: Sequence[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


def _value(entry: ConfigEntry) -> str:
    return "[hidden]" if entry.sensitive or entry.value is None else entry.value


# -- as JSON ----------------------------------------------------------------------------------------------------------


def topic_json(described: DescribedTopic) -> dict[str, Any]:
    topic = described.topic
    shown: dict[str, Any] = {"topic": topic.topic, "topic_id": id_text(topic.topic_id)}
    if described.configs is not None:
        shown["configs"] = {entry.name: entry.value for entry in described.configs}
    shown["partitions"] = [_partition_json(each) for each in described.partitions]
    return shown


def _partition_json(each: DescribedPartition) -> dict[str, Any]:
    partition = each.partition
    shown: dict[str, Any] = {
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": None if partition.elr is None else list(partition.elr),
        "last_known_elr": None if partition.last_known_elr is None else list(partition.last_known_elr),
        "offline": list(partition.offline),
    }
    if partition.last_unclean_epoch >= 0:
        shown["last_unclean_epoch"] = partition.last_unclean_epoch
    if each.reassignment is not None:
        shown["adding"] = list(each.reassignment.adding)
        shown["removing"] = list(each.reassignment.removing)
    if each.explanation is not None:
        shown["explanation"] = each.explanation
    return shown

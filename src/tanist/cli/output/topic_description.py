"""The output of `tanist topics describe`: partitions with their context, filtered, explained, and as lines or JSON.

Owns the filters of `kafka-topics.sh`, the lines that it prints and the JSON of the same. What a partition's state means
is said by `explain`; what the cluster has is asked for by `runtime.admin` and `runtime.partition_context`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from tanist.cli.output.alerts import salvage_clause
from tanist.runtime.client import partition_context
from tanist.runtime.client.admin import ConfigEntry, PartitionDescription, TopicDescription, describe_topics
from tanist.runtime.client.client import Client
from tanist.runtime.client.explain import Situation, explain
from tanist.runtime.client.partition_context import EXPLAINED_BY, UNCLEAN_LEADER_ELECTION, Elections, Reassignment
from tanist.runtime.client.salvage_reports import SalvageNews, salvage_news
from tanist.wire.ids import id_text

_MIN_ISR = "min.insync.replicas"

FILTERS: dict[str, Callable[[Situation, Reassignment | None], bool]] = {
    # Replicas that are only being added are not missing yet.
    "under_replicated": lambda state, moving: (
        len(state.isr) < len(state.replicas) - (0 if moving is None else len(moving.adding))
    ),
    "under_min_isr": lambda state, moving: state.under_min_isr,
    "at_min_isr": lambda state, moving: state.at_min_isr,
    "unavailable": lambda state, moving: state.leader < 0,
}


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


def describe(
    client: Client,
    names: Sequence[str],
    *,
    only: str | None = None,
    explained: bool = False,
    controlled: bool = True,
    data: Path | None = None,
) -> list[DescribedTopic]:
    """The named topics, or all; `only` the partitions that pass one of `FILTERS`.

    Without a controller (`controlled`) nobody is asked for reassignments. What was cut from logs is explained if the
    cluster's `data` folder is at hand.
    """
    topics = describe_topics(client, names)
    moving = _reassignments(client, topics) if controlled and only in (None, "under_replicated") else {}
    keys = None if only is None else EXPLAINED_BY
    settings = partition_context.topic_settings(client, [topic.topic for topic in topics], keys)
    elections, gone = Elections(elr_enabled=False, recovery_manager=False), frozenset[int]()
    if explained:
        elections = partition_context.elections(client)
        offline = {broker for topic in topics for partition in topic.partitions for broker in partition.offline}
        gone = partition_context.unregistered(client, offline) if offline else gone
    cut = _cut(data, topics) if explained and data is not None else {}
    found = []
    for topic in topics:
        configs = settings.get(topic.topic, {})
        partitions = []
        for partition in topic.partitions:
            situation = _situation(partition, configs, elections, gone)
            reassignment = moving.get((topic.topic, partition.partition))
            if only is None or FILTERS[only](situation, reassignment):
                why = explain(situation) if explained else None
                lost = cut.get((topic.topic_id, partition.partition))
                if why is not None and lost is not None and data is not None:
                    why += f"; {salvage_clause(lost, partition.last_unclean_epoch, data)}"
                partitions.append(DescribedPartition(partition, reassignment, why))
        if only is None:
            changed = tuple(entry for _, entry in sorted(configs.items()) if not entry.is_default)
            found.append(DescribedTopic(topic, changed, tuple(partitions)))
        elif partitions:
            found.append(DescribedTopic(topic, None, tuple(partitions)))
    return found


def _reassignments(client: Client, topics: Sequence[TopicDescription]) -> dict[tuple[str, int], Reassignment]:
    """Asked for only if one can be under way: while it is, some replica has yet to come into the ISR, or to go."""
    if all(len(each.isr) == len(each.replicas) for topic in topics for each in topic.partitions):
        return {}
    return partition_context.reassignments(client)


def _cut(data: Path, topics: Sequence[TopicDescription]) -> dict[tuple[UUID, int], SalvageNews]:
    """By the topic's id: what was saved of another topic of the name is not this one's."""
    return {(news.topic_id, news.partition): news for news in salvage_news(data, {topic.topic for topic in topics})}


def _situation(
    partition: PartitionDescription, configs: dict[str, ConfigEntry], elections: Elections, gone: frozenset[int]
) -> Situation:
    min_isr = configs.get(_MIN_ISR)
    unclean = configs.get(UNCLEAN_LEADER_ELECTION)
    return Situation(
        leader=partition.leader,
        replicas=partition.replicas,
        isr=partition.isr,
        elr=partition.elr or (),
        last_known_elr=partition.last_known_elr or (),
        offline=frozenset(partition.offline),
        unregistered=gone & frozenset(partition.offline),
        min_isr=1 if min_isr is None or min_isr.value is None else int(min_isr.value),
        elr_enabled=elections.elr_enabled,
        recovery_manager=elections.recovery_manager,
        strategy=partition_context.recovery_strategy(configs),
        unclean_election=unclean is not None and unclean.value == "true",
        last_unclean_epoch=partition.last_unclean_epoch,
    )


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

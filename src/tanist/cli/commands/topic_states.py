"""The state of topics, as the cluster reports it, for `tanist topics describe` and the commands that show the same.

Owns the questions to the cluster, the filters of `kafka-topics.sh`, and the choice of what is explained.
`runtime.client.explain` explains a partition's state; `output.topic_description` writes it as lines or JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID

from tanist.cli.output.alerts import salvage_clause
from tanist.cli.output.topic_description import DescribedPartition, DescribedTopic
from tanist.runtime.client import partition_context
from tanist.runtime.client.admin import TopicDescription, describe_topics
from tanist.runtime.client.client import Client
from tanist.runtime.client.explain import Situation, explain
from tanist.runtime.client.partition_context import EXPLAINED_BY, Elections, OfflineBrokers, Reassignment
from tanist.runtime.client.salvage_reports import SalvageNews, salvage_news

FILTERS: dict[str, Callable[[Situation, Reassignment | None], bool]] = {
    # Replicas that are only being added are not missing yet.
    "under_replicated": lambda state, moving: (
        len(state.isr) < len(state.replicas) - (0 if moving is None else len(moving.adding))
    ),
    "under_min_isr": lambda state, moving: state.under_min_isr,
    "at_min_isr": lambda state, moving: state.at_min_isr,
    "unavailable": lambda state, moving: state.leader < 0,
}


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

    Without a controller (`controlled`) nobody is asked for reassignments. Records that were cut from logs are explained
    if the cluster's `data` folder is at hand.
    """
    topics = describe_topics(client, names)
    moving = _reassignments(client, topics) if controlled and only in (None, "under_replicated") else {}
    keys = None if only is None else EXPLAINED_BY
    settings = partition_context.topic_settings(client, [topic.topic for topic in topics], keys)
    elections, brokers = Elections(elr_enabled=False, recovery_manager=False), OfflineBrokers()
    if explained:
        elections = partition_context.elections(client)
        brokers = partition_context.offline_brokers(client, topics)
    cut = _cut(data, topics) if explained and data is not None else {}
    found = []
    for topic in topics:
        configs = settings.get(topic.topic, {})
        partitions = []
        for partition in topic.partitions:
            situation = partition_context.situation_of(partition, configs, elections, brokers)
            reassignment = moving.get((topic.topic, partition.partition))
            if only is None or FILTERS[only](situation, reassignment):
                why = explain(situation) if explained else None
                lost = cut.get((topic.topic_id, partition.partition))
                if why is not None and lost is not None and data is not None:
                    why += f"; {salvage_clause(lost, data)}"
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

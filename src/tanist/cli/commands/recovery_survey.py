"""The state of partitions without a leader: what each replica has, what each choice loses, and a look at the records.

Owns the questions: brokers are asked for their own logs, the nodes' pages for what is synced, files for replicas whose
brokers do not answer, and the salvage. `runtime.client.recovery_plan` compares the logs; nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from tanist.cli.commands.topic_states import describe
from tanist.cli.output.recovery_plan import RecordAt, Recovery
from tanist.cli.output.topic_description import DescribedPartition
from tanist.client.admin import ElectionType
from tanist.log.salvage.manifest import SalvageReason
from tanist.runtime.client import node_pages
from tanist.runtime.client.admin import PartitionDescription, TopicDescription
from tanist.runtime.client.client import Client, KafkaError, Unreachable, Unsupported
from tanist.runtime.client.features import served_version
from tanist.runtime.client.partition_context import topic_settings
from tanist.runtime.client.recovery_plan import Choice, Run, holder_of, plan
from tanist.runtime.client.replica_logs import ReplicaLog
from tanist.runtime.client.replica_positions import ReplicaPositions, on_page
from tanist.runtime.client.salvaged import PartitionSalvage, by_partition, find_entries
from tanist.runtime.cluster.dead_node import DeadNode, nodes_below
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest

_SALVAGE = "tanist.salvage.enable"


@dataclass(frozen=True, slots=True)
class Survey:
    """A cluster's partitions without a leader."""

    client: Client
    nodes: dict[int, tuple[DeadNode, str | None]]
    """Those whose files are at hand."""
    salvage: dict[tuple[UUID, int], PartitionSalvage]
    """By topic id: what was saved of another topic of the name is not this one's."""

    @classmethod
    def of(cls, client: Client, data: Path | None) -> Survey:
        """`data`: the folder of a cluster, of a node or of a disk; None: no files are at hand."""
        if data is None or not data.is_dir():
            return cls(client, {}, {})
        entries, _ = find_entries(data)
        # A whole log that was dropped because the topic begins beyond it has mostly expired.
        kept = [entry for entry in entries if entry.manifest.why is not SalvageReason.OUT_OF_RANGE]
        return cls(client, nodes_below(data), {(each.topic_id, each.partition): each for each in by_partition(kept)})

    def leaderless(self, topics: Sequence[str], partition: int | None = None) -> Iterator[Recovery]:
        """Those of the topics, or of all."""
        designates = served_version(self.client, ElectLeadersRequest) >= ElectionType.DESIGNATION.least_version
        for topic in describe(self.client, topics, only="unavailable", explained=True):
            settings = topic_settings(self.client, [topic.topic.topic], [_SALVAGE]).get(topic.topic.topic, {})
            saves = _SALVAGE in settings and settings[_SALVAGE].value == "true"
            for each in topic.partitions:
                if partition in (None, each.partition.partition):
                    yield self._recovery(topic.topic, each, designates=designates, saves=saves)

    def _recovery(
        self, topic: TopicDescription, described: DescribedPartition, *, designates: bool, saves: bool
    ) -> Recovery:
        partition = described.partition
        replicas = tuple(self._positions(topic, partition, broker) for broker in partition.replicas)
        salvage = self.salvage.get((topic.topic_id, partition.partition))
        batches = () if salvage is None else salvage.batches
        saved = [Run(each.epoch, each.base_offset, each.header.next_offset) for each in batches]
        found = plan(replicas, set(partition.replicas) - set(partition.offline), saved)
        looked = {
            choice.broker: self._ends(topic, partition, replicas, salvage, choice)
            for choice in found.choices
            if choice.lost
        }
        return Recovery(
            topic=topic.topic,
            partition=partition,
            explanation=described.explanation or "",
            replicas=replicas,
            plan=found,
            looked=looked,
            designates=designates,
            saves=saves,
        )

    # -- one replica

    def _positions(self, topic: TopicDescription, partition: PartitionDescription, broker: int) -> ReplicaPositions:
        node, page = self.nodes.get(broker, (None, None))
        files = None if node is None else node.replica(topic.topic, partition.partition, None)
        row = None if page is None else _row(page, topic.topic, partition.partition)
        try:
            found = self._log(topic, partition, broker).positions()
        except (KafkaError, Unreachable, Unsupported) as error:
            note = f"it does not answer ({error})" if isinstance(error, Unreachable) else f"it refuses: {error}"
            if row is not None:
                return replace(on_page(broker, row), alive=False, note=f"{note}; the numbers are those of its page")
            if files is not None and files.end is not None:
                return replace(files, note=f"{note}; the numbers are those of its files{_but(files.note)}")
            return ReplicaPositions(broker, "offline", False, note=note)
        synced = files.synced if files is not None else None
        return replace(found, synced=row["synced_offset"] if row is not None else synced)

    def _log(self, topic: TopicDescription, partition: PartitionDescription, broker: int) -> ReplicaLog:
        return ReplicaLog(self.client, broker, (topic.topic, partition.partition), partition.leader_epoch)

    # -- records

    def _ends(
        self,
        topic: TopicDescription,
        partition: PartitionDescription,
        replicas: Sequence[ReplicaPositions],
        salvage: PartitionSalvage | None,
        choice: Choice,
    ) -> tuple[RecordAt, RecordAt]:
        """The first and the last record that a choice loses."""
        first, last = choice.lost[0], choice.lost[-1]
        return (
            self._look(topic, partition, replicas, salvage, first.epoch, first.start),
            self._look(topic, partition, replicas, salvage, last.epoch, last.end - 1),
        )

    def _look(
        self,
        topic: TopicDescription,
        partition: PartitionDescription,
        replicas: Sequence[ReplicaPositions],
        salvage: PartitionSalvage | None,
        epoch: int,
        offset: int,
    ) -> RecordAt:
        holder = holder_of(replicas, epoch, offset)
        found = None
        if holder is not None and holder.alive:
            try:
                found = self._log(topic, partition, holder.broker).record(offset)
            except (KafkaError, Unreachable, Unsupported):
                found = None  # its files, or the salvage, may have it
        if found is None and holder is not None and holder.broker in self.nodes:
            found = self.nodes[holder.broker][0].record(topic.topic, partition.partition, offset)
        if found is None and salvage is not None:
            found = salvage.record_at(epoch, offset)
        return RecordAt(epoch, offset, None if holder is None else holder.broker, found)


def _but(note: str | None) -> str:
    return "" if note is None else f" ({note})"


def _row(page: str, topic: str, partition: int) -> dict[str, Any] | None:
    try:
        return next(iter(node_pages.ask(page, topic, partition)["replicas"]), None)
    except (node_pages.NoAnswer, KeyError):
        return None

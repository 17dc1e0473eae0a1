"""The plan of a merge-back, from the folder and the cluster, before Spark has anything to do.

Owns the choice of salvage, and the refusals: no salvage, topics that are not those of the salvage, partitions that
nobody leads. Must never import pyspark, so that a refusal comes before Java starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tanist.client.positions import EARLIEST
from tanist.client.topic_partition import TopicPartition
from tanist.log.salvage.manifest import SalvageReason
from tanist.runtime.client.merge_back import describe_target
from tanist.runtime.client.salvaged import Entry, PartitionSalvage, by_partition, find_entries
from tanist.spark.jobs.preconditions import NothingToJudge, Unfit, cluster_topics, listed, suggestion
from tanist.spark.segments.replica_files import segment_files
from tanist.spark.topic.offsets import list_offsets
from tanist.spark.topic.options import Connecting
from tanist.text import counted
from tanist.wire.ids import id_text

TIMEOUT_S: Final = 60.0


class MergeRefused(Unfit):
    """A salvage that cannot be merged back, and why."""


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The salvage, and who leads what."""

    salvages: tuple[PartitionSalvage, ...]
    left_out: int
    """Entries of whole logs that were dropped behind a leader that begins later: most will have expired there."""
    leaders: Mapping[TopicPartition, int]
    starts: Mapping[TopicPartition, int]
    """The first offsets of the topics as they are: what stood below has expired, or was deleted."""
    compacted: frozenset[str]

    @property
    def topics(self) -> list[str]:
        return sorted({each.topic for each in self.salvages})

    @property
    def places(self) -> set[TopicPartition]:
        return {(each.topic, each.partition) for each in self.salvages}

    @property
    def entries(self) -> set[str]:
        return {entry.entry_id for salvage in self.salvages for entry in salvage.entries}


def planned(folder: Path, cluster: Connecting, topics: Sequence[str] = ()) -> MergePlan:
    """`Unfit` says what stands against it, or that there is nothing to judge."""
    if not folder.is_dir():
        raise Unfit(f"there is no folder {folder}")
    found, _ = find_entries(folder)
    salvages, left_out = of_topics(found, topics)
    if not salvages:
        raise _nothing(folder, found, topics, left_out)
    for topic in topics:
        if topic not in {each.topic for each in salvages}:
            raise _nothing(folder, found, [topic], of_topics(found, [topic])[1])
    names = sorted({each.topic for each in salvages})
    cluster_topics(cluster, names)
    compacted = _targets(cluster, salvages)
    leaders = leaders_of(cluster, names)
    _require_logs(folder, leaders)
    with cluster.client(TIMEOUT_S) as client:
        starts = list_offsets(client, dict.fromkeys(leaders, EARLIEST))
    return MergePlan(
        tuple(salvages), left_out, leaders, {place: found.offset for place, found in starts.items()}, compacted
    )


def _require_logs(folder: Path, leaders: Mapping[TopicPartition, int]) -> None:
    """A log that cannot be seen would make everything look lost."""
    held = {(file.topic, file.partition, file.replica) for file in segment_files(str(folder))}
    for (topic, partition), leader in leaders.items():
        if (topic, partition, leader) not in held:
            raise MergeRefused(
                f"broker {leader} leads {topic}-{partition}, and its log is not below {folder}: "
                "name the folder of the whole cluster"
            )


def of_topics(entries: Sequence[Entry], topics: Sequence[str]) -> tuple[list[PartitionSalvage], int]:
    """The entries of these topics (none: of all) that may be merged back, and how many are left out."""
    wanted = [each for each in entries if not topics or each.manifest.topic in topics]
    kept = [each for each in wanted if each.manifest.why is not SalvageReason.OUT_OF_RANGE]
    return by_partition(kept), len(wanted) - len(kept)


def _nothing(folder: Path, entries: Sequence[Entry], topics: Sequence[str], left_out: int) -> NothingToJudge:
    of = f" of topic {listed(sorted(topics))}" if topics else ""
    if left_out:
        what = counted(left_out, "entry")
        return NothingToJudge(
            f"below {folder} there is {what}{of} only that stood before the leader's first offset: expired, most "
            "likely. `tanist salvage export --include-expired` puts such records back"
        )
    others = {each.manifest.topic for each in entries}
    hint = suggestion(topics[0], others) if topics and others else "`tanist salvage list` shows what there is"
    return NothingToJudge(f"no replica below {folder} has saved records{of}: there is nothing to merge back. {hint}")


def leaders_of(cluster: Connecting, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """The leaders, by the cluster itself. Partitions without a leader are refused: nothing could be put back there."""
    with cluster.client(TIMEOUT_S) as client:
        view = client.metadata(topics)
    found = {}
    for topic in topics:
        about = view.topics.get(topic)
        for partition in () if about is None else about.partitions.values():
            if partition.leader < 0:
                raise MergeRefused(f"{topic}-{partition.partition} has no leader: merge back when it has one")
            found[topic, partition.partition] = partition.leader
    return found


def _targets(cluster: Connecting, salvages: Sequence[PartitionSalvage]) -> frozenset[str]:
    """Refuse topics that are not those of the salvage; gives the compacted ones."""
    compacted = set()
    with cluster.client(TIMEOUT_S) as client:
        for name in sorted({each.topic for each in salvages}):
            target, topic_id = describe_target(client, name)
            if any(id_text(each.topic_id) != topic_id for each in salvages if each.topic == name):
                raise MergeRefused(
                    f"topic {name} was deleted and created anew since: `tanist salvage export --target {name}` puts "
                    "the old records into the new topic"
                )
            if target.compacted:
                compacted.add(name)
    return frozenset(compacted)

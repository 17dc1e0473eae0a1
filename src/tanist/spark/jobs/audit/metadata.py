"""The controllers' decisions about partitions, and which of them explains a finding.

Owns the partition's history out of the rows of `tanist-metadata`: each change of leader, ISR or ELR, with the moment
and the record that made it. The log is read on the driver: it is small beside the data. A snapshot keeps no history, so
what happened before the log's beginning is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from tanist.client.topic_partition import TopicPartition
from tanist.spark.metadata.changes import changes, metadata_folders
from tanist.spark.segments.replica_files import NothingThere
from tanist.text import timestamp_text


@dataclass(frozen=True, slots=True)
class Change:
    """A partition as it is from one record of the metadata log on."""

    offset: int
    """Of the record."""
    wall_ms: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    unclean: bool
    """This change elected a leader that may lack committed records."""

    def __str__(self) -> str:
        led = f"broker {self.leader} leads" if self.leader >= 0 else "there is no leader"
        how = " after an unclean election" if self.unclean else ""
        eligible = f", ELR {_ids(self.elr)}" if self.elr else ""
        return (
            f"leader epoch {self.leader_epoch}: {led}{how}, ISR {_ids(self.isr)}{eligible} "
            f"(metadata offset {self.offset}, {timestamp_text(self.wall_ms)})"
        )


@dataclass(frozen=True, slots=True)
class Metadata:
    """All changes, by partition, in their order."""

    changes: Mapping[TopicPartition, Sequence[Change]]
    compacted: frozenset[str] = frozenset()
    """Topics whose logs have holes by right."""

    def leader(self, place: TopicPartition) -> int | None:
        """The last one that there was."""
        return next((each.leader for each in reversed(self.changes.get(place, ())) if each.leader >= 0), None)

    def replicas(self, place: TopicPartition) -> tuple[int, ...]:
        changes = self.changes.get(place)
        return changes[-1].replicas if changes else ()

    def of_epoch(self, place: TopicPartition, epoch: int) -> str | None:
        """The change that began a leader epoch."""
        return next((str(each) for each in self.changes.get(place, ()) if each.leader_epoch == epoch), None)

    def explain(self, place: TopicPartition, epoch: int | None, replicas: Iterable[int] = ()) -> str | None:
        """The fate of records of `epoch`: the election after it, an unclean one rather than another.

        Where no election came after it, the change that took one of `replicas` out of the ISR.
        """
        changes = self.changes.get(place, ())
        if epoch is not None:
            later = [each for each in changes if each.leader_epoch > epoch and each.leader >= 0]
            found = next((each for each in later if each.unclean), later[0] if later else None)
            if found is not None:
                return str(found)
        wanted = set(replicas)
        for before, after in reversed(list(pairwise(changes))):
            if wanted & (set(before.isr) - set(after.isr)):
                return str(after)
        return None


NOTHING: Final = Metadata({})


def read_metadata(folder: str | Path) -> Metadata:
    """From the copy of the metadata log that has come farthest; nothing if there is none below the folder."""
    try:
        copies = metadata_folders(str(folder))
    except NothingThere:
        return NOTHING
    return metadata_of(changes(max(copies, key=lambda copy: copy.end)))


def metadata_of(rows: Iterable[Mapping[str, Any]]) -> Metadata:
    """Of rows of `tanist-metadata`, in the log's order."""
    found: dict[TopicPartition, list[Change]] = {}
    compacted: set[str] = set()
    unclean: dict[TopicPartition, int] = {}
    for row in rows:
        topic, partition = row.get("topic"), row.get("partition")
        if row["record"] == "RemoveTopicRecord" and topic is not None:
            for place in [place for place in found if place[0] == topic]:
                del found[place]
        elif row["record"] == "ConfigRecord" and row.get("name") == "cleanup.policy" and topic is not None:
            (compacted.add if "compact" in (row.get("value") or "") else compacted.discard)(topic)
        elif topic is not None and partition is not None and row.get("leader") is not None:
            place = topic, partition
            last_unclean = row["last_unclean_epoch"]
            change = Change(
                row["offset"], row["timestamp_ms"], row["leader"], row["leader_epoch"], tuple(row["replicas"]),
                tuple(row["isr"]), tuple(row["elr"]),
                unclean=last_unclean == row["leader_epoch"] and last_unclean != unclean.get(place, -1),
            )  # fmt: skip
            unclean[place] = last_unclean
            found.setdefault(place, []).append(change)
    return Metadata(found, frozenset(compacted))


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers)) or "empty"

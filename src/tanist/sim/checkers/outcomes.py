"""What has become of transactions, by the committed batches of their partitions: which records are aborted, which are
undecided, and where markers are. Of runs whose readers read committed records.

It must hear of each committed batch in order (`LeaderChecks.on_batch`). What an unclean election takes away, it keeps:
who asks must leave such partitions.
"""

from __future__ import annotations

from collections import defaultdict

from tanist.log.markers import parse_marker
from tanist.sim.oracle import PartitionOracle
from tanist.wire.batch import BatchHeader
from tanist.wire.ids import TopicIdPartition


class Outcomes:
    """Of all partitions."""

    def __init__(self) -> None:
        self._aborted: defaultdict[TopicIdPartition, set[int]] = defaultdict(set)
        self._markers: defaultdict[TopicIdPartition, set[int]] = defaultdict(set)
        self._undecided: defaultdict[TopicIdPartition, dict[int, set[int]]] = defaultdict(dict)
        """By producer id."""

    def batch_committed(self, oracle: PartitionOracle, header: BatchHeader, batch: memoryview) -> None:
        """The next committed batch of a partition."""
        offsets = range(header.base_offset, header.next_offset)
        undecided = self._undecided[oracle.key]
        if header.is_control:
            self._markers[oracle.key].update(offsets)
            marker = parse_marker(batch)
            decided = undecided.pop(header.producer_id, set()) if marker is not None else set()
            if marker is not None and marker.aborted:
                self._aborted[oracle.key] |= decided
        elif header.is_transactional:
            undecided.setdefault(header.producer_id, set()).update(offsets)

    def is_marker(self, oracle: PartitionOracle, offset: int) -> bool:
        """Whether a marker is there, which is no record of an application."""
        return offset in self._markers[oracle.key]

    def is_aborted(self, oracle: PartitionOracle, offset: int) -> bool:
        """Whether the record is of a transaction that was aborted."""
        return offset in self._aborted[oracle.key]

    def is_undecided(self, oracle: PartitionOracle, offset: int) -> bool:
        """Whether the record is of a transaction that is open."""
        return any(offset in each for each in self._undecided[oracle.key].values())

"""A consumer of committed records in the virtual world: it leaves out what was aborted, as clients do (KIP-98)."""

from __future__ import annotations

from tanist.client.positions import EARLIEST, Fetched
from tanist.sim.workload.history import History
from tanist.sim.workload.readers import Asked, Reader
from tanist.sim.world.world import World


class CommittedReader(Reader):
    """Reads all partitions of a topic from the beginning; `values` has what it has got of each."""

    READ_COMMITTED = True
    PARTITION_BYTES = 4_096

    def __init__(
        self, world: World, name: str, history: History, topic: str, partitions: int, *, resets: bool = False
    ) -> None:
        """`resets`: it goes on at the start of a log that begins above its position."""
        super().__init__(world, name, history, topic, partitions)
        self._resets = resets
        self.values: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in range(partitions)}
        """By partition: offset and value."""
        self.skipped: dict[int, list[range]] = {partition: [] for partition in range(partitions)}
        """By partition: offsets that were gone, for the log begins above them (`auto.offset.reset=earliest`)."""

    def _read(self, partition: int, fetched: Fetched, asked: Asked) -> None:
        self.values[partition] += [(record.offset, bytes(record.value or b"")) for record in fetched.records]
        self.positions[partition] = fetched.next_offset

    def _gone(self, partition: int, asked: Asked) -> None:
        if not self._resets:
            self._again(partition)
            return

        def moves(offset: int) -> bool:
            position = self.positions[partition]
            if offset > position:
                self.skipped[partition].append(range(position, offset))
                self.world.counts["transactions: readers behind the log start"] += 1
            return offset > position

        self._move(partition, asked, EARLIEST, moves)

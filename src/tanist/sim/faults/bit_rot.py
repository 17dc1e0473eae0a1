"""Bit rot: a synced batch changes on the disk, and only its CRC shows it.

As in Kafka, a broker does not check the CRCs of its stored batches. A follower refuses a damaged batch, and so does a
consumer; both fetch again until an operator repairs the leader. Recovery after an unclean shutdown checks the batches
behind the recovery point, and truncates the log before the first damaged one.

So a rotten replica promises no more than one that has lost its page cache. It counts as a loss from the moment of the
rot until its log is deleted and fetched again (which makes its broker's shutdown unclean), or is restored. Meanwhile no
node and no client may accept a damaged batch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from tanist.sim.events import BitRotted, LogRestored
from tanist.sim.faults.lost_logs import remove_log
from tanist.sim.oracle import Oracle, ReplicaMirror
from tanist.sim.world.world import Host, World
from tanist.wire.batch import HEADER_BYTES, crc_matches, iterate_headers
from tanist.wire.errors import WireError
from tanist.wire.ids import TopicIdPartition


class _RottenByte(NamedTuple):
    """One byte on one disk."""

    path: str
    offset: int
    mask: int


class BitRot:
    """The damaged batches on all disks."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._spots: dict[tuple[TopicIdPartition, int], list[_RottenByte]] = {}

    def strike(self, host: Host, detail: float) -> bool:
        """Flip a bit of a committed, synced batch on the host; False if it has none."""
        spots = [
            (key, spot)
            for key, oracle in self._oracle.partitions.items()
            for spot in self._possible(host, oracle.mirrors.get(host.node_id), oracle.high_watermark, detail)
        ]
        if not spots:
            return False
        key, spot = spots[int(detail * 9973) % len(spots)]
        host.disk.corrupt(spot.path, spot.offset, spot.mask)
        self._spots.setdefault((key, host.node_id), []).append(spot)
        self._world.emit(BitRotted(host.node_id, key, spot.path, spot.offset))
        return True

    def is_rotten(self, node_id: int) -> bool:
        return any(where == node_id for _, where in self._spots)

    def rotten_nodes(self) -> list[int]:
        """Nodes with rotten logs."""
        return sorted({node_id for _, node_id in self._spots})

    def throw_away(self, host: Host) -> None:
        """The host is down: delete its rotten logs, or restore them where that might lose a committed record."""
        for (key, node_id), spots in list(self._spots.items()):
            if node_id != host.node_id:
                continue
            oracle = self._oracle.partitions.get(key)
            mirror = None if oracle is None else oracle.mirrors.get(node_id)
            if mirror is None or mirror.log is None or not self._others_have_it(key, node_id):
                self._restore(host, spots)
                self._world.emit(LogRestored(node_id, key))
            else:
                remove_log(self._world, host, key, mirror.log.directory)
                self._world.counts["rotten logs thrown away"] += 1
            del self._spots[(key, node_id)]

    def _possible(self, host: Host, mirror: ReplicaMirror | None, committed: int, detail: float) -> list[_RottenByte]:
        """A byte in the records of each batch that may rot. Headers stay, so a log still knows its offsets."""
        if mirror is None or mirror.log is None or mirror.released_epoch is not None:
            return []
        spots: list[_RottenByte] = []
        folder = mirror.log.directory + "/"
        for path in host.disk.paths():
            if not path.startswith(folder) or not path.endswith(".log"):
                continue
            inode = host.disk.inode(path)
            with suppress(WireError):  # not recovered since the last loss of power
                for at, header in iterate_headers(memoryview(bytes(inode.data[: inode.synced_bytes]))):
                    body_bytes = header.size_bytes - HEADER_BYTES
                    if header.next_offset <= committed and body_bytes > 0:
                        spots.append(
                            _RottenByte(path, at + HEADER_BYTES + int(detail * body_bytes), 1 << int(detail * 8))
                        )
        return spots

    def _others_have_it(self, key: TopicIdPartition, node_id: int) -> bool:
        """Whether another replica is in sync, or surely eligible."""
        state = self._oracle.states.get(key)
        oracle = self._oracle.partitions[key]
        if state is None:
            return True
        return any(
            other != node_id
            and (key, other) not in self._oracle.rotten
            and oracle.is_complete(oracle.mirrors.get(other))
            for other in (*state.isr, *state.elr)
        )

    def _restore(self, host: Host, spots: list[_RottenByte]) -> None:
        present = set(host.disk.paths())
        for spot in spots:
            if spot.path in present and _is_damaged(host.disk.content(spot.path), spot.offset):
                host.disk.corrupt(spot.path, spot.offset, spot.mask)
        self._world.counts["rotten logs restored"] += 1


def _is_damaged(content: bytes, offset: int) -> bool:
    """Whether the batch with this byte is damaged: it may be gone by now, with another batch in its place."""
    with suppress(WireError):
        for at, header in iterate_headers(content):
            if at <= offset < at + header.size_bytes:
                return not crc_matches(content, at, header.size_bytes)
    return False

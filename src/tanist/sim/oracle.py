"""The oracle: facts about each partition over all replicas and all time, which no node can know.

Owns, for each partition, the *true high watermark* T (the highest that any leader ever reached), the history H (the
batches below T, frozen when T first passed them), and a mirror of each replica's log, updated change by change. Each
mirror counts how far it agrees with H, so "has all committed records" is one comparison.

It decides nothing and imports no checker. The checkers alone write it; faults, operators and the lab read it, to choose
their victims and to stay within the promise (`promise.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from tanist.controller.image.image import MetadataImage
from tanist.controller.image.partition_state import PartitionState
from tanist.log.log import Log
from tanist.sim.events import Place
from tanist.wire.batch import BatchHeader, Record, iterate_headers
from tanist.wire.ids import TopicIdPartition

_READ_BYTES = 1 << 20


class Batch(NamedTuple):
    """A batch of the history. Two batches are the same if all of these fields are."""

    first: int
    end: int
    epoch: int
    crc: int

    @classmethod
    def of(cls, header: BatchHeader) -> Batch:
        return cls(header.base_offset, header.next_offset, header.partition_leader_epoch, header.crc)


def batches(log: Log, start: int, end: int) -> Iterator[Batch]:
    """The batches of a log that begin in [start, end)."""
    for view in batch_bytes(log, start, end):
        for _, header in iterate_headers(view):
            if header.next_offset > start:
                yield Batch.of(header)


def batch_bytes(log: Log, start: int, end: int) -> Iterator[memoryview]:
    """The bytes of those batches, in order. Those below the log's start, too, as long as their segment is there."""
    while start < end:
        log_start, log.log_start_offset = log.log_start_offset, min(log.log_start_offset, log.first_segment_offset)
        try:
            piece = log.read(start, _READ_BYTES, end)
        finally:
            log.log_start_offset = log_start
        if piece is None:
            return
        chunk = piece.chunk
        view = memoryview(chunk.file.read(chunk.offset, chunk.length))
        whole = 0
        for position, header in iterate_headers(view):
            start, whole = header.next_offset, position + header.size_bytes
        yield view[:whole]  # a slice may end within a batch, as Kafka's answers do


class ReplicaMirror:
    """The mirror of one replica's log, as it was last seen. It outlives the processes."""

    __slots__ = (
        "agreeing",
        "batches",
        "began_at",
        "cut",
        "doubtful",
        "durable_end",
        "durable_start",
        "life",
        "log",
        "log_start",
        "lossy_life",
        "lossy_since_epoch",
        "member_since",
        "mid_turn",
        "most_start",
        "node_id",
        "queued_end",
        "released_epoch",
        "start",
        "was_cut",
    )

    def __init__(self, node_id: int, life: int, log: Log | None) -> None:
        self.node_id = node_id
        self.life = life
        """The life of the host in which the log was last seen."""
        self.log = log
        """The log object of that process; None for a replica that was never seen."""
        self.log_start = 0
        """The offset at which `batches` begins."""
        self.start = 0
        """The log start offset. In runs with trimming (`checkers/trimming.py`) `batches` has what was below it, too."""
        self.most_start = 0
        """The highest log start offset that it ever had. A restart may forget it, and the leader epochs below it are
        gone."""
        self.began_at = 0
        """The log knows no leader epoch, up to this offset."""
        self.durable_start = 0
        """After the end of a process: the log start offset that the next one must find at least."""
        self.batches: list[Batch] = []
        self.queued_end = 0
        """The log's end when it was last seen, with what was queued and not in the file yet."""
        self.agreeing = 0
        """Number of batches, from the first on, that agree with the history."""
        self.cut: set[Batch] = set()
        """Batches that were truncated. Only used for membership."""
        self.was_cut = False
        """Truncated since it was last looked at."""
        self.lossy_since_epoch: int | None = None
        """The machine lost its power when the broker was registered with this epoch, and may have lost records."""
        self.lossy_life = -1
        """The last life of the host that began before that loss."""
        self.doubtful = False
        """Its process has ended uncleanly since it was last known to be in sync: the controller must doubt it, whether
        anything is lost or not."""
        self.durable_end: int | None = None
        """After a loss of power: the end of the synced part."""
        self.mid_turn = False
        """The process died in the middle of a turn, which the checkers have not seen."""
        self.released_epoch: int | None = None
        """The partition epoch since which this node is not a replica any more, so its log may be deleted."""
        self.member_since = 0
        """Before this partition epoch the node may have had another log, which was deleted."""

    def may_have_lost(self, broker_epoch: int, life: int) -> None:
        """Records may have gone while the broker was registered with this epoch, in this life of its host or before."""
        self.lossy_since_epoch, self.lossy_life = broker_epoch, life

    @property
    def end(self) -> int:
        return self.batches[-1].end if self.batches else self.log_start

    @property
    def agreed_end(self) -> int:
        return self.batches[self.agreeing - 1].end if self.agreeing else self.log_start

    @property
    def position(self) -> tuple[int, int]:
        """(last leader epoch, end): by this the logs of candidates are compared (KIP-966, "Unclean recovery")."""
        end = max(self.end, self.start)
        return (self.batches[-1].epoch, end) if self.batches and self.end > self.began_at else (-1, end)

    def contains(self, other: ReplicaMirror) -> bool:
        """Whether the log begins with all of the other one, as far as it still has those records."""
        if max(self.end, self.start) < max(other.end, other.start):
            return False
        last = other.batches[-1] if other.batches else None
        return last is None or last.end <= self.start or self.last_before(last.end) == last

    def last_before(self, offset: int) -> Batch | None:
        """The batch that ends at `offset`; None if none does."""
        place = bisect_left(self.batches, offset, key=lambda batch: batch.end)
        found = self.batches[place] if place < len(self.batches) else None
        return found if found is not None and found.end == offset else None


class Compaction(Protocol):
    """The records that compaction may have removed from one partition's logs (`checkers/compaction.py`)."""

    def committed(self, header: BatchHeader, record: Record) -> None:
        """A record of such a batch is committed."""

    @property
    def aborted(self) -> list[tuple[int, int, int]]:
        """Aborted transactions: producer, first offset, offset of the marker."""

    def ended(self, header: BatchHeader, batch: memoryview) -> None:
        """The marker of a transaction is committed."""

    def may_be_gone(self, offset: int) -> bool:
        """Whether compaction may have removed the record."""

    def originals(self, place: Place, log: Log, start: int, end: int, now_us: int) -> list[Batch]:
        """The batches that begin in [start, end), as they were before compaction."""


class Trimming(Protocol):
    """The log starts that one partition's replicas may have (`checkers/trimming.py`)."""

    @property
    def highest(self) -> int:
        """The highest log start that a replica had, and may have."""

    def committed(self, header: BatchHeader, batch: memoryview) -> None:
        """A batch is committed."""

    def committed_batches(self) -> list[memoryview]:
        """The history H whole, with what was trimmed of it."""

    def history_lost(self) -> None:
        """An unclean election has made the history shorter."""

    def whole(
        self, place: Place, log: Log, start: int, end: int, now_us: int, before: Sequence[Batch] = ()
    ) -> list[Batch]:
        """The batches that begin in [start, end), with those below the log's start that are gone.

        `before`: the batches that the replica had; without them, the committed ones.
        """

    def from_history(self, start: int, end: int) -> list[Batch]:
        """The committed batches from `start` on, up to the one that reaches beyond `end`."""


class PartitionOracle:
    """The facts about one partition."""

    def content(
        self, place: Place, log: Log, start: int, end: int, now_us: int, before: Sequence[Batch] = ()
    ) -> list[Batch]:
        """The batches of a replica's log, as they were before compaction and trimming."""
        if self.trimming is not None:
            return self.trimming.whole(place, log, start, end, now_us, before)
        if self.compaction is None:
            return list(batches(log, start, end))
        return self.compaction.originals(place, log, start, end, now_us)

    def __init__(self, key: TopicIdPartition, name: str) -> None:
        self.key = key
        self.name = name
        self.place = Place(name)
        self.compaction: Compaction | None = None
        """Of a compacted topic: the records that may be gone from its logs."""
        self.trimming: Trimming | None = None
        """In runs with retention or DeleteRecords: the starts that its logs may have."""
        self.high_watermark = 0
        """T"""
        self.history: list[Batch] = []
        """H"""
        self.position: dict[int, int] = {}
        """First offset -> index in the history."""
        self.mirrors: dict[int, ReplicaMirror] = {}
        """By node."""
        self.leaders: dict[int, int] = {}
        """Leader epoch -> the node that acted as its leader."""
        self.newest_epoch = -1
        self.began: dict[int, int] = {}
        """Leader epoch -> the true high watermark when it began."""
        self.written: dict[tuple[int, int], tuple[Batch, Batch | None]] = {}
        """(first offset, epoch) -> the only batch that can be there, and the only one that can be before it."""
        self.values: dict[int, bytes] = {}
        """Offset -> value of each committed record."""
        self.offsets: dict[bytes, int] = {}
        self.needed = 0
        """Number of replicas that must stay eligible: the smallest min ISR in force since the ISR last met it."""
        self.given_up: dict[tuple[int, bytes], int] = {}
        """(offset, value) -> leader epoch: records that were committed, and are lost since. Never silently."""
        self.unclean = 0
        """Number of reported elections of a replica that lacks committed records."""
        self.lost = 0
        """Committed records that were lost so."""
        self.unclean_epoch = -1
        """The leader epoch of the last of these. A node that does not know it may still count with the lost records."""
        self.unclean_tail: frozenset[Batch] = frozenset()
        """What the replica that was elected then had beyond the history: not committed, and not lost either."""

    def is_complete(self, mirror: ReplicaMirror | None) -> bool:
        """Whether the replica has all committed records."""
        if mirror is None:
            return self.high_watermark == 0
        return mirror.agreed_end >= self.high_watermark

    def is_excused(self, mirror: ReplicaMirror) -> bool:
        """Whether it differs from the history only by records that were lost, or that an unclean election kept."""
        rest = self._rest(mirror)
        return rest is not None and rest.epoch < self.unclean_epoch

    def has_to_truncate(self, mirror: ReplicaMirror) -> bool:
        """Whether it differs from the history by lost records, which the elected replica did not have."""
        return self.is_excused(mirror) and self._rest(mirror) not in self.unclean_tail

    def _rest(self, mirror: ReplicaMirror) -> Batch | None:
        """Its first batch beyond those that agree."""
        return mirror.batches[mirror.agreeing] if mirror.agreeing < len(mirror.batches) else None

    def agree(self, mirror: ReplicaMirror) -> None:
        """Count how far the mirror agrees with the history."""
        if not mirror.batches:
            return
        base = self.position.get(mirror.batches[0].first)
        if base is None:
            return
        history, found, count = self.history, mirror.batches, mirror.agreeing
        limit = min(len(found), len(history) - base)
        while count < limit and found[count] == history[base + count]:
            count += 1
        mirror.agreeing = count

    def extend(self, batches: list[Batch]) -> None:
        """More batches are committed."""
        for batch in batches:
            self.position[batch.first] = len(self.history)
            self.history.append(batch)
        self.high_watermark = self.history[-1].end
        for mirror in self.mirrors.values():
            self.agree(mirror)

    def forget_beyond(self, mirror: ReplicaMirror, leader_epoch: int) -> int:
        """An unclean election of this replica: the records that it lacks are lost. Returns how many."""
        lost = self.high_watermark - mirror.agreed_end
        self.unclean += 1
        self.lost += lost
        self.unclean_epoch = leader_epoch
        end = mirror.agreed_end
        while self.history and self.history[-1].end > end:
            gone = self.history.pop()
            del self.position[gone.first]
            for offset in range(gone.first, gone.end):
                value = self.values.pop(offset, None)
                if value is not None:
                    self.given_up[(offset, value)] = leader_epoch
                    if self.offsets.get(value) == offset:
                        del self.offsets[value]
        self.high_watermark = end
        self.unclean_tail = frozenset(mirror.batches[mirror.agreeing :])
        if self.trimming is not None:
            self.trimming.history_lost()
        for other in self.mirrors.values():
            other.agreeing = 0
            self.agree(other)
        return lost


class Oracle:
    """All partitions of a run. The checkers write it; faults and operators read it."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        """The committed metadata, as of the newest record that any node has applied."""
        self.partitions: dict[TopicIdPartition, PartitionOracle] = {}
        self.states: dict[TopicIdPartition, PartitionState] = {}
        """Each partition's state in the committed metadata."""
        self.rotten: set[tuple[TopicIdPartition, int]] = set()
        """(partition, node) whose log has a damaged batch on the disk (`faults/bit_rot.py`)."""

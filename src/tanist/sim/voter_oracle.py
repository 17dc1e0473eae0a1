"""The oracle of the quorum's voters: facts about the metadata log over all nodes and all time (KIP-853).

Owns a mirror of each node's metadata log (its epochs, the sets of voters that it names, the part that surely survives
a loss of power, the votes of its node), and the committed sets. The checkers alone write it. Faults and operators read
it, to stay within the promise: a disk may be lost, and a voter removed, as long as a majority of every set that can
come into force has its disk.

A request whose answer is missing may be carried out at any later time, so it counts as both done and not done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import combinations
from uuid import UUID

from tanist.log.epochs import EpochEntry
from tanist.quorum.storage.raft_log import RaftLog
from tanist.quorum.voters import ReplicaKey, VoterSet

_UNANSWERED_MAX = 6
"""With more unanswered requests than this nothing more is allowed: the sets to look at double with each."""


class LogMirror:
    """The mirror of one node's metadata log, as it was last seen. It outlives the processes."""

    __slots__ = (
        "directory_id",
        "durable_end",
        "end",
        "epochs",
        "high_watermark",
        "log",
        "mid_turn",
        "sets",
        "start",
        "votes",
    )

    def __init__(self, directory_id: UUID) -> None:
        self.directory_id = directory_id
        self.log: RaftLog | None = None
        """The log object of that process."""
        self.epochs: tuple[EpochEntry, ...] = ()
        """Epochs and their starts; the first may be that of the snapshot at the log's start."""
        self.start = 0
        self.end = 0
        self.durable_end = 0
        """All below has been synced in this life or in an earlier one, and not been cut since."""
        self.high_watermark = 0
        """Of the process, as it was last seen."""
        self.sets: list[tuple[int, VoterSet]] = []
        """The sets that the log names, by their offsets; -1 for those with which the node was formatted."""
        self.votes: dict[int, ReplicaKey] = {}
        """Epoch -> the candidate that the node has voted for."""
        self.mid_turn = False
        """The process died in the middle of a turn, which the checkers have not seen."""

    @property
    def voters(self) -> VoterSet | None:
        """The set in force by this log."""
        return self.sets[-1][1] if self.sets else None

    def voters_before(self, offset: int) -> VoterSet | None:
        return next((voters for at, voters in reversed(self.sets) if at < offset), None)

    def epoch_before(self, offset: int) -> int:
        """The epoch of the last record below `offset`; 0 of an empty log."""
        return next((entry.epoch for entry in reversed(self.epochs) if entry.start_offset < offset), 0)

    def start_of(self, epoch: int) -> int:
        """Where the epoch begins in this log; its end if it has no such epoch."""
        return next((entry.start_offset for entry in self.epochs if entry.epoch == epoch), self.end)


class VoterOracle:
    """All metadata logs of a run, and the committed sets of voters."""

    def __init__(self) -> None:
        self.mirrors: dict[int, LogMirror] = {}
        """By node: controllers and brokers."""
        self.committed_end = 0
        """The highest high watermark that any node has had."""
        self.committed_epoch = 0
        """The epoch of the last record below it."""
        self.committed_sets: list[tuple[int, VoterSet]] = []
        self.directories: dict[int, UUID] = {}
        """Node -> the present directory of its metadata log."""
        self.unanswered: dict[int, tuple[ReplicaKey, bool]] = {}
        """Requests of operators without an answer: the voter, and whether it is added (or else removed)."""
        self.joins_by_itself = False
        """`controller.quorum.auto.join.enable`: every controller asks to be added, at any time."""

    @property
    def is_dynamic(self) -> bool:
        return bool(self.committed_sets)

    @property
    def voters(self) -> VoterSet:
        """The last committed set."""
        return self.committed_sets[-1][1]

    @property
    def voter_ids(self) -> Collection[int]:
        return self.voters.ids

    def sets(self) -> list[VoterSet]:
        """The sets that a leader may count with: the last committed one, and all later ones in any log."""
        found = [self.voters]
        last = self.committed_sets[-1][0]
        for mirror in self.mirrors.values():
            found += (voters for offset, voters in mirror.sets if offset > last and voters not in found)
        return found

    def is_lost(self, key: ReplicaKey) -> bool:
        """A voter whose disk is not there any more."""
        return self.directories.get(key.node_id) != key.directory_id

    # -- the promise

    def may_lose_disk(self, node_id: int) -> bool:
        """Whether the quorum survives the loss of the disk with this node's metadata log."""
        return self._survives({node_id}, ())

    def may_be_absent(self, node_ids: Collection[int]) -> bool:
        """Whether the quorum elects a leader without these nodes."""
        return self._survives(set(node_ids), ())

    def may_remove(self, key: ReplicaKey) -> bool:
        """Whether a majority of the others has its disk."""
        return self._survives(set(), (key,))

    def _survives(self, absent: set[int], removed: Iterable[ReplicaKey]) -> bool:
        requests = [*self.unanswered.values(), *((key, False) for key in removed)]
        if self.joins_by_itself:
            requests += ((ReplicaKey(*each), True) for each in self.directories.items())
        requests = list(dict.fromkeys(requests))
        if len(requests) > _UNANSWERED_MAX:
            return False
        return all(self._has_majority(keys, absent) for keys in self._reachable(requests))

    def _reachable(self, requests: list[tuple[ReplicaKey, bool]]) -> Iterator[frozenset[ReplicaKey]]:
        """The sets that may be in force, now or when some of these requests have been carried out."""
        for voters in self.sets():
            keys = frozenset(voter.key for voter in voters)
            for count in range(len(requests) + 1):
                for chosen in combinations(requests, count):
                    added = {key for key, adds in chosen if adds}
                    yield keys - {key for key, adds in chosen if not adds} | added

    def _has_majority(self, keys: frozenset[ReplicaKey], absent: set[int]) -> bool:
        present = sum(key.node_id not in absent and not self.is_lost(key) for key in keys)
        return not keys or present > len(keys) // 2

"""What must hold of a quorum, checked while it runs: safety.md S9, S10, S16 and Raft's own invariants.

Everything is judged from outside: by the effects that nodes asked for, what is in their logs, and what their disks
would keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tanist.quorum import (
    BecameQuorumLeader,
    Effect,
    HighWatermark,
    MemoryLog,
    MetadataLogTruncated,
    QuorumLeaderChanged,
    SnapshotDownloaded,
)
from tests.quorum.quorum_network import Machine, Network


class Violation(AssertionError):
    """Safety is broken."""


class Checker:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.leaders: dict[int, int] = {}
        self.committed: dict[int, tuple[int, tuple[bytes, ...]]] = {}
        """By base offset: epoch and values of each batch that somebody has called committed."""
        self.committed_end = 0
        self._seen_end: dict[tuple[int, int], int] = {}
        self._epoch: dict[int, int] = {}
        self.elections = 0
        self.seen: Counter[str] = Counter()
        """How often each effect was asked for: a run in which nothing happens proves nothing."""
        network.on_effect = self.effect
        network.on_event = self.event

    def effect(self, node_id: int, effect: Effect) -> None:
        machine = self.network.machines[node_id]
        self.seen[type(effect).__name__] += 1
        if isinstance(effect, QuorumLeaderChanged):
            self._leader(machine, effect)
        elif isinstance(effect, HighWatermark):
            self._high_watermark(machine, effect.offset)
        elif isinstance(effect, BecameQuorumLeader):
            self.elections += 1
            if effect.epoch_start_offset >= self.committed_end:
                raise Violation(f"{node_id} serves before what is older than its epoch is committed")
        elif isinstance(effect, MetadataLogTruncated):
            self._truncated(machine, effect.offset)
        elif isinstance(effect, SnapshotDownloaded):
            key = (node_id, machine.life)
            self._seen_end[key] = max(self._seen_end.get(key, 0), effect.end_offset)

    def event(self, machine: Machine) -> None:
        node = machine.node
        if node is None:
            return
        epoch = node.epoch
        if epoch < self._epoch.get(machine.node_id, 0):
            raise Violation(f"S9: epoch of {machine.node_id} went back to {epoch}")
        self._epoch[machine.node_id] = epoch
        if node.is_leader and self.leaders.setdefault(epoch, node.node_id) != node.node_id:
            raise Violation(f"S10: {self.leaders[epoch]} and {node.node_id} lead epoch {epoch}")

    def finish(self) -> None:
        """At the end of a run: every pair of logs, and what everybody has applied."""
        machines = list(self.network.machines.values())
        for index, first in enumerate(machines):
            for second in machines[index + 1 :]:
                check_log_matching(first.log, second.log)
        for machine in machines:
            self._applied(machine)

    def agreed(self) -> bool:
        """Everybody is up, has the same log end and knows that all of it is committed."""
        ends = {
            (machine.log.end_offset, None if machine.node is None else machine.node.high_watermark)
            for machine in self.network.machines.values()
        }
        return len(ends) == 1 and all(end == watermark for end, watermark in ends) and self.network.leader() is not None

    # -- each

    def _leader(self, machine: Machine, change: QuorumLeaderChanged) -> None:
        if change.leader_id is None:
            return
        if self.leaders.setdefault(change.epoch, change.leader_id) != change.leader_id:
            raise Violation(f"election safety: {self.leaders[change.epoch]} and {change.leader_id} lead {change.epoch}")
        if change.leader_id == machine.node_id:
            self._complete(machine)

    def _complete(self, machine: Machine) -> None:
        """Leader completeness: what was ever committed is in the log of each later leader."""
        log = machine.log
        if log.end_offset < self.committed_end:
            raise Violation(f"leader {machine.node_id} ends at {log.end_offset}, {self.committed_end} is committed")
        self._compare(machine, log.start_offset, self.committed_end)

    def _high_watermark(self, machine: Machine, offset: int) -> None:
        node = machine.node
        key = (machine.node_id, machine.life)
        seen = self._seen_end.get(key, 0)
        if offset < seen:
            raise Violation(f"the high watermark of {machine.node_id} went back from {seen} to {offset}")
        self._seen_end[key] = offset
        start = max(seen, machine.log.start_offset)
        self._compare(machine, start, offset)
        for batch in machine.log.read_batches(start, offset):
            self.committed.setdefault(batch.offset, (batch.epoch, tuple(batch.values)))
        self.committed_end = max(self.committed_end, offset)
        # A leader that commits its own removal has resigned by now.
        if node is not None and (node.is_leader or machine.announced_epoch is not None):
            self._durable(machine, offset)

    def _durable(self, machine: Machine, offset: int) -> None:
        """Committed means: a majority of the voters would have it after a loss of power."""
        voters = self.network.voters_in_log(machine)
        holders = [voter_id for voter_id in voters.ids if self._holds(voter_id, machine.log, offset)]
        if len(holders) < voters.majority:
            raise Violation(f"{machine.node_id} commits {offset}, which only {holders} would still have")

    def _holds(self, node_id: int, log: MemoryLog, offset: int) -> bool:
        other = self.network.machines[node_id]
        if other.durable_end < offset:
            return False
        return check_log_matching(other.log, log) >= offset

    def _compare(self, machine: Machine, start: int, end: int) -> None:
        for batch in machine.log.read_batches(start, end):
            known = self.committed.get(batch.offset)
            if known is not None and known != (batch.epoch, tuple(batch.values)):
                raise Violation(f"{machine.node_id} has {batch} where {known} is committed")

    def _truncated(self, machine: Machine, offset: int) -> None:
        if machine.node is not None and offset < machine.node.high_watermark:
            raise Violation(f"{machine.node_id} cut its log at {offset}, below its high watermark")

    def _applied(self, machine: Machine) -> None:
        """S16: what a node has applied is a prefix of what is committed."""
        values = [v for offset in sorted(self.committed) for v in self.committed[offset][1]]
        if values[: len(machine.applied)] != machine.applied:
            raise Violation(f"S16: {machine.node_id} has applied {machine.applied}, committed is {values}")


def check_log_matching(first: MemoryLog, second: MemoryLog) -> int:
    """The offset up to which two logs are equal; the same offset and epoch with another past is a violation."""
    start = max(first.start_offset, second.start_offset)
    ours = _positions(first, start)
    theirs = _positions(second, start)
    equal = start
    diverged = False
    for (offset, batch), (other_offset, other) in zip(ours, theirs, strict=False):
        if offset == other_offset and batch == other:
            if diverged:
                raise Violation(f"log matching: equal batches at {offset} after different ones")
            equal = batch[2]
        else:
            diverged = True
    if diverged:
        shared = {(offset, batch[0]) for offset, batch in ours} & {(offset, batch[0]) for offset, batch in theirs}
        if any(offset >= equal for offset, _ in shared):
            raise Violation(f"log matching: offset and epoch {shared} are equal, their past is not")
    return equal


def _positions(log: MemoryLog, start: int) -> Sequence[tuple[int, tuple[int, tuple[bytes, ...], int]]]:
    batches = list(log.read_batches(start, log.end_offset))
    if not batches:
        return []
    ends = [batch.offset for batch in batches[1:]] + [log.end_offset]
    return [(b.offset, (b.epoch, tuple(b.values), end)) for b, end in zip(batches, ends, strict=True)]

"""The quorum whose voters change (S23, S24, S25, and S16 of the sets): judged from logs, disks and stored votes.

Owns the oracle of the voters (`sim.voter_oracle`), which it brings up to date after each turn of a node. It reads the
sets out of the logs' records, and believes no node's own idea of the set in force. Only in runs with dynamic voters.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NoReturn

from tanist.broker.node import Node
from tanist.log.epochs import EpochEntry
from tanist.quorum.raft import RaftNode
from tanist.quorum.storage.metadata_log import MetadataLog
from tanist.quorum.storage.raft_log import VoterMessage
from tanist.quorum.storage.voter_history import of_record
from tanist.quorum.voters import ReplicaKey, VoterSet
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import Event, MetadataDiskReplaced, VotersCommitted
from tanist.sim.voter_oracle import LogMirror, VoterOracle
from tanist.sim.world.world import Host, World
from tanist.wire.control import VotersRecord

_LISTENER = "CONTROLLER"


class VoterChecks:
    """All metadata logs of the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.oracle = VoterOracle()
        self._lost: dict[ReplicaKey, LogMirror] = {}
        """The logs and votes of voters whose disks were lost: leaders go on counting what these had acknowledged."""
        self._led: dict[int, int] = {}
        """Node -> the last epoch in which it was seen to lead."""
        for host in world.hosts.values():
            self.oracle.mirrors[host.node_id] = LogMirror(host.directory_id)
            if host.votes:
                self.oracle.directories[host.node_id] = host.directory_id
        self.oracle.joins_by_itself = any(
            host.properties.get("controller.quorum.auto.join.enable") == "true" for host in world.hosts.values()
        )

    # -- turns and faults

    def check_node(self, host: Host, node: Node) -> None:
        """After a turn of the node."""
        raft, mirror = node.quorum.raft, self.oracle.mirrors[host.node_id]
        before = mirror.voters
        had, committed = mirror.end, mirror.high_watermark
        is_seen_whole = mirror.log is raft.log
        if not self._follow(host, raft, mirror):
            return
        stored = raft.stored
        if stored.leader_id == host.node_id:
            if raft.is_leader and self._led.get(host.node_id) != raft.epoch:
                self._led[host.node_id] = raft.epoch
                self._check_elected(host, mirror, raft.epoch)
            if is_seen_whole:  # else it has restarted, and may have appended in a turn that nobody has seen
                self._check_changes(host, mirror, raft.epoch, had)
            if mirror.high_watermark > committed:
                self._check_majority(host, mirror, before)
        self._advance(host, mirror)

    def happened(self, event: Event) -> None:
        if isinstance(event, MetadataDiskReplaced):
            host = self._world.hosts[event.node_id]
            lost = self.oracle.mirrors[event.node_id]
            self._lost[ReplicaKey(event.node_id, lost.directory_id)] = lost
            self.oracle.mirrors[event.node_id] = LogMirror(host.directory_id)
            self._led.pop(event.node_id, None)
            if host.votes:
                self.oracle.directories[event.node_id] = host.directory_id
            self._world.counts["voters: metadata log lost with its disk"] += 1

    def went_down(self, host: Host, *, mid_turn: bool) -> None:
        self.oracle.mirrors[host.node_id].mid_turn |= mid_turn

    # -- the mirrors

    def _follow(self, host: Host, raft: RaftNode, mirror: LogMirror) -> bool:
        """Bring the mirror up to date. False: nothing has changed."""
        log = raft.log
        if not isinstance(log, MetadataLog):
            raise TypeError(f"{host.name}: its metadata log is {log!r}")
        restarted = mirror.log is not log
        durable_end, high_watermark = raft.durable_end, raft.high_watermark
        voted, epochs = raft.stored.voted, _epochs(log)
        if not (
            restarted
            or mirror.end != log.end_offset
            or mirror.high_watermark != high_watermark
            or mirror.durable_end < durable_end
            or mirror.epochs != epochs
            or (voted is not None and mirror.votes.get(raft.stored.epoch) != voted)
            or (raft.is_leader and self._led.get(host.node_id) != raft.epoch)
        ):
            return False
        same = _agreed_end(mirror.epochs, mirror.end, epochs, log.end_offset)
        if restarted and same < mirror.durable_end and not mirror.mid_turn:
            self._fail("S22", f"{host.name}: its metadata log had {mirror.durable_end} synced, and ends at {same}")
        self._read_sets(log, mirror, same)
        mirror.log, mirror.mid_turn = log, False
        mirror.epochs, mirror.start, mirror.end = epochs, log.start_offset, log.end_offset
        mirror.durable_end = max(min(mirror.durable_end, same), durable_end)
        mirror.high_watermark = high_watermark
        if voted is not None:
            mirror.votes[raft.stored.epoch] = voted
        return True

    def _read_sets(self, log: MetadataLog, mirror: LogMirror, same: int) -> None:
        """Sets that were cut off go, those that were appended come."""
        latest = log.latest_snapshot_id
        start = same
        sets = [entry for entry in mirror.sets if entry[0] < same]
        if log.start_offset > same or not sets:
            sets, start = [], log.start_offset
            if latest is not None:
                offset, start = latest.end_offset - 1, max(start, latest.end_offset)
                sets += _sets([(offset, each) for each in log.snapshot_voter_records(latest)])
        if log.end_offset > start:
            sets += _sets(log.voter_records(start))
        if sets != mirror.sets:
            mirror.sets = sets
            for (_, one), (offset, two) in pairwise(sets):
                if len({v.key for v in one} ^ {v.key for v in two}) > 1:
                    self._fail("S24", "a log goes from ", one, " to ", two, f" at {offset} in one step")

    def _advance(self, host: Host, mirror: LogMirror) -> None:
        """S16: what nodes take for committed are the same sets at the same offsets."""
        oracle = self.oracle
        if mirror.high_watermark > oracle.committed_end or not oracle.committed_sets:
            oracle.committed_end = mirror.high_watermark
            oracle.committed_epoch = mirror.epoch_before(mirror.high_watermark)
            known = oracle.committed_sets[-1][0] if oracle.committed_sets else -2
            for offset, voters in mirror.sets:
                if known < offset < oracle.committed_end:
                    if oracle.committed_sets:
                        self._count(oracle.voters, voters)
                    oracle.committed_sets.append((offset, voters))
        for offset, voters in mirror.sets:
            if offset < mirror.high_watermark:
                committed = next((each for at, each in reversed(oracle.committed_sets) if at <= offset), None)
                if committed is not None and committed != voters:
                    self._fail("S16", f"{host.name}: voters ", voters, f" at {offset}, committed were ", committed)

    def _count(self, before: VoterSet, after: VoterSet) -> None:
        counts = self._world.counts
        gone = {v.key for v in before} - {v.key for v in after}
        counts["voters: one more"] += len({v.key for v in after} - {v.key for v in before})
        counts["voters: one less"] += len(gone)
        counts["voters: one less, which had lost its disk"] += sum(map(self.oracle.is_lost, gone))
        self._world.emit(VotersCommitted(after))

    # -- the properties

    def _fail(self, property_id: str, *said: object) -> NoReturn:
        raise Violation(property_id, self._world.now_us, *said)

    def _check_elected(self, host: Host, mirror: LogMirror, epoch: int) -> None:
        """S23: a new leader has all that is committed. S25: a majority of the set in its log has voted for it.

        One that was frozen while it was elected may hear of its votes when a later epoch has committed records already.
        """
        oracle = self.oracle
        if epoch >= oracle.committed_epoch and not _has(mirror, oracle.committed_end, oracle.committed_epoch):
            self._fail(
                "S23",
                f"{host.name} leads epoch {epoch} with a log up to {mirror.end}, and "
                f"{oracle.committed_end} is committed (epoch {oracle.committed_epoch})",
            )
        voters = mirror.voters_before(mirror.start_of(epoch))
        if voters is None:
            self._fail("S25", f"{host.name} leads epoch {epoch}, and its log names no voters")
        me = ReplicaKey(host.node_id, mirror.directory_id)
        granted = [voter.node_id for voter in voters if self._has_voted(voter.key, me, epoch)]
        if len(granted) < voters.majority:
            self._fail("S25", f"{host.name} leads epoch {epoch} by the votes of {granted}, out of ", voters)
        if me.node_id not in voters:
            self._world.counts["voters: led by a removed one"] += 1

    def _has_voted(self, voter: ReplicaKey, candidate: ReplicaKey, epoch: int) -> bool:
        mirror = self._mirror_of(voter)
        if mirror is None:
            return False
        return mirror.mid_turn or mirror.votes.get(epoch) == candidate

    def _mirror_of(self, voter: ReplicaKey) -> LogMirror | None:
        mirror = self.oracle.mirrors.get(voter.node_id)
        return mirror if mirror is not None and mirror.directory_id == voter.directory_id else self._lost.get(voter)

    def _check_majority(self, host: Host, mirror: LogMirror, before: VoterSet | None) -> None:
        """S25: what a leader commits is on the disks of a majority of the voters that its log names.

        A change that the same turn has appended may have come before or after.
        """
        end, epoch = mirror.high_watermark, mirror.epoch_before(mirror.high_watermark)
        held: list[int] = []
        for voters in (mirror.voters, before):
            if voters is None:
                continue
            held = [voter.node_id for voter in voters if self._holds(voter.key, end, epoch)]
            if len(held) >= voters.majority:
                return
        self._fail(
            "S25", f"{host.name} commits {end}, which {held} have on their disks, out of ", mirror.voters or "no voters"
        )

    def _holds(self, voter: ReplicaKey, end: int, epoch: int) -> bool:
        """Whether a loss of power would leave the voter all records below `end`."""
        mirror = self._mirror_of(voter)
        if mirror is None:
            return False
        return mirror.mid_turn or (mirror.durable_end >= end and _has(mirror, end, epoch))

    def _check_changes(self, host: Host, mirror: LogMirror, epoch: int, had: int) -> None:
        """S24: a leader changes the voters only when its last change, and a record of its own epoch, are committed."""
        start = mirror.start_of(epoch)
        for (earlier, one), (offset, two) in pairwise(mirror.sets):
            if offset < max(had, start) or one == two:
                continue
            if earlier >= mirror.high_watermark:
                self._fail(
                    "S24",
                    f"{host.name} makes the voters ",
                    two,
                    f" at {offset}, while ",
                    one,
                    f" at {earlier} are not committed ({mirror.high_watermark} is)",
                )
            if mirror.high_watermark <= start:
                self._fail(
                    "S24",
                    f"{host.name} makes the voters ",
                    two,
                    f" at {offset}, and nothing of its epoch {epoch}, which begins at {start}, is committed "
                    f"({mirror.high_watermark} is)",
                )

    # -- at the end

    def check_converged(self) -> None:
        """S16: all nodes have the committed voters."""
        for node in self._world.nodes():
            if node.quorum.raft.voters != self.oracle.voters:
                self._fail(
                    "S16",
                    f"node {node.node_id}: voters ",
                    node.quorum.raft.voters,
                    ", committed are ",
                    self.oracle.voters,
                )


def _has(mirror: LogMirror, end: int, epoch: int) -> bool:
    """Whether the log has all records below `end`, the last of them of `epoch`: so it has the same before it.

    What is below its start is in its snapshot, and committed.
    """
    return end <= mirror.start or (mirror.end >= end and mirror.epoch_before(end) == epoch)


def _agreed_end(before: tuple[EpochEntry, ...], end: int, after: tuple[EpochEntry, ...], new_end: int) -> int:
    """Up to where a log is what it was: the two have the same epochs up to there."""
    old, new = {entry.epoch: entry.start_offset for entry in before}, {e.epoch: e.start_offset for e in after}
    apart = [
        start
        for one, other in ((old, new), (new, old))
        for epoch, start in one.items()
        if epoch not in other and start > min(other.values(), default=0)
    ]
    return min([end, new_end, *apart])


def _epochs(log: MetadataLog) -> tuple[EpochEntry, ...]:
    """The log's epochs, with that of the snapshot at its start."""
    snapshot, entries = log.earliest_snapshot_id, log.log.epochs.entries
    if snapshot is None or not log.start_offset:
        return entries
    return (EpochEntry(snapshot.epoch, log.start_offset - 1), *entries)


def _sets(records: Iterable[tuple[int, VoterMessage]]) -> list[tuple[int, VoterSet]]:
    return [(offset, of_record(each, _LISTENER)) for offset, each in records if isinstance(each, VotersRecord)]

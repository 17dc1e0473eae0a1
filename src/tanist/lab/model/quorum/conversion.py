"""Voters of the quorum model as real nodes: `VoterState` to a `quorum.RaftNode` over a `MemoryLog`, and back.

A voter is a number from 0; its id in the real objects is that number plus one. Must never decide anything that a node
decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tanist.lab.model.quorum.voter_state import (
    MetadataLog,
    Saved,
    VoterState,
    payload_of_set,
    set_of_payload,
)
from tanist.quorum import ElectionState, MemoryLog, RaftConfig, RaftNode, ReplicaKey, Voter, VoterSet
from tanist.quorum.state.progress import Progress
from tanist.quorum.state.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Tally, Unattached
from tanist.quorum.storage.batches import encode_leader_change, encode_values, encode_voters
from tanist.quorum.storage.voter_history import FROM_BOOTSTRAP, to_record
from tanist.quorum.voters import Listener
from tanist.wire.control import KRaftVersionRecord, VotersRecord

CLUSTER = "model"
NOW_MS = 1 << 40
NEVER_MS = 1 << 50


class FixedChoice:
    """The `Random` port without randomness: safety must not depend on it.

    `pick` is the voter that a voter without a leader asks for the leader. Otherwise the longest waits are drawn, so
    that no deadline passes before `timeout`: else the first voter would ask for pre-votes as it starts, and names would
    make a difference.
    """

    def __init__(self, pick: int | None = None) -> None:
        self._pick = pick

    def below(self, n: int) -> int:
        return n - 1 if self._pick is None else min(self._pick, n - 1)

    def bytes(self, n: int) -> bytes:
        return bytes(n)


class Node(RaftNode):
    """A `RaftNode` that can be created in the middle of its life."""

    def resume(self, role: Role, high_watermark: int, durable: int) -> None:
        """Continue in `role`, as if the node had come to it by itself."""
        quorum = self._quorum
        self._started = True
        quorum.role = role
        quorum.high_watermark = high_watermark
        quorum.durability.durable_end = durable
        quorum.durability.syncing = durable < quorum.log.end_offset
        quorum._reported_leader = (quorum.leader_id, role.epoch)

    @property
    def present(self) -> Role:
        return self._quorum.role


class Conversion:
    """Of the voters of one configuration. Logs are kept by their content."""

    def __init__(self, voters: int, config: RaftConfig, outside: int | None) -> None:
        """`outside`: kraft.version 1, and so many more controllers, which are no voters at first."""
        self._dynamic = outside is not None
        self.config = config
        listeners = (Listener(config.listener_name, "host", 9093),) if self._dynamic else ()
        self.voters = tuple(
            Voter(number + 1, _directory(number), "host", 9093, listeners) for number in range(voters + (outside or 0))
        )
        self.first = self.voters[:voters]
        self._logs: dict[MetadataLog, MemoryLog] = {(): MemoryLog()}

    # -- to objects

    def begun(self, voter: int, log: MemoryLog, saved: Saved) -> Node:
        """A new process on this log and this saved state."""
        stored = ElectionState(saved.epoch, _id(saved.leader), _key(saved.voted))
        return self._made(voter, log, stored, FixedChoice())

    def node(self, voter: int, member: VoterState, rng: FixedChoice | None = None) -> Node:
        """The voter in the middle of its life."""
        log = self.log(member.log).crashed(len(member.log))
        stored = ElectionState(member.epoch, _id(member.leader), _key(member.voted))
        node = self._made(voter, log, stored, rng or FixedChoice())
        node.resume(self._role(voter, member, node), member.high_watermark, member.durable)
        return node

    def log(self, content: MetadataLog) -> MemoryLog:
        """The log of this content. One that differs from a known one in names only is made anew."""
        if content not in self._logs:
            log = self._logs[content] = MemoryLog()
            for offset, (epoch, payload) in enumerate(content):
                mask = set_of_payload(payload)
                if mask is not None:
                    voters = VoterSet(voter for at, voter in enumerate(self.voters) if mask >> at & 1)
                    batch = encode_voters(
                        [to_record(voters, self.config.listener_name)],
                        base_offset=offset,
                        epoch=epoch,
                        timestamp=NOW_MS,
                    )
                elif payload < 0:
                    first = VoterSet(self.first)
                    batch = encode_leader_change(1, first, (), base_offset=offset, epoch=epoch, timestamp=NOW_MS)
                else:
                    batch = encode_values([b"%d" % payload], base_offset=offset, epoch=epoch, timestamp=NOW_MS)
                log.append(memoryview(batch), epoch)
        return self._logs[content]

    def _made(self, voter: int, log: MemoryLog, stored: ElectionState, rng: FixedChoice) -> Node:
        own = self.voters[voter] if self._dynamic else None
        node = Node(voter + 1, _directory(voter), CLUSTER, self.first, log, stored, self.config, rng, own=own)
        if self._dynamic:
            node._quorum.history.add([(FROM_BOOTSTRAP, KRaftVersionRecord(k_raft_version=1))])
        return node

    def _role(self, voter: int, member: VoterState, node: Node) -> Role:
        epoch, leader, voted = member.epoch, _id(member.leader), _key(member.voted)
        match member.role:
            case Unattached.NAME:
                return Unattached(epoch=epoch, leader_id=leader, voted=voted, deadline_ms=NEVER_MS)
            case Follower.NAME:
                endpoint = self.voters[member.leader].endpoint
                return Follower(
                    epoch=epoch,
                    leader_id=member.leader + 1,
                    voted=voted,
                    deadline_ms=NEVER_MS,
                    endpoint=endpoint,
                    has_fetched=member.has_fetched,
                    leader_lost=member.leader_lost,
                )
            case Prospective.NAME:
                return Prospective(
                    epoch=epoch,
                    leader_id=leader,
                    voted=voted,
                    deadline_ms=NEVER_MS,
                    tally=self._tally(voter, member, node),
                    endpoint=None if member.leader < 0 else self.voters[member.leader].endpoint,
                )
            case Candidate.NAME:
                own = ReplicaKey(voter + 1, _directory(voter))
                tally = self._tally(voter, member, node)
                return Candidate(epoch=epoch, voted=own, deadline_ms=NEVER_MS, tally=tally)
            case Resigned.NAME:
                return Resigned(epoch=epoch, leader_id=voter + 1, voted=voted, deadline_ms=NEVER_MS)
        progress = Progress(voter + 1, node._quorum.voters, NOW_MS)
        for other, end in enumerate(member.ends):
            if end >= 0 and other != voter:
                progress.fetched(self.voters[other].key, end, end, NOW_MS)
        progress.own_end(member.ends[voter])
        return Leader(
            epoch=epoch,
            leader_id=voter + 1,
            voted=voted,
            deadline_ms=NEVER_MS,
            epoch_start_offset=member.epoch_start,
            progress=progress,
            committed=None if member.committed < 0 else member.committed,
            announced=member.announced,
            begin_quorum_ms=NEVER_MS,
        )

    def _tally(self, voter: int, member: VoterState, node: Node) -> Tally:
        ids = node.voters.ids
        tally = Tally(ids, len(ids) // 2 + 1, voter + 1)
        for number in ids:
            other = number - 1
            if member.granted >> other & 1:
                tally.record(number, True)
            elif member.rejected >> other & 1:
                tally.record(number, False)
        return tally

    # -- to values

    def state(self, node: Node, saved: Saved, on_disk: int, before: VoterState) -> VoterState:
        """The node as it is now, which was `before`."""
        role = node.present
        voted = -1 if role.voted is None else role.voted.node_id - 1
        remembered = before.cast if role.epoch == before.epoch else -1
        tally = role.tally if isinstance(role, Prospective | Candidate) else None
        leader = role if isinstance(role, Leader) else None
        return VoterState(
            saved=saved,
            role=role.NAME,
            epoch=role.epoch,
            leader=_number(role.leader_id),
            voted=voted,
            granted=0 if tally is None else _mask(tally.granted),
            rejected=0 if tally is None else _mask(tally.rejected),
            has_fetched=isinstance(role, Follower) and role.has_fetched,
            leader_lost=isinstance(role, Follower) and role.leader_lost,
            epoch_start=0 if leader is None else leader.epoch_start_offset,
            committed=-1 if leader is None or leader.committed is None else leader.committed,
            announced=leader is not None and leader.announced,
            ends=() if leader is None else self._ends(leader.progress),
            log=self._kept(node),
            durable=node.durable_end,
            on_disk=max(on_disk, node.durable_end),
            high_watermark=node.high_watermark,
            cast=voted if voted >= 0 else remembered,
        )

    def _ends(self, progress: Progress) -> tuple[int, ...]:
        known = [progress.of(each.key) for each in self.voters]
        ends = [-1 if each is None or each.end_offset is None else each.end_offset for each in known]
        ends[progress.own_id - 1] = progress.own_offset
        return tuple(ends)

    def _kept(self, node: Node) -> MetadataLog:
        log = node.log
        if not isinstance(log, MemoryLog):
            raise TypeError("a node of the model stands on a MemoryLog")
        sets = {
            offset: payload_of_set(_mask(voter.voter_id for voter in message.voters))
            for offset, message in (log.voter_records(0) if self._dynamic else ())
            if isinstance(message, VotersRecord)
        }
        content = tuple(
            (batch.epoch, int(batch.values[0]) if batch.values else sets.get(batch.offset, -1))
            for batch in log.read_batches(0, log.end_offset)
        )
        if content not in self._logs:
            self._logs[content] = log.crashed(log.end_offset)
        return content


def _directory(voter: int) -> UUID:
    return UUID(int=(1 << 70) + voter)


def _id(voter: int) -> int | None:
    return None if voter < 0 else voter + 1


def _key(voter: int) -> ReplicaKey | None:
    return None if voter < 0 else ReplicaKey(voter + 1, _directory(voter))


def _number(node_id: int | None) -> int:
    return -1 if node_id is None else node_id - 1


def _mask(node_ids: Iterable[int]) -> int:
    return sum(1 << (node_id - 1) for node_id in node_ids)


def saved_of(state: ElectionState) -> Saved:
    return Saved(state.epoch, _number(state.leader_id), -1 if state.voted is None else state.voted.node_id - 1)

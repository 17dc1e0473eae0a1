"""The decisions on which safety and liveness rest, one small method each (rules 133-149 of docs/rules.md).

A node follows its `QuorumRules`; the rules hold no state. A mutation (docs/mutations.md) is a subclass that overrides
one of them and is given to `RaftNode(rules=...)`; the tests of this package run several, and must notice each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from tanist.ports import Random
from tanist.quorum.config import RaftConfig
from tanist.quorum.state.progress import ReplicaProgress
from tanist.quorum.state.roles import Candidate, Follower, Resigned, Role, Unattached, VoteAsk
from tanist.quorum.storage.quorum_state_file import ElectionState
from tanist.quorum.storage.raft_log import RaftLog
from tanist.quorum.voters import LogEnd, SnapshotId, VoterSet
from tanist.wire.errors import ErrorCode

BOOTSTRAP_SNAPSHOT = SnapshotId(end_offset=0, epoch=0)
"""The snapshot with which a node is formatted. It is each node's own and never replicated (rules 146, 148)."""


class Validity(Enum):
    VALID = auto()
    DIVERGING = auto()
    SNAPSHOT = auto()


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """The leader's decision about (fetch offset, last fetched epoch)."""

    validity: Validity
    epoch: int
    offset: int


class QuorumRules:
    """Kafka's rules."""

    __slots__ = ()

    # -- starting (133)

    def initial_role(self, stored: ElectionState, log_end: LogEnd, own_id: int, known_leader: bool) -> type[Role]:
        """Rule 133. `stored.voted` has been compared with this node's key: its id stands for both."""
        if stored.epoch < log_end.epoch:
            return Unattached
        if stored.leader_id == own_id:
            # Not leader again: unflushed records may be gone, and no offset is used twice in an epoch.
            return Resigned
        if stored.voted is not None and stored.voted.node_id == own_id:
            return Candidate
        if stored.leader_id is not None and known_leader:
            return Follower
        return Unattached

    # -- elections (134-140)

    def election_timeout_ms(self, config: RaftConfig, random: Random) -> int:
        return config.election_timeout_ms + random.below(config.election_timeout_ms)

    def is_illegal_ask(self, ask: VoteAsk) -> bool:
        """Rule 135: a log cannot be of the epoch that is only being voted for, a pre-vote is for the present one."""
        end = ask.log_end
        if end.offset < 0 or end.epoch < 0 or ask.candidate.node_id < 0:
            return True
        return end.epoch > ask.epoch if ask.pre_vote else end.epoch >= ask.epoch

    def is_up_to_date(self, candidate: LogEnd, own: LogEnd) -> bool:
        """Rule 136: epoch first, then offset."""
        return candidate >= own

    def grants_vote(self, role: Role, ask: VoteAsk, own: LogEnd) -> bool:
        return role.grants(ask, self.is_up_to_date(ask.log_end, own))

    def must_store(self, stored: ElectionState, wanted: ElectionState) -> bool:
        """Rules 133, 137: leader, epoch and vote are stored before they are sent."""
        return stored != wanted

    def next_epoch(self, epoch: int) -> int:
        """The epoch that a candidate stands for, and that a resigned leader moves on to."""
        return epoch + 1

    def accepts_leader(self, role: Role, epoch: int, leader_id: int | None) -> bool:
        """Rule 138: an epoch has one leader. False is fatal."""
        return epoch != role.epoch or leader_id is None or role.leader_id is None or leader_id == role.leader_id

    def end_quorum_backoff_ms(self, position: int, total: int, backoff_max_ms: int) -> int:
        """Rule 139: how long the follower at `position` of the preferred waits; at `total` it is not among them."""
        if position == 0 and total > 0:
            return 0
        if position >= total:
            return backoff_max_ms
        return min(backoff_max_ms, (backoff_max_ms >> (total - 1)) << (position - 1))

    def lost_leader_backoff_ms(self, rank: int, others: int, failures: int, config: RaftConfig, random: Random) -> int:
        """When to ask for pre-votes after the leader's process is gone: each follower has its own slot of the bound.

        Each failed attempt doubles the wait, up to the fetch timeout: a node that is cut off from a leader that the
        others see must not disturb them.
        """
        slot = max(1, config.lost_leader_backoff_ms // max(1, others))
        wait = rank * slot + random.below(slot)
        return min(config.fetch_timeout_ms, wait << min(failures, 16))

    def check_quorum_ms(self, config: RaftConfig) -> int:
        """Rule 141."""
        return config.fetch_timeout_ms * 3 // 2

    def begin_quorum_period_ms(self, config: RaftConfig) -> int:
        """Rule 138."""
        return max(1, config.fetch_timeout_ms // 2)

    # -- commitment (142-144, 149)

    def own_end(self, log_end: int, durable_end: int) -> int:
        """Rule 142: the leader's own end offset counts as far as it would survive a loss of power."""
        return min(log_end, durable_end)

    def may_fetch(self, log_end: int, durable_end: int) -> bool:
        """A voter's fetch from offset N says "I have all below N", so it waits until that is true of its disk."""
        return durable_end >= log_end

    def may_ask_for_votes(self, log_end: int, durable_end: int) -> bool:
        """A candidate's vote request says "I have all below N" for as long as the epoch lasts, and a voter that has
        said yes says so again without looking: it must be true after a loss of power, too."""
        return durable_end >= log_end

    def commit_offset(self, ends: Sequence[int], epoch_start_offset: int) -> int | None:
        """Rule 142: the end offset of a majority, if that includes a record of the leader's own epoch."""
        candidate = ends[len(ends) // 2]
        return candidate if candidate > epoch_start_offset else None

    # -- voters (KIP-853)

    def counted_voters(self, before: VoterSet, latest: VoterSet) -> VoterSet:
        """With which set a leader counts: the last one in its log counts as soon as it is written."""
        return latest

    def counts_own_end(self, is_voter: bool) -> bool:
        """A leader that is no voter any more leads until its removal is committed, and commits without itself."""
        return is_voter

    def is_fenced(self, committed: int | None) -> bool:
        """Whether older leaders can commit nothing any more: a record of this leader's own epoch is committed."""
        return committed is not None

    def is_change_done(self, voters_offset: int, committed: int | None) -> bool:
        """One change at a time: the last set must be committed before there is another."""
        return committed is not None and voters_offset < committed

    def is_caught_up(self, replica: ReplicaProgress | None, config: RaftConfig, now_ms: int) -> bool:
        """A new voter has lately had all of the leader's log: else the quorum would wait for it to commit anything."""
        if replica is None or replica.last_caught_up_ms is None:
            return False
        return now_ms - replica.last_caught_up_ms <= config.fetch_timeout_ms

    def syncs(self, is_voter: bool, can_become_voter: bool) -> bool:
        """Whether a follower's fetch offset says what is durable. The leader may count a voter before it knows that it
        is one, so each replica that can become a voter keeps that promise."""
        return is_voter or can_become_voter

    # -- serving (149)

    def may_announce(self, high_watermark: int, epoch_start_offset: int) -> bool:
        """Rule 149: all from before the epoch is committed, hence replayed before `BecameQuorumLeader` is acted on."""
        return high_watermark > epoch_start_offset

    # -- replication (145-148)

    def leader_request_error(self, role: Role, request_epoch: int, is_leader: bool) -> ErrorCode:
        """Rule 145."""
        if request_epoch < role.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if request_epoch > role.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def fetch_position(self, log: RaftLog, offset: int, epoch: int) -> FetchPosition:
        """Rule 146."""
        latest = log.latest_snapshot_id
        if offset == 0 and latest is not None and latest != BOOTSTRAP_SNAPSHOT:
            return FetchPosition(Validity.SNAPSHOT, latest.epoch, latest.end_offset)
        if offset == 0 and log.start_offset == 0:
            return FetchPosition(Validity.VALID, 0, 0)
        earliest = log.earliest_snapshot_id
        if earliest is not None and latest is not None:
            before_log = offset < log.start_offset
            other_past = offset == log.start_offset and epoch != earliest.epoch
            if before_log or other_past or epoch < earliest.epoch:
                return FetchPosition(Validity.SNAPSHOT, latest.epoch, latest.end_offset)
        end = log.end_of_epoch(epoch)
        if end.epoch != epoch or end.offset < offset:
            return FetchPosition(Validity.DIVERGING, end.epoch, end.offset)
        return FetchPosition(Validity.VALID, epoch, offset)

    def truncation_offset(self, log: RaftLog, leader_end: LogEnd) -> int:
        """Rule 147."""
        if leader_end.epoch == 0:
            return min(leader_end.offset, log.end_offset)
        own_end = log.end_of_epoch(leader_end.epoch)
        if own_end.epoch == leader_end.epoch:
            return min(own_end.offset, leader_end.offset)
        return own_end.offset

    def may_truncate(self, offset: int, high_watermark: int) -> bool:
        """Rule 147: committed records are never cut. False is fatal."""
        return offset >= high_watermark

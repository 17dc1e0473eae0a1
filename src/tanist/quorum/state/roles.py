"""The six roles of a quorum node, a class each, and the table of the changes between them (rules 133-140).

A role holds what is true only while it lasts: its epoch, its deadline, its tally, its followers' progress. Each role
has its own method to answer a request for a vote. Roles never send, store or log anything; `node_state.Quorum` moves
between them and refuses every move that `TRANSITIONS` lacks. The diagram in `docs/quorum.md` is `diagram()`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from tanist.quorum.state.progress import Progress
from tanist.quorum.storage.quorum_state_file import ElectionState
from tanist.quorum.voters import Endpoint, LogEnd, ReplicaKey, SnapshotId, Voter


class VoteAsk(NamedTuple):
    """A request for a vote, as far as the decision goes."""

    candidate: ReplicaKey
    epoch: int
    log_end: LogEnd
    pre_vote: bool


class Tally:
    """The votes of one election or pre-election."""

    __slots__ = ("granted", "majority", "rejected", "voter_ids")

    def __init__(self, voter_ids: Iterable[int], majority: int, own_id: int) -> None:
        self.voter_ids = tuple(voter_ids)
        self.majority = majority
        self.granted: set[int] = {own_id} & set(self.voter_ids)
        self.rejected: set[int] = set()

    def record(self, voter_id: int, granted: bool) -> None:
        """A voter's answer. One that granted once has granted: its later answers do not take that back."""
        if voter_id not in self.voter_ids:
            return
        if granted:
            self.granted.add(voter_id)
            self.rejected.discard(voter_id)
        elif voter_id not in self.granted:
            self.rejected.add(voter_id)

    @property
    def unrecorded(self) -> tuple[int, ...]:
        return tuple(v for v in self.voter_ids if v not in self.granted and v not in self.rejected)

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self.majority

    @property
    def is_lost(self) -> bool:
        return len(self.voter_ids) - len(self.rejected) < self.majority


@dataclass(slots=True, kw_only=True)
class Role:
    """The base of the roles. `deadline_ms` is the moment at which it ends by itself; None: it does not."""

    NAME: ClassVar[str]

    epoch: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None
    deadline_ms: int | None = None

    def election(self) -> ElectionState:
        """The state to store, so that a restart remembers it."""
        return ElectionState(epoch=self.epoch, leader_id=self.leader_id, voted=self.voted)

    def grants(self, ask: VoteAsk, up_to_date: bool) -> bool:
        """Whether this node votes as it is asked to, in its present epoch (rule 136)."""
        raise NotImplementedError

    def expired(self, now_ms: int) -> bool:
        return self.deadline_ms is not None and now_ms >= self.deadline_ms

    def _grants_while_leaderless(self, ask: VoteAsk, up_to_date: bool) -> bool:
        if ask.pre_vote:
            return up_to_date
        if self.voted is not None:
            # One vote an epoch. A vote stored without a directory (quorum-state version 0) is matched by node id.
            same_node = self.voted.node_id == ask.candidate.node_id
            return same_node and self.voted.directory_id in (ReplicaKey(0).directory_id, ask.candidate.directory_id)
        return self.leader_id is None and up_to_date


@dataclass(slots=True, kw_only=True)
class Unattached(Role):
    """Knows an epoch, and no leader from which it could fetch."""

    NAME: ClassVar[str] = "Unattached"

    def grants(self, ask: VoteAsk, up_to_date: bool) -> bool:
        return self._grants_while_leaderless(ask, up_to_date)


@dataclass(slots=True)
class Download:
    """A snapshot on its way from the leader."""

    snapshot_id: SnapshotId
    received_bytes: int = 0


@dataclass(slots=True, kw_only=True)
class Follower(Role):
    """Fetches from the epoch's leader. `deadline_ms` is the fetch timeout."""

    NAME: ClassVar[str] = "Follower"

    leader_id: int
    endpoint: Endpoint
    has_fetched: bool = False
    """The leader has answered a fetch in this epoch, so it lives and is ours."""
    fetched_ms: int = -1
    """When it last did."""
    leader_lost: bool = False
    """The leader's process was seen to be gone since it last answered (`RaftNode.peer_lost`)."""
    leader_left: bool = False
    """The leader has ended its epoch (EndQuorumEpoch): an answer that it sent before may still arrive."""
    download: Download | None = None

    def grants(self, ask: VoteAsk, up_to_date: bool) -> bool:
        """Only pre-votes: a vote request in the epoch of a known leader is late.

        Kafka refuses pre-votes too once the leader has answered a fetch, so that a node that was cut off cannot unseat
        a leader that others see. A leader whose connection to *us* was refused or reset is not such a leader, hence
        `leader_lost`. A pre-vote stores nothing and promises nothing; the votes proper that it leads to are
        asked for in a new epoch and judged by the rules of that.
        """
        return ask.pre_vote and up_to_date and (self.leader_lost or not self.has_fetched)


@dataclass(slots=True, kw_only=True)
class Prospective(Role):
    """Asks whether it would be elected, without disturbing the present leader (KIP-996)."""

    NAME: ClassVar[str] = "Prospective"

    tally: Tally
    endpoint: Endpoint | None = None
    """The epoch of the leader to which it returns when it would not be elected."""

    def grants(self, ask: VoteAsk, up_to_date: bool) -> bool:
        return self._grants_while_leaderless(ask, up_to_date)


@dataclass(slots=True, kw_only=True)
class Candidate(Role):
    """Has voted for itself and asks the others to."""

    NAME: ClassVar[str] = "Candidate"

    voted: ReplicaKey
    tally: Tally

    def grants(self, ask: VoteAsk, up_to_date: bool) -> bool:
        return ask.pre_vote and up_to_date


@dataclass(slots=True, kw_only=True)
class Leader(Role):
    """Appends, answers fetches, commits. `deadline_ms` is the check of its quorum (rule 141)."""

    NAME: ClassVar[str] = "Leader"

    leader_id: int
    epoch_start_offset: int
    progress: Progress
    committed: int | None = None
    """The high watermark, once this epoch has one."""
    announced: bool = False
    """`BecameQuorumLeader` has been said."""
    begin_quorum_ms: int = 0
    """When to send BeginQuorumEpoch (again) to the voters that did not fetch lately."""
    unbegun: set[int] = field(default_factory=set)
    """Voters with a BeginQuorumEpoch under way."""
    reported: dict[int, Voter] = field(default_factory=dict)
    """Voters as they describe themselves with kraft.version 0 (UpdateRaftVoter)."""

    def grants(self, ask: VoteAsk, up_to_date: bool) -> bool:
        return False


@dataclass(slots=True, kw_only=True)
class Resigned(Role):
    """Was the leader of its epoch and has resigned; sends EndQuorumEpoch, and waits for the other voters (rule 140)."""

    NAME: ClassVar[str] = "Resigned"

    leader_id: int
    preferred: tuple[ReplicaKey, ...] = ()
    unreported: set[int] = field(default_factory=set)
    """Voters that have not acknowledged the EndQuorumEpoch."""

    def grants(self, ask: VoteAsk, up_to_date: bool) -> bool:
        return ask.pre_vote and up_to_date


class Transition(NamedTuple):
    source: type[Role]
    target: type[Role]
    why: str


TRANSITIONS: tuple[Transition, ...] = (
    Transition(Unattached, Unattached, "higher epoch, or votes"),
    Transition(Unattached, Follower, "learns the leader"),
    Transition(Unattached, Prospective, "election timeout (voter)"),
    Transition(Follower, Unattached, "higher epoch"),
    Transition(Follower, Follower, "leader of a higher epoch"),
    Transition(Follower, Prospective, "fetch timeout, EndQuorumEpoch or leader lost (voter)"),
    Transition(Prospective, Unattached, "higher epoch, or refused with no leader known"),
    Transition(Prospective, Follower, "learns the leader, or refused with a leader known"),
    Transition(Prospective, Prospective, "votes"),
    Transition(Prospective, Candidate, "majority of pre-votes: epoch + 1"),
    Transition(Candidate, Unattached, "higher epoch"),
    Transition(Candidate, Follower, "learns the leader"),
    Transition(Candidate, Prospective, "election timeout"),
    Transition(Candidate, Leader, "majority of votes"),
    Transition(Leader, Unattached, "higher epoch"),
    Transition(Leader, Follower, "leader of a higher epoch"),
    Transition(Leader, Resigned, "shutdown, or no quorum fetches"),
    Transition(Resigned, Unattached, "higher epoch, or election timeout: epoch + 1"),
    Transition(Resigned, Follower, "leader of a higher epoch"),
    Transition(Resigned, Prospective, "start of the only voter"),
)
"""Every change of role there is. A node starts Unattached, Follower, Candidate or Resigned (rule 133)."""

_ALLOWED: frozenset[tuple[type[Role], type[Role]]] = frozenset((t.source, t.target) for t in TRANSITIONS)

INITIAL: tuple[type[Role], ...] = (Unattached, Follower, Candidate, Resigned)


def is_allowed(source: type[Role], target: type[Role]) -> bool:
    return (source, target) in _ALLOWED


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {role.NAME}" for role in INITIAL]
    lines += [f"    {t.source.NAME} --> {t.target.NAME}: {t.why.replace(':', ',')}" for t in TRANSITIONS]
    return "\n".join(lines)

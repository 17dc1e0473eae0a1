"""The state of a quorum node: its role, the stored election state, and its effects (rules 133-143).

`Quorum` is shared by `elections`, `leader`, `follower`, `joining` and `voter_changes`. It owns every change of role: it
checks the change against the table, stores the election state before it becomes visible, forgets the requests of the
role that ended, and reports the leader. It holds the set of voters in force. Epochs and the high watermark only grow
here (S9). It knows nothing of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tanist.events.quorum import BecameCandidate, LeaderDeposed, LeaderResigned, QuorumLeaderChanged, SteppedDown
from tanist.events.stream import NOBODY, Events
from tanist.invariants import InvariantError
from tanist.ports import Random
from tanist.quorum.config import RaftConfig
from tanist.quorum.effects import (
    Effect,
    HighWatermark,
    IllegalTransition,
    QuorumInconsistent,
    SaveElectionState,
    Send,
    SyncLog,
)
from tanist.quorum.state.durability import Durability
from tanist.quorum.state.progress import Progress
from tanist.quorum.state.requests import Requests
from tanist.quorum.state.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Tally,
    Unattached,
    is_allowed,
)
from tanist.quorum.state.rules import QuorumRules
from tanist.quorum.storage.quorum_state_file import ElectionState
from tanist.quorum.storage.raft_log import RaftLog, VoterMessage
from tanist.quorum.storage.voter_history import VoterHistory
from tanist.quorum.voters import Endpoint, LogEnd, ReplicaKey, Voter, VoterSet
from tanist.wire.control import VotersRecord
from tanist.wire.ids import ZERO_UUID
from tanist.wire.schema import Request


class Quorum:
    def __init__(
        self,
        me: ReplicaKey,
        cluster_id: str,
        voters: VoterSet,
        log: RaftLog,
        stored: ElectionState,
        config: RaftConfig,
        random: Random,
        rules: QuorumRules,
        *,
        own: Voter | None = None,
        bootstrap: Sequence[Endpoint] = (),
        can_become_voter: bool = False,
        events: Events = NOBODY,
    ) -> None:
        self.me = me
        self.events = events
        self.own = own
        """This node as a voter, if it is a controller."""
        self.cluster_id = cluster_id
        self.history = VoterHistory(voters, config.listener_name)
        self.history.load(log)
        self.voters = rules.counted_voters(voters, self.history.voters)
        """The set in force: the last one in the log, be it committed or not."""
        # Kafka's ids of bootstrap servers begin at -2, too.
        self.bootstrap = {
            -2 - at: Voter(-2 - at, ZERO_UUID, *server)
            for at, server in enumerate(bootstrap)
            if own is None or server != own.endpoint
        }
        if not len(self.voters) and not bootstrap:
            raise ValueError("a quorum needs a voter, or a server that knows one")
        self.log = log
        self.stored = stored
        self.config = config
        self.random = random
        self.rules = rules
        self.is_voter = self.voters.is_voter(me)
        self.can_become_voter = can_become_voter
        self.requests = Requests(config.request_timeout_ms, config.retry_backoff_ms)
        self.durability = Durability()
        self.role: Role = Unattached(epoch=stored.epoch, voted=stored.voted)
        self.high_watermark = log.latest_snapshot_id.end_offset if log.latest_snapshot_id is not None else 0
        self.lost_in_a_row = 0
        """How often the leader's process was gone since a fetch last succeeded."""
        self.stopping = False
        """The node is shutting down: it no longer stands for election."""
        self._effects: list[Effect] = []
        self._reported_leader: tuple[int | None, int] | None = None

    # -- effects

    def emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def send(self, to: int, request: Request, now_ms: int, endpoint: Endpoint | None = None) -> None:
        asked = self.requests.ask(to, request, now_ms)
        self.emit(Send(asked.request_id, to, request, endpoint or self.endpoint_of(to)))

    def log_grew(self) -> None:
        """A voter's records must become durable before they count (rule 142); an observer's do not count."""
        if self.syncs and self.durability.written():
            self.emit(SyncLog())

    def advance_high_watermark(self, offset: int) -> bool:
        """To `offset`, or to the end of the log if that is not there yet; never back."""
        offset = min(offset, self.log.end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.emit(HighWatermark(offset))
        return True

    # -- what is known

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def log_end(self) -> LogEnd:
        return LogEnd(self.log.last_epoch, self.log.end_offset)

    @property
    def leader_id(self) -> int | None:
        """The present leader; a resigned one does not count."""
        return None if isinstance(self.role, Resigned) else self.role.leader_id

    @property
    def syncs(self) -> bool:
        return self.rules.syncs(self.is_voter, self.can_become_voter)

    @property
    def stands(self) -> bool:
        """Whether this node stands for election.

        A voter does, and so does one whose removal is not known to be committed: it may be the only one that has the
        record, and without it the others may lack a majority. It does not count its own vote.
        """
        return self.is_voter or self.history.may_be_voter(self.me, self.high_watermark)

    @property
    def is_static(self) -> bool:
        """The configuration names all voters, and nobody else can lead."""
        return len(self.voters) > 0 and self.history.kraft_version == 0 and not self.bootstrap

    @property
    def has_others(self) -> bool:
        """There are voters beside this node."""
        return len(self.voters) > (1 if self.me.node_id in self.voters else 0)

    def get(self, node_id: int) -> Voter | None:
        """A node whose endpoint is known: a voter, this node, a bootstrap server, or a leader that is no voter here."""
        found = self.voters.get(node_id) or self.bootstrap.get(node_id)
        if found is None and node_id == self.me.node_id:
            return self.own
        role = self.role
        if found is None and isinstance(role, (Follower, Prospective)) and role.leader_id == node_id and role.endpoint:
            return Voter(node_id, ZERO_UUID, *role.endpoint)
        return found

    def endpoint_of(self, node_id: int | None) -> Endpoint | None:
        found = None if node_id is None else self.get(node_id)
        return None if found is None else found.endpoint

    def contacts(self) -> tuple[Voter, ...]:
        """The nodes that may know who leads."""
        return (*self.voters.others(self.me.node_id), *self.bootstrap.values())

    # -- voters

    def read_voters(self, records: Iterable[tuple[int, VoterMessage]], now_ms: int) -> None:
        """Records were appended that change the voters, if there are any."""
        if self.history.add(records):
            self.voters_changed(now_ms)

    def voters_changed(self, now_ms: int) -> None:
        """The log names other voters, or the one that named them was cut off."""
        self.voters = self.rules.counted_voters(self.voters, self.history.voters)
        self.is_voter = self.voters.is_voter(self.me)
        role = self.role
        if isinstance(role, Leader):
            role.progress.set_voters(self.voters, now_ms)
            role.unbegun &= set(self.voters.ids)
            role.deadline_ms = now_ms + self.rules.check_quorum_ms(self.config) if self.has_others else None

    def check_change(self, leader: Leader, records: Iterable[VoterMessage]) -> None:
        """Two sets that can be in force at once have majorities that share a voter."""
        under_way = self.history.offset
        if under_way is not None and not self.rules.is_change_done(under_way, leader.committed):
            raise InvariantError(
                "a change of the voters waits for the last one", under_way=under_way, committed=leader.committed
            )
        for record in records:
            if isinstance(record, VotersRecord):
                wanted = {(voter.voter_id, voter.voter_directory_id) for voter in record.voters}
                joining = [key for key in wanted if not self.voters.is_voter(ReplicaKey(*key))]
                ids = {node_id for node_id, _ in wanted}
                leaving = [node_id for node_id in self.voters.ids if node_id not in ids]
                if len(joining) + len(leaving) > 1:
                    raise InvariantError("one voter joins or leaves at a time", joining=joining, leaving=leaving)

    # -- changes of role

    def initialize(self, now_ms: int) -> None:
        """Rule 133: a node's first role."""
        stored = self.stored
        if stored.voted is not None and stored.voted.node_id == self.me.node_id and not self._is_me(stored.voted):
            # The vote was for this id with another directory, which is another replica: it is not ours to stand on.
            stored = ElectionState(stored.epoch, stored.leader_id, None)
        known_leader = stored.leader_id is not None and stored.leader_id in self.voters
        target = self.rules.initial_role(stored, self.log_end, self.me.node_id, known_leader)
        if stored.epoch < self.log_end.epoch:
            self._enter(Unattached(epoch=self.log_end.epoch, deadline_ms=self._first_election_deadline(now_ms)))
        elif target is Resigned:
            unreported = {voter.node_id for voter in self.voters.others(self.me.node_id)}
            self._enter(
                Resigned(
                    epoch=stored.epoch,
                    leader_id=self.me.node_id,
                    voted=stored.voted,
                    unreported=unreported,
                    deadline_ms=now_ms + self.rules.election_timeout_ms(self.config, self.random),
                )
            )
        elif target is Candidate and self.stands:
            self._enter(
                Candidate(
                    epoch=stored.epoch,
                    voted=self.me,
                    tally=self._tally(),
                    deadline_ms=self._election_deadline(now_ms),
                )
            )
        elif target is Follower:
            self._enter(self._follower(stored.epoch, self._known(stored.leader_id), stored.voted, now_ms))
        else:
            self._enter(
                Unattached(
                    epoch=stored.epoch,
                    leader_id=stored.leader_id,
                    voted=self.stored.voted,
                    deadline_ms=self._first_election_deadline(now_ms),
                )
            )

    def become_unattached(self, epoch: int, now_ms: int) -> None:
        """A higher epoch is known, and no leader of it; or a pre-vote was lost and no leader is known."""
        before = self.role
        same_epoch = epoch == before.epoch
        waits = isinstance(before, (Candidate, Prospective, Unattached)) and not same_epoch
        # The wait for an election does not grow because of another candidate's epoch.
        deadline = before.deadline_ms if waits else self._election_deadline(now_ms)
        self._change(
            Unattached(
                epoch=epoch,
                leader_id=before.leader_id if same_epoch else None,
                voted=before.voted if same_epoch else None,
                deadline_ms=deadline,
            )
        )

    def become_follower(self, epoch: int, leader_id: int, now_ms: int, endpoint: Endpoint | None = None) -> None:
        if leader_id == self.me.node_id:
            raise QuorumInconsistent(f"node {leader_id} should follow itself in epoch {epoch}")
        voted = self.role.voted if epoch == self.epoch else None
        self._change(self._follower(epoch, leader_id, voted, now_ms, endpoint))

    def vote_for(self, candidate: ReplicaKey, now_ms: int) -> None:
        """Rule 137. The candidate is as good as we are: wait for it."""
        role = self.role
        if isinstance(role, Prospective):
            self._change(
                Prospective(
                    epoch=role.epoch,
                    leader_id=role.leader_id,
                    endpoint=role.endpoint,
                    voted=candidate,
                    tally=self._tally(),
                    deadline_ms=self._election_deadline(now_ms),
                )
            )
        elif isinstance(role, Unattached):
            self._change(Unattached(epoch=role.epoch, voted=candidate, deadline_ms=self._election_deadline(now_ms)))
        else:
            raise IllegalTransition(f"a {role.NAME} does not vote")

    def become_prospective(self, now_ms: int) -> None:
        before = self.role
        leader_id = None if isinstance(before, (Resigned, Candidate)) else before.leader_id
        self._change(
            Prospective(
                epoch=before.epoch,
                leader_id=leader_id,
                endpoint=self.endpoint_of(leader_id),
                voted=before.voted,
                tally=self._tally(),
                deadline_ms=self._election_deadline(now_ms),
            )
        )

    def become_candidate(self, now_ms: int) -> None:
        self._change(
            Candidate(
                epoch=self.rules.next_epoch(self.epoch),
                voted=self.me,
                tally=self._tally(),
                deadline_ms=self._election_deadline(now_ms),
            )
        )
        self.events.emit(BecameCandidate(self.epoch, self.is_voter))

    def become_leader(self, now_ms: int) -> Leader:
        leader = Leader(
            epoch=self.epoch,
            leader_id=self.me.node_id,
            voted=self.role.voted,
            epoch_start_offset=self.log.end_offset,
            progress=Progress(self.me.node_id, self.voters, now_ms),
            begin_quorum_ms=now_ms,
            deadline_ms=now_ms + self.rules.check_quorum_ms(self.config) if self.has_others else None,
        )
        self._change(leader)
        return leader

    def become_resigned(self, now_ms: int, cause: str) -> None:
        """`cause` is `LeaderResigned`'s."""
        leader = self.role
        if not isinstance(leader, Leader):
            raise IllegalTransition(f"a {leader.NAME} has nothing to resign from")
        self.events.emit(LeaderResigned(leader.epoch, cause))
        self._change(
            Resigned(
                epoch=leader.epoch,
                leader_id=leader.leader_id,
                voted=leader.voted,
                preferred=leader.progress.successors(),
                unreported={voter.node_id for voter in self.voters.others(self.me.node_id)},
                # One that was removed must leave its epoch as well: it would never look for the next leader.
                deadline_ms=now_ms + self.rules.election_timeout_ms(self.config, self.random),
            )
        )

    def _change(self, role: Role) -> None:
        before = self.role
        if not is_allowed(type(before), type(role)):
            raise IllegalTransition(f"{before.NAME} to {role.NAME}")
        if role.epoch < before.epoch:
            raise IllegalTransition(f"epoch {before.epoch} to {role.epoch}")
        if isinstance(before, Leader) and role.epoch > before.epoch:
            self.events.emit(LeaderDeposed(before.epoch, role.epoch))
        self._enter(role)
        if isinstance(before, Leader) and before.announced:
            self.emit(SteppedDown(before.epoch, self.log.end_offset - self.high_watermark))

    def _enter(self, role: Role) -> None:
        if not self.stands and isinstance(role, (Candidate, Prospective, Leader)):
            raise IllegalTransition(f"an observer becomes no {role.NAME}")
        self.role = role
        self.requests.forget_all()
        self._store(role.election())
        leader = (self.leader_id, role.epoch)
        if leader != self._reported_leader:
            self._reported_leader = leader
            self.emit(QuorumLeaderChanged(*leader))

    def _store(self, wanted: ElectionState) -> None:
        """Save it before all later effects, with one write for all changes of this call.

        The last state may take the place of an earlier one: no effect has left yet.
        """
        if self.rules.must_store(self.stored, wanted):
            save = SaveElectionState(wanted, self.history.kraft_version)
            earlier = [i for i, effect in enumerate(self._effects) if isinstance(effect, SaveElectionState)]
            if earlier:
                self._effects[earlier[0]] = save
            else:
                self.emit(save)
        self.stored = wanted

    def _follower(
        self,
        epoch: int,
        leader_id: int,
        voted: ReplicaKey | None,
        now_ms: int,
        endpoint: Endpoint | None = None,
    ) -> Follower:
        voter = self.voters.get(leader_id)
        endpoint = endpoint if voter is None else voter.endpoint
        if endpoint is None:
            raise QuorumInconsistent(f"the leader {leader_id} of epoch {epoch} is not a voter")
        return Follower(
            epoch=epoch,
            leader_id=leader_id,
            voted=voted,
            endpoint=endpoint,
            deadline_ms=now_ms + self.config.fetch_timeout_ms,
        )

    def _known(self, node_id: int | None) -> int:
        if node_id is None:
            raise IllegalTransition("no leader to follow")
        return node_id

    def _is_me(self, key: ReplicaKey) -> bool:
        return key.node_id == self.me.node_id and key.directory_id in (ReplicaKey(0).directory_id, self.me.directory_id)

    def _tally(self) -> Tally:
        return Tally(self.voters.ids, self.voters.majority, self.me.node_id)

    def _first_election_deadline(self, now_ms: int) -> int | None:
        """The wait of a voter that has just started and knows no leader: its pre-vote disturbs no leader, so it is
        short.
        """
        if not self.stands:
            return None
        voters = sorted(self.voters.ids)
        rank = voters.index(self.me.node_id) if self.is_voter else len(voters)
        return now_ms + self.rules.lost_leader_backoff_ms(rank, len(voters), 0, self.config, self.random)

    def _election_deadline(self, now_ms: int) -> int | None:
        """Rule 134. Observers never stand for election."""
        if not self.stands:
            return None
        return now_ms + self.rules.election_timeout_ms(self.config, self.random)

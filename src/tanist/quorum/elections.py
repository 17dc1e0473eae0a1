"""Elections: Vote, BeginQuorumEpoch, EndQuorumEpoch, and the leader and epoch in every response (rules 134-140).

Owns both sides of the three requests and the waiting of the roles without a leader. It decides by `rules` and the role,
changes the role through `node_state.Quorum`, and only reads the end of the log.
"""

from __future__ import annotations

from tanist.events.quorum import ElectionLost, LeaderClaimRefused, LeaderLeaves, PreVoteLost, VoteRefused
from tanist.quorum import messages
from tanist.quorum.effects import QuorumInconsistent, Reply
from tanist.quorum.leader import QuorumLeader
from tanist.quorum.messages import Answer
from tanist.quorum.state.node_state import Quorum
from tanist.quorum.state.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from tanist.quorum.voters import Endpoint, ReplicaKey, Voter
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import ZERO_UUID
from tanist.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from tanist.wire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from tanist.wire.messages.vote_request import VoteRequest
from tanist.wire.messages.vote_response import VoteResponse


class Elections:
    def __init__(self, quorum: Quorum, leading: QuorumLeader) -> None:
        self._quorum = quorum
        self._leading = leading

    # -- requests of others

    def vote(self, source: object, request: VoteRequest, now_ms: int) -> None:
        """Rule 135, its checks in Kafka's order."""
        quorum = self._quorum
        if not self._is_our_cluster(request.cluster_id):
            quorum.emit(Reply(source, VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
            return
        part = messages.only(request.topics)
        if part is None:
            quorum.emit(Reply(source, VoteResponse(error_code=ErrorCode.INVALID_REQUEST)))
            return
        ask = messages.vote_ask(part)
        error, granted = ErrorCode.NONE, False
        if quorum.rules.is_illegal_ask(ask) or ask.candidate.node_id == quorum.me.node_id:
            error = ErrorCode.INVALID_REQUEST
        elif ask.epoch < quorum.epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        else:
            if ask.epoch > quorum.epoch:
                quorum.become_unattached(ask.epoch, now_ms)
            if not messages.is_for(request.voter_id, part.voter_directory_id, quorum.me):
                error = ErrorCode.INVALID_VOTER_KEY
            else:
                granted = quorum.rules.grants_vote(quorum.role, ask, quorum.log_end)
                if not granted:
                    quorum.events.emit(VoteRefused(ask.candidate.node_id, ask.epoch, ask.pre_vote))
                elif not ask.pre_vote and quorum.role.voted != ask.candidate:
                    self._cast(ask.candidate, now_ms)
        quorum.emit(Reply(source, messages.vote_reply(quorum, quorum.role.leader_id, quorum.epoch, error, granted)))

    def _cast(self, candidate: ReplicaKey, now_ms: int) -> None:
        quorum = self._quorum
        if quorum.role.voted is None:
            quorum.vote_for(candidate, now_ms)

    def begin_quorum_epoch(self, source: object, request: BeginQuorumEpochRequest, now_ms: int) -> None:
        """Rule 138."""
        quorum = self._quorum
        if not self._is_our_cluster(request.cluster_id):
            quorum.emit(Reply(source, BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
            return
        part = messages.only(request.topics)
        if part is None:
            quorum.emit(Reply(source, BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)))
            return
        error = self._leader_claim_error(part.leader_id, part.leader_epoch)
        if error == ErrorCode.NONE:
            endpoint = messages.claimed_endpoint(request.leader_endpoints, quorum.config.listener_name)
            self.learn(part.leader_id, part.leader_epoch, now_ms, endpoint)
            if not messages.is_for(request.voter_id, part.voter_directory_id, quorum.me):
                error = ErrorCode.INVALID_VOTER_KEY
        quorum.emit(Reply(source, messages.begin_reply(quorum, quorum.role.leader_id, quorum.epoch, error)))

    def end_quorum_epoch(self, source: object, request: EndQuorumEpochRequest, now_ms: int) -> None:
        """Rule 139."""
        quorum = self._quorum
        if not self._is_our_cluster(request.cluster_id):
            quorum.emit(Reply(source, EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
            return
        part = messages.only(request.topics)
        if part is None:
            quorum.emit(Reply(source, EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)))
            return
        error = self._leader_claim_error(part.leader_id, part.leader_epoch)
        if error == ErrorCode.NONE:
            endpoint = messages.claimed_endpoint(request.leader_endpoints, quorum.config.listener_name)
            self.learn(part.leader_id, part.leader_epoch, now_ms, endpoint)
            role = quorum.role
            if isinstance(role, Follower) and role.leader_id == part.leader_id:
                preferred = messages.preferred_candidates(part)
                position = self._position(preferred)
                wait = quorum.rules.end_quorum_backoff_ms(
                    position, len(preferred), quorum.config.election_backoff_max_ms
                )
                role.deadline_ms = now_ms + wait
                if not role.leader_lost:
                    quorum.events.emit(LeaderLeaves(part.leader_id, part.leader_epoch))
                # The leader itself says that it is leaving, so a pre-vote request does not disturb it.
                role.leader_lost = role.leader_left = True
        quorum.emit(Reply(source, messages.end_reply(quorum, quorum.role.leader_id, quorum.epoch, error)))

    def _position(self, preferred: tuple[ReplicaKey, ...]) -> int:
        me = self._quorum.me
        for position, key in enumerate(preferred):
            if key.node_id == me.node_id and key.directory_id in (ZERO_UUID, me.directory_id):
                return position
        return len(preferred)

    def _is_our_cluster(self, cluster_id: str | None) -> bool:
        return cluster_id is None or cluster_id == self._quorum.cluster_id

    def _leader_claim_error(self, leader_id: int, epoch: int) -> ErrorCode:
        """A request of a node that leads, or led, `epoch`."""
        quorum = self._quorum
        if epoch < quorum.epoch:
            quorum.events.emit(LeaderClaimRefused(leader_id, epoch, quorum.epoch))
            return ErrorCode.FENCED_LEADER_EPOCH
        if leader_id < 0 or (quorum.is_static and leader_id not in quorum.voters):
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE

    # -- what others reveal

    def learn(self, leader_id: int | None, epoch: int, now_ms: int, endpoint: Endpoint | None = None) -> None:
        """`epoch`, which is not below ours, has the leader `leader_id`, or none that is known.

        A leader that is no voter here is followed if it is known where it listens: with kraft.version 1 our set may be
        older than the leader's, or still unknown. A leader with our id and another directory is gone with its disk.
        """
        quorum = self._quorum
        if leader_id == quorum.me.node_id:
            if epoch == quorum.epoch and isinstance(quorum.role, (Leader, Resigned)):
                return
            if quorum.is_static:
                raise QuorumInconsistent(f"epoch {epoch} is said to be led by this node, {leader_id}, which is not so")
            leader_id = None  # it is another replica, of this id: the one whose disk was lost
        if not quorum.rules.accepts_leader(quorum.role, epoch, leader_id):
            raise QuorumInconsistent(
                f"epoch {epoch} is led by {quorum.role.leader_id}, and is said to be by {leader_id}"
            )
        if leader_id is not None and leader_id not in quorum.voters and (quorum.is_static or endpoint is None):
            leader_id = None
        if epoch > quorum.epoch:
            if leader_id is None:
                quorum.become_unattached(epoch, now_ms)
            else:
                quorum.become_follower(epoch, leader_id, now_ms, endpoint)
        elif epoch == quorum.epoch and leader_id is not None and self._seeks_leader():
            quorum.become_follower(epoch, leader_id, now_ms, endpoint)

    def _seeks_leader(self) -> bool:
        """A prospective node that has a leader doubts it; other nodes without one take the first that they learn of."""
        role = self._quorum.role
        return isinstance(role, (Unattached, Candidate)) or (isinstance(role, Prospective) and role.leader_id is None)

    def common_answer(self, answer: Answer, now_ms: int) -> bool | None:
        """The checks of every response.

        True: done with the response; False: done, and pause requests to the peer; None: go on.
        """
        quorum = self._quorum
        if answer.epoch < quorum.epoch or answer.error == ErrorCode.UNKNOWN_LEADER_EPOCH:
            return answer.error in (ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH)
        if answer.epoch == quorum.epoch and not quorum.rules.accepts_leader(
            quorum.role, answer.epoch, answer.leader_id
        ):
            raise QuorumInconsistent(
                f"epoch {answer.epoch} is led by {quorum.role.leader_id}, and is said to be by {answer.leader_id}"
            )
        stale = answer.error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if answer.epoch > quorum.epoch or stale:
            before = quorum.role
            self.learn(answer.leader_id, answer.epoch, now_ms, answer.endpoint)
            # The same request would get the same answer until something changes.
            return quorum.role is not before
        if answer.leader_id is not None and (quorum.role.leader_id is None or isinstance(quorum.role, Unattached)):
            self.learn(answer.leader_id, answer.epoch, now_ms, answer.endpoint)
            return None if answer.error == ErrorCode.NONE else True
        if answer.error == ErrorCode.BROKER_NOT_AVAILABLE:
            return False
        return None

    # -- answers to our own requests

    def handle_vote_response(self, voter_id: int, response: VoteResponse, now_ms: int) -> bool:
        """True if the voter can be sent another request at once."""
        quorum = self._quorum
        role = quorum.role
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and isinstance(role, Prospective):
            # Rule 134: a voter without pre-votes can't be asked, so stand for election without.
            self._stand(now_ms)
            return True
        part = messages.only(response.topics)
        if response.error_code != ErrorCode.NONE or part is None:
            return False
        done = self.common_answer(messages.answer(part.error_code, part, response.node_endpoints), now_ms)
        if done is not None:
            return done
        if part.error_code != ErrorCode.NONE:
            return False
        if isinstance(role, (Prospective, Candidate)) and quorum.role is role:
            role.tally.record(voter_id, part.vote_granted)
        return True

    def handle_begin_response(self, response: BeginQuorumEpochResponse, now_ms: int) -> bool:
        part = messages.only(response.topics)
        if response.error_code != ErrorCode.NONE or part is None:
            return False
        done = self.common_answer(messages.answer(part.error_code, part, response.node_endpoints), now_ms)
        if done is not None:
            return done
        return part.error_code == ErrorCode.NONE

    def handle_end_response(self, voter_id: int, response: EndQuorumEpochResponse, now_ms: int) -> bool:
        part = messages.only(response.topics)
        if response.error_code != ErrorCode.NONE or part is None:
            return False
        done = self.common_answer(messages.answer(part.error_code, part, response.node_endpoints), now_ms)
        if done is not None:
            return done
        role = self._quorum.role
        if part.error_code == ErrorCode.NONE and isinstance(role, Resigned):
            role.unreported.discard(voter_id)
            return True
        return False

    # -- time

    def act(self, now_ms: int) -> None:
        """The role's own actions: time out, ask for votes, count them."""
        role = self._quorum.role
        if isinstance(role, Unattached):
            self._act_unattached(role, now_ms)
        elif isinstance(role, Follower):
            self._act_follower(role, now_ms)
        elif isinstance(role, Prospective):
            self._act_prospective(role, now_ms)
        elif isinstance(role, Candidate):
            self._act_candidate(role, now_ms)
        elif isinstance(role, Resigned):
            self._act_resigned(role, now_ms)

    def _act_unattached(self, role: Unattached, now_ms: int) -> None:
        quorum = self._quorum
        if quorum.stands and not quorum.stopping and role.expired(now_ms):
            quorum.become_prospective(now_ms)

    def _act_follower(self, role: Follower, now_ms: int) -> None:
        quorum = self._quorum
        if quorum.stands and not quorum.stopping and role.expired(now_ms):
            quorum.become_prospective(now_ms)

    def _act_prospective(self, role: Prospective, now_ms: int) -> None:
        if role.tally.is_won:
            self._stand(now_ms)
        elif role.tally.is_lost or role.expired(now_ms):
            self._give_up(role, now_ms)
        else:
            self._ask_for_votes(role, now_ms, pre_vote=True)

    def _give_up(self, role: Prospective, now_ms: int) -> None:
        quorum = self._quorum
        followed = None if role.endpoint is None else role.leader_id
        quorum.events.emit(PreVoteLost(role.epoch, followed))
        if role.leader_id is not None and role.endpoint is not None:
            quorum.become_follower(role.epoch, role.leader_id, now_ms, role.endpoint)
            if role.leader_id not in quorum.voters:
                # It was removed and leads no longer than that takes: the others hear so within moments.
                wait = quorum.config.lost_leader_backoff_ms
                quorum.role.deadline_ms = now_ms + wait + quorum.random.below(wait + 1)
        else:
            quorum.become_unattached(role.epoch, now_ms)

    def _stand(self, now_ms: int) -> None:
        self._quorum.become_candidate(now_ms)

    def _act_candidate(self, role: Candidate, now_ms: int) -> None:
        quorum = self._quorum
        if role.tally.is_won:
            self._leading.begin(quorum.become_leader(now_ms), role.tally.granted, now_ms)
        elif role.expired(now_ms):
            quorum.events.emit(ElectionLost(role.epoch))
            quorum.become_prospective(now_ms)
        elif not role.tally.is_lost:
            self._ask_for_votes(role, now_ms, pre_vote=False)

    def _act_resigned(self, role: Resigned, now_ms: int) -> None:
        quorum = self._quorum
        leader = quorum.get(quorum.me.node_id)
        if leader is not None:
            for voter_id in sorted(role.unreported):
                if quorum.requests.is_free(voter_id, now_ms):
                    request = messages.end_quorum_epoch(
                        quorum.cluster_id, leader, role.epoch, role.preferred, quorum.config.listener_name
                    )
                    quorum.send(voter_id, request, now_ms)
        if role.expired(now_ms) and not quorum.stopping:
            # A new epoch, so that this node is no longer named as leader.
            quorum.become_unattached(quorum.rules.next_epoch(role.epoch), now_ms)

    def _ask_for_votes(self, role: Prospective | Candidate, now_ms: int, *, pre_vote: bool) -> None:
        quorum = self._quorum
        durable_end = quorum.durability.durable_end
        if not pre_vote and not quorum.rules.may_ask_for_votes(quorum.log.end_offset, durable_end):
            return  # `log_synced` comes, and asks then
        for voter_id in role.tally.unrecorded:
            voter = quorum.voters.get(voter_id)
            if voter is not None and quorum.requests.is_free(voter_id, now_ms):
                self._ask(voter, role, now_ms, pre_vote=pre_vote)

    def _ask(self, voter: Voter, role: Prospective | Candidate, now_ms: int, *, pre_vote: bool) -> None:
        quorum = self._quorum
        request = messages.vote(quorum.cluster_id, quorum.me, voter, role.epoch, quorum.log_end, pre_vote=pre_vote)
        quorum.send(voter.node_id, request, now_ms)

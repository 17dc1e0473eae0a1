"""Getting a leader: rules 133-140, and what this package adds for a leader that is known to be gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tanist.quorum import (
    Elected,
    ElectionState,
    IllegalTransition,
    LeaderChanged,
    NotLeader,
    QuorumInconsistent,
    RaftConfig,
    ReplicaKey,
    Reply,
    SaveElectionState,
    Send,
)
from tanist.quorum.roles import TRANSITIONS, Leader, Tally, diagram, is_allowed
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import ZERO_UUID
from tanist.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.vote_request import VoteRequest
from tanist.wire.messages.vote_response import VoteResponse
from tests.quorum.quorum_kit import (
    ME,
    Kit,
    begin,
    end,
    error_of,
    fetched,
    granted,
    log_of,
    part_of,
    vote,
)
from tests.quorum.quorum_network import directory

SELF = ReplicaKey(ME, directory(ME))


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))


class TestStart:
    """Rule 133."""

    @pytest.mark.parametrize(
        ("stored", "batches", "role", "epoch"),
        [
            (ElectionState(), [], "Unattached", 0),
            (ElectionState(3), [], "Unattached", 3),
            (ElectionState(3), [(5, 1)], "Unattached", 5),
            (ElectionState(3, leader_id=ME), [(5, 1)], "Unattached", 5),
            (ElectionState(3, leader_id=ME), [(3, 1)], "Resigned", 3),
            (ElectionState(3, None, SELF), [(2, 1)], "Candidate", 3),
            (ElectionState(3, None, ReplicaKey(ME, ZERO_UUID)), [], "Candidate", 3),
            (ElectionState(3, None, ReplicaKey(ME, directory(77))), [], "Unattached", 3),
            (ElectionState(3, 1, key(1)), [(3, 1)], "Follower", 3),
            (ElectionState(3, 1, SELF), [(3, 1)], "Candidate", 3),
            (ElectionState(3, 9), [(3, 1)], "Unattached", 3),
            (ElectionState(3, None, key(2)), [], "Unattached", 3),
        ],
    )
    def test_role_of_a_node_that_starts(
        self, stored: ElectionState, batches: list[tuple[int, int]], role: str, epoch: int
    ) -> None:
        kit = Kit(stored=stored, log=log_of(batches))
        assert (kit.node.role, kit.node.epoch) == (role, epoch)

    def test_a_vote_outlives_a_restart(self) -> None:
        kit = Kit(stored=ElectionState(3, None, key(2)))
        assert not part_of(kit.ask(vote(3, 1, 0, 0))).vote_granted
        assert part_of(kit.ask(vote(3, 2, 0, 0))).vote_granted

    def test_a_former_leader_does_not_append_in_its_epoch_again(self) -> None:
        kit = Kit(stored=ElectionState(3, leader_id=ME), log=log_of([(3, 2)]))
        with pytest.raises(NotLeader):
            kit.node.append([b"x"], 0, 0)
        kit.become_leader()
        assert kit.node.epoch > 3

    def test_the_only_voter_leads_at_once(self) -> None:
        for stored in (ElectionState(), ElectionState(4, leader_id=ME), ElectionState(4, None, SELF)):
            kit = Kit((ME,), stored=stored)
            assert kit.node.is_leader
            assert kit.of(Elected)

    def test_an_observer_does_not_stand_for_election(self) -> None:
        kit = Kit((1, 2), node_id=ME)
        assert not kit.node.is_voter
        kit.pass_time(20_000)
        assert kit.node.role == "Unattached"
        assert not kit.sent(VoteRequest)
        assert kit.sent(FetchRequest)

    def test_a_node_is_started_once(self) -> None:
        kit = Kit()
        with pytest.raises(ValueError, match="twice"):
            kit.node.start(0)


class TestElection:
    """Rules 134 and 137."""

    def test_timeout_is_at_least_the_configured_and_below_twice_that(self) -> None:
        waits = set()
        for seed in range(200):
            kit = Kit(seed=seed)
            kit.role_timeout()
            deadline_ms = kit.node._quorum.role.deadline_ms
            assert deadline_ms is not None
            waits.add(deadline_ms - kit.now_ms)
        assert min(waits) >= 1000
        assert max(waits) < 2000
        assert len(waits) > 100

    def test_who_has_just_started_asks_for_pre_votes_soon_in_its_slot_of_the_backoff(self) -> None:
        """A whole cluster starts at once, and nobody minds a pre-vote: it need not wait for a second."""
        for batches in ([], [(5, 1)]):
            kits = [Kit(seed=seed, log=log_of(batches)) for seed in range(200)]
            waits = {kit.node._quorum.role.deadline_ms for kit in kits if kit.node.role == "Unattached"}
            assert waits <= set(range(1, 100 // 3))
            assert len(waits) > 20
            assert {kit.node.role for kit in kits} == {"Unattached", "Prospective"}, "the random delay may be 0"

    def test_a_timeout_leads_to_pre_votes_in_the_same_epoch_and_stores_nothing(self) -> None:
        kit = Kit(stored=ElectionState(5), log=log_of([(5, 3)]))
        before = len(kit.effects)
        kit.role_timeout()
        assert (kit.node.role, kit.node.epoch) == ("Prospective", 5)
        asked = kit.sent(VoteRequest)
        assert [send.to for send in asked] == [1, 2]
        for send in asked:
            request: Any = send.request
            part = part_of(request)
            assert (part.pre_vote, part.replica_epoch) == (True, 5)
            assert (part.last_offset_epoch, part.last_offset) == (5, 3)
            assert part.replica_directory_id == directory(ME)
            assert (request.voter_id, part.voter_directory_id) == (send.to, directory(send.to))
        assert not [effect for effect in kit.effects[before:] if isinstance(effect, SaveElectionState)]

    def test_a_majority_of_pre_votes_leads_to_candidacy_whose_vote_is_saved_before_it_is_reported(self) -> None:
        kit = Kit(stored=ElectionState(5))
        kit.role_timeout()
        effects = kit.respond(kit.sent(VoteRequest)[0], granted(5))
        assert (kit.node.role, kit.node.epoch) == ("Candidate", 6)
        kinds = [type(effect) for effect in effects]
        assert effects[kinds.index(SaveElectionState)] == SaveElectionState(ElectionState(6, None, SELF))
        assert kinds.index(SaveElectionState) < kinds.index(Send)
        assert not part_of(kit.last_sent(VoteRequest).request).pre_vote

    def test_a_majority_of_votes_makes_a_leader(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        assert kit.node.role == "Candidate"
        effects = kit.respond(kit.sent(VoteRequest)[0], granted(5))
        assert kit.node.is_leader
        assert SaveElectionState(ElectionState(5, ME, SELF)) in effects
        assert LeaderChanged(ME, 5) in effects
        assert kit.node.leader_id == ME

    def test_votes_are_asked_for_when_the_log_is_durable_and_pre_votes_before(self) -> None:
        """What a voter has granted it grants again without another look: the log must outlive a loss of power."""
        kit = Kit(stored=ElectionState(5), log=log_of([(5, 3)]))
        kit.auto_sync = False
        kit.node._quorum.durability.durable_end = 2
        kit.node._quorum.log_grew()
        kit.role_timeout()
        kit.respond(kit.sent(VoteRequest)[0], granted(5))
        assert (kit.node.role, kit.node.epoch) == ("Candidate", 6)

        def asked() -> list[int]:
            sent = (send for send in kit.sent(VoteRequest) if not part_of(send.request).pre_vote)
            return sorted(send.to for send in sent)

        assert asked() == []
        kit.take(kit.node.log_synced(3, kit.now_ms))
        assert asked() == [1, 2]

    def test_five_voters_need_three_votes(self) -> None:
        kit = Kit((0, 1, 2, 3, 4), stored=ElectionState(5, None, SELF))
        first, second, *_ = kit.sent(VoteRequest)
        kit.respond(first, granted(5))
        assert kit.node.role == "Candidate"
        kit.respond(second, granted(5))
        assert kit.node.is_leader

    def test_a_vote_counts_once(self) -> None:
        kit = Kit((0, 1, 2, 3, 4), stored=ElectionState(5, None, SELF))
        first = kit.sent(VoteRequest)[0]
        kit.respond(first, granted(5))
        kit.respond(first, granted(5))
        assert kit.node.role == "Candidate"

    def test_a_vote_of_an_earlier_election_does_not_count(self) -> None:
        kit = Kit((0, 1, 2, 3, 4), stored=ElectionState(5, None, SELF))
        old = kit.sent(VoteRequest)
        kit.role_timeout()
        assert kit.node.role == "Prospective"
        for send in old:
            kit.respond(send, granted(5))
        assert kit.node.role == "Prospective"

    def test_a_pre_vote_that_comes_late_is_no_vote(self) -> None:
        kit = Kit((0, 1, 2, 3, 4), stored=ElectionState(5))
        kit.role_timeout()
        a, b, c, d = kit.sent(VoteRequest)
        kit.respond(a, granted(5))
        kit.respond(b, granted(5))
        assert kit.node.role == "Candidate"
        kit.respond(c, granted(5))
        kit.respond(d, granted(6))
        assert kit.node.role == "Candidate"

    def test_a_refused_candidate_waits_out_its_timeout_and_asks_nobody(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        deadline = kit.node._quorum.role.deadline_ms
        assert deadline is not None
        for send in kit.sent(VoteRequest):
            kit.respond(send, granted(5, grant=False))
        count = len(kit.sent(VoteRequest))
        kit.pass_time(deadline - 1)
        assert kit.node.role == "Candidate"
        assert len(kit.sent(VoteRequest)) == count
        kit.pass_time(1)
        assert (kit.node.role, kit.node.epoch) == ("Prospective", 5)

    def test_a_refused_prospective_goes_back_to_its_leader(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        kit.role_timeout()
        assert kit.node.role == "Prospective"
        for send in kit.sent(VoteRequest):
            kit.respond(send, granted(5, leader_id=1, grant=False))
        assert (kit.node.role, kit.node.leader_id) == ("Follower", 1)

    def test_a_refused_prospective_without_a_leader_becomes_unattached(self) -> None:
        kit = Kit(stored=ElectionState(5))
        kit.role_timeout()
        for send in kit.sent(VoteRequest):
            kit.respond(send, granted(5, grant=False))
        assert (kit.node.role, kit.node.epoch) == ("Unattached", 5)

    def test_an_unanswered_prospective_gives_up_in_time(self) -> None:
        kit = Kit(stored=ElectionState(5))
        kit.role_timeout()
        kit.role_timeout()
        assert kit.node.role == "Unattached"

    def test_a_lost_request_for_a_vote_is_repeated(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        kit.respond(kit.sent(VoteRequest)[0], None)
        count = len(kit.sent(VoteRequest))
        kit.pass_time(kit.config.retry_backoff_ms)
        assert [send.to for send in kit.sent(VoteRequest)[count:]] == [1]

    def test_a_voter_that_does_not_know_pre_votes_is_not_waited_for(self) -> None:
        kit = Kit(stored=ElectionState(5))
        kit.role_timeout()
        kit.respond(kit.sent(VoteRequest)[0], VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        assert (kit.node.role, kit.node.epoch) == ("Candidate", 6)

    def test_a_higher_epoch_in_an_answer_ends_the_candidacy(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        effects = kit.respond(kit.sent(VoteRequest)[0], granted(9, grant=False, error=ErrorCode.FENCED_LEADER_EPOCH))
        assert (kit.node.role, kit.node.epoch) == ("Unattached", 9)
        assert SaveElectionState(ElectionState(9)) in effects

    def test_a_candidate_that_learns_of_a_leader_follows(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        kit.respond(kit.sent(VoteRequest)[0], granted(5, leader_id=2, grant=False))
        assert (kit.node.role, kit.node.leader_id) == ("Follower", 2)
        assert kit.node.leader_endpoint == ("node2", 9002)


class TestVoteRequest:
    """Rules 135 and 136; the grant table itself is in scenarios.yaml."""

    def test_checks_in_order(self) -> None:
        kit = Kit(stored=ElectionState(5), log=log_of([(5, 3)]))
        assert error_of(kit.ask(vote(6, 1, 5, 3, cluster_id="another"))) == "INCONSISTENT_CLUSTER_ID"
        assert error_of(kit.ask(vote(6, 1, 5, 3, topic="orders"))) == "INVALID_REQUEST"
        assert error_of(kit.ask(vote(6, 1, 5, 3, partition=1))) == "INVALID_REQUEST"
        assert error_of(kit.ask(vote(6, 1, 5, -1))) == "INVALID_REQUEST"
        assert error_of(kit.ask(vote(6, 1, -1, 3))) == "INVALID_REQUEST"
        assert error_of(kit.ask(vote(6, 1, 6, 3))) == "INVALID_REQUEST"
        assert error_of(kit.ask(vote(5, 1, 6, 3, pre_vote=True))) == "INVALID_REQUEST"
        assert kit.node.epoch == 5
        assert error_of(kit.ask(vote(4, 1, 3, 3))) == "FENCED_LEADER_EPOCH"
        assert error_of(kit.ask(vote(5, 1, 5, 3, pre_vote=True))) == "NONE"

    def test_no_cluster_id_is_accepted(self) -> None:
        assert error_of(Kit(stored=ElectionState(5)).ask(vote(6, 1, 0, 0, cluster_id=None))) == "NONE"

    @pytest.mark.parametrize(("to_id", "to_directory"), [(2, directory(2)), (ME, directory(9))])
    def test_a_vote_for_another_voter_raises_the_epoch_and_is_refused(self, to_id: int, to_directory: UUID) -> None:
        kit = Kit(stored=ElectionState(5))
        response = kit.ask(vote(6, 1, 0, 0, to_id=to_id, to_directory=to_directory))
        assert error_of(response) == "INVALID_VOTER_KEY"
        assert (kit.node.epoch, part_of(response).vote_granted) == (6, False)

    def test_version_zero_does_not_say_which_voter_it_is_for(self) -> None:
        assert error_of(Kit(stored=ElectionState(5)).ask(vote(6, 1, 0, 0, to_id=-1))) == "NONE"

    def test_a_higher_epoch_unseats_a_leader_even_if_the_vote_is_refused(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF), log=log_of([(4, 3)]))
        kit.become_leader()
        response = kit.ask(vote(8, 1, 0, 0))
        assert (kit.node.role, kit.node.epoch) == ("Unattached", 8)
        assert not part_of(response).vote_granted
        assert part_of(response).leader_epoch == 8

    @pytest.mark.parametrize(
        ("last_epoch", "last_offset", "grant"),
        [(4, 99, False), (5, 2, False), (5, 3, True), (5, 4, True), (6, 1, True)],
    )
    @pytest.mark.parametrize("pre_vote", [False, True])
    def test_logs_are_compared_by_epoch_and_then_by_offset(
        self, last_epoch: int, last_offset: int, grant: bool, pre_vote: bool
    ) -> None:
        kit = Kit(stored=ElectionState(5), log=log_of([(5, 3)]))
        response = kit.ask(vote(7, 1, last_epoch, last_offset, pre_vote=pre_vote))
        assert part_of(response).vote_granted == grant

    def test_a_granted_vote_is_saved_before_it_is_reported_and_waits_for_the_candidate(self) -> None:
        kit = Kit(stored=ElectionState(5))
        kit.now_ms = 900
        effects = kit.receive(vote(6, 1, 0, 0))
        saved = [effect.state for effect in effects if isinstance(effect, SaveElectionState)]
        assert saved[-1] == ElectionState(6, None, key(1))
        kinds = [type(effect) for effect in effects]
        assert kinds.index(Reply) > max(i for i, kind in enumerate(kinds) if kind is SaveElectionState)
        assert (kit.node._quorum.role.deadline_ms or 0) >= 900 + 1000

    def test_a_pre_vote_stores_nothing(self) -> None:
        kit = Kit(stored=ElectionState(5))
        effects = kit.receive(vote(5, 1, 0, 0, pre_vote=True))
        assert [type(effect) for effect in effects] == [Reply]
        assert part_of(kit.ask(vote(5, 2, 0, 0))).vote_granted

    def test_one_vote_an_epoch_by_id_and_directory(self) -> None:
        kit = Kit(stored=ElectionState(5))
        assert part_of(kit.ask(vote(6, 1, 0, 0))).vote_granted
        assert part_of(kit.ask(vote(6, 1, 0, 0))).vote_granted
        assert not part_of(kit.ask(vote(6, 2, 0, 0))).vote_granted
        assert not part_of(kit.ask(vote(6, 1, 0, 0, from_directory=directory(8)))).vote_granted

    def test_a_prospective_node_votes_and_asks_on(self) -> None:
        kit = Kit(stored=ElectionState(5))
        kit.role_timeout()
        effects = kit.receive(vote(5, 1, 0, 0))
        assert SaveElectionState(ElectionState(5, None, key(1))) in effects
        assert (kit.node.role, kit.node.stored.voted) == ("Prospective", key(1))

    def test_an_observer_may_ask_and_be_asked(self) -> None:
        assert part_of(Kit((1, 2), node_id=ME, stored=ElectionState(5)).ask(vote(6, 1, 0, 0))).vote_granted
        assert part_of(Kit(stored=ElectionState(5)).ask(vote(6, 77, 0, 0))).vote_granted

    def test_nobody_votes_for_a_namesake(self) -> None:
        kit = Kit(stored=ElectionState(5))
        response = kit.ask(vote(6, ME, 0, 0, from_directory=directory(9)))
        assert (error_of(response), part_of(response).vote_granted) == ("INVALID_REQUEST", False)
        assert kit.node.stored.voted is None

    def test_a_follower_that_hears_its_leader_refuses_pre_votes(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        assert part_of(kit.ask(vote(5, 2, 0, 0, pre_vote=True))).vote_granted
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5))
        response = kit.ask(vote(5, 2, 0, 0, pre_vote=True))
        assert not part_of(response).vote_granted
        assert (part_of(response).leader_id, response.node_endpoints[0].host) == (1, "node1")


class TestBeginQuorumEpoch:
    """Rule 138."""

    def test_checks(self) -> None:
        kit = Kit(stored=ElectionState(5))
        assert error_of(kit.ask(begin(1, 5, cluster_id="another"))) == "INCONSISTENT_CLUSTER_ID"
        assert error_of(kit.ask(begin(1, 4))) == "FENCED_LEADER_EPOCH"
        assert error_of(kit.ask(begin(3, 5))) == "INVALID_REQUEST"
        assert kit.node.role == "Unattached"

    def test_a_follower_keeps_its_vote(self) -> None:
        kit = Kit(stored=ElectionState(5, None, key(1)))
        effects = kit.receive(begin(1, 5))
        assert SaveElectionState(ElectionState(5, 1, key(1))) in effects
        assert (kit.node.role, kit.node.leader_id) == ("Follower", 1)

    def test_two_leaders_in_one_epoch_are_fatal_and_change_nothing(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        with pytest.raises(QuorumInconsistent):
            kit.receive(begin(2, 5))
        assert (kit.node.role, kit.node.leader_id, kit.node.epoch) == ("Follower", 1, 5)

    def test_anyone_reports_them(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        with pytest.raises(QuorumInconsistent):
            kit.respond(kit.last_sent(FetchRequest), fetched(2, 5, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert (kit.node.role, kit.node.leader_id) == ("Follower", 1)

    def test_a_node_does_not_follow_itself(self) -> None:
        kit = Kit(stored=ElectionState(5))
        with pytest.raises(QuorumInconsistent):
            kit.receive(begin(ME, 5))

    def test_for_another_voter(self) -> None:
        kit = Kit(stored=ElectionState(5))
        assert error_of(kit.ask(begin(1, 6, to_id=2))) == "INVALID_VOTER_KEY"
        assert kit.node.leader_id == 1

    def test_a_leader_tells_all_voters_and_then_those_that_do_not_fetch(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        kit.become_leader()
        assert sorted(send.to for send in kit.sent(BeginQuorumEpochRequest)) == [1, 2]
        part = part_of(kit.last_sent(BeginQuorumEpochRequest).request)
        assert (part.leader_id, part.leader_epoch) == (ME, 5)
        for send in kit.sent(BeginQuorumEpochRequest):
            kit.respond(send, None)
        before = len(kit.sent(BeginQuorumEpochRequest))
        period = kit.config.fetch_timeout_ms // 2
        kit.pass_time(period - 10)
        kit.commit_all([1])
        kit.pass_time(10)
        assert [send.to for send in kit.sent(BeginQuorumEpochRequest)[before:]] == [2]


class TestEndQuorumEpoch:
    """Rules 139 and 140."""

    def test_the_first_preferred_asks_at_once(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        kit.receive(end(1, 5, [ME, 2]))
        assert kit.node.role == "Prospective"

    def test_the_others_wait_by_their_place(self) -> None:
        for preferred, wait in (([2, ME], 500), ([2], 1000), ([], 1000), ([2, 3, 4, ME], 500)):
            kit = Kit(stored=ElectionState(5, 1))
            kit.receive(end(1, 5, preferred))
            assert (kit.node.role, kit.node._quorum.role.deadline_ms) == ("Follower", wait), preferred

    def test_a_node_that_knew_no_leader_heeds_it_too(self) -> None:
        kit = Kit(stored=ElectionState(5))
        kit.receive(end(1, 5, [ME, 2]))
        assert kit.node.role == "Prospective"

    def test_of_an_older_epoch(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        assert error_of(kit.ask(end(2, 4, [ME]))) == "FENCED_LEADER_EPOCH"
        assert error_of(kit.ask(end(1, 5, [ME], cluster_id="another"))) == "INCONSISTENT_CLUSTER_ID"
        assert kit.node.role == "Follower"

    def test_a_leader_that_leaves_says_so_until_it_is_heard(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        kit.become_leader()
        kit.take(kit.node.resign(kit.now_ms))
        assert (kit.node.role, kit.node.leader_id) == ("Resigned", None)
        one, two = kit.sent(EndQuorumEpochRequest)
        request: Any = one.request
        assert request.leader_endpoints[0].host == "node0"
        kit.respond(one, Kit(stored=ElectionState(5, ME), node_id=1).ask(end(ME, 5, [1, 2])))
        kit.respond(two, None)
        kit.pass_time(kit.config.retry_backoff_ms)
        assert [send.to for send in kit.sent(EndQuorumEpochRequest)] == [1, 2, 2]

    def test_it_moves_on_to_an_epoch_of_nobody(self) -> None:
        kit = Kit(stored=ElectionState(5, leader_id=ME))
        assert part_of(kit.ask(vote(5, 1, 0, 0))).leader_id == ME
        effects = kit.role_timeout()
        assert (kit.node.role, kit.node.epoch) == ("Unattached", 6)
        assert SaveElectionState(ElectionState(6)) in effects

    def test_refuses_votes_of_its_own_epoch_only(self) -> None:
        kit = Kit(stored=ElectionState(5, leader_id=ME))
        assert not part_of(kit.ask(vote(5, 1, 0, 0))).vote_granted
        assert part_of(kit.ask(vote(6, 1, 0, 0))).vote_granted

    def test_followers_do_not_resign(self) -> None:
        with pytest.raises(NotLeader):
            Kit(stored=ElectionState(5, 1)).node.resign(0)

    def test_a_node_that_shuts_down_hands_over_and_stands_for_nothing(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        kit.become_leader()
        kit.take(kit.node.shutdown(kit.now_ms))
        assert (kit.node.role, kit.node.has_handed_over) == ("Resigned", False)
        kit.pass_time(60_000)
        assert (kit.node.role, kit.node.epoch) == ("Resigned", 5)
        kit.receive(begin(1, 6))
        assert kit.node.has_handed_over
        kit.pass_time(60_000)
        assert kit.node.role == "Follower"

    def test_who_is_elected_while_shutting_down_leaves_at_once(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        kit.take(kit.node.shutdown(0))
        effects = kit.respond(kit.sent(VoteRequest)[0], granted(5))
        assert (kit.node.role, kit.node.epoch) == ("Resigned", 5)
        assert [effect.request.API_KEY for effect in effects if isinstance(effect, Send)] == [54, 54]


class TestCheckQuorum:
    """Rule 141."""

    def test_a_leader_that_nobody_fetches_from_resigns(self) -> None:
        kit = Kit(stored=ElectionState(5, None, SELF))
        kit.become_leader()
        kit.commit_all()
        kit.pass_time(2999)
        assert kit.node.is_leader
        kit.pass_time(1)
        assert kit.node.role == "Resigned"
        assert [part_of(send.request).leader_epoch for send in kit.sent(EndQuorumEpochRequest)] == [5, 5]

    def test_an_only_voter_does_not(self) -> None:
        kit = Kit((ME,))
        kit.pass_time(1_000_000)
        assert kit.node.is_leader

    def test_of_five_two_others_must_fetch(self) -> None:
        kit = Kit((0, 1, 2, 3, 4), stored=ElectionState(5, None, SELF))
        kit.become_leader()
        for _ in range(3):
            kit.pass_time(1400)
            kit.commit_all([1])
        assert kit.node.role == "Resigned"

    def test_who_fetches_by_turns_keeps_it(self) -> None:
        kit = Kit((0, 1, 2, 3, 4), stored=ElectionState(5, None, SELF))
        kit.become_leader()
        for turn in range(12):
            kit.pass_time(1400)
            kit.commit_all([1 + turn % 4])
        assert kit.node.is_leader


class TestLostLeader:
    """Ours: a follower whose leader's process is gone need not wait for the fetch timeout."""

    def test_pre_votes_within_the_bound(self) -> None:
        for seed in range(20):
            kit = Kit(stored=ElectionState(5, 1), seed=seed)
            kit.take(kit.node.peer_lost(1, 0))
            kit.pass_time(kit.config.lost_leader_backoff_ms)
            assert kit.node.role == "Prospective"

    def test_followers_take_turns(self) -> None:
        """Of the two that are left, the first to ask asks in the first half of the bound, the other in the second."""
        for seed in range(20):
            first = Kit(stored=ElectionState(5, 2), seed=seed)
            second = Kit(stored=ElectionState(5, 2), node_id=1, seed=seed)
            for kit in (first, second):
                kit.take(kit.node.peer_lost(2, 0))
            sooner, later = (kit.node._quorum.role.deadline_ms for kit in (first, second))
            assert sooner is not None
            assert later is not None
            assert sooner < 50 <= later < 100

    def test_anyone_also_lost_it_grants_the_pre_vote(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5))
        assert not part_of(kit.ask(vote(5, 2, 0, 0, pre_vote=True))).vote_granted
        kit.take(kit.node.peer_lost(1, 0))
        assert part_of(kit.ask(vote(5, 2, 0, 0, pre_vote=True))).vote_granted
        assert not part_of(kit.ask(vote(5, 2, 0, 0))).vote_granted, "only a pre-vote: this epoch has its leader"

    def test_a_leader_that_answers_again_is_not_lost(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        kit.take(kit.node.peer_lost(1, 0))
        kit.now_ms = kit.config.retry_backoff_ms
        kit.node._quorum.role.deadline_ms = 1000
        kit.take(kit.node.tick(kit.now_ms))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5))
        assert not part_of(kit.ask(vote(5, 2, 0, 0, pre_vote=True))).vote_granted
        assert kit.node._quorum.role.deadline_ms == kit.now_ms + kit.config.fetch_timeout_ms

    def test_who_is_cut_off_from_a_leader_that_others_see_does_not_pester_them(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        asked_at = []
        while kit.now_ms < 20_000:
            kit.take(kit.node.peer_lost(1, kit.now_ms))
            before = len(kit.sent(VoteRequest))
            kit.pass_time(20)
            new = kit.sent(VoteRequest)[before:]
            if new:
                asked_at.append(kit.now_ms)
            for send in new:
                kit.respond(send, granted(5, leader_id=1, grant=False))
        assert 5 < len(asked_at) < 25
        assert kit.node.epoch == 5

    def test_others_being_lost_means_nothing(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        before = kit.node._quorum.role.deadline_ms
        kit.take(kit.node.peer_lost(2, 0))
        assert (kit.node.role, kit.node._quorum.role.deadline_ms) == ("Follower", before)

    def test_a_leader_that_says_goodbye_is_lost_to_all_it_reported(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        kit.respond(kit.last_sent(FetchRequest), fetched(1, 5))
        kit.receive(end(1, 5, [2, ME]))
        assert part_of(kit.ask(vote(5, 2, 0, 0, pre_vote=True))).vote_granted


class TestRoles:
    def test_only_changes_of_the_table_are_made(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        with pytest.raises(IllegalTransition):
            kit.node._quorum.become_leader(0)
        with pytest.raises(IllegalTransition):
            kit.node._quorum.become_resigned(0)
        assert kit.node.role == "Follower"

    def test_epochs_do_not_go_back(self) -> None:
        kit = Kit(stored=ElectionState(5))
        with pytest.raises(IllegalTransition):
            kit.node._quorum.become_unattached(4, 0)
        assert kit.node.epoch == 5

    def test_nobody_but_a_candidate_becomes_leader(self) -> None:
        assert {t.source.NAME for t in TRANSITIONS if t.target is Leader} == {"Candidate"}
        assert not is_allowed(Leader, Leader)

    def test_tally(self) -> None:
        tally = Tally((0, 1, 2, 3), 3, 0)
        tally.record(1, False)
        assert (tally.is_won, tally.is_lost, tally.unrecorded) == (False, False, (2, 3))
        tally.record(2, False)
        assert tally.is_lost
        tally.record(1, True)
        tally.record(3, True)
        tally.record(9, True)
        assert tally.is_won
        tally.record(3, False)
        assert tally.is_won

    def test_config_is_checked(self) -> None:
        with pytest.raises(ValueError, match="election_timeout_ms"):
            RaftConfig(election_timeout_ms=0)
        with pytest.raises(ValueError, match="retry_backoff_ms"):
            RaftConfig(retry_backoff_ms=-1)


def test_the_diagram_in_the_docs_is_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "quorum.md").read_text()
    assert f"```mermaid\n{diagram()}\n```" in page

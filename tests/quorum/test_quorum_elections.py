"""Getting a leader: how a node starts, stands for election and changes its role (rules 133, 134)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tanist.lab.scenarios.quorum_node import ME, directory, granted, key, log_of, part_of, vote
from tanist.quorum import (
    BecameQuorumLeader,
    ElectionState,
    IllegalTransition,
    NotLeader,
    QuorumLeaderChanged,
    RaftConfig,
    ReplicaKey,
    SaveElectionState,
    Send,
)
from tanist.quorum.state.roles import TRANSITIONS, Leader, Tally, diagram, is_allowed
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import ZERO_UUID
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.vote_request import VoteRequest
from tanist.wire.messages.vote_response import VoteResponse
from tests.quorum.quorum_kit import SELF, Kit


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
            assert kit.of(BecameQuorumLeader)

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
        assert QuorumLeaderChanged(ME, 5) in effects
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
        assert kit.node.endpoint_of(2) == ("node2", 9002)


class TestRoles:
    def test_only_changes_of_the_table_are_made(self) -> None:
        kit = Kit(stored=ElectionState(5, 1))
        with pytest.raises(IllegalTransition):
            kit.node._quorum.become_leader(0)
        with pytest.raises(IllegalTransition):
            kit.node._quorum.become_resigned(0, "CONTROLLER")
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

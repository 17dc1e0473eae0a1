"""A leader without followers, and followers without a leader (rule 141); what this package adds for a leader that is
known to be gone.
"""

from __future__ import annotations

from tanist.lab.scenarios.quorum_node import ME, end, fetched, granted, part_of, vote
from tanist.quorum import (
    ElectionState,
)
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.vote_request import VoteRequest
from tests.quorum.quorum_kit import SELF, Kit


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

"""Answers to requests for votes and pre-votes (rules 135-137)."""

from __future__ import annotations

from uuid import UUID

import pytest

from tanist.lab.scenarios.quorum_node import ME, directory, fetched, key, log_of, part_of, vote
from tanist.quorum import (
    ElectionState,
    Reply,
    SaveElectionState,
)
from tanist.wire.messages.fetch_request import FetchRequest
from tests.quorum.quorum_kit import SELF, Kit, error_of


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

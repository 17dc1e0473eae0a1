"""Epochs that begin and end by request: BeginQuorumEpoch, EndQuorumEpoch, resignation (rules 138-140)."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.lab.scenarios.quorum_node import ME, begin, end, fetched, granted, key, part_of, vote
from tanist.quorum import (
    ElectionState,
    NotLeader,
    QuorumInconsistent,
    SaveElectionState,
    Send,
)
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from tanist.wire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from tanist.wire.messages.fetch_request import FetchRequest
from tanist.wire.messages.vote_request import VoteRequest
from tests.quorum.quorum_kit import SELF, Kit, error_of


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

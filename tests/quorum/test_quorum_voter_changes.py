"""Changes of the voters, one story each: conditions, majorities, cuts, snapshots, joining (KIP-853)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tanist.lab.scenarios.quorum_node import CLUSTER_ID, directory, voters_of
from tanist.quorum import QuorumError, QuorumRules, RaftConfig, Send, VoterSet
from tanist.quorum.storage.voter_history import VoterHistory, to_record
from tanist.quorum.voters import Endpoint
from tanist.quorum.voters import Listener as VoterListener
from tanist.wire.control import KRaftVersionRecord
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import ZERO_UUID
from tanist.wire.messages.update_raft_voter_request import KRaftVersionFeature, Listener, UpdateRaftVoterRequest
from tests.quorum.quorum_checker import Checker, Violation
from tests.quorum.quorum_network import Faults, Network, add_voter, remove_voter, voter_of
from tests.quorum.test_quorum_random import FAST
from tests.quorum.test_quorum_voter_changes_random import ChangesBeforeItsFirstCommit, CountsItselfWhenRemoved

CALM = replace(FAST, fetch_max_wait_ms=50)
"""A leader answers before its followers' patience ends."""


class Story:
    """Voters and controllers that can join them; node 1 leads."""

    def __init__(
        self,
        voters: tuple[int, ...] = (1, 2, 3),
        others: tuple[int, ...] = (4,),
        *,
        rules: QuorumRules | None = None,
        config: RaftConfig = CALM,
        dynamic: bool = True,
    ) -> None:
        self.network = Network(
            5, voters, others, config=config, faults=Faults(delay_ms=2, sync_ms=1), rules=rules, dynamic=dynamic
        )
        self.checker = Checker(self.network)
        self.network.start()
        self.run_until_stable()

    def run_until_stable(self) -> None:
        self.network.run_until(self.checker.agreed, 5_000)

    @property
    def leader_id(self) -> int:
        leader = self.network.leader()
        assert leader is not None
        return leader.node_id

    def ask(self, request: Any, to: int | None = None) -> None:
        self.network.ask(self.leader_id if to is None else to, request)

    def response_error(self) -> str:
        """The error of the one answer there is, once it is there."""
        self.network.run_until(lambda: bool(self.network.answers), 5_000)
        answer: Any = self.network.answers.pop()
        return ErrorCode(answer.error_code).name

    def sets(self) -> set[tuple[int, ...]]:
        return {machine.node.voters.ids for machine in self.network.machines.values() if machine.node is not None}


def other_voter(story: Story) -> int:
    return next(voter_id for voter_id in story.network.node(story.leader_id).voters.ids if voter_id != story.leader_id)


class TestConditions:
    def test_a_voter_is_added_and_removed(self) -> None:
        story = Story()
        story.ask(add_voter(4))
        assert story.response_error() == "NONE"
        story.run_until_stable()
        assert story.sets() == {(1, 2, 3, 4)}
        assert story.network.node(4).is_voter
        story.ask(remove_voter(other_voter(story)))
        assert story.response_error() == "NONE"
        story.run_until_stable()
        assert len(story.sets()) == 1
        assert len(story.network.node(4).voters) == 3

    def test_one_change_at_a_time(self) -> None:
        story = Story((1, 2, 3), (4, 5))
        leader = story.leader_id
        story.network.partition([leader, 4, 5], [node for node in (1, 2, 3) if node != leader])
        story.ask(remove_voter(4), leader)
        assert story.response_error() == "VOTER_NOT_FOUND"
        story.ask(add_voter(4), leader)
        story.network.run_for(30)
        story.ask(add_voter(5), leader)
        assert story.response_error() == "REQUEST_TIMED_OUT"

    def test_a_voter_that_does_not_fetch_is_not_added(self) -> None:
        story = Story()
        story.network.crash(4)
        story.network.run_for(FAST.fetch_timeout_ms * 2)
        before = story.network.machines[story.leader_id].log.end_offset
        story.ask(add_voter(4))
        assert story.response_error() == "REQUEST_TIMED_OUT"
        assert story.network.machines[story.leader_id].log.end_offset == before

    def test_nor_is_one_that_is_a_voter_already(self) -> None:
        story = Story()
        story.ask(add_voter(other_voter(story)))
        assert story.response_error() == "DUPLICATE_VOTER"

    def test_the_directory_is_part_of_the_key(self) -> None:
        story = Story()
        request = remove_voter(other_voter(story))
        request.voter_directory_id = directory(77)
        story.ask(request)
        assert story.response_error() == "VOTER_NOT_FOUND"

    def test_a_follower_refuses(self) -> None:
        story = Story()
        story.ask(add_voter(4), other_voter(story))
        assert story.response_error() == "NOT_LEADER_OR_FOLLOWER"

    def test_the_last_voter_stays(self) -> None:
        story = Story((1,), ())
        story.ask(remove_voter(1))
        assert story.response_error() == "INVALID_REQUEST"

    def test_static_voters_do_not_change(self) -> None:
        story = Story((1, 2, 3), (), dynamic=False)
        story.ask(remove_voter(other_voter(story)))
        assert story.response_error() == "UNSUPPORTED_VERSION"

    def test_not_before_a_commit_of_the_leaders_own_epoch(self) -> None:
        story = Story()
        old = story.leader_id
        others = [node for node in (1, 2, 3) if node != old]
        story.network.partition(others, [old, 4])
        story.network.run_until(lambda: any(story.network.node(node).is_leader for node in others), 5_000)
        new = next(node for node in others if story.network.node(node).is_leader)
        assert story.network.node(new)._quorum.role.committed is None  # type: ignore[attr-defined]
        story.ask(remove_voter(old), new)
        assert story.response_error() == "REQUEST_TIMED_OUT"


class TestRemovedLeader:
    def test_leads_until_its_removal_is_committed_and_then_resigns(self) -> None:
        story = Story()
        removed = story.leader_id
        story.ask(remove_voter(removed))
        assert story.response_error() == "NONE"
        story.run_until_stable()
        assert story.leader_id != removed
        assert not story.network.node(removed).is_voter
        assert removed not in next(iter(story.sets()))

    def test_does_not_count_itself(self) -> None:
        story = Story()
        removed = story.leader_id
        others = [node for node in (1, 2, 3) if node != removed]
        story.network.partition([removed, others[0], 4], [others[1]])
        before = story.network.node(removed).high_watermark
        story.ask(remove_voter(removed), removed)
        story.network.run_for(FAST.fetch_timeout_ms // 2)
        assert story.network.node(removed).high_watermark == before

    def test_counting_itself_is_noticed(self) -> None:
        story = Story(rules=CountsItselfWhenRemoved())
        removed = story.leader_id
        others = [node for node in (1, 2, 3) if node != removed]
        story.network.partition([removed, others[0], 4], [others[1]])
        story.ask(remove_voter(removed), removed)
        with pytest.raises(Violation, match="would still have"):
            story.network.run_for(FAST.fetch_timeout_ms // 2)

    def test_of_two_stands_for_election_while_only_it_has_the_removal(self) -> None:
        """Else nobody could be elected: the other one needs its vote, and lacks a record that it has."""
        story = Story((1, 2), ())
        removed = story.leader_id
        other = other_voter(story)
        story.network.partition([removed], [other])
        story.ask(remove_voter(removed), removed)
        story.network.run_for(5)
        story.network.crash(removed, lose_unsynced=False)
        story.network.heal()
        story.network.start(removed)
        story.network.run_until(lambda: story.sets() == {(other,)}, 5_000)
        story.run_until_stable()
        assert story.leader_id == other


class TestForkedChanges:
    """A change that never leaves its leader, and one by the next leader: their majorities need not meet, unless the
    next leader has committed a record of its own before. Four voters: of three, any two majorities of these meet."""

    def run(self, rules: QuorumRules | None) -> Story:
        story = Story((1, 2, 3, 4), (), rules=rules)
        network = story.network
        old = story.leader_id
        rest = [node for node in (1, 2, 3, 4) if node != old]
        network.partition([old], rest)
        network.lose_in_flight()
        network.run_until(lambda: any(network.node(node).is_leader for node in rest), 5_000)
        new = next(node for node in rest if network.node(node).is_leader)
        with_new, with_old = (node for node in rest if node != new)
        network.lose_in_flight()
        network.partition([new, with_new], [old, with_old])
        return self.fork(story, old, new, with_new)

    def fork(self, story: Story, old: int, new: int, with_new: int) -> Story:
        """The old leader, which has not heard of the new one yet, has removed one of the new leader's side."""
        network = story.network
        role: Any = network.node(old)._quorum.role
        if network.node(old).is_leader:
            voters = to_record(network.node(old).voters.without(with_new), "CONTROLLER")
            network.node(old)._leading.change_voters(role, [voters], network.now_ms)
            network.do(old, network.node(old).tick(network.now_ms))
        story.ask(remove_voter(old), new)
        network.run_for(FAST.fetch_timeout_ms * 10)
        network.heal()
        story.run_until_stable()
        return story

    def test_the_rules_hold_it_off(self) -> None:
        assert self.run(None).response_error() == "REQUEST_TIMED_OUT"

    def test_a_change_before_the_first_commit_is_noticed(self) -> None:
        with pytest.raises((Violation, QuorumError)):
            self.run(ChangesBeforeItsFirstCommit())


class TestLog:
    def test_a_cut_takes_a_set_back(self) -> None:
        story = Story()
        old = story.leader_id
        others = [node for node in (1, 2, 3) if node != old]
        story.network.partition([old, 4], others)
        story.ask(add_voter(4), old)
        story.network.run_for(20)
        assert story.network.node(old).voters.ids == (1, 2, 3, 4)
        story.network.run_until(lambda: any(story.network.node(node).is_leader for node in others), 5_000)
        story.network.heal()
        story.run_until_stable()
        assert story.sets() == {(1, 2, 3)}
        assert story.checker.seen["MetadataLogTruncated"] > 0

    def test_a_snapshot_names_the_voters_of_its_end(self) -> None:
        story = Story()
        story.ask(add_voter(4))
        assert story.response_error() == "NONE"
        story.run_until_stable()
        for node_id in (1, 2, 3, 4):
            assert story.network.snapshot(node_id) is not None
        for node_id in (1, 2, 3, 4):
            story.network.crash(node_id)
        story.network.start()
        story.run_until_stable()
        assert story.sets() == {(1, 2, 3, 4)}

    def test_a_late_controller_learns_the_voters_from_a_snapshot(self) -> None:
        story = Story()
        story.network.crash(4)
        story.ask(remove_voter(other_voter(story)))
        assert story.response_error() == "NONE"
        story.network.run_for(50)
        for node_id in (1, 2, 3):
            story.network.snapshot(node_id)
        machine = story.network.machines[4]
        machine.log = type(machine.log)()
        story.network.start(4)
        story.run_until_stable()
        assert len(story.network.node(4).voters) == 2

    def test_the_history_is_what_the_records_say(self) -> None:
        history = VoterHistory(VoterSet(voters_of((1,))), "CONTROLLER")
        assert history.offset is None
        two = VoterSet([voter_of(1), voter_of(2)])
        history.add([(4, KRaftVersionRecord(k_raft_version=1)), (5, to_record(two, "CONTROLLER"))])
        assert (history.voters, history.offset, history.kraft_version) == (two, 5, 1)
        assert history.as_of(5) == ()
        assert [type(record).__name__ for record in history.as_of(6)] == ["KRaftVersionRecord", "VotersRecord"]
        assert history.truncate_to(5)
        assert history.voters.ids == (1,)
        assert not history.truncate_to(5)
        assert history.truncate_to(4)
        assert history.kraft_version == 0


class TestUpdate:
    def request(self, node_id: int, epoch: int, *, highest: int = 1) -> UpdateRaftVoterRequest:
        return UpdateRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            current_leader_epoch=epoch,
            voter_id=node_id,
            voter_directory_id=directory(node_id),
            listeners=(Listener(name="CONTROLLER", host="elsewhere", port=9000 + node_id),),
            k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=highest),
        )

    def test_a_voter_says_where_it_listens_and_corrects_what_is_wrong(self) -> None:
        """The set names something wrong; the voter sees that, and corrects it."""
        story = Story((1, 2, 3), ())
        leader = story.leader_id
        other = other_voter(story)
        story.ask(self.request(other, story.network.node(leader).epoch))
        assert story.response_error() == "NONE"
        changed = story.network.node(leader).voters.get(other)
        assert changed is not None
        assert changed.host == "elsewhere"
        story.network.run_until(
            lambda: (
                {node.node.voters.get(other) for node in story.network.machines.values() if node.node}
                == {voter_of(other)}
            ),
            5_000,
        )

    def test_refusals(self) -> None:
        story = Story()
        epoch = story.network.node(story.leader_id).epoch
        other = other_voter(story)
        story.ask(self.request(other, epoch - 1))
        assert story.response_error() == "FENCED_LEADER_EPOCH"
        story.ask(self.request(other, epoch, highest=0))
        assert story.response_error() == "INVALID_REQUEST"
        story.ask(self.request(4, epoch))
        assert story.response_error() == "VOTER_NOT_FOUND"


class TestKraftVersion:
    def test_static_voters_become_dynamic(self) -> None:
        story = Story((1, 2, 3), (), dynamic=False)
        leader = story.network.node(story.leader_id)
        reason, effects = leader.upgrade_kraft_version(1, story.network.now_ms)
        assert reason is None
        story.network.do(leader.node_id, effects)
        story.run_until_stable()
        assert {node.node.kraft_version for node in story.network.machines.values() if node.node} == {1}
        assert {voter.directory_id for voter in leader.voters} == {directory(node_id) for node_id in (1, 2, 3)}
        story.ask(remove_voter(other_voter(story)))
        assert story.response_error() == "NONE"

    def test_there_is_no_way_back(self) -> None:
        story = Story()
        leader = story.network.node(story.leader_id)
        assert "cannot be downgraded" in str(leader.upgrade_kraft_version(0, story.network.now_ms)[0])
        assert leader.upgrade_kraft_version(1, story.network.now_ms)[0] is None
        assert "only supports" in str(leader.upgrade_kraft_version(2, story.network.now_ms)[0])

    def test_only_when_every_voters_directory_is_known(self) -> None:
        story = Story((1, 2, 3), (), dynamic=False)
        leader = story.network.node(story.leader_id)
        role: Any = leader._quorum.role
        silent = other_voter(story)
        role.progress.voters[silent].directory_id = ZERO_UUID
        reason, _ = leader.upgrade_kraft_version(1, story.network.now_ms)
        assert reason == f"Controller {silent} has not said that it supports kraft.version 1."


class TestJoining:
    def test_a_controller_makes_itself_a_voter(self) -> None:
        config = replace(CALM, auto_join=True)
        story = Story((1,), (2, 3), config=config)
        story.network.run_until(lambda: story.sets() == {(1, 2, 3)}, 10_000)

    def test_and_takes_the_place_of_one_whose_disk_is_gone(self) -> None:
        config = replace(CALM, auto_join=True)
        story = Story((1, 2, 3), (), config=config)
        lost = other_voter(story)
        entry = story.network.node(story.leader_id).voters.get(lost)
        assert entry is not None
        story.network.crash(lost)
        # The set names another directory of this node than the one that it has.
        leader = story.network.node(story.leader_id)
        quorum = leader._quorum
        role: Any = quorum.role
        stale = voter_of(lost)
        stale = type(stale)(lost, directory(50), stale.host, stale.port, stale.listeners)
        changed = to_record(leader.voters.with_voter(stale), "CONTROLLER")
        leader._leading.change_voters(role, [changed], story.network.now_ms)
        story.network.do(leader.node_id, leader.tick(story.network.now_ms))
        story.network.start(lost)
        story.network.run_until(lambda: story.network.node(lost).is_voter, 10_000)
        story.run_until_stable()
        assert story.sets() == {(1, 2, 3)}

    def test_a_controller_fetches_between_its_requests_to_join(self) -> None:
        """A leader that waits for it to catch up would wait for ever, and hold off every other change."""

        class NeverCaughtUp(QuorumRules):
            def is_caught_up(self, *_: Any) -> bool:
                return False

        config = replace(CALM, auto_join=True, request_timeout_ms=CALM.fetch_timeout_ms)
        story = Story((1,), (2,), config=config, rules=NeverCaughtUp())
        sent: list[str] = []

        def seen(node_id: int, effect: object) -> None:
            story.checker.effect(node_id, effect)  # type: ignore[arg-type]
            if node_id == 2 and isinstance(effect, Send):
                sent.append(type(effect.request).__name__)

        story.network.on_effect = seen
        story.network.run_for(10 * config.fetch_timeout_ms)
        joins = [at for at, name in enumerate(sent) if name == "AddRaftVoterRequest"]
        assert len(joins) > 2
        assert all("FetchRequest" in sent[one:other] for one, other in pairwise(joins))
        story.network.append(1, b"news")
        story.run_until_stable()

    def test_a_leader_answers_one_that_lags_while_it_still_waits(self) -> None:
        """Apache Kafka's controllers, too, fetch nothing while their own request to be added is under way."""
        story = Story((1,), (2,))
        story.network.crash(2)
        story.network.run_for(2 * CALM.fetch_timeout_ms)
        began_ms = story.network.now_ms
        request = add_voter(2)
        request.timeout_ms = 60_000
        story.ask(request)
        assert story.response_error() == "REQUEST_TIMED_OUT"
        assert story.network.now_ms - began_ms <= CALM.request_timeout_ms // 2

    def test_a_leader_with_our_id_and_another_directory_is_not_this_node(self) -> None:
        """Its disk is gone, and with it what it knew; the others still name it as the leader of its epoch."""
        story = Story()
        lost = story.leader_id
        epoch = story.network.node(lost).epoch
        story.network.crash(lost)
        story.network.partition([lost], [node for node in (1, 2, 3, 4) if node != lost])
        story.network.start()
        quorum = story.network.node(lost)._quorum
        story.network.node(lost)._elections.learn(lost, epoch + 7, story.network.now_ms)
        assert (quorum.epoch, quorum.leader_id) == (epoch + 7, None)

    def test_with_static_voters_it_is_fatal(self) -> None:
        story = Story((1, 2, 3), (), dynamic=False)
        node = story.network.node(other_voter(story))
        with pytest.raises(QuorumError, match="is said to be led by this node"):
            node._elections.learn(node.node_id, node.epoch + 1, story.network.now_ms)

    def test_an_observer_that_knows_no_voter_takes_the_answer_of_a_bootstrap_server(self) -> None:
        """Its log names a voter that is gone, and its patience with the leader that it was to follow is over."""
        story = Story((1, 2), (3,))
        story.network.partition([1, 2], [3])
        story.ask(add_voter(3))
        story.network.answers.clear()
        story.network.heal()
        observer = story.network.node(3)
        role: Any = observer._quorum.role
        observer._quorum.voters = VoterSet([])
        role.deadline_ms = story.network.now_ms  # it asks any server from now on, by the servers' own numbers
        story.network.append(story.leader_id, b"news")
        story.network.run_until(lambda: observer.log.end_offset == story.network.node(story.leader_id).log.end_offset)


class TestReports:
    """kraft.version 0: a leader learns from UpdateRaftVoter what it has to write at the upgrade."""

    def story(self) -> tuple[Story, list[tuple[int, int]]]:
        story = Story((1, 2, 3), (), dynamic=False)
        for machine in story.network.machines.values():
            assert machine.node is not None
            machine.node._quorum.own = voter_of(machine.node_id)
            machine.node._quorum.can_become_voter = True
        reports: list[tuple[int, int]] = []

        def seen(node_id: int, effect: object) -> None:
            story.checker.effect(node_id, effect)  # type: ignore[arg-type]
            if isinstance(effect, Send) and isinstance(effect.request, UpdateRaftVoterRequest):
                reports.append((node_id, effect.request.current_leader_epoch))

        story.network.on_effect = seen
        return story, reports

    def test_each_voter_reports_once_in_an_epoch(self) -> None:
        story, reports = self.story()
        leader = story.network.node(story.leader_id)
        story.network.run_for(5 * CALM.fetch_timeout_ms)
        others = [node_id for node_id in (1, 2, 3) if node_id != leader.node_id]
        assert sorted(reports) == [(node_id, leader.epoch) for node_id in others]
        role: Any = leader._quorum.role
        assert role.reported == {node_id: voter_of(node_id) for node_id in others}
        story.network.do(leader.node_id, leader.resign(story.network.now_ms))
        reports.clear()
        story.run_until_stable()
        story.network.run_for(5 * CALM.fetch_timeout_ms)
        assert len(reports) == 2
        assert {epoch for _, epoch in reports} == {story.network.node(story.leader_id).epoch}

    def test_a_leader_that_does_not_answer_is_not_asked_for_ever(self) -> None:
        story, reports = self.story()
        leader = story.leader_id

        def lost(node_id: int, effect: object) -> None:
            if isinstance(effect, Send) and isinstance(effect.request, UpdateRaftVoterRequest):
                reports.append((node_id, effect.request.current_leader_epoch))
                object.__setattr__(effect, "endpoint", Endpoint("nowhere", 9099))

        story.network.on_effect = lost
        story.network.report_lost = False
        story.network.machines[99] = type(story.network.machines[leader])(99)
        story.network.run_for(60 * CALM.fetch_timeout_ms)
        assert set(Counter(reports).values()) == {3}

    def test_the_upgrade_writes_what_was_reported(self) -> None:
        story, _ = self.story()
        other = other_voter(story)
        moved = replace(
            voter_of(other), listeners=(VoterListener("CONTROLLER", "elsewhere", 7),), kraft_versions=(0, 1)
        )
        story.network.node(other)._quorum.own = moved
        story.network.run_for(3 * CALM.fetch_timeout_ms)
        leader = story.network.node(story.leader_id)
        reason, effects = leader.upgrade_kraft_version(1, story.network.now_ms)
        assert reason is None
        story.network.do(leader.node_id, effects)
        found = leader.voters.get(other)
        assert found is not None
        assert (found.listeners, found.endpoint.host) == (moved.listeners, "elsewhere")

    def test_the_upgrade_is_refused_for_a_voter_that_is_too_old(self) -> None:
        story, _ = self.story()
        other = other_voter(story)
        story.network.node(other)._quorum.own = replace(voter_of(other), kraft_versions=(0, 0))
        story.network.run_for(3 * CALM.fetch_timeout_ms)
        reason, _ = story.network.node(story.leader_id).upgrade_kraft_version(1, story.network.now_ms)
        assert reason == f"Controller {other} has not said that it supports kraft.version 1."


class TestOwnEntry:
    @pytest.mark.parametrize("is_leader", [True, False])
    def test_a_voter_whose_versions_differ_corrects_them(self, is_leader: bool) -> None:
        story = Story((1, 2, 3), ())
        node_id = story.leader_id if is_leader else other_voter(story)
        wider = replace(voter_of(node_id), kraft_versions=(0, 2))
        story.network.node(node_id)._quorum.own = wider
        story.network.run_until(
            lambda: {m.node.voters.get(node_id) for m in story.network.machines.values() if m.node} == {wider}, 5_000
        )

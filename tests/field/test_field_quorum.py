"""Bugs of the metadata quorum, and of other Rafts: epochs, pre-votes, leaders that nobody hears, snapshots."""

from __future__ import annotations

from typing import Any

from tanist.lab.mutations.patching import Patch, always, fixed
from tanist.lab.scenarios.quorum_node import ME, granted, log_of, part_of, vote
from tanist.quorum import ElectionState, QuorumRules
from tanist.quorum.elections import Elections
from tanist.quorum.leader import QuorumLeader
from tanist.quorum.state.roles import Prospective, Resigned, Role, Unattached
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.vote_request import VoteRequest
from tests.field.catalogue import bug
from tests.quorum.quorum_kit import Kit, elected


def _is_unattached() -> tuple[Patch, ...]:
    initial_role = QuorumRules.initial_role

    def again(rules: QuorumRules, *args: Any) -> type[Role]:
        role = initial_role(rules, *args)
        return Unattached if role is Resigned else role

    return (Patch(QuorumRules, "initial_role", again),)


@bug("KAFKA-10527", planted=_is_unattached)
def test_a_restarted_leader_has_no_part_in_its_epoch_any_more() -> None:
    """A restarted leader led the same epoch again, and gave the offsets of lost records to others."""
    kit = Kit(stored=ElectionState(5, ME, None), log=log_of([(4, 3)]))
    assert kit.node.role == "Resigned"
    assert not part_of(kit.ask(vote(5, 1, 4, 3))).vote_granted
    kit.become_leader()
    assert kit.node.epoch > 5


@bug("KAFKA-15489, KAFKA-16144", planted=fixed(QuorumLeader, "_check_quorum_deadline", always(None)))
def test_a_leader_that_no_majority_fetches_from_resigns() -> None:
    """A leader that was cut off led on for ever; the mend made an only voter resign as well."""
    kit = elected()
    kit.pass_time(2 * kit.config.fetch_timeout_ms)
    assert not kit.node.is_leader
    alone = Kit((ME,))
    alone.pass_time(1_000_000)
    assert alone.node.is_leader


def _learns_no_epoch_by_a_pre_vote() -> tuple[Patch, ...]:
    common_answer = Elections.common_answer

    def deaf(elections: Elections, answer: Any, now_ms: int) -> bool | None:
        quorum = elections._quorum
        if isinstance(quorum.role, Prospective) and answer.leader_id is None and answer.epoch > quorum.epoch:
            return False
        return common_answer(elections, answer, now_ms)

    return (Patch(Elections, "common_answer", deaf),)


@bug("etcd #8243, openraft #1796", planted=_learns_no_epoch_by_a_pre_vote, apache="never had it")
def test_a_pre_vote_of_a_former_epoch_learns_of_the_present_one() -> None:
    """Nodes of two terms rejected each other's pre-votes for ever, because neither took over the higher term."""
    kit = Kit(stored=ElectionState(1), log=log_of([(1, 3)]))
    kit.role_timeout()
    asked = kit.last_sent(VoteRequest)
    kit.respond(asked, granted(5, grant=False, error=int(ErrorCode.FENCED_LEADER_EPOCH)))
    assert kit.node.epoch == 5
    behind = Kit(stored=ElectionState(1), log=log_of([(1, 3)]))
    behind.ask(vote(5, 1, 1, 2, pre_vote=True))
    assert behind.node.epoch == 5


def _waits_anew() -> tuple[Patch, ...]:
    answer = Elections.vote

    def answered(elections: Elections, source: object, request: VoteRequest, now_ms: int) -> None:
        answer(elections, source, request, now_ms)
        role = elections._quorum.role
        if role.deadline_ms is not None:
            role.deadline_ms = now_ms + 10_000

    return (Patch(Elections, "vote", answered),)


@bug("hashicorp/raft #609", planted=_waits_anew, apache="never had it")
def test_who_grants_a_pre_vote_waits_no_longer_for_it() -> None:
    """A granted pre-vote counted as a sign of the leader, so a node that could not win kept others from standing."""
    kit = Kit(stored=ElectionState(5), log=log_of([(5, 3)]))
    due_ms = kit.node._quorum.role.deadline_ms
    assert due_ms is not None
    for kit.now_ms in range(0, due_ms, 100):
        assert part_of(kit.ask(vote(5, 1, 5, 3, pre_vote=True))).vote_granted
    assert kit.node._quorum.role.deadline_ms == due_ms

"""Each safety rule switched off in turn: the seeded runs, or a directed story where random runs take long, must notice.

A mutant is a `QuorumRules` with one method replaced. The same stories pass with the rules as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tanist.lab.scenarios.quorum_node import directory
from tanist.quorum import ElectionState, LogEnd, QuorumError, QuorumRules, RaftConfig, RaftLog, ReplicaKey
from tanist.quorum.state.roles import Leader, Prospective, Resigned, Role, Unattached, VoteAsk
from tanist.quorum.state.rules import FetchPosition, Validity
from tanist.quorum.storage.batches import encode_values
from tests.quorum.quorum_checker import Checker, Violation
from tests.quorum.quorum_network import Faults, Network
from tests.quorum.test_quorum_random import FAST, run


class CountsWhatIsNotDurable(QuorumRules):
    def own_end(self, log_end: int, durable_end: int) -> int:
        return log_end


class AcknowledgesWhatIsNotDurable(QuorumRules):
    def may_fetch(self, log_end: int, durable_end: int) -> bool:
        return True


class CommitsWithoutAMajority(QuorumRules):
    def commit_offset(self, ends: Sequence[int], epoch_start_offset: int) -> int | None:
        candidate = ends[max(0, len(ends) // 2 - 1)]
        return candidate if candidate > epoch_start_offset else None


class CommitsRecordsOfOlderEpochs(QuorumRules):
    def commit_offset(self, ends: Sequence[int], epoch_start_offset: int) -> int | None:
        candidate = ends[len(ends) // 2]
        return candidate if candidate >= 0 else None


class ForgetsItsVotes(QuorumRules):
    def must_store(self, stored: ElectionState, wanted: ElectionState) -> bool:
        return False


class VotesForAnyLog(QuorumRules):
    def is_up_to_date(self, candidate: LogEnd, own: LogEnd) -> bool:
        return True


class ComparesLogsByOffset(QuorumRules):
    def is_up_to_date(self, candidate: LogEnd, own: LogEnd) -> bool:
        return candidate.offset >= own.offset


class VotesTwice(QuorumRules):
    def grants_vote(self, role: Role, ask: VoteAsk, own: LogEnd) -> bool:
        if isinstance(role, (Unattached, Prospective)):
            return self.is_up_to_date(ask.log_end, own)
        return super().grants_vote(role, ask, own)


class LeadsItsEpochAgain(QuorumRules):
    def initial_role(self, stored: ElectionState, log_end: LogEnd, own_id: int, known_leader: bool) -> type[Role]:
        role = super().initial_role(stored, log_end, own_id, known_leader)
        return Unattached if role is Resigned else role


class StandsInTheSameEpoch(QuorumRules):
    def next_epoch(self, epoch: int) -> int:
        return epoch


class ServesBeforeItKnowsAll(QuorumRules):
    def may_announce(self, high_watermark: int, epoch_start_offset: int) -> bool:
        return True


class SeesNoDivergence(QuorumRules):
    def fetch_position(self, log: RaftLog, offset: int, epoch: int) -> FetchPosition:
        position = super().fetch_position(log, offset, epoch)
        if position.validity is Validity.DIVERGING and offset <= log.end_offset:
            return FetchPosition(Validity.VALID, epoch, offset)
        return position


class CutsWhereTheLeaderSays(QuorumRules):
    def truncation_offset(self, log: RaftLog, leader_end: LogEnd) -> int:
        return min(leader_end.offset, log.end_offset)


class CutsTooMuch(QuorumRules):
    def truncation_offset(self, log: RaftLog, leader_end: LogEnd) -> int:
        return log.start_offset


BY_RNG = [
    CountsWhatIsNotDurable,
    AcknowledgesWhatIsNotDurable,
    CommitsWithoutAMajority,
    ForgetsItsVotes,
    VotesForAnyLog,
    VotesTwice,
    LeadsItsEpochAgain,
    StandsInTheSameEpoch,
    ServesBeforeItKnowsAll,
    SeesNoDivergence,
    CutsTooMuch,
]


@pytest.mark.parametrize("mutant", BY_RNG, ids=lambda mutant: mutant.__name__)
def test_the_seeded_runs_notice(mutant: type[QuorumRules]) -> None:
    for seed in range(60):
        try:
            run(seed, rules=mutant())
        except (QuorumError, AssertionError):
            return
    raise AssertionError(f"60 seeds did not notice that {mutant.__name__}")


# -- directed stories


class Story:
    """Three voters and nobody else; who reaches whom is said, who leads is arranged."""

    def __init__(self, rules: QuorumRules | None, config: RaftConfig = FAST) -> None:
        self.network = Network(7, (1, 2, 3), config=config, faults=Faults(delay_ms=2, sync_ms=2), rules=rules)
        self.checker = Checker(self.network)

    def write_past(self, node_id: int, epoch: int, *values: bytes) -> None:
        """A batch that the node has had since before the story."""
        machine = self.network.machines[node_id]
        log = machine.log
        batch = encode_values(values, base_offset=log.end_offset, epoch=epoch, timestamp=0)
        log.append(memoryview(batch), epoch)
        machine.durable_end = log.end_offset
        machine.saved = ElectionState(epoch)

    def elect(self, node_id: int) -> None:
        """Only this node's time is up."""
        network = self.network
        quorum = network.node(node_id)._quorum
        quorum.role.deadline_ms = network.now_ms
        network.do(node_id, network.node(node_id).tick(network.now_ms))
        network.run_until(lambda: network.node(node_id).is_leader, 5_000)


def older_epochs(rules: QuorumRules | None) -> None:
    """Raft's figure 8: a record of an old epoch on a majority is not committed by that."""
    story = Story(rules, RaftConfig(fetch_max_bytes=1, election_timeout_ms=100, fetch_timeout_ms=400))
    network = story.network
    story.write_past(1, 1, b"old")
    story.write_past(2, 2, b"new")
    for node_id in (1, 3):
        network.machines[node_id].saved = ElectionState(2)
    network.partition([1, 3], [2])
    network.start()
    story.elect(1)
    role = network.node(1)._quorum.role
    assert isinstance(role, Leader)
    network.run_until(lambda: role.progress.voters[3].end_offset == 1, 5_000)
    network.lose_in_flight()
    network.crash(1)
    network.heal()
    story.elect(2)
    network.run_until(lambda: network.node(2).high_watermark > 1, 5_000)
    story.checker.finish()


def longer_but_older(rules: QuorumRules | None) -> None:
    """A log that is longer and older must not win against a committed record."""
    story = Story(rules)
    network = story.network
    story.write_past(1, 1, b"a", b"b", b"c")
    for node_id in (2, 3):
        network.machines[node_id].saved = ElectionState(1)
    network.partition([2, 3], [1])
    network.start(2, 3)
    story.elect(2)
    network.run_until(lambda: network.node(3).high_watermark > 0, 5_000)
    network.crash(2)
    network.heal()
    network.start(1)
    network.run_for(50)
    network.run_until(lambda: network.leader() is not None, 5_000)
    story.checker.finish()


def epoch_the_follower_lacks(rules: QuorumRules | None) -> None:
    """KIP-279: the leader names an epoch that the follower never had."""
    story = Story(rules)
    network = story.network
    for node_id in (1, 2, 3):
        story.write_past(node_id, 1, b"common")
    for node_id in (1, 2):
        story.write_past(node_id, 2, b"x")
        story.write_past(node_id, 2, b"y")
    for value in (b"p", b"q", b"r", b"s"):
        story.write_past(3, 3, value)
    story.write_past(1, 4, b"z")
    network.start()
    story.elect(1)
    network.run_until(story.checker.agreed, 5_000)
    story.checker.finish()


STORIES: list[tuple[Callable[[QuorumRules | None], None], type[QuorumRules]]] = [
    (older_epochs, CommitsRecordsOfOlderEpochs),
    (longer_but_older, ComparesLogsByOffset),
    (epoch_the_follower_lacks, CutsWhereTheLeaderSays),
]


@pytest.mark.parametrize(("story", "mutant"), STORIES, ids=lambda part: part.__name__)
def test_a_directed_story_notices(story: Callable[[QuorumRules | None], None], mutant: type[QuorumRules]) -> None:
    story(None)
    with pytest.raises((Violation, QuorumError, AssertionError)):
        story(mutant())


def test_a_vote_of_another_life_is_not_lost() -> None:
    """Rule 137 in the harness: a crash right after a vote does not take it."""
    network = Network(3, (1, 2, 3), config=FAST)
    network.start()
    network.run_until(lambda: any(m.saved.voted is not None for m in network.machines.values()))
    voter = next(m for m in network.machines.values() if m.saved.voted is not None)
    saved = voter.saved
    network.crash(voter.node_id)
    network.start(voter.node_id)
    assert network.node(voter.node_id).stored.epoch >= saved.epoch
    assert saved.voted is not None
    assert saved.voted in [ReplicaKey(node_id, directory(node_id)) for node_id in (1, 2, 3)]

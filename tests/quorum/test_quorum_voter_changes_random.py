"""Seeded runs in which voters are added and removed under loss, partitions and crashes that lose unsynced data; and
the rules of the changes, switched off one at a time.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tanist.quorum import QuorumError, QuorumRules, VoterSet
from tests.quorum.quorum_checker import Checker
from tests.quorum.quorum_network import Faults, Network, add_voter, remove_voter
from tests.quorum.test_quorum_random import FAST

SHAPES = [((1,), (2, 3)), ((1, 2, 3), (4,)), ((1, 2, 3, 4), (5,)), ((1, 2), (3, 4))]


def run(seed: int, *, rules: QuorumRules | None = None, fault_ms: int = 1200) -> Counter[str]:
    """Faults and changes for a while, then none; safety throughout, liveness at the end."""
    voters, others = SHAPES[seed % len(SHAPES)]
    faults = Faults(loss=[0, 2, 8][seed % 3], duplicate=[0, 10][seed % 2], delay_ms=6, sync_ms=8)
    network = Network(seed, voters, others, config=FAST, faults=faults, rules=rules, dynamic=True)
    checker = Checker(network)
    network.start()
    nodes = list(network.machines)
    rng = network.rng
    written = 0
    network.run_for(150)
    end_ms = network.now_ms + fault_ms
    while network.now_ms < end_ms:
        network.run_for(5 + rng.below(30))
        what = rng.below(100)
        node_id = nodes[rng.below(len(nodes))]
        leader = network.leader()
        if what < 35:
            if leader is not None:
                written += 1
                network.append(leader.node_id, b"%d" % written)
        elif what < 60:
            if leader is not None:
                in_set = node_id in leader.voters
                network.ask(leader.node_id, remove_voter(node_id) if in_set else add_voter(node_id))
        elif what < 70:
            network.crash(leader.node_id if leader is not None and rng.rng(50) else node_id)
        elif what < 84:
            for machine in network.machines.values():
                if machine.node is None:
                    network.start(machine.node_id)
        elif what < 90:
            split = 1 + rng.below(len(nodes) - 1)
            network.partition(nodes[:split], nodes[split:])
        elif what < 94:
            network.snapshot(node_id)
        elif what < 96:
            if leader is not None:
                network.do(leader.node_id, leader.resign(network.now_ms))
        else:
            network.heal()
    network.heal()
    for machine in network.machines.values():
        if machine.node is None:
            network.start(machine.node_id)
    network.run_until(checker.agreed, 8_000)
    leader = network.leader()
    assert leader is not None
    assert network.append(leader.node_id, b"last") is not None
    network.run_until(lambda: all(m.applied[-1:] == [b"last"] for m in network.machines.values()), 8_000)
    checker.finish()
    for answer in network.answers:
        checker.seen[f"{type(answer).__name__} {getattr(answer, 'error_code', 0)}"] += 1
    return checker.seen


SEEDS = int(os.environ.get("TANIST_QUORUM_SEEDS", "40"))
BLOCK = 20


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_safe_while_voters_change_and_live_afterwards(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + BLOCK):
        try:
            seen += run(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
    assert seen["AddRaftVoterResponse 0"] >= BLOCK // 2, seen
    assert seen["RemoveRaftVoterResponse 0"] >= BLOCK // 2, seen
    assert min(seen["SteppedDown"], seen["MetadataLogTruncated"] + seen["SnapshotDownloaded"]) > 0, seen


class CountsWithTheOldSet(QuorumRules):
    def counted_voters(self, before: VoterSet, latest: VoterSet) -> VoterSet:
        return before or latest


class CountsItselfWhenRemoved(QuorumRules):
    def counts_own_end(self, is_voter: bool) -> bool:
        return True


class ChangesTwiceAtOnce(QuorumRules):
    def is_change_done(self, voters_offset: int, committed: int | None) -> bool:
        return True


class ChangesBeforeItsFirstCommit(QuorumRules):
    def is_fenced(self, committed: int | None) -> bool:
        return True

    def is_change_done(self, voters_offset: int, committed: int | None) -> bool:
        return committed is None or voters_offset < committed


class CountsWhatANewVoterHasNotSynced(QuorumRules):
    def syncs(self, is_voter: bool, can_become_voter: bool) -> bool:
        return is_voter


_SEEDS_TO_NOTICE = 80
"""The last mutant shows in seed 54."""

BY_RNG = [CountsWithTheOldSet, CountsItselfWhenRemoved, ChangesTwiceAtOnce, CountsWhatANewVoterHasNotSynced]


@pytest.mark.parametrize("mutant", BY_RNG, ids=lambda mutant: mutant.__name__)
def test_the_seeded_runs_notice(mutant: type[QuorumRules]) -> None:
    for seed in range(_SEEDS_TO_NOTICE):
        try:
            run(seed, rules=mutant())
        except (QuorumError, AssertionError):
            return
    raise AssertionError(f"{_SEEDS_TO_NOTICE} seeds did not notice that {mutant.__name__}")

"""Runs whose voters change: what is drawn, what is survived, what is noticed, and what operators and faults may do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tanist.lab.mutations.examination import hunt
from tanist.lab.mutations.simulator import MUTANTS
from tanist.log.epochs import EpochEntry
from tanist.quorum.voters import ReplicaKey, Voter, VoterSet
from tanist.sim.checkers.violation import Violation
from tanist.sim.checkers.voters import VoterChecks, _agreed_end
from tanist.sim.events import MetadataDiskReplaced
from tanist.sim.run.additions import VOTERS_SHARE
from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import ChaosConfig
from tanist.sim.run.drawing import config_of, operations_of
from tanist.sim.voter_oracle import LogMirror, VoterOracle
from tanist.sim.workload.operations import VOTER_OPERATIONS
from tanist.sim.workload.voter_operations import VoterAdmin
from tanist.sim.world.world import World

CALM = ChaosConfig(
    roles={**dict.fromkeys((1, 2, 3), "broker,controller"), 21: "controller"},
    voters=(1, 2, 3),
    kinds=(),
    fault_time_ms=2_000,
)


def key(node_id: int, directory: int = 0) -> ReplicaKey:
    return ReplicaKey(node_id, UUID(int=1000 * directory + node_id))


def voters(*keys: ReplicaKey) -> VoterSet:
    return VoterSet(Voter(*each, f"node{each.node_id}", 9093) for each in keys)


# -- what is drawn


def test_a_share_of_the_seeds_has_voters_that_change_and_the_option_gives_them_to_all() -> None:
    drawn = [config_of(seed) for seed in range(600)]
    forced = [config_of(seed, voters=True) for seed in range(600)]
    own = [config for config in drawn if config.voters]
    assert abs(len(own) - VOTERS_SHARE * 600) < 30
    assert all(config.voters for config in forced)
    assert all(one == other for one, other in zip(drawn, forced, strict=True) if one.voters)
    for config in forced:
        assert all("controller" in config.roles[node_id] for node_id in config.voters)
    assert {len(config.voters) for config in forced} >= {1, 2, 3, 4, 5}
    assert {config.properties.get("controller.quorum.auto.join.enable") for config in forced} == {None, "true"}


def test_the_operations_are_those_of_the_seed_and_some_on_the_voters() -> None:
    config = config_of(7, voters=True)
    operations = operations_of(7, config)
    others = [each for each in operations if each.kind not in VOTER_OPERATIONS]
    assert others == [each for each in operations_of(7, config_of(7)) if each.kind not in VOTER_OPERATIONS]
    assert {each.kind for each in operations} >= set(VOTER_OPERATIONS)
    assert [each.at_us for each in operations] == sorted(each.at_us for each in operations)
    assert all(hasattr(VoterAdmin, f"_{kind}") for kind in VOTER_OPERATIONS)


# -- a dynamic quorum in the virtual world


def started(config: ChaosConfig = CALM) -> ChaosRun:
    run = ChaosRun(3, config)
    run.world.start()
    assert run.world.run_until(run.world.ready, within_ms=10_000)
    return run


def test_the_first_voters_are_formatted_and_the_others_are_observers() -> None:
    run = started()
    raft = run.world.hosts[21].node.quorum.raft
    assert (raft.kraft_version, raft.voters.ids, raft.is_voter) == (1, (1, 2, 3), False)
    assert run.checkers.voters is not None
    assert run.checkers.voters.oracle.voters == raft.voters


def test_a_voter_whose_disk_is_lost_comes_back_as_another_replica() -> None:
    run = started()
    assert run.checkers.voters is not None
    oracle, host = run.checkers.voters.oracle, run.world.hosts[2]
    before = host.directory_id
    assert oracle.may_lose_disk(2)
    host.kill()
    host.replace_metadata_disk()
    run.checkers.happened(MetadataDiskReplaced(2))
    assert host.directory_id != before
    assert oracle.is_lost(ReplicaKey(2, before))
    assert not oracle.may_lose_disk(3)
    assert not oracle.may_remove(ReplicaKey(3, run.world.hosts[3].directory_id))
    host.start()
    assert run.world.run_until(run.world.ready, within_ms=10_000)
    assert run.voter_admin is not None
    run.voter_admin.change_to(frozenset({1, 2, 3, 21}))
    assert run.world.run_until(run.voter_admin.has_changed, within_ms=10_000)
    assert host.node is not None
    assert run.world.run_until(lambda: host.node is not None and host.node.quorum.raft.is_voter, within_ms=1_000)


def test_what_a_lost_disk_had_is_gone_for_good() -> None:
    """Also after a loss of power, which takes names back that were not synced."""
    world = World(1, roles={1: "controller", 2: "controller"}, voters=(1,))
    host = world.hosts[2]
    old = [path for path in host.disk.paths() if path.startswith("/metadata")]
    content = {path: host.disk.content(path) for path in old}
    host.replace_metadata_disk()
    host.disk.lose_power()
    assert [path for path in host.disk.paths() if path.startswith("/metadata")] == ["/metadata/meta.properties"]
    assert host.disk.content("/metadata/meta.properties") != content["/metadata/meta.properties"]


@pytest.mark.parametrize("seed", [3, 8])
def test_voters_change_while_everything_goes_wrong(seed: int) -> None:
    outcome = ChaosRun(seed, config_of(seed, voters=True)).run()
    assert outcome.violation is None, outcome.violation
    assert min(outcome.counts["voters: one more"], outcome.counts["voters: one less"]) > 0


@pytest.mark.parametrize(("name", "property_ids"), [("E-O", "S24 S25"), ("E-R", "S25"), ("majority", "S25")])
def test_a_broken_rule_is_noticed(name: str, property_ids: str) -> None:
    mutation = MUTANTS[name]
    if name == "majority":
        mutation = type(mutation)(
            mutation.rule, mutation.patches, lambda seed: ChaosRun(seed, config_of(seed, voters=True))
        )
    seen, _ = hunt(mutation, range(1, 9))
    assert seen is not None
    assert seen.property_id in property_ids.split()


# -- the promise


def oracle_of(*sets: VoterSet, lost: tuple[int, ...] = ()) -> VoterOracle:
    """The first set is committed, the others are in some log."""
    oracle = VoterOracle()
    oracle.committed_sets = [(5, sets[0])]
    for number, each in enumerate(sets[1:]):
        mirror = oracle.mirrors[number + 1] = LogMirror(UUID(int=1))
        mirror.sets = [(5, sets[0]), (6 + number, each)]
    for voters_set in sets:
        for voter in voters_set:
            oracle.directories[voter.node_id] = key(voter.node_id, int(voter.node_id in lost)).directory_id
    return oracle


def test_one_of_three_disks_may_be_lost_and_no_second_one() -> None:
    three = voters(key(1), key(2), key(3))
    assert oracle_of(three).may_lose_disk(2)
    assert not oracle_of(three, lost=(1,)).may_lose_disk(2)
    assert oracle_of(three, lost=(1,)).may_remove(key(1))
    assert not oracle_of(three, lost=(1,)).may_remove(key(2))
    assert not oracle_of(voters(key(1), key(2))).may_lose_disk(2)
    assert oracle_of(voters(key(1), key(2))).may_remove(key(2))


def test_a_set_that_is_not_committed_yet_counts_as_well() -> None:
    three, two = voters(key(1), key(2), key(3)), voters(key(1), key(2))
    assert not oracle_of(three, two).may_lose_disk(2)
    assert oracle_of(three, two).may_lose_disk(3)


def test_so_does_a_request_without_an_answer() -> None:
    oracle = oracle_of(voters(key(1), key(2), key(3)))
    oracle.unanswered[1] = (key(3), False)
    assert not oracle.may_lose_disk(2)
    assert oracle.may_be_absent({3})
    oracle.unanswered = {number: (key(number), True) for number in range(10, 20)}
    assert not oracle.may_lose_disk(3), "there are too many to look at"


def test_a_controller_that_joins_by_itself_may_be_a_voter_at_any_time() -> None:
    oracle = oracle_of(voters(key(1)))
    oracle.directories[2] = key(2).directory_id
    assert oracle.may_lose_disk(2)
    oracle.joins_by_itself = True
    assert not oracle.may_lose_disk(2)


# -- the mirrors


EPOCHS = (EpochEntry(1, 0), EpochEntry(2, 10), EpochEntry(4, 20))


@pytest.mark.parametrize(
    ("after", "end", "agreed"),
    [
        (EPOCHS, 30, 25),
        (EPOCHS, 22, 22),
        ((*EPOCHS[:2], EpochEntry(5, 15)), 18, 15),
        ((*EPOCHS, EpochEntry(5, 23)), 40, 23),
        ((EpochEntry(4, 21),), 30, 25),  # cut at its start, by a snapshot
        ((EpochEntry(6, 99),), 100, 25),  # a snapshot that was downloaded
        ((), 0, 0),
    ],
)
def test_up_to_where_a_log_is_the_same(after: tuple[EpochEntry, ...], end: int, agreed: int) -> None:
    assert _agreed_end(EPOCHS, 25, after, end) == agreed


def mirrored(oracle: VoterOracle, end: int, epochs: tuple[EpochEntry, ...], three: VoterSet) -> list[LogMirror]:
    mirrors = []
    for voter in three:
        mirror = oracle.mirrors[voter.node_id] = LogMirror(voter.directory_id)
        mirror.epochs, mirror.end, mirror.durable_end = epochs, end, end
        mirror.sets = [(0, three)]
        mirrors.append(mirror)
    return mirrors


def checks(oracle: VoterOracle) -> VoterChecks:
    found = VoterChecks(SimpleNamespace(hosts={}, counts={}, now_us=0))  # type: ignore[arg-type]
    found.oracle = oracle
    return found


HOST: Any = SimpleNamespace(name="node1", node_id=1)


def test_a_commit_needs_the_disks_of_a_majority() -> None:
    three = voters(key(1), key(2), key(3))
    oracle = oracle_of(three)
    one, two, _ = mirrored(oracle, 25, EPOCHS, three)
    one.high_watermark = 25
    oracle.mirrors[3].durable_end = 24
    checks(oracle)._check_majority(HOST, one, None)
    two.epochs = EPOCHS[:2]  # as long, with other records at its end
    with pytest.raises(Violation, match=r"S25.*commits 25"):
        checks(oracle)._check_majority(HOST, one, None)
    two.mid_turn = True  # nobody has seen its last turn
    checks(oracle)._check_majority(HOST, one, None)


def test_a_disk_that_was_lost_since_had_acknowledged_what_it_had() -> None:
    three = voters(key(1), key(2), key(3))
    oracle = oracle_of(three)
    one, *_ = mirrored(oracle, 25, EPOCHS, three)
    one.high_watermark = 25
    oracle.mirrors[3].durable_end = 0
    found = checks(oracle)
    found._lost[key(2)] = oracle.mirrors[2]
    oracle.mirrors[2] = LogMirror(key(2, 1).directory_id)
    found._check_majority(HOST, one, None)
    found._lost[key(2)].durable_end = 24
    with pytest.raises(Violation, match=r"S25.*commits 25"):
        found._check_majority(HOST, one, None)


def test_a_leader_has_all_that_is_committed_and_the_votes_of_its_own_set() -> None:
    three = voters(key(1), key(2), key(3))
    oracle = oracle_of(three)
    one, two, other = mirrored(oracle, 25, EPOCHS, three)
    one.votes[4] = two.votes[4] = key(1)
    other.votes[4] = key(2)
    oracle.committed_end, oracle.committed_epoch = 20, 2
    checks(oracle)._check_elected(HOST, one, 4)
    two.votes[4] = key(1, 1)  # of another directory
    with pytest.raises(Violation, match=r"S25.*votes of \[1\]"):
        checks(oracle)._check_elected(HOST, one, 4)
    oracle.committed_end, oracle.committed_epoch = 20, 3
    with pytest.raises(Violation, match="S23"):
        checks(oracle)._check_elected(HOST, one, 4)


def test_changes_come_one_after_the_other() -> None:
    three = voters(key(1), key(2), key(3))
    oracle = oracle_of(three)
    one, *_ = mirrored(oracle, 25, EPOCHS, three)
    one.sets = [(0, three), (22, voters(key(1), key(2))), (24, voters(key(1)))]
    one.high_watermark = 23
    checks(oracle)._check_changes(HOST, one, 4, 24)
    one.high_watermark = 22
    with pytest.raises(Violation, match=r"S24.*not committed"):
        checks(oracle)._check_changes(HOST, one, 4, 24)
    one.sets, one.high_watermark = one.sets[:2], 20
    with pytest.raises(Violation, match=r"S24.*nothing of its epoch 4"):
        checks(oracle)._check_changes(HOST, one, 4, 20)

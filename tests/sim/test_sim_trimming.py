"""Retention and DeleteRecords in the simulator: drawn for a share of the seeds, survived, and judged (S26, L15)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from tanist.controller.image.image import MetadataImage
from tanist.lab.mutations.examination import hunt
from tanist.lab.mutations.simulator import MUTANTS
from tanist.log.config import LogConfig
from tanist.log.log import Log
from tanist.sim.checkers.trimming import TrimAllowance, TrimChecks
from tanist.sim.checkers.violation import Violation
from tanist.sim.events import DeletionAnswered, DeletionRequested, Place
from tanist.sim.oracle import Batch, Oracle, PartitionOracle, ReplicaMirror
from tanist.sim.run.additions import TRIMMING_SHARE
from tanist.sim.run.chaos_run import ChaosRun, SeedResult
from tanist.sim.run.config import ChaosConfig
from tanist.sim.run.drawing import config_of, operations_of
from tanist.sim.workload.operations import TRIM_OPERATIONS, Operation, Topic
from tanist.sim.world.world import World
from tanist.wire.batch import BatchHeader, NewRecord, encode_batch, iterate_headers
from tanist.wire.errors import ErrorCode
from tests.log.log_disks import MemoryDisk

PLACE = Place("t-0", 1)

CONFIG = ChaosConfig(
    topics=(Topic("events", 1, 3),),
    kinds=(),
    pause_ms=20,
    fault_time_ms=4_000,
    trim_operations=tuple(TRIM_OPERATIONS),
    properties={"log.retention.check.interval.ms": "100"},
)


# -- the addition


def test_a_share_of_the_seeds_draws_it_and_the_option_gives_it_to_all_that_compact_nothing() -> None:
    drawn = [config_of(seed) for seed in range(600)]
    forced = [config_of(seed, trims=True) for seed in range(600)]
    own = [config for config in drawn if config.trim_operations]
    assert abs(len(own) - TRIMMING_SHARE * 600) < 30
    assert all(one == other for one, other in zip(drawn, forced, strict=True) if one.trim_operations)
    for config in forced:
        compacted = any(
            setting == ("cleanup.policy", "compact") for topic in config.topics for setting in topic.configs
        )
        assert bool(config.trim_operations) != compacted
    assert any(config.voters for config in forced)


def test_the_others_draw_the_same_operations_with_it() -> None:
    config = config_of(7, trims=True)
    without = operations_of(7, replace(config, trim_operations=()))
    with_them = operations_of(7, config)
    assert [each for each in with_them if each.kind not in TRIM_OPERATIONS] == without
    assert len(with_them) > len(without)


# -- runs


def played(*operations: Operation, config: ChaosConfig = CONFIG, seed: int = 2) -> SeedResult:
    outcome = ChaosRun(seed, config, faults=[], operations=list(operations)).run()
    assert outcome.violation is None, outcome.violation
    return outcome


def test_deleted_records_are_gone_and_consumers_go_on_at_the_start() -> None:
    found = played(Operation(1_500_000, "delete_records", 0.0, 0.9), config=replace(CONFIG, late_consumers=1))
    assert found.counts["trimming: DeleteRecords acknowledged"] == 2  # and the one of the liveness phase
    assert found.counts["trimming: log starts moved"] == 2
    assert found.counts["trimming: segments dropped by retention"] == 0
    assert found.counts["trimming: consumers behind the log start"] > 0  # the late one begins at 0


def test_all_committed_records_are_deleted_once() -> None:
    found = played(Operation(1_500_000, "delete_all", 0.0, 0.0))
    assert found.counts["trimming: all committed records deleted"] == 1
    assert found.counts["trimming: DeleteRecords acknowledged"] == 2


def test_beyond_the_high_watermark_it_is_refused() -> None:
    found = played(Operation(1_500_000, "delete_beyond", 0.0, 0.9))
    assert found.counts["trimming: DeleteRecords refused"] == 1
    assert found.counts["trimming: log starts moved"] == 1  # that of the liveness phase


@pytest.mark.parametrize("setting", [("retention.bytes", "1000"), ("retention.ms", "500")])
def test_retention_drops_old_segments(setting: tuple[str, str]) -> None:
    topic = Topic("events", 1, 3, (("segment.ms", "200"), setting))
    found = played(config=replace(CONFIG, topics=(topic,)))
    assert found.counts["trimming: segments dropped by retention"] > 5


@pytest.mark.parametrize("seed", [4, 6, 10, 15])
def test_records_go_while_everything_goes_wrong(seed: int) -> None:
    """In these the checkers were wrong at first: a start that a crash forgets, a log that an operator removes."""
    outcome = ChaosRun(seed, config_of(seed, trims=True)).run()
    assert outcome.violation is None, outcome.violation
    assert outcome.counts["trimming: log starts moved"] > 0


@pytest.mark.parametrize("name", ["trim-committed", "trim-early", "trim-checkpoint", "trim-ahead"])
def test_a_broken_rule_is_noticed(name: str) -> None:
    seen, _ = hunt(MUTANTS[name], range(1, 9))
    assert seen is not None
    assert seen.property_id == "S26"


# -- the facts


def partition() -> tuple[PartitionOracle, TrimAllowance]:
    """Three committed batches: two old ones of a hundred bytes, and a young one."""
    oracle = PartitionOracle((UUID(int=1), 0), "t-0")
    allowance = oracle.trimming = TrimAllowance(oracle)
    oracle.extend([Batch(0, 3, 0, 1), Batch(3, 5, 0, 2), Batch(5, 9, 1, 3)])
    for first, latest_ms in ((0, 1_000), (3, 1_100), (5, 5_000)):
        allowance.committed(*batch(first, latest_ms))
    return oracle, allowance


def batch(first: int, latest_ms: int) -> tuple[BatchHeader, memoryview]:
    data = memoryview(encode_batch([NewRecord(timestamp=latest_ms, value=b"v")]))
    [(_, found)] = iterate_headers(data)
    return found._replace(base_offset=first, max_timestamp=latest_ms), data


@pytest.fixture
def log() -> Log:
    """A log that begins at 9, and is empty."""
    made = Log.open(
        MemoryDisk(), "/d/t-0", "t", 0, UUID(int=1), LogConfig(), 0, recovery_point=0, clean=False, log_start_offset=9
    )
    assert (made.log_start_offset, made.log_end_offset) == (9, 9)
    return made


def test_retention_by_time_needs_every_batch_to_be_too_old(log: Log) -> None:
    _, allowance = partition()
    size = len(batch(0, 0)[1])
    assert allowance.retention_may_drop(0, 5, log, 2_200, 1_000, -1)
    assert not allowance.retention_may_drop(0, 5, log, 2_100, 1_000, -1)  # the second one is not too old
    assert not allowance.retention_may_drop(0, 9, log, 2_200, 1_000, -1)
    assert allowance.retention_may_drop(0, 9, log, 6_001, 1_000, -1)
    assert not allowance.retention_may_drop(0, 3, log, 10**9, -1, -1)
    assert not allowance.retention_may_drop(0, 9, log, 2_200, 1_000, 1)  # by size one that is too young may go
    assert allowance.retention_may_drop(0, 9, log, 0, -1, 0)
    assert not allowance.retention_may_drop(0, 9, log, 0, -1, size)


def test_a_log_that_begins_above_its_start_lacks_records(log: Log) -> None:
    _, allowance = partition()
    assert allowance.whole(PLACE, log, 0, 9, 0) == [Batch(0, 3, 0, 1), Batch(3, 5, 0, 2), Batch(5, 9, 1, 3)]
    had = [Batch(0, 9, 7, 7)]
    assert allowance.whole(PLACE, log, 0, 9, 0, had) == had
    log.log_start_offset = 8
    with pytest.raises(Violation, match=r"S26.*begins at 8, and its first batch at 9"):
        allowance.whole(PLACE, log, 0, 9, 0)


def test_the_history_gives_whole_batches_only() -> None:
    _, allowance = partition()
    assert allowance.from_history(0, 8) == [Batch(0, 3, 0, 1), Batch(3, 5, 0, 2)]
    assert allowance.from_history(1, 8) == []


def test_a_reader_may_get_what_the_broker_had_when_it_was_asked() -> None:
    _, allowance = partition()
    assert allowance.least_start_since(1, 0) == 0
    for at_us, start in ((10, 2), (20, 5), (20, 5), (30, 3)):
        allowance.started(1, at_us, start)
    assert [allowance.least_start_since(1, at_us) for at_us in (10, 19, 20, 29, 30, 99)] == [2, 2, 3, 3, 3, 3]


def test_an_unclean_election_takes_the_highest_start_along() -> None:
    oracle, allowance = partition()
    allowance.highest = 8
    mirror = ReplicaMirror(1, 1, None)
    mirror.batches = [Batch(0, 3, 0, 1), Batch(3, 5, 0, 2)]
    oracle.agree(mirror)
    oracle.forget_beyond(mirror, 4)
    assert allowance.highest == 5


def asked(offset: int) -> tuple[TrimChecks, PartitionOracle, TrimAllowance]:
    oracle, allowance = partition()
    world = World(1)
    everything = Oracle(MetadataImage())
    everything.partitions[oracle.key] = oracle
    checks = TrimChecks(world, everything)
    checks.happened(DeletionRequested(1, oracle.key, oracle.name, offset))
    return checks, oracle, allowance


def test_a_request_may_be_carried_out_until_it_is_answered() -> None:
    checks, _, allowance = asked(-1)
    assert allowance.all_requested == {1}
    checks.happened(DeletionAnswered(1, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1))
    assert not allowance.all_requested
    checks, _, allowance = asked(-1)
    checks.happened(DeletionAnswered(1, 1, ErrorCode.REQUEST_TIMED_OUT, -1))  # the leader has moved its start
    assert allowance.all_requested == {1}
    assert asked(4)[2].requested == {4}


def test_an_acknowledgement_below_the_offset_is_noticed() -> None:
    checks, _, _ = asked(4)
    with pytest.raises(Violation, match="4 was asked for, and 3 acknowledged"):
        checks.happened(DeletionAnswered(1, 1, 0, 3))


def test_a_consumer_that_skips_what_is_there_is_noticed() -> None:
    checks, oracle, allowance = asked(4)
    allowance.highest = 4
    checks.check_reset(oracle, 4)
    with pytest.raises(Violation, match="only records below 4 may be gone"):
        checks.check_reset(oracle, 5)
    allowance.started(1, 0, 4)
    checks.check_read(oracle, 1, 4, 10)
    with pytest.raises(Violation, match="3 was read from 1, whose log began at 4"):
        checks.check_read(oracle, 1, 3, 10)

"""The oracle of a partition: how far a replica's log agrees with the history."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.sim import oracle as oracles
from tanist.sim.oracle import Batch, PartitionOracle, ReplicaMirror
from tests.log.log_disks import MemoryDisk
from tests.log.log_rig import add, content, open_log

KEY = (UUID(int=1), 0)
NOWHERE: Any = None


def batch(first: int, end: int, epoch: int = 0, crc: int = 0) -> Batch:
    return Batch(first, end, epoch, crc)


def with_log(node_id: int, *content: Batch) -> ReplicaMirror:
    mirror = ReplicaMirror(node_id, 1, NOWHERE)
    mirror.batches = list(content)
    return mirror


def test_a_copy_is_complete_when_it_has_all_of_the_history() -> None:
    oracle = PartitionOracle(KEY, "t-0")
    mirror = oracle.mirrors[1] = with_log(1, batch(0, 3), batch(3, 4))
    assert oracle.is_complete(mirror)
    oracle.extend([batch(0, 3)])
    assert (mirror.agreeing, mirror.agreed_end, oracle.is_complete(mirror)) == (1, 3, True)
    oracle.extend([batch(3, 4), batch(4, 6)])
    assert (mirror.agreeing, oracle.is_complete(mirror)) == (2, False)
    assert not oracle.is_complete(None)
    mirror.batches.append(batch(4, 6, epoch=1))
    oracle.agree(mirror)
    assert not oracle.is_complete(mirror), "another batch at that place"


def test_a_log_that_begins_later_is_compared_from_there() -> None:
    oracle = PartitionOracle(KEY, "t-0")
    oracle.extend([batch(0, 3), batch(3, 5), batch(5, 6)])
    mirror = with_log(1, batch(3, 5), batch(5, 6))
    mirror.log_start = 3
    oracle.agree(mirror)
    assert oracle.is_complete(mirror)


def test_what_is_given_up_is_forgotten_and_who_has_it_is_excused_for_a_while() -> None:
    oracle = PartitionOracle(KEY, "t-0")
    chosen = oracle.mirrors[1] = with_log(1, batch(0, 3))
    other = oracle.mirrors[2] = with_log(2, batch(0, 3), batch(3, 5))
    oracle.extend([batch(0, 3), batch(3, 5)])
    oracle.values.update({0: b"a", 3: b"b", 4: b"c"})
    oracle.offsets.update({b"a": 0, b"b": 3, b"c": 4})
    assert oracle.forget_beyond(chosen, leader_epoch=7) == 2
    assert (oracle.high_watermark, oracle.history, oracle.values) == (3, [batch(0, 3)], {0: b"a"})
    assert oracle.offsets == {b"a": 0}
    assert oracle.is_complete(chosen)
    assert oracle.is_complete(other)
    assert oracle.is_excused(other)
    assert not oracle.is_excused(chosen)
    chosen.batches.append(batch(3, 6, epoch=7))
    oracle.extend([batch(3, 6, epoch=7)])
    assert oracle.is_complete(chosen)
    assert not oracle.is_complete(other)
    other.batches[1] = batch(3, 4, epoch=7)
    assert not oracle.is_excused(other), "written since: no longer what was given up"


def test_what_the_elected_replica_has_beyond_the_history_is_not_truncated() -> None:
    oracle = PartitionOracle(KEY, "t-0")
    chosen = oracle.mirrors[1] = with_log(1, batch(0, 3), batch(3, 5))
    other = oracle.mirrors[2] = with_log(2, batch(0, 3), batch(3, 5, crc=1))
    oracle.extend([batch(0, 3)])
    assert oracle.forget_beyond(chosen, leader_epoch=7) == 0
    assert not oracle.has_to_truncate(chosen), "it leads with these records: they are not cut off"
    assert oracle.has_to_truncate(other)


@given(st.lists(st.integers(1, 4), max_size=12), st.integers(0, 60))
def test_the_batch_before_an_offset(sizes: list[int], offset: int) -> None:
    content: list[Batch] = []
    end = 0
    for size in sizes:
        content.append(batch(end, end + size))
        end += size
    mirror = with_log(1, *content)
    expected = next((each for each in content if each.end == offset), None)
    assert mirror.last_before(offset) == expected
    assert mirror.end == end


def test_a_slice_that_ends_within_a_batch_gives_the_batches_that_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracles, "_READ_BYTES", 12_000)
    disk = MemoryDisk()
    log = open_log(disk)
    for _ in range(5):
        add(log, 400)
    log.close()
    log = open_log(disk, recovery_point=2_000)  # a log that was written by another process has no positions of batches
    whole = log.read(0, 1 << 20, 2_000)
    assert whole is not None
    assert b"".join(oracles.batch_bytes(log, 0, 2_000)) == content(whole.chunk)

"""The end of a log, asked of a broker that has Kafka's requests only: the search for the epoch of its last record."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

from tanist.broker.metadata.replica_log_end import EpochSearch, _Log
from tanist.log.epochs import LeaderEpochCache
from tanist.replica.reads import divergence
from tanist.wire.fetch_response import FetchedPartition


@dataclass
class Replica:
    """As much of a log as a Fetch at its end sees."""

    epochs: LeaderEpochCache
    log_start_offset: int
    log_end_offset: int

    def fetch(self, epoch: int) -> FetchedPartition:
        log: Any = self
        error, diverging = divergence(log, self.epochs.latest_epoch, self.log_end_offset, epoch)
        return FetchedPartition(0, error, diverging_epoch=diverging)


def found(replica: Replica, leader_epoch: int) -> tuple[int, int]:
    """The last epoch as it is found, and the number of Fetch requests."""
    log = _Log("t", 0, leader_epoch, end=replica.log_end_offset)
    log.starts_at(replica.log_start_offset)
    requests = 0
    while log.searching:
        log.compared(replica.fetch(log.fetched_epoch))
        requests += 1
    return log.info(7).last_epoch, requests


@pytest.mark.parametrize(
    ("entries", "start", "end", "leader_epoch", "expected"),
    [
        ([(0, 0)], 0, 5, 0, 0),
        ([(0, 0)], 0, 5, 9, 0),
        ([(3, 0), (7, 4)], 0, 5, 9, 7),
        ([(3, 0), (7, 5)], 0, 5, 9, 3),  # the leader of epoch 7 has written nothing
        ([(3, 0), (9, 5)], 0, 5, 9, 3),
        ([(3, 0), (9, 4)], 0, 5, 9, 9),
        ([], 0, 0, 9, -1),
        ([(9, 0)], 0, 0, 9, -1),  # it led, and has no record yet
        ([(4, 5)], 5, 5, 9, 4),  # all records are deleted
        ([(0, 5)], 5, 5, 9, 0),
        ([(0, 5)], 5, 5, 0, 0),
        ([], 5, 5, 9, -1),  # as Apache Kafka is after a restart
        ([], 5, 5, 0, -1),
        ([], 0, 5, 9, -1),  # records from before there were epochs
    ],
)
def test_the_epoch_of_the_last_record(
    entries: list[tuple[int, int]], start: int, end: int, leader_epoch: int, expected: int
) -> None:
    assert found(Replica(LeaderEpochCache(entries), start, end), leader_epoch)[0] == expected


def test_any_history_is_found_with_few_requests() -> None:
    rng = random.Random(17)
    for _ in range(2_000):
        leader_epoch = rng.randint(0, 60)
        chosen = sorted(rng.sample(range(leader_epoch + 1), rng.randint(1, min(6, leader_epoch + 1))))
        end = rng.randint(10, 20)
        starts = sorted(rng.sample(range(end + 1), len(chosen)))
        epochs = LeaderEpochCache(zip(chosen, starts, strict=True))
        if not starts[0] < end:
            continue
        answer, requests = found(Replica(epochs, starts[0], end), leader_epoch)
        assert answer == epochs.epoch_at(end - 1), (chosen, starts, end, leader_epoch)
        assert requests <= 12


def test_a_log_that_ends_in_one_of_the_last_epochs_takes_few_requests() -> None:
    """As most logs of a partition that has just lost its leader."""
    assert found(Replica(LeaderEpochCache([(0, 0), (999, 3)]), 0, 5), 1_000) == (999, 3)
    assert found(Replica(LeaderEpochCache([(0, 0), (1_000, 3)]), 0, 5), 1_000) == (1_000, 1)


def test_the_search_ends_at_its_bounds() -> None:
    search = EpochSearch(0)
    assert search.done
    assert search.high == 0

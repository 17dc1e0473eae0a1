"""Which open transactions of a partition hang, and the marker that each gets."""

from __future__ import annotations

import pytest

from tanist.coordinator.transactions.hanging import Ending, KnownTransaction, OpenTransaction, ending_of
from tanist.coordinator.transactions.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    MAX_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)
from tests.coordinator.transaction_rig import BUMPS, OLD, P0, P1

EPOCH = 4
OPEN = OpenTransaction(P0, 7, 100, EPOCH, 10, 12)


def known(state: TransactionState, epoch: int, version: int = BUMPS, *partitions: tuple[str, int]) -> KnownTransaction:
    return KnownTransaction("tx", state, epoch, version, frozenset(partitions))


def ending(state: TransactionState, epoch: int, version: int = BUMPS, *partitions: tuple[str, int]) -> Ending | None:
    return ending_of(OPEN, known(state, epoch, version, *partitions))


def test_nobody_knows_the_producer() -> None:
    assert ending_of(OPEN, None) == Ending(False, EPOCH, 0, "whether it had been committed is not known")


@pytest.mark.parametrize("version", [OLD, BUMPS])
def test_its_coordinator_will_end_it(version: int) -> None:
    assert ending(ONGOING, EPOCH, version, P0, P1) is None
    for state in (PREPARE_COMMIT, PREPARE_ABORT):
        for ahead in (0, 1, 2):
            assert ending(state, EPOCH + ahead, version, P0) is None


@pytest.mark.parametrize("state", [ONGOING, PREPARE_COMMIT, PREPARE_ABORT])
def test_a_transaction_that_does_not_have_the_partition_ends_elsewhere(state: TransactionState) -> None:
    found = ending(state, EPOCH, BUMPS, P1)
    assert found is not None
    assert not found.committed
    assert found.producer_epoch == EPOCH


def test_the_next_transaction_of_the_producer_is_another_one() -> None:
    found = ending(ONGOING, EPOCH + 1, BUMPS, P0)
    assert found is not None
    assert not found.committed


def test_the_last_end_is_known_by_its_epoch() -> None:
    committed, aborted = ending(COMPLETE_COMMIT, EPOCH + 1), ending(COMPLETE_ABORT, EPOCH + 1)
    assert committed is not None
    assert committed[:3] == (True, EPOCH + 1, BUMPS)
    assert aborted is not None
    assert aborted[:3] == (False, EPOCH + 1, BUMPS)


@pytest.mark.parametrize(
    ("state", "epoch", "version"),
    [
        (COMPLETE_COMMIT, EPOCH, OLD),
        (COMPLETE_COMMIT, EPOCH + 1, OLD),
        (COMPLETE_COMMIT, EPOCH + 1, -1),
        (COMPLETE_COMMIT, EPOCH + 2, BUMPS),
        (COMPLETE_COMMIT, EPOCH, BUMPS),
        (EMPTY, EPOCH + 2, BUMPS),
        (DEAD, MAX_EPOCH, OLD),
    ],
)
def test_any_other_end_may_be_of_another_transaction(state: TransactionState, epoch: int, version: int) -> None:
    found = ending(state, epoch, version)
    assert found is not None
    assert not found.committed
    assert found.producer_epoch == EPOCH

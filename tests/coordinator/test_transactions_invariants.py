"""A transaction has one transition under way, and that is the one that is committed."""

from __future__ import annotations

import pytest

from tanist.coordinator.transactions.effects import TransactionAppend
from tanist.invariants import InvariantError
from tests.coordinator.transaction_rig import ID, P0, Rig


def test_a_second_transition_does_not_begin() -> None:
    rig = Rig()
    producer = rig.begin()
    rig.commits = False
    rig.add(producer, P0)
    transaction = rig.shard.transactions[ID]
    (under_way,) = rig.uncommitted
    with pytest.raises(InvariantError, match="one transition under way"):
        rig.shard._append(ID, transaction, transaction.values.fenced(rig.wall_ms))
    assert transaction.pending is under_way


@pytest.mark.parametrize("known", [True, False])
def test_what_is_committed_was_under_way(known: bool) -> None:
    rig = Rig()
    rig.begin()
    values = rig.values
    stray = TransactionAppend(ID if known else "another", values.completed(rig.wall_ms), None, 0)
    with pytest.raises(InvariantError, match="is its transition under way"):
        rig.shard.apply(stray)
    assert rig.values == values
    assert list(rig.shard.transactions) == [ID]

"""A replica whose state cannot be says so at its next change, and makes no other change."""

from __future__ import annotations

import pytest

from tanist.invariants import InvariantError
from tanist.replica.memory import Entry
from tests.replica.replica_alone import Alone


@pytest.mark.parametrize("torn", [11, -1])
@pytest.mark.parametrize("leader", [1, 2])
def test_a_role_begins_with_a_high_watermark_within_the_log(torn: int, leader: int) -> None:
    alone = Alone(isr=(1, 2), leo=10, leader=3 - leader)
    role = alone.partition.role
    assert role is not None
    role.high_watermark = torn
    with pytest.raises(InvariantError, match=f"between the log's start and its end .high_watermark={torn}"):
        alone.learn(leader=leader, leader_epoch=6)
    assert alone.partition.role is role


def test_a_leader_commits_no_more_than_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone(isr=(1,), leo=10)
    monkeypatch.setattr(type(alone.leader), "_high_watermark_candidate", lambda leader, _now_ms: 12)
    with pytest.raises(InvariantError, match=r"at most the log's end \(high_watermark=12, log_end_offset=11\)"):
        alone.append()
    assert alone.high_watermark == 10


def test_a_leader_finds_no_later_epoch_in_its_log() -> None:
    alone = Alone(leader=2, isr=(1, 2), leo=10)
    alone.log.append_as_follower((Entry(10, 7, "of a leader that cannot have been"),), 7)
    with pytest.raises(InvariantError, match=r"no epoch above its own \(latest_epoch=7, leader_epoch=6\)"):
        alone.learn(leader=1, leader_epoch=6)

"""A quorum whose state cannot be says so at its next change."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.invariants import InvariantError
from tanist.lab.scenarios.quorum_node import voters_of
from tanist.quorum import QuorumRules
from tanist.quorum.state.roles import Leader
from tanist.quorum.storage.voter_history import to_record
from tanist.quorum.voters import LogEnd, VoterSet
from tests.quorum.quorum_kit import Kit
from tests.quorum.quorum_network import voter_of


def leading() -> Kit:
    kit = Kit()
    kit.become_leader()
    kit.commit_all()
    return kit


class CommitsAhead(QuorumRules):
    def commit_offset(self, ends: Any, epoch_start_offset: int) -> int:
        return int(max(ends)) + 1


def test_no_more_is_committed_than_the_leader_has() -> None:
    kit = Kit(rules=CommitsAhead())
    with pytest.raises(InvariantError, match=r"at most its leader's end \(high_watermark=2, log_end_offset=1\)"):
        kit.become_leader()
    assert kit.node.high_watermark == 1


@pytest.mark.parametrize("wanted", [(0, 1, 3), (0,), (0, 1, 2, 3, 4)])
def test_one_voter_joins_or_leaves_at_a_time(wanted: tuple[int, ...]) -> None:
    kit = leading()
    leader = kit.node._quorum.role
    assert isinstance(leader, Leader)
    end = kit.log.end_offset
    with pytest.raises(InvariantError, match="one voter joins or leaves at a time"):
        kit.node._leading.change_voters(leader, [to_record(VoterSet(voters_of(wanted)), "CONTROLLER")], kit.now_ms)
    assert kit.log.end_offset == end


def test_a_change_waits_for_the_last_one() -> None:
    kit = leading()
    leader = kit.node._quorum.role
    assert isinstance(leader, Leader)
    first, second = (to_record(VoterSet(map(voter_of, ids)), "CONTROLLER") for ids in ((0, 1, 2, 3), (0, 1, 2, 3, 4)))
    kit.node._leading.change_voters(leader, [first], kit.now_ms)
    with pytest.raises(InvariantError, match=r"waits for the last one \(under_way=1, committed=1\)"):
        kit.node._leading.change_voters(leader, [second], kit.now_ms)


def test_a_cut_goes_no_deeper_than_it_was_allowed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of batches cuts before the batch that holds the offset."""
    kit = Kit()
    quorum = kit.node._quorum
    cut = type(kit.log).truncate_to
    kit.become_leader()
    kit.commit_all()
    assert quorum.high_watermark == 1
    monkeypatch.setattr(type(kit.log), "truncate_to", lambda log, offset: cut(log, offset - 1))
    with pytest.raises(InvariantError, match=r"never cut \(log_end_offset=0, high_watermark=1\)"):
        kit.node._following._truncate(LogEnd(quorum.epoch, 1), kit.now_ms)

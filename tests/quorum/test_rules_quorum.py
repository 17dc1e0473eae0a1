"""Facts of the quorum in corners: 136 (votes without directory), 141 (an only voter), 146 (whole log and snapshot)."""

from __future__ import annotations

from tanist.lab.scenarios.quorum_node import ME, directory, fetch, log_of, part_of, vote
from tanist.quorum import ElectionState, ReplicaKey, SnapshotId, SteppedDown
from tanist.wire.ids import ZERO_UUID
from tests.quorum.quorum_kit import Kit

SELF = ReplicaKey(ME, directory(ME))


def test_rule_136_a_vote_that_was_stored_without_a_directory_binds_to_its_node() -> None:
    """As quorum-state version 0 has it: then the id is all there is, and still it is one vote an epoch."""
    kit = Kit(stored=ElectionState(6, None, ReplicaKey(1, ZERO_UUID)))
    assert not part_of(kit.ask(vote(6, 2, 0, 0))).vote_granted
    assert part_of(kit.ask(vote(6, 1, 0, 0))).vote_granted
    assert part_of(kit.ask(vote(6, 1, 0, 0, from_directory=directory(77)))).vote_granted


def test_rule_141_an_only_voter_leads_on_in_the_same_epoch() -> None:
    kit = Kit((ME,))
    epoch = kit.node.epoch
    kit.pass_time(1_000_000)
    assert (kit.node.is_leader, kit.node.epoch) == (True, epoch)
    assert kit.of(SteppedDown) == []


def test_rule_146_an_empty_follower_is_given_the_snapshot_though_the_log_begins_at_zero() -> None:
    log = log_of([(2, 3)])
    snapshot = SnapshotId(2, 2)
    log.create_snapshot(snapshot, [b"state"], wall_ms=1_700_000_000_000)
    assert log.start_offset == 0
    kit = Kit(stored=ElectionState(5, None, SELF), log=log)
    kit.become_leader()
    kit.commit_all()
    given = part_of(kit.ask(fetch(5, 1, 0, 0)))
    assert (given.snapshot_id.end_offset, given.snapshot_id.epoch) == (2, 2)
    assert not given.records
    assert part_of(kit.ask(fetch(5, 1, 1, 2))).records  # a node that has something goes on with the log

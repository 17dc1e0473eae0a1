"""Committed offsets: who may commit, what is kept, and that nothing uncommitted is ever answered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tanist.coordinator.effects import Append
from tanist.coordinator.group import Group
from tanist.coordinator.membership import GroupState
from tanist.wire.codec import encoder
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tanist.wire.messages.heartbeat_request import HeartbeatRequest
from tanist.wire.messages.leave_group_request import MemberIdentity
from tanist.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tanist.wire.messages.offset_delete_response import OffsetDeleteResponse
from tanist.wire.messages.sync_group_request import SyncGroupRequest
from tests.coordinator.group_rig import GROUP, Rig


def test_an_offset_is_reported_once_it_is_committed_with_its_epoch_and_metadata() -> None:
    rig = Rig(commits=False)
    ticket = rig.commit(5, metadata="säge")
    assert ticket not in rig.answers
    assert rig.committed() is None
    rig.commit_all()
    assert rig.commit_error(ticket) == 0
    found = rig.shard.committed(GROUP)[("t", 0)]
    assert (found.offset, found.leader_epoch, found.metadata) == (5, 3, "säge")
    rig.failover()
    assert rig.shard.committed(GROUP)[("t", 0)][:3] == (5, 3, "säge")


def test_a_commit_that_took_too_long_counts_when_it_is_committed_after_all() -> None:
    rig = Rig(commits=False)
    ticket = rig.commit(5)
    append = rig.uncommitted[0]
    rig.fail(ErrorCode.REQUEST_TIMED_OUT)
    assert rig.commit_error(ticket) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.committed() is None
    rig.shard.apply(append)
    assert rig.committed() == 5


@pytest.mark.parametrize(
    ("log_error", "reported"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_what_the_log_refuses_is_said_in_words_of_groups(log_error: int, reported: int) -> None:
    rig = Rig(commits=False)
    ticket = rig.commit(5)
    rig.fail(log_error)
    assert rig.commit_error(ticket) == reported


def test_members_commit_in_their_generation_and_nobody_else_while_there_are_members() -> None:
    rig = Rig()
    joined = rig.stable_group(1)[0]
    assert rig.commit_error(rig.commit(1, joined)) == 0
    assert rig.commit_error(rig.commit(2)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.commit_error(rig.commit(2, joined, member_id="who")) == ErrorCode.UNKNOWN_MEMBER_ID
    later: dict[str, Any] = {"generation_id_or_member_epoch": 9}
    assert rig.commit_error(rig.commit(2, joined, **later)) == ErrorCode.ILLEGAL_GENERATION
    fenced: dict[str, Any] = {"group_instance_id": "nobody"}
    assert rig.commit_error(rig.commit(2, joined, **fenced)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.committed() == 1


def test_a_member_may_commit_while_the_group_gathers_but_not_in_a_generation_it_has_no_assignment_in() -> None:
    rig = Rig()
    first = rig.stable_group(1)[0]
    rig.join()
    assert rig.commit_error(rig.commit(7, first)) == 0
    again = rig.answers[rig.join(first.member_id)]
    assert rig.commit_error(rig.commit(8, again)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert rig.commit_error(rig.commit(8, first)) == ErrorCode.ILLEGAL_GENERATION
    assert rig.committed() == 7


def test_a_commit_shows_that_a_member_lives() -> None:
    rig = Rig()
    joined = rig.stable_group(1, session_ms=10_000)[0]
    for offset in range(5):
        rig.run(9_000)
        assert rig.commit_error(rig.commit(offset, joined)) == 0


def test_a_generation_of_a_group_that_nobody_knows_is_an_old_one() -> None:
    rig = Rig()
    ticket = rig.commit(1, group="unknown", generation_id_or_member_epoch=4, member_id="m")
    assert rig.commit_error(ticket) == ErrorCode.ILLEGAL_GENERATION
    assert not rig.shard.groups


def test_metadata_has_a_limit_and_none_is_an_empty_one() -> None:
    rig = Rig(offset_metadata_max_bytes=4)
    assert rig.commit_error(rig.commit(1, metadata="ääa")) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert rig.commit_error(rig.commit(1, metadata="ää")) == 0
    assert rig.commit_error(rig.commit(2, metadata=None)) == 0
    assert rig.shard.committed(GROUP)[("t", 0)].metadata == ""


def test_a_deleted_group_is_gone_with_its_offsets_for_the_next_coordinator_too() -> None:
    rig = Rig()
    joined = rig.stable_group(1)[0]
    rig.commit(3, joined)
    ticket = rig.ticket()
    rig.carry_out(rig.shard.delete_group(GROUP, ticket))
    assert rig.answers[ticket].error_code == ErrorCode.NON_EMPTY_GROUP
    rig.leave((joined.member_id, None))
    ticket = rig.ticket()
    rig.carry_out(rig.shard.delete_group(GROUP, ticket))
    assert rig.answers[ticket].error_code == 0
    assert not rig.shard.groups
    assert not rig.shard.offsets
    rig.failover()
    assert not rig.shard.groups
    ticket = rig.ticket()
    rig.carry_out(rig.shard.delete_group(GROUP, ticket))
    assert rig.answers[ticket].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_who_comes_while_a_group_is_being_deleted_finds_a_new_one() -> None:
    rig = Rig()
    joined = rig.stable_group(1)[0]
    rig.commit(3, joined)
    rig.leave((joined.member_id, None))
    rig.commits = False
    deletion = rig.ticket()
    rig.carry_out(rig.shard.delete_group(GROUP, deletion))
    commit = rig.commit(4)
    assert deletion not in rig.answers
    rig.commit_all()
    assert (rig.answers[deletion].error_code, rig.commit_error(commit), rig.committed()) == (0, 0, 4)
    assert rig.answers[rig.join()].generation_id == 1
    rig.commit_all()
    rig.failover()
    assert rig.committed() == 4


def test_a_deletion_that_the_log_refuses_leaves_the_group_as_it_was() -> None:
    rig = Rig()
    rig.commit(3)
    rig.commits = False
    deletion = rig.ticket()
    rig.carry_out(rig.shard.delete_group(GROUP, deletion))
    waits = rig.join(rebalance_ms=60_000, known=False)
    rig.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert rig.answers[waits].error_code == 0  # a member of what never was; its heartbeat will tell
    assert rig.heartbeat(rig.answers[waits]) == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.answers[deletion].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.group.state is GroupState.EMPTY
    assert rig.committed() == 3


def test_offsets_of_deleted_topics_are_forgotten() -> None:
    rig = Rig()
    rig.commit(3)
    rig.commit(4, partition=1)
    rig.carry_out(rig.shard.forget_topics(["other"]))
    assert rig.committed() == 3
    rig.carry_out(rig.shard.forget_topics(["t"]))
    assert rig.shard.committed(GROUP) == {}
    rig.failover()
    assert rig.shard.committed(GROUP) == {}


def subscription(*topics: str, version: int = 1) -> bytes:
    message = ConsumerProtocolSubscription(topics=topics)
    return version.to_bytes(2, "big") + encoder(ConsumerProtocolSubscription, min(version, 3))(message)


def delete(rig: Rig, *topics: str) -> OffsetDeleteResponse:
    ticket = rig.ticket()
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=tuple(
            OffsetDeleteRequestTopic(name=name, partitions=(OffsetDeleteRequestPartition(partition_index=0),))
            for name in topics
        ),
    )
    rig.carry_out(rig.shard.delete_offsets(request, ticket))
    answer = rig.answers[ticket]
    assert isinstance(answer, OffsetDeleteResponse)
    return answer


def test_single_offsets_are_deleted_of_groups_without_members() -> None:
    rig = Rig()
    assert delete(rig, "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    rig.commit(3)
    rig.commit(4, partition=1)
    assert delete(rig, "t", "never").topics[0].partitions[0].error_code == 0
    rig.failover()
    assert (rig.committed(0), rig.committed(1)) == (None, 4)


def test_offsets_of_what_is_not_there_are_not_deleted() -> None:
    rig = Rig()
    rig.commit(3)
    answer = delete(rig, "t", "never")
    errors = [topic.partitions[0].error_code for topic in answer.topics]
    assert (answer.error_code, errors) == (0, [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])


def test_a_group_whose_last_offset_is_deleted_is_there_until_retention_is_checked() -> None:
    rig = Rig()
    rig.commit(3)
    delete(rig, "t")
    assert (rig.committed(), rig.group.state) == (None, GroupState.EMPTY)
    expire(rig, 0)
    assert not rig.shard.groups


def test_a_group_without_a_name_has_offsets_and_no_members() -> None:
    rig = Rig()
    rig.commit(3, group="")
    assert rig.committed(group="") == 3
    tickets = [rig.ticket() for _ in range(4)]
    rig.carry_out(rig.shard.sync(SyncGroupRequest(group_id="", member_id="m"), tickets[0], rig.now_ms))
    rig.carry_out(rig.shard.heartbeat(HeartbeatRequest(group_id="", member_id="m"), tickets[1], rig.now_ms))
    rig.carry_out(rig.shard.leave("", (MemberIdentity(member_id="m"),), tickets[2], rig.now_ms))
    rig.carry_out(rig.shard.delete_offsets(OffsetDeleteRequest(group_id=""), tickets[3]))
    assert [rig.answers[each].error_code for each in tickets] == [ErrorCode.INVALID_GROUP_ID] * 4


@pytest.mark.parametrize("version", [0, 1, 3, 9])
def test_offsets_of_topics_that_members_read_are_not_deleted(version: int) -> None:
    rig = Rig()
    rig.commit(3)
    rig.topics.create("other", 1)
    rig.stable_group(1, protocols=(("range", subscription("t", "u", version=version)),))
    answer = delete(rig, "t", "other")
    errors = [topic.partitions[0].error_code for topic in answer.topics]
    assert errors == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0]
    assert rig.committed() == 3


def test_a_group_whose_members_cant_be_understood_loses_no_offsets() -> None:
    rig = Rig()
    rig.commit(3)
    rig.stable_group(1, protocol_type="connect")
    assert delete(rig, "t").error_code == ErrorCode.NON_EMPTY_GROUP
    assert rig.committed() == 3


def test_consumers_with_a_subscription_that_cant_be_read_may_read_any_topic() -> None:
    rig = Rig()
    rig.commit(3)
    rig.stable_group(1, protocols=(("range", b"?"),))
    answer = delete(rig, "t")
    assert answer.error_code == 0
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert rig.committed() == 3


class CommittedOffsets(RuleBasedStateMachine):
    """Whatever fails and takes over: answered offsets never go back, and what was acknowledged is there."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(commits=False)
        self.next_offset = 0
        self.reported = -1
        self.tickets: dict[int, int] = {}

    @rule()
    def commit(self) -> None:
        self.tickets[self.rig.commit(self.next_offset)] = self.next_offset
        self.next_offset += 1

    @precondition(lambda self: self.rig.uncommitted)
    @rule()
    def replicas_follow(self) -> None:
        append = self.rig.uncommitted.pop(0)
        kept, self.rig.uncommitted = self.rig.uncommitted, [append]
        self.rig.commit_all()
        self.rig.uncommitted = kept

    @rule(ms=st.integers(1, 100_000))
    def time_passes(self, ms: int) -> None:
        self.rig.run(ms)

    @rule()
    def failover(self) -> None:
        self.rig.failover()

    @invariant()
    def it_never_goes_back(self) -> None:
        committed = self.rig.committed()
        now = -1 if committed is None else committed
        assert now >= self.reported
        self.reported = now
        for ticket, offset in self.tickets.items():
            if ticket in self.rig.answers and self.rig.commit_error(ticket) == 0:
                assert now >= offset


CommittedOffsets.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestCommittedOffsets = CommittedOffsets.TestCase


# -- retention

DAY_MS = 86_400_000


def expire(rig: Rig, wall_ms: int) -> None:
    rig.carry_out(rig.shard.expire(wall_ms, 7 * DAY_MS))


def stamp(rig: Rig, at_ms: int) -> None:
    """The broker that appends fills in the time of day; this rig does not, so the test does."""
    for group, committed in rig.shard.offsets.items():
        rig.shard.offsets[group] = {place: each._replace(commit_timestamp=at_ms) for place, each in committed.items()}
    for each in rig.shard.groups.values():
        if isinstance(each, Group) and each.stored is not None:
            each.stored.current_state_timestamp = at_ms


def test_offsets_of_a_group_that_never_had_members_go_a_week_after_they_were_committed() -> None:
    rig = Rig()
    rig.commit(5)
    stamp(rig, DAY_MS)
    expire(rig, 8 * DAY_MS - 1)
    assert rig.committed() == 5
    expire(rig, 8 * DAY_MS)
    assert rig.committed() is None
    assert GROUP not in rig.shard.groups
    rig.failover()
    assert rig.committed() is None


def test_groups_expire_in_the_order_in_which_they_came_whatever_their_names_hash_to() -> None:
    rig = Rig()
    groups = [f"group-{n}" for n in range(12)]
    for group in groups:
        rig.commit(5, group=group)
    stamp(rig, 0)
    effects = rig.shard.expire(8 * DAY_MS, 7 * DAY_MS)
    assert [effect.group_id for effect in effects if isinstance(effect, Append)] == groups


def test_offsets_of_a_group_that_has_members_are_kept_but_for_topics_that_it_reads_no_more() -> None:
    rig = Rig()
    (member,) = rig.stable_group(1, protocols=[("range", subscription("u"))])
    rig.commit(5, member)
    stamp(rig, 0)
    expire(rig, 99 * DAY_MS)
    assert rig.committed() is None  # "t" is read by nobody
    rig = Rig()
    (member,) = rig.stable_group(1, protocols=[("range", subscription("t"))])
    rig.commit(5, member)
    stamp(rig, 0)
    expire(rig, 99 * DAY_MS)
    assert rig.committed() == 5
    rig.leave((member.member_id, None))
    stamp(rig, 99 * DAY_MS)
    expire(rig, 100 * DAY_MS)
    assert rig.committed() == 5  # empty since a day only
    expire(rig, 106 * DAY_MS)
    assert rig.committed() is None
    assert GROUP not in rig.shard.groups


def test_a_group_that_a_log_does_not_let_go_is_there_still() -> None:
    rig = Rig()
    rig.commit(5)
    stamp(rig, 0)
    rig.commits = False
    expire(rig, 99 * DAY_MS)
    rig.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert (rig.committed(), rig.group.state) == (5, GroupState.EMPTY)

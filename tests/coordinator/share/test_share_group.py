"""Share groups in their coordinator (KIP-932): members, epochs, assignments, and the state of share partitions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.coordinator.consumer.assignors import Subscriber
from tanist.coordinator.effects import DeleteShareState, FindShareState, InitializeShareState
from tanist.coordinator.share.assignor import assign_simple
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from tanist.wire.messages.offset_commit_request import OffsetCommitRequest
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tests.coordinator.group_rig import GROUP, Rig


class ShareRig(Rig):
    """Members of one share group, and a coordinator of states that answers late."""

    def beat(self, member: str, epoch: int, topics: tuple[str, ...] | None = None, group: str = GROUP) -> Any:
        ticket = self.ticket()
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
        )
        self.carry_out(self.shard.share_heartbeat(request, ("client", "/127.0.0.1"), ticket, self.now_ms))
        return self.answers.get(ticket)

    def answer_states(self, error: int = 0) -> None:
        while self.asked:
            asked = self.asked.pop(0)
            shares = self.shard.shares
            if isinstance(asked, InitializeShareState):
                self.carry_out(shares.state_initialized(asked, error))
            elif isinstance(asked, DeleteShareState):
                self.carry_out(shares.state_deleted(asked, error))

    def assigned(self, answer: Any) -> dict[UUID, tuple[int, ...]]:
        return {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}

    def joined(self, *members: str) -> None:
        """They are there, and all states as well."""
        for member in members:
            assert self.beat(member, 0, ("t",)).error_code == 0
        self.answer_states()
        for _ in range(2):
            for member in members:
                assert self.beat(member, self.group.current(member).epoch).error_code == 0


def test_partitions_are_assigned_when_their_state_is_there() -> None:
    rig = ShareRig()
    first = rig.beat("a", 0, ("t",))
    assert (first.error_code, first.member_epoch, rig.assigned(first)) == (0, 1, {})
    (asked,) = rig.asked
    topic_id = rig.topics.topics["t"][0]
    assert isinstance(asked, InitializeShareState)
    assert (asked.state_epoch, asked.partitions) == (1, {topic_id: dict.fromkeys(range(6), -1)})
    rig.beat("a", 1)
    assert len(rig.asked) == 1, "it is not asked for twice at once"
    rig.answer_states()
    after = rig.beat("a", 1)
    assert (after.member_epoch, rig.assigned(after)) == (2, {topic_id: (0, 1, 2, 3, 4, 5)})
    assert rig.beat("a", 2).assignment is None, "nothing is new"
    rig.failover()
    assert rig.beat("a", 2).member_epoch == 2


def test_states_that_could_not_be_made_are_asked_for_again() -> None:
    rig = ShareRig()
    rig.beat("a", 0, ("t",))
    rig.answer_states(int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert rig.group.stateful.initializing == {}
    rig.now_ms += 30_000
    rig.beat("a", 1)
    assert len(rig.asked) == 1
    rig.failover()
    rig.beat("a", 1)
    assert len(rig.asked) == 2, "another coordinator does not know what this one has asked for"


def test_states_that_are_gone_are_made_again() -> None:
    """An unclean election has taken some of them."""
    rig = ShareRig()
    rig.joined("a")
    topic_id = rig.topics.topics["t"][0]
    rig.now_ms += 10_000
    rig.beat("a", 2)
    assert rig.asked == []
    rig.now_ms += 20_000
    rig.beat("a", 2)
    assert rig.asked == [FindShareState(GROUP, {topic_id: frozenset(range(6))})]
    rig.asked.clear()
    assert rig.shard.shares.state_missed(GROUP, {}) == []
    rig.carry_out(rig.shard.shares.state_missed(GROUP, {topic_id: [1, 4]}))
    rig.beat("a", 2)
    (asked,) = rig.asked
    assert isinstance(asked, InitializeShareState)
    assert asked.partitions == {topic_id: {1: -1, 4: -1}}
    rig.answer_states()
    rig.beat("a", rig.group.current("a").epoch)
    assert rig.group.current("a").assigned == {topic_id: frozenset(range(6))}


def test_a_group_whose_log_was_lost_goes_on_with_the_states_that_there_are() -> None:
    """Its epochs begin anew, and those of the states are later."""
    rig = ShareRig()
    rig.beat("a", 0, ("t",))
    rig.answer_states(int(ErrorCode.FENCED_STATE_EPOCH))
    topic_id = rig.topics.topics["t"][0]
    assert rig.assigned(rig.beat("a", 1)) == {topic_id: (0, 1, 2, 3, 4, 5)}


def test_members_share_partitions_and_leave_or_are_given_up() -> None:
    rig = ShareRig(share_session_timeout_ms=10_000)
    rig.joined("a", "b", "c")
    epoch = rig.group.epoch
    assert {len(next(iter(rig.group.current(each).assigned.values()))) for each in "abc"} == {2}
    assert rig.beat("b", -1).member_epoch == -1
    rig.run(9_000)
    rig.beat("a", rig.group.current("a").epoch)
    rig.run(2_000)
    assert list(rig.group.members) == ["a"]
    assert rig.group.epoch == epoch + 2
    assert rig.beat("c", epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    rig.failover()


def test_a_member_of_another_epoch_joins_again() -> None:
    rig = ShareRig()
    rig.joined("a")
    epoch = rig.group.current("a").epoch
    assert rig.beat("a", epoch + 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert rig.beat("a", epoch - 1).error_code == 0, "its last answer may have been lost"
    assert rig.beat("b", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.beat("b", 0, ()).error_code == ErrorCode.INVALID_REQUEST
    assert rig.beat("b", -2).error_code == ErrorCode.INVALID_REQUEST
    assert rig.beat("a", 3, group="h").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_of_one_kind() -> None:
    rig = ShareRig(share_max_size=1)
    rig.joined("a")
    assert rig.beat("b", 0, ("t",)).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    join = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="x", rebalance_timeout_ms=1, subscribed_topic_names=("t",), topic_partitions=()
    )
    ticket = rig.ticket()
    rig.carry_out(rig.shard.consumer_heartbeat(join, ("c", "h"), ticket, rig.now_ms))
    assert rig.answers[ticket].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.answers[rig.join()].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    ticket = rig.ticket()
    rig.carry_out(rig.shard.commit(OffsetCommitRequest(group_id=GROUP), ticket, rig.now_ms))
    assert ticket in rig.answers
    rig.carry_out(rig.shard.expire(1 << 50, 1))
    assert rig.group.kind == "share"
    rig.answers.clear()
    rig.join(group="classic")
    assert rig.beat("a", 0, ("t",), group="classic").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_decision_that_the_log_refuses_was_never_made() -> None:
    rig = ShareRig(commits=False)
    rig.beat("a", 0, ("t",))
    rig.refuse_all(int(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert GROUP not in rig.shard.groups
    assert rig.asked == []


def test_topics_that_grow_or_go() -> None:
    rig = ShareRig()
    rig.joined("a")
    rig.topics.grow("t", 8)
    rig.shard.topics_changed()
    rig.beat("a", rig.group.current("a").epoch)
    (asked,) = rig.asked
    assert [sorted(each) for each in asked.partitions.values()] == [[6, 7]]
    rig.answer_states()
    topic_id = rig.topics.topics["t"][0]
    rig.topics.delete("t")
    rig.carry_out(rig.shard.shares.topics_deleted([topic_id]))
    assert rig.group.stateful.topic_ids() == frozenset()
    rig.failover()


def test_a_group_is_deleted_with_the_states_of_its_share_partitions() -> None:
    rig = ShareRig()
    rig.joined("a")
    ticket = rig.ticket()
    rig.carry_out(rig.shard.delete_group(GROUP, ticket))
    assert rig.answers[ticket].error_code == ErrorCode.NON_EMPTY_GROUP
    rig.beat("a", -1)
    for error in (int(ErrorCode.COORDINATOR_NOT_AVAILABLE), 0):
        ticket = rig.ticket()
        rig.carry_out(rig.shard.delete_group(GROUP, ticket))
        assert ticket not in rig.answers
        assert isinstance(rig.asked[0], DeleteShareState)
        rig.answer_states(error)
        assert rig.answers[ticket].error_code == error
        assert (GROUP in rig.shard.groups) == bool(error)
    rig.failover()
    assert GROUP not in rig.shard.groups


def test_offsets_of_an_empty_group_are_altered_and_deleted() -> None:
    rig = ShareRig()
    place = AlterShareGroupOffsetsRequestPartition(partition_index=2, start_offset=7)
    beyond = AlterShareGroupOffsetsRequestPartition(partition_index=6, start_offset=7)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=(place, beyond))
    alter = AlterShareGroupOffsetsRequest(group_id=GROUP, topics=(topic,))
    ticket = rig.ticket()
    rig.carry_out(rig.shard.shares.alter_offsets(alter, ticket, rig.now_ms))
    (asked,) = rig.asked
    assert list(asked.partitions.values()) == [{2: 7}]
    rig.answer_states()
    errors = [each.error_code for each in rig.answers[ticket].responses[0].partitions]
    assert errors == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    delete = DeleteShareGroupOffsetsRequest(
        group_id=GROUP,
        topics=(
            DeleteShareGroupOffsetsRequestTopic(topic_name="t"),
            DeleteShareGroupOffsetsRequestTopic(topic_name="u"),
        ),
    )
    ticket = rig.ticket()
    rig.carry_out(rig.shard.shares.delete_offsets(delete, ticket))
    rig.answer_states()
    done = {each.topic_name: each.error_code for each in rig.answers[ticket].responses}
    assert done == {"t": 0, "u": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    rig.joined("a")
    for refused in (rig.shard.shares.alter_offsets(alter, 1, 0), rig.shard.shares.delete_offsets(delete, 2)):
        assert refused[0].response.error_code == ErrorCode.NON_EMPTY_GROUP


def test_of_a_group_that_never_had_a_state_nothing_is_deleted() -> None:
    rig = ShareRig()
    rig.beat("a", 0, ("gone",))
    rig.beat("a", -1)
    topics = (DeleteShareGroupOffsetsRequestTopic(topic_name="t"),)
    ticket = rig.ticket()
    rig.carry_out(
        rig.shard.shares.delete_offsets(DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=topics), ticket)
    )
    assert (rig.answers[ticket].error_code, rig.answers[ticket].responses) == (0, ())


TOPICS = [UUID(int=number) for number in (1, 2, 3)]


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.sets(st.sampled_from(TOPICS)), max_size=8),
    st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 5), max_size=3),
    st.sets(st.sampled_from("abcdefgh")),
)
def test_each_partition_has_members_and_each_member_partitions(
    subscriptions: dict[str, set[UUID]], counts: dict[UUID, int], gone: set[str]
) -> None:
    partitions = {topic_id: frozenset(range(count)) for topic_id, count in counts.items()}
    members = {each: Subscriber(frozenset(topics), None, {}) for each, topics in subscriptions.items()}
    for _ in range(2):
        targets = assign_simple(members, partitions)
        for topic_id, indexes in partitions.items():
            readers = [each for each, member in members.items() if topic_id in member.topics]
            for index in indexes:
                holders = [each for each, target in targets.items() if index in target.get(topic_id, frozenset())]
                assert set(holders) <= set(readers)
                assert bool(holders) == bool(readers)
        for each, member in members.items():
            assert bool(targets[each]) == bool(member.topics & partitions.keys())
        members = {
            each: Subscriber(member.topics, None, targets[each]) for each, member in members.items() if each not in gone
        }


@pytest.mark.parametrize(("members", "partitions", "sizes"), [(2, 6, {3}), (6, 2, {1}), (4, 3, {1, 2}), (3, 6, {2})])
def test_the_shares_are_even_and_a_member_keeps_what_it_has(members: int, partitions: int, sizes: set[int]) -> None:
    topic_id = TOPICS[0]
    there = {topic_id: frozenset(range(partitions))}
    readers = {f"m{each}": Subscriber(frozenset(TOPICS), None, {}) for each in range(members)}
    targets = assign_simple(readers, there)
    assert {len(each[topic_id]) for each in targets.values()} == sizes
    again = {each: Subscriber(frozenset(TOPICS), None, target) for each, target in targets.items()}
    assert assign_simple(again, there) == targets

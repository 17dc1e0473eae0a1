"""Members of groups against a coordinator that is played: what they send, take and give up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from tanist.client.classic_member import ClassicGroupMember
from tanist.client.consumer_member import ConsumerGroupMember
from tanist.client.epoch_member import JOINING, LEAVING
from tanist.client.membership import (
    NO_GENERATION,
    Assigned,
    Effect,
    Failed,
    GroupMember,
    LearnTopics,
    MemberSettings,
    Pause,
)
from tanist.client.metadata import ClusterView, PartitionView, TopicView
from tanist.client.requests import Ask
from tanist.wire.consumer_protocol import decode_assignment, encode_protocol
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tanist.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tanist.wire.messages.heartbeat_response import HeartbeatResponse
from tanist.wire.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from tanist.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tanist.wire.messages.sync_group_response import SyncGroupResponse

SETTINGS = MemberSettings("g", ("t",), heartbeat_ms=300, topics_ms=1_000, backoff_ms=60)
T, U = UUID(int=1), UUID(int=2)


def topics(**counts: int) -> ClusterView:
    ids = {"t": T, "u": U}
    return ClusterView(
        topics={
            name: TopicView(name, ids[name], 0, False, {at: PartitionView(at, 1, 0, (), (), ()) for at in range(count)})
            for name, count in counts.items()
        }
    )


def one(effects: Sequence[Effect], kind: type[Any]) -> Any:
    (found,) = [each for each in effects if isinstance(each, kind)]
    return found


def named(effects: Sequence[Effect]) -> list[str]:
    """What a driver is to do, in order."""
    return [
        type(each.request).__name__.removesuffix("Request") if isinstance(each, Ask) else type(each).__name__
        for each in effects
    ]


def refused_commit(code: int) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(error_code=code)
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=(partition,)),))


# -- KIP-848


def heartbeat(
    epoch: int = 0, error: int = 0, assigned: dict[UUID, tuple[int, ...]] | None = None
) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if assigned is not None:
        parts = tuple(TopicPartitions(topic_id=topic, partitions=indexes) for topic, indexes in assigned.items())
        assignment = Assignment(topic_partitions=parts)
    return ConsumerGroupHeartbeatResponse(
        error_code=error, member_epoch=epoch, heartbeat_interval_ms=5_000, assignment=assignment
    )


def joined_consumer() -> tuple[ConsumerGroupMember, Pause]:
    """It has t-0 and t-1 in epoch 4, and has reported them."""
    member = ConsumerGroupMember(SETTINGS, "m")
    assert named(member.start()) == ["LearnTopics"]
    first = one(member.learnt(topics(t=2)), Ask)
    effects = member.handle_response(first, heartbeat(4, assigned={T: (0, 1)}))
    assert one(effects, Assigned).partitions == {("t", 0), ("t", 1)}
    assert one(effects, Pause).ms == 0, "others may wait for what it reports"
    report = one(member.due(one(effects, Pause)), Ask)
    assert owned_in(report) == {T: (0, 1)}
    return member, one(member.handle_response(report, heartbeat(4)), Pause)


def owned_in(asked: Ask) -> dict[UUID, tuple[int, ...]] | None:
    parts = asked.request.topic_partitions  # type: ignore[attr-defined]
    return None if parts is None else {each.topic_id: each.partitions for each in parts}


def test_the_first_heartbeat_says_everything_and_later_ones_nothing() -> None:
    member = ConsumerGroupMember(SETTINGS, "m")
    member.start()
    first = one(member.learnt(topics(t=2)), Ask).request
    assert (first.member_id, first.member_epoch, first.subscribed_topic_names) == ("m", JOINING, ("t",))
    member, pause = joined_consumer()
    later = one(member.due(pause), Ask)
    assert later.request.member_epoch == 4
    assert later.request.subscribed_topic_names is None
    assert owned_in(later) is None


def test_after_a_lost_answer_it_says_everything() -> None:
    """The answer may have had an assignment in it: the coordinator says it again to who says all."""
    member, pause = joined_consumer()
    lost = one(member.due(pause), Ask)
    again = one(member.due(one(member.handle_response(lost, None), Pause)), Ask)
    assert again.request.subscribed_topic_names == ("t",)
    assert owned_in(again) == {T: (0, 1)}


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_member_that_is_out_has_nothing_and_joins_under_its_id(code: int) -> None:
    member, pause = joined_consumer()
    effects = member.handle_response(one(member.due(pause), Ask), heartbeat(error=code))
    assert named(effects) == ["Lost", "Pause"]
    again = one(member.due(one(effects, Pause)), Ask)
    assert (again.request.member_id, again.request.member_epoch) == ("m", JOINING)
    assert owned_in(again) == {}


def test_what_it_gives_up_is_reported_at_once() -> None:
    member, pause = joined_consumer()
    effects = member.handle_response(one(member.due(pause), Ask), heartbeat(5, assigned={T: (1,)}))
    assert one(effects, Assigned).partitions == {("t", 1)}
    assert owned_in(one(member.due(one(effects, Pause)), Ask)) == {T: (1,)}


def test_a_topic_that_it_does_not_know_is_asked_for_and_taken_then() -> None:
    member, pause = joined_consumer()
    effects = member.handle_response(one(member.due(pause), Ask), heartbeat(5, assigned={T: (0, 1), U: (0,)}))
    assert one(effects, Assigned).partitions == {("t", 0), ("t", 1)}
    topics_pause, beat = [each for each in effects if isinstance(each, Pause)]
    assert (topics_pause.ms, beat.ms) == (SETTINGS.backoff_ms, 5_000)
    assert isinstance(one(member.due(topics_pause), LearnTopics), LearnTopics)
    nothing_new = member.learnt(ClusterView())
    assert named(nothing_new) == ["Pause", "Assigned"], "it asks again"
    taken = member.learnt(topics(t=2, u=1))
    assert one(taken, Assigned).partitions == {("t", 0), ("t", 1), ("u", 0)}
    assert owned_in(one(member.due(beat), Ask)) == {T: (0, 1), U: (0,)}


def test_a_group_that_takes_no_such_member_says_so_and_is_asked_again() -> None:
    member = ConsumerGroupMember(SETTINGS, "m")
    member.start()
    effects = member.handle_response(
        one(member.learnt(topics(t=1)), Ask), heartbeat(error=ErrorCode.GROUP_MAX_SIZE_REACHED)
    )
    assert one(effects, Failed).code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert named(member.due(one(effects, Pause))) == ["ConsumerGroupHeartbeat"]


def test_a_goodbye_has_the_epoch_of_who_leaves() -> None:
    member, pause = joined_consumer()
    goodbye = one(member.leave(), Ask)
    assert goodbye.request.member_epoch == LEAVING
    assert member.handle_response(goodbye, heartbeat(4, assigned={T: (0,)})) == member.due(pause) == [], "it is gone"


# -- classic


def join_answer(error: int = 0, *, leads: bool = True, members: Sequence[str] = ("m", "n")) -> JoinGroupResponse:
    metadata = encode_protocol(ConsumerProtocolSubscription(topics=("t",)), 1)
    return JoinGroupResponse(
        error_code=error,
        generation_id=7,
        protocol_name="range",
        leader="m" if leads else "n",
        member_id="m",
        members=tuple(JoinGroupResponseMember(member_id=each, metadata=metadata) for each in members) if leads else (),
    )


def sync_answer(*indexes: int, error: int = 0) -> SyncGroupResponse:
    part = TopicPartition(topic="t", partitions=indexes)
    assignment = encode_protocol(ConsumerProtocolAssignment(assigned_partitions=(part,) if indexes else ()), 1)
    return SyncGroupResponse(error_code=error, assignment=b"" if error else assignment)


def stable(*, leads: bool) -> tuple[ClassicGroupMember, list[Pause]]:
    """It has t-0 in generation 7."""
    member = ClassicGroupMember(SETTINGS)
    member.start()
    join = one(member.learnt(topics(t=2)), Ask)
    effects = member.handle_response(join, join_answer(leads=leads))
    if leads:
        assert named(effects) == ["LearnTopics"]
        effects = member.learnt(topics(t=2))
    sync = one(effects, Ask)
    assert bool(sync.request.assignments) == leads
    effects = member.handle_response(sync, sync_answer(0))
    assert one(effects, Assigned).partitions == {("t", 0)}
    assert (member.member_id, member.epoch, member.is_in) == ("m", 7, True)
    return member, [each for each in effects if isinstance(each, Pause)]


def test_a_member_gets_its_id_and_joins_with_it_at_once() -> None:
    member = ClassicGroupMember(SETTINGS)
    member.start()
    first = one(member.learnt(topics(t=2)), Ask)
    assert (first.request.member_id, first.patience_ms) == ("", SETTINGS.rebalance_timeout_ms)
    effects = member.handle_response(first, join_answer(ErrorCode.MEMBER_ID_REQUIRED))
    assert one(effects, Ask).request.member_id == "m"


def test_the_leader_assigns_ranges_of_what_all_have_subscribed_to() -> None:
    member = ClassicGroupMember(SETTINGS)
    member.start()
    member.handle_response(one(member.learnt(topics(t=2)), Ask), join_answer(members=("n", "m")))
    sync = one(member.learnt(topics(t=5)), Ask).request
    divided = {
        each.member_id: [part.partitions for part in decode_assignment(each.assignment).assigned_partitions]
        for each in sync.assignments
    }
    assert divided == {"m": [(0, 1, 2)], "n": [(3, 4)]}


@pytest.mark.parametrize(
    ("code", "keeps_id"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, True),
        (ErrorCode.ILLEGAL_GENERATION, True),
        (ErrorCode.UNKNOWN_MEMBER_ID, False),
    ],
)
@pytest.mark.parametrize("by_commit", [False, True])
def test_a_generation_that_is_over_is_left_and_the_next_joined(code: int, keeps_id: bool, by_commit: bool) -> None:
    member, (pause,) = stable(leads=False)
    if by_commit:
        effects = member.commit_refused(refused_commit(code))
        assert member.due(pause) == [], "the heartbeat of the generation before"
    else:
        effects = member.handle_response(one(member.due(pause), Ask), HeartbeatResponse(error_code=code))
    assert named(effects) == ["Lost", "JoinGroup"]
    assert one(effects, Ask).request.member_id == ("m" if keeps_id else "")
    assert member.epoch == NO_GENERATION


def test_a_commit_that_may_be_tried_again_ends_nothing() -> None:
    member, _ = stable(leads=False)
    assert member.commit_refused(refused_commit(ErrorCode.NOT_COORDINATOR)) == []
    assert member.is_in


def test_a_late_answer_to_a_heartbeat_does_not_end_the_next_generation() -> None:
    member, (pause,) = stable(leads=False)
    beat = one(member.due(pause), Ask)
    member.commit_refused(refused_commit(ErrorCode.REBALANCE_IN_PROGRESS))
    assert member.handle_response(beat, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)) == []
    assert member.member_id == "m"


def test_a_lost_heartbeat_is_followed_by_another() -> None:
    member, (pause,) = stable(leads=False)
    effects = member.handle_response(one(member.due(pause), Ask), None)
    assert one(effects, Pause).ms == SETTINGS.heartbeat_ms
    assert named(member.due(one(effects, Pause))) == ["Heartbeat"]


def test_the_leader_joins_again_when_a_topic_has_grown_and_others_do_not_look() -> None:
    member, (_, look) = stable(leads=True)
    assert named(member.due(look)) == ["LearnTopics"]
    again = one(member.learnt(topics(t=2)), Pause)
    assert again.ms == SETTINGS.topics_ms
    assert named(member.due(again)) == ["LearnTopics"]
    assert named(member.learnt(topics(t=3))) == ["Lost", "JoinGroup"]
    _, pauses = stable(leads=False)
    assert len(pauses) == 1


@pytest.mark.parametrize("error", [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
def test_a_sync_that_failed_is_followed_by_a_join(error: int) -> None:
    member = ClassicGroupMember(SETTINGS)
    member.start()
    effects = member.handle_response(one(member.learnt(topics(t=2)), Ask), join_answer(leads=False))
    effects = member.handle_response(one(effects, Ask), sync_answer(error=error))
    assert not member.is_in
    assert named(member.due(one(effects, Pause))) == ["Lost", "JoinGroup"]


def test_who_has_no_id_leaves_without_a_word() -> None:
    member: GroupMember = ClassicGroupMember(SETTINGS)
    member.start()
    assert member.leave() == []
    member, _ = stable(leads=False)
    goodbye = one(member.leave(), Ask).request
    assert [each.member_id for each in goodbye.members] == ["m"]

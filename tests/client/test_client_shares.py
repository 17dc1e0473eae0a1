"""Members of share groups: their heartbeats, and their sessions with brokers (KIP-932)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tanist.client.membership import Assigned, LearnTopics, Lost, MemberSettings, Pause
from tanist.client.metadata import ClusterView, TopicView
from tanist.client.requests import Ask
from tanist.client.share_member import ShareGroupMember
from tanist.client.share_session import ACCEPT, RELEASE, FetchLimits, ShareSession
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.share_acknowledge_response import ShareAcknowledgeResponse
from tanist.wire.messages.share_fetch_response import ShareFetchResponse
from tanist.wire.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

T, U = UUID(int=1), UUID(int=2)
LIMITS = FetchLimits(max_records=10, max_wait_ms=100)


def asked(effects: list[Any]) -> Any:
    (ask,) = (each for each in effects if isinstance(each, Ask))
    return ask


def view(**topics: UUID) -> ClusterView:
    return ClusterView(topics={name: TopicView(name, each, 0, False, {}) for name, each in topics.items()})


def beaten(epoch: int, **assigned: tuple[UUID, tuple[int, ...]]) -> ShareGroupHeartbeatResponse:
    parts = tuple(TopicPartitions(topic_id=each, partitions=indexes) for each, indexes in assigned.values())
    assignment = Assignment(topic_partitions=parts) if assigned else None
    return ShareGroupHeartbeatResponse(
        member_id="m", member_epoch=epoch, heartbeat_interval_ms=700, assignment=assignment
    )


def joined(**topics: UUID) -> tuple[ShareGroupMember, Any]:
    member = ShareGroupMember(MemberSettings("g", ("t", "u")), "m")
    assert member.start() == [LearnTopics(("t", "u"))]
    return member, asked(member.learnt(view(**topics)))


def test_a_member_joins_with_its_topics_and_goes_on_without_them() -> None:
    member, first = joined(t=T, u=U)
    assert (first.request.member_epoch, first.request.subscribed_topic_names) == (0, ("t", "u"))
    effects = member.handle_response(first, beaten(3, t=(T, (0, 2)), u=(U, (1,))))
    pause = Pause(700)
    assert effects == [Assigned(frozenset({("t", 0), ("t", 2), ("u", 1)})), pause]
    second = asked(member.due(effects[1]))  # type: ignore[arg-type]
    assert (second.request.member_epoch, second.request.subscribed_topic_names) == (3, None)
    goodbye = asked(member.leave())
    assert goodbye.request.member_epoch == -1


def test_a_member_that_is_not_known_any_more_joins_again() -> None:
    member, first = joined(t=T, u=U)
    (pause,) = (each for each in member.handle_response(first, beaten(3)) if isinstance(each, Pause))
    for error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND):
        beat = asked(member.due(pause))
        effects = member.handle_response(beat, ShareGroupHeartbeatResponse(error_code=error))
        assert Lost() in effects
        (pause,) = (each for each in effects if isinstance(each, Pause))
        again = asked(member.due(pause))
        assert (again.request.member_epoch, again.request.subscribed_topic_names) == (0, ("t", "u"))
        (pause,) = (each for each in member.handle_response(again, beaten(4)) if isinstance(each, Pause))
    lost = asked(member.due(pause))
    (pause,) = (each for each in member.handle_response(lost, None) if isinstance(each, Pause))
    assert asked(member.due(pause)).request.subscribed_topic_names == ("t", "u"), "the last one may not have arrived"


def test_a_topic_that_the_member_does_not_know_yet_is_learnt() -> None:
    member, first = joined(t=T)
    effects = member.handle_response(first, beaten(3, t=(T, (0,)), u=(U, (1,))))
    assert Assigned(frozenset({("t", 0)})) in effects
    assert member.learnt(view(u=U)) == [Assigned(frozenset({("t", 0), ("u", 1)}))]


def parts(request: Any) -> dict[tuple[UUID, int], list[tuple[int, int, tuple[int, ...]]]]:
    return {
        (topic.topic_id, part.partition_index): [
            (each.first_offset, each.last_offset, each.acknowledge_types) for each in part.acknowledgement_batches
        ]
        for topic in request.topics
        for part in topic.partitions
    }


def test_a_session_says_what_is_new_and_what_is_not_wanted_any_more() -> None:
    session = ShareSession("g", "m")
    assert not session.is_open
    first = session.fetch([(T, 0), (T, 1)], {}, LIMITS)
    assert (first.share_session_epoch, parts(first)) == (0, {(T, 0): [], (T, 1): []})
    assert session.handle_response(ShareFetchResponse())
    words = {(T, 0): {5: ACCEPT, 6: ACCEPT, 7: RELEASE, 9: RELEASE}}
    second = session.fetch([(T, 1), (U, 0)], words, LIMITS)
    assert second.share_session_epoch == 1
    assert parts(second) == {(T, 0): [(5, 7, (ACCEPT, ACCEPT, RELEASE)), (9, 9, (RELEASE,))], (U, 0): []}
    assert [(each.topic_id, each.partitions) for each in second.forgotten_topics_data] == [(T, (0,))]
    session.handle_response(ShareFetchResponse())
    alone = session.acknowledge({(U, 0): {1: ACCEPT}})
    assert (alone.share_session_epoch, parts(alone)) == (2, {(U, 0): [(1, 1, (ACCEPT,))]})
    session.handle_response(ShareAcknowledgeResponse())
    third = session.fetch([(T, 1), (U, 0)], {}, LIMITS)
    assert (third.share_session_epoch, parts(third), third.forgotten_topics_data) == (3, {}, ())
    assert session.acknowledge({}, ends=True).share_session_epoch == -1


@pytest.mark.parametrize("answer", [None, ShareFetchResponse(error_code=ErrorCode.SHARE_SESSION_NOT_FOUND)])
def test_a_session_that_is_lost_begins_anew(answer: ShareFetchResponse | None) -> None:
    session = ShareSession("g", "m")
    with pytest.raises(ValueError, match="no session"):
        session.acknowledge({})
    with pytest.raises(ValueError, match="does not begin"):
        session.fetch([(T, 0)], {(T, 0): {1: ACCEPT}}, LIMITS)
    session.fetch([(T, 0)], {}, LIMITS)
    session.handle_response(ShareFetchResponse())
    session.fetch([(T, 0)], {}, LIMITS)
    assert not session.handle_response(answer)
    again = session.fetch([(T, 0)], {}, LIMITS)
    assert (again.share_session_epoch, parts(again)) == (0, {(T, 0): []})

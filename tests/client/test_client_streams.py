"""Members of Streams groups (KIP-1071): the topology, tasks that are given up first, and what a lost answer changes."""

from __future__ import annotations

from typing import Any

from tanist.client.membership import Assigned, LearnTopics, Lost, MemberSettings, Pause
from tanist.client.metadata import ClusterView
from tanist.client.requests import Ask
from tanist.client.streams_member import StreamsGroupMember
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.streams_group_heartbeat_request import Subtopology, Topology
from tanist.wire.messages.streams_group_heartbeat_response import Status, StreamsGroupHeartbeatResponse, TaskIds

TOPOLOGY = Topology(epoch=2, subtopologies=(Subtopology(subtopology_id="0", source_topics=("t",)),))


def asked(effects: list[Any]) -> Any:
    (ask,) = (each for each in effects if isinstance(each, Ask))
    return ask


def beaten(epoch: int, active: tuple[int, ...] | None = None, standby: tuple[int, ...] = (), **more: Any) -> Any:
    def ids(indexes: tuple[int, ...]) -> tuple[TaskIds, ...]:
        return (TaskIds(subtopology_id="0", partitions=indexes),) if indexes else ()

    tasks: dict[str, Any] = (
        {} if active is None else {"active_tasks": ids(active), "standby_tasks": ids(standby), "warmup_tasks": ()}
    )
    return StreamsGroupHeartbeatResponse(member_epoch=epoch, heartbeat_interval_ms=500, **tasks, **more)


def joined() -> tuple[StreamsGroupMember, Any]:
    """A member, and its first heartbeat."""
    member = StreamsGroupMember(MemberSettings("g", ("t",)), "m", "p", TOPOLOGY)
    assert member.start() == [LearnTopics(("t",))]
    return member, asked(member.learnt(ClusterView()))


def said(request: Any) -> Any:
    return [{each.subtopology_id: each.partitions for each in tasks} for tasks in _roles(request)]


def _roles(request: Any) -> Any:
    return (request.active_tasks, request.standby_tasks)


def heard(member: StreamsGroupMember, ask: Any, answer: Any) -> Any:
    """The pause that follows, if the answer brings no tasks."""
    (pause,) = (each for each in member.handle_response(ask, answer) if isinstance(each, Pause))
    return pause


def test_a_member_brings_its_topology_and_reports_what_it_has_taken_over() -> None:
    member, first = joined()
    assert (first.request.topology, first.request.process_id, first.request.member_epoch) == (TOPOLOGY, "p", 0)
    assert said(first.request) == [{}, {}]
    effects = member.handle_response(first, beaten(3, (0, 1), (2,)))
    assert Assigned(frozenset({("0", 0), ("0", 1)})) in effects
    assert member.standbys == {("0", 2)}
    second = asked(member.moved())
    assert said(second.request) == [{"0": (0, 1)}, {"0": (2,)}]
    assert second.request.topology is None
    third = asked(member.due(heard(member, second, beaten(3))))
    assert _roles(third.request) == (None, None), "nothing has changed"


def test_tasks_are_reported_until_they_are_given_up() -> None:
    member, first = joined()
    member.handle_response(first, beaten(3, (0, 1)))
    pause = heard(member, asked(member.moved()), beaten(4, (1,)))
    still = asked(member.due(pause))
    assert _roles(still.request) == (None, None), "it has not moved yet"
    assert member.moved() == [], "the next heartbeat says so: one is under way"
    assert heard(member, still, beaten(4)).ms == 0
    assert said(asked(member.due(member._pause)).request) == [{"0": (1,)}, {}]  # type: ignore[arg-type]
    assert member.moved() == []


def test_what_was_not_begun_when_an_answer_is_lost_is_said_again() -> None:
    member, first = joined()
    member.handle_response(first, beaten(3, (0,)))
    pause = heard(member, asked(member.moved()), beaten(4, (0, 1)))
    lost = asked(member.due(pause))
    again = asked(member.due(heard(member, lost, None)))
    assert said(again.request) == [{"0": (0,)}, {}]
    assert member.moved() == [], "it has forgotten the rest"
    effects = member.handle_response(again, beaten(4, (0, 1)))
    assert Assigned(frozenset({("0", 0), ("0", 1)})) in effects


def test_a_fenced_member_has_nothing_and_joins_again() -> None:
    member, first = joined()
    member.handle_response(first, beaten(3, (0,), status=(Status(status_code=5),)))
    assert member.status == {5}
    effects = member.handle_response(asked(member.moved()), beaten(0, error_code=ErrorCode.FENCED_MEMBER_EPOCH))
    assert Lost() in effects
    assert member.moved() == []
    (pause,) = (each for each in effects if isinstance(each, Pause))
    again = asked(member.due(pause))
    assert (again.request.member_epoch, again.request.topology, said(again.request)) == (0, TOPOLOGY, [{}, {}])


def test_a_member_that_leaves_says_so() -> None:
    member, first = joined()
    member.handle_response(first, beaten(3, (0,)))
    goodbye = asked(member.leave())
    assert (goodbye.request.member_epoch, goodbye.request.active_tasks) == (-1, None)
    assert not member.is_in

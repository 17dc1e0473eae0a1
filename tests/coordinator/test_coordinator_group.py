"""A group of the classic protocol: joining, generations, static members, time."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.coordinator.membership import GroupState
from tanist.wire.errors import ErrorCode
from tests.coordinator.group_rig import GROUP, Rig


def test_a_lone_member_leads_its_group_and_gets_what_it_assigns() -> None:
    rig = Rig()
    joined = rig.answers[rig.join()]
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id
    assert [(m.member_id, m.metadata) for m in joined.members] == [(joined.member_id, b"topics")]
    assert rig.group.state is GroupState.COMPLETING_REBALANCE
    synced = rig.answers[rig.sync(joined, {joined.member_id: b"all"})]
    assert (synced.error_code, synced.assignment, synced.protocol_type) == (0, b"all", "consumer")
    assert rig.group.state is GroupState.STABLE
    assert rig.heartbeat(joined) == 0


def test_a_member_id_is_given_out_first_and_used_in_a_second_request() -> None:
    rig = Rig()
    first = rig.answers[rig.join(known=True)]
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    second = rig.answers[rig.join(first.member_id, known=True)]
    assert (second.error_code, second.member_id) == (0, first.member_id)


def test_a_member_id_that_is_not_used_in_time_is_forgotten_and_its_group_when_retention_is_checked() -> None:
    rig = Rig()
    first = rig.answers[rig.join(known=True, session_ms=10_000)]
    rig.run(9_999)
    assert rig.group.pending_members
    rig.carry_out(rig.shard.expire(0, 1))
    assert GROUP in rig.shard.groups
    rig.run(1)
    assert not rig.group.pending_members
    assert rig.answers[rig.join(first.member_id, known=True)].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    rig.carry_out(rig.shard.expire(0, 1))
    assert GROUP not in rig.shard.groups


def test_a_member_that_has_not_joined_yet_leaves_by_its_id() -> None:
    rig = Rig()
    first = rig.answers[rig.join(known=True)]
    assert rig.leave((first.member_id, "i")) == [0]
    assert rig.leave((first.member_id, None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_who_is_refused_leaves_an_empty_group_until_it_is_deleted_or_retention_is_checked() -> None:
    """Apache Kafka has a record of it, too."""
    rig = Rig()
    refused = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert rig.answers[rig.join(protocols=())].error_code == refused
    assert rig.group.state is GroupState.EMPTY
    ticket = rig.ticket()
    rig.carry_out(rig.shard.delete_group(GROUP, ticket))
    assert (rig.answers[ticket].error_code, rig.shard.groups) == (0, {})
    assert rig.answers[rig.join(protocols=())].error_code == refused
    rig.carry_out(rig.shard.expire(0, 1))
    assert not rig.shard.groups


def test_a_member_id_that_was_given_out_and_is_not_used_does_not_disturb_a_stable_group() -> None:
    rig = Rig()
    joined = rig.stable_group(1, session_ms=60_000)[0]
    rig.join(known=True, session_ms=6_000)
    rig.run(6_000)
    assert rig.heartbeat(joined) == 0
    assert rig.group.state is GroupState.STABLE


def test_who_leaves_before_it_has_joined_calls_for_a_rebalance() -> None:
    """As in Apache Kafka: it has left like any other."""
    rig = Rig()
    joined = rig.stable_group(1)[0]
    known = rig.answers[rig.join(known=True)]
    assert rig.heartbeat(joined) == 0
    assert rig.leave((known.member_id, None)) == [0]
    assert rig.heartbeat(joined) == ErrorCode.REBALANCE_IN_PROGRESS


def test_members_learn_of_a_rebalance_by_their_heartbeats_and_the_leader_of_all_members() -> None:
    rig = Rig()
    first = rig.stable_group(1)[0]
    waiting = rig.join(protocols=(("range", b"other"),))
    assert waiting not in rig.answers
    assert rig.heartbeat(first) == ErrorCode.REBALANCE_IN_PROGRESS
    again = rig.answers[rig.join(first.member_id)]
    second = rig.answers[waiting]
    assert again.generation_id == second.generation_id == 2
    assert [m.metadata for m in again.members] == [b"topics", b"other"]
    assert (second.members, second.leader) == ((), first.member_id)
    assert rig.heartbeat(first) == ErrorCode.ILLEGAL_GENERATION
    assert rig.heartbeat(again) == 0


def test_nobody_is_reported_an_assignment_before_it_is_stored() -> None:
    rig = Rig()
    rig.stable_group(1)
    rig.commits = False
    waiting = rig.join()
    leader = rig.answers[rig.join(rig.group.leader_id)]
    follower = rig.answers[waiting]
    tickets = [rig.sync(follower), rig.sync(leader, {leader.member_id: b"a", follower.member_id: b"b"})]
    assert not any(ticket in rig.answers for ticket in tickets)
    rig.commit_all()
    assert [rig.answers[ticket].assignment for ticket in tickets] == [b"b", b"a"]


def test_an_assignment_that_cannot_be_stored_is_reported_nobody_and_the_group_begins_anew() -> None:
    rig = Rig(commits=False)
    joined = rig.answers[rig.join()]
    ticket = rig.sync(joined, {joined.member_id: b"x"})
    rig.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert rig.answers[ticket].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.heartbeat(joined) == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_assignment_that_is_stored_after_its_generation_has_ended_counts_for_nothing() -> None:
    rig = Rig(commits=False)
    joined = rig.answers[rig.join()]
    ticket = rig.sync(joined, {joined.member_id: b"old"})
    newcomer = rig.join()
    assert rig.answers[ticket].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    again = rig.answers[rig.join(joined.member_id)]
    rig.commit_all()
    assert rig.group.state is GroupState.COMPLETING_REBALANCE
    assert rig.answers[newcomer].generation_id == again.generation_id == 2


def test_who_does_not_join_in_time_is_out() -> None:
    rig = Rig()
    first, second = rig.stable_group(2, rebalance_ms=20_000, session_ms=30_000)
    waiting = rig.join(rebalance_ms=20_000)
    rejoined = rig.join(first.member_id, rebalance_ms=20_000)
    rig.run(19_999)
    assert waiting not in rig.answers
    rig.run(1)
    assert {rig.answers[t].generation_id for t in (waiting, rejoined)} == {first.generation_id + 1}
    assert len(rig.answers[rejoined].members) == 2
    assert rig.heartbeat(second) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_not_heard_of_is_out_and_the_others_rebalance() -> None:
    rig = Rig()
    first, second = rig.stable_group(2, session_ms=10_000)
    for _ in range(3):
        rig.run(5_000)
        last = rig.heartbeat(first)
    assert last == ErrorCode.REBALANCE_IN_PROGRESS
    again = rig.answers[rig.join(first.member_id)]
    assert [m.member_id for m in again.members] == [first.member_id]
    assert rig.heartbeat(second) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_waits_for_our_answer_is_not_given_up_meanwhile() -> None:
    rig = Rig()
    first, second = rig.stable_group(2, session_ms=6_000, rebalance_ms=60_000)
    waiting = rig.join(first.member_id, session_ms=6_000, rebalance_ms=60_000)
    for _ in range(9):
        rig.run(5_000)
        assert rig.heartbeat(second) == ErrorCode.REBALANCE_IN_PROGRESS
    rig.join(second.member_id, session_ms=6_000)
    assert rig.answers[waiting].error_code == 0


def test_a_member_that_joins_and_never_asks_for_its_assignment_is_out() -> None:
    rig = Rig()
    first, second = rig.stable_group(2, rebalance_ms=8_000, session_ms=60_000)
    waiting = rig.join(first.member_id, rebalance_ms=8_000, session_ms=60_000)
    rig.join(second.member_id, rebalance_ms=8_000, session_ms=60_000)
    leader = rig.answers[waiting]
    rig.sync(leader, {})
    rig.run(8_000)
    assert rig.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(rig.group.members) == [leader.member_id]


def test_an_empty_group_waits_for_more_members_but_not_forever() -> None:
    rig = Rig(initial_rebalance_delay_ms=3_000)
    first = rig.join(rebalance_ms=7_000)
    rig.run(2_999)
    second = rig.join(rebalance_ms=7_000)
    assert first not in rig.answers
    rig.run(2_000)
    third = rig.join(rebalance_ms=7_000)
    rig.run(1_001)
    fourth = rig.join(rebalance_ms=7_000)
    rig.run(999)
    assert first not in rig.answers
    rig.run(1)
    assert {rig.answers[t].generation_id for t in (first, second, third, fourth)} == {1}


def test_an_empty_group_without_a_delay_does_not_wait_for_who_has_only_an_id() -> None:
    rig = Rig()
    known = rig.answers[rig.join(known=True)]
    first = rig.join()
    assert rig.answers[first].error_code == 0
    second = rig.join(known.member_id)
    assert second not in rig.answers, "the first is to join again"


def test_an_empty_group_without_newcomers_waits_once() -> None:
    rig = Rig(initial_rebalance_delay_ms=3_000)
    ticket = rig.join()
    rig.run(2_999)
    assert ticket not in rig.answers
    rig.run(1)
    assert rig.answers[ticket].error_code == 0


def test_the_protocol_is_the_one_that_all_know_and_most_like_best() -> None:
    rig = Rig(initial_rebalance_delay_ms=100)
    tickets = [
        rig.join(protocols=(("a", b"1"), ("b", b"2"), ("c", b"3"))),
        rig.join(protocols=(("d", b""), ("c", b""), ("b", b""))),
        rig.join(protocols=(("c", b""), ("b", b""))),
    ]
    rig.run(10_000)
    assert {rig.answers[ticket].protocol_name for ticket in tickets} == {"c"}
    assert rig.answers[tickets[0]].members[0].metadata == b"3"


@pytest.mark.parametrize(
    "stranger",
    [{"protocols": (("other", b""),)}, {"protocol_type": "connect"}, {"protocols": ()}],
    ids=["protocol", "type", "none"],
)
def test_who_speaks_no_protocol_of_the_group_is_refused(stranger: dict[str, object]) -> None:
    rig = Rig()
    rig.stable_group(1)
    assert rig.answers[rig.join(**stranger)].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[arg-type]
    assert rig.group.state is GroupState.STABLE


def test_a_group_has_no_more_members_than_it_may() -> None:
    rig = Rig(max_size=2)
    first, second = rig.stable_group(2)
    assert rig.answers[rig.join()].error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert rig.heartbeat(first) == rig.heartbeat(second) == 0


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    rig = Rig()
    assert rig.answers[rig.join(session_ms=session_ms)].error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert not rig.shard.groups


def test_a_group_has_a_name_and_known_members() -> None:
    rig = Rig()
    assert rig.answers[rig.join(group="")].error_code == ErrorCode.INVALID_GROUP_ID
    assert rig.answers[rig.join("who")].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    rig.stable_group(1)
    assert rig.answers[rig.join("who")].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_joins_again_with_nothing_new_gets_the_same_generation_but_a_leader_calls_for_a_rebalance() -> (
    None
):
    rig = Rig()
    leader, follower = rig.stable_group(2)
    assert rig.answers[rig.join(follower.member_id)].generation_id == follower.generation_id
    assert rig.group.state is GroupState.STABLE
    rig.join(leader.member_id)
    assert rig.heartbeat(follower) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_with_another_subscription_calls_for_a_rebalance() -> None:
    rig = Rig()
    leader, follower = rig.stable_group(2)
    rig.join(follower.member_id, protocols=(("range", b"more topics"),))
    assert rig.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_join_that_is_sent_again_is_answered_and_the_older_one_is_over() -> None:
    rig = Rig()
    first, _ = rig.stable_group(2)
    older = rig.join(first.member_id)
    newer = rig.join(first.member_id)
    assert rig.answers[older].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert newer not in rig.answers


def test_who_leaves_is_out_and_the_last_one_leaves_an_empty_group_with_its_generation() -> None:
    rig = Rig()
    first, second = rig.stable_group(2)
    assert rig.leave((second.member_id, None)) == [0]
    again = rig.answers[rig.join(first.member_id)]
    assert len(again.members) == 1
    assert rig.leave((again.member_id, None), ("who", None)) == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert rig.group.state is GroupState.EMPTY
    rig.failover()
    assert rig.group.state is GroupState.EMPTY
    assert rig.group.generation_id == again.generation_id + 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_name": "other"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_id": "another"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group_instance_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_that_does_not_fit_is_refused(changes: dict[str, Any], error: int) -> None:
    rig = Rig()
    joined = rig.stable_group(1)[0]
    assert rig.answers[rig.sync(joined, **changes)].error_code == error


def test_a_stable_group_outlives_its_coordinator_and_its_members_notice_nothing() -> None:
    rig = Rig()
    members = rig.stable_group(3, protocols=(("range", b"r"), ("sticky", b"s")))
    rig.failover()
    assert [rig.heartbeat(each) for each in members] == [0, 0, 0]
    assert [rig.answers[rig.sync(each)].assignment.decode() for each in members] == [m.member_id for m in members]


def test_a_member_that_died_with_the_coordinator_is_given_up_by_the_next_one() -> None:
    rig = Rig()
    first, second = rig.stable_group(2, session_ms=10_000)
    rig.failover()
    for _ in range(3):
        rig.run(5_000)
        error = rig.heartbeat(first)
    assert error == ErrorCode.REBALANCE_IN_PROGRESS
    assert second.member_id not in rig.group.members


# Static members (KIP-345)


def test_a_static_member_that_returns_keeps_its_assignment_without_a_rebalance() -> None:
    rig = Rig()
    leader = rig.answers[rig.join(instance="i1")]
    rig.sync(leader, {leader.member_id: b"mine"})
    back = rig.answers[rig.join(instance="i1")]
    assert back.generation_id == leader.generation_id
    assert back.member_id != leader.member_id
    assert (back.leader, back.skip_assignment, len(back.members)) == (back.member_id, True, 1)
    assert rig.answers[rig.sync(back)].assignment == b"mine"
    assert rig.heartbeat(leader, instance="i1") == ErrorCode.FENCED_INSTANCE_ID
    assert rig.heartbeat(leader) == ErrorCode.UNKNOWN_MEMBER_ID
    rig.failover()
    assert rig.heartbeat(back, instance="i1") == 0


def test_a_static_leader_that_cannot_skip_the_assignment_is_not_reported_that_it_leads() -> None:
    rig = Rig()
    leader = rig.answers[rig.join(instance="i1", skip=False)]
    rig.sync(leader, {leader.member_id: b"mine"})
    back = rig.answers[rig.join(instance="i1", skip=False)]
    assert (back.leader, back.skip_assignment, back.members) == (leader.member_id, False, ())


def test_a_static_member_is_reported_of_its_new_id_only_when_that_is_stored() -> None:
    rig = Rig()
    leader = rig.answers[rig.join(instance="i1")]
    rig.sync(leader, {})
    rig.commits = False
    ticket = rig.join(instance="i1")
    assert ticket not in rig.answers
    rig.commit_all()
    assert rig.answers[ticket].error_code == 0


def test_a_static_member_that_waits_is_fenced_by_its_double() -> None:
    rig = Rig()
    rig.stable_group(1)
    first = rig.join(instance="i1")
    second = rig.join(instance="i1")
    assert rig.answers[first].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert second not in rig.answers
    assert len(rig.group.members) == 2


def test_a_static_member_that_does_not_come_back_in_time_stays_until_its_session_ends() -> None:
    rig = Rig()
    first = rig.answers[rig.join(instance="i1", session_ms=100_000, rebalance_ms=10_000)]
    rig.sync(first, {})
    waiting = rig.join(rebalance_ms=10_000)
    rig.run(10_000)
    assert rig.answers[waiting].generation_id == 2
    assert {m.group_instance_id for m in rig.answers[waiting].members} == {"i1", None}


def test_static_members_leave_by_their_instance_in_one_request() -> None:
    rig = Rig(initial_rebalance_delay_ms=100)
    tickets = [rig.join(instance=name) for name in ("i1", "i2")]
    rig.run(1_000)
    first = rig.answers[tickets[0]]
    assert rig.leave(("", "i1"), ("wrong", "i2"), ("", "i3")) == [
        0,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert rig.heartbeat(first, instance="i1") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_that_no_static_member_comes_to_waits_on_without_spinning() -> None:
    rig = Rig()
    joined = rig.answers[rig.join(instance="i1", session_ms=100_000, rebalance_ms=0)]
    rig.sync(joined, {})
    stranger = rig.join(session_ms=6_000, rebalance_ms=0)
    assert rig.leave((rig.answers[stranger].member_id if stranger in rig.answers else "member-2", None)) == [0]
    ticks = 0
    while rig.shard.check_ms < rig.now_ms + 50_000 and ticks < 200:
        rig.now_ms = rig.shard.check_ms
        rig.carry_out(rig.shard.tick(rig.now_ms))
        ticks += 1
    assert ticks < 200

"""Consumer groups (KIP-848): epochs, reconciliation, static members, failover, refusals, and both ways of migration."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tanist.coordinator.consumer.group import ConsumerGroup, ConsumerGroupState
from tanist.coordinator.consumer.member import MemberState
from tanist.sim.checkers.coordinators import state_of_groups
from tanist.wire.codec import encoder
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from tanist.wire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tanist.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tanist.wire.messages.consumer_protocol_subscription import TopicPartition as OwnedTopic
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinator.group_rig import GROUP, Rig


def beat(rig: Rig, **fields: Any) -> int:
    ticket = rig.ticket()
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, **fields)
    rig.carry_out(rig.shard.consumer_heartbeat(request, ("client", "/host"), ticket, rig.now_ms))
    return ticket


class Member:
    """A client of the consumer protocol: it has what it was last given, and gives up at once what it is not to have."""

    def __init__(self, rig: Rig, member_id: str, *topics: str, **more: Any) -> None:
        self.rig, self.member_id, self.topics, self.more = rig, member_id, topics, more
        self.epoch = 0
        self.has: set[tuple[UUID, int]] = set()

    def ask(self, **changes: Any) -> ConsumerGroupHeartbeatResponse:
        fields: dict[str, Any] = {"member_id": self.member_id, "member_epoch": self.epoch}
        if self.epoch == 0:
            fields |= {"rebalance_timeout_ms": 60_000, "topic_partitions": ()}
            fields |= {"subscribed_topic_names": self.topics} | self.more
        else:
            fields |= {"topic_partitions": self.owned()} | {
                key: value for key, value in self.more.items() if key == "instance_id"
            }
        response: ConsumerGroupHeartbeatResponse = self.rig.answers[beat(self.rig, **(fields | changes))]
        if response.error_code == 0:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.has = {
                    (each.topic_id, index) for each in response.assignment.topic_partitions for index in each.partitions
                }
        return response

    def owned(self) -> tuple[TopicPartitions, ...]:
        topics = sorted({topic_id for topic_id, _ in self.has})
        return tuple(
            TopicPartitions(topic_id=t, partitions=tuple(sorted(i for u, i in self.has if u == t))) for t in topics
        )

    def indexes(self) -> set[int]:
        return {index for _, index in self.has}


def consumers(rig: Rig) -> ConsumerGroup:
    group = rig.shard.consumer(GROUP)
    assert group is not None
    return group


def rounds(*members: Member, times: int = 4) -> None:
    for _ in range(times):
        for member in members:
            assert member.ask().error_code == 0


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.topics.create("t", 6)
    return rig


def test_the_first_member_has_everything_at_once(rig: Rig) -> None:
    one = Member(rig, "m1", "t")
    response = one.ask()
    assert (response.member_epoch, response.heartbeat_interval_ms) == (1, 5_000)
    assert one.indexes() == set(range(6))
    assert consumers(rig).state is ConsumerGroupState.STABLE
    assert one.ask().assignment is None  # nothing new to tell


def test_a_partition_is_given_on_only_when_its_owner_has_given_it_up(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t"), Member(rig, "m2", "t")
    one.ask()
    two.ask()
    assert two.epoch == 2
    assert two.indexes() == set()  # all are m1's still
    assert consumers(rig).state is ConsumerGroupState.RECONCILING
    keeps_all = one.owned()
    one.ask()  # keeps three
    assert one.epoch == 1
    assert len(one.indexes()) == 3
    # It says that it still has all: nothing moves.
    one.ask(topic_partitions=keeps_all)
    two.ask()
    assert two.indexes() == set()
    one.ask()
    assert one.epoch == 2
    two.ask()
    assert one.indexes() | two.indexes() == set(range(6))
    assert not one.indexes() & two.indexes()
    assert consumers(rig).state is ConsumerGroupState.STABLE


def test_who_does_not_give_up_in_time_is_removed(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t", rebalance_timeout_ms=10_000), Member(rig, "m2", "t")
    one.ask()
    two.ask()
    keeps_all = one.owned()
    one.ask()
    for _ in range(5):
        rig.run(3_000)
        one.ask(topic_partitions=keeps_all)
        two.ask()
    assert one.ask(topic_partitions=keeps_all).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    rounds(two)
    assert two.indexes() == set(range(6))


def test_who_is_silent_for_a_session_is_removed(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t"), Member(rig, "m2", "t")
    one.ask()
    rounds(two, one)
    for _ in range(10):
        rig.run(5_000)
        two.ask()
    assert two.indexes() == set(range(6))
    assert one.ask().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_leaves_is_gone_at_once_and_the_epoch_grows(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t"), Member(rig, "m2", "t")
    one.ask()
    rounds(two, one)
    epoch = consumers(rig).epoch
    assert two.ask(member_epoch=-1, topic_partitions=None).member_epoch == -1
    assert consumers(rig).epoch == epoch + 1
    rounds(one)
    assert one.indexes() == set(range(6))
    one.ask(member_epoch=-1)
    assert consumers(rig).state is ConsumerGroupState.EMPTY


def test_a_static_member_that_leaves_for_a_while_keeps_its_partitions_under_a_new_id(rig: Rig) -> None:
    one = Member(rig, "m1", "t", instance_id="static")
    two = Member(rig, "m2", "t")
    one.ask()
    rounds(two, one)
    had, epoch = one.has, consumers(rig).epoch
    double = Member(rig, "m1-again", "t", instance_id="static")
    assert double.ask().error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert one.ask(member_epoch=-2).member_epoch == -2
    rig.run(3_000)
    assert double.ask().error_code == 0
    assert double.has == had
    assert consumers(rig).epoch == epoch  # nobody else notices
    assert one.ask(member_epoch=3).error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_leaves_for_a_while_gives_up_at_once_what_it_had_to_give_up(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t", instance_id="static", rebalance_timeout_ms=10_000), Member(rig, "m2", "t")
    one.ask()
    two.ask()
    one.ask()
    assert one.ask(member_epoch=-2).member_epoch == -2
    rounds(two)
    assert len(two.indexes()) == 3
    rig.run(11_000)
    assert "m1" in consumers(rig).members, "its rebalance timeout is over, and its session is not"
    double = Member(rig, "m1-again", "t", instance_id="static")
    rounds(double, two)
    assert (len(double.indexes()), len(two.indexes())) == (3, 3)


def test_a_member_that_takes_the_place_of_another_has_nothing_else(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t", instance_id="1"), Member(rig, "m2", "t", instance_id="2")
    one.ask()
    rounds(two, one)
    had = two.has
    two.ask(member_epoch=-2)
    one.epoch, one.has, one.more = 0, set(), {"instance_id": "2"}
    assert one.ask().error_code == 0
    assert (one.has, list(consumers(rig).members)) == (had, ["m1"])


def test_an_instance_that_nobody_has_may_join_and_nothing_else(rig: Rig) -> None:
    one = Member(rig, "m1", "t")
    one.ask()
    assert one.ask(instance_id="static").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert one.ask().error_code == 0


def test_a_static_member_may_come_back_to_a_full_group() -> None:
    rig = Rig(consumer_max_size=1)
    one, double = (Member(rig, name, "t", instance_id="static") for name in ("m1", "m1-again"))
    one.ask()
    one.ask(member_epoch=-2)
    assert Member(rig, "m2", "t").ask().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert double.ask().error_code == 0


def test_an_epoch_that_is_not_the_members_is_fenced_but_for_a_lost_answer(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t"), Member(rig, "m2", "t")
    one.ask()
    two.ask()
    one.ask()
    one.ask()
    assert one.epoch == 2
    assert one.ask(member_epoch=3).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    # The answer with epoch 2 was lost: it comes again with epoch 1, and what it still has.
    assert one.ask(member_epoch=1).member_epoch == 2
    assert one.ask(member_epoch=1, topic_partitions=None).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    # A process that starts again under its id joins again.
    one.epoch = 0
    assert one.ask().member_epoch == 2
    assert len(one.indexes()) == 3


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "best"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"member_epoch": 4}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"subscribed_topic_regex": "t("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing_behind(rig: Rig, fields: Any, error: int) -> None:
    response = Member(rig, "m1", "t").ask(**fields)
    assert response.error_code == error
    assert response.error_message
    assert not rig.shard.groups
    assert rig.log == []


def test_a_full_group_takes_nobody(rig: Rig) -> None:
    rig.settings = type(rig.settings)(consumer_max_size=1)
    rig.failover()
    assert Member(rig, "m1", "t").ask().error_code == 0
    assert Member(rig, "m2", "t").ask().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_new_topics_and_partitions_are_assigned_with_the_next_heartbeats(rig: Rig) -> None:
    one = Member(rig, "m1", "t", "later", subscribed_topic_regex="x-.*")
    one.ask()
    for change in (
        lambda: rig.topics.create("later", 2),
        lambda: rig.topics.grow("t", 8),
        lambda: rig.topics.create("x-1", 3),
        lambda: rig.topics.create("not-x", 3),
    ):
        change()
        rig.shard.topics_changed()
        rounds(one)
    assert len(one.has) == 2 + 8 + 3
    rig.topics.delete("t")
    rig.shard.topics_changed()
    rounds(one)
    assert len(one.has) == 2 + 3


def test_a_smaller_subscription_gives_up_what_it_does_not_want(rig: Rig) -> None:
    rig.topics.create("u", 2)
    one = Member(rig, "m1", "t", "u")
    one.ask()
    one.ask(subscribed_topic_names=("u",), rebalance_timeout_ms=60_000)
    rounds(one)
    assert one.has == {(rig.topics.topics["u"][0], 0), (rig.topics.topics["u"][0], 1)}


def test_the_assignor_is_the_one_that_most_want(rig: Rig) -> None:
    one = Member(rig, "m1", "t", server_assignor="range")
    one.ask()
    assert consumers(rig).assignor() == "range"
    rounds(one, Member(rig, "m2", "t", server_assignor="uniform"), Member(rig, "m3", "t", server_assignor="uniform"))
    assert consumers(rig).assignor() == "uniform"


# -- the log


def test_nothing_is_reported_before_it_is_committed_nor_what_rests_on_it() -> None:
    rig = Rig(commits=False)
    rig.topics.create("t", 6)
    join = {"rebalance_timeout_ms": 9, "topic_partitions": (), "subscribed_topic_names": ("t",)}
    first = beat(rig, member_id="m1", member_epoch=0, **join)
    again = beat(rig, member_id="m1", member_epoch=0, **join)  # changes nothing, and reads what is not committed
    assert rig.answers == {}
    rig.commit_all()
    assert rig.answers[first].member_epoch == rig.answers[again].member_epoch == 1


def test_what_the_log_refuses_was_never_decided(rig: Rig) -> None:
    one = Member(rig, "m1", "t")
    one.ask()
    rig.commits = False
    ticket = beat(
        rig, member_id="m2", member_epoch=0, rebalance_timeout_ms=9, topic_partitions=(), subscribed_topic_names=("t",)
    )
    assert set(consumers(rig).members) == {"m1", "m2"}
    rig.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert rig.answers[ticket].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (set(consumers(rig).members), consumers(rig).epoch) == ({"m1"}, 1)
    rig.commits = True
    rounds(one)
    assert one.indexes() == set(range(6))


def test_who_never_became_a_member_is_never_overdue(rig: Rig) -> None:
    """Found by the simulator: a session without a member was due for ever, and the broker did nothing else any more."""
    Member(rig, "m1", "t").ask()
    rig.commits = False
    beat(
        rig, member_id="m2", member_epoch=0, rebalance_timeout_ms=9, topic_partitions=(), subscribed_topic_names=("t",)
    )
    rig.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert set(consumers(rig).deadlines) == {"m1"}
    rig.commits = True
    rig.run(44_000)
    Member(rig, "m3", "t").ask()
    rig.run(10_000)  # the session of m1 ends, and that of m2 would have
    assert set(consumers(rig).members) == {"m3"}
    assert rig.shard.check_ms > rig.now_ms


def test_a_removal_that_cannot_be_written_is_tried_again_later_not_at_once(rig: Rig) -> None:
    Member(rig, "m1", "t").ask()
    rig.commits = False
    rig.now_ms += 45_000
    rig.carry_out(rig.shard.tick(rig.now_ms))
    rig.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert set(consumers(rig).members) == {"m1"}
    assert rig.shard.check_ms > rig.now_ms


def test_a_successor_knows_all_that_was_reported(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t"), Member(rig, "m2", "t", instance_id="s")
    one.ask()
    two.ask()
    one.ask()  # is to give up three, and has not yet
    before = {name: getattr(consumers(rig), name) for name in ("epoch", "members", "targets", "currents", "owners")}
    rig.failover()
    assert {name: getattr(consumers(rig), name) for name in before} == before
    assert consumers(rig).current("m1").state is MemberState.UNREVOKED_PARTITIONS
    rounds(one, two)
    assert one.indexes() | two.indexes() == set(range(6))
    # And one that nobody speaks to any more is given up by the successor.
    rig.failover()
    rig.run(46_000)
    assert consumers(rig).state is ConsumerGroupState.EMPTY


def test_a_group_that_is_deleted_is_gone_with_its_offsets(rig: Rig) -> None:
    one = Member(rig, "m1", "t")
    one.ask()
    ticket = rig.ticket()
    rig.carry_out(rig.shard.delete_group(GROUP, ticket))
    assert rig.answers[ticket].error_code == ErrorCode.NON_EMPTY_GROUP
    one.ask(member_epoch=-1)
    assert rig.commit_error(rig.commit(5)) == 0
    ticket = rig.ticket()
    rig.carry_out(rig.shard.delete_group(GROUP, ticket))
    assert rig.answers[ticket].error_code == 0
    assert (rig.committed(), rig.shard.groups) == (None, {})
    rig.failover()
    assert (rig.committed(), rig.shard.groups) == (None, {})


# -- commits


def test_a_member_commits_in_its_epoch_or_what_it_has_had_since_an_older_one(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t"), Member(rig, "m2", "t")
    one.ask()
    topic_id = rig.topics.topics["t"][0]

    def commit(member_id: str, epoch: int, partition: int) -> int:
        request_changes: dict[str, Any] = {"member_id": member_id, "generation_id_or_member_epoch": epoch}
        ticket = rig.commit(7, partition=partition, topic_id=topic_id, **request_changes)
        return rig.commit_error(ticket)

    assert commit("m1", 1, 0) == 0
    assert commit("m1", 2, 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("nobody", 1, 0) == ErrorCode.UNKNOWN_MEMBER_ID
    rounds(two, one, times=3)
    kept, given = min(one.indexes()), min(two.indexes())
    assert (one.epoch, commit("m1", 1, kept)) == (2, 0)  # sent before it heard of epoch 2
    assert commit("m1", 1, given) == ErrorCode.STALE_MEMBER_EPOCH  # another's now
    assert consumers(rig).fetch_error("m1", 2) == 0
    assert consumers(rig).fetch_error("m1", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert consumers(rig).fetch_error(None, -1) == 0
    assert consumers(rig).fetch_error("", -1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_of_an_older_epoch_is_refused_as_a_whole(rig: Rig) -> None:
    """As in Apache Kafka: one partition that is another's now, and none of the offsets counts."""
    one, two = Member(rig, "m1", "t"), Member(rig, "m2", "t")
    one.ask()
    rounds(two, one, times=3)
    places = tuple(OffsetCommitRequestPartition(partition_index=index, committed_offset=7) for index in range(6))
    request = OffsetCommitRequest(
        group_id=GROUP,
        member_id="m1",
        generation_id_or_member_epoch=1,
        topics=(OffsetCommitRequestTopic(name="t", partitions=places),),
    )
    ticket = rig.ticket()
    rig.carry_out(rig.shard.commit(request, ticket, rig.now_ms, exact=True))
    errors = [each.error_code for each in rig.answers[ticket].topics[0].partitions]
    assert errors == [ErrorCode.STALE_MEMBER_EPOCH] * 6
    assert not rig.shard.committed(GROUP)


# -- members of both protocols


def subscription(*topics: str, owned: set[int] | None = None) -> bytes:
    parts = () if owned is None else (OwnedTopic(topic="t", partitions=tuple(sorted(owned))),)
    message = ConsumerProtocolSubscription(topics=topics, owned_partitions=parts)
    return b"\0\1" + encoder(ConsumerProtocolSubscription, 1)(message)


def assignment(*indexes: int) -> bytes:
    from tanist.wire.messages.consumer_protocol_assignment import TopicPartition

    parts = (TopicPartition(topic="t", partitions=indexes),)
    return b"\0\1" + encoder(ConsumerProtocolAssignment, 1)(ConsumerProtocolAssignment(assigned_partitions=parts))


def assigned(data: bytes) -> set[int]:
    from tanist.wire.codec import decoder

    decoded, _ = decoder(ConsumerProtocolAssignment, 1)(data, 2)
    return {index for part in decoded.assigned_partitions for index in part.partitions}


def stable_classic_group(rig: Rig) -> tuple[Any, Any]:
    protocols = [("cooperative-sticky", subscription("t"))]
    joined = rig.answers[rig.join(protocols=protocols)]
    rig.join(protocols=protocols)
    joined = rig.answers[rig.join(joined.member_id, protocols=protocols)]
    other = next(each.member_id for each in joined.members if each.member_id != joined.member_id)
    rig.sync(joined, {joined.member_id: assignment(0, 1, 2), other: assignment(3, 4, 5)})
    return joined, other


def test_a_classic_group_goes_over_with_its_members_and_back(rig: Rig) -> None:
    joined, other = stable_classic_group(rig)
    generation = joined.generation_id
    new = Member(rig, "new", "t")
    new.ask()
    group = consumers(rig)
    assert rig.shard.classic(GROUP) is None
    assert (set(group.members), group.epoch) == ({joined.member_id, other, "new"}, generation + 1)
    assert new.indexes() == set()  # nobody has given anything up
    # The classic members hear that they are to join again, do so, and get less.
    held = {joined.member_id: {0, 1, 2}, other: {3, 4, 5}}
    epochs = dict.fromkeys(held, generation)
    for _ in range(3):
        for member_id in held:
            joined.member_id, joined.generation_id = member_id, epochs[member_id]
            if rig.heartbeat(joined) == ErrorCode.REBALANCE_IN_PROGRESS:
                mine = [("cooperative-sticky", subscription("t", owned=held[member_id]))]
                answer = rig.answers[rig.join(member_id, protocols=mine)]
                assert (answer.error_code, answer.leader) == (0, "")
                epochs[member_id] = answer.generation_id
                synced = rig.answers[rig.sync(answer)]
                assert synced.error_code == 0
                held[member_id] = assigned(synced.assignment)
        new.ask()
    everybody = [*held.values(), new.indexes()]
    assert sorted(index for each in everybody for index in each) == list(range(6))
    assert [len(each) for each in everybody] == [2, 2, 2]
    rig.failover()
    assert set(consumers(rig).members) == {joined.member_id, other, "new"} | set(held)
    # The last of the new protocol goes: the others go on as a classic group.
    new.ask(member_epoch=-1)
    assert rig.shard.consumer(GROUP) is None
    assert set(rig.group.members) == set(held)
    # In the generation that they are in they may commit, and are to join again.
    for _ in range(2):
        for member_id, epoch in epochs.items():
            joined.member_id, joined.generation_id = member_id, epoch
            assert rig.heartbeat(joined) == ErrorCode.REBALANCE_IN_PROGRESS
            assert rig.commit_error(rig.commit(7, joined)) == 0
        rig.failover()
        assert set(rig.group.members) == set(held)


def test_a_classic_member_of_a_group_that_has_gone_over_commits_in_no_former_generation(rig: Rig) -> None:
    joined, _ = stable_classic_group(rig)
    Member(rig, "new", "t").ask()
    assert rig.commit_error(rig.commit(7, joined)) == 0
    joined.generation_id -= 1
    assert rig.commit_error(rig.commit(7, joined)) == ErrorCode.ILLEGAL_GENERATION
    joined.generation_id += 2
    assert rig.commit_error(rig.commit(7, joined)) == ErrorCode.ILLEGAL_GENERATION


def test_within_a_transaction_an_older_epoch_commits_as_without_one(rig: Rig) -> None:
    one, two = Member(rig, "m1", "t"), Member(rig, "m2", "t")
    one.ask()
    rounds(two, one, times=3)
    kept, given = min(one.indexes()), min(two.indexes())

    def commit(epoch: int, partition: int, *, exact: bool = True) -> int:
        place = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
        request = TxnOffsetCommitRequest(
            group_id=GROUP,
            member_id="m1",
            generation_id=epoch,
            producer_id=1,
            topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(place,)),),
        )
        ticket = rig.ticket()
        rig.carry_out(rig.shard.txn_commit(request, ticket, exact=exact))
        return rig.commit_error(ticket)

    assert (one.epoch, commit(2, kept), commit(1, kept)) == (2, 0, 0)
    for epoch, partition in ((1, given), (3, kept)):
        assert commit(epoch, partition) == ErrorCode.STALE_MEMBER_EPOCH
        assert commit(epoch, partition, exact=False) == ErrorCode.ILLEGAL_GENERATION


def test_an_upgrade_that_the_log_refuses_leaves_the_classic_group_as_it_was(rig: Rig) -> None:
    joined, _ = stable_classic_group(rig)
    members, before = set(rig.group.members), state_of_groups(rig.shard)
    rig.commits = False
    beat(rig, member_id="n", member_epoch=0, rebalance_timeout_ms=9, topic_partitions=(), subscribed_topic_names=("t",))
    rig.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert set(rig.group.members) == members
    assert rig.heartbeat(joined) == 0
    assert state_of_groups(rig.shard) == before


def test_a_group_that_has_gone_over_is_one_group_for_the_next_coordinator(rig: Rig) -> None:
    joined = rig.stable_group(1)[0]
    rig.commit(7, joined)
    rig.leave((joined.member_id, None))
    Member(rig, "new", "t").ask()
    rig.failover()
    assert [(group.group_id, group.kind) for group in rig.shard.groups.values()] == [(GROUP, "consumer")]
    assert rig.committed() == 7


def test_a_classic_member_makes_an_empty_consumer_group_a_classic_one(rig: Rig) -> None:
    new = Member(rig, "new", "t")
    new.ask()
    new.ask(member_epoch=-1)
    rig.commit(7)
    joined = rig.stable_group(1)[0]
    assert (joined.generation_id, rig.group.kind, rig.committed()) == (1, "classic", 7)
    rig.failover()
    assert (rig.group.kind, set(rig.group.members), rig.committed()) == ("classic", {joined.member_id}, 7)


def test_an_empty_consumer_group_stays_one_if_the_log_refuses_its_end_and_who_waits_is_answered(rig: Rig) -> None:
    new = Member(rig, "new", "t")
    new.ask()
    new.ask(member_epoch=-1)
    rig.commits = False
    first, second = rig.join(), rig.join()  # the second waits for the first to join again
    assert second not in rig.answers
    rig.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert rig.group.kind == "consumer"
    assert rig.answers[first].error_code == 0  # its heartbeat will tell
    assert rig.answers[second].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_decisions_of_one_turn_that_the_log_refuses_are_undone_the_last_first(rig: Rig) -> None:
    """Each was made on the one before: the group is as it was before the first."""
    Member(rig, "m1", "t").ask()
    before = state_of_groups(rig.shard)
    rig.commits = False
    for name in ("m2", "m3"):
        beat(
            rig,
            member_id=name,
            member_epoch=0,
            rebalance_timeout_ms=9,
            topic_partitions=(),
            subscribed_topic_names=("t",),
        )
    assert state_of_groups(rig.shard) != before
    rig.refuse_all(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert state_of_groups(rig.shard) == before


def test_a_group_of_another_kind_is_no_consumer_group(rig: Rig) -> None:
    joined = rig.answers[rig.join(protocol_type="connect", protocols=[("x", b"")])]
    rig.sync(joined, {joined.member_id: b""})
    assert Member(rig, "m1", "t").ask().error_code == ErrorCode.GROUP_ID_NOT_FOUND


# -- whatever happens


def test_a_classic_member_with_another_protocol_is_refused_before_it_gets_an_id(rig: Rig) -> None:
    Member(rig, "m1", "t").ask()
    assert (
        rig.answers[rig.join(protocol_type="connect", known=True)].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert rig.answers[rig.join(known=True)].error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_an_empty_consumer_group_has_no_member_to_join_again(rig: Rig) -> None:
    one = Member(rig, "m1", "t")
    one.ask()
    one.ask(member_epoch=-1)
    joins: dict[str, Any] = {"protocols": (("range", subscription("t")),)}
    assert rig.answers[rig.join("m1", **joins)].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert consumers(rig).state is ConsumerGroupState.EMPTY
    assert rig.answers[rig.join(**joins)].error_code == 0


def test_a_classic_group_whose_members_cannot_be_understood_does_not_go_over(rig: Rig) -> None:
    joined = rig.stable_group(1, protocols=(("range", b"?"),))
    answer = Member(rig, "m1", "t").ask()
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.heartbeat(joined[0]) == 0


def test_a_classic_member_reads_offsets_in_its_generation(rig: Rig) -> None:
    Member(rig, "m1", "t").ask()
    joined = rig.answers[rig.join(protocols=(("range", subscription("t")),))]
    epoch = joined.generation_id
    errors = [consumers(rig).fetch_error(joined.member_id, each) for each in (epoch, epoch + 1)]
    assert errors == [0, ErrorCode.ILLEGAL_GENERATION]
    assert consumers(rig).fetch_error("m1", 77) == ErrorCode.STALE_MEMBER_EPOCH


def test_a_member_is_no_instance_that_nobody_is(rig: Rig) -> None:
    Member(rig, "m1", "t").ask()
    joined = rig.answers[rig.join(protocols=(("range", subscription("t")),))]
    assert rig.answers[rig.sync(joined, group_instance_id="i")].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.answers[rig.sync(joined)].error_code == 0


def test_members_of_the_consumer_protocol_commit_by_version_9_or_later(rig: Rig) -> None:
    one = Member(rig, "m1", "t")
    one.ask()
    ids: dict[str, Any] = {"member_id": "m1", "generation_id_or_member_epoch": one.epoch}
    assert rig.commit_error(rig.commit(3, exact=False, **ids)) == ErrorCode.UNSUPPORTED_VERSION
    assert rig.commit_error(rig.commit(3, exact=True, **ids)) == 0


class Wandering(RuleBasedStateMachine):
    """Members come, go and fall silent, topics grow, coordinators and their memory are lost."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.rig.topics.create("t", 5)
        self.members: dict[str, Member] = {}
        self.number = 0

    @rule()
    def join(self) -> None:
        if len(self.members) < 4:
            self.number += 1
            self.members[f"m{self.number}"] = Member(self.rig, f"m{self.number}", "t")

    @precondition(lambda self: self.members)
    @rule(data=st.data(), lost=st.booleans())
    def heartbeat(self, data: st.DataObject, lost: bool) -> None:
        member = self.members[data.draw(st.sampled_from(sorted(self.members)))]
        before = (member.epoch, member.has)
        if member.ask().error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            member.epoch, member.has = 0, set()
        elif lost:
            member.epoch, member.has = before[0], before[1] & member.has

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        member = self.members.pop(data.draw(st.sampled_from(sorted(self.members))))
        if member.epoch:
            member.ask(member_epoch=-1)
        self.rig.run(0)

    @rule(ms=st.sampled_from([3_000, 20_000, 50_000]))
    def time(self, ms: int) -> None:
        self.rig.run(ms)
        group = self.rig.shard.consumer(GROUP)
        alive = group.members if group is not None else {}
        for member in self.members.values():
            if member.member_id not in alive:  # it has noticed that its session is over
                member.epoch, member.has = 0, set()

    @rule()
    def failover(self) -> None:
        self.rig.failover()

    @rule()
    def grow(self) -> None:
        self.rig.topics.grow("t", min(self.rig.topics.topics["t"][1] + 1, 9))
        self.rig.shard.topics_changed()

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        held = [place for member in self.members.values() for place in member.has]
        assert len(held) == len(set(held))

    def teardown(self) -> None:
        """The members that are left go on until everything is shared."""
        for member in self.members.values():
            member.epoch, member.has = 0, set()
        for _ in range(12):
            for member in self.members.values():
                assert member.ask().error_code == 0
        if self.members:
            self.rig.run(0)
            silent = set(consumers(self.rig).members) - self.members.keys()
            held = sum(len(member.has) for member in self.members.values())
            assert silent or held == self.rig.topics.topics["t"][1]


TestWandering = Wandering.TestCase
TestWandering.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

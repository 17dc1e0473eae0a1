"""Streams groups in their coordinator (KIP-1071): members, epochs, tasks, statuses, offsets, and what the log keeps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tanist.coordinator.rebalance import StreamsTiming
from tanist.coordinator.streams.group import StreamsGroup
from tanist.coordinator.streams.tasks import Role, RoleIn
from tanist.coordinator.streams.topology import StatusCode
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tanist.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.streams_group_heartbeat_request import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from tanist.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinator.group_rig import GROUP, Rig

SOURCE = Subtopology(subtopology_id="0", source_topics=("t",), repartition_sink_topics=("g-re",))
COUNT = Subtopology(
    subtopology_id="1",
    repartition_source_topics=(TopicInfo(name="g-re"),),
    state_changelog_topics=(TopicInfo(name="g-log"),),
)
TOPOLOGY = Topology(epoch=1, subtopologies=(SOURCE, COUNT))
AT_ONCE = StreamsTiming(initial_rebalance_delay_ms=0, assignment_interval_ms=0)

Tasks = dict[str, tuple[int, ...]]


class StreamsRig(Rig):
    """Members of one Streams group, each of a process of its own unless its name says otherwise: `process/member`."""

    def __init__(self, timing: StreamsTiming = AT_ONCE, *, internal: bool = True, **more: Any) -> None:
        self.timing = timing
        super().__init__(streams_timing=lambda group_id: self.timing, **more)
        if internal:
            self.topics.create("g-re", 6)
            self.topics.create("g-log", 6)
        self.epochs: dict[str, int] = {}
        self.has: dict[str, dict[Role, Tasks]] = {}
        self.missing: list[str] = []

    def beat(self, member: str, epoch: int, **fields: Any) -> Any:
        ticket = self.ticket()
        request = StreamsGroupHeartbeatRequest(group_id=GROUP, member_id=member, member_epoch=epoch, **fields)
        effects = self.shard.streams_heartbeat(request, ("client", "/127.0.0.1"), ticket, self.now_ms)
        self.carry_out(effects)
        beaten = self.answers.get(ticket)
        if beaten is None:
            return None
        self.missing = [topic.name for topic in beaten.missing]
        return beaten.response

    def join(self, member: str, **fields: Any) -> Any:  # type: ignore[override]
        fields = {"topology": TOPOLOGY, "rebalance_timeout_ms": 5_000, "process_id": member.split("/")[0], **fields}
        return self._noted(member, self.beat(member, 0, **fields, **_owned({})))

    def go_on(self, member: str, **fields: Any) -> Any:
        """A heartbeat that tells what the member has."""
        return self._noted(member, self.beat(member, self.epochs[member], **{**_owned(self.has[member]), **fields}))

    def _noted(self, member: str, response: Any) -> Any:
        if response is not None and not response.error_code:
            self.epochs[member] = response.member_epoch
            if response.active_tasks is not None:
                parts = (response.active_tasks, response.standby_tasks, response.warmup_tasks)
                self.has[member] = {
                    role: {each.subtopology_id: each.partitions for each in ids} for role, ids in zip(Role, parts)
                }
        return response

    def settle(self, *members: str) -> None:
        for _ in range(4):
            for member in members:
                assert self.go_on(member).error_code == 0

    def active(self, member: str) -> Tasks:
        return self.has[member][Role.ACTIVE]

    @property
    def streams(self) -> StreamsGroup:
        found = self.shard.streams(GROUP)
        assert found is not None
        return found


def _owned(has: dict[Role, Tasks]) -> dict[str, Any]:
    names = ("active_tasks", "standby_tasks", "warmup_tasks")
    return {
        name: tuple(TaskIds(subtopology_id=part, partitions=ids) for part, ids in has.get(role, {}).items())
        for role, name in zip(Role, names)
    }


def codes(response: Any) -> list[int]:
    return [each.status_code for each in response.status]


ALL = {"0": tuple(range(6)), "1": tuple(range(6))}


def test_the_first_member_gets_all_tasks_and_the_log_keeps_that() -> None:
    rig = StreamsRig()
    joined = rig.join("m1")
    assert (joined.error_code, joined.member_epoch, codes(joined)) == (0, 2, [])
    assert rig.active("m1") == ALL
    rig.failover()
    assert rig.go_on("m1").error_code == 0
    assert rig.streams.state.value == "Stable"


def test_tasks_move_only_when_they_are_given_up() -> None:
    rig = StreamsRig()
    rig.join("m1")
    rig.join("m2")
    assert rig.active("m2") == {}, "m1 has all tasks yet"
    before = rig.has["m1"]
    assert rig.go_on("m1").active_tasks is not None
    assert sum(map(len, rig.active("m1").values())) == 6
    assert rig.go_on("m2").active_tasks is None, "m1 has not said that it gave them up"
    rig.has["m1"], kept = before, rig.has["m1"]
    assert rig.go_on("m1").error_code == 0
    assert rig.go_on("m2").active_tasks is None, "m1 says that it has them all"
    rig.has["m1"] = kept
    rig.settle("m1", "m2")
    assert sum(map(len, rig.active("m2").values())) == 6
    assert {**rig.epochs} == {"m1": 3, "m2": 3}
    rig.failover()


def test_who_does_not_give_up_its_tasks_in_time_is_removed() -> None:
    rig = StreamsRig()
    rig.join("m1")
    rig.join("m2")
    rig.go_on("m1")
    for _ in range(2):
        rig.run(3_000)
        rig.beat("m1", rig.epochs["m1"])
        rig.go_on("m2")
    assert list(rig.streams.members) == ["m2"]
    rig.settle("m2")
    assert rig.active("m2") == ALL


def test_who_is_not_heard_of_is_removed_and_its_standby_takes_over() -> None:
    rig = StreamsRig(AT_ONCE._replace(standby_replicas=1))
    rig.join("m1")
    rig.join("m2")
    rig.settle("m1", "m2")
    standbys = rig.has["m2"][Role.STANDBY]
    assert standbys == {"1": rig.active("m1")["1"]}
    assert not set(standbys["1"]) & set(rig.active("m2")["1"])
    rig.run(40_000)
    rig.go_on("m2")
    rig.run(10_000)
    assert list(rig.streams.members) == ["m2"]
    rig.settle("m2")
    assert (rig.active("m2"), rig.has["m2"][Role.STANDBY]) == (ALL, {})


def test_a_task_has_one_role_in_a_process() -> None:
    """A member gets no standby of a task that another of its process has yet to give up."""
    rig = StreamsRig(AT_ONCE._replace(standby_replicas=1))
    for member in ("p/m1", "p/m3", "q/m2"):
        rig.join(member)
    wanted = rig.streams.targets["p/m3"].get(RoleIn(Role.STANDBY, "1"), frozenset())
    assert wanted, "it is to have standbys"
    rig.go_on("p/m3")
    assert rig.active("p/m1")["1"] == tuple(range(6))
    assert rig.has["p/m3"][Role.STANDBY] == {}
    for _ in range(2):
        rig.settle("p/m1", "p/m3", "q/m2")
    assert set(rig.has["p/m3"][Role.STANDBY]["1"]) == wanted


def test_internal_topics_that_are_missing_are_named_and_awaited() -> None:
    rig = StreamsRig(internal=False)
    joined = rig.join("m1")
    assert codes(joined) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert sorted(rig.missing) == ["g-log", "g-re"]
    assert (rig.active("m1"), rig.streams.state.value) == ({}, "NotReady")
    rig.failover()
    assert codes(rig.go_on("m1")) == [StatusCode.MISSING_INTERNAL_TOPICS]
    rig.topics.create("g-re", 6)
    rig.topics.create("g-log", 6)
    rig.shard.topics_changed()
    assert codes(rig.go_on("m1")) == []
    assert rig.active("m1") == ALL


def test_a_source_that_is_gone_stops_the_group_until_it_is_back() -> None:
    rig = StreamsRig()
    rig.join("m1")
    rig.topics.delete("t")
    rig.shard.topics_changed()
    assert codes(rig.go_on("m1")) == [StatusCode.MISSING_SOURCE_TOPICS]
    rig.settle("m1")
    assert rig.active("m1") == {}
    rig.topics.create("t", 6)
    rig.shard.topics_changed()
    rig.settle("m1")
    assert rig.active("m1") == ALL


def test_partitions_that_do_not_fit_are_said() -> None:
    rig = StreamsRig()
    rig.topics.grow("g-log", 7)
    assert codes(rig.join("m1")) == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]
    assert not rig.missing


def test_the_first_assignment_waits_for_more_members() -> None:
    rig = StreamsRig(AT_ONCE._replace(initial_rebalance_delay_ms=3_000))
    assert codes(rig.join("m1")) == [StatusCode.ASSIGNMENT_DELAYED]
    assert (rig.epochs["m1"], rig.active("m1")) == (1, {})
    rig.run(2_000)
    assert codes(rig.join("m2")) == [StatusCode.ASSIGNMENT_DELAYED]
    rig.run(1_000)
    rig.settle("m1", "m2")
    assert [sum(map(len, rig.active(each).values())) for each in ("m1", "m2")] == [6, 6]
    assert rig.streams.target_epoch == 3, "one assignment for both"


def test_assignments_have_an_interval() -> None:
    rig = StreamsRig(AT_ONCE._replace(assignment_interval_ms=1_000))
    rig.join("m1")
    assert codes(rig.join("m2")) == [StatusCode.ASSIGNMENT_DELAYED]
    rig.run(1_000)
    rig.settle("m1", "m2")
    assert [sum(map(len, rig.active(each).values())) for each in ("m1", "m2")] == [6, 6]


def test_a_change_of_standbys_is_a_new_assignment() -> None:
    rig = StreamsRig()
    rig.join("m1")
    rig.join("m2")
    rig.settle("m1", "m2")
    assert rig.has["m2"][Role.STANDBY] == {}
    rig.timing = rig.timing._replace(standby_replicas=1)
    rig.settle("m1", "m2")
    assert len(rig.has["m2"][Role.STANDBY]["1"]) == 3


def test_members_without_the_tags_that_are_asked_for_hear_so() -> None:
    rig = StreamsRig(AT_ONCE._replace(rack_aware_assignment_tags=("zone", "rack")))
    (status,) = rig.join("m1", client_tags=(KeyValue(key="rack", value="r1"),)).status
    assert status.status_code == StatusCode.MISSING_CLIENT_TAGS
    assert "[zone]" in status.status_detail
    assert codes(rig.join("m2", client_tags=(KeyValue(key=key, value="1") for key in ("rack", "zone")))) == []
    epoch = rig.streams.epoch
    rig.timing = AT_ONCE
    rig.go_on("m1")
    assert rig.streams.epoch == epoch + 1, "what is asked for is a part of the assignment's configuration"


def test_what_members_say_of_their_disks_when_they_join_counts() -> None:
    rig = StreamsRig()
    rig.topics.create("t", 1)
    rig.join("m1", task_offsets=(TaskOffset(subtopology_id="1", partition=3, offset=9),))
    assert rig.streams.offsets_of("m1").reached == {("1", 3): 9}


def test_a_member_of_an_older_topology_hears_so_and_another_topology_is_refused() -> None:
    rig = StreamsRig()
    rig.join("m1", topology=Topology(epoch=3, subtopologies=TOPOLOGY.subtopologies))
    assert codes(rig.join("m2")) == [StatusCode.STALE_TOPOLOGY]
    for topology in (Topology(epoch=3, subtopologies=(COUNT,)), Topology(epoch=4, subtopologies=(SOURCE, COUNT))):
        refused = rig.join("m3", topology=topology)
        assert (refused.error_code, refused.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "Topology updates are not supported yet.",
        )
    assert sorted(rig.streams.members) == ["m1", "m2"]


def test_a_topology_that_makes_no_sense_leaves_nothing_behind() -> None:
    rig = StreamsRig()
    refused = rig.join("m1", topology=Topology(subtopologies=(COUNT,)))
    assert refused.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert (rig.log, GROUP in rig.shard.groups) == ([], False)


def test_one_member_may_have_all_shut_down() -> None:
    rig = StreamsRig()
    rig.join("m1")
    rig.join("m2")
    assert codes(rig.go_on("m1", shutdown_application=True)) == [StatusCode.SHUTDOWN_APPLICATION]
    heard = rig.go_on("m2")
    assert codes(heard) == [StatusCode.SHUTDOWN_APPLICATION]
    assert "member m1 encountered a fatal error" in heard.status[0].status_detail
    for member in ("m1", "m2"):
        assert rig.beat(member, -1).error_code == 0
    assert codes(rig.join("m3")) == []


def test_members_hear_of_others_endpoints() -> None:
    rig = StreamsRig()
    joined = rig.join("m1", user_endpoint=Endpoint(host="h", port=7))
    (entry,) = joined.partitions_by_user_endpoint
    assert (entry.user_endpoint.host, entry.user_endpoint.port) == ("h", 7)
    assert {each.topic: each.partitions for each in entry.active_partitions} == {
        "t": tuple(range(6)),
        "g-re": tuple(range(6)),
    }
    assert joined.endpoint_information_epoch == 0, "the first answer of a group does not count, as in Apache Kafka"
    assert rig.go_on("m1", endpoint_information_epoch=0).partitions_by_user_endpoint is None
    assert rig.join("m2", endpoint_information_epoch=-1).partitions_by_user_endpoint is not None
    again = rig.join("m1", user_endpoint=Endpoint(host="h", port=8))
    assert again.endpoint_information_epoch == 1
    assert rig.go_on("m1").endpoint_information_epoch == 1
    assert rig.streams.members["m1"].user_endpoint is not None
    assert rig.join("m1").endpoint_information_epoch == 2
    assert rig.streams.members["m1"].user_endpoint is None
    rig.beat("m1", -1)
    assert rig.go_on("m2", endpoint_information_epoch=2).endpoint_information_epoch == 2


@pytest.mark.parametrize(
    ("epoch", "fields", "error"),
    [
        (1, {}, ErrorCode.FENCED_MEMBER_EPOCH),
        (9, {}, ErrorCode.FENCED_MEMBER_EPOCH),
        (2, {"active_tasks": ()}, ErrorCode.INVALID_REQUEST),
        (2, {"topology": TOPOLOGY}, ErrorCode.INVALID_REQUEST),
        (2, _owned({Role.ACTIVE: {"7": (0,)}}), ErrorCode.INVALID_REQUEST),
        (2, _owned({Role.ACTIVE: {"0": (6,)}}), ErrorCode.INVALID_REQUEST),
        (2, {"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        (2, {"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (2, _owned({Role.WARMUP: {"0": (6,)}}), ErrorCode.INVALID_REQUEST),
        (0, {}, ErrorCode.INVALID_REQUEST),
        (0, {"rebalance_timeout_ms": 1}, ErrorCode.INVALID_REQUEST),
        (0, {"rebalance_timeout_ms": 1, "topology": Topology(epoch=-1)}, ErrorCode.INVALID_REQUEST),
        (-2, {}, ErrorCode.INVALID_REQUEST),
        (-3, {}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_requests_that_are_refused(epoch: int, fields: dict[str, Any], error: ErrorCode) -> None:
    rig = StreamsRig()
    rig.join("m1")
    written = len(rig.log)
    assert rig.beat("m1", epoch, **fields).error_code == error
    assert len(rig.log) == written
    assert rig.go_on("m1").error_code == 0


def test_members_of_4_4_say_how_far_their_tasks_are() -> None:
    rig = StreamsRig()
    rig.join("m1", task_offsets=(), task_end_offsets=())
    where = [
        TaskOffset(subtopology_id=part, partition=index, offset=7) for part, index in (("1", 2), ("1", 6), ("9", 0))
    ]
    assert rig.go_on("m1", task_offsets=tuple(where), task_end_offsets=tuple(where[:1])).error_code == 0
    rig.go_on("m1")
    assert rig.streams.task_offsets["m1"] == ({("1", 2): 7}, {("1", 2): 7})
    rig.beat("m1", -1)
    assert rig.streams.task_offsets == {}


def test_a_changelog_has_no_number_of_partitions_of_its_own() -> None:
    part = Subtopology(source_topics=("t",), state_changelog_topics=(TopicInfo(name="log", partitions=3),))
    refused = StreamsRig().join("m1", topology=Topology(subtopologies=(part,)))
    assert refused.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_the_answer_to_an_older_epoch_was_lost() -> None:
    rig = StreamsRig()
    rig.join("m1")
    rig.join("m2")
    rig.settle("m1", "m2")
    again = rig.beat("m1", rig.epochs["m1"] - 1, **_owned(rig.has["m1"]))
    assert (again.error_code, again.member_epoch) == (0, 3)
    too_much = _owned({Role.ACTIVE: ALL})
    assert rig.beat("m1", rig.epochs["m1"] - 1, **too_much).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_unknown_members_hear_so() -> None:
    rig = StreamsRig(streams_max_size=1)
    assert rig.beat("m1", 3).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    rig.join("m1")
    assert rig.beat("m2", 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.beat("m2", -1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.join("m2").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert rig.join("m1").error_code == 0, "it is one already"


def commit(rig: StreamsRig, member: str, epoch: int, partition: int, topic: str = "t") -> int:
    place = OffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
    request = OffsetCommitRequest(
        group_id=GROUP,
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=(OffsetCommitRequestTopic(name=topic, partitions=(place,)),),
    )
    ticket = rig.ticket()
    rig.carry_out(rig.shard.commit(request, ticket, rig.now_ms, exact=True))
    return rig.commit_error(ticket)


def txn_commit(rig: StreamsRig, member: str, epoch: int, partition: int) -> int:
    place = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
    request = TxnOffsetCommitRequest(
        group_id=GROUP,
        member_id=member,
        generation_id=epoch,
        producer_id=1,
        topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(place,)),),
    )
    ticket = rig.ticket()
    rig.carry_out(rig.shard.txn_commit(request, ticket, exact=True))
    return rig.commit_error(ticket)


@pytest.mark.parametrize("commits", [commit, txn_commit])
def test_a_member_commits_what_it_works_on(commits: Any) -> None:
    rig = StreamsRig()
    rig.join("m1")
    rig.join("m2")
    rig.settle("m1", "m2")
    (kept, *_), (given, *_) = rig.active("m1")["0"], rig.active("m2")["0"]
    assert commits(rig, "m1", 3, kept) == 0
    assert commits(rig, "m1", 2, kept) == 0, "it has worked on that since epoch 2"
    assert commits(rig, "m1", 2, given) == ErrorCode.STALE_MEMBER_EPOCH
    assert commits(rig, "m2", 2, given) == ErrorCode.STALE_MEMBER_EPOCH
    assert commits(rig, "m1", 4, kept) == ErrorCode.STALE_MEMBER_EPOCH
    assert commits(rig, "m9", 3, kept) == ErrorCode.UNKNOWN_MEMBER_ID
    rig.failover()
    assert commits(rig, "m1", 2, kept) == 0
    assert rig.streams.fetch_error("m1", 3) == 0
    assert rig.streams.fetch_error("m1", 2) == ErrorCode.STALE_MEMBER_EPOCH


def test_a_group_is_deleted_when_it_is_empty_with_its_offsets() -> None:
    rig = StreamsRig()
    rig.join("m1")
    assert commit(rig, "m1", 2, 0) == 0

    def delete() -> int:
        ticket = rig.ticket()
        rig.carry_out(rig.shard.delete_group(GROUP, ticket))
        return int(rig.answers[ticket].error_code)

    assert delete() == ErrorCode.NON_EMPTY_GROUP
    rig.beat("m1", -1)
    assert rig.streams.state.value == "Empty"
    assert delete() == 0
    assert (GROUP in rig.shard.groups, rig.committed()) == (False, None)
    rig.failover()
    assert GROUP not in rig.shard.groups


def test_offsets_outlive_their_members_and_then_expire_with_the_group() -> None:
    rig = StreamsRig()
    rig.join("m1")
    commit(rig, "m1", 2, 0)
    rig.carry_out(rig.shard.expire(10_000, 1_000))
    assert rig.committed() == 5, "it reads that topic"
    rig.beat("m1", -1)
    rig.carry_out(rig.shard.expire(10_000, 1_000))
    assert GROUP not in rig.shard.groups
    rig.failover()
    assert GROUP not in rig.shard.groups


def test_a_group_is_of_one_kind() -> None:
    rig = StreamsRig()
    rig.join("m1")
    consumer = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="c", rebalance_timeout_ms=1, topic_partitions=(), subscribed_topic_names=("t",)
    )
    share = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="s", subscribed_topic_names=("t",))
    for ticket, effects in (
        ("consumer", rig.shard.consumer_heartbeat(consumer, ("c", "/h"), "consumer", rig.now_ms)),
        ("share", rig.shard.share_heartbeat(share, ("c", "/h"), "share", rig.now_ms)),
    ):
        rig.carry_out(effects)
        assert rig.answers[ticket].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    classic = Rig.join(rig)
    assert rig.answers[classic].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert sorted(rig.streams.members) == ["m1"]


def test_an_empty_group_of_the_classic_protocol_makes_way() -> None:
    """An operator has committed offsets, or the application has changed its protocol."""
    rig = StreamsRig()
    assert rig.commit_error(rig.commit(7)) == 0
    assert rig.join("m1").error_code == 0
    assert (rig.committed(), rig.streams.kind) == (7, "streams")
    rig.failover()
    assert (rig.committed(), rig.streams.kind) == (7, "streams")


def test_a_static_member_that_leaves_for_a_while_keeps_its_tasks_under_a_new_id() -> None:
    rig = StreamsRig()
    rig.join("m1", instance_id="i")
    rig.join("m2")
    rig.settle("m1", "m2")
    had, epoch = rig.has["m1"], rig.streams.epoch
    refused = rig.join("m3", instance_id="i", process_id="m1")
    assert (refused.error_code, rig.epochs.get("m3")) == (ErrorCode.UNRELEASED_INSTANCE_ID, None)
    assert rig.beat("m1", -2, instance_id="i").member_epoch == -2
    rig.run(3_000)
    rig.failover()
    joined = rig.join("m3", instance_id="i", process_id="m1", user_endpoint=Endpoint(host="elsewhere", port=7))
    assert (joined.error_code, rig.streams.epoch, rig.has["m3"]) == (0, epoch, had), "nobody else notices"
    assert list(rig.streams.members) == ["m2", "m3"]
    assert rig.go_on("m1", instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert rig.beat("m1", -1, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    rig.beat("m3", -2, instance_id="i")
    assert rig.join("m4", instance_id="i", process_id="another").error_code == 0
    assert rig.streams.epoch == epoch + 1, "tasks are counted by process"
    assert rig.beat("m4", -1, instance_id="i").error_code == 0
    assert (list(rig.streams.members), rig.streams.static_members) == (["m2"], {})


def test_a_static_member_comes_back_on_a_process_that_follows_its_tasks() -> None:
    """The process is a new one, so its first member was given standbys of what the second one keeps."""
    rig = StreamsRig(AT_ONCE._replace(standby_replicas=1))
    rig.join("m1", instance_id="i", process_id="old")
    rig.join("m2", instance_id="j", process_id="old")
    rig.settle("m1", "m2")
    wanted = rig.active("m2")["1"]
    for member, instance in (("m1", "i"), ("m2", "j")):
        rig.beat(member, -2, instance_id=instance)
    rig.join("m3", instance_id="i", process_id="new")
    rig.go_on("m3")
    followed = set(rig.has["m3"][Role.STANDBY]["1"]) & set(wanted)
    assert followed, "it is to have standbys"
    rig.join("m4", instance_id="j", process_id="new")
    assert not followed & set(rig.active("m4").get("1", ()))
    rig.settle("m3", "m4")
    assert (rig.active("m4")["1"], rig.has["m3"].get(Role.STANDBY, {})) == (wanted, {})


def test_a_static_member_gives_up_at_once_what_it_had_to_give_up_and_stays_for_its_session() -> None:
    rig = StreamsRig()
    rig.join("m1", instance_id="i", rebalance_timeout_ms=5_000)
    rig.join("m2")
    rig.go_on("m1")
    rig.beat("m1", -2, instance_id="i")
    assert rig.go_on("m2").error_code == 0
    assert sum(map(len, rig.active("m2").values())) == 6
    rig.run(6_000)
    assert "m1" in rig.streams.members
    rig.run(60_000)
    assert GROUP not in rig.shard.groups or "m1" not in rig.streams.members


def test_a_static_member_may_come_back_to_a_full_group() -> None:
    rig = StreamsRig(streams_max_size=1)
    rig.join("m1", instance_id="i")
    rig.beat("m1", -2, instance_id="i")
    assert rig.join("m2").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert rig.join("m3", instance_id="i").error_code == 0


def test_the_last_word_of_a_member_may_be_that_all_shut_down() -> None:
    rig = StreamsRig()
    rig.join("m1")
    rig.join("m2")
    rig.beat("m1", -1, shutdown_application=True)
    assert StatusCode.SHUTDOWN_APPLICATION in codes(rig.go_on("m2"))


def test_decisions_that_the_log_refuses_were_never_made() -> None:
    rig = StreamsRig(commits=False)
    assert rig.join("m1") is None
    rig.refuse_all(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert GROUP not in rig.shard.groups
    rig.commits = True
    rig.join("m1")
    rig.commits = False
    rig.join("m2")
    rig.go_on("m1", client_tags=(KeyValue(key="zone", value="z"),))
    rig.refuse_all(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    rig.commits = True
    assert (sorted(rig.streams.members), rig.streams.epoch) == (["m1"], 2)
    assert rig.go_on("m1").error_code == 0
    assert rig.active("m1") == ALL
    rig.failover()


class Groups(RuleBasedStateMachine):
    """Members come, go, and say more or less late what they have; topics change; the coordinator moves."""

    members = st.sampled_from(("p/m1", "p/m2", "q/m3", "r/m4"))

    @initialize(replicas=st.integers(0, 2))
    def begin(self, replicas: int) -> None:
        self.rig = StreamsRig(AT_ONCE._replace(standby_replicas=replicas))

    @rule(member=members)
    def join(self, member: str) -> None:
        assert self.rig.join(member).error_code == 0

    @rule(member=members)
    def go_on(self, member: str) -> None:
        if member in self.rig.epochs:
            response = self.rig.go_on(member)
            if response.error_code:
                del self.rig.epochs[member], self.rig.has[member]

    @rule(member=members)
    def say_nothing_new(self, member: str) -> None:
        if member in self.rig.epochs:
            self.rig._noted(member, self.rig.beat(member, self.rig.epochs[member]))

    @rule(member=members)
    def leave(self, member: str) -> None:
        if member in self.rig.epochs:
            self.rig.beat(member, -1)
            del self.rig.epochs[member], self.rig.has[member]

    @rule(member=members, instance=st.sampled_from(("i", "j")))
    def join_as_static(self, member: str, instance: str) -> None:
        error = self.rig.join(member, instance_id=instance).error_code
        assert error in (ErrorCode.NONE, ErrorCode.UNRELEASED_INSTANCE_ID)

    @rule(member=members)
    def leave_for_a_while(self, member: str) -> None:
        group = self.rig.shard.streams(GROUP)
        if group is not None and member in self.rig.epochs and member in group.members:
            instance = group.members[member].instance_id
            error = self.rig.beat(member, -2, instance_id=instance).error_code
            assert error in (ErrorCode.NONE if instance is not None else ErrorCode.INVALID_REQUEST,)

    @rule(ms=st.sampled_from((1_000, 6_000, 50_000)))
    def wait(self, ms: int) -> None:
        self.rig.run(ms)

    @rule(name=st.sampled_from(("t", "g-re", "g-log")))
    def change_topics(self, name: str) -> None:
        if self.rig.topics.find(name) is None:
            self.rig.topics.create(name, 6)
        else:
            self.rig.topics.delete(name)
        self.rig.shard.topics_changed()

    @rule()
    def move(self) -> None:
        self.rig.failover()

    @invariant()
    def nobody_shares_a_task(self) -> None:
        group = self.rig.shard.streams(GROUP)
        if group is None:
            return
        for (part, index), holders in group.holders.items():
            active = [member for key, member in holders if key.role is Role.ACTIVE]
            assert len(active) <= 1, f"{part}_{index} is worked on by {active}"
            processes = [group.members[member].process_id for _, member in holders]
            assert len(processes) == len(set(processes)), f"a process has {part}_{index} twice: {holders}"

    def teardown(self) -> None:
        """In the end all is assigned."""
        rig = self.rig
        for name in ("t", "g-re", "g-log"):
            if rig.topics.find(name) is None:
                rig.topics.create(name, 6)
        rig.shard.topics_changed()
        rig.join("p/m1")
        rig.run(50_000)
        rig.join("p/m1")
        rig.settle("p/m1")
        assert rig.active("p/m1") == ALL
        rig.failover()


Groups.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestGroups = Groups.TestCase

"""Share groups (KIP-932) on nodes, in virtual time: members, their sessions, and what faults do to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tanist.broker.share.state_requests import Write, message_of
from tanist.controller.configs.settings import GROUP_RESOURCE
from tanist.controller.features import SHARE_VERSION
from tanist.coordinator.share.runs import RecordState, StateBatch
from tanist.coordinator.share.state_shard import SharePartitionId
from tanist.sim.workload.clients import SimClient
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import id_text
from tanist.wire.internal_topics import SHARE_STATE_TOPIC, partition_of
from tanist.wire.messages import share_acknowledge_request as acknowledging
from tanist.wire.messages import share_fetch_request as fetching
from tanist.wire.messages.delete_groups_request import DeleteGroupsRequest
from tanist.wire.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.share_group_describe_request import ShareGroupDescribeRequest
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tests.broker.cluster_rig import Cluster
from tests.broker.groups_rig import Client

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
CONFIG = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "5",
    "group.share.min.record.lock.duration.ms": "1000",
}


def share_cluster(*, nodes: int = 3, values: int = 0, config: Mapping[str, str] | None = None) -> Cluster:
    """With a topic `t`, and a group `g` that reads it from its beginning."""
    cluster = Cluster(nodes=nodes, config={**CONFIG, **(config or {})}, features={SHARE_VERSION: 2})
    cluster.create_topic("t", factor=nodes)
    cluster.configure(
        GROUP_RESOURCE, "g", {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "5000"}
    )
    for number in range(values):
        assert cluster.produce("t", [b"%d" % number]).error_code == 0
    return cluster


class Member(Client):
    """A member of a share group: it knows what it was given, and finds leaders and coordinators."""

    def __init__(self, cluster: Cluster, name: str, group: str = "g") -> None:
        super().__init__(cluster, group)
        self.name = name
        self.epoch = 0
        self.session = 0
        self.session_of: int | None = None
        self.client: SimClient = cluster.new_client(f"client-of-{name}")
        self.topic_id = cluster.image.topic_ids["t"]

    def beat(self) -> Any:
        names = ("t",) if self.epoch == 0 else None
        request = ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=self.name, member_epoch=self.epoch, subscribed_topic_names=names
        )
        answer = self.ask(request, 1, lambda answer: answer.error_code)
        self.epoch = answer.member_epoch
        return answer

    def take_part(self) -> None:
        """Be a member that has been given the partition."""
        answer = self.beat()
        while answer.assignment is None or not answer.assignment.topic_partitions:
            self.cluster.run(100)
            answer = self.beat()

    def _leader(self) -> int:
        self.cluster.until(lambda: self.cluster.leader("t") is not None)
        leader = self.cluster.leader("t")
        assert leader is not None
        if leader != self.session_of:
            self.session, self.session_of = 0, leader
        return leader

    def fetch_once(self, *words: tuple[int, int, int], max_records: int = 500, wait_ms: int = 500) -> Any:
        """One ShareFetch to the leader; None if the connection ends."""
        leader = self._leader()
        part = fetching.FetchPartition(
            partition_index=0,
            acknowledgement_batches=tuple(
                fetching.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
                for first, last, kind in words
            ),
        )
        request = fetching.ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self.session,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_records=max_records,
            batch_size=max_records,
            topics=(fetching.FetchTopic(topic_id=self.topic_id, partitions=(part,)),),
        )
        answer = self.cluster.ask(request, 2, to=leader, client=self.client)
        if answer is None or answer.error_code:
            self.session = 0
        else:
            self.session += 1
        return answer

    def fetch(self, *, max_records: int = 500, tries: int = 20) -> list[tuple[int, int, int]]:
        """Ask until there are records, or nothing for a while; what was acquired."""
        for _ in range(tries):
            answer = self.fetch_once(max_records=max_records)
            for topic in answer.responses if answer is not None and not answer.error_code else ():
                for part in topic.partitions:
                    if part.acquired_records:
                        return [
                            (each.first_offset, each.last_offset, each.delivery_count) for each in part.acquired_records
                        ]
        return []

    def acknowledge(self, *words: tuple[int, int, int], final: bool = False) -> int:
        """The partition's error, or the request's; -1 if the connection ends."""
        part = acknowledging.AcknowledgePartition(
            partition_index=0,
            acknowledgement_batches=tuple(
                acknowledging.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
                for first, last, kind in words
            ),
        )
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=-1 if final else self.session,
            is_renew_ack=any(kind == RENEW for _, _, kind in words),
            topics=(acknowledging.AcknowledgeTopic(topic_id=self.topic_id, partitions=(part,)),) if words else (),
        )
        answer = self.cluster.ask(request, 2, to=self._leader(), client=self.client, timeout_ms=40_000)
        if answer is None:
            return -1
        self.session += 1
        return int(answer.error_code or (answer.responses[0].partitions[0].error_code if words else 0))


def members(cluster: Cluster, *names: str) -> list[Member]:
    joined = [Member(cluster, name) for name in names]
    for member in joined:
        member.take_part()
    return joined


def state_coordinator(cluster: Cluster) -> int:
    """Who has the state of the share partition."""
    key = f"g:{id_text(cluster.image.topic_ids['t'])}:0"
    leader = cluster.leader(SHARE_STATE_TOPIC, partition_of(key, 5))
    assert leader is not None
    return leader


def test_records_go_to_one_member_and_come_again_when_it_lets_them_go() -> None:
    cluster = share_cluster(values=10)
    a, b = members(cluster, "a", "b")
    assert a.fetch() == [(0, 9, 1)]
    assert b.fetch(tries=3) == []
    assert a.acknowledge((0, 3, ACCEPT), (4, 5, RELEASE), (6, 6, REJECT)) == 0
    assert b.fetch() == [(4, 5, 2)]
    assert a.acknowledge((4, 5, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert a.acknowledge((7, 9, RENEW)) == 0
    cluster.run(3_700)
    assert b.fetch(tries=1) == [], "their first lock would have expired by now"
    cluster.run(2_000)
    assert a.fetch() == [(4, 5, 3), (7, 9, 2)]


def test_members_and_their_share_partitions_survive_the_leader_and_both_coordinators() -> None:
    """What was acknowledged and answered never comes again; all else does."""
    for victim in ("leader", "state", "group"):
        cluster = share_cluster(values=20)
        (a,) = members(cluster, "a")
        assert a.fetch() == [(0, 19, 1)]
        assert a.acknowledge((0, 4, ACCEPT), (8, 9, ACCEPT)) == 0
        leader = cluster.leader("t")
        assert leader is not None
        node_id = {"leader": leader, "state": state_coordinator(cluster), "group": a.coordinator()}[victim]
        cluster.host(node_id).kill()
        cluster.until(lambda c=cluster, v=node_id: c.leader("t") not in (None, v))  # type: ignore[misc]
        if node_id == leader:
            found = a.fetch()
            while found and found[-1][1] < 19:
                found += a.fetch()
            assert [(first, last) for first, last, _ in found] == [(5, 7), (10, 19)]
        assert a.acknowledge((5, 7, ACCEPT), (10, 19, ACCEPT)) == 0, victim
        assert a.beat().error_code == 0
        cluster.host(node_id).start()
        cluster.run(3_000)
        assert a.fetch(tries=3) == []


def test_a_leader_that_was_deposed_is_fenced() -> None:
    cluster = share_cluster(values=5)
    (a,) = members(cluster, "a")
    assert a.fetch() == [(0, 4, 1)]
    old = cluster.leader("t")
    assert old is not None
    share = next(iter(cluster.node(old).components.shares.deliveries().led))
    cluster.host(old).freeze()
    cluster.until(lambda: cluster.leader("t") not in (None, old))
    b = Member(cluster, "b")
    b.take_part()
    assert b.fetch() == [(0, 4, 1)]
    assert b.acknowledge((0, 4, ACCEPT)) == 0
    errors: list[int] = []
    cluster.host(old).thaw()
    delivery = share.delivery
    assert delivery is not None
    led = cluster.node(old).components.shares.deliveries().led
    led.store(share, delivery.release("a", led.limits("g")), errors.append)
    cluster.until(lambda: bool(errors))
    assert errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert b.fetch(tries=3) == []


def test_a_member_whose_connection_ends_lets_its_records_go() -> None:
    cluster = share_cluster(values=5)
    a, b = members(cluster, "a", "b")
    assert a.fetch() == [(0, 4, 1)]
    a.client.end_life()
    assert b.fetch() == [(0, 4, 2)]


def test_a_late_word_on_what_was_given_up_is_answered_when_that_is_stored() -> None:
    """A lock has expired for the last time, so the record is archived; but that is not stored yet when its member
    accepts it. If the leader died now, the next one would give the record again."""
    cluster = share_cluster(values=1)
    cluster.configure(GROUP_RESOURCE, "g", {"share.delivery.count.limit": "2"})
    (a,) = members(cluster, "a")
    coordinator = state_coordinator(cluster)
    if cluster.leader("t") == coordinator:  # it must be another broker that delivers
        cluster.host(coordinator).kill()
        cluster.until(lambda: cluster.leader("t") not in (None, coordinator))
        cluster.host(coordinator).start()
        coordinator = state_coordinator(cluster)
    assert cluster.leader("t") != coordinator
    assert a.fetch() == [(0, 0, 1)]
    while not (again := a.fetch()):
        pass
    assert again == [(0, 0, 2)]
    cluster.host(coordinator).freeze()
    share = next(iter(cluster.node(a._leader()).components.shares.deliveries().led))
    cluster.until(lambda: share.delivery is not None and share.delivery.start_offset == 1)
    assert a.acknowledge((0, 0, ACCEPT)) == 0
    cluster.until(lambda: state_coordinator(cluster) != coordinator)
    states = cluster.node(state_coordinator(cluster)).components.shares.coordinator()
    stored = [state for each in states.partitions() for state in each.shard.states.values()]
    assert [state.start_offset for state in stored] == [1]


def test_sessions_have_epochs() -> None:
    cluster = share_cluster(values=5)
    (a,) = members(cluster, "a")
    assert a.acknowledge((0, 0, ACCEPT)) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    a.session = 3
    assert a.acknowledge((0, 0, ACCEPT)) == ErrorCode.SHARE_SESSION_NOT_FOUND
    a.session = 0
    assert a.fetch_once((0, 0, ACCEPT)).error_code == ErrorCode.INVALID_REQUEST
    assert a.fetch() == [(0, 4, 1)]
    a.session += 1
    assert a.fetch_once().error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    a.session = 0
    assert a.fetch_once().error_code == 0
    assert a.acknowledge((0, 4, ACCEPT), final=True) == 0
    assert a.acknowledge(final=True) == ErrorCode.SHARE_SESSION_NOT_FOUND
    a.session = 0
    assert a.fetch(tries=3) == []


def test_an_answer_names_a_partition_that_is_new_in_the_session_once() -> None:
    cluster = share_cluster(nodes=1)
    member = Member(cluster, "a")
    member.take_part()

    def fetch(epoch: int, *indexes: int) -> list[tuple[int, int]]:
        parts = tuple(fetching.FetchPartition(partition_index=each) for each in indexes)
        topics = (fetching.FetchTopic(topic_id=member.topic_id, partitions=parts),) if parts else ()
        request = fetching.ShareFetchRequest(
            group_id="g", member_id="a", share_session_epoch=epoch, max_records=9, topics=topics
        )
        answer = cluster.ask(request, 2, client=member.client)
        assert answer.error_code == 0
        return [(part.partition_index, part.error_code) for topic in answer.responses for part in topic.partitions]

    assert fetch(0) == []
    assert fetch(1, 0) == [(0, 0)]
    assert fetch(2, 0) == []
    absent = (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert fetch(3, 7) == [absent]
    assert fetch(4) == [absent]


def test_a_partition_that_is_not_there_does_not_keep_a_first_fetch_from_what_another_has() -> None:
    """The other's state is read first."""
    cluster = share_cluster(nodes=1, values=1)
    member = Member(cluster, "a")
    member.take_part()
    parts = tuple(fetching.FetchPartition(partition_index=each) for each in (0, 7))
    topics = (fetching.FetchTopic(topic_id=member.topic_id, partitions=parts),)
    request = fetching.ShareFetchRequest(
        group_id="g",
        member_id="a",
        share_session_epoch=0,
        max_wait_ms=500,
        max_bytes=1_000,
        max_records=9,
        topics=topics,
    )
    answer = cluster.ask(request, 2, client=member.client)
    found = {
        each.partition_index: (each.error_code, len(each.acquired_records)) for each in answer.responses[0].partitions
    }
    assert found == {0: (0, 1), 7: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)}


def test_a_partition_without_a_state_does_not_keep_a_fetch_from_what_another_has() -> None:
    cluster = share_cluster(nodes=1, values=1)
    cluster.create_topic("u", factor=1)
    member = Member(cluster, "a")
    member.take_part()
    ids = cluster.image.topic_ids
    parts = (fetching.FetchPartition(partition_index=0),)
    topics = tuple(fetching.FetchTopic(topic_id=ids[each], partitions=parts) for each in ("u", "t"))
    request = fetching.ShareFetchRequest(
        group_id="g", member_id="a", share_session_epoch=0, max_wait_ms=500, min_bytes=1, max_records=9, topics=topics
    )
    answer = cluster.ask(request, 2, client=member.client)
    acquired = {each.topic_id: len(each.partitions[0].acquired_records) for each in answer.responses}
    assert acquired == {ids["u"]: 0, ids["t"]: 1}


def test_more_sessions_than_there_may_be_are_refused_later() -> None:
    cluster = share_cluster(values=5, config={"group.share.max.share.sessions": "1"})
    a, b = members(cluster, "a", "b")
    assert a.fetch() == [(0, 4, 1)]
    before = cluster.client.clock.now_ms()
    assert b.fetch_once(wait_ms=700).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert cluster.client.clock.now_ms() >= before + 700


def test_who_does_not_lead_says_who_does() -> None:
    """KIP-951, as Fetch and Produce do."""
    cluster = share_cluster(values=1)
    member = Member(cluster, "a")
    member.take_part()
    leader = member._leader()
    other = next(each for each in (1, 2, 3) if each != leader)
    topic = fetching.FetchTopic(topic_id=member.topic_id, partitions=(fetching.FetchPartition(partition_index=0),))
    request = fetching.ShareFetchRequest(
        group_id="g", member_id="a", share_session_epoch=0, max_records=1, topics=(topic,)
    )
    fetched = cluster.ask(request, 2, to=other, client=member.client)
    word = acknowledging.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=(ACCEPT,))
    said = acknowledging.AcknowledgePartition(partition_index=0, acknowledgement_batches=(word,))
    acknowledgement = acknowledging.ShareAcknowledgeRequest(
        group_id="g",
        member_id="a",
        share_session_epoch=1,
        topics=(acknowledging.AcknowledgeTopic(topic_id=member.topic_id, partitions=(said,)),),
    )
    for answer in (fetched, cluster.ask(acknowledgement, 2, to=other, client=member.client)):
        assert answer.error_code == 0
        part = answer.responses[0].partitions[0]
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert part.current_leader.leader_id == leader
        assert [each.node_id for each in answer.node_endpoints] == [leader]


@pytest.mark.parametrize("limits", [{"max_records": 0, "max_bytes": 9}, {"max_records": 9, "max_bytes": 0}])
def test_who_asks_for_nothing_hears_of_what_is_not_there_alone(limits: dict[str, Any]) -> None:
    cluster = share_cluster(nodes=1, values=1)
    member = Member(cluster, "a")
    member.take_part()
    parts = tuple(fetching.FetchPartition(partition_index=each) for each in (0, 7))
    topics = (fetching.FetchTopic(topic_id=member.topic_id, partitions=parts),)
    request = fetching.ShareFetchRequest(group_id="g", member_id="a", share_session_epoch=0, topics=topics, **limits)
    answer = cluster.ask(request, 2, client=member.client)
    found = [(part.partition_index, part.error_code) for part in answer.responses[0].partitions]
    assert found == [(7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_a_waiting_fetch_is_answered_by_the_next_record() -> None:
    cluster = share_cluster()
    (a,) = members(cluster, "a")
    assert a.fetch(tries=3) == []
    answers = cluster.send(
        fetching.ShareFetchRequest(
            group_id="g", member_id="a", share_session_epoch=a.session, max_wait_ms=20_000, min_bytes=1,
            max_records=500, batch_size=500,
        ),
        2,
        to=cluster.leader("t") or 1,
        timeout_ms=30_000,
        client=a.client,
    )  # fmt: skip
    cluster.run(1_000)
    assert not answers
    assert cluster.produce("t", [b"at last"]).error_code == 0
    cluster.until(lambda: bool(answers), 1_000)
    (part,) = answers[0].responses[0].partitions
    assert [(each.first_offset, each.last_offset) for each in part.acquired_records] == [(0, 0)]
    assert len(part.records) == len(cluster.records([b"at last"]))


def test_groups_are_listed_described_and_deleted() -> None:
    cluster = share_cluster(values=5)
    (a,) = members(cluster, "a")
    assert a.fetch() == [(0, 4, 1)]
    assert a.acknowledge((0, 1, ACCEPT)) == 0
    assert a.acknowledge((2, 2, ACCEPT)) == 0
    coordinator = a.coordinator()
    listed = cluster.ask(ListGroupsRequest(types_filter=("Share",)), 5, to=coordinator)
    assert [(each.group_id, each.group_type, each.protocol_type) for each in listed.groups] == [("g", "share", "share")]
    described = cluster.ask(ShareGroupDescribeRequest(group_ids=("g", "h")), 1, to=coordinator).groups
    assert [each.error_code for each in described] == [0, ErrorCode.GROUP_ID_NOT_FOUND]
    assert [each.topic_name for each in described[0].members[0].assignment.topic_partitions] == ["t"]
    assert (described[0].group_state, described[0].assignor_name) == ("Stable", "simple")
    asked = DescribeShareGroupOffsetsRequest(groups=(DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None),))
    offsets = cluster.ask(asked, 1, to=coordinator).groups[0].topics[0].partitions[0]
    assert (offsets.start_offset, offsets.lag, offsets.error_code) == (2, 2, 0)
    named = (("t", 7), ("none", 0))
    absent = tuple(DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=(index,)) for name, index in named)
    asked = DescribeShareGroupOffsetsRequest(
        groups=(DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=absent),)
    )
    found = [each.partitions[0] for each in cluster.ask(asked, 1, to=coordinator).groups[0].topics]
    assert [(each.start_offset, each.lag, each.error_code) for each in found] == [(-1, -1, 0)] * 2
    nothing = DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=())
    asked = DescribeShareGroupOffsetsRequest(
        groups=(DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=(nothing,)),)
    )
    assert cluster.ask(asked, 1, to=coordinator).groups[0].topics[0].partitions == ()
    delete = DeleteGroupsRequest(groups_names=("g",))
    assert cluster.ask(delete, 2, to=coordinator).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    a.epoch = -1
    a.beat()
    assert cluster.ask(delete, 2, to=coordinator, timeout_ms=20_000).results[0].error_code == 0
    assert cluster.ask(ListGroupsRequest(), 5, to=coordinator).groups == ()


def test_the_coordinator_of_a_share_partition_is_found_by_its_three_parts() -> None:
    cluster = share_cluster()
    members(cluster, "a")
    key = f"g:{id_text(cluster.image.topic_ids['t'])}:0"
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=(key, "g", "g:x:0"))
    found = cluster.ask(request, 6).coordinators
    assert [each.error_code for each in found] == [0, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
    assert found[0].node_id == state_coordinator(cluster)
    assert cluster.ask(request, 5).coordinators[0].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("level", [0, 1])
def test_share_groups_are_there_from_share_version_1_on(level: int) -> None:
    cluster = Cluster(config=CONFIG, features={SHARE_VERSION: level})
    cluster.create_topic("t")
    join = ShareGroupHeartbeatRequest(group_id="g", member_id="a", subscribed_topic_names=("t",))
    fetch = fetching.ShareFetchRequest(group_id="g", member_id="a", share_session_epoch=4)
    word = acknowledging.ShareAcknowledgeRequest(group_id="g", member_id="a", share_session_epoch=4)
    for request in (join, fetch, word):
        off = cluster.ask(request, 1).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert off == (level == 0)


def test_records_that_an_unclean_election_has_taken_are_forgotten() -> None:
    """What is stored is beyond the log's end: others have these offsets by now, and nobody has had them."""
    cluster = share_cluster(values=5)
    (a,) = members(cluster, "a")
    where = SharePartitionId("g", a.topic_id, 0)
    lost = Write(
        -1, -1, 0, 8, (StateBatch(0, 2, RecordState.ACKNOWLEDGED, 1), StateBatch(3, 7, RecordState.ARCHIVED, 5))
    )
    answer = cluster.ask(message_of("g", {where: lost}), 1, to=state_coordinator(cluster))
    assert answer.results[0].partitions[0].error_code == 0
    assert a.fetch(tries=3) == []
    for number in range(5):
        assert cluster.produce("t", [b"%d" % number]).error_code == 0
    assert a.fetch() == [(5, 9, 1)]


def test_the_log_of_states_is_pruned_and_says_the_same_afterwards() -> None:
    cluster = share_cluster(values=40, config={"share.coordinator.state.topic.prune.interval.ms": "20000"})
    (a,) = members(cluster, "a")
    while found := a.fetch(tries=2, max_records=1):
        for first, last, _ in found:
            for offset in range(first, last + 1):
                assert offset % 10 == 9 or a.acknowledge((offset, offset, ACCEPT)) == 0
    index = partition_of(f"g:{id_text(a.topic_id)}:0", 5)
    logs = cluster.hosted(SHARE_STATE_TOPIC, index)
    written = max(hosted.log.log_end_offset for hosted in logs.values())
    assert written > 30
    cluster.run(25_000)
    leader = state_coordinator(cluster)
    assert logs[leader].log.log_start_offset >= written - 1
    cluster.host(leader).kill()
    cluster.until(lambda: cluster.leader(SHARE_STATE_TOPIC, index) not in (None, leader))
    cluster.run(6_000)
    assert a.fetch()[0][0] % 10 == 9


@pytest.mark.parametrize(("reset", "first"), [("by_duration:PT3S", 2), ("by_duration:P1D", 0), ("latest", 4)])
def test_a_group_begins_where_its_configuration_says(reset: str, first: int) -> None:
    cluster = share_cluster(values=2)
    cluster.run(10_000)
    for number in range(2):
        assert cluster.produce("t", [b"late %d" % number]).error_code == 0
    cluster.configure(GROUP_RESOURCE, "g", {"share.auto.offset.reset": reset})
    (a,) = members(cluster, "a")
    early = a.fetch(tries=2)
    assert cluster.produce("t", [b"last"]).error_code == 0
    assert (early or a.fetch())[0][0] == first

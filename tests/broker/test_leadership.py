"""A coordinator makes sure that it leads before it answers from memory; a deposed one answers nothing."""

from __future__ import annotations

from tanist.broker.replication.leadership import Confirmation, Leadership
from tanist.wire.errors import ErrorCode
from tanist.wire.internal_topics import OFFSETS_TOPIC
from tanist.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tanist.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.groups_rig import Client, groups_cluster

COMMIT_TIMEOUT_MS = 3_000


class Stand:
    """Three brokers, a group with offset 1 committed, and the names of who is who."""

    def __init__(self, min_isr: int = 2) -> None:
        config = {"min.insync.replicas": str(min_isr), "offsets.commit.timeout.ms": str(COMMIT_TIMEOUT_MS)}
        self.cluster = groups_cluster(config=config)
        self.cluster.create_topic("t")
        self.client = Client(self.cluster)
        assert self.client.commit(1) == 0
        self.old = self.client.coordinator()
        self.controller = self.cluster.controller()
        self.index = self.client.partition

    def off_the_controller(self) -> None:
        """Have the coordinator on another node than the active controller."""
        while self.old == self.controller:
            host = self.cluster.host(self.controller)
            host.kill()
            self.cluster.until(lambda: self.client.coordinator() != self.old)
            host.start()
            self.cluster.until(lambda: len(self.isr()) == 3)
            self.old = self.client.coordinator()
            self.controller = self.cluster.controller()

    def isr(self) -> tuple[int, ...]:
        leader = self.cluster.leader(OFFSETS_TOPIC, self.index)
        hosted = None if leader is None else self.cluster.hosted(OFFSETS_TOPIC, self.index)[leader].leader
        return () if hosted is None else tuple(hosted.isr)

    def asked_directly(self, broker: int) -> tuple[int, int]:
        """(error, committed offset), by this broker."""
        wanted = OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),))
        answer = self.cluster.ask(wanted, 7, to=broker)
        offsets = [each.committed_offset for topic in answer.topics for each in topic.partitions]
        return answer.error_code, offsets[0] if offsets else -1


def test_who_is_cut_off_and_deposed_tells_nothing() -> None:
    stand = Stand()
    others = sorted({1, 2, 3} - {stand.old})
    for other in others:
        stand.cluster.cut(stand.old, other)
    cluster = stand.cluster
    hosted = cluster.hosted(OFFSETS_TOPIC, stand.index)
    cluster.until(lambda: any(hosted[each].leader is not None for each in others))
    new = next(each for each in others if hosted[each].leader is not None)
    assert hosted[stand.old].leader is not None, "it does not know"

    def committed() -> bool:
        answer = cluster.ask(stand.client.commit_request(2), 8, to=new)
        return bool(answer.topics[0].partitions[0].error_code == 0)

    cluster.until(committed)
    cluster.until(lambda: stand.asked_directly(new) == (0, 2))
    assert stand.asked_directly(stand.old) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    cluster.heal()
    cluster.until(lambda: stand.asked_directly(stand.old) == (ErrorCode.NOT_COORDINATOR, -1))
    assert stand.client.committed() == 2


def test_who_was_deposed_hears_it_from_its_followers() -> None:
    """The controller cannot reach it; the third broker can, and knows better."""
    stand = Stand()
    stand.off_the_controller()
    stand.cluster.cut(stand.old, stand.controller)
    cluster = stand.cluster
    third = next(iter({1, 2, 3} - {stand.old, stand.controller}))
    epoch = cluster.hosted(OFFSETS_TOPIC, stand.index)[stand.old].leader_epoch
    cluster.until(lambda: cluster.hosted(OFFSETS_TOPIC, stand.index)[third].leader_epoch > epoch)
    assert cluster.hosted(OFFSETS_TOPIC, stand.index)[stand.old].leader is not None, "it does not know"
    began_ms = cluster.world.now_ms
    assert stand.asked_directly(stand.old) == (ErrorCode.NOT_COORDINATOR, -1)
    assert cluster.world.now_ms - began_ms < COMMIT_TIMEOUT_MS, "by its follower, not by the clock"


def test_with_too_small_an_isr_a_session_with_the_controller_is_wanted_too() -> None:
    """Members of the ELR may be elected then, and nobody knows whom to ask."""
    stand = Stand(min_isr=3)
    stand.off_the_controller()
    cluster = stand.cluster
    third = next(iter({1, 2, 3} - {stand.old, stand.controller}))
    cluster.host(third).kill()
    cluster.until(lambda: len(stand.isr()) == 2)
    hosted = cluster.hosted(OFFSETS_TOPIC, stand.index)[stand.old]
    assert hosted.leader is not None
    assert hosted.leader.under_min_isr
    node = cluster.node(stand.old)
    assert node.lifecycle.in_session
    assert stand.asked_directly(stand.old) == (0, 1)
    stand.cluster.cut(stand.old, stand.controller)
    cluster.until(lambda: not node.lifecycle.in_session)
    if hosted.leader is not None:
        assert stand.asked_directly(stand.old)[0] != 0
    cluster.heal()
    cluster.host(third).start()
    assert stand.client.committed() == 1


def test_a_replica_that_left_still_says_that_there_is_a_later_epoch() -> None:
    """An operator may have taken the replica away by the time a deposed leader asks."""
    cluster = groups_cluster(nodes=5)
    cluster.create_topic("t", assignment=[[1, 2, 3]])
    cluster.until(lambda: cluster.leader("t") == 1)
    hosted = cluster.hosted("t")[1]
    outsider = 5
    assert "t" not in cluster.node(outsider).replicas.by_topic

    def error_of(epoch: int) -> int:
        part = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(
            replica_id=-2, topics=(OffsetForLeaderTopic(topic="t", partitions=(part,)),)
        )
        answer = cluster.ask(request, 4, to=outsider)
        return int(answer.topics[0].partitions[0].error_code)

    cluster.host(1).kill()
    cluster.until(lambda: cluster.leader("t") in (2, 3))
    cluster.run(100)
    assert error_of(hosted.leader_epoch) == ErrorCode.FENCED_LEADER_EPOCH
    now = cluster.hosted("t")[2].leader_epoch
    assert error_of(now) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert error_of(-1) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_several_groups_in_one_request_are_each_reported_what_is_so() -> None:
    stand = Stand()
    other = Client(stand.cluster, "another")
    assert other.commit(7) == 0
    wanted = OffsetFetchRequestTopics(name="t", partition_indexes=(0,))
    request = OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=group, topics=(wanted,)) for group in ("g", "another", "none"))
    )
    for broker in (1, 2, 3):
        answers = {each.group_id: each for each in stand.cluster.ask(request, 9, to=broker).groups}
        for group, offset in (("g", 1), ("another", 7)):
            here = Client(stand.cluster, group).coordinator() == broker
            assert answers[group].error_code == (0 if here else ErrorCode.NOT_COORDINATOR)
            if here:
                assert answers[group].topics[0].partitions[0].committed_offset == offset


def test_a_lone_replica_asks_nobody() -> None:
    cluster = groups_cluster(nodes=1)
    cluster.create_topic("t", factor=1)
    client = Client(cluster)
    assert client.commit(3) == 0
    leadership: Leadership = cluster.node(1).components.leadership
    confirmations: list[Confirmation] = []
    leadership.confirm(cluster.hosted(OFFSETS_TOPIC, client.partition)[1], COMMIT_TIMEOUT_MS, confirmations.append)
    assert confirmations == [Confirmation.YES]
    assert len(leadership) == 0

"""The events of the active controller: each is emitted where it decides. And what is committed is emitted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tanist.controller.partitions.log_info import LogInfo
from tanist.events.event import Event
from tanist.events.metadata import (
    AlterPartitionRefused,
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    ConfigChanged,
    ControllerActivated,
    DirectoriesLost,
    ElrsEmptied,
    FencingBegun,
    FencingInterrupted,
    LeaderElected,
    LogInfoDropped,
    PartitionChanged,
    PartitionCreated,
    RecoveriesBegunAnew,
    RecoveryDecided,
    RecoveryPhaseEntered,
    RegistrationRefused,
    RegistrationRepeated,
    SessionExpired,
    ShutdownAllowed,
    StaleBrokerEpochRefused,
    TopicCreated,
    TopicDeleted,
    UncleanElection,
)
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest
from tanist.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tests.broker.cluster_rig import Cluster, Heard
from tests.controller.controller_double import Cluster as Controlled
from tests.controller.controller_double import directory


class Scene(Controlled):
    """A controller of brokers 1 to 3, and what it has emitted since they are there."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.heard: list[Event] = []
        self.start(1, 2, 3)
        self.events.subscribe(self.heard.append)

    def lose_all(self) -> None:
        """t-0 has no leader, and nobody who surely has everything."""
        self.create_topic("t", (1, 2), unclean_recovery_strategy="Balanced")
        for broker_id in (1, 2):
            self.commit(self.controller.fencing.fence(self.image, broker_id, self.epoch(broker_id)))
            self.register(broker_id, incarnation=2)
        self.heard.clear()

    def epoch(self, broker_id: int) -> int:
        return self.image.brokers[broker_id].epoch

    def answer(self, broker_id: int, **other: Any) -> None:
        state = self.partition("t")
        info = LogInfo(self.epoch(broker_id), state.leader_epoch, 0, 10)
        key = (self.image.topic_ids["t"], 0)
        self.asked.clear()
        self.controller.handle_replica_log_info(broker_id, {key: replace(info, **other)}, self.now_ms)
        self.advance(100, beating=(1, 2, 3))


def refused_proposal(scene: Scene) -> list[Event]:
    scene.create_topic("t", (1, 2))
    scene.commit(scene.controller.fencing.fence(scene.image, 2, scene.epoch(2)))
    scene.heard.clear()
    assert scene.alter_isr("t", (1, 2)) == ErrorCode.INELIGIBLE_REPLICA
    return [AlterPartitionRefused("t-0", 1, "INELIGIBLE_REPLICA")]


def proposal_of_a_former_life(scene: Scene) -> list[Event]:
    scene.ask(AlterPartitionRequest(broker_id=1, broker_epoch=99))
    return [StaleBrokerEpochRefused("AlterPartition", 1, 99)]


def heartbeat_of_a_former_life(scene: Scene) -> list[Event]:
    scene.ask(BrokerHeartbeatRequest(broker_id=1, broker_epoch=99, current_metadata_offset=0))
    return [StaleBrokerEpochRefused("BrokerHeartbeat", 1, 99)]


def registered_while_a_former_life_may_be_alive(scene: Scene) -> list[Event]:
    scene.ask(scene.registration(1, incarnation=2))
    return [RegistrationRefused(1, "DUPLICATE_BROKER_REGISTRATION")]


def registered_again(scene: Scene) -> list[Event]:
    epoch = scene.epoch(1)
    scene.register(1)
    return [RegistrationRepeated(1, epoch)]


def silent(scene: Scene) -> list[Event]:
    scene.advance(10_000, beating=(1, 2))
    return [SessionExpired(3, scene.epoch(3))]


def fenced_in_parts(scene: Scene) -> list[Event]:
    """The scene takes one partition at a time from a dead broker."""
    scene.create_topic("t", (1, 2), (1, 2), (1, 2))
    epoch = scene.epoch(1)
    scene.commit(scene.controller.fencing.fence(scene.image, 1, epoch))
    scene.controller.contact(1, epoch, scene.now_ms)
    return [FencingBegun(1, epoch), FencingInterrupted(1, epoch)]


def shut_down(scene: Scene) -> list[Event]:
    scene.heartbeat(1, want_shut_down=True)
    return [ShutdownAllowed(1, scene.epoch(1), fenced=True)]


def directory_lost(scene: Scene) -> list[Event]:
    scene.heartbeat(1, offline_log_dirs=(directory(1),))
    return [DirectoriesLost(1, (str(directory(1)),))]


def a_lower_min_isr(scene: Scene) -> list[Event]:
    scene.create_topic("t", (1, 2), min_insync_replicas="2")
    scene.commit(scene.controller.fencing.fence(scene.image, 2, scene.epoch(2)))
    scene.set_config((2, "t"), "min.insync.replicas", "1")
    return [ElrsEmptied(1)]


@pytest.mark.parametrize(
    "act",
    [
        a_lower_min_isr,
        refused_proposal,
        proposal_of_a_former_life,
        heartbeat_of_a_former_life,
        registered_while_a_former_life_may_be_alive,
        registered_again,
        silent,
        fenced_in_parts,
        shut_down,
        directory_lost,
    ],
)
def test_it_is_emitted_at_its_decision(act: Callable[[Scene], list[Event]]) -> None:
    scene = Scene(fenced_partitions_max=1)
    assert act(scene) == scene.heard


def test_an_unclean_recovery_tells_what_it_waits_for_and_whom_it_elects() -> None:
    scene = Scene(unclean_recovery_timeout_ms=1_000)
    scene.lose_all()
    scene.heartbeat(1)
    scene.advance(1, beating=(1, 3))
    assert scene.heard == [RecoveryPhaseEntered("t-0", "LAST_KNOWN_AWAITED", "Balanced")]
    scene.heard.clear()
    scene.heartbeat(2)
    scene.advance(1, beating=(1, 2, 3))
    assert scene.heard == [RecoveryPhaseEntered("t-0", "COMPARING", "Balanced")]
    scene.heard.clear()
    old, epoch = scene.epoch(2) - 1, scene.partition("t").leader_epoch
    scene.answer(2, broker_epoch=old)
    scene.answer(2, leader_epoch=epoch - 1)
    assert scene.heard == [
        LogInfoDropped("t-0", 2, old, epoch, other_registration=True),
        LogInfoDropped("t-0", 2, scene.epoch(2), epoch - 1, other_registration=False),
    ]


def test_another_controller_begins_recoveries_anew() -> None:
    scene = Scene()
    scene.lose_all()
    scene.controller.deactivate(scene.standby.copy())
    scene.controller.activate(2, scene.now_ms, len(scene.log))
    assert scene.heard == [RecoveriesBegunAnew(1)]


# -- committed


COMMITTED = (
    TopicCreated,
    TopicDeleted,
    PartitionCreated,
    PartitionChanged,
    LeaderElected,
    BrokerRegistered,
    BrokerFenced,
    BrokerUnfenced,
    ConfigChanged,
)


def test_each_committed_change_is_emitted_once_by_the_active_controller() -> None:
    cluster = Cluster(nodes=5)
    heard = Heard(cluster)
    cluster.create_topic("t", assignment=[[1, 2, 3]], config={"min.insync.replicas": "2"})
    controller = cluster.controller()
    victim = next(node_id for node_id in (1, 2, 3) if node_id != controller)
    before = cluster.node(controller).metadata.image.topics[cluster.node(controller).metadata.image.topic_ids["t"]]
    was = before.partitions[0]
    cluster.host(victim).kill()
    cluster.until(lambda: victim not in cluster.partition("t").isr)
    assert heard.of(TopicCreated) == [TopicCreated("t", str(before.topic_id))]
    assert heard.of(ConfigChanged) == [ConfigChanged(2, "t", "min.insync.replicas", removed=False)]
    (created,) = heard.of(PartitionCreated)
    assert created == PartitionCreated("t-0", (1, 2, 3), (1, 2, 3), was.leader, 0)
    assert [event.broker_id for event in heard.of(BrokerFenced)] == [victim]
    changes = heard.of(PartitionChanged)
    assert [(each.partition, each.partition_epoch) for each in changes] == [
        ("t-0", was.partition_epoch + n + 1) for n in range(len(changes))
    ]
    assert changes[0].isr_before == was.isr
    assert changes[-1].isr == cluster.partition("t").isr
    assert [(each.leader, each.leader_epoch) for each in heard.of(LeaderElected)] == [
        (each.leader, each.leader_epoch)
        for each in changes
        if each.leader >= 0 and each.leader_epoch > each.leader_epoch_before
    ]
    emitters = {node_id for node_id, event in heard.events if isinstance(event, COMMITTED)}
    assert emitters == {controller}
    cluster.delete_topic("t")
    assert heard.of(TopicDeleted) == [TopicDeleted("t", str(before.topic_id))]


def test_a_restart_repeats_nothing() -> None:
    """A cluster of one node replays its log at its start: that is no news."""
    cluster = Cluster(nodes=1)
    cluster.create_topic("t", factor=1)
    heard = Heard(cluster)
    cluster.host(1).kill()
    cluster.world.start()
    cluster.until(cluster.world.ready)
    found = Counter(type(event) for _, event in heard.events)
    assert found[ControllerActivated] == 1
    assert found[BrokerRegistered] == found[BrokerUnfenced] == 1
    assert not found[TopicCreated] + found[PartitionCreated]


def test_an_unclean_election_is_emitted_when_it_is_committed() -> None:
    config = {"min.insync.replicas": "1", "unclean.recovery.timeout.ms": "1000"}
    cluster = Cluster(nodes=5, config=config)
    heard = Heard(cluster)
    cluster.create_topic("t", assignment=[[4, 5]], config={"unclean.recovery.strategy": "Aggressive"})
    leader = cluster.leader("t")
    assert leader is not None
    other = 9 - leader
    cluster.host(other).kill()
    cluster.until(lambda: other not in cluster.partition("t").isr)
    cluster.host(leader).lose_power()
    cluster.until(lambda: cluster.partition("t").leader == -1)
    cluster.host(other).start()
    cluster.until(lambda: bool(heard.of(UncleanElection)), within_ms=60_000)
    (election,) = heard.of(UncleanElection)
    (decided,) = heard.of(RecoveryDecided)
    assert (election.partition, election.leader, election.strategy) == ("t-0", other, "Aggressive")
    assert [broker_id for broker_id, _, _ in election.logs] == [other]
    assert (decided.leader, decided.unheard) == (other, ())
    (elected,) = [each for each in heard.of(LeaderElected) if each.unclean]
    assert (elected.leader, elected.leader_epoch) == (election.leader, election.leader_epoch)

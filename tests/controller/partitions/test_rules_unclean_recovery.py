"""Sentences of the KIP's section "Unclean recovery" that need a story of their own."""

from __future__ import annotations

import pytest

from tanist.controller.features import Bootstrap
from tanist.controller.partitions.unclean_recovery import Phase
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tests.controller.controller_double import Cluster
from tests.controller.partitions.test_unclean_recovery import TIMEOUT_MS, Rig, lost


def test_balanced_asks_all_registered_replicas_when_nobody_of_last_known_elr_is_left() -> None:
    rig = lost()
    for broker_id in (1, 2):
        rig.cluster.ask(UnregisterBrokerRequest(broker_id=broker_id))
    assert rig.phase() is Phase.LAST_KNOWN_AWAITED  # 3 is registered, and not there
    rig.cluster.heartbeat(3)
    assert rig.phase() is Phase.COMPARING
    assert rig.asked() == [3]
    rig.answer(3, 0, 5)
    assert (rig.state.leader, rig.state.recovering) == (3, True)


def test_balanced_is_over_when_all_live_replicas_have_answered() -> None:
    """The timeout is for those that are slow, not for those that are not there."""
    rig = lost()
    rig.cluster.heartbeat(1)
    rig.cluster.heartbeat(2)
    assert sorted(rig.asked()) == [1, 2]
    rig.answer(1, 0, 5)
    assert rig.state.leader == -1
    rig.answer(2, 0, 7)
    assert rig.state.leader == 2
    assert rig.cluster.now_ms < 1_000_000 + TIMEOUT_MS


def test_a_replica_that_has_rebooted_since_it_answered_is_fenced_when_it_registers() -> None:
    """KIP: "otherwise, the replica may become the leader but will be fenced later when it registers"."""
    rig = lost()
    for broker_id in (1, 2):
        rig.cluster.heartbeat(broker_id)
    rig.asked()
    rig.answer(1, 0, 5)
    rig.answer(2, 0, 7)
    assert rig.state.leader == 2
    epoch = rig.state.leader_epoch
    rig.cluster.controller._heartbeats.end_session(2)  # it is gone, and nobody has noticed
    rig.lives[2] += 1
    rig.cluster.register(2, rig.lives[2], previous_broker_epoch=-1)
    assert rig.cluster.image.brokers[2].fenced
    assert (rig.state.leader, rig.state.isr, rig.state.leader_epoch) == (-1, (), epoch + 1)
    assert rig.state.last_known_elr == (2,)


def test_last_known_elr_is_emptied_when_the_isr_reaches_min_isr() -> None:
    rig = Rig()
    rig.fence(3, 2)
    rig.unclean(2)
    assert (rig.state.isr, rig.state.elr, rig.state.last_known_elr) == ((1,), (), (2,))
    assert rig.cluster.alter_isr("t", (1, 3)) == ErrorCode.INELIGIBLE_REPLICA
    rig.cluster.heartbeat(3)
    assert rig.cluster.alter_isr("t", (1, 3)) == ErrorCode.NONE
    assert (rig.state.isr, rig.state.last_known_elr) == ((1, 3), ())


@pytest.mark.parametrize(("enabled", "elected"), [(True, -1), (False, 3)])
def test_the_manager_takes_the_place_of_elections_that_pick_anyone_is_there(enabled: bool, elected: int) -> None:
    """KIP: "we decide to replace the random election with the Unclean Recovery". 3 is out of sync, and back first."""
    rig = Rig("Balanced", unclean_recovery_manager_enabled=enabled)
    rig.cluster.set_config((2, "t"), "unclean.recovery.strategy", None)
    rig.cluster.set_config((2, "t"), "unclean.leader.election.enable", "true")
    rig.fence(3, 2, 1)
    assert (rig.state.leader, rig.state.elr) == (-1, (1, 2))
    rig.cluster.heartbeat(3)
    assert rig.state.leader == elected


@pytest.mark.parametrize(("allowed", "leader"), [("true", 3), ("false", -1)])
def test_without_elr_elections_are_as_before_the_kip_though_the_manager_is_on(allowed: str, leader: int) -> None:
    cluster = Cluster(static_configs={"metadata.max.idle.interval.ms": "0"}, bootstrap=Bootstrap(features={}))
    assert cluster.settings.unclean_recovery_manager_enabled
    cluster.start(1, 2, 3)
    cluster.create_topic("t", (1, 2, 3), **{"unclean.leader.election.enable": allowed})
    for broker_id in (3, 2, 1):
        cluster.heartbeat(broker_id, want_fence=True)
    assert (cluster.partition("t").isr, cluster.partition("t").leader) == ((1,), -1)
    cluster.heartbeat(3)  # it is not in sync
    cluster.advance(0)
    assert cluster.asked == []
    assert cluster.partition("t").leader == leader
    cluster.heartbeat(1)
    assert cluster.partition("t").leader == (3 if leader == 3 else 1)

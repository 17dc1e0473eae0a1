"""When the controller's periodic tasks are due: rule 100."""

from __future__ import annotations

from tests.controller.controller_double import Cluster


def test_rule_100_the_unclean_sweep_comes_every_five_minutes() -> None:
    cluster = Cluster(
        static_configs={"metadata.max.idle.interval.ms": "0"},
        auto_leader_rebalance_enable=False,
        unclean_recovery_manager_enabled=False,
    )
    cluster.start(1, 2)
    for name in ("first", "second"):
        cluster.create_topic(name, (1, 2), min_insync_replicas="1")
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(2)

    def swept(topic: str) -> bool:
        return cluster.partition(topic).leader == 2

    cluster.set_config((2, "first"), "unclean.leader.election.enable", "true")
    cluster.advance(299_999, beating=(2,))
    assert not swept("first")
    cluster.advance(1, beating=(2,))
    assert swept("first")
    cluster.set_config((2, "second"), "unclean.leader.election.enable", "true")
    cluster.advance(299_999, beating=(2,))
    assert not swept("second")
    cluster.advance(1, beating=(2,))
    assert swept("second")

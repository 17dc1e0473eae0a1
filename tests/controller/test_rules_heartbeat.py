"""Who a controlled shutdown waits for: rule 92, where we differ."""

from __future__ import annotations

from tests.controller.controller_double import Cluster


def test_deviation_92_what_a_broker_has_read_counts_from_the_heartbeat_that_unfences_it() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.create_topic("foo", (1, 2))
    cluster.register(3)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.partition("foo").leader == 2
    moved = len(cluster.log) - 1
    cluster.heartbeat(2, current_metadata_offset=moved)
    assert not cluster.heartbeat(3, current_metadata_offset=moved).is_fenced
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_rule_92_nor_is_one_that_has_not_read_it_passed_over() -> None:
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.create_topic("foo", (1, 2))
    cluster.register(3)
    registered = len(cluster.log) - 1
    cluster.heartbeat(1, want_shut_down=True)
    moved = len(cluster.log) - 1
    cluster.heartbeat(2, current_metadata_offset=moved)
    assert not cluster.heartbeat(3, current_metadata_offset=registered).is_fenced
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down

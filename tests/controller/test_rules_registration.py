"""What makes a shutdown clean, and what has nothing to do with it: rule 85."""

from __future__ import annotations

import pytest

from tests.controller.controller_double import Cluster, directory


@pytest.mark.parametrize(("gives_its_epoch", "elr"), [(True, (2,)), (False, ())])
def test_rule_85_other_directories_do_not_make_a_shutdown_unclean(gives_its_epoch: bool, elr: tuple[int, ...]) -> None:
    """A lost disk shows through the epoch, which the broker then does not give (rule 87), and not here."""
    cluster = Cluster()
    cluster.start(1, 2, 3)
    cluster.create_topic("foo", (1, 2, 3), min_insync_replicas="3")
    cluster.heartbeat(2, want_fence=True)
    assert cluster.partition("foo").elr == (2,)
    stored = cluster.image.brokers[2]
    cluster.controller._heartbeats.end_session(2)
    new = directory(2, 7)
    assert new not in stored.directories
    cluster.register(2, 2, log_dirs=(new,), previous_broker_epoch=stored.epoch if gives_its_epoch else -1)
    assert cluster.image.brokers[2].directories == (new,)
    assert cluster.partition("foo").elr == elr

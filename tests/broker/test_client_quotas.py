"""Quotas of clients are changed by any node, known to all, and outlast a controller and a restart."""

from __future__ import annotations

import pytest

from tests.broker import quota_answers
from tests.broker.cluster_rig import Cluster
from tests.broker.quota_answers import STATE, STEPS, alter, describe, describe_all, outcome, state


@pytest.mark.parametrize("version", [0, 1])
def test_changes_are_answered_as_by_apache_kafka(version: int) -> None:
    cluster = Cluster()
    for number, (request, expected) in enumerate(STEPS):
        assert outcome(cluster.ask(request, version, to=1 + number % 3)) == expected
    cluster.until(
        lambda: all(state(cluster.ask(describe_all(), version, to=node_id)) == STATE for node_id in cluster.world.hosts)
    )


def test_they_are_found_by_a_filter() -> None:
    cluster = Cluster(nodes=1)
    for request, _ in STEPS:
        cluster.ask(request, 1)

    def found(*components: tuple[str, int, str | None], strict: bool = False) -> set[object]:
        return set(state(cluster.ask(describe(*components, strict=strict), 1)))

    pair, user = (("client-id", None), ("user", "u")), (("user", "u"),)
    assert found(("user", 0, "u")) == {pair, user}
    assert found(("user", 0, "u"), strict=True) == {user}
    assert found(("user", 1, None)) == {(("user", None),)}
    assert found(("ip", 2, None)) == {(("ip", None),), (("ip", "10.0.0.1"),)}
    assert found(("user", 2, None), ("client-id", 1, None)) == {pair}


def test_they_outlast_a_restart() -> None:
    cluster = Cluster()
    cluster.ask(alter(({"user": "u"}, {quota_answers.PRODUCE: 1000.0})), 1)
    for host in cluster.world.hosts.values():
        host.kill()
    for host in cluster.world.hosts.values():
        host.start()
    cluster.until(cluster.world.ready)
    assert state(cluster.ask(describe_all(), 1)) == {(("user", "u"),): {quota_answers.PRODUCE: 1000.0}}

"""Thousands of connections that say nothing, or begin to authenticate and stop: what they cost, and when they end."""

from __future__ import annotations

import pytest

from tanist.broker.authentication.gate import GuardedConnection
from tanist.sim.world.world import BROKER_PORT, CONTROLLER_PORT
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.api_versions import API_VERSIONS
from tests.broker.authentication.sasl_rig import SASL_EVERYWHERE, RawClient
from tests.broker.cluster_rig import Cluster

CROWD = 2_000
IDLE_MS = 120_000
CHECK_MS = 30_000
"""As late as that an idle connection is found."""


def open_at(cluster: Cluster) -> int:
    """Of the connections that tests have made; nodes have some among themselves."""
    connections = cluster.node(1).components.connections
    return sum(each.connection.peer.startswith("raw-") for each in connections)


@pytest.mark.parametrize("config", [{}, SASL_EVERYWHERE], ids=["PLAINTEXT", "SASL"])
@pytest.mark.parametrize(
    ("roles", "port"),
    [
        ({1: "broker,controller"}, BROKER_PORT),
        ({1: "broker,controller"}, CONTROLLER_PORT),
        ({1: "controller", 2: "broker"}, CONTROLLER_PORT),
    ],
    ids=["broker", "controller", "controller alone"],
)
def test_who_says_nothing_is_closed_at_the_time_that_the_configuration_gives(
    config: dict[str, str], roles: dict[int, str], port: int
) -> None:
    cluster = Cluster(config={**config, "connections.max.idle.ms": str(IDLE_MS)}, roles=roles)
    cluster.run(60_000)
    silent, stopped = RawClient(cluster, port=port), RawClient(cluster, port=port)
    stopped.ask(API_VERSIONS, 3)
    cluster.run(IDLE_MS - 1_000)
    assert open_at(cluster) == 2
    cluster.run(CHECK_MS + 1_000)
    assert None not in (silent.closed, stopped.closed)
    assert open_at(cluster) == 0


def test_below_zero_nobody_is_closed() -> None:
    cluster = Cluster(nodes=1, config={"connections.max.idle.ms": "-1"})
    silent = RawClient(cluster)
    cluster.run(900_000)
    assert silent.closed is None


def test_thousands_who_say_nothing_or_stop_keep_nobody_out() -> None:
    cluster = Cluster(nodes=1, config={**SASL_EVERYWHERE, "connections.max.idle.ms": str(IDLE_MS)})
    silent = [RawClient(cluster) for _ in range(CROWD)]
    stopped = [RawClient(cluster) for _ in range(CROWD)]
    for each in stopped:
        assert each.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
    assert open_at(cluster) == 2 * CROWD
    client = RawClient(cluster)
    assert client.log_in().error_code == 0
    assert client.ask(MetadataRequest(topics=()), 12).cluster_id is not None
    guarded = sum(type(each) is GuardedConnection for each in cluster.node(1).components.connections)
    assert guarded == 2 * CROWD, "nobody else is in"
    cluster.run(IDLE_MS + CHECK_MS)
    assert all(each.closed is not None for each in (*silent, *stopped))
    assert open_at(cluster) == 0

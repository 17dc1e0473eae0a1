"""Limits of connections: who waits, who is closed, and who is not hindered (KIP-402, 612)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tanist.events.process import ConnectionRefused, ConnectionsExhausted
from tanist.sim.world.world import BROKER_PORT
from tanist.wire.messages.metadata_request import MetadataRequest
from tests.broker.cluster_rig import Cluster
from tests.broker.test_replication_quotas import BROKER
from tests.broker.throttle_rig import Caller, Sent, set_quota

CLIENTS_PORT = 9100
ALL = MetadataRequest(topics=None)


def one_node(config: Mapping[str, str] | None = None) -> Cluster:
    """With a listener for clients beside that of brokers."""
    listeners = f"PLAINTEXT://node1:{BROKER_PORT},CLIENTS://node1:{CLIENTS_PORT}"
    return Cluster(
        nodes=1,
        per_node={
            1: {
                "listeners": f"{listeners},CONTROLLER://node1:9093",
                "advertised.listeners": listeners,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
                **(config or {}),
            }
        },
    )


class Client:
    """A connection to one listener, from a host of its own."""

    def __init__(self, cluster: Cluster, name: str, port: int = CLIENTS_PORT) -> None:
        self._cluster = cluster
        self._caller = Caller(cluster, name)
        self._port = port

    def send(self) -> Sent:
        return self._caller.send(ALL, 9, port=self._port)

    def ask(self) -> Sent:
        return self._caller.ask(ALL, 9, port=self._port)

    def leave(self) -> None:
        client = self._caller.client
        client.run(client.channel(("node1", self._port)).close)


def counts(cluster: Cluster) -> dict[str, int]:
    found = {"PLAINTEXT": 0, "CLIENTS": 0}
    for connection in cluster.node(1).components.connections:
        if connection.listener in found:
            found[connection.listener] += 1
    return found


def test_a_client_waits_for_a_slot() -> None:
    cluster = one_node({"max.connections": "3"})
    clients = [Client(cluster, f"client-{number}") for number in range(3)]
    for client in clients:
        assert client.ask().response is not None
    waiting = Client(cluster, "another").send()
    cluster.run(5_000)
    assert not waiting.answered
    assert cluster.seen(ConnectionsExhausted)[-1].open == 3
    clients[1].leave()
    cluster.until(lambda: waiting.answered)
    assert waiting.response is not None
    assert counts(cluster) == {"PLAINTEXT": 0, "CLIENTS": 3}
    # Those of the controller are not counted with them: Apache Kafka has a socket server for each role.
    assert [admission.limits.count for admission in cluster.node(1).components.connections.admissions] == [3, 1]


def test_a_broker_gets_in_and_the_client_that_was_not_used_for_longest_goes() -> None:
    cluster = one_node({"max.connections": "3"})
    clients = [Client(cluster, f"client-{number}") for number in range(3)]
    for client in clients:
        client.ask()
    cluster.run(60_000)  # housekeeping has seen who is idle since when
    for client in (clients[0], clients[2]):
        client.ask()
    broker = Client(cluster, "broker", BROKER_PORT)
    assert broker.ask().response is not None
    cluster.until(lambda: counts(cluster) == {"PLAINTEXT": 1, "CLIENTS": 2})
    for client in (clients[0], clients[2]):  # they still have their connections
        assert client.ask().response is not None
    lost = clients[1].send()  # comes again, and waits
    cluster.run(2_000)
    assert not lost.answered


@pytest.mark.parametrize("name", ["clients", "Clients"])
def test_a_listener_has_a_limit_of_its_own(name: str) -> None:
    cluster = one_node({f"listener.name.{name}.max.connections": "1"})
    first = Client(cluster, "first")
    first.ask()
    second = Client(cluster, "second").send()
    assert Client(cluster, "broker", BROKER_PORT).ask().response is not None
    cluster.run(1_000)
    assert not second.answered
    first.leave()
    cluster.until(lambda: second.answered)


def test_a_limit_that_is_raised_or_lowered_holds_at_once() -> None:
    cluster = one_node({"listener.name.clients.max.connections": "1"})
    Client(cluster, "first").ask()
    waiting = Client(cluster, "second").send()
    cluster.run(1_000)
    assert not waiting.answered
    cluster.configure(BROKER, "1", {"listener.name.clients.max.connections": "9"})
    cluster.until(lambda: waiting.answered)
    for number in range(4):
        Client(cluster, f"client-{number}").ask()
    assert counts(cluster) == {"PLAINTEXT": 1, "CLIENTS": 6}
    cluster.configure(BROKER, "", {"max.connections": "4"})
    # The connection of who asks is a broker's, and protected: three of the others are too many.
    cluster.until(lambda: counts(cluster) == {"PLAINTEXT": 1, "CLIENTS": 3})


def test_an_address_with_too_many_connections_is_closed_at_once() -> None:
    cluster = one_node({"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "many:2,node1:9"})
    greedy = Client(cluster, "greedy")
    assert greedy.ask().response is not None
    again = Client(cluster, "greedy", BROKER_PORT).ask()
    assert again.response is None
    (refused,) = cluster.seen(ConnectionRefused)
    assert refused.host == "greedy"
    assert "max.connections.per.ip" in refused.problem
    assert Client(cluster, "many").ask().response is not None
    assert Client(cluster, "many", BROKER_PORT).ask().response is not None
    greedy.leave()
    cluster.until(lambda: counts(cluster) == {"PLAINTEXT": 1, "CLIENTS": 1})
    assert Client(cluster, "greedy", BROKER_PORT).ask().response is not None


def test_connections_that_come_too_fast_wait() -> None:
    cluster = one_node({"listener.name.clients.max.connection.creation.rate": "1"})
    for number in range(10):
        Client(cluster, f"client-{number}").ask()
    began_ms = cluster.world.now_ms
    eleventh, twelfth = Client(cluster, "eleventh").send(), Client(cluster, "twelfth").send()
    between = Client(cluster, "broker", BROKER_PORT).ask()  # another listener does not rest
    assert between.at_ms - began_ms < 500
    cluster.until(lambda: eleventh.answered and twelfth.answered)
    first, second = sorted((eleventh.at_ms, twelfth.at_ms))
    assert 800 < first - began_ms < 1_500
    assert 800 < second - first < 1_500
    (admission, _) = cluster.node(1).components.connections.admissions
    assert admission.rested_ms >= 1_500


@pytest.mark.parametrize("entity", [{"ip": None}])
def test_an_address_that_connects_too_often_is_kept_and_closed(entity: dict[str, str | None]) -> None:
    cluster = one_node()
    set_quota(cluster, entity, connection_creation_rate=1.0)
    for _ in range(10):
        client = Client(cluster, "fast")
        assert client.ask().response is not None
        client.leave()
    cluster.until(lambda: counts(cluster)["CLIENTS"] == 0)
    began_ms = cluster.world.now_ms
    refused = Client(cluster, "fast").ask()
    assert refused.response is None
    assert 800 < refused.at_ms - began_ms < 1_200  # not at once, so that it does not come again at once
    assert counts(cluster)["CLIENTS"] == 0
    assert Client(cluster, "slow").ask().response is not None
    assert [each.host for each in cluster.seen(ConnectionRefused)] == ["fast"]
    set_quota(cluster, entity, connection_creation_rate=None)
    assert Client(cluster, "fast").ask().response is not None


def test_a_node_stops_while_connections_wait() -> None:
    cluster = one_node({"listener.name.clients.max.connections": "1"})
    Client(cluster, "first").ask()
    waiting = Client(cluster, "second").send()
    cluster.run(500)
    done: list[bool] = []
    host = cluster.host(1)
    assert host.process is not None
    cluster.world.scheduler.after(0, lambda: cluster.node(1).stop(lambda: done.append(True)), host.process)
    cluster.until(lambda: bool(done))
    cluster.until(lambda: waiting.answered)
    assert waiting.response is None

"""Requests that not every client is offered: those between nodes of tanist, and unstable versions."""

from __future__ import annotations

from typing import Any

from tanist.broker.metadata.view import endpoint_in
from tanist.sim.world.world import BROKER_PORT, COMBINED, CONTROLLER_PORT
from tanist.wire.apis import NODE_SOFTWARE, PRIVATE_FROM, ApiKey
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tanist.wire.messages.get_replica_log_info_request import GetReplicaLogInfoRequest
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tests.api_versions import API_VERSIONS
from tests.broker.cluster_rig import Cluster

CLIENTS_PORT = 9094


def listeners(node_id: int, role: str) -> dict[str, str]:
    """One for clients, first, and another between brokers."""
    name = f"node{node_id}"
    brokers = f"CLIENTS://{name}:{CLIENTS_PORT},PLAINTEXT://{name}:{BROKER_PORT}"
    controllers = f"CONTROLLER://{name}:{CONTROLLER_PORT}"
    both = {"broker": brokers, "controller": controllers, COMBINED: f"{brokers},{controllers}"}
    if role == "controller":
        return {"listeners": controllers}
    return {
        "listeners": both[role],
        "advertised.listeners": brokers,
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


def offered(cluster: Cluster, port: int) -> set[int]:
    return {each.api_key for each in cluster.ask(API_VERSIONS, 4, port=port).api_keys}


def of_others(keys: set[int]) -> set[int]:
    """The private keys, and 93, which Apache's trunk had for the request before another got it (KIP-1331)."""
    return {key for key in keys if key == 93 or key >= PRIVATE_FROM}


def test_clients_listeners_close_the_connection_as_for_any_unknown_key() -> None:
    cluster = Cluster(nodes=3, per_node={n: listeners(n, COMBINED) for n in (1, 2, 3)})
    request = GetReplicaLogInfoRequest(broker_id=1, topic_partitions=None)
    for port in (CLIENTS_PORT, CONTROLLER_PORT):
        assert cluster.ask(request, 0, port=port) is None
    assert [line for line in cluster.log if "node1 WARN" in line and "api 32093" in line]
    answer: Any = cluster.ask(request, 0, port=BROKER_PORT)
    assert answer.broker_epoch == cluster.node(1).lifecycle.broker_epoch


def test_no_listener_offers_it_to_a_client() -> None:
    cluster = Cluster(nodes=3, per_node={n: listeners(n, COMBINED) for n in (1, 2, 3)})
    ours = offered(cluster, BROKER_PORT)
    assert ours == offered(cluster, CLIENTS_PORT)
    assert not of_others(ours | offered(cluster, CONTROLLER_PORT))


def test_a_node_that_asks_by_its_softwares_name_is_offered_it_between_brokers() -> None:
    cluster = Cluster(nodes=3, per_node={n: listeners(n, COMBINED) for n in (1, 2, 3)})
    request = ApiVersionsRequest(client_software_name=NODE_SOFTWARE, client_software_version="1")

    def offered_to_a_node(port: int) -> set[int]:
        return {each.api_key for each in cluster.ask(request, 3, port=port).api_keys}

    assert offered_to_a_node(BROKER_PORT) == offered(cluster, BROKER_PORT) | {int(ApiKey.GET_REPLICA_LOG_INFO)}
    for port in (CLIENTS_PORT, CONTROLLER_PORT):
        assert offered_to_a_node(port) == offered(cluster, port)


def test_a_listener_that_brokers_share_with_clients_answers_and_does_not_offer_it() -> None:
    cluster = Cluster(nodes=3)
    assert not of_others(offered(cluster, BROKER_PORT))
    answer: Any = cluster.ask(GetReplicaLogInfoRequest(broker_id=1, topic_partitions=None), 0)
    assert answer.broker_epoch == cluster.node(1).lifecycle.broker_epoch


def test_a_controller_alone_finds_the_listener_between_brokers() -> None:
    roles = {1: "broker", 2: "controller"}
    cluster = Cluster(roles=roles, per_node={node_id: listeners(node_id, role) for node_id, role in roles.items()})
    controller = cluster.node(2)
    assert controller.context.config.inter_broker_listener_name == ""
    image = controller.metadata.image
    assert [endpoint.name for endpoint in image.brokers[1].endpoints] == ["PLAINTEXT", "CLIENTS"]
    assert endpoint_in(image, 1, controller.context.config.inter_broker_listener_name) == ("node1", BROKER_PORT)


def test_unstable_versions_are_offered_where_the_operator_says_so() -> None:
    for enabled, last in (("false", 5), ("true", 6)):
        cluster = Cluster(config={"unstable.api.versions.enable": enabled})
        answer = cluster.ask(API_VERSIONS, 4)
        assert {each.api_key: each.max_version for each in answer.api_keys}[InitProducerIdRequest.API_KEY] == last
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1_000, enable2_pc=True)
    cluster.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("t",)), 6)

    def refused() -> bool:
        codes = {cluster.ask(request, 6, to=node_id).error_code for node_id in (1, 2, 3)}
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED in codes

    cluster.until(refused)

"""ACLs, quotas of clients, SCRAM credentials and delegation tokens, of which there are none: each client hears that.

A client that asks about them must keep its connection: MirrorMaker 2 asks for ACLs at each interval. What cannot be
stored is not acknowledged.
"""

from __future__ import annotations

import pytest

from tanist.sim.world.world import BROKER_PORT, CONTROLLER_PORT
from tanist.wire import metadata_records_security as records
from tanist.wire.apis import BROKER_APIS, CONTROLLER_APIS, ApiKey
from tanist.wire.messages import describe_client_quotas_request, describe_user_scram_credentials_request
from tanist.wire.schema import Request, Response
from tests.api_versions import API_VERSIONS
from tests.broker.cluster_rig import Cluster
from tests.broker.security_answers import ANSWERS, ON_CONTROLLERS, SECURITY_KEYS, as_sent, name_of


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize("pair", ANSWERS, ids=map(name_of, ANSWERS))
def test_the_answers_are_those_of_apache_kafka(cluster: Cluster, pair: tuple[Request, Response]) -> None:
    request, expected = pair
    key = ApiKey(request.API_KEY)
    low, high = BROKER_APIS[key]
    for version in range(low, high + 1):
        for node_id in cluster.world.hosts:  # one is the active controller, and two pass the request on
            assert cluster.ask(request, version, to=node_id) == as_sent(expected, version)
        if key in ON_CONTROLLERS:
            active = cluster.controller()
            assert cluster.ask(request, version, to=active, port=CONTROLLER_PORT) == as_sent(expected, version)


def test_the_listeners_advertise_them(cluster: Cluster) -> None:
    for port, table in ((BROKER_PORT, BROKER_APIS), (CONTROLLER_PORT, CONTROLLER_APIS)):
        answer = cluster.ask(API_VERSIONS, 4, port=port)
        versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        assert {key: versions.get(key) for key in SECURITY_KEYS} == {
            key: table.get(ApiKey(key)) for key in SECURITY_KEYS
        }


def _quota(value: float, key: str, **entity: str | None) -> records.ClientQuotaRecord:
    parts = tuple(
        records.EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items()
    )
    return records.ClientQuotaRecord(entity=parts, key=key, value=value)


def test_what_a_log_of_apache_kafkas_has_brought_is_described() -> None:
    """It is kept without effect; that there is nothing would be a lie."""
    cluster = Cluster(nodes=1)
    for record in (
        _quota(10.0, "producer_byte_rate", user="a"),
        _quota(20.0, "consumer_byte_rate", user="a"),
        _quota(30.0, "producer_byte_rate", user="a", client_id=None),
        _quota(40.0, "connection_creation_rate", ip="1.1.1.1"),
        records.UserScramCredentialRecord(name="a", mechanism=1, iterations=4096, salt=b"secret"),
        records.UserScramCredentialRecord(name="a", mechanism=2, iterations=8192),
        records.UserScramCredentialRecord(name="b", mechanism=1, iterations=4096),
    ):
        cluster.node(1).metadata.image.replay(record)

    def quotas(*components: tuple[str, int, str | None], strict: bool = False) -> list[list[float]]:
        filters = tuple(
            describe_client_quotas_request.ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        )
        answer = cluster.ask(
            describe_client_quotas_request.DescribeClientQuotasRequest(components=filters, strict=strict), 1
        )
        return [[each.value for each in entry.values] for entry in answer.entries]

    assert quotas() == [[10.0, 20.0], [30.0], [40.0]]
    assert quotas(("user", 0, "a")) == [[10.0, 20.0], [30.0]]
    assert quotas(("user", 0, "a"), strict=True) == [[10.0, 20.0]]
    assert quotas(("user", 2, None), ("client-id", 1, None)) == [[30.0]]
    assert quotas(("user", 0, "b")) == quotas(("user", 1, None)) == []
    answer = cluster.ask(describe_user_scram_credentials_request.DescribeUserScramCredentialsRequest(users=None), 0)
    assert [
        (each.user, [(info.mechanism, info.iterations) for info in each.credential_infos]) for each in answer.results
    ] == [("a", [(1, 4096), (2, 8192)]), ("b", [(1, 4096)])]

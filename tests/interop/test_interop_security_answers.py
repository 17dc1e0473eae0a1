"""What Apache Kafka's one node without an authorizer answers about ACLs, quotas, credentials and tokens, and ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.wire.apis import BROKER_APIS, ApiKey
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.schema import Request, Response
from tests.broker.security_answers import ANSWERS, ON_CONTROLLERS, SECURITY_KEYS, as_sent, name_of
from tests.interop.pair import Asker, Pair, pair

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]


@pytest.fixture(scope="module")
def nodes(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("security")
    with pair(folder, {}) as both:
        yield both


@pytest.mark.parametrize("side", ["apache", "tanist"])
@pytest.mark.parametrize("asked", ANSWERS, ids=map(name_of, ANSWERS))
def test_the_answers(nodes: Pair, asked: tuple[Request, Response], side: str) -> None:
    request, expected = asked
    key = ApiKey(request.API_KEY)
    brokers, controllers = (
        (nodes.apache, nodes.apache_controller) if side == "apache" else (nodes.tanist, nodes.tanist_controller)
    )
    for address in (brokers, controllers) if key in ON_CONTROLLERS else (brokers,):
        low, high = BROKER_APIS[key]
        for version in range(low, high + 1):
            with Asker(address) as asker:
                assert asker.ask(request, version, Response) == as_sent(expected, version)


def test_brokers_advertise_the_same_versions(nodes: Pair) -> None:
    found = []
    for address in (nodes.apache, nodes.tanist):
        with Asker(address) as asker:
            request = ApiVersionsRequest(client_software_name="parity", client_software_version="1")
            answer = asker.ask(request, 4, ApiVersionsResponse)
        versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        found.append({key: versions.get(key) for key in SECURITY_KEYS})
    assert found[0] == found[1]
    assert None not in found[0].values()

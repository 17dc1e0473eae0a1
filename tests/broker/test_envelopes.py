"""Envelopes (KIP-590): the client's principal and address go with its request, and nothing else may come inside."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.broker.api.table import CONTROLLER_TABLE
from tanist.broker.metadata.envelopes import EnvelopeError, client_session, envelope
from tanist.security.principal import Principal, encode_principal
from tanist.security.session import Session
from tanist.sim.world.world import CONTROLLER_PORT
from tanist.wire.apis import BROKER_APIS, FORWARDABLE, INTER_BROKER_APIS, TELEMETRY, ApiKey, request_class
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import decode_response, encode_request
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.envelope_request import EnvelopeRequest
from tests.broker.cluster_rig import Cluster

ALICE = Session("PLAINTEXT", "PLAINTEXT", "10.1.2.3", Principal("User", "alice"))
BROKER = Session("CONTROLLER", "SSL", "10.0.0.1")


@pytest.mark.parametrize(
    ("host", "packed"),
    [
        ("10.1.2.3", bytes((10, 1, 2, 3))),
        ("0:0:0:0:0:0:0:1", bytes(15) + b"\1"),
        ("node1", bytes((127, 0, 0, 1))),  # of the simulator
    ],
)
def test_an_envelope_has_the_principal_and_the_address_of_the_client(host: str, packed: bytes) -> None:
    written = envelope(b"x", Session("PLAINTEXT", "PLAINTEXT", host, Principal("User", "alice"), by_token=True))
    assert written.request_principal == encode_principal(Principal("User", "alice"), by_token=True)
    assert written.client_host_address == packed
    read = client_session(written, BROKER)
    assert (read.principal, read.by_token) == (Principal("User", "alice"), True)
    assert (read.listener, read.security_protocol) == ("CONTROLLER", "SSL")
    assert read.host == (host if host != "node1" else "127.0.0.1")


@pytest.mark.parametrize("address", [b"", b"\1\2\3", bytes(5), bytes(17)])
def test_an_address_that_is_none_makes_the_request_invalid(address: bytes) -> None:
    forged = EnvelopeRequest(request_data=b"", request_principal=b"", client_host_address=address)
    with pytest.raises(EnvelopeError) as refused:
        client_session(forged, BROKER)
    assert refused.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("principal", [None, b"", b"\0", b"\0\0", b"\0\0\x05User", b"\xff\xff\x05User\x02a\0\0"])
def test_a_principal_that_cannot_be_read_is_said_to_be_that(principal: bytes | None) -> None:
    forged = EnvelopeRequest(request_data=b"", request_principal=principal, client_host_address=bytes(4))
    with pytest.raises(EnvelopeError) as refused:
        client_session(forged, BROKER)
    assert refused.value.code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


def ask_inside(cluster: Cluster, request: bytes, **fields: Any) -> Any:
    """The active controller's answer to an envelope with this request, header included."""
    leader = cluster.node(1).components.quorum.leader_id
    assert leader is not None
    written = envelope(request, ALICE)
    for name, value in fields.items():
        setattr(written, name, value)
    return cluster.ask(written, 0, to=leader, port=CONTROLLER_PORT)


@pytest.mark.parametrize("key", sorted(set(ApiKey) - FORWARDABLE), ids=lambda key: str(ApiKey(key).name))
def test_what_no_broker_may_pass_on_is_refused_inside_an_envelope(cluster: Cluster, key: ApiKey) -> None:
    """A client could have a broker's rights by it: the controller serves 17 such keys to nodes."""
    _, version, *_ = CONTROLLER_TABLE.get(key) or {**BROKER_APIS, **TELEMETRY, **INTER_BROKER_APIS}[key]
    header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\7\xff\xff\0" + bytes(40)
    assert ask_inside(cluster, header).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("key", sorted(FORWARDABLE & set(CONTROLLER_TABLE)), ids=lambda key: str(ApiKey(key).name))
def test_what_a_broker_may_pass_on_is_answered(cluster: Cluster, key: ApiKey) -> None:
    version = CONTROLLER_TABLE[key][1]
    frame = encode_request(request_class(key)(), version, 7, "client")
    answer = ask_inside(cluster, bytes(frame[4:]))
    assert answer.error_code == 0
    decode_response(key, version, memoryview(answer.response_data))


@pytest.mark.parametrize(
    "request_data",
    [b"", b"\0", b"\0\x13\0\x63\0\0\0\7\xff\xff\0", b"\0\x13\0\7\0\0\0\7\xff\xff\0\xff\xff\xff\xff\xff"],
    ids=["empty", "no header", "version 99", "broken"],
)
def test_a_request_that_cannot_be_read_is_said_to_be_of_no_known_version(cluster: Cluster, request_data: bytes) -> None:
    """As Apache Kafka's controllers do: INVALID_REQUEST is for what is wrong with the envelope itself."""
    assert ask_inside(cluster, request_data).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_forged_envelope_changes_nothing(cluster: Cluster) -> None:
    topic = CreateTopicsRequest(topics=(CreatableTopic(name="forged", num_partitions=1, replication_factor=1),))
    frame = bytes(encode_request(topic, 7, 1, "client")[4:])
    assert ask_inside(cluster, frame, client_host_address=b"\1").error_code == ErrorCode.INVALID_REQUEST
    refused = ask_inside(cluster, frame, request_principal=b"?")
    assert refused.error_code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    assert all(node.components.metadata.image.topic("forged") is None for node in cluster.world.nodes())

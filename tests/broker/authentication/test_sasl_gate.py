"""What stands before a connection until its client has authenticated: each state, and each way to end (Apache Kafka's).

The client is a connection over which the test sends what it wants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tanist.broker.authentication.gate import DelayedRefusals, ExpiringConnection, GuardedConnection
from tanist.broker.network.client_connection import ClientConnection
from tanist.events.process import AuthenticationFailed
from tanist.sim.world.world import CONTROLLER_PORT
from tanist.wire.apis import BROKER_APIS, CONTROLLER_APIS, ApiKey, request_class
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import encode_request
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.produce_request import ProduceRequest
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.api_versions import API_VERSIONS
from tests.broker.authentication.sasl_rig import SASL_EVERYWHERE, RawClient
from tests.broker.cluster_rig import Cluster

TOKEN = b"\0alice\0alice-secret"
WRONG = b"\0alice\0wrong"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def shared() -> Cluster:
    return Cluster(nodes=1, config=SASL_EVERYWHERE)


@pytest.fixture
def client(shared: Cluster) -> Iterator[RawClient]:
    made = RawClient(shared)
    yield made
    made.connection.close()


def at_the_node(cluster: Cluster, kind: type[ClientConnection]) -> int:
    return sum(type(each) is kind for each in cluster.node(1).components.connections)


def cluster_with(config: Mapping[str, str]) -> Cluster:
    return Cluster(nodes=1, config={**SASL_EVERYWHERE, **config})


# -- before authentication


@pytest.mark.parametrize("port", ["broker", "controller"])
def test_no_api_but_two_is_answered(shared: Cluster, port: str) -> None:
    """For each key and version that the listener advertises: the connection ends without an answer."""
    table = BROKER_APIS if port == "broker" else CONTROLLER_APIS
    tried = 0
    for key, (low, high) in table.items():
        for version in range(low, high + 1):
            if key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
                continue
            client = RawClient(shared, **({} if port == "broker" else {"port": CONTROLLER_PORT}))
            assert client.ask(request_class(key)(), max(version, request_class(key).VERSIONS[0])) is None, (
                key,
                version,
            )
            tried += 1
    assert tried > 60


def test_a_key_that_does_not_exist_ends_the_connection(client: RawClient) -> None:
    assert client.raw(b"\x03\xe8\0\0\0\0\0\1\xff\xff") is None


@pytest.mark.parametrize(
    "frame", [b"", b"\0", b"\0\x12\0\0\0", b"\x60\x28\x06\x06", b"\0\x11\0\1\0\0\0\1\xff\xff\0\x7f"]
)
def test_bytes_that_are_no_request_end_it(client: RawClient, frame: bytes) -> None:
    assert client.raw(frame) is None


def test_apis_are_listed_once_and_are_those_behind_the_gate(client: RawClient) -> None:
    answer = client.ask(API_VERSIONS, 3)
    assert {api.api_key for api in answer.api_keys} == set(BROKER_APIS)
    assert client.ask(API_VERSIONS, 3) is None


def test_a_client_that_is_newer_asks_again(client: RawClient) -> None:
    answer = client.raw(b"\0\x12\0\x63\0\0\0\1\xff\xff")
    assert answer is not None
    assert answer[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
    assert client.ask(API_VERSIONS, 3).error_code == 0
    assert client.log_in().error_code == 0


def test_a_client_does_not_ask_for_ever(client: RawClient) -> None:
    for _ in range(10):
        assert client.raw(b"\0\x12\0\x63\0\0\0\1\xff\xff") is not None
    assert client.raw(b"\0\x12\0\x63\0\0\0\1\xff\xff") is None


@pytest.mark.parametrize("ask_first", [False, True])
def test_handshake_and_token_open(shared: Cluster, client: RawClient, ask_first: bool) -> None:
    if ask_first:
        assert client.ask(API_VERSIONS, 4).error_code == 0
    answer = client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (answer.error_code, answer.mechanisms) == (0, MECHANISMS)
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=TOKEN), 2)
    assert (answer.error_code, answer.error_message, answer.auth_bytes, answer.session_lifetime_ms) == (0, None, b"", 0)
    assert client.ask(MetadataRequest(topics=()), 12).cluster_id is not None
    found = [each for each in shared.node(1).components.connections if each.client_id == "raw"]
    assert [(type(each), str(each.session.principal)) for each in found] == [(ClientConnection, "User:alice")]
    assert found[0].produce is not None


def test_a_mechanism_that_is_not_there(client: RawClient) -> None:
    before_ms = client.now_ms
    answer = client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, MECHANISMS)
    assert client.ends()
    assert client.now_ms - before_ms >= 100, "the end is held back"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_refusal_and_the_end_are_held_back(client: RawClient, version: int) -> None:
    before_ms = client.now_ms
    answer = client.log_in(token=WRONG, version=version)
    assert client.now_ms - before_ms >= 100
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert client.ends()


def test_a_refusal_is_logged_once_a_second() -> None:
    cluster = cluster_with({})
    for _ in range(3):
        RawClient(cluster).log_in(token=WRONG)
    (first,) = cluster.seen(AuthenticationFailed)
    assert (first.listener, first.mechanism, first.left_out) == ("PLAINTEXT", "PLAIN", 0)
    assert first.problem == "Authentication failed: Invalid username or password"
    cluster.run(1_000)
    RawClient(cluster).ask(SaslHandshakeRequest(mechanism="nothing"), 1)
    last = cluster.seen(AuthenticationFailed)[-1]
    assert (last.mechanism, last.problem, last.left_out) == ("", "Unsupported SASL mechanism 'nothing'", 2)
    assert cluster.node(1).context.metrics.failed_authentications == {"PLAINTEXT": 4}


def test_what_is_sent_after_a_refusal_is_not_looked_at(client: RawClient) -> None:
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    for token in (WRONG, TOKEN, TOKEN):
        client.send(encode_request(SaslAuthenticateRequest(auth_bytes=token), 2, 9, "raw")[4:])
    assert client.ends()
    assert len(client.frames) == 2


def test_an_api_between_handshake_and_end_is_refused_in_its_own_form(shared: Cluster) -> None:
    client = RawClient(shared)
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    before_ms = client.now_ms
    answer = client.ask(MetadataRequest(topics=None), 1)
    assert (answer.brokers, answer.topics) == ((), ()), "an empty answer, as Apache Kafka's"
    assert client.ends()
    assert client.now_ms - before_ms >= 100
    client = RawClient(shared)
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.ends()


def test_a_produce_without_answer_only_ends_the_connection(client: RawClient) -> None:
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    assert client.ask(ProduceRequest(acks=0, timeout_ms=1, topic_data=()), 9) is None


def test_every_api_between_handshake_and_end_is_refused(shared: Cluster) -> None:
    for key, (low, high) in BROKER_APIS.items():
        if key == ApiKey.SASL_AUTHENTICATE:
            continue
        client = RawClient(shared)
        assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        version = max(high, low, request_class(key).VERSIONS[0])
        client.send(encode_request(request_class(key)(), version, 9, "raw")[4:])
        assert client.ends()
        assert len(client.frames) <= 2, key


def test_frames_are_small_before_authentication_and_large_behind(client: RawClient) -> None:
    assert client.log_in().error_code == 0
    large = MetadataRequest(topics=(), include_topic_authorized_operations=False)
    padded = encode_request(large, 12, 7, "raw")[4:] + bytes(600 << 10)
    assert client.raw(padded) is not None
    other = RawClient(client.cluster)
    assert other.raw(encode_request(API_VERSIONS, 3, 7, "raw")[4:] + bytes(512 << 10)) is None


# -- handshake v0


def test_bare_tokens(client: RawClient) -> None:
    answer = client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    assert (answer.error_code, answer.mechanisms) == (0, MECHANISMS)
    assert client.raw(TOKEN) == b""
    assert client.ask(MetadataRequest(topics=()), 12).cluster_id is not None


def test_a_bare_token_that_is_wrong_ends_the_connection(client: RawClient) -> None:
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    assert client.raw(WRONG) is None


def test_a_request_among_bare_tokens_is_a_token(client: RawClient) -> None:
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    assert client.ask(MetadataRequest(topics=()), 12) is None


# -- behind the gate, and without one


def test_handshakes_out_of_place_leave_the_connection(client: RawClient) -> None:
    plain = RawClient(Cluster(nodes=1))
    assert client.log_in().error_code == 0
    for each in (client, plain):
        answer = each.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, ())
        answer = each.ask(SaslAuthenticateRequest(auth_bytes=TOKEN), 2)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert answer.error_message == "SaslAuthenticate request received after successful authentication"
        assert each.ask(MetadataRequest(topics=()), 12).cluster_id is not None


# -- sessions that expire (KIP-368)

EXPIRING = {"connections.max.reauth.ms": "10000"}


def test_a_session_ends_with_the_next_request() -> None:
    cluster = cluster_with(EXPIRING)
    client = RawClient(cluster)
    answer = client.log_in()
    assert answer.session_lifetime_ms == 10_000
    assert at_the_node(cluster, ExpiringConnection) >= 1
    assert client.ask(MetadataRequest(topics=()), 12).cluster_id is not None
    cluster.run(10_000)
    assert client.closed is None, "nothing happens by time alone"
    assert client.ask(MetadataRequest(topics=()), 12) is None
    assert cluster.node(1).context.metrics.expired_connections == {"PLAINTEXT": 1}


def test_an_old_client_that_hears_of_no_lifetime_is_ended_too() -> None:
    cluster = cluster_with(EXPIRING)
    client = RawClient(cluster)
    assert client.log_in(version=0).session_lifetime_ms == 0
    bare = RawClient(cluster)
    assert bare.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    assert bare.raw(TOKEN) == b""
    cluster.run(10_000)
    for each in (client, bare):
        assert each.ask(MetadataRequest(topics=()), 12) is None


def test_a_client_authenticates_again_and_goes_on() -> None:
    cluster = cluster_with(EXPIRING)
    client = RawClient(cluster)
    client.log_in()
    for _ in range(3):
        cluster.run(9_000)
        assert client.log_in().session_lifetime_ms == 10_000
        assert client.ask(MetadataRequest(topics=()), 12).cluster_id is not None
    cluster.run(11_000)
    assert client.log_in().error_code == 0, "also when it is late: the handshake is no other request"
    assert client.ask(MetadataRequest(topics=()), 12).cluster_id is not None


def test_it_does_so_once_a_second_at_most() -> None:
    cluster = cluster_with(EXPIRING)
    client = RawClient(cluster)
    client.log_in()
    client.log_in()
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.ask(MetadataRequest(topics=()), 12).cluster_id is not None
    cluster.run(1_000)
    assert client.log_in().error_code == 0


def test_nothing_else_is_served_while_it_does() -> None:
    cluster = cluster_with(EXPIRING)
    client = RawClient(cluster)
    client.log_in()
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    assert at_the_node(cluster, GuardedConnection) >= 1
    answer = client.ask(MetadataRequest(topics=()), 12)
    assert answer.brokers == ()
    assert client.ends()


def test_it_cannot_become_somebody_else() -> None:
    cluster = cluster_with(EXPIRING)
    client = RawClient(cluster)
    client.log_in()
    answer = client.log_in(token=b"\0node\0node-secret")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == ("Cannot change principals during re-authentication from User.alice: User.node")
    assert client.ends()


def test_it_cannot_change_the_mechanism() -> None:
    cluster = cluster_with(EXPIRING)
    client = RawClient(cluster)
    client.log_in()
    assert client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
    assert client.ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"), 2) is None


def test_a_wrong_password_then_ends_it() -> None:
    cluster = cluster_with(EXPIRING)
    client = RawClient(cluster)
    client.log_in()
    assert client.log_in(token=WRONG).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.ends()


def test_nodes_authenticate_again_among_themselves() -> None:
    cluster = Cluster(config={**SASL_EVERYWHERE, **EXPIRING})
    before = sum(sum(node.context.metrics.authentications.values()) for node in cluster.world.nodes())
    cluster.run(60_000)
    after = sum(sum(node.context.metrics.authentications.values()) for node in cluster.world.nodes())
    assert after >= before + 6 * 6, "each of three nodes has connections to both others"
    for node in cluster.world.nodes():
        assert node.lifecycle.state.value == "RUNNING"
        assert node.context.metrics.expired_connections == {}
        assert node.context.metrics.failed_authentications == {}


# -- many refusals


def test_refusals_that_are_held_back_have_a_bound(monkeypatch: pytest.MonkeyPatch, shared: Cluster) -> None:
    monkeypatch.setattr(DelayedRefusals, "MAX", 3)
    clients = [RawClient(shared) for _ in range(8)]
    for each in clients:
        each.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    for each in clients:
        each.send(encode_request(SaslAuthenticateRequest(auth_bytes=WRONG), 2, 9, "raw")[4:])
    for each in clients:
        assert each.ends()
        assert len(each.frames) == 2
    assert RawClient(shared).log_in().error_code == 0

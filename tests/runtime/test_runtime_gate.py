"""What a client reaches before it has authenticated, over sockets: every key, on every kind of listener, in each state.

One node in a process of its own. Its listeners have SASL with and without TLS, for clients and for controllers, and
certificates that are required. Requests are those that would do something: a topic is named in each that can name one.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tanist.wire.apis import ApiKey, request_class, response_class
from tanist.wire.error_responses import error_response
from tanist.wire.errors import ErrorCode
from tanist.wire.frames import encode_request, encode_response
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from tanist.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tanist.wire.schema import Request
from tests.api_versions import API_VERSIONS
from tests.interop.raw import RawClient
from tests.runtime.guarded_node import WITH_SASL, GuardedNode, ask, log_in

THREADS = 16
KEYS = [*ApiKey, -1, 999, 32_767]
"""All that are known, the private ones among them; and three that nobody has."""
REQUESTS: dict[int, Request] = {
    ApiKey.CREATE_TOPICS: CreateTopicsRequest(
        topics=(CreatableTopic(name="intruder", num_partitions=1, replication_factor=1),), timeout_ms=1_000
    ),
    ApiKey.DELETE_TOPICS: DeleteTopicsRequest(topic_names=("ours",), timeout_ms=1_000),
    ApiKey.METADATA: MetadataRequest(topics=None),
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedNode]:
    made = GuardedNode(tmp_path_factory.mktemp("guarded"))
    try:
        made.start()
        yield made
    finally:
        made.process.stop()


# -- states


def nothing_said(client: RawClient) -> None: ...


def versions_asked(client: RawClient) -> None:
    ask(client, API_VERSIONS, 3)


def token_due(client: RawClient) -> None:
    ask(client, SaslHandshakeRequest(mechanism="PLAIN"), 1)


def bare_token_due(client: RawClient) -> None:
    ask(client, SaslHandshakeRequest(mechanism="PLAIN"), 0)


def half_way(client: RawClient) -> None:
    ask(client, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    challenge = ask(client, SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=stranger"), 1)
    assert b"r=stranger" in challenge


def refused(client: RawClient) -> None:
    ask(client, SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert b"Invalid username or password" in ask(client, SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 1)


STATES: dict[Callable[[RawClient], None], set[ApiKey]] = {
    nothing_said: {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE},
    versions_asked: {ApiKey.SASL_HANDSHAKE},
    token_due: {ApiKey.SASL_AUTHENTICATE},
    bare_token_due: set(),
    half_way: {ApiKey.SASL_AUTHENTICATE},
    refused: set(),
}
"""What is due in each."""
IN_ITS_FORM = {token_due, half_way}
"""Here Apache Kafka answers what is not due, in its own form, before it ends the connection."""


def frame_of(key: int) -> tuple[bytes, Request | None, int]:
    """A request of this key in its highest version."""
    if key not in set(ApiKey):
        return b"\0\0\0\x0a" + key.to_bytes(2, "big", signed=True) + b"\0\0\0\0\0\1\xff\xff", None, 0
    cls = request_class(ApiKey(key))
    request = REQUESTS.get(key) or cls()
    return encode_request(request, cls.VERSIONS[1], 1, "stranger"), request, cls.VERSIONS[1]


def heard(node: GuardedNode, listener: str, state: Callable[[RawClient], None], key: int) -> bytes | None:
    """All that comes back, until the node ends the connection; None if it ends it without a word."""
    with node.dial(listener) as client:
        state(client)
        try:
            client.socket.sendall(frame_of(key)[0])
            found = b""
            while data := client.socket.recv(65_536):
                found += data
        except (ConnectionError, ssl.SSLError):
            return None
        return found or None


def no_more_than_refused(key: int, answer: bytes | None) -> bool:
    """Whether this is the error of a request that is not due, in its own form, or an empty answer."""
    if answer is None:
        return True
    _, request, version = frame_of(key)
    assert request is not None
    reason = f"Unexpected Kafka request of type {ApiKey(key).name} during SASL authentication."
    response = error_response(request, version, ErrorCode.ILLEGAL_SASL_STATE, reason)
    expected = response_class(ApiKey(key))() if response is None else response
    frame = encode_response(expected, version, 1)
    return answer == (frame if isinstance(frame, bytes) else bytes(frame))


@pytest.mark.parametrize("listener", WITH_SASL)
@pytest.mark.parametrize("state", list(STATES), ids=lambda state: state.__name__)
def test_nothing_but_what_is_due_is_answered(
    node: GuardedNode, listener: str, state: Callable[[RawClient], None]
) -> None:
    keys = [key for key in KEYS if key not in STATES[state]]
    with ThreadPoolExecutor(THREADS) as threads:
        answers = dict(zip(keys, threads.map(partial(heard, node, listener, state), keys), strict=True))
    wrong = {
        key: answer
        for key, answer in answers.items()
        if not (no_more_than_refused(key, answer) if state in IN_ITS_FORM else answer is None)
    }
    assert wrong == {}
    assert len(answers) > 70


def test_who_has_no_certificate_reaches_nothing(node: GuardedNode) -> None:
    def reached(key: int) -> bytes | None:
        try:
            return heard(node, "MUTUAL", nothing_said, key)
        except (ConnectionError, ssl.SSLError):
            return None

    with ThreadPoolExecutor(THREADS) as threads:
        answers = dict(zip(KEYS, threads.map(reached, KEYS), strict=True))
    assert {key: answer for key, answer in answers.items() if answer is not None} == {}


def test_nothing_has_happened(node: GuardedNode) -> None:
    """The right password opens all of them; nobody before it has made or removed anything."""
    for listener in WITH_SASL:
        with node.dial(listener) as client:
            log_in(client)
            if not listener.startswith("CONTROLLER"):
                assert client.metadata(None).topics == {}
            else:
                assert ask(client, API_VERSIONS, 3)

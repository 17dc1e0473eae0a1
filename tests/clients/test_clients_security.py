"""Each client in each way in (TLS, a certificate, SASL inside TLS): what it may do, and what it says when refused.

By `TANIST_TEST_TARGET=apache` the same is asked of Apache Kafka. One node serves them all, and one program a client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

import pytest

from tests.certificates import CertificateAuthority
from tests.clients.secured import bearer_token
from tests.clients.secured_listeners import HIDDEN, OPEN, SEEN, WAYS, ListenersNode, listening
from tests.clients.step_programs import CLIENTS, StepsProgram
from tests.interop import apache, target

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA, KAFKAJS, FRANZ, JAVA = CLIENTS
EVERY: Final = "every client"
PASSWORD: Final = "Invalid username or password"
CREDENTIALS: Final = "invalid credentials with SASL mechanism SCRAM-SHA-512"
ALERT: Final = {
    LIBRDKAFKA: "_TRANSPORT: .* alert",
    KAFKA_PYTHON: "ALERT",
    AIOKAFKA: "Connection at .* closed",
    KAFKAJS: "KafkaJSConnectionError: .* alert",
    FRANZ: "remote error: tls:",
    JAVA: "SslAuthenticationException(.|\n)*Received fatal alert",
}
"""Java's TLS names other alerts than OpenSSL: what was wrong with a certificate only ours say."""
REFUSED: Final[Mapping[str, Mapping[str, str]]] = {
    # Apache Kafka closes so soon behind its answer that kafka-python may not see it.
    "wrong password": {EVERY: PASSWORD, KAFKA_PYTHON: f"{PASSWORD}|socket disconnected"},
    "unknown user": {EVERY: CREDENTIALS, KAFKA_PYTHON: f"{CREDENTIALS}|socket disconnected"},
    "token for others": {
        EVERY: "invalid_token",
        AIOKAFKA: "AttributeError",
        KAFKAJS: "KafkaJSConnectionClosedError",
        FRANZ: "unexpected data in oauth response",
    },
    "unknown authority": {
        EVERY: "certificate verify failed: unable to get local issuer certificate",
        LIBRDKAFKA: "_SSL: .*certificate verify failed",
        KAFKAJS: "unable to verify the first certificate",
        FRANZ: "certificate signed by unknown authority",
        JAVA: "SslAuthenticationException(.|\n)*unable to find valid certification path to requested target",
    },
    "expired certificate": {
        EVERY: "certificate has expired",
        LIBRDKAFKA: "_SSL: .*certificate verify failed",
        JAVA: "SslAuthenticationException(.|\n)*CertificateExpiredException",
    },
    "own certificate expired": ALERT,
    "own certificate of another authority": ALERT,
    "no own certificate": ALERT,
}
"""What a client says, by what is wrong: as with Apache Kafka."""
DENIED: Final[Mapping[str, tuple[tuple[str, dict[str, Any]], Mapping[str, str]]]] = {
    "create a topic": (
        ("create", {"topic": f"{HIDDEN}-2"}),
        {EVERY: "topicauthorization", LIBRDKAFKA: "topicauthorizationfailed:authorizationfailed.$"},
    ),
    "write to a topic that is seen": (("produce", {"topic": SEEN, "values": ["a"]}), {EVERY: "topicauthorization"}),
    "write to a topic that is not": (("produce", {"topic": HIDDEN, "values": ["a"]}), {EVERY: "topicauthorization"}),
    "read a topic that is seen": (
        ("consume", {"topic": SEEN, "group": OPEN, "count": 1}),
        {EVERY: "topicauthorization"},
    ),
    "read a topic that is not": (
        ("consume", {"topic": HIDDEN, "group": OPEN, "count": 1}),
        {EVERY: "topicauthorization", KAFKA_PYTHON: "nothing"},
    ),
    "join a group": (
        ("consume", {"topic": OPEN, "group": HIDDEN, "count": 1}),
        {EVERY: "groupauthorization", KAFKAJS: "groupcoordinatornotfound"},
    ),
    "begin transactions": (
        ("transaction", {"topic": OPEN, "id": HIDDEN, "values": ["a"]}),
        {EVERY: "transactionalidauthorization", KAFKAJS: "groupcoordinatornotfound"},
    ),
}
"""A step, and what a client says, without the differences of spelling."""


@pytest.fixture(scope="module")
def node(libraries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ListenersNode]:
    if target.chosen() == "apache" and (reason := apache.missing()) is not None:
        pytest.skip(reason)
    with listening(target.chosen(), tmp_path_factory.mktemp("node")) as made:
        yield made


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def program(client: str, node: ListenersNode) -> Iterator[StepsProgram]:
    missing, command = CLIENTS[client]
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with ExitStack() as stack:
        made = StepsProgram(*command(), node.folder / f"{client}.log")
        stack.callback(made.stop)
        yield made


@pytest.fixture(scope="module")
def refused(node: ListenersNode) -> dict[str, dict[str, Any]]:
    """Settings that open nothing."""
    stranger = node.certificate("stranger", authority=CertificateAuthority("another"))
    return {
        "wrong password": node.way("PLAIN", password="wrong"),
        "unknown user": node.way("SCRAM-SHA-512", username="nobody"),
        "token for others": node.way("OAUTHBEARER", token=bearer_token(aud="others")),
        "unknown authority": node.way("TLS", ca=node.foreign_authority()),
        "expired certificate": node.at("EXPIRED"),
        "own certificate expired": node.way("mTLS", certificate=node.certificate("late", days=(-3, -1))),
        "own certificate of another authority": node.way("mTLS", certificate=stranger),
        "no own certificate": node.at("MUTUAL"),
    }


@pytest.mark.parametrize("way", WAYS)
def test_a_client_creates_writes_commits_and_reads_in_a_group(
    client: str, program: StepsProgram, node: ListenersNode, way: str
) -> None:
    name = f"{OPEN}-{client}-{way}"
    outcomes = program.run(
        node.way(way),
        ("create", {"topic": name}),
        ("produce", {"topic": name, "values": ["a", "b"]}),
        ("transaction", {"topic": name, "id": name, "values": ["c", "d"]}),
        ("consume", {"topic": name, "group": name, "count": 4}),
    )
    assert outcomes == [{"value": None}] * 3 + [{"value": ["a", "b", "c", "d"]}]


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_client_that_is_refused_says_why(
    client: str, program: StepsProgram, refused: dict[str, dict[str, Any]], wrong: str
) -> None:
    (outcome,) = program.run(refused[wrong], ("create", {"topic": f"{OPEN}-never"}))
    expected = REFUSED[wrong]
    assert re.search(expected.get(client, expected.get(EVERY, "")), outcome["error"]), outcome


def test_a_client_that_lacks_an_entry_says_of_what(client: str, program: StepsProgram, node: ListenersNode) -> None:
    program.run(node.way("PLAIN"), ("create", {"topic": OPEN}))
    outcomes = program.run(node.way("PLAIN"), *(step for step, _ in DENIED.values()))
    for (what, (_, expected)), outcome in zip(DENIED.items(), outcomes, strict=True):
        said = "nothing" if outcome.get("value") == [] else re.sub("[ _]", "", outcome["error"]).lower()
        assert re.search(expected.get(client, expected[EVERY]), said), (what, outcome)

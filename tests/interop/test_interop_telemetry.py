"""Client telemetry (KIP-714): Apache Kafka's node, with a receiver, and ours judge a client's requests alike."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tanist.client.admin import alter_configs_request
from tanist.controller.configs.settings import CLIENT_METRICS_RESOURCE
from tanist.wire.compression import Compression, compress
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tanist.wire.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from tanist.wire.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from tanist.wire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tanist.wire.messages.push_telemetry_request import PushTelemetryRequest
from tanist.wire.messages.push_telemetry_response import PushTelemetryResponse
from tests.interop import apache
from tests.interop.pair import Asker, Pair, alike, pair
from tests.interop.waiting import wait_for
from tests.wire.protobuf import gauge, metrics_data, point

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

RECEIVER = Path(__file__).with_name("TelemetryReceiver.java")
MAX_BYTES = 2_000
PROPERTIES = {
    "metric.reporters": "TelemetryReceiver",
    "tanist.client.metrics.enable": "true",
    "telemetry.max.bytes": str(MAX_BYTES),
}
NOBODY = UUID(int=0)
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.fixture(scope="module")
def nodes(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("telemetry")
    classes = folder / "classes"
    command = ["javac", "-nowarn", "-d", str(classes), "-cp", f"{apache.jars()}/*", str(RECEIVER)]
    subprocess.run(command, check=True, timeout=120)
    with pair(folder, PROPERTIES, classes) as both:
        yield both


class Client:
    """One client instance, on a connection of its own."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.instance_id = NOBODY
        self.subscription_id = 0

    def get(self) -> GetTelemetrySubscriptionsResponse:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=self.instance_id)
        answer = self.asker.ask(request, 0, GetTelemetrySubscriptionsResponse)
        if not answer.error_code:
            self.instance_id, self.subscription_id = answer.client_instance_id, answer.subscription_id
        return answer

    def push(self, metrics: bytes = b"", *, kind: int = 0, terminating: bool = False, off: int = 0) -> str:
        request = PushTelemetryRequest(
            client_instance_id=self.instance_id,
            subscription_id=self.subscription_id + off,
            terminating=terminating,
            compression_type=kind,
            metrics=metrics,
        )
        return ErrorCode.name_of(self.asker.ask(request, 0, PushTelemetryResponse).error_code)

    def push_in_time(self, metrics: bytes = b"", **options: Any) -> str:
        """As soon as its interval is over."""

        def pushed() -> str | None:
            error = self.push(metrics, **options)
            return None if error == THROTTLED.name else error

        return wait_for(pushed, "the interval is over")


def said(answer: GetTelemetrySubscriptionsResponse) -> Any:
    """All but the ids, which differ."""
    return (
        ErrorCode.name_of(answer.error_code),
        answer.push_interval_ms,
        answer.telemetry_max_bytes,
        answer.accepted_compression_types,
        answer.delta_temporality,
        sorted(answer.requested_metrics),
        answer.client_instance_id.int > 0,
    )


def subscribe(asker: Asker, name: str, values: Mapping[str, str | None]) -> None:
    """The node has it when a client that it does not know yet hears something else than before."""
    before = said(Client(asker).get())
    request = alter_configs_request(CLIENT_METRICS_RESOURCE, name, values)
    (answer,) = asker.ask(request, 1, IncrementalAlterConfigsResponse).responses
    assert answer.error_code == 0, answer
    wait_for(lambda: said(Client(asker).get()) != before, f"the node knows of {name}")


def subscribed(question: Callable[[Asker], Any]) -> Callable[[Asker], Any]:
    """`question` while every client is to push all metrics every 300 ms."""

    def ask(asker: Asker) -> Any:
        subscribe(asker, "all", {"metrics": "*", "interval.ms": "300"})
        try:
            return question(asker)
        finally:
            subscribe(asker, "all", {"metrics": None, "interval.ms": None})

    return ask


def test_it_is_offered(nodes: Pair) -> None:
    def question(asker: Asker) -> Any:
        answer = asker.ask(ApiVersionsRequest(), 2, ApiVersionsResponse)
        return [(each.min_version, each.max_version) for each in answer.api_keys if each.api_key in (71, 72)]

    assert alike(nodes, question) == [(0, 0), (0, 0)]


def test_what_a_client_is_to_push(nodes: Pair) -> None:
    def question(asker: Asker) -> Any:
        found = [said(Client(asker).get())]
        for name, values in (
            ("a", {"metrics": "org.b,org.a", "interval.ms": "5000"}),
            ("b", {"metrics": "org.a,org.c", "match": "client_id=par.*"}),
            ("c", {"interval.ms": "4000", "match": "client_source_address=127.*,client_software_name=unknown"}),
            ("d", {"interval.ms": "3000", "metrics": "*"}),
        ):
            subscribe(asker, name, values)
            found.append(said(Client(asker).get()))
        for name in "dcba":
            subscribe(asker, name, dict.fromkeys(("metrics", "interval.ms", "match")))
        return found

    assert len({str(each) for each in alike(nodes, question)}) == 5


def test_when_a_client_may_ask_and_push(nodes: Pair) -> None:
    def question(asker: Asker) -> Any:
        client = Client(asker)
        found = [said(client.get()), said(client.get()), client.push(), client.push(), client.push_in_time()]
        # The subscription is another one.
        found += [client.push_in_time(off=1), said(client.get()), client.push_in_time()]
        found += [client.push_in_time(kind=9), said(client.get())]
        subscribe(asker, "more", {"metrics": "*", "interval.ms": "250"})
        old = client.push()
        found += [old, said(client.get()), client.push_in_time()]
        subscribe(asker, "more", {"metrics": None, "interval.ms": None})
        return found

    found = alike(nodes, subscribed(question))
    assert found[1][0] == found[3] == THROTTLED.name
    assert {"UNKNOWN_SUBSCRIPTION_ID", "UNSUPPORTED_COMPRESSION_TYPE"} <= {*map(str, found)}


def test_the_end_of_a_client(nodes: Pair) -> None:
    def question(asker: Asker) -> Any:
        client = Client(asker)
        client.get()
        found = [client.push(), client.push(terminating=True), client.push(terminating=True), client.push()]
        return [*found, client.push_in_time(), said(client.get())[0]]

    assert alike(nodes, subscribed(question))[:3] == ["NONE", "NONE", "INVALID_REQUEST"]


@pytest.mark.parametrize("kind", list(Compression))
def test_pushes_that_are_taken_or_too_large_or_broken(nodes: Pair, kind: Compression) -> None:
    def question(asker: Asker) -> Any:
        client = Client(asker)
        client.get()
        whole = compress(kind, metrics_data(gauge("g", point(1))))
        found = [client.push_in_time(data, kind=kind) for data in (whole, bytes(MAX_BYTES + 1))]
        if kind:
            bomb = compress(kind, bytes(10 * MAX_BYTES))
            found += [client.push_in_time(data, kind=kind) for data in (bomb, b"nonsense")]
        return found

    found = alike(nodes, subscribed(question))
    assert found == ["NONE", "TELEMETRY_TOO_LARGE", *(["INVALID_RECORD"] * 2 if kind else [])]


@pytest.mark.parametrize("number", [0, 1, 2, 99])
def test_ids_that_kafka_keeps_for_itself(nodes: Pair, number: int) -> None:
    def question(asker: Asker) -> Any:
        client = Client(asker)
        client.instance_id = UUID(int=number)
        return client.push(), client.get().client_instance_id.int == number

    assert (alike(nodes, question)[0] == "INVALID_REQUEST") == (number < 2)


@pytest.mark.parametrize("controllers", [True, False])
@pytest.mark.parametrize(
    ("name", "version"),
    [
        *(
            (name, "1")
            for name in ("a", "apache-kafka-java", "a.b-c", "9", "", "-a", "a-", ".a", "a b", "a_b", "\u00e9", "a\n")
        ),
        *(("a", version) for version in ("4.4.0", "", "1-", "v2.16.1-rdkafka-2.16.0", "1+2")),
    ],
)
def test_the_software_that_a_client_says_it_is(nodes: Pair, name: str, version: str, *, controllers: bool) -> None:
    """KIP-511."""

    def question(asker: Asker) -> Any:
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        answers = [asker.ask(request, each, ApiVersionsResponse) for each in (2, 3, 4)]
        return [(each.error_code, bool(each.api_keys)) for each in answers]

    assert alike(nodes, question, controllers=controllers)[0] == (0, True)

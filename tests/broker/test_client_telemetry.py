"""KIP-714: which metrics a client is to push, how its requests are judged, and what a scrape shows of them."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest

from tanist.broker.metrics.scrape import scrape
from tanist.broker.telemetry.client_telemetry import ClientTelemetry
from tanist.broker.telemetry.received import ReceivedMetrics
from tanist.controller.configs.client_patterns import CLIENT_ATTRIBUTES
from tanist.controller.configs.settings import CLIENT_METRICS_RESOURCE
from tanist.sim.workload.clients import SimClient
from tanist.wire.compression import Compression, compress
from tanist.wire.errors import ErrorCode
from tanist.wire.ids import id_text
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from tanist.wire.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from tanist.wire.messages.push_telemetry_request import PushTelemetryRequest
from tanist.wire.otlp import Number
from tests.api_versions import API_VERSIONS
from tests.broker.cluster_rig import Cluster
from tests.broker.prometheus_text import Labels, parse
from tests.wire.protobuf import counter, gauge, metrics_data, point

ENABLE = {"tanist.client.metrics.enable": "true"}
NOBODY = UUID(int=0)
INTERVAL_MS = 1_000
SENT = "org.apache.kafka.producer.record.send.total"


class Client:
    """A client of node 1 that has telemetry."""

    def __init__(self, cluster: Cluster, name: str = "orders", software: str = "") -> None:
        self.cluster = cluster
        self.sim: SimClient = cluster.new_client(name)
        self.instance_id = NOBODY
        self.subscription_id = 0
        if software:
            request = ApiVersionsRequest(client_software_name=software, client_software_version="1.2")
            assert cluster.ask(request, 3, client=self.sim).error_code == ErrorCode.NONE

    def ask(self) -> GetTelemetrySubscriptionsResponse:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=self.instance_id)
        answer: GetTelemetrySubscriptionsResponse = self.cluster.ask(request, 0, client=self.sim)
        if not answer.error_code:
            self.instance_id, self.subscription_id = answer.client_instance_id, answer.subscription_id
        return answer

    def push(self, metrics: bytes = b"", *, kind: int = Compression.NONE, terminating: bool = False) -> ErrorCode:
        request = PushTelemetryRequest(
            client_instance_id=self.instance_id,
            subscription_id=self.subscription_id,
            terminating=terminating,
            compression_type=kind,
            metrics=metrics,
        )
        return ErrorCode(self.cluster.ask(request, 0, client=self.sim).error_code)

    def go(self) -> None:
        """Its connections end."""
        known = [each for each in self.cluster.node(1).components.connections if each.client_id == self.sim.name]
        self.sim.end_life()
        self.cluster.until(lambda: all(each.closed for each in known))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(nodes=1, config={**ENABLE, "telemetry.max.bytes": "2000"})


def subscribe(cluster: Cluster, name: str = "all", **values: str | None) -> None:
    changes = {"interval.ms": str(INTERVAL_MS), "metrics": "*"} | {
        key.replace("_", "."): value for key, value in values.items()
    }
    cluster.configure(CLIENT_METRICS_RESOURCE, name, changes)


def telemetry(cluster: Cluster) -> ClientTelemetry:
    found = cluster.node(1).components.telemetry
    assert found is not None
    return found


def page(cluster: Cluster) -> dict[str, dict[Labels, float]]:
    return {name: family.samples for name, family in parse(telemetry(cluster).page()).items()}


def counted(cluster: Cluster, name: str) -> float:
    return parse(scrape(cluster.node(1).components).render())[f"kafka_server_client_metrics_{name}"].samples[()]


# -- the offer


def test_it_is_offered_where_it_is_enabled() -> None:
    for config, offered in ((ENABLE, {71, 72}), ({}, set())):
        cluster = Cluster(nodes=1, config=config)
        keys = {each.api_key for each in cluster.ask(API_VERSIONS, 2).api_keys}
        assert keys & {71, 72} == offered
        assert (cluster.node(1).components.telemetry is not None) == bool(offered)
        assert bool(cluster.ask(GetTelemetrySubscriptionsRequest(), 0)) == bool(offered)


def test_a_client_without_an_id_is_given_one_and_hears_what_to_push(cluster: Cluster) -> None:
    subscribe(cluster)
    client = Client(cluster)
    answer = client.ask()
    assert client.instance_id.int >= 100
    assert (answer.requested_metrics, answer.push_interval_ms, answer.telemetry_max_bytes) == (("*",), 1_000, 2_000)
    assert answer.accepted_compression_types == (4, 3, 1, 2)
    assert answer.delta_temporality
    assert answer.subscription_id != Client(cluster, "another").ask().subscription_id


def test_without_a_subscription_a_client_has_nothing_to_push(cluster: Cluster) -> None:
    answer = Client(cluster).ask()
    assert (answer.requested_metrics, answer.push_interval_ms) == ((), 300_000)


@pytest.mark.parametrize(
    ("match", "meant"),
    [
        ("client_id=ord.*", True),
        ("client_id=ord", False),
        ("client_id=orders,client_software_name=apache-kafka-.*", True),
        ("client_id=orders,client_software_name=librdkafka", False),
        ("client_software_version=1.2", True),
        ("client_source_address=orders", True),
        ("client_source_port=x", False),
    ],
)
def test_a_subscription_is_for_the_clients_that_match(cluster: Cluster, match: str, meant: bool) -> None:
    subscribe(cluster, match=match)
    asked = Client(cluster, software="apache-kafka-java").ask().requested_metrics
    assert asked == (("*",) if meant else ())


def test_subscriptions_of_one_client_are_put_together(cluster: Cluster) -> None:
    subscribe(cluster, "a", metrics="org.b,org.a", interval_ms="5000")
    subscribe(cluster, "b", metrics="org.a", interval_ms="2000")
    answer = Client(cluster).ask()
    assert (answer.requested_metrics, answer.push_interval_ms) == (("org.a", "org.b"), 2_000)
    subscribe(cluster, "c", metrics="*", interval_ms="7000")
    assert Client(cluster, "later").ask().requested_metrics == ("*",)


def test_a_subscription_that_has_no_values_any_more_is_gone(cluster: Cluster) -> None:
    subscribe(cluster)
    cluster.configure(CLIENT_METRICS_RESOURCE, "all", {"interval.ms": None, "metrics": None})
    assert Client(cluster).ask().requested_metrics == ()


# -- how requests are judged


def test_a_client_waits_for_its_interval(cluster: Cluster) -> None:
    subscribe(cluster)
    client = Client(cluster)
    client.ask()
    assert client.ask().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert client.push() == ErrorCode.NONE  # the first one after the question, whenever
    assert client.push() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    cluster.run(INTERVAL_MS)
    assert client.push() == ErrorCode.NONE
    assert counted(cluster, "throttle_count") == 2


def test_another_subscription_is_asked_for_at_once(cluster: Cluster) -> None:
    subscribe(cluster)
    client = Client(cluster)
    before = client.ask().subscription_id
    subscribe(cluster, metrics="org.apache")
    assert client.push() == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    answer = client.ask()
    assert (answer.error_code, answer.requested_metrics) == (0, ("org.apache",))
    assert answer.subscription_id != before
    assert counted(cluster, "unknown_subscription_request_count") == 1


def test_a_client_that_comes_from_another_broker_pushes_by_what_it_has_heard_there(cluster: Cluster) -> None:
    """The id of its subscription is the same on each broker."""
    subscribe(cluster)
    client = Client(cluster)
    client.ask()
    client.go()
    moved = Client(cluster, "moved")
    moved.instance_id, moved.subscription_id = client.instance_id, client.subscription_id
    assert moved.push() == ErrorCode.NONE


def test_what_cannot_be_taken_is_refused(cluster: Cluster) -> None:
    subscribe(cluster)
    client = Client(cluster)

    def pushed(metrics: bytes, kind: int) -> ErrorCode:
        cluster.run(INTERVAL_MS)
        return client.push(metrics, kind=kind)

    for number in (0, 1):
        client.instance_id = UUID(int=number)
        assert client.push() == ErrorCode.INVALID_REQUEST
    client.instance_id = NOBODY
    client.ask()
    assert pushed(b"", 7) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert client.ask().error_code == ErrorCode.NONE
    assert pushed(bytes(2_001), 0) == ErrorCode.TELEMETRY_TOO_LARGE
    assert pushed(b"nonsense", 0) == ErrorCode.INVALID_RECORD
    assert pushed(b"nonsense", Compression.ZSTD) == ErrorCode.INVALID_RECORD
    assert pushed(compress(Compression.ZSTD, bytes(1 << 20)), Compression.ZSTD) == ErrorCode.INVALID_RECORD
    assert counted(cluster, "plugin_error_count") == 3
    assert page(cluster) == {}


def test_a_terminating_push_is_taken_at_any_time_and_is_the_last(cluster: Cluster) -> None:
    subscribe(cluster)
    client = Client(cluster)
    client.ask()
    client.push()
    assert client.push(metrics_data(gauge("last", point(1))), terminating=True) == ErrorCode.NONE
    assert client.push(terminating=True) == ErrorCode.INVALID_REQUEST
    assert client.push() == ErrorCode.INVALID_REQUEST
    assert "last" in page(cluster)


def test_an_instance_is_there_as_long_as_its_connection_and_its_pushes(cluster: Cluster) -> None:
    subscribe(cluster)
    gone, silent = Client(cluster, "gone"), Client(cluster, "silent")
    gone.ask()
    silent.ask()
    assert counted(cluster, "instance_count") == 2
    gone.go()
    assert counted(cluster, "instance_count") == 1
    cluster.run(59_000)
    assert counted(cluster, "instance_count") == 1
    cluster.run(1_000)
    assert counted(cluster, "instance_count") == 0


def test_of_too_many_instances_the_oldest_is_forgotten(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClientTelemetry, "MAX_INSTANCES", 2)
    subscribe(cluster)
    clients = [Client(cluster, f"client-{number}") for number in range(3)]
    for client in clients:
        client.ask()
    assert counted(cluster, "instance_count") == 2
    assert clients[2].ask().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert clients[0].ask().error_code == ErrorCode.NONE


# -- the page


@pytest.mark.parametrize("kind", list(Compression))
def test_a_scrape_shows_what_was_pushed(cluster: Cluster, kind: Compression) -> None:
    subscribe(cluster)
    client = Client(cluster, software="librdkafka")
    client.ask()
    pushed = metrics_data(
        counter(SENT, point(5)), gauge("a.rate", point(1.5, {"node.id": '1"\n'})), client={"group_id": "g"}
    )
    assert client.push(compress(kind, pushed), kind=kind) == ErrorCode.NONE
    who = (("client_id", "orders"), ("client_instance_id", id_text(client.instance_id)), ("group_id", "g"))
    found = page(cluster)
    (info,) = found.pop("tanist_client_info")
    assert dict(info).keys() == {*CLIENT_ATTRIBUTES}
    assert (dict(info)["client_software_name"], dict(info)["client_source_address"]) == ("librdkafka", "orders")
    assert found == {SENT.replace(".", "_"): {who: 5.0}, "a_rate": {(*who, ("node_id", '1"\n')): 1.5}}
    assert counted(cluster, "plugin_export_count") == 1


def number(metric: str, value: float, *, is_counter: bool = True, is_delta: bool = True, **pairs: str) -> Number:
    return Number(metric, pairs, value, is_counter, is_delta)


def received(*pushes: list[Number], who: Mapping[str, str] | None = None) -> ReceivedMetrics:
    metrics = ReceivedMetrics()
    for numbers in pushes:
        metrics.take(UUID(int=1), who or {"client_id": "c", "client_instance_id": "i"}, numbers, 1_000, 0)
    return metrics


def values(metrics: ReceivedMetrics, now_ms: int = 0) -> dict[str, float]:
    found = parse(metrics.render(now_ms))
    found.pop("tanist_client_info", None)
    return {name: sum(family.samples.values()) for name, family in found.items()}


def test_counters_are_summed_up_and_gauges_are_those_of_the_last_push() -> None:
    gauges = [number("g", value, is_counter=False, is_delta=False) for value in (7, 8)]
    up_down = number("u", -3, is_counter=False)
    assert values(received([number("sent", 2), gauges[0], up_down], [number("sent", 3), gauges[1], up_down])) == {
        "sent": 5,
        "g": 8,
        "u": -6,
    }
    assert values(received([number("sent", 2), gauges[0]], [])) == {"sent": 2}
    assert values(received([number("sent", 2, is_delta=False)], [number("sent", 3, is_delta=False)])) == {"sent": 3}


def test_a_push_that_cannot_be_read_to_its_end_changes_nothing(cluster: Cluster) -> None:
    subscribe(cluster)
    client = Client(cluster)
    client.ask()
    whole = metrics_data(counter("sent", point(5)))
    assert client.push(whole) == ErrorCode.NONE
    cluster.run(INTERVAL_MS)
    assert client.push(whole + b"\xff") == ErrorCode.INVALID_RECORD
    assert set(page(cluster)["sent"].values()) == {5.0}


def test_what_was_pushed_last_stays_for_a_minute_after_the_end() -> None:
    metrics = received([number("sent", 2)])
    assert values(metrics, 59_999) == {"sent": 2}
    assert values(metrics, 60_000) == {}
    assert metrics.count == 0


@pytest.mark.parametrize(
    "strange",
    [
        number("sent", float("nan")),
        number("sent", float("inf")),
        number("sent", -1),
        number("tanist_client_info", 1),
        number("x" * 2_000, 1),
    ],
)
def test_what_a_scraper_could_stumble_over_is_left_out(strange: Number) -> None:
    assert values(received([strange, number("good", 1)])) == {"good": 1}


@pytest.mark.parametrize("name", ["a.b-c/d", "9a", "", "__name", "é"])
def test_any_name_is_made_one_of_prometheus(name: str) -> None:
    metrics = received([Number(name, {"x.y": "1", name or "z": "2"}, 1, is_counter=True, is_delta=True)])
    assert list(values(metrics).values()) == [1]


def test_a_name_that_two_clients_use_for_different_things_keeps_one_meaning() -> None:
    metrics = received([number("m", 1)])
    other = {"client_id": "d", "client_instance_id": "j"}
    metrics.take(UUID(int=2), other, [number("m", 5, is_counter=False, is_delta=False)], 1_000, 0)
    assert values(metrics) == {"m": 1}


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReceivedMetrics, "MAX_OF_CLIENT", 4)
    monkeypatch.setattr(ReceivedMetrics, "MAX", 6)
    many = [number(f"m{index}", 1) for index in range(9)]
    metrics = received(many, many)
    assert values(metrics) == {"m0": 2, "m1": 2, "m2": 2}  # and who it is
    metrics.take(UUID(int=2), {"client_id": "d", "client_instance_id": "j"}, many, 1_000, 0)
    assert values(metrics) == {"m0": 1, "m1": 1, "m2": 1}
    assert metrics.count == 4

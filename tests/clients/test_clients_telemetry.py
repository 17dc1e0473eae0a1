"""Client telemetry (KIP-714): librdkafka and Java push their metrics at their defaults, once an operator subscribes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tanist.runtime.cluster.cluster_file import load_existing
from tanist.runtime.cluster.layout import metrics_address
from tests.broker.prometheus_text import Family, parse
from tests.interop import apache, target
from tests.interop.apache import RunningTool
from tests.interop.tanist_cluster import TanistCluster, node_metrics
from tests.interop.waiting import wait_for

pytestmark = [
    pytest.mark.clients,
    pytest.mark.usefixtures("java"),
    pytest.mark.skipif(target.chosen() != "tanist", reason="Apache Kafka has no page for what clients push"),
]

CLIENT_METRICS = "org.apache.kafka.tools.ClientMetricsCommand"
LATENCY = "org_apache_kafka_producer_request_latency_avg"
SENT = "org_apache_kafka_producer_record_send_total"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TanistCluster]:
    folder: Path = tmp_path_factory.mktemp("telemetry")
    running = TanistCluster(folder / "cluster", nodes=1, properties={"tanist.client.metrics.enable": "true"})
    running.start()
    try:
        yield running
    finally:
        running.stop()


def client_metrics(cluster: TanistCluster, *arguments: str) -> str:
    """`kafka-client-metrics.sh`."""
    return apache.tool(CLIENT_METRICS, "--bootstrap-server", cluster.bootstrap, *arguments).stdout


@contextmanager
def subscribed(cluster: TanistCluster, *options: str) -> Iterator[None]:
    client_metrics(cluster, "--alter", "--name", "test", "--interval", "200", *options)
    try:
        yield
    finally:
        client_metrics(cluster, "--delete", "--name", "test")


def pushed(cluster: TanistCluster) -> dict[str, Family]:
    """What the node's page shows of its clients."""
    file = load_existing(cluster.directory)
    with urlopen(f"http://{metrics_address(file, file.node(1))}/metrics/clients", timeout=10.0) as page:
        return parse(page.read().decode())


def of_client(cluster: TanistCluster, client_id: str, name: str) -> dict[str, float]:
    """The samples of a metric of one client, by its instance ids."""
    family = pushed(cluster).get(name)
    samples = {} if family is None else family.samples
    return {
        dict(labels)["client_instance_id"]: value
        for labels, value in samples.items()
        if dict(labels)["client_id"] == client_id
    }


def test_the_tool_makes_describes_lists_and_deletes_subscriptions(cluster: TanistCluster) -> None:
    with subscribed(
        cluster, "--metrics", "org.apache.kafka.producer.,org.apache.kafka.consumer.", "--match", "client_id=a.*"
    ):
        assert client_metrics(cluster, "--list").split() == ["test"]
        described = client_metrics(cluster, "--describe", "--name", "test")
        for line in (
            "interval.ms=200",
            "match=client_id=a.*",
            "metrics=org.apache.kafka.producer.,org.apache.kafka.consumer.",
        ):
            assert line in described
    assert client_metrics(cluster, "--list").split() == []


@pytest.mark.usefixtures("libraries")
def test_librdkafka_pushes_at_its_defaults(cluster: TanistCluster) -> None:
    from confluent_kafka import Producer

    def clients() -> list[dict[str, str]]:
        return [dict(labels) for labels in pushed(cluster)["tanist_client_info"].samples]

    with subscribed(cluster, "--metrics", "*", "--match", "client_id=native"):
        producers = {
            name: Producer({"bootstrap.servers": cluster.bootstrap, "client.id": name})
            for name in ("native", "another")
        }

        def seen() -> dict[str, float] | None:
            for each in producers.values():
                each.produce("native", b"x")
                each.poll(0.05)
            return of_client(cluster, "native", LATENCY) or None

        (instance_id,) = wait_for(seen, "librdkafka's metrics are shown")
        (info,) = clients()
        assert (info["client_id"], info["client_instance_id"]) == ("native", instance_id)
        assert "rdkafka" in info["client_software_version"]
        assert not of_client(cluster, "another", LATENCY)
        producers["native"].flush(10.0)
        del producers["native"]
        # Its last push was a terminating one, and stays for a while.
        wait_for(lambda: _counted(cluster, "instance_count") <= 1, "the connection has ended")
        assert of_client(cluster, "native", LATENCY).keys() == {instance_id}
        assert _counted(cluster, "plugin_error_count") == 0


def _counted(cluster: TanistCluster, name: str) -> float:
    return node_metrics(load_existing(cluster.directory), 1, 10.0)[f"kafka_server_client_metrics_{name}"]


def test_java_pushes_at_its_defaults(cluster: TanistCluster) -> None:
    """Counters come as what has been added since the last push, a few records here, and are shown as sums."""
    with subscribed(cluster, "--metrics", "org.apache.kafka.producer.record.send,org.apache.kafka.producer.request"):
        sender = RunningTool(
            apache.VERIFIABLE_PRODUCER,
            *(
                "--bootstrap-server",
                cluster.bootstrap,
                "--topic",
                "java",
                "--throughput",
                "50",
                "--max-messages",
                "500",
            ),
        )
        with sender:
            first = wait_for(lambda: _sum(cluster, SENT) or None, "Java's counter is shown")
            wait_for(lambda: _sum(cluster, SENT) >= first + 100, "what further pushes say is added")
        assert _sum(cluster, SENT) <= 500
        assert _counted(cluster, "plugin_error_count") == 0
        shown = {name for name in pushed(cluster) if of_client(cluster, "producer-1", name)} - {"tanist_client_info"}
        assert all("_producer_record_send" in name or "_producer_request" in name for name in shown), shown


def _sum(cluster: TanistCluster, name: str) -> float:
    family = pushed(cluster).get(name)
    return 0 if family is None else sum(family.samples.values())

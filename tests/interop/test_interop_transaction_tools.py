"""`kafka-transactions` on our broker and on Apache's, and `tanist transactions` on both: they report the same.

The broker does not verify transactions, as before KIP-890: so a batch that its coordinator knows nothing of
makes a transaction that hangs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tanist.runtime.client.client import Client
from tests.cli.transactions_rig import add, begin, write
from tests.interop import apache, target
from tests.interop.cluster import Cluster
from tests.interop.tanist_cluster import tanist
from tests.interop.traffic import create_topic

pytestmark = pytest.mark.interop

PROPERTIES = {
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="module", params=target.TARGETS)
def cluster(
    request: pytest.FixtureRequest, java: None, libraries: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp(request.param)
    running = target.make(request.param, folder, nodes=1, properties=PROPERTIES, heap="256m")
    running.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with Client([cluster.address(cluster.node_ids[0])]) as client:
        yield client


def of_apache(cluster: Cluster, *arguments: str) -> list[dict[str, str]]:
    """The rows that `kafka-transactions` prints."""
    printed = apache.tool(apache.TRANSACTIONS, "--bootstrap-server", cluster.bootstrap, *arguments).stdout
    head, *rows = [line.split("\t") for line in printed.splitlines() if line.strip()] or [[]]
    names = [name.strip() for name in head]
    return [dict(zip(names, (cell.strip() for cell in row), strict=True)) for row in rows]


def ours(cluster: Cluster, *arguments: str) -> Any:
    """What `tanist transactions` prints, from JSON."""
    return json.loads(tanist("transactions", *arguments, "--bootstrap", cluster.bootstrap, "--json"))


def test_an_open_transaction_is_shown_and_terminated(cluster: Cluster, client: Client) -> None:
    create_topic(cluster, "seen", 1)
    producer_id, epoch = producer = begin(client, "tx-open")
    add(client, "tx-open", producer, 0, "seen")
    write(client, "tx-open", producer, 0, "seen")
    begin(client, "tx-idle")

    listed = {row["TransactionalId"]: row for row in of_apache(cluster, "list")}
    assert listed["tx-open"]["TransactionState"] == "Ongoing"
    assert listed["tx-idle"]["TransactionState"] == "Empty"
    assert listed["tx-open"]["ProducerId"] == str(producer_id)
    assert {row["TransactionalId"] for row in of_apache(cluster, "list", "--transactional-id-pattern", "tx-o.*")} == {
        "tx-open"
    }
    # Apache Kafka takes ids without a transaction for very old ones, and lists them here.
    longer = of_apache(cluster, "list", "--duration-filter", "3600000")
    assert {row["TransactionalId"] for row in longer} == ({"tx-idle"} if cluster.name == "apache" else set())
    assert {each["transactional_id"]: each["state"] for each in ours(cluster, "list")} == {
        name: row["TransactionState"] for name, row in listed.items()
    }
    assert [each["state"] for each in ours(cluster, "list", "--longer-than-ms", "3600000")] == ["Empty"] * len(longer)

    (row,) = of_apache(cluster, "describe", "--transactional-id", "tx-open")
    described = ours(cluster, "describe", "tx-open")
    assert row["TransactionState"] == described["state"] == "Ongoing"
    assert row["TopicPartitions"] == "seen-0"
    assert described["partitions"] == [["seen", 0]]
    assert [row["ProducerId"], row["ProducerEpoch"], row["CurrentTransactionStartTimeMs"]] == [
        str(described[name]) for name in ("producer_id", "producer_epoch", "start_ms")
    ]

    (row,) = of_apache(cluster, "describe-producers", "--topic", "seen", "--partition", "0")
    (found,) = ours(cluster, "describe-producers", "seen", "0")
    assert row["CurrentTransactionStartOffset"] == str(found["start_offset"]) == "0"
    assert [row["ProducerId"], row["ProducerEpoch"]] == [str(producer_id), str(epoch)]
    assert (found["producer_id"], found["producer_epoch"]) == producer

    # Known to its coordinator: it does not hang.
    none_older = ("--max-transaction-timeout", "0")
    assert of_apache(cluster, "find-hanging", "--topic", "seen", *none_older) == []
    assert ours(cluster, "find-hanging", *none_older) == []

    apache.tool(
        apache.TRANSACTIONS, "--bootstrap-server", cluster.bootstrap,
        "forceTerminateTransaction", "--transactionalId", "tx-open",
    )  # fmt: skip
    (row,) = of_apache(cluster, "describe-producers", "--topic", "seen", "--partition", "0")
    assert row["CurrentTransactionStartOffset"] == "None"
    assert int(row["ProducerEpoch"]) > epoch


def test_our_command_terminates_one(cluster: Cluster, client: Client) -> None:
    create_topic(cluster, "ended", 1)
    producer = begin(client, "tx-ended")
    add(client, "tx-ended", producer, 0, "ended")
    write(client, "tx-ended", producer, 0, "ended")
    found = ours(cluster, "force-terminate", "tx-ended")
    assert found["producer_epoch"] > producer[1] or found["producer_id"] != producer[0]
    assert [each["start_offset"] for each in ours(cluster, "describe-producers", "ended", "0")] == [-1]


@pytest.mark.parametrize("tool", ["kafka-transactions", "tanist transactions"])
def test_a_transaction_that_hangs_is_found_and_aborted(cluster: Cluster, client: Client, tool: str) -> None:
    topic = "hangs-" + tool.partition(" ")[0]
    create_topic(cluster, topic, 1)
    producer = begin(client, f"tx-{topic}")
    start = write(client, f"tx-{topic}", producer, 0, topic)  # its coordinator knows nothing of this
    where = ("--max-transaction-timeout", "0", "--topic", topic)
    expected = (topic, "0", str(producer[0]), str(start))
    rows = of_apache(cluster, "find-hanging", *where)
    names = ("Topic", "Partition", "ProducerId", "StartOffset")
    assert [tuple(row[name] for name in names) for row in rows] == [expected]
    fields = ("topic", "partition", "producer_id", "start_offset")
    assert [tuple(str(each[name]) for name in fields) for each in ours(cluster, "find-hanging", *where)] == [expected]

    if tool == "kafka-transactions":
        of_apache(cluster, "abort", "--topic", topic, "--partition", "0", "--start-offset", str(start))
    else:
        ours(cluster, "abort", topic, "0", "--start-offset", str(start))
    assert ours(cluster, "find-hanging", *where) == []
    assert of_apache(cluster, "find-hanging", *where) == []

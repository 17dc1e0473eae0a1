"""`tanist transactions` on a broker that runs: what is open, what hangs, and how it ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.transactions import coordinator_of
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tanist.wire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from tanist.wire.messages.init_producer_id_request import InitProducerIdRequest
from tanist.wire.messages.init_producer_id_response import InitProducerIdResponse
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tanist.wire.messages.produce_response import ProduceResponse
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run

NO_VERIFICATION = ["--config", "transaction.partition.verification.enable=false"]
"""As brokers were before KIP-890: a transaction can hang."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    few = [*FEW_PARTITIONS, "--config", "transaction.state.log.num.partitions=1", *NO_VERIFICATION]
    command = [*TANIST, "up", "--detach", "--brokers", "1", *few, "--port", str(free_port())]
    done = subprocess.run([*command, "--data", str(folder)], capture_output=True, text=True, check=False, timeout=90)
    assert "ready in " in done.stdout, done.stderr
    run("topics", "create", "orders", "--partitions", "2", folder=folder)
    yield folder
    run("down", folder=folder)


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with Client(addresses_of(load_existing(folder), folder)) as client:
        yield client


def begin(client: Client, transactional_id: str) -> tuple[int, int]:
    def attempt() -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        node_id = coordinator_of(client, transactional_id)
        answer = client.ask(request, InitProducerIdResponse, node_id=node_id, max_version=4)
        if answer.error_code:
            raise KafkaError(answer.error_code)
        return answer.producer_id, answer.producer_epoch

    return client.persist(attempt)


def write(client: Client, transactional_id: str, producer: tuple[int, int], partition: int) -> None:
    records = encode_batch(
        [NewRecord(0, None, b"value")],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        transactional=True,
    )
    data = PartitionProduceData(index=partition, records=bytes(records))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=(TopicProduceData(name="orders", partition_data=(data,)),),
    )
    answer = client.ask(request, ProduceResponse, node_id=client.leader_of("orders", partition), max_version=9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def add(client: Client, transactional_id: str, producer: tuple[int, int], partition: int) -> None:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=(AddPartitionsToTxnTopic(name="orders", partitions=(partition,)),),
    )
    node_id = coordinator_of(client, transactional_id)
    answer = client.ask(request, AddPartitionsToTxnResponse, node_id=node_id, max_version=3)
    assert answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0


def listed(folder: Path, *options: str) -> list[tuple[str, str]]:
    found: list[dict[str, Any]] = run("transactions", "list", "--json", *options, folder=folder)
    return [(each["transactional_id"], each["state"]) for each in found]


def test_an_open_transaction_is_shown_and_terminated(folder: Path, client: Client) -> None:
    producer = begin(client, "tx-open")
    add(client, "tx-open", producer, 0)
    write(client, "tx-open", producer, 0)
    assert ("tx-open", "Ongoing") in listed(folder)
    assert listed(folder, "--state", "Ongoing", "--pattern", "tx-o.*") == [("tx-open", "Ongoing")]
    assert listed(folder, "--producer-id", "999999") == []
    assert listed(folder, "--longer-than-ms", "3600000") == []
    described = run("transactions", "describe", "tx-open", folder=folder)
    assert described.startswith("tx-open: Ongoing since 2")
    assert described.endswith("  orders-0\n")
    assert "no transaction hangs" in run(
        "transactions", "find-hanging", "--max-transaction-timeout", "0", folder=folder
    )
    said = run("transactions", "force-terminate", "tx-open", folder=folder)
    assert said.startswith("terminated tx-open")
    assert ("tx-open", "Empty") in listed(folder)
    producers = run("transactions", "describe-producers", "orders", "0", "--json", folder=folder)
    assert [(each["producer_id"], each["start_offset"]) for each in producers] == [(producer[0], -1)]


def test_a_transaction_that_hangs_is_found_and_aborted(folder: Path, client: Client) -> None:
    producer = begin(client, "tx-hangs")
    write(client, "tx-hangs", producer, 1)  # its coordinator knows nothing of this
    assert ("tx-hangs", "Empty") in listed(folder)
    hanging = run("transactions", "find-hanging", "--max-transaction-timeout", "0", "--json", folder=folder)
    assert [(each["topic"], each["partition"], each["producer_id"]) for each in hanging] == [("orders", 1, producer[0])]
    shown = run("transactions", "find-hanging", "--max-transaction-timeout", "0", "--topic", "orders", folder=folder)
    assert "START OFFSET" in shown
    start = hanging[0]["start_offset"]
    wrong = run("transactions", "abort", "orders", "1", "--start-offset", str(start + 7), folder=folder, code=1)
    assert f"open are: {start}" in wrong
    run("transactions", "abort", "orders", "1", "--start-offset", str(start), folder=folder)
    assert run("transactions", "find-hanging", "--max-transaction-timeout", "0", "--json", folder=folder) == []


def test_mistakes(folder: Path, client: Client) -> None:
    assert "there is no transactional id nobody" in run("transactions", "describe", "nobody", folder=folder, code=1)
    assert "there is no transactional id nobody" in run(
        "transactions", "force-terminate", "nobody", folder=folder, code=1
    )
    assert "no such state: Sleeping" in run("transactions", "list", "--state", "Sleeping", folder=folder, code=1)
    refused = run("transactions", "list", "--pattern", "(", folder=folder, code=1)
    assert ErrorCode.INVALID_REGULAR_EXPRESSION.name in refused

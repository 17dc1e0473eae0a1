"""`tanist transactions` on a broker that runs: what is open, what hangs, and how it ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.client.client import Client
from tanist.runtime.cluster.addresses import addresses_of
from tanist.runtime.cluster.cluster_file import load_existing
from tanist.wire.errors import ErrorCode
from tests.cli.cli_rig import FEW_PARTITIONS, TANIST, free_port, run
from tests.cli.transactions_rig import FEW_TRANSACTIONS, add, begin, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    few = [*FEW_PARTITIONS, *FEW_TRANSACTIONS]
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

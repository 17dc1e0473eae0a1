"""Changes of quotas of clients: what Apache Kafka answers, and what we do; and its own tool with ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tanist.wire.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from tests.broker.quota_answers import STATE, STEPS, describe_all, outcome, state
from tests.interop import apache
from tests.interop.pair import Asker, Pair, pair

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]


@pytest.fixture(scope="module")
def nodes(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("quotas")
    with pair(folder, {}) as both:
        yield both


@pytest.mark.parametrize("side", ["apache", "tanist"])
def test_the_answers(nodes: Pair, side: str) -> None:
    with Asker(nodes.apache if side == "apache" else nodes.tanist) as asker:
        for request, expected in STEPS:
            assert outcome(asker.ask(request, 1, AlterClientQuotasResponse)) == expected
        assert state(asker.ask(describe_all(), 1, DescribeClientQuotasResponse)) == STATE


def test_kafka_configs_does_and_says_the_same(nodes: Pair) -> None:
    """`kafka-configs --entity-type users|clients|ips`, with names and defaults, at each node."""
    users = ("--entity-type", "users", "--entity-name", "alice")
    clients = ("--entity-type", "clients", "--entity-default")
    steps = (
        ("--alter", *users, "--add-config", "producer_byte_rate=1024"),
        ("--alter", *users, *clients, "--add-config", "consumer_byte_rate=2048,request_percentage=200"),
        ("--alter", "--entity-type", "ips", "--entity-name", "127.0.0.2", "--add-config", "connection_creation_rate=7"),
        ("--describe", *users, *clients),
        ("--describe", *users),
        ("--describe", "--entity-type", "ips"),
        ("--alter", *users, "--delete-config", "producer_byte_rate"),
        ("--describe", *users),
    )
    theirs, ours = (
        [
            apache.tool(apache.CONFIGS, "--bootstrap-server", f"{host}:{port}", *step).stdout.splitlines()
            for step in steps
        ]
        for host, port in (nodes.apache, nodes.tanist)
    )
    assert ours == theirs
    shown = ["\n".join(ours[step]) for step in (3, 4, 5, 7)]
    for text, value in zip(
        shown, ("consumer_byte_rate=2048.0", "producer_byte_rate=1024.0", "connection_creation_rate=7.0")
    ):
        assert value in text
    assert "1024" not in shown[-1]

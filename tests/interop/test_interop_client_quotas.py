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


def test_kafka_configs(nodes: Pair) -> None:
    """`kafka-configs --entity-type users|clients|ips`, with names and defaults."""
    server = ("--bootstrap-server", "{}:{}".format(*nodes.tanist))
    users = ("--entity-type", "users", "--entity-name", "alice")
    clients = ("--entity-type", "clients", "--entity-default")
    for entity, change in (
        (users, "producer_byte_rate=1024"),
        ((*users, *clients), "consumer_byte_rate=2048,request_percentage=200"),
        (("--entity-type", "ips", "--entity-name", "127.0.0.2"), "connection_creation_rate=7"),
    ):
        apache.tool(apache.CONFIGS, *server, "--alter", *entity, "--add-config", change)
    shown = apache.tool(apache.CONFIGS, *server, "--describe", *users, *clients).stdout
    assert "consumer_byte_rate=2048.0" in shown
    assert "request_percentage=200.0" in shown
    assert "producer_byte_rate=1024.0" in apache.tool(apache.CONFIGS, *server, "--describe", *users).stdout
    shown = apache.tool(apache.CONFIGS, *server, "--describe", "--entity-type", "ips").stdout
    assert "connection_creation_rate=7.0" in shown
    apache.tool(apache.CONFIGS, *server, "--alter", *users, "--delete-config", "producer_byte_rate")
    assert "1024" not in apache.tool(apache.CONFIGS, *server, "--describe", *users).stdout

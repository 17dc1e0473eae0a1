"""Debezium captures a table of PostgreSQL, exactly once, while the coordinator of its transactions is killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import builds, postgres
from tests.clients.connect_worker import put_connector, task_states, worker
from tests.clients.exactly_once import Committed, coordinator, without
from tests.interop.cluster import HOST, Cluster, free_ports

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("libraries")]

ROWS = 200
TOPIC = "shop.public.orders"
Change = tuple[str, int, int | None]
"""The operation (r read by the snapshot, c created, u updated, d deleted), the row's id, and its amount afterwards."""


@pytest.fixture
def database() -> Iterator[postgres.Postgres]:
    reason = postgres.missing()
    if reason is not None:
        pytest.skip(reason)
    server = postgres.Postgres()
    try:
        server.start()
        yield server
    finally:
        server.stop()


def test_debezium_captures_a_table_over_a_brokers_death(
    cluster: Cluster, connect_jars: Path, database: postgres.Postgres, tmp_path: Path
) -> None:
    """The table's rows, then each change once and in the order of the commits."""
    address, log = f"http://{HOST}:{free_ports(1)}", tmp_path / "worker.log"
    (tmp_path / "plugins").mkdir()
    shutil.copytree(builds.debezium(), tmp_path / "plugins" / "debezium")
    write_worker_properties(tmp_path / "worker.properties", cluster, address)
    expected: list[Change] = []

    def run(sql: str, *changes: Change) -> None:
        database.run_sql(sql)
        expected.extend(changes)

    run("CREATE TABLE orders (id int PRIMARY KEY, amount int NOT NULL);")
    run(f"INSERT INTO orders SELECT n, n FROM generate_series(1, {ROWS}) AS n;", *rows("r", 1))
    with worker(tmp_path, connect_jars, log):
        put_connector(address, "orders", connector(database), log)
        with Committed(cluster, TOPIC, 1) as read:
            read.wait_for(len(expected), log.read_text)
            victim = coordinator(cluster, "debezium-orders-")
            with without(cluster, victim, TOPIC):
                run(f"INSERT INTO orders SELECT n, n FROM generate_series({ROWS + 1}, {2 * ROWS}) AS n;", *rows("c", 2))
                for row in range(1, ROWS, 10):
                    run(
                        f"BEGIN; UPDATE orders SET amount = -1 WHERE id = {row}; "
                        f"DELETE FROM orders WHERE id = {row + 1}; COMMIT;",
                        ("u", row, -1), ("d", row + 1, None),
                    )  # fmt: skip
                run("BEGIN; DELETE FROM orders; ROLLBACK;")
                read.wait_for(len(expected), log.read_text)
            run(f"INSERT INTO orders SELECT n, n FROM generate_series({2 * ROWS + 1}, {3 * ROWS}) AS n;", *rows("c", 3))
            read.wait_for(len(expected), log.read_text)
            assert task_states(address, "orders") == ["RUNNING"], log.read_text()
            read.wait_for_the_end()
        assert [change(each) for each in read.messages] == expected


def rows(operation: str, part: int) -> list[Change]:
    return [(operation, number, number) for number in range((part - 1) * ROWS + 1, part * ROWS + 1)]


def change(message: Any) -> Change:
    value = json.loads(message.value())
    after = value["after"]
    return value["op"], json.loads(message.key())["id"], after["amount"] if after is not None else None


def connector(database: postgres.Postgres) -> dict[str, str]:
    """As Debezium's tutorial has it, and no tombstone after a delete."""
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": postgres.USER,
        "database.password": "",
        "database.dbname": "postgres",
        "plugin.name": "pgoutput",
        "topic.prefix": "shop",
        "table.include.list": "public.orders",
        "tombstones.on.delete": "false",
        "exactly.once.support": "required",
        "topic.creation.default.replication.factor": "3",
        "topic.creation.default.partitions": "1",
    }


def write_worker_properties(file: Path, cluster: Cluster, address: str) -> None:
    """A worker that shares nothing with the one of `examples/connect`."""
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "debezium",
        "listeners": address,
        "plugin.path": "plugins",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "exactly.once.source.support": "enabled",
        "offset.flush.interval.ms": "1000",
    }
    for name in ("config", "offset", "status"):
        settings[f"{name}.storage.topic"] = f"debezium-{name}"
        settings[f"{name}.storage.replication.factor"] = "3"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

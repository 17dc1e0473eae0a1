"""From a topic to a table and back on real processes, the query and brokers killed meanwhile."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest

from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.processes import wait_until
from tanist.wire.batch import NewRecord
from tests.spark.spark_killed import BrokersInTurn, Query

pytestmark = pytest.mark.slow

PARTITIONS = 4
BATCH = 5_000
PATIENCE_S = 600


@pytest.mark.parametrize(("records", "kills", "broker_kills"), [(100_000, 3, 1), (2_000_000, 10, 5)])
def test_each_record_is_once_in_the_table(
    three_brokers: tuple[LocalCluster, str], tmp_path: Path, records: int, kills: int, broker_kills: int
) -> None:
    from deltalake import DeltaTable

    nodes, bootstrap = three_brokers
    brokers = BrokersInTurn(nodes, broker_kills)
    with Client(parse_bootstrap(bootstrap), timeout_s=60) as client:
        config = {"min.insync.replicas": "2"}
        create_topic(client, "source", partitions=PARTITIONS, replication_factor=3, config=config)
        producer = Producer(client)
        now_ms = time.time_ns() // 1_000_000  # retention looks at it
        for number in range(0, records, BATCH):
            sent = [NewRecord(now_ms, None, b"%d" % each) for each in range(number, number + BATCH)]
            producer.send("source", number // BATCH % PARTITIONS, sent)
    table = tmp_path / "table"
    written = random.Random(records)
    for _ in range(kills):
        # So many files of data: in the midst of a micro-batch, between its files and its commit, or behind it.
        enough = files(table) + written.randint(1, 3 * PARTITIONS)
        with ingest(bootstrap, table, records // (4 * kills)) as query:
            assert wait_until(lambda query=query, enough=enough: query.has_ended or files(table) >= enough, PATIENCE_S)  # type: ignore[misc]
            brokers.next()
            query.kill()
    with ingest(bootstrap, table, records // kills) as query:
        query.ends_well(PATIENCE_S)
    brokers.back()
    values = sorted(
        int(each) for each in DeltaTable(str(table)).to_pyarrow_table(columns=["value"])["value"].to_pylist()
    )
    assert values == list(range(records))


def files(table: Path) -> int:
    """Also those that a task has not finished."""
    return sum(".parquet" in name for _, _, names in os.walk(table) for name in names if name.startswith("part-"))


def ingest(bootstrap: str, table: Path, batch: int) -> Query:
    """`tanist spark ingest`, as a process."""
    command = [
        *(sys.executable, "-m", "tanist.cli.main", "spark", "ingest", str(table), "--topic", "source"),
        *("--bootstrap", bootstrap, "--master", "local[2]", "--conf", "spark.driver.memory=1g"),
        *("--conf", "spark.sql.shuffle.partitions=2", "--option", f"maxOffsetsPerTrigger={batch}"),
    ]
    return Query(command, table.with_name("query.log"))

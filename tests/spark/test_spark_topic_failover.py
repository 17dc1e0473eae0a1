"""A task that reads, and a task that writes, while their leader is killed: real processes, no Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tanist.client.positions import LATEST
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer, list_offset, read
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.spark.sink.encoding import Rows, encode, seal
from tanist.spark.sink.producer import TaskProducer
from tanist.spark.topic.plan import OffsetRange
from tanist.spark.topic.reading import read_range
from tanist.wire.batch import NewRecord

RECORDS = 4000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[LocalCluster, Client]]:
    found = LocalCluster(tmp_path / "c")
    address = bootstrap_of(found.up(brokers=3, port=random.randint(20000, 50000)))
    with Client(parse_bootstrap(address), timeout_s=60) as client:
        create_topic(client, "t", partitions=2, replication_factor=3, config={"min.insync.replicas": "2"})
        yield found, client
    found.down()


def test_reading_goes_on_at_the_next_leader(cluster: tuple[LocalCluster, Client]) -> None:
    nodes, client = cluster
    producer = Producer(client)
    for first in range(0, RECORDS, 100):
        producer.send("t", 0, [NewRecord(-1, None, b"%d" % number) for number in range(first, first + 100)])
    wanted = OffsetRange("t", 0, 0, RECORDS, 1000)
    found: list[int] = []
    crashed = False
    for batch in read_range(
        client, wanted, ["offset", "value"], fetch_bytes=5000, fail_on_data_loss=True, read_committed=False
    ):
        found += batch.column("offset").to_pylist()
        assert [b"%d" % number for number in batch.column("offset").to_pylist()] == batch.column("value").to_pylist()
        if not crashed and len(found) > RECORDS // 4:
            # One answer is on its way already.
            nodes.crash(client.leader_of("t", 0))
            crashed = True
    assert crashed
    assert found == list(range(RECORDS))


def test_batches_on_their_way_to_a_leader_that_dies_are_in_the_log_once_and_in_order(
    cluster: tuple[LocalCluster, Client],
) -> None:
    nodes, client = cluster
    producer = TaskProducer.fresh(client)
    sent = 0
    while sent < RECORDS:
        for partition in (0, 1):
            where = ("t", partition)
            values = [b"%d" % number for number in range(sent, sent + 20)]
            rows = Rows(None, pa.array(values, pa.binary()), None)
            records = encode(rows, np.arange(20)).cut(0, 20)
            producer.send(where, seal(records, 20, producer.sealing(where), timestamp_ms=-1, compression=0))
        sent += 20
        if sent == RECORDS // 2:
            # Up to five batches have no answer yet.
            nodes.crash(client.leader_of("t", 0))
    producer.flush()
    producer.close()
    for partition in (0, 1):
        stored = read(client, "t", partition, 0, list_offset(client, "t", partition, LATEST))
        assert [int(record.value or b"") for record in stored] == list(range(RECORDS))

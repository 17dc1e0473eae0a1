"""Exactly once into a topic, while the query is killed again and again and a broker with it."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tanist.client.positions import LATEST
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer, list_offset
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.runtime.cluster.processes import wait_until
from tanist.spark.topic.plan import OffsetRange
from tanist.spark.topic.reading import read_range
from tanist.wire.batch import NewRecord
from tests.spark.spark_killed import BrokersInTurn, Query

pytestmark = pytest.mark.slow

PARTITIONS = 4
PATIENCE_S = 240
QUERY = Path(__file__).with_name("spark_sink_query.py")


def visible(client: Client) -> Counter[int]:
    """The keys that readers of committed records get."""
    found: Counter[int] = Counter()
    for partition in range(PARTITIONS):
        wanted = OffsetRange("sink", partition, 0, list_offset(client, "sink", partition, LATEST))
        for batch in read_range(
            client, wanted, ["key"], fetch_bytes=8 << 20, fail_on_data_loss=True, read_committed=True
        ):
            found.update(int(key) for key in batch.column("key").to_pylist())
    return found


@pytest.mark.parametrize(("total", "kills", "broker_kills"), [(120_000, 4, 1), (2_000_000, 10, 5)])
@pytest.mark.parametrize("exactly_once", ["true", "transaction"])
def test_each_record_once_though_the_query_and_brokers_are_killed(
    three_brokers: tuple[LocalCluster, str],
    tmp_path: Path,
    exactly_once: str,
    total: int,
    kills: int,
    broker_kills: int,
) -> None:
    """The query is killed where it may be: after so many records have arrived, in the midst of a micro-batch."""
    nodes, bootstrap = three_brokers
    brokers = BrokersInTurn(nodes, broker_kills)
    trigger = total // 6
    scratch = (str(tmp_path / "checkpoint"), str(tmp_path / "scratch"))
    command = [sys.executable, str(QUERY), bootstrap, *scratch, str(trigger), exactly_once]
    with Client(parse_bootstrap(bootstrap), timeout_s=60) as client:
        for topic in ("source", "sink"):
            create_topic(
                client, topic, partitions=PARTITIONS, replication_factor=3, config={"min.insync.replicas": "2"}
            )
        producer = Producer(client)
        now_ms = time.time_ns() // 1_000_000  # retention looks at it
        for first in range(0, total, 2000):
            records = [NewRecord(now_ms, b"%d" % number, b"%d" % number) for number in range(first, first + 2000)]
            producer.send("source", first // 2000 % PARTITIONS, records)

        def arrived() -> int:
            return sum(list_offset(client, "sink", partition, LATEST) for partition in range(PARTITIONS))

        killed_at = []
        for kill in range(1, kills + 1):
            enough = total * kill // (kills + 1) + random.randrange(total // 12)
            with Query(command, tmp_path / "query.log") as query:
                assert wait_until(lambda enough=enough: query.has_ended or arrived() >= enough, PATIENCE_S)  # type: ignore[misc]
                brokers.next()
                query.kill()
            killed_at.append(arrived())
        brokers.back()
        with Query(command, tmp_path / "query.log") as query:
            query.ends_well(PATIENCE_S)
        found = visible(client)
    assert [number for number in range(total) if found[number] != 1] == []
    assert found.total() == total
    # A kill between two micro-batches proves little: it is in one of them that the sink has to know what is there.
    assert any(each % trigger for each in killed_at), killed_at

"""Exactly once into a topic, while the query is killed again and again and a broker with it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.runtime.admin import create_topic
from tanist.runtime.client import Client, parse_bootstrap
from tanist.runtime.cluster import Cluster, bootstrap_of
from tanist.runtime.processes import wait_until
from tanist.runtime.records import LATEST, Producer, list_offset, read
from tanist.wire.batch import NewRecord

pytestmark = pytest.mark.slow

RECORDS = 120_000
PARTITIONS = 4
KILLS = 4
PATIENCE_S = 240
QUERY = Path(__file__).with_name("spark_sink_query.py")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Cluster, str]]:
    found = Cluster(tmp_path / "c")
    yield found, bootstrap_of(found.up(brokers=3, port=random.randint(20000, 50000)))
    found.down()


def test_each_record_once_though_the_query_and_a_broker_are_killed(
    cluster: tuple[Cluster, str], tmp_path: Path
) -> None:
    """The query is killed where it may be: after so many records have arrived, in the midst of a micro-batch."""
    nodes, bootstrap = cluster
    with Client(parse_bootstrap(bootstrap), timeout_s=60) as client:
        for topic in ("source", "sink"):
            create_topic(
                client, topic, partitions=PARTITIONS, replication_factor=3, config={"min.insync.replicas": "2"}
            )
        producer = Producer(client)
        now_ms = time.time_ns() // 1_000_000  # retention looks at it
        for first in range(0, RECORDS, 2000):
            records = [NewRecord(now_ms, b"%d" % number, b"%d" % number) for number in range(first, first + 2000)]
            producer.send("source", first // 2000 % PARTITIONS, records)

        def arrived() -> int:
            return sum(list_offset(client, "sink", partition, LATEST) for partition in range(PARTITIONS))

        killed_at = []
        for kill in range(1, KILLS + 1):
            enough = RECORDS * kill // (KILLS + 1) + random.randrange(10_000)
            with Query(bootstrap, tmp_path) as query:
                assert wait_until(lambda enough=enough: query.has_ended or arrived() >= enough, PATIENCE_S)  # type: ignore[misc]
                if kill == 2:
                    nodes.crash(2)
                query.kill()
            killed_at.append(arrived())
            if kill == 3:
                nodes.start(2)
        with Query(bootstrap, tmp_path) as query:
            assert query.process.wait(PATIENCE_S) == 0, query.log.read_text()
        found: Counter[int] = Counter()
        for partition in range(PARTITIONS):
            end = list_offset(client, "sink", partition, LATEST)
            found.update(int(record.key or b"") for record in read(client, "sink", partition, 0, end))
    assert [number for number in range(RECORDS) if found[number] != 1] == []
    assert found.total() == RECORDS
    # A kill between two micro-batches proves little: it is in one of them that the sink has to know what is there.
    assert any(each % 20_000 for each in killed_at), killed_at


class Query:
    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.log = folder / "query.log"
        command = [sys.executable, str(QUERY), bootstrap, str(folder / "checkpoint"), str(folder / "scratch")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def kill(self) -> None:
        """The driver and its JVM. Python workers, which are sessions of their own, may write until they find out."""
        assert not self.has_ended, self.log.read_text()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.has_ended:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

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

PARTITIONS = 4
PATIENCE_S = 240
QUERY = Path(__file__).with_name("spark_sink_query.py")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Cluster, str]]:
    found = Cluster(tmp_path / "c")
    yield found, bootstrap_of(found.up(brokers=3, port=random.randint(20000, 50000)))
    found.down()


@pytest.mark.parametrize(("total", "kills", "broker_kills"), [(120_000, 4, 1), (2_000_000, 10, 5)])
def test_each_record_once_though_the_query_and_brokers_are_killed(
    cluster: tuple[Cluster, str], tmp_path: Path, total: int, kills: int, broker_kills: int
) -> None:
    """The query is killed where it may be: after so many records have arrived, in the midst of a micro-batch."""
    nodes, bootstrap = cluster
    trigger = total // 6
    down: int | None = None
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
            with Query(bootstrap, tmp_path, trigger) as query:
                assert wait_until(lambda enough=enough: query.has_ended or arrived() >= enough, PATIENCE_S)  # type: ignore[misc]
                if down is not None:
                    nodes.start(down)
                    down = None
                elif kill <= 2 * broker_kills:
                    down = 1 + kill // 2 % 3
                    nodes.crash(down)
                query.kill()
            killed_at.append(arrived())
        if down is not None:
            nodes.start(down)
        with Query(bootstrap, tmp_path, trigger) as query:
            assert query.process.wait(PATIENCE_S) == 0, query.log.read_text()
        found: Counter[int] = Counter()
        for partition in range(PARTITIONS):
            end = list_offset(client, "sink", partition, LATEST)
            found.update(int(record.key or b"") for record in read(client, "sink", partition, 0, end))
    assert [number for number in range(total) if found[number] != 1] == []
    assert found.total() == total
    # A kill between two micro-batches proves little: it is in one of them that the sink has to know what is there.
    assert any(each % trigger for each in killed_at), killed_at


class Query:
    def __init__(self, bootstrap: str, folder: Path, trigger: int) -> None:
        self.log = folder / "query.log"
        command = [
            *(sys.executable, str(QUERY), bootstrap, str(folder / "checkpoint"), str(folder / "scratch")),
            str(trigger),
        ]
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

"""`readStream.format("tanist")` against real processes, an unclean election among them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.client.admin import add_partitions, create_topic, describe_topics
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tanist.wire.ids import id_text
from tests.spark.spark_segments_samples import START_MS, some_records

PATIENCE_S = 60


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    with Client(parse_bootstrap(bootstrap)) as found:
        yield found


class Stream:
    """A query from a topic into Parquet, which may be started again and again on its checkpoint."""

    def __init__(self, spark: Any, folder: Path, bootstrap: str, **options: str) -> None:
        self._spark, self._folder = spark, folder
        self._options = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest"} | options

    def start(self, **trigger: Any) -> Any:
        read = self._spark.readStream.format("tanist").options(**self._options).load()
        writer = read.writeStream.format("parquet").option("path", str(self._folder / "table"))
        return writer.option("checkpointLocation", str(self._folder / "checkpoint")).trigger(**trigger).start()

    def run(self) -> list[Any]:
        """All that is available now; gives the progress of each batch."""
        query = self.start(availableNow=True)
        assert query.awaitTermination(PATIENCE_S)
        return [each for each in query.recentProgress if each["numInputRows"]]

    def rows(self) -> list[tuple[int, int]]:
        found = self._spark.read.parquet(str(self._folder / "table")).select("partition", "offset")
        return sorted((row.partition, row.offset) for row in found.collect())


def test_each_record_once_over_restarts_limits_and_new_partitions(
    spark: Any, tmp_path: Path, bootstrap: str, client: Client
) -> None:
    create_topic(client, "clicks", partitions=2)
    producer = Producer(client)
    for partition in (0, 1):
        producer.send("clicks", partition, some_records(50 * (partition + 1)))
    stream = Stream(
        spark, tmp_path, bootstrap, subscribe="clicks", maxOffsetsPerTrigger="60", maxRecordsPerPartition="25"
    )
    assert [each["numInputRows"] for each in stream.run()] == [60, 60, 30]
    producer.send("clicks", 0, some_records(10))
    add_partitions(client, "clicks", 3)
    client.forget("clicks")
    producer.send("clicks", 2, some_records(5))
    (progress,) = stream.run()
    topic_id = id_text(describe_topics(client, ["clicks"])[0].topic_id)
    assert json.loads(progress["sources"][0]["endOffset"])["clicks"] == {
        "0": {"offset": 60, "epoch": 0, "topic_id": topic_id},
        "1": {"offset": 100, "epoch": 0, "topic_id": topic_id},
        "2": {"offset": 5, "epoch": 0, "begin": 0, "topic_id": topic_id},
    }
    assert stream.run() == []
    assert stream.rows() == [(p, offset) for p, count in ((0, 60), (1, 100), (2, 5)) for offset in range(count)]


def test_where_a_stream_starts_by_time(spark: Any, tmp_path: Path, bootstrap: str, client: Client) -> None:
    """The samples are a millisecond apart."""
    create_topic(client, "timed", partitions=2)
    Producer(client).send("timed", 0, some_records(100))
    Producer(client).send("timed", 1, some_records(30))
    late = {"subscribe": "timed", "startingTimestamp": str(START_MS + 40)}
    refused = Stream(spark, tmp_path / "a", bootstrap, **late)
    with pytest.raises(Exception, match=f"timed-1 has no record of {START_MS + 40} ms or later"):
        refused.run()
    stream = Stream(spark, tmp_path / "b", bootstrap, **late, startingOffsetsByTimestampStrategy="latest")
    stream.run()
    assert stream.rows() == [(0, offset) for offset in range(40, 100)]
    by_partition = json.dumps({"timed": {"0": START_MS + 90, "1": START_MS + 25}})
    until = json.dumps({"timed": {"0": START_MS + 95, "1": START_MS + 500}})
    batch = spark.read.format("tanist").options(
        **{"kafka.bootstrap.servers": bootstrap}, subscribe="timed",
        startingOffsetsByTimestamp=by_partition, endingOffsetsByTimestamp=until,
    )  # fmt: skip
    found = sorted((row.partition, row.offset) for row in batch.load().collect())
    assert found == [(0, offset) for offset in range(90, 95)] + [(1, offset) for offset in range(25, 30)]


def test_few_records_wait_for_company(spark: Any, tmp_path: Path, bootstrap: str, client: Client) -> None:
    create_topic(client, "rare", partitions=1)
    producer = Producer(client)
    producer.send("rare", 0, some_records(5))
    stream = Stream(spark, tmp_path, bootstrap, subscribe="rare", minOffsetsPerTrigger="20", maxTriggerDelay="1h")
    query = stream.start(processingTime="0 seconds")
    try:
        query.processAllAvailable()
        assert query.lastProgress is None or query.lastProgress["numInputRows"] == 0
        producer.send("rare", 0, some_records(15))
        query.processAllAvailable()
        assert stream.rows() == [(0, offset) for offset in range(20)]
    finally:
        query.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endingOffsets": "latest"}, "a stream cannot have endingOffsets"),
        ({"subscribe": "none"}, "UNKNOWN_TOPIC_OR_PARTITION: none"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "is more than maxOffsetsPerTrigger"),
    ],
)
def test_what_cannot_be_is_reported(
    spark: Any, tmp_path: Path, bootstrap: str, client: Client, options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match=message) as raised:
        Stream(spark, tmp_path, bootstrap, **({"subscribe": "clicks"} | options)).run()
    assert "UnboundLocalError" not in str(raised.value)


@pytest.fixture
def truncated(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """A running stream has read 200 records, of which only the first 100 are on broker 2, which is elected uncleanly
    and is written 150 others: the log is longer than it was.
    """
    folder = tmp_path / "two"
    cluster = LocalCluster(folder)
    config = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    address = bootstrap_of(cluster.up(brokers=2, controllers=1, port=random.randint(20000, 50000), config=config))
    try:
        with Client(parse_bootstrap(address), timeout_s=PATIENCE_S) as client:
            create_topic(client, "orders", partitions=1, replication_factor=2)
            Producer(client).send("orders", 0, some_records(100))
            first = client.leader_of("orders", 0)
            other = 3 - first
            cluster.crash(other)
            Producer(client).send("orders", 0, some_records(100))

            def cut_off() -> None:
                cluster.crash(first)
                cluster.start(other)
                client.forget("orders")
                Producer(client).send("orders", 0, some_records(150))
                assert [each.leader for each in describe_topics(client, ["orders"])[0].partitions] == [other]

            yield address, cut_off
    finally:
        cluster.down()


def test_a_topic_that_was_truncated_under_a_running_stream(spark: Any, tmp_path: Path, truncated: Any) -> None:
    """It stops, with offsets and epochs; `failOnDataLoss=false` goes on where the old log ends, and tells."""
    bootstrap, cut_off = truncated
    stream = Stream(spark, tmp_path, bootstrap, subscribe="orders")
    query = stream.start(processingTime="0 seconds")
    query.processAllAvailable()
    assert query.isActive
    before = stream.rows()
    cut_off()
    assert _ended(query)
    said = str(query.exception())
    assert "orders-0: offsets 100 to 200, which were committed in leader epoch" in said
    assert "were truncated: the log of that epoch ends at 100 now" in said
    assert "failOnDataLoss=false goes on, from offset 100" in said
    assert stream.rows() == before == [(0, offset) for offset in range(200)]

    (progress,) = Stream(spark, tmp_path, bootstrap, subscribe="orders", failOnDataLoss="false").run()
    end = json.loads(progress["sources"][0]["endOffset"])["orders"]["0"]
    assert (end["offset"], end["begin"]) == (250, 100)
    assert "offsets 100 to 200" in end["lost"]
    # What the new leader wrote in their place has been read, too.
    assert stream.rows() == sorted(before + [(0, offset) for offset in range(100, 250)])


def _ended(query: Any) -> bool:
    """Whether the query ends by itself in time; it raises what ended it."""
    deadline = time.monotonic() + PATIENCE_S
    while query.isActive and time.monotonic() < deadline:
        try:
            query.awaitTermination(1)
        except Exception:
            return True
    return not query.isActive

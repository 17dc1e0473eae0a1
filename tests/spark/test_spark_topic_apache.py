"""Apache Kafka, unchanged: its topics, its log folder and its metadata log, read and written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer
from tanist.spark.sink.options import SinkOptions
from tanist.spark.sink.sink import write_rows
from tests.interop import apache
from tests.interop.cluster import free_ports
from tests.spark.spark_segments_samples import some_records

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apache.ApacheCluster]:
    """Topic `orders` with 600 and 300 records, each batch compressed in another way; `copied` has none."""
    missing = apache.missing()
    if missing is not None:
        pytest.skip(missing)
    home = tmp_path_factory.mktemp("kafka")
    found = apache.ApacheCluster(home, nodes=1, quorum="standalone", first_port=free_ports(2), heap="256m")
    found.start()
    with Client(parse_bootstrap(found.bootstrap), timeout_s=60) as client:
        for topic in ("orders", "copied", "again"):
            # The records are years old: on a slow machine Apache Kafka would delete them before they are read.
            create_topic(client, topic, partitions=2, config={"retention.ms": "-1"})
        producer = Producer(client)
        for partition, count in ((0, 12), (1, 6)):
            for number in range(count):
                producer.send("orders", partition, some_records(50, 50 * number), compression=number % 5)
    yield found
    found.stop()


WANTED = [
    (partition, offset, record.key, record.value)
    for partition, count in ((0, 600), (1, 300))
    for offset, record in enumerate(some_records(count))
]


def rows(frame: Any) -> list[tuple[Any, ...]]:
    found = frame.select("partition", "offset", "key", "value").orderBy("partition", "offset").collect()
    return [(row.partition, row.offset, row.key and bytes(row.key), row.value and bytes(row.value)) for row in found]


def test_a_topic_and_its_log_folder(spark: Any, kafka: apache.ApacheCluster) -> None:
    topic = spark.read.format("tanist").option("kafka.bootstrap.servers", kafka.bootstrap).option("subscribe", "orders")
    assert rows(topic.load()) == WANTED
    segments = spark.read.format("tanist-segments").load(str(kafka.log_directory(1))).filter("topic = 'orders'")
    assert segments.filter("damage is not null").count() == 0
    assert rows(segments) == WANTED


def test_a_stream_from_topic_to_topic(spark: Any, kafka: apache.ApacheCluster, tmp_path: Path) -> None:
    """Restarted once; the sink is the one that makes its own producer ids."""
    place = {"kafka.bootstrap.servers": kafka.bootstrap}
    read = spark.readStream.format("tanist").options(**place, subscribe="orders", startingOffsets="earliest")
    stream = read.option("maxOffsetsPerTrigger", "400").load().select("key", "value", "partition")
    for _ in range(2):
        writer = stream.writeStream.format("tanist").options(**place, topic="copied")
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
    copied = spark.read.format("tanist").options(**place, subscribe="copied").load()
    # The partition is kept, and so are the records' order and thereby their offsets.
    assert rows(copied) == WANTED


def test_a_micro_batch_that_was_cut_short_is_completed(kafka: apache.ApacheCluster) -> None:
    """Apache's brokers, too, take a producer's word for its id and epoch, and tell what they have of it."""
    import pyarrow as pa

    options = SinkOptions.parse({"kafka.bootstrap.servers": kafka.bootstrap, "topic": "again"})

    def batches(count: int) -> Iterator[Any]:
        for first in range(0, count, 50):
            part = pa.array([b"%d" % number for number in range(first, first + 50)], pa.binary())
            yield pa.record_batch({"key": part, "value": part})

    assert write_rows(batches(350), options, ("query", 0, 3)).records == 350
    second = write_rows(batches(1000), options, ("query", 0, 3))
    assert (second.records, second.known) == (650, 350)
    third = write_rows(batches(1000), options, ("query", 0, 3))
    assert (third.records, third.known) == (0, 1000)
    assert write_rows(batches(1000), options, ("query", 0, 4)).records == 1000


def test_its_metadata_log(spark: Any, kafka: apache.ApacheCluster) -> None:
    table = spark.read.format("tanist-metadata").load(str(kafka.log_directory(1)))
    assert table.filter("damage is not null").count() == 0
    partitions = table.filter("record = 'PartitionRecord' and topic = 'orders'").orderBy("partition").collect()
    assert [(row.partition, row.leader, list(row.isr)) for row in partitions] == [(0, 1, [1]), (1, 1, [1])]

"""`format("tanist")` against a cluster of one real process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import Client, parse_bootstrap
from tanist.runtime.client.records import Producer
from tanist.runtime.cluster.addresses import bootstrap_of
from tanist.runtime.cluster.cluster import LocalCluster
from tests.spark.spark_segments_samples import START_MS, some_records


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("brokers") / "c"


@pytest.fixture(scope="module")
def bootstrap(folder: Path) -> Iterator[str]:
    """Topic `orders` with three partitions: 600, 300 and no records, each compressed in another way."""
    cluster = LocalCluster(folder)
    address = bootstrap_of(cluster.up(brokers=1, port=random.randint(20000, 50000)))
    try:
        with Client(parse_bootstrap(address)) as client:
            create_topic(client, "orders", partitions=3)
            producer = Producer(client)
            for number in range(12):
                producer.send("orders", 0, some_records(50, 50 * number), compression=number % 5)
            for number in range(6):
                producer.send("orders", 1, some_records(50, 50 * number))
        yield address
    finally:
        cluster.down()


@pytest.fixture
def read(spark: Any, bootstrap: str) -> Any:
    return spark.read.format("tanist").option("kafka.bootstrap.servers", bootstrap)


def test_the_schema_is_that_of_sparks_kafka_source(read: Any) -> None:
    kafka = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    )
    from pyspark.sql.types import _parse_datatype_string

    assert read.option("subscribe", "orders").load().schema == _parse_datatype_string(kafka)
    with_headers = read.option("subscribe", "orders").option("includeHeaders", "true").load().schema
    assert with_headers == _parse_datatype_string(f"{kafka}, headers array<struct<key: string, value: binary>>")


def test_all_records_as_they_were_sent(read: Any) -> None:
    rows = read.option("subscribe", "orders").option("includeHeaders", "true").load().orderBy("partition", "offset")
    found = [
        (row.partition, row.offset, row.key and bytes(row.key), row.value and bytes(row.value), row.timestampType)
        for row in rows.collect()
    ]
    wanted = [
        (partition, offset, record.key, record.value, 0)
        for partition, count in ((0, 600), (1, 300))
        for offset, record in enumerate(some_records(count))
    ]
    assert found == wanted
    first, second = rows.take(2)
    assert [(each.key, each.value and bytes(each.value)) for each in first.headers] == [
        ("trace", b"0"),
        ("empty", None),
    ]
    assert second.headers is None


def test_times_are_instants(read: Any) -> None:
    found = read.option("subscribe", "orders").load().selectExpr("min(timestamp) a", "max(timestamp) b")
    (row,) = found.selectExpr("unix_millis(a) a", "unix_millis(b) b").collect()
    assert (row.a, row.b) == (START_MS, START_MS + 599)


def test_offsets_for_each_partition(read: Any) -> None:
    asked = read.option("assign", '{"orders": [0, 1]}').option("startingOffsets", '{"orders": {"0": 575, "1": -2}}')
    found = asked.option("endingOffsets", '{"orders": {"0": -1, "1": 30}}').load()
    counted = found.groupBy("partition").agg({"offset": "min", "*": "count"}).toDF("partition", "first", "count")
    assert {tuple(row) for row in counted.collect()} == {(0, 575, 25), (1, 0, 30)}


def test_one_log_read_by_several_tasks(read: Any) -> None:
    found = read.option("subscribePattern", "ord.*").option("minPartitions", "9").load()
    assert found.rdd.getNumPartitions() >= 9
    assert found.select("partition", "offset").distinct().count() == found.count() == 900


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"startingTimestamp": "-1"}, 0),
        ({"startingTimestamp": "-2", "endingTimestamp": "-1"}, 900),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": -1, "1": -2, "2": -1}}'}, 300),
        ({"endingTimestamp": "-2"}, 0),
    ],
)
def test_times_may_be_the_end_and_the_beginning(read: Any, options: dict[str, str], count: int) -> None:
    """As ListOffsets has it, where Spark's source hands them on."""
    assert read.option("subscribe", "orders").options(**options).load().count() == count


def test_a_column_alone(read: Any) -> None:
    assert read.option("subscribe", "orders").schema("offset bigint").load().groupBy().sum("offset").first()[0] == (
        600 * 599 // 2 + 300 * 299 // 2
    )


def test_offsets_that_are_not_there_are_reported(read: Any) -> None:
    """With both the offsets that were asked for and those of the log; or passed over."""
    asked = (
        read.option("assign", '{"orders": [0]}')
        .option("startingOffsets", '{"orders": {"0": 590}}')
        .option("endingOffsets", '{"orders": {"0": 700}}')
    )
    with pytest.raises(Exception, match="offsets 590 to 700 were asked for, and the log has 0 to 600"):
        asked.load().count()
    assert asked.option("failOnDataLoss", "false").load().count() == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "none"}, "UNKNOWN_TOPIC_OR_PARTITION: none"),
        ({"assign": '{"orders": [0, 7]}'}, "orders has no partition 7"),
        ({"subscribe": "orders", "startingOffsets": '{"orders": {"0": 1}}'}, "has to say each partition"),
        (
            {
                "assign": '{"orders": [0]}',
                "startingOffsets": '{"orders": {"0": 9}}',
                "endingOffsets": '{"orders": {"0": 4}}',
            },
            "orders-0 cannot be read from offset 9 to 4",
        ),
    ],
)
def test_what_is_not_there_is_reported(read: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        read.options(**options).load().count()


def test_replicas_files_have_the_same_records(spark: Any, read: Any, folder: Path) -> None:
    """What the topic gives, and what its replica's segments hold while the broker runs."""
    segments = spark.read.format("tanist-segments").load(str(folder)).filter("topic = 'orders'")
    columns = ["partition", "offset", "key", "value", "timestamp"]
    topic = read.option("subscribe", "orders").load().select(columns)
    assert segments.filter("damage is not null").count() == 0
    assert segments.select(columns).exceptAll(topic).count() == 0
    assert topic.exceptAll(segments.select(columns)).count() == 0
    assert [row.replica for row in segments.select("replica").distinct().collect()] == [1]

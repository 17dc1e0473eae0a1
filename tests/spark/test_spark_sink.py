"""Writing to topics of real processes: batches, streams, and a micro-batch that an earlier run has written in part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tanist.client.positions import LATEST
from tanist.runtime.client.admin import create_topic
from tanist.runtime.client.client import BrokerConnection, Client, parse_bootstrap
from tanist.runtime.client.records import list_offset, partition_for
from tanist.runtime.client.records import read as read_records
from tanist.spark.sink.already_written import NotTheSame, identity
from tanist.spark.sink.options import SinkOptions
from tanist.spark.sink.producer import ProduceFailed
from tanist.spark.sink.sink import write_rows
from tanist.spark.topic.options import TopicOptions
from tanist.spark.topic.plan import OffsetRange
from tanist.spark.topic.tasks import Task, read_task
from tanist.wire.batch import Record

PARTITIONS = 3


@pytest.fixture(scope="module", autouse=True)
def topics(bootstrap: str) -> None:
    with Client(parse_bootstrap(bootstrap)) as client:
        for name in ("written", "other", "streamed", "again", "changed", "fenced", "plain", "named"):
            create_topic(client, name, partitions=PARTITIONS)


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    with Client(parse_bootstrap(bootstrap)) as found:
        yield found


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The client ids of all connections of this process."""
    found: set[str] = set()
    connect = BrokerConnection.__init__

    def noted(self: BrokerConnection, address: Any, client_id: str, *more: Any) -> None:
        found.add(client_id)
        connect(self, address, client_id, *more)

    monkeypatch.setattr(BrokerConnection, "__init__", noted)
    return found


def test_brokers_know_the_connections_that_carry_records_by_the_clients_id(bootstrap: str, names: set[str]) -> None:
    """Quotas and request logs go by it."""
    place = {"kafka.bootstrap.servers": bootstrap, "kafka.client.id": "billing"}
    rows = pa.record_batch({"value": pa.array([b"one"], pa.binary()), "partition": pa.array([1], pa.int32())})
    write_rows(iter([rows]), SinkOptions.parse({**place, "topic": "named"}), None)
    task = Task((OffsetRange("named", 1, 0, 1),))
    options = TopicOptions.parse({**place, "assign": '{"named": [1]}'})
    assert sum(batch.num_rows for batch in read_task(task, options, ["value"])) == 1
    assert names == {"billing"}


def content(client: Client, topic: str) -> list[tuple[int, Record]]:
    found = []
    for partition in client.metadata([topic]).topics[topic].partitions:
        end = list_offset(client, topic, partition, LATEST)
        found += [(partition, record) for record in read_records(client, topic, partition, 0, end)]
    return found


def test_rows_of_a_batch(spark: Any, bootstrap: str, client: Client) -> None:
    """Topic and partition by column, text as UTF-8, headers, nulls."""
    headers = "array<struct<key: string, value: binary>>"
    schema = f"topic string, partition int, key string, value binary, headers {headers}"
    rows = [
        ("written", 2, "named", b"to 2", [("trace", b"1"), ("none", None)]),
        ("written", None, "ünamed", b"by key", []),
        ("other", None, "k", None, None),
        ("other", 0, None, b"no key", None),
    ]
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    frame.write.format("tanist").option("kafka.bootstrap.servers", bootstrap).mode("append").save()
    found = {(partition, each.key, each.value, each.headers) for partition, each in content(client, "written")}
    assert found == {
        (2, b"named", b"to 2", (("trace", b"1"), ("none", None))),
        (partition_for("ünamed".encode(), PARTITIONS), "ünamed".encode(), b"by key", ()),
    }
    found_other = {(partition, each.key, each.value) for partition, each in content(client, "other")}
    assert found_other == {(partition_for(b"k", PARTITIONS), b"k", None), (0, None, b"no key")}


def test_columns_that_no_record_has_are_left_out_and_a_new_topic_is_made(
    spark: Any, bootstrap: str, client: Client
) -> None:
    """As by Spark's own sink, at Kafka's defaults (auto.create.topics.enable)."""
    rows = spark.createDataFrame([("a", "one", 2.5)], "value string, customer string, price double")
    place = {"kafka.bootstrap.servers": bootstrap, "topic": "made-by-writing"}
    rows.write.format("tanist").options(**place).mode("append").save()
    assert [record.value for _, record in content(client, "made-by-writing")] == [b"a"]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_many_rows_of_several_tasks_each_once(spark: Any, bootstrap: str, client: Client, compression: str) -> None:
    topic = f"many-{compression}"
    create_topic(client, topic, partitions=PARTITIONS)
    rows = spark.range(0, 30_000, 1, 4).selectExpr("cast(id as string) key", "repeat(cast(id as string), 20) value")
    options = {"kafka.bootstrap.servers": bootstrap, "kafka.compression.type": compression, "kafka.batch.size": "50000"}
    rows.write.format("tanist").options(**options).option("topic", topic).mode("append").save()
    found = [each for _, each in content(client, topic)]
    assert sorted(int(each.key or b"") for each in found) == list(range(30_000))
    assert all(each.value == (each.key or b"") * 20 for each in found)


@pytest.mark.parametrize(
    ("expressions", "options", "mode", "message"),
    [
        (["id value"], {"topic": "t"}, "append", "column value is a string or binary, not bigint"),
        (["'a' key"], {"topic": "t"}, "append", "has a column value"),
        (["'a' value"], {}, "append", "option topic or a column topic"),
        (["'a' value"], {"topic": "t", "kafka.key.serializer": "x"}, "append", "is the source's own"),
        (["'a' value"], {"topic": "t", "kafka.compression.type": "zip"}, "append", "one of none, gzip"),
        (["'a' value"], {"topic": "t"}, "overwrite", "cannot be overwritten"),
        (["'a' value"], {"topic": "no/name", "kafka.max.block.ms": "2000"}, "append", "no/name"),
        (["'a' value", "7 partition"], {"topic": "plain"}, "append", "there is no partition 7: the topic has 3"),
        (["'a' value", "string(null) topic"], {}, "append", "null as its topic"),
    ],
)
def test_what_cannot_be_written_is_reported(
    spark: Any, bootstrap: str, expressions: list[str], options: dict[str, str], mode: str, message: str
) -> None:
    writer = spark.range(1).selectExpr(*expressions).write.format("tanist").mode(mode)
    with pytest.raises(Exception, match=message):
        writer.options(**{"kafka.bootstrap.servers": bootstrap} | options).save()


def test_a_stream_from_a_topic_to_a_topic(spark: Any, tmp_path: Path, bootstrap: str, client: Client) -> None:
    place = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(5000).selectExpr("cast(id as string) key", "cast(id as string) value")
    rows.write.format("tanist").options(**place, topic="plain").mode("append").save()
    read = spark.readStream.format("tanist").options(**place, subscribe="plain", startingOffsets="earliest")
    stream = read.option("maxOffsetsPerTrigger", "1500").load().select("key", "value")
    for _ in range(2):
        writer = stream.writeStream.format("tanist").options(**place, topic="streamed")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        assert query.awaitTermination(60)
    assert sorted(int(each.key or b"") for _, each in content(client, "streamed")) == list(range(5000))


# What an earlier run left behind, without Spark: the same task of the same micro-batch writes again.


def batches(numbers: range, size: int = 40) -> Iterator[Any]:
    for first in range(numbers.start, numbers.stop, size):
        part = [b"%d" % number for number in range(first, min(first + size, numbers.stop))]
        yield pa.record_batch({"key": pa.array(part, pa.binary()), "value": pa.array(part, pa.binary())})


def cut_short(found: Iterator[Any], after: int) -> Iterator[Any]:
    """The run ends there."""
    for number, each in enumerate(found):
        if number == after:
            raise KeyboardInterrupt
        yield each


def options_of(bootstrap: str, topic: str) -> SinkOptions:
    return SinkOptions.parse({"kafka.bootstrap.servers": bootstrap, "topic": topic, "kafka.batch.size": "200"})


def test_a_micro_batch_that_was_cut_short_is_completed(bootstrap: str, client: Client) -> None:
    """Whatever the order and the cut of its rows are the second time; and once it is complete nothing is written."""
    options = options_of(bootstrap, "again")
    numbers = range(1000)
    for after in (3, 11):
        with pytest.raises(KeyboardInterrupt):
            write_rows(cut_short(batches(numbers), after), options, ("query", 0, 7))
    assert 0 < len(content(client, "again")) < 1000
    backwards = (each.take(list(range(len(each)))[::-1]) for each in list(batches(numbers, 33))[::-1])
    second = write_rows(backwards, options, ("query", 0, 7))
    assert second.records + second.known == 1000
    assert second.known > 0
    third = write_rows(batches(numbers), options, ("query", 0, 7))
    assert (third.records, third.known) == (0, 1000)
    # Other tasks, and other micro-batches, write the same values and mean others.
    assert write_rows(batches(range(10)), options, ("query", 1, 7)).records == 10
    assert write_rows(batches(range(10)), options, ("query", 0, 8)).records == 10
    counted = Counter(int(each.key or b"") for _, each in content(client, "again"))
    assert counted == Counter(range(1000)) + Counter(range(10)) + Counter(range(10))


def test_a_micro_batch_with_other_rows_is_refused(bootstrap: str) -> None:
    options = options_of(bootstrap, "changed")
    write_rows(batches(range(100)), options, ("query", 0, 1))
    with pytest.raises(NotTheSame, match=r"records that this micro-batch wrote before .* are not among its rows"):
        write_rows(batches(range(50, 150)), options, ("query", 0, 1))


def test_a_task_that_is_late_is_refused(bootstrap: str, client: Client) -> None:
    """By the broker, if the later micro-batch is written while it writes; before it writes, if it is there already."""
    options = options_of(bootstrap, "fenced")

    def overtaken() -> Iterator[Any]:
        found = list(batches(range(400)))
        yield found[0]
        write_rows(batches(range(1000, 1400)), options, ("query", 0, 6))
        yield from found[1:]

    with pytest.raises(ProduceFailed, match="INVALID_PRODUCER_EPOCH"):
        write_rows(overtaken(), options, ("query", 0, 5))
    with pytest.raises(NotTheSame, match="a later micro-batch of this query has been written, in epoch 6"):
        write_rows(batches(range(400)), options, ("query", 0, 5))
    counted = Counter(int(each.key or b"") for _, each in content(client, "fenced"))
    assert all(counted[number] == 1 for number in range(1000, 1400))


def test_epochs_begin_anew_with_another_id() -> None:
    first, last, following = (identity("q", 0, batch) for batch in (0, 32_766, 32_767))
    assert first.producer_id == last.producer_id != following.producer_id
    assert (first.producer_epoch, last.producer_epoch, following.producer_epoch) == (0, 32_766, 0)
    assert len({identity(query, task, 0).producer_id for query in "ab" for task in range(9)}) == 18
    assert all(1 << 62 <= identity("q", task, 0).producer_id < 1 << 63 for task in range(99))
